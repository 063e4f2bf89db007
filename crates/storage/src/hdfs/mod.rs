//! Files in HDFS: `hdfs://HOST:PORT/PATH`, `hdfs://NAMESERVICE/PATH`, or `hdfs:///PATH` in the default file system.
//!
//! A task stages a file, and a committer renames it: `staged.rs`. A file's version is its length and its time.

mod block_locations;
mod client;
mod failures;
mod files;
mod settings;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hdfs_native::HdfsError;
use hdfs_native::client::FileStatus;

pub use self::block_locations::BlockPlace;
use self::client::{Clients, There};
use self::files::{HdfsReader, HdfsWriter};
pub use self::settings::BlockSettings;
use self::settings::HdfsSettings;
use super::local::not_there;
use super::location::Location;
use super::objects::Object;
use super::objects::retry::replaced;
use super::staged::{self, FoundEntry, RenameStore};
use super::store_kind::{StoreKind, StoreSetup};
use super::{Caching, Caps, FileKind, OutputStore, Publisher, ReadFile, Stat, Store, WriteFile};
use gristmill_base::error::{Kind, Result};

const SCHEME: &str = "hdfs";

/// This kind of store.
pub static KIND: StoreKind = StoreKind {
    name: "HDFS",
    schemes: &[SCHEME],
    has_authority: true,
    has_patterns: true,
    advised: Some("hdfs://HOST:PORT/PATH"),
    variables: &["HADOOP_", "KRB5"],
    options: &[],
    credentials: None,
    is_durable: None,
    sends_parts: false,
    open: |setup| Arc::new(Hdfs::new(setup)),
};

/// What file systems of Hadoop have beside other stores.
pub trait HadoopFileSystem {
    /// The same, where new files have these blocks.
    fn with_blocks(&self, blocks: BlockSettings) -> Arc<dyn OutputStore>;

    /// Which nodes hold the blocks of some files of one file system; nothing is known where servers ask for authentication.
    ///
    /// # Errors
    /// No name node says so.
    fn block_places(&self, files: &[Location]) -> Result<Vec<Vec<BlockPlace>>>;

    /// The default file system of Hadoop's configuration, where it is one of this kind.
    fn default_file_system(&self) -> Option<&str>;
}

/// Folders are made as Hadoop makes them, but for its mask.
const FOLDER_MODE: u32 = 0o755;

/// Files in HDFS.
#[derive(Debug, Clone, Default)]
pub struct Hdfs {
    clients: Arc<Clients>,
    /// What the job wants of new files.
    blocks: BlockSettings,
}

/// What HDFS has of a file, as versions are compared.
fn version_of(status: &FileStatus) -> String {
    format!("{:x}-{:x}", status.modification_time, status.length)
}

impl Hdfs {
    /// Files in HDFS, as Hadoop is configured.
    fn new(setup: &StoreSetup) -> Self {
        let settings = HdfsSettings::from_variables(setup.variable);
        Hdfs {
            clients: Arc::new(Clients::new(settings, Arc::clone(&setup.requests))),
            blocks: BlockSettings::default(),
        }
    }

    fn status(&self, operation: &'static str, path: &Path) -> Result<Option<FileStatus>> {
        let there = self.clients.there(operation, path)?;
        there.find(async |client, path| client.get_file_info(path).await)
    }
}

impl HadoopFileSystem for Hdfs {
    fn with_blocks(&self, blocks: BlockSettings) -> Arc<dyn OutputStore> {
        Arc::new(Hdfs {
            clients: Arc::clone(&self.clients),
            blocks,
        })
    }

    fn default_file_system(&self) -> Option<&str> {
        self.clients.settings().default_file_system()
    }

    fn block_places(&self, files: &[Location]) -> Result<Vec<Vec<BlockPlace>>> {
        let (settings, Some(first)) = (self.clients.settings(), files.first()) else {
            return Ok(Vec::new());
        };
        let user = settings
            .user()
            .filter(|_| !settings.requires_authentication());
        let Some(user) = user else {
            return Ok(vec![Vec::new(); files.len()]);
        };
        let there = self.clients.there("look for blocks", first.as_typed())?;
        let paths: Vec<_> = files
            .iter()
            .map(|file| file.path().to_string_lossy())
            .collect();
        let paths: Vec<&str> = paths.iter().map(|path| &**path).collect();
        there.requests().count_all(paths.len() as u64, false);
        there.once(0, async {
            let mut failed = HdfsError::OperationFailed("no name node is configured".to_owned());
            for name_node in settings.name_nodes(first.authority()) {
                match block_locations::block_places(&name_node, &user, &paths).await {
                    Err(error) => failed = error, // it may be the one that stands by
                    found => return found,
                }
            }
            Err(failed)
        })
    }
}

impl Store for Hdfs {
    fn stat(&self, path: &Path) -> Result<Option<Stat>> {
        let Some(status) = self.status("look at a file", path)? else {
            return Ok(None);
        };
        staged::unless_made(self, path, stat_of(&status))
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>> {
        Ok(staged::list(self, directory)?.unwrap_or_default())
    }

    fn open(&self, path: &Path, _caching: Caching) -> Result<Box<dyn ReadFile>> {
        let status = self.status("open the input", path)?;
        let status = status.ok_or_else(|| not_there("open the input", path))?;
        Ok(Box::new(HdfsReader::open(self.clone(), path, &status)?))
    }

    fn open_found(
        &self,
        path: &Path,
        found: &Stat,
        _caching: Caching,
    ) -> Result<Box<dyn ReadFile>> {
        match self.status("open the input", path)? {
            Some(status) if stat_of(&status) == *found => {
                Ok(Box::new(HdfsReader::open(self.clone(), path, &status)?))
            }
            Some(_) => Err(replaced(path)),
            None => Err(not_there("open the input", path)),
        }
    }

    fn check_readable(&self, path: &Path) -> Result<()> {
        let there = self.clients.there("open the input", path)?;
        there
            .ask(async |client, path| client.read(path).await)
            .map(drop)
    }
}

impl OutputStore for Hdfs {
    fn caps(&self, _path: &Path) -> Caps {
        Caps::Whole
    }

    fn create(&self, path: &Path, _bytes: u64, _caching: Caching) -> Result<Box<dyn WriteFile>> {
        let id = staged::stage(self, path)?;
        Ok(Box::new(HdfsWriter::create(self.clone(), path, id)?))
    }

    fn publisher(&self) -> Option<&dyn Publisher> {
        Some(self)
    }

    fn hadoop(&self) -> Option<&dyn HadoopFileSystem> {
        Some(self)
    }
}

impl RenameStore for Hdfs {
    fn find(&self, operation: &'static str, path: &Path) -> Result<Option<FoundEntry>> {
        let status = self.status(operation, path)?;
        Ok(status.map(|status| FoundEntry {
            is_folder: status.isdir,
            file: Object {
                bytes: status.length as u64,
                modified_ns: i128::from(status.modification_time) * 1_000_000,
                version: version_of(&status),
                crc: None,
                sum: None,
            },
        }))
    }

    fn entries(&self, operation: &'static str, folder: &Path) -> Result<Option<Vec<OsString>>> {
        let there = self.clients.there(operation, folder)?;
        let found = there.find(async |client, path| client.list_status(path, false).await)?;
        // Of a file, HDFS lists the file.
        let found = found.map(|found| {
            let within = found.iter().filter(|status| status.path != there.path());
            within.map(|status| name_of(status).into()).collect()
        });
        Ok(found)
    }

    fn make_folder(&self, operation: &'static str, path: &Path) -> Result<()> {
        let there = self.clients.there(operation, path)?;
        there.ask(async |client, path| client.mkdirs(path, FOLDER_MODE, true).await)
    }

    fn remove_one(&self, operation: &'static str, path: &Path) -> Result<()> {
        let there = self.clients.there(operation, path)?;
        let removed = there.ask(
            async |client, path| match client.delete(path, false).await {
                Err(HdfsError::RPCError(class, _))
                    if class.ends_with("PathIsNotEmptyDirectoryException") =>
                {
                    Ok(false)
                }
                done => done,
            },
        );
        match removed {
            Err(error) if error.kind() == Kind::NotFound => Ok(()),
            done => done.map(drop),
        }
    }

    fn remove_tree(&self, path: &Path) -> Result<()> {
        let there = self.clients.there("remove", path)?;
        let removed = there.find(async |client, path| client.delete(path, true).await);
        removed.map(drop)
    }

    fn move_to(
        &self,
        operation: &'static str,
        from: &Path,
        to: &Path,
        replaces: bool,
    ) -> Result<()> {
        let from = self.clients.there(operation, from)?;
        let to = self.clients.there(operation, to)?;
        from.ask(async |client, from| client.rename(from, to.path(), replaces).await)
    }

    /// It is asked for the name that it has: HDFS looks at the rights first, those of a sticky bit too, and then refuses or does
    /// nothing.
    fn can_move(&self, directory: &Path) -> Result<bool> {
        match self.move_to("rename", directory, directory, false) {
            Err(error) => Ok(error.kind() != Kind::Permission),
            Ok(()) => Ok(true),
        }
    }
}

fn stat_of(status: &FileStatus) -> Stat {
    Stat {
        kind: if status.isdir {
            FileKind::Directory
        } else {
            FileKind::File
        },
        bytes: status.length as u64,
        modified_ns: i128::from(status.modification_time) * 1_000_000,
        identity: (0, 0),
    }
}

/// A file's last name.
fn name_of(status: &FileStatus) -> &str {
    status.path.rsplit('/').next().unwrap_or_default()
}

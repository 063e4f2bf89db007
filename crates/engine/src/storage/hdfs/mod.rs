//! Files in HDFS: `hdfs://HOST:PORT/PATH`, `hdfs://NAMESERVICE/PATH`, or `hdfs:///PATH` in the default file system.
//!
//! ```text
//!   create ─▶ DIR/.gristmill-staging/NAME.ID      written by one task: create, append, hsync, close
//!   finish ─▶ Upload (id: the staged name; its one part: length, CRC-32, version) ──report──▶ committer
//!   complete ─▶ rename to DIR/NAME                 at once and whole, in the place of a file of this name
//! ```
//!
//! A whole output that is to be replaced stays until the new one is put together beside it:
//!
//! ```text
//!   DIR, .DIR.gristmill-new with all files ─▶ .DIR.gristmill-old, .DIR.gristmill-new ─▶ .DIR.gristmill-old, DIR ─▶ DIR
//! ```
//!
//! Nothing is seen of a file before it is renamed: names that begin with a dot are input of no job. A folder that was made
//! for staged files (`.gristmill-staging-new` is in it) and has nothing else counts as not there, and goes with the last
//! of them. The rules that must hold: only a committer renames; and a file is of the version (length, time) that its
//! writer closed.

mod client;
mod failures;
mod files;
mod settings;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use hdfs_native::HdfsError;
use hdfs_native::client::FileStatus;

use self::client::{Clients, There};
use self::files::{Reader, Writer};
pub use self::settings::{Blocks, Settings};
use super::local::not_there;
use super::location::Location;
use super::objects::retry::replaced;
use super::objects::{KeptPart, Object, Upload};
use super::{Caching, Caps, FileKind, Output, Publisher, ReadFile, Stat, Store, WriteFile};
use crate::error::{Error, Kind, Result};

/// Its scheme.
pub const SCHEME: &str = "hdfs";

/// Where staged files lie, beside what they will be: in a folder that was there, and in one that was made for them.
const STAGING: [&str; 2] = [".gristmill-staging", ".gristmill-staging-new"];

/// What is put together to replace a directory, and what it replaces.
const NEW: &str = "gristmill-new";
const OLD: &str = "gristmill-old";

/// Folders are made as Hadoop makes them, but for its mask.
const FOLDER_MODE: u32 = 0o755;

/// Staged files of this process.
static STAGED: AtomicU64 = AtomicU64::new(0);

/// Files in HDFS.
#[derive(Debug, Clone, Default)]
pub struct Hdfs {
    clients: Arc<Clients>,
    /// What the job wants of new files.
    blocks: Blocks,
}

/// What HDFS has of a file, as versions are compared.
fn version_of(status: &FileStatus) -> String {
    format!("{:x}-{:x}", status.modification_time, status.length)
}

impl Hdfs {
    /// Files in HDFS, as Hadoop is configured.
    pub fn new(settings: Settings) -> Self {
        Hdfs {
            clients: Arc::new(Clients::new(settings)),
            blocks: Blocks::default(),
        }
    }

    /// The same, where new files have these blocks.
    #[must_use]
    pub fn with_blocks(&self, blocks: Blocks) -> Self {
        Hdfs {
            clients: Arc::clone(&self.clients),
            blocks,
        }
    }

    /// What is configured.
    pub fn settings(&self) -> &Settings {
        self.clients.settings()
    }

    fn status(&self, operation: &'static str, path: &Path) -> Result<Option<FileStatus>> {
        let there = self.clients.there(operation, path)?;
        there.find(async |client, path| client.get_file_info(path).await)
    }

    /// What is in a folder, but for staging; nothing where it is not there. And whether the folder was made for staged files.
    fn within(&self, directory: &Path) -> Result<Option<(Vec<FileStatus>, bool)>> {
        let there = self.clients.there("list a directory", directory)?;
        let found = there.find(async |client, path| client.list_status(path, false).await)?;
        Ok(found.map(|mut found| {
            // Of a file, HDFS lists the file.
            found.retain(|status| status.path != there.path());
            let all = found.len();
            found.retain(|status| !STAGING.contains(&name_of(status)));
            let is_made = found.is_empty() && all > 0;
            (found, is_made)
        }))
    }

    /// Makes the folder for files that are staged to `path`, and gives its name.
    fn stage(&self, path: &Path) -> Result<&'static str> {
        const OPERATION: &str = "create the output";
        let [beside, made] = STAGING;
        let parent = parent_of(path)?;
        // In this order: who makes the parent makes the sign that it did so at once.
        let is_there = self.status(OPERATION, parent.as_typed())?;
        if let Some(status) = &is_there
            && !status.isdir
        {
            let message = "what should be its folder is a file";
            return Err(Error::new(Kind::BadOption, OPERATION, message)
                .with_path(path)
                .advise("name another output"));
        }
        let is_ours = is_there.is_none()
            || self
                .status(OPERATION, parent.join(made).as_typed())?
                .is_some();
        let name = if is_ours { made } else { beside };
        let folder = parent.join(name);
        let there = self.clients.there(OPERATION, folder.as_typed())?;
        there.ask(async |client, path| client.mkdirs(path, FOLDER_MODE, true).await)?;
        Ok(name)
    }

    /// Removes a file, or an empty folder. Nothing there is no error; that a folder is not empty, neither.
    fn remove(&self, operation: &'static str, path: &Path) -> Result<()> {
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

    /// The staged files beside a location: those of its name, or all that are staged right below it.
    fn staged_in(
        &self,
        folder: &Location,
        name: Option<&str>,
        uploads: &mut Vec<(PathBuf, String)>,
    ) -> Result<()> {
        for staging in STAGING {
            let staged = self
                .clients
                .there("look for uploads", folder.join(staging).as_typed())?;
            let found = staged.find(async |client, path| client.list_status(path, false).await)?;
            for status in found.unwrap_or_default() {
                let staged = name_of(&status);
                let Some((of, _)) = staged.rsplit_once('.') else {
                    continue;
                };
                if name.is_none_or(|name| name == of) {
                    let path = folder.join(of).as_typed().to_owned();
                    uploads.push((path, format!("{staging}/{staged}")));
                }
            }
        }
        Ok(())
    }

    fn staged_below(&self, folder: &Location, uploads: &mut Vec<(PathBuf, String)>) -> Result<()> {
        self.staged_in(folder, None, uploads)?;
        let within = self.within(folder.as_typed())?;
        let (found, _) = within.unwrap_or_default();
        for status in found.iter().filter(|status| status.isdir) {
            self.staged_below(&folder.join(name_of(status)), uploads)?;
        }
        Ok(())
    }

    /// Renames what is there, and was not renamed by a request whose reply was lost.
    fn rename(&self, from: &Location, to: &Location) -> Result<()> {
        const OPERATION: &str = "publish the output";
        let there = self.clients.there(OPERATION, from.as_typed())?;
        let to_path = self.clients.there(OPERATION, to.as_typed())?;
        let renamed =
            there.ask(async |client, from| client.rename(from, to_path.path(), false).await);
        match renamed {
            Err(error) if error.kind() == Kind::NotFound => {
                match self.status(OPERATION, to.as_typed())? {
                    Some(_) => Ok(()),
                    None => Err(error),
                }
            }
            done => done,
        }
    }

    /// Removes the folders for staged files in `folder`, and it itself if it was made for them: those that are empty.
    fn clear_in(&self, folder: &Location) -> Result<()> {
        const OPERATION: &str = "end an upload";
        let [beside, made] = STAGING;
        self.remove(OPERATION, folder.join(beside).as_typed())?;
        let sign = folder.join(made);
        if self.status(OPERATION, sign.as_typed())?.is_some() {
            self.remove(OPERATION, sign.as_typed())?;
            self.remove(OPERATION, folder.as_typed())?;
        }
        Ok(())
    }
}

impl Store for Hdfs {
    fn stat(&self, path: &Path) -> Result<Option<Stat>> {
        let Some(status) = self.status("look at a file", path)? else {
            return Ok(None);
        };
        if status.isdir && self.within(path)?.is_some_and(|(_, is_made)| is_made) {
            return Ok(None);
        }
        Ok(Some(stat_of(&status)))
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>> {
        let (found, _) = self.within(directory)?.unwrap_or_default();
        let mut paths: Vec<PathBuf> = found
            .iter()
            .map(|status| directory.join(name_of(status)))
            .collect();
        paths.sort_unstable();
        Ok(paths)
    }

    fn open(&self, path: &Path, _caching: Caching) -> Result<Box<dyn ReadFile>> {
        let status = self.status("open the input", path)?;
        let status = status.ok_or_else(|| not_there("open the input", path))?;
        Ok(Box::new(Reader::open(self.clone(), path, &status)?))
    }

    fn open_found(
        &self,
        path: &Path,
        found: &Stat,
        _caching: Caching,
    ) -> Result<Box<dyn ReadFile>> {
        match self.status("open the input", path)? {
            Some(status) if stat_of(&status) == *found => {
                Ok(Box::new(Reader::open(self.clone(), path, &status)?))
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

impl Output for Hdfs {
    fn caps(&self, _path: &Path) -> Caps {
        Caps::Whole
    }

    fn create(&self, path: &Path, _bytes: u64, _caching: Caching) -> Result<Box<dyn WriteFile>> {
        let staging = self.stage(path)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let number = STAGED.fetch_add(1, Ordering::Relaxed);
        let id = format!(
            "{staging}/{}.{:x}-{:x}-{number:x}",
            Location::from(path).name().unwrap_or_default().display(),
            std::process::id(),
            now.unwrap_or_default().as_nanos()
        );
        Ok(Box::new(Writer::create(self.clone(), path, id)?))
    }
}

impl Publisher for Hdfs {
    fn head(&self, path: &Path) -> Result<Option<Object>> {
        let status = self.status("look at a file", path)?;
        let file = status.filter(|status| !status.isdir);
        Ok(file.map(|status| Object {
            bytes: status.length as u64,
            modified_ns: i128::from(status.modification_time) * 1_000_000,
            version: version_of(&status),
            crc: None,
        }))
    }

    fn delete(&self, path: &Path) -> Result<()> {
        self.remove("remove", path)
    }

    fn parts(&self, path: &Path, id: &str) -> Result<Option<Vec<KeptPart>>> {
        let staged = staged(path, id)?;
        let status = self.status("look at an upload", staged.as_typed())?;
        Ok(status.map(|status| {
            vec![KeptPart {
                bytes: status.length as u64,
                etag: version_of(&status),
            }]
        }))
    }

    fn complete(&self, upload: &Upload) -> Result<()> {
        const OPERATION: &str = "publish the output";
        let from = staged(upload.path.as_typed(), &upload.id)?;
        let from = self.clients.there(OPERATION, from.as_typed())?;
        let to = self.clients.there(OPERATION, upload.path.as_typed())?;
        let renamed = from.ask(async |client, from| client.rename(from, to.path(), true).await);
        match renamed {
            // It was renamed, and the reply lost; or by a job that was killed then.
            Err(error) if error.kind() == Kind::NotFound => {
                let found = self.head(upload.path.as_typed())?;
                match found.is_some_and(|found| upload.made(&found)) {
                    true => Ok(()),
                    false => Err(error),
                }
            }
            done => done,
        }
    }

    fn abort(&self, path: &Path, id: &str) -> Result<()> {
        self.remove("end an upload", staged(path, id)?.as_typed())
    }

    fn uploads(&self, path: &Path) -> Result<Vec<(PathBuf, String)>> {
        let (location, mut uploads) = (Location::from(path), Vec::new());
        if let (Some(parent), Some(name)) = (location.parent(), location.name()) {
            self.staged_in(&parent, name.to_str(), &mut uploads)?;
        }
        self.staged_below(&location, &mut uploads)?;
        Ok(uploads)
    }

    fn beside(&self, directory: &Path) -> Result<Option<PathBuf>> {
        let new = hidden(directory, NEW)?;
        self.remove_whole(new.as_typed())?;
        match self.make_directory(new.as_typed()) {
            Err(error) if error.kind() == Kind::Permission => Ok(None),
            made => made.map(|()| Some(new.as_typed().to_owned())),
        }
    }

    fn complete_as(&self, upload: &Upload, name: &Path) -> Result<()> {
        let from = staged(upload.path.as_typed(), &upload.id)?;
        self.rename(&from, &Location::from(name))
    }

    fn replace(&self, directory: &Path, beside: &Path) -> Result<()> {
        let (target, old) = (Location::from(directory), hidden(directory, OLD)?);
        self.remove_whole(old.as_typed())?;
        self.rename(&target, &old)?;
        self.rename(&Location::from(beside), &target)?;
        self.remove_whole(old.as_typed())
    }

    fn settle(&self, directory: &Path) -> Result<()> {
        const OPERATION: &str = "look for uploads";
        let (new, old) = (hidden(directory, NEW)?, hidden(directory, OLD)?);
        let has =
            |path: &Location| Ok::<_, Error>(self.status(OPERATION, path.as_typed())?.is_some());
        let (has_new, has_old) = (has(&new)?, has(&old)?);
        let target = Location::from(directory);
        // The new one was whole before the old one was renamed.
        if has_old && !has(&target)? {
            self.rename(if has_new { &new } else { &old }, &target)?;
        }
        for (left, is_there) in [(new, has_new), (old, has_old)] {
            if is_there {
                self.remove_whole(left.as_typed())?;
            }
        }
        Ok(())
    }

    fn make_directory(&self, path: &Path) -> Result<()> {
        let there = self.clients.there("make a directory", path)?;
        there.ask(async |client, path| client.mkdirs(path, FOLDER_MODE, true).await)
    }

    fn remove_whole(&self, path: &Path) -> Result<()> {
        let there = self.clients.there("remove", path)?;
        let removed = there.find(async |client, path| client.delete(path, true).await);
        removed.map(drop)
    }

    fn clear(&self, path: &Path) -> Result<()> {
        let location = Location::from(path);
        let is_folder = self.status("end an upload", path)?;
        if is_folder.is_some_and(|status| status.isdir) {
            let within = self.within(path)?;
            for status in within
                .unwrap_or_default()
                .0
                .iter()
                .filter(|status| status.isdir)
            {
                self.clear_in(&location.join(name_of(status)))?;
            }
            self.clear_in(&location)?;
        }
        match location.parent() {
            Some(parent) => self.clear_in(&parent),
            None => Ok(()),
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

fn parent_of(path: &Path) -> Result<Location> {
    let parent = Location::from(path).parent();
    parent.ok_or_else(|| {
        Error::new(
            Kind::BadOption,
            "write the output",
            "it has no name of its own",
        )
        .with_path(path)
        .advise("name hdfs://HOST:PORT/PATH")
    })
}

/// A name beside a directory that is input of no job.
fn hidden(directory: &Path, what: &str) -> Result<Location> {
    let location = Location::from(directory);
    let name = location.name().unwrap_or_default().to_string_lossy();
    Ok(parent_of(directory)?.join(format!(".{name}.{what}")))
}

/// Where what will be `path` is staged.
fn staged(path: &Path, id: &str) -> Result<Location> {
    Ok(parent_of(path)?.join(id))
}

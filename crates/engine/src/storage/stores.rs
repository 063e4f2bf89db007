//! All stores of a job: a location's scheme says which one.
//!
//! ```text
//!   data/a              ──▶ the disk of this machine (or what a test has in its place)
//!   s3://bucket/a       ──▶ S3, or a server that speaks as it does
//!   objects:///dir/a    ──▶ an object store kept in a directory
//!   other://...         ──▶ an error that lists the schemes
//! ```
//!
//! A new kind of object store is one implementation of [`Objects`] and its scheme here.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::location::Location;
use super::objects::directory::{self, Directory};
use super::objects::faults::{Faults, Unreliable};
use super::objects::retry::Retried;
use super::objects::s3::{self, S3, Settings};
use super::objects::{ObjectStore, Objects};
use super::{Caching, Caps, LocalDisk, Output, ReadFile, Stat, Store, WriteFile};
use crate::error::{Error, Kind, Result};

/// The stores.
#[derive(Debug)]
pub struct Stores {
    disk: Arc<dyn LocalDisk>,
    s3: ObjectStore,
    directory: ObjectStore,
}

impl Stores {
    /// All stores, with `disk` for locations without a scheme.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use gristmill_engine::storage::{Store, local::Local, stores::Stores};
    /// let stores = Stores::new(Arc::new(Local));
    /// assert!(stores.stat("objects:///no-such-folder/a".as_ref())?.is_none());
    /// let error = stores.stat("gopher://a".as_ref()).unwrap_err().to_string();
    /// assert!(error.contains("no store for gopher://"), "{error}");
    /// # Ok::<(), gristmill_engine::Error>(())
    /// ```
    pub fn new(disk: Arc<dyn LocalDisk>) -> Arc<Self> {
        Stores::with(disk, Faults::default(), Settings::default())
    }

    /// The same, where requests to object stores fail, and S3 is where `settings` say.
    pub fn with(disk: Arc<dyn LocalDisk>, faults: Faults, settings: Settings) -> Arc<Self> {
        Arc::new(Stores {
            disk,
            s3: store_of(S3::new(settings), faults),
            directory: store_of(Directory, faults),
        })
    }

    /// The disk of this machine: job folders and runs lie nowhere else.
    pub fn disk(&self) -> &Arc<dyn LocalDisk> {
        &self.disk
    }

    /// The store of a location.
    pub fn resolve(&self, path: &Path) -> Result<&dyn Output> {
        match Location::of(path).scheme() {
            None => Ok(&*self.disk),
            Some(s3::SCHEME) => Ok(&self.s3),
            Some(directory::SCHEME) => Ok(&self.directory),
            Some(other) => {
                let message = format!("there is no store for {other}://");
                Err(Error::new(Kind::BadOption, "find a file", message)
                    .with_path(path)
                    .advise("name a path, or s3://BUCKET/KEY"))
            }
        }
    }

    /// The object store of a location; none where it is in a store of another kind.
    pub fn objects(&self, path: &Path) -> Option<&dyn Objects> {
        match Location::of(path).scheme()? {
            s3::SCHEME => Some(self.s3.objects()),
            directory::SCHEME => Some(self.directory.objects()),
            _ => None,
        }
    }
}

fn store_of(objects: impl Objects + 'static, faults: Faults) -> ObjectStore {
    let objects: Arc<dyn Objects> = if faults == Faults::default() {
        Arc::new(Retried::new(objects))
    } else {
        Arc::new(Retried::new(Unreliable::new(objects, faults)))
    };
    ObjectStore::new(objects)
}

impl Store for Stores {
    fn stat(&self, path: &Path) -> Result<Option<Stat>> {
        self.resolve(path)?.stat(path)
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>> {
        self.resolve(directory)?.list(directory)
    }

    fn open(&self, path: &Path, caching: Caching) -> Result<Box<dyn ReadFile>> {
        self.resolve(path)?.open(path, caching)
    }

    fn check_readable(&self, path: &Path) -> Result<()> {
        self.resolve(path)?.check_readable(path)
    }
}

impl Output for Stores {
    fn caps(&self, path: &Path) -> Caps {
        self.resolve(path)
            .map_or(Caps::Ranges, |store| store.caps(path))
    }

    fn create(&self, path: &Path, bytes: u64, caching: Caching) -> Result<Box<dyn WriteFile>> {
        self.resolve(path)?.create(path, bytes, caching)
    }
}

//! All stores of a job: a location's scheme says which one.
//!
//! ```text
//!   data/a              ──▶ the disk of this machine (or what a test has in its place)
//!   objects:///dir/a    ──▶ an object store kept in a directory
//!   other://...         ──▶ an error that lists the schemes
//! ```
//!
//! A new kind of object store is one implementation of [`Objects`] and its scheme here.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::location::Location;
use super::objects::directory::{Directory, SCHEME};
use super::objects::faults::{Faults, Unreliable};
use super::objects::retry::Retried;
use super::objects::{ObjectStore, Objects};
use super::{Caching, Caps, LocalDisk, Output, ReadFile, Stat, Store, WriteFile};
use crate::error::{Error, Kind, Result};

/// The stores.
#[derive(Debug)]
pub struct Stores {
    disk: Arc<dyn LocalDisk>,
    objects: ObjectStore,
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
        Stores::with_faults(disk, Faults::default())
    }

    /// The same, where requests to object stores fail.
    pub fn with_faults(disk: Arc<dyn LocalDisk>, faults: Faults) -> Arc<Self> {
        let objects: Arc<dyn Objects> = if faults == Faults::default() {
            Arc::new(Retried::new(Directory))
        } else {
            Arc::new(Retried::new(Unreliable::new(Directory, faults)))
        };
        let objects = ObjectStore::new(objects);
        Arc::new(Stores { disk, objects })
    }

    /// The disk of this machine: job folders and runs lie nowhere else.
    pub fn disk(&self) -> &Arc<dyn LocalDisk> {
        &self.disk
    }

    /// The store of a location.
    pub fn resolve(&self, path: &Path) -> Result<&dyn Output> {
        match Location::of(path).scheme() {
            None => Ok(&*self.disk),
            Some(SCHEME) => Ok(&self.objects),
            Some(other) => {
                let message = format!("there is no store for {other}://");
                Err(Error::new(Kind::BadOption, "find a file", message)
                    .with_path(path)
                    .advise(format!("name a path, or {SCHEME}://PATH")))
            }
        }
    }

    /// The object store of a location; none where it is in a store of another kind.
    pub fn objects(&self, path: &Path) -> Option<&dyn Objects> {
        (Location::of(path).scheme() == Some(SCHEME)).then(|| self.objects.objects())
    }
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

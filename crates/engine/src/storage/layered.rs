//! Two stores as one: what lies below a directory of its own is in memory, everything else is below.
//!
//! Runs go to memory first and to disk when that is full: a place like any other (`spill::create_run`).
//!
//! Decision: docs/decisions/runs-in-memory.md.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::memory::Memory;
use super::mounts::SharedMount;
use super::{
    Caching, LocalDisk, Lock, Locked, MissingLock, Output, ReadFile, Stat, Store, WriteFile,
};
use crate::error::Result;

/// The directory that is in memory: no path of a file system begins like this.
pub const MEMORY_PLACE: &str = "memory:";

/// A store with a directory in memory.
#[derive(Debug)]
pub struct Layered {
    memory: Memory,
    below: Arc<dyn LocalDisk>,
}

impl Layered {
    /// Adds a directory of up to `limit_bytes` to `below`.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use gristmill_engine::storage::{Caching, Output, memory::Memory};
    /// use gristmill_engine::storage::layered::{Layered, MEMORY_PLACE};
    /// let below = Memory::with_room_for(10);
    /// let store = Layered::new(Arc::new(below.clone()), 5);
    /// store.create(&std::path::Path::new(MEMORY_PLACE).join("a"), 5, Caching::Cached)?;
    /// store.create("/b".as_ref(), 5, Caching::Cached)?;
    /// assert_eq!(below.paths(), ["/b"].map(Into::<std::path::PathBuf>::into));
    /// # Ok::<(), gristmill_engine::Error>(())
    /// ```
    pub fn new(below: Arc<dyn LocalDisk>, limit_bytes: u64) -> Self {
        let memory = Memory::with_room_for(limit_bytes);
        Layered { memory, below }
    }

    fn of(&self, path: &Path) -> &dyn LocalDisk {
        if path.starts_with(MEMORY_PLACE) {
            &self.memory
        } else {
            &*self.below
        }
    }
}

impl Store for Layered {
    fn stat(&self, path: &Path) -> Result<Option<Stat>> {
        self.of(path).stat(path)
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>> {
        self.of(directory).list(directory)
    }

    fn open(&self, path: &Path, caching: Caching) -> Result<Box<dyn ReadFile>> {
        self.of(path).open(path, caching)
    }

    fn is_far(&self, path: &Path) -> bool {
        self.of(path).is_far(path)
    }

    fn check_readable(&self, path: &Path) -> Result<()> {
        self.of(path).check_readable(path)
    }
}

impl Output for Layered {
    fn create(&self, path: &Path, bytes: u64, caching: Caching) -> Result<Box<dyn WriteFile>> {
        self.of(path).create(path, bytes, caching)
    }
}

impl LocalDisk for Layered {
    fn create_private(&self, path: &Path, data: &[u8]) -> Result<()> {
        self.of(path).create_private(path, data)
    }

    fn create_run(&self, path: &Path, bytes: u64, caching: Caching) -> Result<Box<dyn WriteFile>> {
        self.of(path).create_run(path, bytes, caching)
    }

    fn create_private_directory(&self, path: &Path) -> Result<()> {
        self.of(path).create_private_directory(path)
    }

    fn read_private(&self, path: &Path) -> Result<Vec<u8>> {
        self.of(path).read_private(path)
    }

    fn create_directory(&self, path: &Path) -> Result<()> {
        self.of(path).create_directory(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.of(from).rename(from, to)
    }

    fn replace(&self, from: &Path, to: &Path) -> Result<()> {
        self.of(from).replace(from, to)
    }

    fn resolve(&self, path: &Path) -> Result<PathBuf> {
        self.of(path).resolve(path)
    }

    fn exchange(&self, one: &Path, other: &Path) -> Result<bool> {
        self.of(one).exchange(one, other)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.of(path).remove(path)
    }

    fn remove_all_but(&self, directory: &Path, kept: &str) -> Result<()> {
        self.of(directory).remove_all_but(directory, kept)
    }

    fn sync_directory(&self, directory: &Path) -> Result<()> {
        self.of(directory).sync_directory(directory)
    }

    fn discard(&self, path: &Path, range: Range<u64>) -> Result<()> {
        self.of(path).discard(path, range)
    }

    fn gives_back(&self, directory: &Path) -> Result<bool> {
        self.of(directory).gives_back(directory)
    }

    fn may_write(&self, directory: &Path) -> bool {
        self.of(directory).may_write(directory)
    }

    fn shared_mount(&self, path: &Path) -> Option<SharedMount> {
        self.of(path).shared_mount(path)
    }

    fn free_bytes(&self, path: &Path) -> Result<Option<u64>> {
        self.of(path).free_bytes(path)
    }

    fn create_locked(&self, directory: &Path) -> Result<Box<dyn Lock>> {
        self.of(directory).create_locked(directory)
    }

    fn lock(&self, directory: &Path, missing: MissingLock) -> Result<Locked> {
        self.of(directory).lock(directory, missing)
    }
}

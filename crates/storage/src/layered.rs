//! Two stores as one: what lies below a directory of its own is in memory, everything else is below.
//!
//! Runs go to memory first and to disk when that is full: a place like any other (`spill::create_run`).
//!
//! Decision: docs/decisions/runs-in-memory.md.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::forward::forward;
use super::memory::Memory;
use super::mounts::SharedMount;
use super::run_name::MEMORY_PLACE;
use super::{
    Caching, ListingEntry, LocalDisk, Lock, Locked, MissingLock, OutputStore, ReadFile, Stat,
    Store, WriteFile,
};
use gristmill_base::error::Result;

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
    /// use gristmill_storage::{Caching, OutputStore, memory::Memory};
    /// use gristmill_storage::{layered::Layered, run_name::MEMORY_PLACE};
    /// let below = Memory::with_room_for(10);
    /// let store = Layered::new(Arc::new(below.clone()), 5);
    /// store.create(&std::path::Path::new(MEMORY_PLACE).join("a"), 5, Caching::Cached)?;
    /// store.create("/b".as_ref(), 5, Caching::Cached)?;
    /// assert_eq!(below.paths(), ["/b"].map(Into::<std::path::PathBuf>::into));
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    pub fn new(below: Arc<dyn LocalDisk>, limit_bytes: u64) -> Self {
        let memory = Memory::with_room_for(limit_bytes);
        Layered { memory, below }
    }

    /// Lets the directory in memory hold so many bytes from now on. What lies there stays.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use gristmill_storage::{Caching, OutputStore, memory::Memory};
    /// use gristmill_storage::layered::Layered;
    /// let store = Layered::new(Arc::new(Memory::with_room_for(0)), 0);
    /// let create = || store.create("memory:/a".as_ref(), 5, Caching::Cached);
    /// assert!(create().is_err());
    /// store.set_limit(5);
    /// assert!(create().is_ok());
    /// ```
    pub fn set_limit(&self, bytes: u64) {
        self.memory.set_limit(bytes);
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
    forward! { self, path => self.of(path);
        stat() -> Result<Option<Stat>>;
        list() -> Result<Vec<PathBuf>>;
        list_each(each: &mut dyn FnMut(ListingEntry) -> Result<()>) -> Result<()>;
        open_found(found: &Stat, caching: Caching) -> Result<Box<dyn ReadFile>>;
        open(caching: Caching) -> Result<Box<dyn ReadFile>>;
        is_remote() -> bool;
        check_readable() -> Result<()>;
    }

    fn pins_versions(&self) -> bool {
        self.below.pins_versions()
    }
}

impl OutputStore for Layered {
    forward! { self, path => self.of(path);
        create(bytes: u64, caching: Caching) -> Result<Box<dyn WriteFile>>;
    }
}

impl LocalDisk for Layered {
    forward! { self, path => self.of(path);
        create_private(data: &[u8]) -> Result<()>;
        create_run(bytes: u64, caching: Caching) -> Result<Box<dyn WriteFile>>;
        create_private_directory() -> Result<()>;
        read_private() -> Result<Vec<u8>>;
        create_directory() -> Result<()>;
        rename(to: &Path) -> Result<()>;
        replace(to: &Path) -> Result<()>;
        resolve() -> Result<PathBuf>;
        exchange(other: &Path) -> Result<bool>;
        remove() -> Result<()>;
        remove_if_empty() -> Result<()>;
        remove_all_but(kept: &str) -> Result<()>;
        sync_directory() -> Result<()>;
        discard(range: Range<u64>) -> Result<()>;
        gives_back() -> Result<bool>;
        may_write() -> bool;
        shared_mount() -> Option<SharedMount>;
        free_bytes() -> Result<Option<u64>>;
        create_locked() -> Result<Box<dyn Lock>>;
        lock(missing: MissingLock) -> Result<Locked>;
    }
}

//! Storage: where files live. One trait, [`Store`]; the local file system, memory (tests), and a wrapper that
//! injects faults into any of them.
//!
//! Data move in whole buffers between a file and memory that the caller owns. Errors carry the operation and
//! the file; offsets are bytes. A new kind of store (remote objects, HDFS) is one more implementation.

pub mod direct;
pub mod faulty;
pub mod input;
pub mod layered;
pub mod local;
pub mod memory;
pub mod overlap;
pub mod pages;
mod private;
pub mod probe;
pub mod sequential;
pub mod shrink;
pub mod stream;

use std::fmt::Debug;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use crate::error::Result;

/// Device blocks: direct I/O moves whole ones. 4096 is the largest that disks of today use.
pub const BLOCK_BYTES: usize = 4096;

/// What a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// Anything else: a pipe, a device, a socket.
    Other,
}

/// What a store knows of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// File, directory or other.
    pub kind: FileKind,
    /// Length in bytes.
    pub bytes: u64,
    /// Time of the last change, in nanoseconds since the epoch.
    pub modified_ns: i128,
    /// Equal for two names of the same file.
    pub identity: (u64, u64),
}

/// Whether a file's bytes are worth keeping in the operating system's cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caching {
    /// Through the page cache: the bytes are there already, or will be wanted again.
    Cached,
    /// Past the page cache where the file system allows it: bulk data, used once.
    Direct,
}

/// A place for files. Paths are the store's own.
pub trait Store: Send + Sync + Debug {
    /// What `path` leads to, or `None` where nothing is.
    fn stat(&self, path: &Path) -> Result<Option<Stat>>;

    /// The paths in `directory`, in the order of their names.
    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>>;

    /// Opens a file for reading.
    fn open(&self, path: &Path, caching: Caching) -> Result<Box<dyn ReadFile>>;

    /// Opens a file for writing at `bytes` bytes of length; creates it and reserves its space where needed.
    /// What it holds already stays: several writers may fill ranges of one file.
    fn create(&self, path: &Path, bytes: u64, caching: Caching) -> Result<Box<dyn WriteFile>>;

    /// Writes a new file that nobody else may read or write, in a store that knows owners.
    fn create_private(&self, path: &Path, data: &[u8]) -> Result<()> {
        let file = self.create(path, data.len() as u64, Caching::Cached)?;
        file.write_at(data, 0)
    }

    /// Reads a file of [`create_private`](Self::create_private). Fails where somebody else may have written it.
    fn read_private(&self, path: &Path) -> Result<Vec<u8>> {
        let stat = self.stat(path)?;
        let mut data = vec![0; stat.map_or(0, |stat| stat.bytes as usize)];
        let read = self.open(path, Caching::Cached)?.read_at(&mut data, 0)?;
        data.truncate(read);
        Ok(data)
    }

    /// Creates one directory; its parent exists, it does not.
    fn create_directory(&self, path: &Path) -> Result<()>;

    /// Gives `from` the name `to`, at once and whole. Fails where `to` exists.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;

    /// Gives the file `from` the name `to` at once, in place of a file that has it, whose permissions it takes over.
    fn replace(&self, from: &Path, to: &Path) -> Result<()>;

    /// The path itself, or where it leads to if it is a symbolic link.
    fn resolve(&self, path: &Path) -> Result<PathBuf> {
        Ok(path.to_owned())
    }

    /// Exchanges two names at once. `Ok(false)` where the store cannot do that; then nothing has changed.
    fn exchange(&self, one: &Path, other: &Path) -> Result<bool>;

    /// Removes a file, or a directory and all in it. Nothing there is no error.
    fn remove(&self, path: &Path) -> Result<()>;

    /// Removes a directory and all in it, the file of this name after everything else. Nothing there is no error.
    fn remove_with_last(&self, directory: &Path, last: &str) -> Result<()> {
        remove_in_order(self, directory, last)
    }

    /// Makes the names in `directory` durable.
    fn sync_directory(&self, directory: &Path) -> Result<()>;

    /// Gives back the space of the whole blocks inside `range`. The file keeps its length; what is in those blocks
    /// reads as zeros from then on. A store that cannot do that does nothing.
    fn discard(&self, path: &Path, range: Range<u64>) -> Result<()>;

    /// Bytes that can still be written below `path`, where the store knows.
    fn free_bytes(&self, path: &Path) -> Result<Option<u64>>;

    /// Takes the lock that is the file `path` (created where it is not there), or `None` while another process
    /// holds it. The lock ends with the value, or with the process, however that ends.
    fn lock(&self, path: &Path) -> Result<Option<Box<dyn Lock>>>;
}

/// [`Store::remove_with_last`], by the other calls of a store.
fn remove_in_order<S: Store + ?Sized>(store: &S, directory: &Path, last: &str) -> Result<()> {
    // A link goes, not what it leads to; a directory that cannot be listed has to go all the same, in whatever order.
    let is_real = store
        .resolve(directory)
        .is_ok_and(|found| found == directory);
    let within = is_real.then(|| store.list(directory).unwrap_or_default());
    for path in within.unwrap_or_default() {
        if !path.ends_with(last) {
            store.remove(&path)?;
        }
    }
    store.remove(directory)
}

/// The whole blocks inside `range`, which may be none.
///
/// ```
/// use gristmill_engine::storage::whole_blocks;
/// assert_eq!(whole_blocks(1..12_288), 4096..12_288);
/// assert!(whole_blocks(1..8191).is_empty());
/// ```
pub fn whole_blocks(range: Range<u64>) -> Range<u64> {
    const BLOCK: u64 = BLOCK_BYTES as u64;
    let start = range.start.div_ceil(BLOCK).saturating_mul(BLOCK);
    let end = range.end / BLOCK * BLOCK;
    start..end.max(start)
}

/// A held lock.
pub trait Lock: Send + Sync + Debug {}

/// A file open for reading.
pub trait ReadFile: Send + Sync + Debug {
    /// Reads into all of `buffer` from `offset` on; less only where the file ends. Returns the bytes read.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize>;

    /// The descriptor to map the file by, where the store has such a thing.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;
}

/// A file open for writing.
pub trait WriteFile: Send + Sync + Debug {
    /// Writes all of `data` at `offset`.
    ///
    /// Direct where address and offset are equal modulo [`BLOCK_BYTES`]: then whole blocks go past the cache and
    /// the edges through it, so that two writers may meet inside a block.
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()>;

    /// Makes room for so many bytes, which is the file's length then; where a store knows nothing of that, nothing.
    fn reserve(&self, _bytes: u64) -> Result<()> {
        Ok(())
    }

    /// Makes what was written durable.
    fn sync(&self) -> Result<()>;
}

//! What only a disk of this machine can do, and its locks.

use std::fmt::Debug;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::mounts::SharedMount;
use crate::{Caching, FileKind, OutputStore, WriteFile};
use gristmill_base::error::Result;

/// What only a disk of this machine can do: job folders and runs need it.
pub trait LocalDisk: OutputStore {
    /// Writes a new file that nobody else may read or write, in a store that knows owners.
    fn create_private(&self, path: &Path, data: &[u8]) -> Result<()> {
        let file = self.create(path, data.len() as u64, Caching::Cached)?;
        file.write_at(data, 0)
    }

    /// [`OutputStore::create`] of a file that nobody else may read or write, in a store that knows owners.
    fn create_run(&self, path: &Path, bytes: u64, caching: Caching) -> Result<Box<dyn WriteFile>> {
        self.create(path, bytes, caching)
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

    /// Creates a directory that nobody else may look into, in a store that knows owners; and its parents likewise.
    fn create_private_directory(&self, path: &Path) -> Result<()> {
        if self.stat(path)?.is_some() {
            return Ok(());
        }
        if let Some(parent) = path.parent() {
            self.create_private_directory(parent)?;
        }
        self.create_directory(path)
    }

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

    /// Removes a file, or a directory that has nothing in it. Nothing there is no error; that it has something, neither.
    fn remove_if_empty(&self, path: &Path) -> Result<()> {
        let found = self.stat(path)?;
        match found.is_some_and(|found| found.kind == FileKind::Directory) {
            true if !self.list(path)?.is_empty() => Ok(()),
            _ => self.remove(path),
        }
    }

    /// Removes all in a directory but the file of this name. Nothing there is no error; of a link nothing goes.
    fn remove_all_but(&self, directory: &Path, kept: &str) -> Result<()> {
        remove_one_by_one(self, directory, kept)
    }

    /// Makes the names in `directory` durable.
    fn sync_directory(&self, directory: &Path) -> Result<()>;

    /// Gives back the space of the whole blocks inside `range`. The file keeps its length; what is in those blocks
    /// reads as zeros from then on. A store that cannot do that does nothing.
    fn discard(&self, path: &Path, range: Range<u64>) -> Result<()>;

    /// Whether [`discard`](Self::discard) gives space back in a directory, which is tried there.
    fn gives_back(&self, _directory: &Path) -> Result<bool> {
        Ok(true)
    }

    /// Whether files can be made in a directory.
    fn may_write(&self, _directory: &Path) -> bool {
        true
    }

    /// Whether a file may be written, and no other one can take its name.
    fn only_in_place(&self, _file: &Path) -> bool {
        false
    }

    /// Opens a file that is there, to be written in place.
    fn overwrite(&self, file: &Path) -> Result<Box<dyn WriteFile>> {
        self.create(file, 0, Caching::Cached)
    }

    /// The mount that a path lies in, or would lie in, if several machines share it.
    fn shared_mount(&self, _path: &Path) -> Option<SharedMount> {
        None
    }

    /// The kind of file system that a directory lies in, if that is kept in memory.
    fn memory_disk(&self, _path: &Path) -> Option<&'static str> {
        None
    }

    /// Bytes that can still be written below `path`, where the store knows.
    fn free_bytes(&self, path: &Path) -> Result<Option<u64>>;

    /// Creates a job's directory, for nobody else to look into, and takes its lock ([`LOCK`](crate::LOCK)). The lock ends with the value, or
    /// with the process, however that ends.
    fn create_locked(&self, directory: &Path) -> Result<Box<dyn Lock>>;

    /// Takes the lock of such a directory, in a store that knows owners only if it is this user's.
    fn lock(&self, directory: &Path, missing: MissingLock) -> Result<Locked>;
}

/// What is done about a directory without a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingLock {
    /// It stays without.
    Leave,
    /// It gets one, if it is this user's.
    Make,
}

/// What came of the wish to lock a job's directory.
#[derive(Debug)]
pub enum Locked {
    /// The lock is held, as long as this lives.
    Taken(Box<dyn Lock>),
    /// Another process holds it.
    Held,
    /// The directory is this user's, and has no lock.
    Missing,
    /// It is no directory of this user's jobs, or is gone: nothing in it was touched.
    Foreign,
}

/// [`LocalDisk::remove_all_but`], by the other calls of a disk.
pub(crate) fn remove_one_by_one<S: LocalDisk + ?Sized>(
    store: &S,
    directory: &Path,
    kept: &str,
) -> Result<()> {
    let is_real = store
        .resolve(directory)
        .is_ok_and(|found| found == directory);
    // A directory that cannot be listed will have to go all the same, in whatever order.
    let within = is_real.then(|| store.list(directory).unwrap_or_default());
    for path in within.unwrap_or_default() {
        if !path.ends_with(kept) {
            store.remove(&path)?;
        }
    }
    Ok(())
}

/// A held lock.
pub trait Lock: Send + Sync + Debug {}

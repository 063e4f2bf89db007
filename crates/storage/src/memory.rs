//! A store in memory: for tests, and for everything that wants no disk.

use std::collections::BTreeMap;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bytes::Bytes;

use super::io::direct::whole_blocks;
use super::local::not_there;
use super::{
    Caching, FileKind, LOCK, LocalDisk, Lock, Locked, MissingLock, OutputStore, ReadFile, Stat,
    Store, WriteFile,
};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::sync::lock;
use gristmill_base::sys::pages::Pages;

type SharedContent = Arc<RwLock<MemoryContent>>;

/// What a file holds: in pages of its own, since runs of gigabytes lie here when memory is large. Who was given some of it without
/// a copy holds all of it: it is not changed until then.
#[derive(Debug, Default)]
struct MemoryContent {
    pages: Arc<Pages<u8>>,
    len: usize,
    /// What is to be given back once nobody holds it.
    spent: Vec<Range<usize>>,
}

impl MemoryContent {
    fn bytes(&self) -> &[u8] {
        &self.pages[..self.len]
    }

    /// Lengthens to `len` bytes, new ones zero; moves to more memory where need be.
    fn grow(&mut self, len: usize) -> Result<()> {
        if len > self.pages.len() {
            let room = if self.len == 0 {
                len
            } else {
                len.max(2 * self.pages.len())
            };
            self.move_to(room)?;
        }
        self.len = self.len.max(len);
        Ok(())
    }

    fn move_to(&mut self, room: usize) -> Result<()> {
        let mut pages = Pages::zeroed_small(room)?;
        pages[..self.len].copy_from_slice(self.bytes());
        self.pages = pages.into();
        Ok(())
    }

    /// The pages, to be changed: other ones with the same in them, if somebody holds these.
    fn own_pages(&mut self) -> Result<&mut Pages<u8>> {
        if Arc::get_mut(&mut self.pages).is_none() {
            self.move_to(self.pages.len())?;
        }
        Arc::get_mut(&mut self.pages)
            .ok_or_else(|| Error::bug("write a file in memory", "another reader has its pages"))
    }

    /// Gives back whole blocks, and those before that somebody held.
    fn discard(&mut self, range: Range<usize>) {
        self.spent.push(range);
        if let Some(pages) = Arc::get_mut(&mut self.pages) {
            self.spent.drain(..).for_each(|range| pages.discard(range));
        }
    }
}

/// A range of a file, held without a copy.
struct HeldRange {
    pages: Arc<Pages<u8>>,
    range: Range<usize>,
}

impl AsRef<[u8]> for HeldRange {
    fn as_ref(&self) -> &[u8] {
        &self.pages[self.range.clone()]
    }
}

#[derive(Debug, Clone)]
enum MemoryEntry {
    File(SharedContent),
    Directory,
}

/// Files and directories in memory, with a limit on their size.
///
/// ```
/// use gristmill_storage::{Caching, OutputStore, memory::Memory};
/// let store = Memory::with_room_for(1000);
/// store.create("/a".as_ref(), 3, Caching::Cached)?.write_at(b"abc", 0)?;
/// assert_eq!(store.bytes_of("/a".as_ref()), Some(b"abc".to_vec()));
/// assert!(store.create("/b".as_ref(), 998, Caching::Cached).is_err());
/// # Ok::<(), gristmill_base::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Memory {
    nodes: Arc<Mutex<BTreeMap<PathBuf, MemoryEntry>>>,
    limit_bytes: Arc<AtomicU64>,
}

impl Memory {
    /// An empty store that refuses files beyond `limit_bytes` in all.
    pub fn with_room_for(limit_bytes: u64) -> Self {
        Memory {
            nodes: Arc::default(),
            limit_bytes: Arc::new(limit_bytes.into()),
        }
    }

    /// Refuses files beyond so many bytes in all from now on. What is there stays.
    pub fn set_limit(&self, bytes: u64) {
        self.limit_bytes.store(bytes, Ordering::Relaxed);
    }

    fn limit_bytes(&self) -> u64 {
        self.limit_bytes.load(Ordering::Relaxed)
    }

    /// What a file holds, or `None` where there is no file.
    pub fn bytes_of(&self, path: &Path) -> Option<Vec<u8>> {
        match self.nodes().get(path) {
            Some(MemoryEntry::File(bytes)) => Some(seen(bytes).bytes().to_vec()),
            _ => None,
        }
    }

    /// All paths, in order.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.nodes().keys().cloned().collect()
    }

    fn nodes(&self) -> MutexGuard<'_, BTreeMap<PathBuf, MemoryEntry>> {
        lock(&self.nodes)
    }

    /// Renames a file, or a directory with all in it.
    fn move_all(nodes: &mut BTreeMap<PathBuf, MemoryEntry>, from: &Path, to: &Path) -> Result<()> {
        let moved: Vec<PathBuf> = nodes
            .keys()
            .filter(|path| path.starts_with(from))
            .cloned()
            .collect();
        if moved.is_empty() {
            return Err(not_there("rename", from));
        }
        if nodes.contains_key(to) {
            return Err(Error::new(Kind::Exists, "rename", "file exists").with_path(to));
        }
        for path in moved {
            let rest = path.strip_prefix(from).unwrap_or(Path::new("")).to_owned();
            let target = if rest.as_os_str().is_empty() {
                to.to_owned()
            } else {
                to.join(rest)
            };
            if let Some(node) = nodes.remove(&path) {
                nodes.insert(target, node);
            }
        }
        Ok(())
    }

    fn used_bytes(nodes: &BTreeMap<PathBuf, MemoryEntry>) -> u64 {
        let bytes = |node: &MemoryEntry| match node {
            MemoryEntry::File(bytes) => seen(bytes).len as u64,
            MemoryEntry::Directory => 0,
        };
        nodes.values().map(bytes).sum()
    }
}

fn no_space(path: &Path) -> Error {
    let what = "reserve space for the output";
    Error::new(Kind::DiskFull, what, "no space left").with_path(path)
}

fn seen(bytes: &SharedContent) -> RwLockReadGuard<'_, MemoryContent> {
    bytes.read().unwrap_or_else(PoisonError::into_inner)
}

fn held(bytes: &SharedContent) -> RwLockWriteGuard<'_, MemoryContent> {
    bytes.write().unwrap_or_else(PoisonError::into_inner)
}

impl Store for Memory {
    fn stat(&self, path: &Path) -> Result<Option<Stat>> {
        let stat = |kind, bytes, identity| Stat {
            kind,
            bytes,
            modified_ns: 0,
            identity: (0, identity),
        };
        Ok(self.nodes().get(path).map(|node| match node {
            MemoryEntry::File(bytes) => stat(
                FileKind::File,
                seen(bytes).len as u64,
                Arc::as_ptr(bytes) as u64,
            ),
            MemoryEntry::Directory => stat(FileKind::Directory, 0, 0),
        }))
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>> {
        Ok(self
            .nodes()
            .keys()
            .filter(|path| path.parent() == Some(directory))
            .cloned()
            .collect())
    }

    fn open(&self, path: &Path, _caching: Caching) -> Result<Box<dyn ReadFile>> {
        match self.nodes().get(path) {
            Some(MemoryEntry::File(bytes)) => Ok(Box::new(MemoryFile {
                bytes: bytes.clone(),
            })),
            _ => Err(not_there("open the input", path)),
        }
    }
}

impl OutputStore for Memory {
    fn create(&self, path: &Path, bytes: u64, _caching: Caching) -> Result<Box<dyn WriteFile>> {
        let mut nodes = self.nodes();
        let file = match nodes.get(path) {
            Some(MemoryEntry::File(file)) => file.clone(),
            Some(MemoryEntry::Directory) => {
                return Err(
                    Error::new(Kind::BadInput, "create the output", "is a directory")
                        .with_path(path),
                );
            }
            None => SharedContent::default(),
        };
        let more = bytes.saturating_sub(seen(&file).len as u64);
        if Self::used_bytes(&nodes) + more > self.limit_bytes() {
            return Err(no_space(path));
        }
        // A system that gives no more has no space left, whatever the limit.
        let grown = held(&file).grow(bytes as usize);
        grown.map_err(|error| no_space(path).with("cause", error))?;
        nodes.insert(path.to_owned(), MemoryEntry::File(file.clone()));
        Ok(Box::new(MemoryFile { bytes: file }))
    }
}

impl LocalDisk for Memory {
    fn create_directory(&self, path: &Path) -> Result<()> {
        match self.nodes().insert(path.to_owned(), MemoryEntry::Directory) {
            None => Ok(()),
            Some(_) => {
                Err(Error::new(Kind::Exists, "create a directory", "file exists").with_path(path))
            }
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        Self::move_all(&mut self.nodes(), from, to)
    }

    fn replace(&self, from: &Path, to: &Path) -> Result<()> {
        let mut nodes = self.nodes();
        // What is in its place goes only where there is something to replace it.
        if from != to && nodes.contains_key(from) {
            nodes.remove(to);
        }
        Self::move_all(&mut nodes, from, to)
    }

    fn exchange(&self, _one: &Path, _other: &Path) -> Result<bool> {
        Ok(false)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.nodes().retain(|held, _| !held.starts_with(path));
        Ok(())
    }

    fn sync_directory(&self, _directory: &Path) -> Result<()> {
        Ok(())
    }

    fn discard(&self, path: &Path, range: Range<u64>) -> Result<()> {
        let Some(MemoryEntry::File(bytes)) = self.nodes().get(path).cloned() else {
            return Err(not_there("give back space of a file", path));
        };
        let mut bytes = held(&bytes);
        let blocks = whole_blocks(range);
        let end = blocks.end.min(bytes.len as u64) as usize;
        let start = blocks.start.min(end as u64) as usize;
        bytes.discard(start..end);
        Ok(())
    }

    fn free_bytes(&self, _path: &Path) -> Result<Option<u64>> {
        let used = Self::used_bytes(&self.nodes());
        Ok(Some(self.limit_bytes().saturating_sub(used)))
    }

    fn create_locked(&self, directory: &Path) -> Result<Box<dyn Lock>> {
        self.create_directory(directory)?;
        self.create(&directory.join(LOCK), 0, Caching::Cached)?;
        Ok(Box::new(NoLock))
    }

    fn lock(&self, directory: &Path, missing: MissingLock) -> Result<Locked> {
        let lock = directory.join(LOCK);
        if self.stat(&lock)?.is_none() {
            if missing == MissingLock::Leave {
                return Ok(Locked::Missing);
            }
            self.create(&lock, 0, Caching::Cached)?;
        }
        Ok(Locked::Taken(Box::new(NoLock)))
    }
}

/// Nobody else sees this store.
#[derive(Debug)]
struct NoLock;

impl Lock for NoLock {}

#[derive(Debug)]
struct MemoryFile {
    bytes: SharedContent,
}

impl ReadFile for MemoryFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let bytes = seen(&self.bytes);
        let from = bytes.bytes().get(offset as usize..).unwrap_or(&[]);
        let count = from.len().min(buffer.len());
        buffer[..count].copy_from_slice(&from[..count]);
        Ok(count)
    }

    fn held(&self, range: Range<u64>) -> Option<Bytes> {
        let content = seen(&self.bytes);
        let end = content.len.min(range.end as usize);
        let range = (range.start as usize).min(end)..end;
        let pages = Arc::clone(&content.pages);
        Some(Bytes::from_owner(HeldRange { pages, range }))
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl WriteFile for MemoryFile {
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        let mut bytes = held(&self.bytes);
        let end = offset as usize + data.len();
        bytes.grow(end)?;
        bytes.own_pages()?[offset as usize..end].copy_from_slice(data);
        Ok(())
    }

    fn cut(&self, bytes: u64) -> Result<()> {
        let mut content = held(&self.bytes);
        let len = content.len.min(bytes as usize);
        let end = content.len;
        content.own_pages()?[len..end].fill(0);
        content.len = len;
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is sent to another machine is not changed under way; when it is sent, the memory is free.
    #[test]
    fn what_is_held_stays_and_is_given_back_later() {
        let (store, path) = (Memory::with_room_for(1 << 20), Path::new("/run"));
        let file = store.create(path, 12_288, Caching::Cached).unwrap();
        file.write_at(&[7; 12_288], 0).unwrap();
        let held = store.open(path, Caching::Cached).unwrap().held(0..8192);
        store.discard(path, 0..4096).unwrap();
        assert!(held.as_ref().is_some_and(|held| **held == [7; 8192]));
        drop(held);
        store.discard(path, 4096..8192).unwrap();
        let after = store.bytes_of(path).unwrap();
        assert_eq!(
            (&after[..8192], &after[8192..]),
            (&[0; 8192][..], &[7; 4096][..])
        );
    }

    #[test]
    fn a_limit_that_becomes_less_leaves_what_is_there() {
        let (store, path) = (Memory::with_room_for(10), Path::new("/run"));
        store.create(path, 8, Caching::Cached).unwrap();
        store.set_limit(5);
        assert_eq!(store.free_bytes(path).unwrap(), Some(0));
        let error = store
            .create("/other".as_ref(), 1, Caching::Cached)
            .unwrap_err();
        assert_eq!((error.kind(), store.paths().len()), (Kind::DiskFull, 1));
    }
}

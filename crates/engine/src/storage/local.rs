//! The local file system as a store.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::direct::{LocalReader, LocalWriter};
use super::{Caching, FileKind, Lock, ReadFile, Stat, Store, WriteFile, private, whole_blocks};
use crate::error::{Error, Kind, Result};

/// Files of this machine, network mounts included.
///
/// ```
/// use gristmill_engine::storage::{Caching, Store, local::Local};
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("a");
/// Local.create(&path, 5, Caching::Direct)?.write_at(b"hello", 0)?;
/// let mut bytes = [0; 9];
/// assert_eq!(Local.open(&path, Caching::Cached)?.read_at(&mut bytes, 1)?, 4);
/// assert_eq!(&bytes[..4], b"ello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Local;

impl Store for Local {
    fn stat(&self, path: &Path) -> Result<Option<Stat>> {
        match fs::metadata(path) {
            Ok(found) => Ok(Some(stat_of(&found))),
            // A link that leads nowhere is there all the same: its name is taken.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                match fs::symlink_metadata(path) {
                    Ok(link) => Ok(Some(stat_of(&link))),
                    Err(_) => Ok(None),
                }
            }
            Err(error) => Err(Error::from_io("look at a file", path, &error)),
        }
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>> {
        let failed = |error| Error::from_io("list a directory", directory, &error);
        let mut paths = Vec::new();
        for entry in fs::read_dir(directory).map_err(failed)? {
            paths.push(entry.map_err(failed)?.path());
        }
        paths.sort();
        Ok(paths)
    }

    fn open(&self, path: &Path, caching: Caching) -> Result<Box<dyn ReadFile>> {
        Ok(Box::new(LocalReader::open(path, caching)?))
    }

    fn create(&self, path: &Path, bytes: u64, caching: Caching) -> Result<Box<dyn WriteFile>> {
        Ok(Box::new(LocalWriter::create(path, bytes, caching)?))
    }

    fn create_private(&self, path: &Path, data: &[u8]) -> Result<()> {
        private::create(path, data)
    }

    fn read_private(&self, path: &Path) -> Result<Vec<u8>> {
        private::read(path)
    }

    fn create_directory(&self, path: &Path) -> Result<()> {
        fs::create_dir(path).map_err(|error| Error::from_io("create a directory", path, &error))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        match rename_with(from, to, Rename::NoReplace) {
            Err(error) if not_supported(&error) => rename_checked(from, to),
            done => done,
        }
        .map_err(|error| Error::from_io("rename", to, &error))
    }

    fn replace(&self, from: &Path, to: &Path) -> Result<()> {
        let failed = |error| Error::from_io("rename", to, &error);
        match fs::metadata(to) {
            Ok(old) => {
                let owner = std::os::unix::fs::chown(from, Some(old.uid()), Some(old.gid()));
                // Set-id bits stay only with the owner whom they were for.
                let mode = old.mode() & if owner.is_ok() { 0o7777 } else { 0o777 };
                let permissions = fs::Permissions::from_mode(mode);
                fs::set_permissions(from, permissions).map_err(failed)?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        fs::rename(from, to).map_err(failed)
    }

    fn resolve(&self, path: &Path) -> Result<PathBuf> {
        match fs::symlink_metadata(path) {
            Ok(found) if found.is_symlink() => match fs::canonicalize(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    fs::read_link(path).map(|leads_to| parent_of(path).join(leads_to))
                } // to where nothing is yet
                found => found,
            }
            .map_err(|error| Error::from_io("follow a link", path, &error)),
            _ => Ok(path.to_owned()),
        }
    }

    fn exchange(&self, one: &Path, other: &Path) -> Result<bool> {
        match rename_with(one, other, Rename::Exchange) {
            Ok(()) => Ok(true),
            Err(error) if not_supported(&error) => Ok(false),
            Err(error) => Err(Error::from_io("exchange names", other, &error)),
        }
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let removed = match fs::symlink_metadata(path) {
            Ok(found) if found.is_dir() => remove_tree(path),
            Ok(_) => fs::remove_file(path),
            Err(error) => Err(error),
        };
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::from_io("remove", path, &error))
            }
            _ => Ok(()),
        }
    }

    fn sync_directory(&self, directory: &Path) -> Result<()> {
        File::open(directory)
            .and_then(|opened| opened.sync_all())
            .map_err(|error| Error::from_io("make a directory durable", directory, &error))
    }

    fn discard(&self, path: &Path, range: Range<u64>) -> Result<()> {
        let blocks = whole_blocks(range);
        let failed = |error| {
            Error::from_io("give back space of a file", path, &error).with("offset", blocks.start)
        };
        let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
        if blocks.is_empty() {
            return Ok(());
        }
        match punch_hole(&file, &blocks) {
            Err(error) if not_supported(&error) => Ok(()),
            done => done.map_err(failed),
        }
    }

    fn free_bytes(&self, path: &Path) -> Result<Option<u64>> {
        let Ok(name) = CString::new(path.as_os_str().as_bytes()) else {
            return Ok(None);
        };
        // SAFETY: `name` ends with NUL, and `found` is written by the call before it is read.
        let (code, found) = unsafe {
            let mut found: libc::statvfs = std::mem::zeroed();
            (libc::statvfs(name.as_ptr(), &raw mut found), found)
        };
        if code != 0 {
            let error = io::Error::last_os_error();
            return Err(Error::from_io("ask for free space", path, &error));
        }
        #[allow(clippy::unnecessary_cast, reason = "narrower on some Unixes")]
        Ok(Some(found.f_bavail as u64 * found.f_frsize as u64))
    }

    fn lock(&self, path: &Path) -> Result<Option<Box<dyn Lock>>> {
        let failed = |error| Error::from_io("lock", path, &error);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(path).map_err(failed)?;
        // SAFETY: a valid descriptor; the lock goes with it.
        if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
            return Ok(Some(Box::new(FileLock { _file: file })));
        }
        match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            error => Err(failed(error)),
        }
    }
}

#[derive(Debug)]
struct FileLock {
    _file: File,
}

impl Lock for FileLock {}

fn stat_of(found: &fs::Metadata) -> Stat {
    let kind = match found.file_type() {
        kind if kind.is_file() => FileKind::File,
        kind if kind.is_dir() => FileKind::Directory,
        _ => FileKind::Other,
    };
    Stat {
        kind,
        bytes: found.len(),
        modified_ns: i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec()),
        identity: (found.dev(), found.ino()),
    }
}

#[derive(Clone, Copy)]
enum Rename {
    NoReplace,
    Exchange,
}

/// The renames that only Linux has; elsewhere, and on file systems without them, an "unsupported" error.
#[cfg(target_os = "linux")]
fn rename_with(from: &Path, to: &Path, how: Rename) -> io::Result<()> {
    let from = CString::new(from.as_os_str().as_bytes())?;
    let to = CString::new(to.as_os_str().as_bytes())?;
    let flags = match how {
        Rename::NoReplace => libc::RENAME_NOREPLACE,
        Rename::Exchange => libc::RENAME_EXCHANGE,
    };
    let here = libc::AT_FDCWD;
    // SAFETY: both names end with NUL.
    let code = unsafe {
        libc::syscall(
            libc::SYS_renameat2,
            here,
            from.as_ptr(),
            here,
            to.as_ptr(),
            flags,
        )
    };
    if code == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(not(target_os = "linux"))]
fn rename_with(_from: &Path, _to: &Path, _how: Rename) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Takes the blocks of a range from a file; they read as zeros, and the length stays.
#[cfg(target_os = "linux")]
fn punch_hole(file: &File, blocks: &Range<u64>) -> io::Result<()> {
    let convert = |bytes| libc::off_t::try_from(bytes).map_err(io::Error::other);
    let (start, bytes) = (convert(blocks.start)?, convert(blocks.end - blocks.start)?);
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: a valid descriptor, and no memory involved.
    if unsafe { libc::fallocate(file.as_raw_fd(), mode, start, bytes) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(not(target_os = "linux"))]
fn punch_hole(_file: &File, _blocks: &Range<u64>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Rename where the system cannot refuse an existing target: looks first. `rename` itself refuses a directory
/// that is not empty, so that what a race could replace is an empty directory.
fn rename_checked(from: &Path, to: &Path) -> io::Result<()> {
    if fs::symlink_metadata(to).is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    fs::rename(from, to)
}

fn not_supported(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput
    ) || matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EOPNOTSUPP))
}

/// The nearest existing directory at or above `path`: where a new file's space would come from.
///
/// ```
/// use gristmill_engine::storage::local::existing_parent;
/// assert_eq!(existing_parent("/no-such-folder/a/b".as_ref()), std::path::Path::new("/"));
/// ```
pub fn existing_parent(path: &Path) -> &Path {
    let here = Path::new(".");
    path.ancestors()
        .map(|above| {
            if above.as_os_str().is_empty() {
                here
            } else {
                above
            }
        })
        .find(|above| above.is_dir())
        .unwrap_or(here)
}

/// The folder that holds `path` by name; `.` for a bare name.
///
/// ```
/// use gristmill_engine::storage::local::parent_of;
/// assert_eq!(parent_of("out".as_ref()), std::path::Path::new("."));
/// assert_eq!(parent_of("a/out".as_ref()), std::path::Path::new("a"));
/// ```
pub fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The error where the store has nothing at `path`.
pub fn not_there(operation: &'static str, path: &Path) -> Error {
    Error::new(Kind::NotFound, operation, "no such file or directory").with_path(path)
}

/// Removes a directory with all that is in it, also where scripts and archives left directories there that may not be
/// written: those are ours to open.
fn remove_tree(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_tree(directory)?;
            fs::remove_dir_all(directory)
        }
        removed => removed,
    }
}

/// Gives us all rights on a directory and those below it; links are not followed.
fn open_tree(directory: &Path) -> io::Result<()> {
    fs::set_permissions(directory, PermissionsExt::from_mode(0o700))?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_tree(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::faulty::{Fault, Faulty, Plan};
    use crate::storage::memory::Memory;

    const BLOCK: u64 = super::super::BLOCK_BYTES as u64;

    fn discard_a_middle(store: &dyn Store, path: &Path) -> Vec<u8> {
        let bytes = 8 * BLOCK as usize + 100;
        let file = store.create(path, 0, Caching::Cached).unwrap();
        file.write_at(&vec![7; bytes], 0).unwrap();
        file.sync().unwrap();
        store.discard(path, 1..BLOCK).unwrap(); // no whole block inside
        store.discard(path, BLOCK + 1..5 * BLOCK + 1).unwrap();
        store.discard(path, 100 * BLOCK..101 * BLOCK).unwrap(); // behind the end
        let mut found = vec![0; bytes + 1];
        let reader = store.open(path, Caching::Cached).unwrap();
        assert_eq!(reader.read_at(&mut found, 0).unwrap(), bytes);
        found.truncate(bytes);
        found
    }

    #[test]
    fn discarded_blocks_are_gone_and_nothing_else() {
        let mut want = vec![7; 8 * BLOCK as usize + 100];
        want[2 * BLOCK as usize..5 * BLOCK as usize].fill(0);
        let memory = Memory::with_room_for(1 << 20);
        assert!(discard_a_middle(&memory, "/a".as_ref()) == want);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let found = discard_a_middle(&Local, &path);
        let blocks = fs::metadata(&path).unwrap().blocks();
        if found == want {
            assert!(blocks * 512 < 8 * BLOCK, "{blocks} blocks are still there");
        } else {
            assert!(found.iter().all(|byte| *byte == 7)); // a file system that cannot
        }
        let missing = Local
            .discard(&folder.path().join("b"), 0..BLOCK)
            .unwrap_err();
        assert_eq!(missing.kind(), Kind::NotFound);
        assert!(memory.discard("/b".as_ref(), 0..BLOCK).is_err());
    }

    #[test]
    fn a_discard_is_a_call_that_can_fail() {
        let plan = Plan {
            fault: Fault::Code(5),
            from: 1,
            to: 2,
        };
        let store = Faulty::new(Memory::with_room_for(100), plan);
        store.create("/a".as_ref(), 0, Caching::Cached).unwrap();
        assert!(store.discard("/a".as_ref(), 0..1).is_err());
        assert!(store.discard("/a".as_ref(), 0..1).is_ok());
        assert_eq!(store.calls(), 3);
    }

    /// Whoever has root's rights sees only that all is gone.
    #[test]
    fn directories_that_may_not_be_written_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let outside = folder.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::set_permissions(&outside, PermissionsExt::from_mode(0o555)).unwrap();
        let tree = folder.path().join("tree");
        fs::create_dir_all(tree.join("a/b")).unwrap();
        fs::write(tree.join("a/b/file"), "data").unwrap();
        std::os::unix::fs::symlink(&outside, tree.join("link")).unwrap();
        for (directory, mode) in [("a/b", 0o000), ("a", 0o555), ("", 0o000)] {
            fs::set_permissions(tree.join(directory), PermissionsExt::from_mode(mode)).unwrap();
        }
        Local.remove(&tree).unwrap();
        assert!(!tree.exists());
        let mode = fs::metadata(&outside).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o555);
    }
}

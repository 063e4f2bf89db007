//! The local file system as a store.

pub mod attributes;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::io::direct::{LocalReader, LocalWriter, whole_blocks};
use super::location::parent_of;
use super::mounts::SharedMount;
use super::private::removal::{remove_all_but, remove_tree};
use super::{
    BLOCK_BYTES, Caching, FileKind, LocalDisk, Lock, Locked, MissingLock, OutputStore, ReadFile,
    Stat, Store, WriteFile, private,
};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::sys::file_calls::on;
use gristmill_base::sys::files;

/// Files of this machine, network mounts included.
///
/// ```
/// use gristmill_storage::{Caching, OutputStore, Store, local::Local};
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
        match on(path, || fs::metadata(path)) {
            Ok(found) => Ok(Some(stat_of(&found))),
            // A link that leads nowhere is there all the same: its name is taken.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                match on(path, || fs::symlink_metadata(path)) {
                    Ok(link) => Ok(Some(stat_of(&link))),
                    Err(_) => Ok(None),
                }
            }
            // A file has the place of a directory on the way: nothing can be below it.
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(None),
            Err(error) => Err(Error::from_io("look at a file", path, &error)),
        }
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>> {
        let failed = |error| Error::from_io("list a directory", directory, &error);
        let mut paths = Vec::new();
        let mut entries = on(directory, || fs::read_dir(directory)).map_err(failed)?;
        while let Some(entry) = on(directory, || entries.next()) {
            paths.push(entry.map_err(failed)?.path());
        }
        // By bytes: paths compare by their parts, which takes longer, and these differ in the last one only.
        paths.sort_unstable_by(|a, b| a.as_os_str().as_bytes().cmp(b.as_os_str().as_bytes()));
        Ok(paths)
    }

    fn open(&self, path: &Path, caching: Caching) -> Result<Box<dyn ReadFile>> {
        Ok(Box::new(LocalReader::open(path, caching)?))
    }

    fn check_readable(&self, path: &Path) -> Result<()> {
        let checked = on(path, || files::check_readable(path));
        checked.map_err(|error| Error::from_io("open the input", path, &error))
    }
}

impl OutputStore for Local {
    fn create(&self, path: &Path, bytes: u64, caching: Caching) -> Result<Box<dyn WriteFile>> {
        Ok(Box::new(LocalWriter::create(path, bytes, caching, 0o666)?))
    }
}

impl LocalDisk for Local {
    fn create_private(&self, path: &Path, data: &[u8]) -> Result<()> {
        on(path, || private::file::create(path, data))
    }

    fn create_run(&self, path: &Path, bytes: u64, caching: Caching) -> Result<Box<dyn WriteFile>> {
        Ok(Box::new(LocalWriter::create(path, bytes, caching, 0o600)?))
    }

    fn read_private(&self, path: &Path) -> Result<Vec<u8>> {
        on(path, || private::file::read(path))
    }

    fn create_private_directory(&self, path: &Path) -> Result<()> {
        on(path, || private::file::create_directory(path))
    }

    fn create_directory(&self, path: &Path) -> Result<()> {
        on(path, || fs::create_dir(path))
            .map_err(|error| Error::from_io("create a directory", path, &error))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let rename = |from: &Path, to: &Path| match files::rename_new(from, to) {
            Err(error) if refused(&error) => rename_checked(from, to),
            done => done,
        };
        on(to, || or_done(from, to, rename)).map_err(|error| Error::from_io("rename", to, &error))
    }

    fn replace(&self, from: &Path, to: &Path) -> Result<()> {
        let failed = |error| Error::from_io("rename", to, &error);
        match on(to, || fs::metadata(to)) {
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
        on(to, || or_done(from, to, |from, to| fs::rename(from, to))).map_err(failed)
    }

    fn resolve(&self, path: &Path) -> Result<PathBuf> {
        match on(path, || fs::symlink_metadata(path)) {
            Ok(found) if found.is_symlink() => match on(path, || fs::canonicalize(path)) {
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
        match on(other, || files::exchange(one, other)) {
            Ok(()) => Ok(true),
            Err(error) if refused(&error) => Ok(false),
            Err(error) => Err(Error::from_io("exchange names", other, &error)),
        }
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let removed = on(path, || match fs::symlink_metadata(path) {
            Ok(found) if found.is_dir() => remove_tree(path),
            Ok(_) => fs::remove_file(path),
            Err(error) => Err(error),
        });
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::from_io("remove", path, &error))
            }
            _ => Ok(()),
        }
    }

    fn remove_all_but(&self, directory: &Path, kept: &str) -> Result<()> {
        let removed = on(directory, || remove_all_but(directory, kept.as_ref()));
        match removed.map_err(|error| Error::from_io("remove", directory, &error)) {
            Err(error) if matches!(error.kind(), Kind::NotFound | Kind::BadInput) => Ok(()),
            removed => removed,
        }
    }

    fn remove_if_empty(&self, path: &Path) -> Result<()> {
        let removed = on(path, || match fs::symlink_metadata(path) {
            Ok(found) if found.is_dir() => fs::remove_dir(path),
            Ok(_) => fs::remove_file(path),
            Err(error) => Err(error),
        });
        match removed.map_err(|error| Error::from_io("remove", path, &error)) {
            Err(error) if !matches!(error.kind(), Kind::NotFound | Kind::Exists) => Err(error),
            _ => Ok(()),
        }
    }

    fn sync_directory(&self, directory: &Path) -> Result<()> {
        match on(directory, || {
            File::open(directory).and_then(|opened| opened.sync_all())
        }) {
            // Where a server keeps the names, it has written them before it answered.
            Err(error) if refused(&error) => Ok(()),
            done => {
                done.map_err(|error| Error::from_io("make a directory durable", directory, &error))
            }
        }
    }

    fn discard(&self, path: &Path, range: Range<u64>) -> Result<()> {
        let blocks = whole_blocks(range);
        let failed = |error| {
            Error::from_io("give back space of a file", path, &error).with("offset", blocks.start)
        };
        let file = on(path, || OpenOptions::new().write(true).open(path)).map_err(failed)?;
        if blocks.is_empty() {
            return Ok(());
        }
        match on(path, || files::punch_hole(&file, &blocks)) {
            Err(error) if refused(&error) => Ok(()),
            done => done.map_err(failed),
        }
    }

    fn free_bytes(&self, path: &Path) -> Result<Option<u64>> {
        let free = on(path, || files::free_bytes(path));
        free.map(Some)
            .map_err(|error| Error::from_io("ask for free space", path, &error))
    }

    fn gives_back(&self, directory: &Path) -> Result<bool> {
        let path = directory.join(TRIED);
        let tried = || -> io::Result<()> {
            let file = File::create(&path)?;
            file.set_len(2 * BLOCK_BYTES as u64)?;
            files::punch_hole(&file, &(0..BLOCK_BYTES as u64))
        };
        let tried = on(&path, tried);
        self.remove(&path)?;
        match tried {
            Err(error) if refused(&error) => Ok(false),
            tried => tried
                .map(|()| true)
                .map_err(|error| Error::from_io("try a file system", &path, &error)),
        }
    }

    fn may_write(&self, directory: &Path) -> bool {
        on(directory, || files::check_writable(directory)).is_ok()
    }

    fn only_in_place(&self, file: &Path) -> bool {
        let may_be = on(file, || {
            fs::metadata(file).is_ok_and(|found| found.is_file())
                && files::check_writable_file(file).is_ok()
        });
        may_be && (!self.may_write(parent_of(file)) || files::keeps_its_name(file))
    }

    fn overwrite(&self, file: &Path) -> Result<Box<dyn WriteFile>> {
        Ok(Box::new(LocalWriter::of_existing(file)?))
    }

    fn shared_mount(&self, path: &Path) -> Option<SharedMount> {
        on(path, || SharedMount::of(path))
    }

    fn memory_disk(&self, path: &Path) -> Option<&'static str> {
        gristmill_base::sys::mounts::in_memory(path)
    }

    fn create_locked(&self, directory: &Path) -> Result<Box<dyn Lock>> {
        on(directory, || private::folder::create(directory))
    }

    fn lock(&self, directory: &Path, missing: MissingLock) -> Result<Locked> {
        on(directory, || private::folder::take(directory, missing))
    }
}

/// A file that is there for a moment.
const TRIED: &str = ".gristmill-try";

fn stat_of(found: &fs::Metadata) -> Stat {
    let kind = match found.file_type() {
        kind if kind.is_file() => FileKind::File,
        kind if kind.is_dir() => FileKind::Directory,
        // Links are followed where they lead to something.
        kind if kind.is_symlink() => FileKind::DanglingLink,
        _ => FileKind::Other,
    };
    Stat {
        kind,
        bytes: found.len(),
        modified_ns: i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec()),
        identity: (found.dev(), found.ino()),
    }
}

/// Rename where the system cannot refuse an existing target: looks first. `rename` itself refuses a directory
/// that is not empty, so that what a race could replace is an empty directory.
fn rename_checked(from: &Path, to: &Path) -> io::Result<()> {
    if fs::symlink_metadata(to).is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    fs::rename(from, to)
}

/// Renames; a rename that was done and then reported as failed is done. A server of a mount has done it where its reply was
/// lost, and knows nothing of the old name when it is asked again.
fn or_done(
    from: &Path,
    to: &Path,
    rename: impl FnOnce(&Path, &Path) -> io::Result<()>,
) -> io::Result<()> {
    let identity = |path: &Path| fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()));
    let ours = identity(from);
    let renamed = rename(from, to);
    let is_gone = || identity(from).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    match (&renamed, ours) {
        (Err(_), Ok(ours)) if is_gone() && identity(to).is_ok_and(|there| there == ours) => Ok(()),
        _ => renamed,
    }
}

/// Whether a file system refused a call, or a flag, that it does not know.
fn refused(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidInput || files::not_supported(error)
}

/// The error where the store has nothing at `path`.
pub fn not_there(operation: &'static str, path: &Path) -> Error {
    Error::new(Kind::NotFound, operation, "no such file or directory").with_path(path)
}

/// The same of an input, whose name comes from the user.
pub fn no_input(path: &Path) -> Error {
    not_there("find the input", path).advise("check the name")
}

/// The error of a link to a name that does not exist.
pub fn dangling(operation: &'static str, path: &Path) -> Error {
    let target = fs::read_link(path).unwrap_or_default();
    let message = "it is a dangling link: the file that it leads to does not exist";
    Error::new(Kind::NotFound, operation, message)
        .with_path(path)
        .with("leads to", target.display())
        .advise("put that file back, or remove the link")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faulty::{Fault, FaultPlan, Faulty};
    use crate::memory::Memory;

    const BLOCK: u64 = super::super::BLOCK_BYTES as u64;

    fn discard_a_middle(store: &dyn LocalDisk, path: &Path) -> Vec<u8> {
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
        let plan = FaultPlan {
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
    fn a_rename_whose_reply_was_lost_is_done_and_any_other_failed() {
        let folder = tempfile::tempdir().unwrap();
        let [from, to, other] = ["from", "to", "other"].map(|name| folder.path().join(name));
        let lost = |_: &Path, _: &Path| Err(io::ErrorKind::NotFound.into());
        fs::write(&from, "ours").unwrap();
        or_done(&from, &to, |from, to| {
            fs::rename(from, to)?;
            lost(from, to)
        })
        .unwrap();
        assert_eq!(fs::read_to_string(&to).unwrap(), "ours");
        assert!(
            or_done(&from, &to, lost).is_err(),
            "it was not there before"
        );
        fs::write(&from, "again").unwrap();
        assert!(or_done(&from, &to, lost).is_err(), "it is there still");
        or_done(&from, &to, |from, _| {
            fs::rename(from, &other)?;
            lost(from, &other)
        })
        .expect_err("something else has the name");
    }

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

//! A folder of a job in a directory that other users may write to, too: `/tmp`, a scratch disk, a place of outputs.
//!
//! ```text
//!   DIR/.gristmill-spill-JOB/        0700: nobody else looks into it, whatever the modes of what is in it
//!                           lock     0600: held while the job lives
//! ```
//!
//! The rules that must hold: only folders of this user are entered, locked, written to or removed. No link is followed in
//! them, and nothing is waited for. A folder is this user's if it has the owner that a new file beside it gets: on shared mounts that may
//! be another one than the process's. Where the server gives several users that owner, a folder must also have this user's
//! mark in its lock (`mark.rs`).
//!
//! Decision: docs/decisions/private-folders.md.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use super::chance::by_chance;
use super::{lock, mark};
use crate::location::parent_of;
use crate::mounts::SharedMount;
use crate::{Lock, Locked, MissingLock};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::sys::directory::OpenDirectory;
use gristmill_base::sys::{files, mounts, processes};

/// The name of a folder's lock.
pub const LOCK: &str = "lock";

/// Makes such a folder, and takes its lock.
pub(crate) fn create(path: &Path) -> Result<Box<dyn Lock>> {
    files::create_one_private_directory(path)
        .map_err(|error| Error::from_io("create a directory", path, &error))?;
    let taken = match take(path, MissingLock::Make) {
        Ok(Locked::Taken(lock)) => return Ok(lock),
        Ok(_) => Err(replaced(path)),
        Err(error) => Err(error),
    };
    if let Ok(directory) = OpenDirectory::open(path) {
        let _ = directory.remove_file(LOCK.as_ref());
    }
    let _ = fs::remove_dir(path);
    taken
}

fn replaced(path: &Path) -> Error {
    let message = "another user put something else in its place";
    Error::new(Kind::Permission, "create a directory", message)
        .with_path(path)
        .advise("name a directory in which other users may not rename or remove your files")
}

/// Takes the lock of the folder `path`.
pub(crate) fn take(path: &Path, missing: MissingLock) -> Result<Locked> {
    let failed = |error: io::Error| Error::from_io("lock a job's directory", path, &error);
    let directory = match OpenDirectory::open(path) {
        Err(error) if is_foreign(&error) => return Ok(Locked::Foreign),
        opened => opened.map_err(failed)?,
    };
    let owner = directory.metadata().map_err(failed)?.uid();
    let Some(has_one_owner) = is_ours(&directory, owner, path).map_err(failed)? else {
        return Ok(Locked::Foreign);
    };
    let (file, is_new) = match open_lock(&directory, missing) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Locked::Missing),
        Err(error) if is_foreign(&error) => return Ok(Locked::Foreign),
        opened => opened.map_err(failed)?,
    };
    let found = file.metadata().map_err(failed)?;
    if !found.is_file() || found.uid() != owner || found.nlink() > 1 {
        return Ok(Locked::Foreign);
    }
    let mark = match has_one_owner {
        true => None,
        false => mark::of(path.file_name().unwrap_or_default()),
    };
    let is_marked = || lock::read(&file).map(|said| mark.is_some() && said.mark == mark);
    if !has_one_owner && !is_new && !is_marked().map_err(failed)? {
        return Ok(Locked::Foreign);
    }
    let mount = SharedMount::of(path);
    let taken = lock::take(file, path, mount.as_ref(), mark)?;
    Ok(taken.map_or(Locked::Held, Locked::Taken))
}

/// The file of the lock, and whether it was made.
fn open_lock(directory: &OpenDirectory, missing: MissingLock) -> io::Result<(File, bool)> {
    let name = OsStr::new(LOCK);
    match (directory.file(name), missing) {
        (Err(error), MissingLock::Make) if error.kind() == ErrorKind::NotFound => {
            directory.new_file(name).map(|file| (file, true))
        }
        (opened, _) => opened.map(|file| (file, false)),
    }
}

/// Whether a folder is one of this user's, as far as its owner tells, and then whether that owner is this user alone.
fn is_ours(directory: &OpenDirectory, owner: u32, path: &Path) -> io::Result<Option<bool>> {
    let user = processes::user();
    let ours = match mounts::may_be_shared(directory.as_fd()) {
        true => owner_beside(path)?,
        false => user,
    };
    Ok((owner == ours).then_some(ours == user))
}

/// The owner that a file gets which is made beside a folder now.
fn owner_beside(folder: &Path) -> io::Result<u32> {
    let tried = parent_of(folder).join(format!(".gristmill-try-{:016x}", by_chance()));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let owner = options.open(&tried)?.metadata().map(|found| found.uid());
    fs::remove_file(&tried)?;
    owner
}

/// Whether the error says that what is there is no folder, or no lock, of this user's.
fn is_foreign(error: &io::Error) -> bool {
    use ErrorKind::{IsADirectory, NotADirectory, NotFound, PermissionDenied};
    let kinds = [IsADirectory, NotADirectory, NotFound, PermissionDenied];
    kinds.contains(&error.kind()) || files::is_special(error)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    fn taken(path: &Path) -> Locked {
        take(path, MissingLock::Leave).unwrap()
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_folder_is_its_users_alone_and_its_lock_is_held_once() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("folder");
        let lock = create(&path).unwrap();
        assert_eq!((mode(&path), mode(&path.join(LOCK))), (0o700, 0o600));
        assert!(matches!(taken(&path), Locked::Held));
        assert_eq!(create(&path).unwrap_err().kind(), Kind::Exists);
        drop(lock);
        assert!(matches!(taken(&path), Locked::Taken(_)));
        // One of an earlier version.
        fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        assert!(matches!(taken(&path), Locked::Taken(_)));
        fs::remove_file(path.join(LOCK)).unwrap();
        assert!(matches!(taken(&path), Locked::Missing));
        assert!(!path.join(LOCK).exists());
        let made = take(&path, MissingLock::Make).unwrap();
        assert!(matches!(made, Locked::Taken(_)) && path.join(LOCK).exists());
    }

    #[test]
    fn what_is_no_lock_is_left_alone() {
        let top = tempfile::tempdir().unwrap();
        let victim = top.path().join("victim");
        for (number, kind) in ["link", "dangling", "hard", "directory", "fifo"]
            .into_iter()
            .enumerate()
        {
            fs::write(&victim, "precious").unwrap();
            let path = top.path().join(number.to_string());
            fs::create_dir(&path).unwrap();
            let lock = path.join(LOCK);
            match kind {
                "link" => symlink(&victim, &lock).unwrap(),
                "dangling" => symlink(top.path().join("new"), &lock).unwrap(),
                "hard" => fs::hard_link(&victim, &lock).unwrap(),
                "directory" => fs::create_dir(&lock).unwrap(),
                _ => {
                    let made = std::process::Command::new("mkfifo").arg(&lock).status();
                    assert!(made.unwrap().success());
                }
            }
            for missing in [MissingLock::Leave, MissingLock::Make] {
                assert!(
                    matches!(take(&path, missing).unwrap(), Locked::Foreign),
                    "{kind}"
                );
            }
            assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
            assert!(!top.path().join("new").exists());
        }
        let link = top.path().join("link");
        symlink(top.path().join("0"), &link).unwrap();
        assert!(matches!(taken(&link), Locked::Foreign));
        assert!(matches!(taken(&victim), Locked::Foreign));
        assert!(matches!(taken(&top.path().join("none")), Locked::Foreign));
    }

    /// As root, who may do all with it.
    #[test]
    fn what_another_user_has_is_left_alone() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("theirs");
        fs::create_dir(&path).unwrap();
        if chown(&path, Some(65_533), None).is_err() {
            return; // not root: tests/cli/test_other_users.py
        }
        assert!(matches!(
            take(&path, MissingLock::Make).unwrap(),
            Locked::Foreign
        ));
        assert!(!path.join(LOCK).exists());
        let ours = top.path().join("ours");
        drop(create(&ours).unwrap());
        chown(ours.join(LOCK), Some(65_533), None).unwrap();
        assert!(matches!(taken(&ours), Locked::Foreign));
    }
}

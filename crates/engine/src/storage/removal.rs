//! Removing directories with all that is in them: also what may not be written, and what is open somewhere.
//!
//! On a shared mount a file that is removed while it is open gets another name in its directory (`.nfs0000a1`,
//! `.fuse_hidden0000a1`) until it is closed, and the directory stays as long. A directory in which nothing else is left
//! counts as removed.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// How long to wait for files to be closed, in steps: those of tasks that end.
const TRIES: u32 = 20;
const WAIT: Duration = Duration::from_millis(10);

/// Removes a directory with all that is in it, also where scripts and archives left directories there that may not be
/// written: those are ours to open.
pub(super) fn remove_tree(directory: &Path) -> io::Result<()> {
    let removed = match fs::remove_dir_all(directory) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            open_tree(directory)?;
            fs::remove_dir_all(directory)
        }
        removed => removed,
    };
    match removed {
        Err(error) if holds_something(&error) => remove_when_closed(directory),
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

fn holds_something(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::DirectoryNotEmpty | ErrorKind::ResourceBusy
    )
}

fn remove_when_closed(directory: &Path) -> io::Result<()> {
    for _ in 0..TRIES {
        if clear(directory)? {
            return Ok(());
        }
        thread::sleep(WAIT);
    }
    clear(directory).map(drop)
}

/// Removes all but open files; says whether the directory is gone.
fn clear(directory: &Path) -> io::Result<bool> {
    for entry in entries(directory)? {
        let path = entry.path();
        let done = match entry.file_type() {
            Ok(kind) if kind.is_dir() => clear(&path).map(drop),
            _ => fs::remove_file(&path),
        };
        match done {
            Err(error) if error.kind() == ErrorKind::NotFound || is_open(&path) => {}
            done => done?,
        }
    }
    match fs::remove_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        Err(error) if holds_something(&error) && holds_only_open(directory)? => Ok(false),
        done => done.map(|()| true),
    }
}

fn entries(directory: &Path) -> io::Result<Vec<fs::DirEntry>> {
    match fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        listed => listed?.collect(),
    }
}

/// Whether nothing is in a directory, down to its last folder, but files that are removed and open.
fn holds_only_open(directory: &Path) -> io::Result<bool> {
    for entry in entries(directory)? {
        let path = entry.path();
        let is_left = match entry.file_type() {
            Ok(kind) if kind.is_dir() => holds_only_open(&path)?,
            _ => is_open(&path),
        };
        if !is_left {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a name is one that a file has which was removed while it was open.
fn is_open(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_bytes();
    name.starts_with(b".nfs")
        || name.starts_with(b".fuse_hidden")
        || name.starts_with(b".smbdelete")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory in which files stay as if they were open: a mount point cannot be removed either.
    #[test]
    fn what_is_open_is_left_and_nothing_else_is_forgiven() {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().join("tree");
        fs::create_dir_all(tree.join("a")).unwrap();
        for name in ["a/.nfs0001", "a/b", ".fuse_hidden0002"] {
            fs::write(tree.join(name), "data").unwrap();
        }
        assert!(!holds_only_open(&tree).unwrap());
        fs::remove_file(tree.join("a/b")).unwrap();
        assert!(holds_only_open(&tree).unwrap());
        assert!(clear(&tree).unwrap() && !tree.exists());
        assert!(clear(&tree).unwrap(), "it is gone already");
        assert!(is_open("x/.nfs00a1".as_ref()) && !is_open("x/nfs".as_ref()));
    }
}

//! Removing directories with all that is in them: also what may not be written, and what is open somewhere.
//!
//! Each is entered by its descriptor (`sys/directory.rs`): whoever puts a link in its place meanwhile has nothing removed or opened
//! elsewhere.
//!
//! On a shared mount a file that is removed while it is open gets another name in its directory (`.nfs0000a1`,
//! `.fuse_hidden0000a1`) until it is closed, and the directory stays as long. A directory in which nothing else is left
//! counts as removed.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use gristmill_base::sys::directory::{OpenDirectory, open_to_us};

/// How long to wait for files to be closed, in steps: those of tasks that end.
const TRIES: u32 = 20;
const WAIT: Duration = Duration::from_millis(10);

/// Removes a directory with all that is in it, also where scripts and archives left directories there that may not be
/// written: those are ours to open.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    for last in (0..TRIES).rev() {
        let directory = open(path)?;
        clear(&directory, None)?;
        match fs::remove_dir(path) {
            Err(error) if holds_something(&error) && holds_only_open(&directory)? => {}
            Err(error) if holds_something(&error) && last > 0 => {} // a task that ends has just written
            removed => return removed,
        }
        thread::sleep(WAIT);
    }
    Ok(())
}

/// Removes all that is in a directory but the file of this name.
pub fn remove_all_but(path: &Path, kept: &OsStr) -> io::Result<()> {
    clear(&open(path)?, Some(kept))
}

fn open(path: &Path) -> io::Result<OpenDirectory> {
    match OpenDirectory::open(path) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            open_to_us(path)?;
            OpenDirectory::open(path)
        }
        opened => opened,
    }
}

/// Removes all but open files, and but the file `kept`.
fn clear(directory: &OpenDirectory, kept: Option<&OsStr>) -> io::Result<()> {
    for name in directory.names()? {
        if Some(&*name) == kept {
            continue;
        }
        match remove_one(directory, &name) {
            Err(error) if error.kind() == ErrorKind::NotFound || is_open(&name) => {}
            done => done?,
        }
    }
    Ok(())
}

fn remove_one(directory: &OpenDirectory, name: &OsStr) -> io::Result<()> {
    if directory.has_directory(name) {
        let within = match directory.directory(name) {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                directory.open_to_us(name)?;
                directory.directory(name)?
            }
            opened => opened?,
        };
        clear(&within, None)?;
        return match permitted(directory, || directory.remove_directory(name)) {
            Err(error) if holds_something(&error) && holds_only_open(&within)? => Ok(()),
            removed => removed,
        };
    }
    permitted(directory, || directory.remove_file(name))
}

/// Does what a directory may have to be opened for.
fn permitted(directory: &OpenDirectory, remove: impl Fn() -> io::Result<()>) -> io::Result<()> {
    match remove() {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            directory.open_to_us(".".as_ref())?;
            remove()
        }
        removed => removed,
    }
}

fn holds_something(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::DirectoryNotEmpty | ErrorKind::ResourceBusy
    )
}

/// Whether nothing is in a directory, down to its last folder, but files that are removed and open.
fn holds_only_open(directory: &OpenDirectory) -> io::Result<bool> {
    for name in directory.names()? {
        let is_left = match directory.has_directory(&name) {
            true => holds_only_open(&directory.directory(&name)?)?,
            false => is_open(&name),
        };
        if !is_left {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a name is one that a file has which was removed while it was open.
fn is_open(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.starts_with(b".nfs")
        || name.starts_with(b".fuse_hidden")
        || name.starts_with(b".smbdelete")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

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
        let opened = OpenDirectory::open(&tree).unwrap();
        assert!(!holds_only_open(&opened).unwrap());
        fs::remove_file(tree.join("a/b")).unwrap();
        assert!(holds_only_open(&opened).unwrap());
        remove_tree(&tree).unwrap();
        assert!(!tree.exists());
        let gone = remove_tree(&tree).unwrap_err();
        assert_eq!(gone.kind(), ErrorKind::NotFound, "it is gone already");
        assert!(is_open(".nfs00a1".as_ref()) && !is_open("nfs".as_ref()));
    }

    #[test]
    fn links_lead_to_nothing_that_is_removed_or_opened() {
        let folder = tempfile::tempdir().unwrap();
        let (outside, tree) = (folder.path().join("outside"), folder.path().join("tree"));
        for path in [&outside, &tree] {
            fs::create_dir(path).unwrap();
        }
        fs::write(outside.join("mine"), "").unwrap();
        fs::set_permissions(&outside, PermissionsExt::from_mode(0o555)).unwrap();
        for (link, target) in [("a", &outside), ("lock", &outside)] {
            symlink(target, tree.join(link)).unwrap();
        }
        remove_all_but(&tree, "lock".as_ref()).unwrap();
        assert_eq!(fs::read_dir(&tree).unwrap().count(), 1);
        let link = folder.path().join("link");
        symlink(&outside, &link).unwrap();
        assert!(remove_tree(&link).is_err() && remove_all_but(&link, "".as_ref()).is_err());
        remove_tree(&tree).unwrap();
        assert!(outside.join("mine").exists());
        let mode = fs::metadata(&outside).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o555);
        fs::set_permissions(&outside, PermissionsExt::from_mode(0o755)).unwrap();
    }
}

//! An open directory. What is in it is found from its descriptor: neither a link nor another directory that takes its
//! name leads elsewhere.
//!
//! Decision: docs/decisions/private-folders.md.

use std::ffi::{CString, OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat, unlinkat};
use rustix::io::retry_on_intr;

/// A link is an error (ELOOP, ENOTDIR), and nothing is waited for: neither the other end of a FIFO nor a terminal.
const PLAIN: OFlags = OFlags::NOFOLLOW
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// The mode of files that nobody else may read or write.
const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

/// An open directory.
#[derive(Debug)]
pub struct OpenDirectory(File);

impl OpenDirectory {
    /// Opens a directory; a link is an error.
    pub fn open(path: &Path) -> io::Result<Self> {
        open_at(CWD, path.as_os_str(), OFlags::DIRECTORY).map(OpenDirectory)
    }

    /// Opens a directory in this one.
    pub fn directory(&self, name: &OsStr) -> io::Result<Self> {
        open_at(self.as_fd(), name, OFlags::DIRECTORY).map(OpenDirectory)
    }

    /// Opens what has this name, to be read and written.
    pub fn file(&self, name: &OsStr) -> io::Result<File> {
        open_at(self.as_fd(), name, OFlags::RDWR)
    }

    /// Makes a file that nobody else may read or write.
    pub fn new_file(&self, name: &OsStr) -> io::Result<File> {
        let new = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        open_at(self.as_fd(), name, new)
    }

    /// What the directory is.
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.0.metadata()
    }

    /// Removes a file, or a link.
    pub fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(self, name, AtFlags::empty())?)
    }

    /// Removes an empty directory.
    pub fn remove_directory(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(self, name, AtFlags::REMOVEDIR)?)
    }

    /// Whether this is the name of a directory.
    pub fn has_directory(&self, name: &OsStr) -> bool {
        let found = statat(self, name, AtFlags::SYMLINK_NOFOLLOW);
        found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode).is_dir())
    }

    /// Gives us all rights on a directory in this one, or on itself (`.`), and nobody else any: only its owner can do so. A link stays
    /// as it is.
    pub fn open_to_us(&self, name: &OsStr) -> io::Result<()> {
        open_to_us_at(self.0.as_raw_fd(), name)
    }

    /// The names in it, from its beginning each time.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(self)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(OsString::from_vec(name.to_vec()));
            }
        }
        Ok(names)
    }
}

impl AsFd for OpenDirectory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The same of the directory at a path.
pub fn open_to_us(path: &Path) -> io::Result<()> {
    open_to_us_at(libc::AT_FDCWD, path.as_os_str())
}

fn open_to_us_at(here: libc::c_int, name: &OsStr) -> io::Result<()> {
    let name = CString::new(name.as_bytes())?;
    // SAFETY: `name` ends with NUL. The C library does what kernels before 6.6 cannot.
    match unsafe { libc::fchmodat(here, name.as_ptr(), 0o700, libc::AT_SYMLINK_NOFOLLOW) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn open_at(here: BorrowedFd<'_>, name: &OsStr, flags: OFlags) -> io::Result<File> {
    let opened = retry_on_intr(|| openat(here, name, flags | PLAIN, PRIVATE));
    Ok(opened?.into())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    #[test]
    fn names_lead_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::create_dir(&real).unwrap();
        symlink(&real, &link).unwrap();
        assert!(OpenDirectory::open(&link).is_err());
        let directory = OpenDirectory::open(&real).unwrap();
        let made = directory.new_file("a".as_ref()).unwrap();
        assert_eq!(made.metadata().unwrap().mode() & 0o777, 0o600);
        assert!(directory.new_file("a".as_ref()).is_err(), "it is there");
        symlink(folder.path().join("elsewhere"), real.join("b")).unwrap();
        assert!(directory.file("b".as_ref()).is_err());
        assert!(directory.new_file("b".as_ref()).is_err());
        assert!(!folder.path().join("elsewhere").exists());
        // Another directory takes its name.
        fs::rename(&real, folder.path().join("moved")).unwrap();
        fs::create_dir(&real).unwrap();
        let mut names = directory.names().unwrap();
        names.sort();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(directory.names().unwrap().len(), 2, "it is read again");
    }
}

//! An open directory. What is in it is found from its descriptor: neither a link nor another directory that takes its
//! name leads elsewhere.
//!
//! Decision: docs/decisions/private-folders.md.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// A link is an error (ELOOP, ENOTDIR), and nothing is waited for: neither the other end of a FIFO nor a terminal.
const PLAIN: libc::c_int = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC;

/// The mode of files that nobody else may read or write.
const PRIVATE: libc::c_uint = 0o600;

/// An open directory.
#[derive(Debug)]
pub struct OpenDirectory(File);

impl OpenDirectory {
    /// Opens a directory; a link is an error.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(PLAIN | libc::O_DIRECTORY);
        options.open(path).map(OpenDirectory)
    }

    /// Opens a directory in this one.
    pub fn directory(&self, name: &OsStr) -> io::Result<Self> {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY;
        self.open_at(name, flags).map(OpenDirectory)
    }

    /// Opens what has this name, to be read and written.
    pub fn file(&self, name: &OsStr) -> io::Result<File> {
        self.open_at(name, libc::O_RDWR)
    }

    /// Makes a file that nobody else may read or write.
    pub fn new_file(&self, name: &OsStr) -> io::Result<File> {
        self.open_at(name, libc::O_RDWR | libc::O_CREAT | libc::O_EXCL)
    }

    fn open_at(&self, name: &OsStr, flags: libc::c_int) -> io::Result<File> {
        let (here, name) = (self.0.as_raw_fd(), c_name(name)?);
        // SAFETY: `name` ends with NUL.
        let file = unsafe { libc::openat(here, name.as_ptr(), flags | PLAIN, PRIVATE) };
        match file {
            0.. => {
                // SAFETY: a descriptor that was just opened, and is nobody else's.
                Ok(unsafe { File::from_raw_fd(file) })
            }
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// What the directory is.
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.0.metadata()
    }

    /// Removes a file, or a link.
    pub fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        self.unlink(name, 0)
    }

    /// Removes an empty directory.
    pub fn remove_directory(&self, name: &OsStr) -> io::Result<()> {
        self.unlink(name, libc::AT_REMOVEDIR)
    }

    fn unlink(&self, name: &OsStr, flags: libc::c_int) -> io::Result<()> {
        let name = c_name(name)?;
        // SAFETY: `name` ends with NUL.
        done(unsafe { libc::unlinkat(self.0.as_raw_fd(), name.as_ptr(), flags) })
    }

    /// Whether this is the name of a directory.
    pub fn has_directory(&self, name: &OsStr) -> bool {
        let Ok(name) = c_name(name) else { return false };
        // SAFETY: `name` ends with NUL, and `found` is written by the call before it is read.
        unsafe {
            let mut found: libc::stat = std::mem::zeroed();
            let (here, flags) = (self.0.as_raw_fd(), libc::AT_SYMLINK_NOFOLLOW);
            libc::fstatat(here, name.as_ptr(), &raw mut found, flags) == 0
                && found.st_mode & libc::S_IFMT == libc::S_IFDIR
        }
    }

    /// Gives us all rights on a directory in this one, or on itself (`.`), and nobody else any: only its owner can do so. A link stays
    /// as it is.
    pub fn open_to_us(&self, name: &OsStr) -> io::Result<()> {
        open_to_us_at(self.0.as_raw_fd(), name)
    }

    /// The names in it.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        // A descriptor with a position of its own.
        let again = self.open_at(".".as_ref(), libc::O_RDONLY | libc::O_DIRECTORY)?;
        let mut names = Vec::new();
        // SAFETY: a descriptor of our own, which the stream takes over; each entry is read before the next is asked for.
        unsafe {
            let stream = libc::fdopendir(again.into_raw_fd());
            if stream.is_null() {
                return Err(io::Error::last_os_error());
            }
            loop {
                let entry = libc::readdir(stream);
                if entry.is_null() {
                    break;
                }
                let name = CStr::from_ptr((*entry).d_name.as_ptr()).to_bytes();
                if name != b"." && name != b".." {
                    names.push(OsString::from_vec(name.to_vec()));
                }
            }
            libc::closedir(stream);
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
    let name = c_name(name)?;
    // SAFETY: `name` ends with NUL.
    done(unsafe { libc::fchmodat(here, name.as_ptr(), 0o700, libc::AT_SYMLINK_NOFOLLOW) })
}

fn c_name(name: &OsStr) -> io::Result<CString> {
    Ok(CString::new(name.as_bytes())?)
}

fn done(code: libc::c_int) -> io::Result<()> {
    match code {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
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

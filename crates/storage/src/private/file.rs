//! Files that only their owner may read or change, since what they hold is trusted: made so, and read only where they are so.
//!
//! The rules that must hold for what is read: the file is no link, it and its folder are this user's, and nobody else
//! may read or write it. Who can write to the folder can put another file there, but not one of ours.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::location::parent_of;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::sys::{files, processes};

const MODE: u32 = 0o600;

/// Writes a new file for nobody else.
pub(crate) fn create(path: &Path, data: &[u8]) -> Result<()> {
    let failed = |error| Error::from_io("make a private file", path, &error);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(MODE);
    let mut file = options.open(path).map_err(failed)?;
    file.write_all(data).map_err(|error| {
        let _ = fs::remove_file(path); // half of it would be taken for all
        failed(error)
    })
}

/// Makes a folder, and those above it, for nobody else to look into.
pub(crate) fn create_directory(path: &Path) -> Result<()> {
    let made = files::create_private_directory(path);
    made.map_err(|error| Error::from_io("make a private directory", path, &error))
}

/// Reads such a file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    let folder = parent_of(path);
    let looked = fs::symlink_metadata(folder);
    let looked = looked.map_err(|error| Error::from_io("look at a directory", folder, &error))?;
    if !looked.is_dir() || !is_ours(&looked) {
        return Err(refused(
            folder,
            "the directory does not belong to this user",
        ));
    }
    let (mut file, found) = open(path)?;
    if !found.is_file() || !is_ours(&found) {
        return Err(refused(path, "the file does not belong to this user"));
    }
    if found.mode() & 0o777 & !MODE != 0 {
        return Err(refused(path, "others may read the file, or write to it"));
    }
    let mut data = Vec::new();
    let read = file.read_to_end(&mut data);
    read.map_err(|error| Error::from_io("read a private file", path, &error))?;
    Ok(data)
}

/// Opens a file without following a link, and without waiting for whoever is behind it.
fn open(path: &Path) -> Result<(File, Metadata)> {
    let failed = |error: io::Error| match error.kind() {
        ErrorKind::NotFound => Error::new(Kind::NotFound, OPERATION, "it is gone").with_path(path),
        _ => Error::from_io(OPERATION, path, &error),
    };
    let Some(file) = files::open_no_link(path).map_err(failed)? else {
        return Err(refused(path, "it is a symbolic link"));
    };
    let found = file.metadata().map_err(failed)?;
    Ok((file, found))
}

const OPERATION: &str = "read a private file";

fn is_ours(found: &Metadata) -> bool {
    found.uid() == processes::user()
}

fn refused(path: &Path, why: &str) -> Error {
    Error::new(Kind::Permission, OPERATION, why).with_path(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn what_is_kept_to_oneself_is_read_again_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine");
        create(&path, b"text").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(read(&path).unwrap(), b"text");
        assert!(create(&path, b"more").is_err(), "it is there");
        let link = folder.path().join("link");
        symlink(&path, &link).unwrap();
        assert_eq!(read(&link).unwrap_err().kind(), Kind::Permission);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert_eq!(read(&path).unwrap_err().kind(), Kind::Permission);
        assert_eq!(read(folder.path()).unwrap_err().kind(), Kind::Permission);
        let missing = read(&folder.path().join("none")).unwrap_err();
        assert_eq!(missing.kind(), Kind::NotFound);
        // Another user's, where one can be made.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        if std::os::unix::fs::chown(&path, Some(65_534), None).is_ok() {
            assert_eq!(read(&path).unwrap_err().kind(), Kind::Permission);
        }
    }
}

//! What a local file has beside its bytes: where a link leads to, permissions, the time of the last change.
//!
//! Only copies of files ask for these: stores of other machines have none of it. The rule that must hold: no link is followed
//! that is asked for, or made.

use std::fs::{self, File, FileTimes, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use gristmill_base::error::{Error, Result};
use gristmill_base::sys::file_calls::on;
use gristmill_base::sys::files::symlink;

use crate::Stat;

/// Where a link leads to, as it says; nothing of what is not a link, or not there.
///
/// ```
/// use gristmill_storage::local::attributes::{link_of, make_link};
/// let folder = tempfile::tempdir()?;
/// let link = folder.path().join("link");
/// assert_eq!(link_of(&link)?, None);
/// make_link("a/b".as_ref(), &link)?;
/// assert_eq!(link_of(&link)?.as_deref(), Some("a/b".as_ref()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The system's.
pub fn link_of(path: &Path) -> Result<Option<PathBuf>> {
    match on(path, || fs::read_link(path)) {
        Ok(leads_to) => Ok(Some(leads_to)),
        Err(error) => match error.kind() {
            io::ErrorKind::InvalidInput
            | io::ErrorKind::NotFound
            | io::ErrorKind::NotADirectory => Ok(None),
            _ => Err(Error::from_io("read a link", path, &error)),
        },
    }
}

/// Makes a link that leads to what it is told.
///
/// # Errors
/// The system's; something has the name.
pub fn make_link(leads_to: &Path, path: &Path) -> Result<()> {
    on(path, || symlink(leads_to, path))
        .map_err(|error| Error::from_io("make a link", path, &error))
}

/// The permissions of a file, as `chmod` takes them.
///
/// # Errors
/// The system's.
pub fn mode_of(path: &Path) -> Result<u32> {
    let found = on(path, || fs::metadata(path));
    let found = found.map_err(|error| Error::from_io("look at a file", path, &error))?;
    Ok(found.permissions().mode() & 0o777)
}

/// Gives a file permissions.
///
/// # Errors
/// The system's.
pub fn set_mode(path: &Path, mode: u32) -> Result<()> {
    let set = on(path, || {
        fs::set_permissions(path, Permissions::from_mode(mode))
    });
    set.map_err(|error| Error::from_io("set the permissions of a file", path, &error))
}

/// Gives a file the time of the last change that another one was seen with.
///
/// # Errors
/// The system's.
///
/// ```
/// use gristmill_storage::{Store, local::{Local, attributes::set_modified}};
/// let folder = tempfile::tempdir()?;
/// let [one, other] = ["one", "other"].map(|name| folder.path().join(name));
/// std::fs::write(&one, "x")?;
/// std::fs::write(&other, "y")?;
/// let found = Local.stat(&one)?.expect("a file");
/// set_modified(&other, &found)?;
/// assert_eq!(Local.stat(&other)?.map(|stat| stat.modified_ns), Some(found.modified_ns));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn set_modified(path: &Path, found: &Stat) -> Result<()> {
    let since = u64::try_from(found.modified_ns).unwrap_or_default(); // not before 1970
    let time = UNIX_EPOCH + Duration::from_nanos(since);
    let set = on(path, || {
        File::open(path)?.set_times(FileTimes::new().set_modified(time))
    });
    set.map_err(|error| Error::from_io("set the time of a file", path, &error))
}

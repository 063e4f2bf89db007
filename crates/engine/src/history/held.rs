//! Takes hold of a dead job's history, to go on with it.
//!
//! The lock comes first, then the look at what is there: of two who would go on, one is told that the job is alive.
//! Nothing is written to a file that a link leads to, nor to one that is not where the job's folder is.

use std::fs::{self, File, TryLockError};
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::EVENTS;
use super::event::Timed;
use super::reader::{parse, whole_bytes};
use crate::error::{Error, Kind, Result};

/// Whoever looks whether a job lives holds a lock for a moment: the wait for it, in steps.
const LOCK_TRIES: u32 = 40;
const LOCK_WAIT: Duration = Duration::from_millis(10);

/// A dead job's history, locked.
#[derive(Debug)]
pub struct Held {
    /// The job's folder.
    pub folder: PathBuf,
    /// What happened in it.
    pub events: Vec<Timed>,
    /// The file, open for appending at the end of its last whole line.
    pub(super) file: File,
}

/// Locks the history in `folder` and reads it. A last line that is not whole is cut off.
///
/// # Errors
/// There is no history, its job is alive, it is damaged, or a later version wrote it.
pub fn hold(folder: &Path) -> Result<Held> {
    let path = folder.join(EVENTS);
    let failed = |error| Error::from_io("go on with a job", &path, &error);
    let is_plain = |path: &Path| fs::symlink_metadata(path).map(|found| !found.is_symlink());
    if !is_plain(folder).map_err(failed)? || !is_plain(&path).map_err(failed)? {
        let message = "its history is a symbolic link, which might lead anywhere";
        return Err(Error::new(Kind::BadInput, "go on with a job", message).with_path(&path));
    }
    let mut file = File::options()
        .read(true)
        .append(true)
        .open(&path)
        .map_err(failed)?;
    lock(&file, &path)?;
    let read = fs::read(&path).map_err(failed)?;
    let events = parse(&path, &read)?;
    let whole = whole_bytes(&read);
    if whole < read.len() {
        file.set_len(whole as u64).map_err(failed)?;
    }
    file.seek(SeekFrom::End(0)).map_err(failed)?;
    let folder = folder.to_owned();
    Ok(Held {
        folder,
        events,
        file,
    })
}

fn lock(file: &File, path: &Path) -> Result<()> {
    for _ in 0..LOCK_TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => thread::sleep(LOCK_WAIT),
            Err(TryLockError::Error(error)) => {
                return Err(Error::from_io("go on with a job", path, &error));
            }
        }
    }
    let message = "it is alive: its process, or one that goes on with it, has its history";
    Err(Error::new(Kind::Exists, "go on with a job", message)
        .with_path(path)
        .advise("wait for it; `gristmill jobs watch` shows how far it is"))
}

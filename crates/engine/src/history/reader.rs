//! Reads a job's history, also while it is written, also after a crash.

use std::fs::{self, File, TryLockError};
use std::path::Path;

use super::EVENTS;
use super::event::{Event, Timed, VERSION};
use gristmill_base::error::{Error, Kind, Result};

/// The events in a job's folder. A last line that is not whole is left out: it is being written, or its writer died.
///
/// # Errors
/// The file cannot be read, a line inside it is damaged, or a later version wrote it.
pub fn read(folder: &Path) -> Result<Vec<Timed>> {
    let path = folder.join(EVENTS);
    let read = fs::read(&path).map_err(|error| Error::from_io("read a history", &path, &error))?;
    parse(&path, &read)
}

/// How many bytes of a history are whole lines.
pub(super) fn whole_bytes(read: &[u8]) -> usize {
    memchr::memrchr(b'\n', read).map_or(0, |last| last + 1)
}

/// The events in the bytes of a history.
pub(super) fn parse(path: &Path, read: &[u8]) -> Result<Vec<Timed>> {
    let mut events = Vec::new();
    let mut offset = 0;
    for (number, line) in (1_u64..).zip(read.split_inclusive(|byte| *byte == b'\n')) {
        let Some(whole) = line.strip_suffix(b"\n") else {
            break;
        };
        let event: Timed = serde_json::from_slice(whole).map_err(|error| {
            let message = format!("it is damaged: {error}");
            Error::new(Kind::BadInput, "read a history", message)
                .with_path(path)
                .with("line", number)
                .with("offset", offset)
        })?;
        check_version(&event).map_err(|error| error.with_path(path))?;
        events.push(event);
        offset += line.len();
    }
    Ok(events)
}

fn check_version(event: &Timed) -> Result<()> {
    match event.event {
        Event::JobSubmitted { version, .. } if version > VERSION => {
            let message = format!("history version {version}; this program reads up to {VERSION}");
            Err(Error::new(Kind::BadInput, "read a history", message)
                .advise("use the version of Gristmill that wrote it, or a later one"))
        }
        _ => Ok(()),
    }
}

/// Whether the job of a folder is alive: its process holds a lock as long as it is.
///
/// # Errors
/// There is no history, or it cannot be opened.
pub fn is_live(folder: &Path) -> Result<bool> {
    let path = folder.join(EVENTS);
    let failed = |error| Error::from_io("look at a history", &path, &error);
    let file = File::open(&path).map_err(failed)?;
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

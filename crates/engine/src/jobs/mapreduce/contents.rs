//! Files that a job needs as they were, and that are known again by their content: its code, its side files.
//!
//! ```text
//!   same length, number, time stamp ──▶ the same, not read        else: the same SHA-256 ──▶ the same
//! ```
//!
//! So a file that was saved and put back, restored from a copy or checked out once more is the same. Inputs may be large:
//! these are known by length and time stamp alone ([`FileVersion`]).

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::history::event::FileVersion;
use crate::jobs::steps::OPERATION;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_storage::location::Location;
use gristmill_storage::stores::Stores;
use gristmill_storage::{Caching, FileKind};

/// Bytes that are read at once.
const READ_BYTES: usize = 1 << 20;

/// A file as it was.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FileSnapshot {
    known: FileVersion,
    sha256: String,
}

impl FileSnapshot {
    /// Where it is.
    pub(super) fn path(&self) -> Location {
        self.known.path.clone()
    }
}

/// The files as they are. One that is gone is not looked for again.
pub(super) fn contents(store: &Stores, paths: &[Location]) -> Result<Vec<FileSnapshot>> {
    let mut found = Vec::with_capacity(paths.len());
    for path in paths {
        if let Some(stat) = store.stat(path)?
            && stat.kind == FileKind::File
        {
            found.push(FileSnapshot {
                known: FileVersion::new(path.clone(), &stat),
                sha256: hash_of(store, path)?,
            });
        }
    }
    Ok(found)
}

/// Fails unless the files are what they were; `what` they are is said.
pub(super) fn check(store: &Stores, files: &[FileSnapshot], what: &str) -> Result<()> {
    for then in files {
        let path = &then.known.path;
        let why = match store.stat(path)? {
            None => format!("{what} is gone"),
            Some(stat) if is_same(store, then, &FileVersion::new(path.clone(), &stat))? => continue,
            Some(_) => format!("{what} changed since the job began"),
        };
        return Err(Error::new(Kind::InputChanged, OPERATION, why)
            .with_path(path.as_typed())
            .advise("put the file back as it was and resume again, or start the job anew"));
    }
    Ok(())
}

fn is_same(store: &Stores, then: &FileSnapshot, now: &FileVersion) -> Result<bool> {
    if now.is_same(&then.known) {
        return Ok(true);
    }
    Ok(now.bytes == then.known.bytes && hash_of(store, &now.path)? == then.sha256)
}

fn hash_of(store: &Stores, path: &Location) -> Result<String> {
    let file = store.open(path, Caching::Cached)?;
    let mut buffer = vec![0; READ_BYTES];
    let (mut hasher, mut offset) = (Sha256::new(), 0);
    loop {
        let read = file.read_at(&mut buffer, offset)?;
        hasher.update(buffer.get(..read).unwrap_or_default());
        offset += read as u64;
        if read < buffer.len() {
            return Ok(hex::encode(hasher.finalize()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    use super::*;
    use gristmill_storage::memory::Memory;
    use gristmill_storage::{LocalDisk as _, OutputStore as _, Store as _};

    /// Writes a new file. The one before stays under another name: a file in memory is known by its address, which
    /// another could have as soon as it is gone.
    fn write(store: &Memory, path: &str, bytes: &[u8]) {
        let path = Path::new(path);
        if store.stat(path).unwrap().is_some() {
            let number = store.list(Path::new("/")).unwrap().len();
            let old = PathBuf::from(format!("/old-{number}"));
            store.rename(path, &old).unwrap();
        }
        let file = store.create(path, bytes.len() as u64, Caching::Cached);
        file.unwrap().write_at(bytes, 0).unwrap();
    }

    #[test]
    fn content_decides_and_not_the_time() {
        let store = Memory::with_room_for(1000);
        let stores = Stores::new(Arc::new(store.clone()));
        write(&store, "/job.py", b"one");
        let then = contents(&stores, &["/job.py".into(), "/none".into()]).unwrap();
        assert_eq!(then.len(), 1);
        for (bytes, same) in [(b"one", true), (b"two", false), (b"one", true)] {
            write(&store, "/job.py", bytes);
            let found = check(&stores, &then, "a file of the job's code");
            assert_eq!(found.is_ok(), same);
        }
        store.remove("/job.py".as_ref()).unwrap();
        let gone = check(&stores, &then, "a side file")
            .unwrap_err()
            .to_string();
        assert!(gone.contains("a side file is gone"), "{gone}");
    }
}

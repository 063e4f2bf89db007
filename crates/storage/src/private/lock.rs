//! Locks that are files: held while their process lives.
//!
//! On a disk that is a lock of the system's, and nothing else. On a shared mount the system may have no locks, or ones that
//! other machines, or another mount of the same directory, do not see. There the file also says which process holds it:
//!
//! ```text
//!   the system's lock is held          ─▶ held
//!   the file names a process that is
//!     alive on this machine            ─▶ held
//!     dead on this machine, or none    ─▶ free: taken, and this process named
//!     on another machine               ─▶ free if the mount's locks reach all machines; else an error that names it
//! ```
//!
//! Where a server gives the files of several users one owner, the file has its user's mark, too (`mark.rs`). The rule that must
//! hold: nothing is locked or written that is not known to be a lock of this user's (`private_folder.rs`).

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::Lock;
use crate::mounts::SharedMount;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::names::show_path;
use gristmill_base::sys::files;
use gristmill_base::sys::owner::{Life, Owner};

/// Bytes of what names a process, at most.
const OWNER_BYTES_MAX: u64 = 4096;

/// What a lock's file says.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct LockRecord {
    #[serde(flatten)]
    owner: Option<Owner>,
    /// Of which user it is, where its owner does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mark: Option<String>,
}

/// What is said in a file of a lock; of another file, nothing.
pub(crate) fn read(mut file: &File) -> io::Result<LockRecord> {
    let mut text = Vec::new();
    file.rewind()?;
    file.take(OWNER_BYTES_MAX).read_to_end(&mut text)?;
    file.rewind()?;
    Ok(serde_json::from_slice(&text).unwrap_or_default())
}

/// Takes the lock that is this file of the job's `folder`; `None` while another process holds it. `mark` stands in it from
/// then on.
pub(crate) fn take(
    file: File,
    folder: &Path,
    mount: Option<&SharedMount>,
    mark: Option<String>,
) -> Result<Option<Box<dyn Lock>>> {
    let failed = |error| Error::from_io("lock a job's directory", folder, &error);
    let locked = match file.try_lock() {
        Ok(()) => true,
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) if mount.is_some() && files::has_no_locks(&error) => false,
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    };
    let Some(mount) = mount else {
        return Ok(Some(Box::new(FileLock(file))));
    };
    let found = read(&file).map_err(failed)?.owner;
    match found.as_ref().map(Owner::life) {
        Some(Life::Alive) => return Ok(None),
        Some(Life::Elsewhere) if !(locked && mount.locks_reach_all()) => {
            let host = found.map(|owner| owner.host).unwrap_or_default();
            return Err(of_another_machine(folder, &host, mount));
        }
        Some(Life::Elsewhere | Life::Dead) | None => {}
    }
    let named = NamedLock { file, mark };
    named.name(Owner::this()).map_err(failed)?;
    Ok(Some(Box::new(named)))
}

fn of_another_machine(folder: &Path, host: &str, mount: &SharedMount) -> Error {
    let message = format!(
        "a job on the machine {host} has its directory here and may still run: locks of this kind of mount ({mount}) do not reach \
         other machines"
    );
    Error::new(Kind::Exists, "lock", message)
        .with("job directory", show_path(folder))
        .advise(
            "wait for that job; if it is dead, resume it on its machine, or remove its directory",
        )
}

/// A lock of the system's.
#[derive(Debug)]
struct FileLock(#[expect(dead_code, reason = "it is held, and ends with its file")] File);

impl Lock for FileLock {}

/// A lock whose file names its process.
#[derive(Debug)]
struct NamedLock {
    file: File,
    mark: Option<String>,
}

impl NamedLock {
    fn name(&self, owner: Option<Owner>) -> io::Result<()> {
        let said = LockRecord {
            owner,
            mark: self.mark.clone(),
        };
        self.file.set_len(0)?;
        if said.owner.is_some() || said.mark.is_some() {
            (&self.file).rewind()?;
            (&self.file).write_all(&serde_json::to_vec(&said)?)?;
        }
        files::hand_over(&self.file)
    }
}

impl Lock for NamedLock {}

impl Drop for NamedLock {
    fn drop(&mut self) {
        let _ = self.name(None); // whoever finds a name asks whether its process lives
    }
}

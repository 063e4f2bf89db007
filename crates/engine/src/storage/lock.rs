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

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

use super::Lock;
use super::mounts::SharedMount;
use crate::error::{Error, Kind, Result};
use crate::names::show_path;
use crate::sys::files;
use crate::sys::owner::{Life, Owner};

/// Bytes of what names a process, at most.
const OWNER_BYTES_MAX: u64 = 4096;

/// Takes the lock that is this file; `None` while another process holds it.
pub(super) fn take(path: &Path) -> Result<Option<Box<dyn Lock>>> {
    take_on(path, SharedMount::of(path).as_ref())
}

fn take_on(path: &Path, mount: Option<&SharedMount>) -> Result<Option<Box<dyn Lock>>> {
    let failed = |error| Error::from_io("lock", path, &error);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let file = options.open(path).map_err(failed)?;
    let locked = match file.try_lock() {
        Ok(()) => true,
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) if mount.is_some() && files::has_no_locks(&error) => false,
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    };
    let Some(mount) = mount else {
        return Ok(Some(Box::new(FileLock(file))));
    };
    let found = owner(&file).map_err(failed)?;
    match found.as_ref().map(Owner::life) {
        Some(Life::Alive) => return Ok(None),
        Some(Life::Elsewhere) if !(locked && mount.locks_reach_all()) => {
            let host = found.map(|owner| owner.host).unwrap_or_default();
            return Err(of_another_machine(path, &host, mount));
        }
        Some(Life::Elsewhere | Life::Dead) | None => {}
    }
    let named = NamedLock(file);
    named.name(Owner::this().as_ref()).map_err(failed)?;
    Ok(Some(Box::new(named)))
}

/// Whom a lock's file names.
fn owner(mut file: &File) -> std::io::Result<Option<Owner>> {
    let mut text = Vec::new();
    file.take(OWNER_BYTES_MAX).read_to_end(&mut text)?;
    file.rewind()?;
    Ok(serde_json::from_slice(&text).ok())
}

fn of_another_machine(path: &Path, host: &str, mount: &SharedMount) -> Error {
    let folder = path.parent().unwrap_or(path);
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
struct NamedLock(File);

impl NamedLock {
    fn name(&self, owner: Option<&Owner>) -> std::io::Result<()> {
        self.0.set_len(0)?;
        if let Some(owner) = owner {
            (&self.0).write_all(&serde_json::to_vec(owner)?)?;
        }
        files::hand_over(&self.0)
    }
}

impl Lock for NamedLock {}

impl Drop for NamedLock {
    fn drop(&mut self) {
        let _ = self.name(None); // whoever finds a name asks whether its process lives
    }
}

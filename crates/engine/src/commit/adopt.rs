//! Adoption: a resumed job takes over the folders that its dead predecessor left. The files of the kinds of folders
//! (`directory.rs`, `file.rs`, `places.rs`) say what is put back in each.
//!
//! ```text
//!   parent/.out.gristmill-JOB/    ── locked again, what was half published put back ──▶  Staging
//!   DIR/.gristmill-spill-JOB/     ── locked again ──▶  SpillDirs
//! ```
//!
//! The rules that must hold: only folders whose names follow from the job's own options and id are looked at; nothing
//! in them is a link; and until the job has taken over all of them ([`Ownership`]), a refusal leaves them as they are,
//! to be tried again.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::OLD;
use super::folder::is_of_scripts;
use crate::error::{Error, Kind, Result};
use crate::storage::{FileKind, LocalDisk, Lock, Locked, MissingLock};

/// Whether what is there is this job's to clear away: what its predecessor left from when it has taken that over, what it
/// made itself until it leaves that to those who resume it.
#[derive(Debug, Clone, Default)]
pub struct Ownership(Arc<AtomicBool>);

impl Ownership {
    /// That of a job which begins.
    pub fn of_new_job() -> Self {
        Ownership(Arc::new(AtomicBool::new(true)))
    }

    /// All stays, as after a kill.
    pub fn leave(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// All is taken over.
    pub fn take_over(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it is.
    pub fn is_taken(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Whether a folder is this process's to remove: its own always, one that it adopted once all is taken over.
pub(super) fn may_go(ownership: Option<&Ownership>) -> bool {
    ownership.is_none_or(Ownership::is_taken)
}

/// Locks a dead job's folder, and checks that it is what it seems.
pub(super) fn take(store: &dyn LocalDisk, folder: &Path) -> Result<Box<dyn Lock>> {
    if store.resolve(folder)? != folder {
        return Err(has_link(folder));
    }
    let refuse = |kind, what: &str| Error::new(kind, "resume the job", what).with_path(folder);
    match store.lock(folder, MissingLock::Make)? {
        Locked::Taken(lock) => check_plain(store, folder).map(|()| lock),
        Locked::Held => Err(refuse(Kind::Exists, "another process has its directory")
            .advise("wait for that process")),
        Locked::Missing | Locked::Foreign => Err(refuse(
            Kind::Permission,
            "its directory, or the lock in it, does not belong to this user",
        )
        .advise("resume it as the user who began it, or remove the directory")),
    }
}

/// Fails where a folder, or anything in it down to the files of the output and the runs, is a link.
fn check_plain(store: &dyn LocalDisk, folder: &Path) -> Result<()> {
    let mut left = vec![folder.to_owned()];
    while let Some(path) = left.pop() {
        if store.resolve(&path)? != path {
            return Err(has_link(&path));
        }
        match store.stat(&path)?.map(|stat| stat.kind) {
            // Links of scripts lead nowhere that is looked at: their folders go as they are.
            Some(FileKind::Directory) if is_of_scripts(&path) && path != folder => {}
            Some(FileKind::Directory) if !path.ends_with(OLD) => left.extend(store.list(&path)?),
            Some(FileKind::DanglingLink | FileKind::Other) => return Err(has_link(&path)),
            _ => {}
        }
    }
    Ok(())
}

fn has_link(path: &Path) -> Error {
    let message = "the job's directory has a link in it, which no job makes";
    Error::new(Kind::BadInput, "resume the job", message)
        .with_path(path)
        .advise("check what it is, and remove the directory")
}

//! A job's folder: made, locked, found by later jobs, removed.
//!
//! The rule that must hold: while anything is in a folder its lock is there, so that whoever finds it knows whether
//! its job lives. Only between two calls, at both ends of its life, is a folder empty and without one.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::{OLD, SUCCESS};
use crate::error::{Error, Kind, Result};
use crate::names::show_path;
use crate::storage::location::parent_of;
use crate::storage::{LOCK, LocalDisk, Lock, Locked, MissingLock};

/// The file with what a job of user code needs to be resumed.
pub(super) const DEFINITION: &str = "definition";

/// Beside the runs of a job with scripts: its archives, unpacked.
pub const ARCHIVES: &str = "archives";

/// And how the names of the working directories of its attempts begin.
pub const SCRIPT_FOLDER: &str = "task-";

/// Whether what lies beside the runs is a folder for scripts: there are links in it, and no job goes on from it.
pub fn is_of_scripts(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name == ARCHIVES || name.starts_with(SCRIPT_FOLDER)
}

/// Makes a job folder, locked: the error says what is missing above it, or what nobody may write to.
pub(super) fn create(store: &dyn LocalDisk, folder: &Path) -> Result<Box<dyn Lock>> {
    let created = store.create_locked(folder);
    created.map_err(|error| match error.kind() {
        Kind::NotFound => no_parent(parent_of(folder)),
        Kind::Permission => error.advise(
            "write to a directory in which you may make files: an output takes its name when it is whole",
        ),
        _ => error,
    })
}

pub(super) fn no_parent(parent: &Path) -> Error {
    let what = "its parent does not exist";
    Error::new(Kind::NotFound, "write the output", what)
        .with_path(parent)
        .advise("make that directory first")
}

/// How the names of job folders beside an output of this name begin.
pub(super) fn prefix_of(name: &OsStr) -> OsString {
    let parts = [b".", name.as_bytes(), b".gristmill-"];
    OsString::from_vec(parts.concat())
}

/// The name of a job's folder.
pub(super) fn job_folder(prefix: &OsStr, job: &str) -> OsString {
    let mut name = prefix.to_owned();
    name.push(job);
    name
}

/// Removes the job folders in `directory` whose jobs are dead, but `own`; fails where one is alive, or holds the only copy of an
/// output. Folders of other users are left alone, and so is what cannot be removed: neither is in the way of a job.
pub(super) fn sweep(
    store: &dyn LocalDisk,
    directory: &Path,
    prefix: &OsStr,
    target: &Path,
    own: Option<&Path>,
) -> Result<()> {
    if store.stat(directory)?.is_none() {
        return Ok(());
    }
    // A directory that may be written, and not be read, has a job's folder as any other.
    for folder in store.list(directory).unwrap_or_default() {
        let is_job = folder
            .file_name()
            .is_some_and(|name| name.as_bytes().starts_with(prefix.as_bytes()));
        if !is_job || Some(&*folder) == own {
            continue;
        }
        match store.lock(&folder, MissingLock::Leave) {
            Ok(Locked::Taken(_)) if holds_old(store, &folder, target)? => {
                return Err(only_copy(&folder));
            }
            Ok(Locked::Taken(free)) => drop(remove_folder(store, &folder, Some(free))),
            Ok(Locked::Held) => {
                return Err(Error::new(
                    Kind::Exists,
                    "write the output",
                    "another job is writing this output now",
                )
                .with("job directory", show_path(&folder))
                .advise("wait for it, or name another output"));
            }
            // Of another machine, which may be alive.
            Err(error) if error.kind() == Kind::Exists => return Err(error),
            // One without a lock was made a moment ago, by a job that is about to lock it.
            Ok(Locked::Missing | Locked::Foreign) | Err(_) => {}
        }
    }
    Ok(())
}

/// Removes a job's folder, its lock last: what a kill in between leaves has a lock that is free, by which the next job
/// knows it for a dead one's. (Behind the lock nothing is left but an empty folder.) The lock is given back before its file
/// goes: on a shared mount a file that is removed while it is open stays in its folder, and the folder with it.
pub(super) fn remove_folder(
    store: &dyn LocalDisk,
    folder: &Path,
    lock: Option<Box<dyn Lock>>,
) -> Result<()> {
    store.remove_all_but(folder, LOCK)?;
    drop(lock);
    store.remove(folder)
}

/// The error of a folder that has to stay.
pub(super) fn only_copy(folder: &Path) -> Error {
    let message = "the directory of a job that was killed holds the old output";
    Error::new(Kind::Exists, "write the output", message)
        .with("job directory", show_path(folder))
        .advise("move what is in its directory \"old\" back, or remove it")
}

/// Whether a dead job's folder holds an old output that nothing has taken the place of.
pub(super) fn holds_old(store: &dyn LocalDisk, folder: &Path, target: &Path) -> Result<bool> {
    let there = |path: PathBuf| Ok::<_, Error>(store.stat(&path)?.is_some());
    Ok(there(folder.join(OLD))? && !there(target.join(SUCCESS))?)
}

/// Where a job to an output directory may have its folder; and whether that lies inside the output.
pub(super) fn folders_of(target: &Path, job: &str) -> [(PathBuf, bool); 2] {
    let prefix = prefix_of(target.file_name().unwrap_or_default());
    let beside = parent_of(target).join(job_folder(&prefix, job));
    [
        (beside, false),
        (target.join(format!(".gristmill-{job}")), true),
    ]
}

pub(super) fn is_there(store: &dyn LocalDisk, path: &Path) -> Result<bool> {
    Ok(store.stat(path)?.is_some())
}

pub(super) fn make(store: &dyn LocalDisk, directory: &Path) -> Result<()> {
    if is_there(store, directory)? {
        Ok(())
    } else {
        store.create_directory(directory)
    }
}

//! A job's folder: made, locked, found by later jobs, removed.
//!
//! The rule that must hold: while anything is in a folder its lock is there, so that whoever finds it knows whether
//! its job lives. Only between two calls, at both ends of its life, is a folder empty and without one.

use std::path::{Path, PathBuf};

use super::{LOCK, OLD, SUCCESS};
use crate::error::{Error, Kind, Result};
use crate::storage::local::parent_of;
use crate::storage::{Lock, Store};

/// Makes a job folder: the error says what is missing above it.
pub(super) fn create(store: &dyn Store, folder: &Path) -> Result<bool> {
    store
        .create_directory(folder)
        .map(|()| true)
        .map_err(|error| match error.kind() {
            Kind::NotFound => no_parent(parent_of(folder)),
            _ => error,
        })
}

pub(super) fn no_parent(parent: &Path) -> Error {
    let what = "its parent does not exist";
    Error::new(Kind::NotFound, "write the output", what)
        .with_path(parent)
        .advise("make that directory first")
}

pub(super) fn lock(store: &dyn Store, folder: &Path) -> Result<Box<dyn Lock>> {
    store.lock(&folder.join(LOCK))?.ok_or_else(|| {
        Error::new(
            Kind::Exists,
            "write the output",
            "another job has this job's folder",
        )
        .with_path(folder)
    })
}

/// Removes the job folders in `directory` whose jobs are dead, but `own`; fails where one is alive.
pub(super) fn sweep(
    store: &dyn Store,
    directory: &Path,
    prefix: &str,
    target: &Path,
    own: Option<&Path>,
) -> Result<()> {
    if store.stat(directory)?.is_none() {
        return Ok(());
    }
    for folder in store.list(directory)? {
        let is_job = folder
            .file_name()
            .is_some_and(|n| n.to_string_lossy().starts_with(prefix));
        // A folder without a lock file was made a moment ago, by a job that is about to lock it.
        if !is_job || Some(&*folder) == own || store.stat(&folder.join(LOCK))?.is_none() {
            continue;
        }
        match store.lock(&folder.join(LOCK))? {
            Some(_free) if holds_old(store, &folder, target)? => {
                let message = "the folder of a job that was killed holds the old output";
                return Err(Error::new(Kind::Exists, "write the output", message)
                    .with("job folder", folder.display())
                    .advise("move what is in its folder \"old\" back, or remove it"));
            }
            Some(_free) => remove_folder(store, &folder)?,
            None => {
                return Err(Error::new(
                    Kind::Exists,
                    "write the output",
                    "another job is writing this output now",
                )
                .with("job folder", folder.display())
                .advise("wait for it, or name another output"));
            }
        }
    }
    Ok(())
}

/// Removes a job's folder, its lock last: what a kill in between leaves has a lock that is free, by which the next job
/// knows it for a dead one's. (Behind the lock nothing is left but an empty folder.)
pub(super) fn remove_folder(store: &dyn Store, folder: &Path) -> Result<()> {
    store.remove_with_last(folder, LOCK)
}

/// Whether a dead job's folder holds an old output that nothing has taken the place of.
fn holds_old(store: &dyn Store, folder: &Path, target: &Path) -> Result<bool> {
    let there = |path: PathBuf| Ok::<_, Error>(store.stat(&path)?.is_some());
    Ok(there(folder.join(OLD))? && !there(target.join(SUCCESS))?)
}

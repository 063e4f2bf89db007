//! What a dead job left: found by the names that follow from its options and id, read, cleared away.

use std::path::{Path, PathBuf};

use super::LOCK;
use super::adopt::take;
use super::file::FileStaging;
use super::folder::{
    DEFINITION, folders_of, holds_old, is_there, job_folder, only_copy, remove_folder,
};
use super::in_place::{check_copied, folder_in};
use super::places::SpillDirs;
use crate::error::Result;
use crate::storage::LocalDisk;
use crate::storage::location::parent_of;

/// Removes what a dead job left after its output had its name.
///
/// # Errors
/// A folder's owner is alive, there is a link in it, or it cannot be removed.
pub fn clear_published(
    store: &dyn LocalDisk,
    target: &Path,
    spill_dirs: &[PathBuf],
    job: &str,
) -> Result<()> {
    for folder in left_by(store, Some(target), spill_dirs, job)? {
        let lock = take(store, &folder)?;
        remove_folder(store, &folder, Some(lock))?;
    }
    Ok(())
}

/// Finds the folders that the dead job `job` left, and removes them unless `dry_run`. Only a folder with the job's name
/// and a lock of a job in it counts: a path may come from a file that anybody wrote.
///
/// # Errors
/// A folder's owner is alive, there is a link in it, it holds the only copy of an output, or it cannot be removed.
pub fn clear_dead(
    store: &dyn LocalDisk,
    target: Option<&Path>,
    spill_dirs: &[PathBuf],
    job: &str,
    dry_run: bool,
) -> Result<Vec<PathBuf>> {
    let mut found = left_by(store, target, spill_dirs, job)?;
    found.retain(|folder| matches!(is_there(store, &folder.join(LOCK)), Ok(true)));
    for folder in &found {
        let lock = take(store, folder)?;
        if target.map_or(Ok(false), |target| holds_old(store, folder, target))? {
            return Err(only_copy(folder));
        }
        if let Some(target) = target {
            check_copied(store, folder, target)?;
        }
        if !dry_run {
            remove_folder(store, folder, Some(lock))?;
        }
    }
    Ok(found)
}

/// The folders that are there of those that a job may have, once each.
fn left_by(
    store: &dyn LocalDisk,
    target: Option<&Path>,
    spill_dirs: &[PathBuf],
    job: &str,
) -> Result<Vec<PathBuf>> {
    let spill_name = SpillDirs::folder_name(job);
    let spilled = spill_dirs
        .iter()
        .map(|directory| directory.join(&spill_name));
    let staged = target.into_iter().flat_map(|target| {
        let short = FileStaging::names(store, target)
            .map(|(target, prefix)| parent_of(&target).join(job_folder(&prefix, job)));
        let long = folders_of(target, job).map(|(folder, _)| folder);
        long.into_iter().chain(short.ok())
    });
    let in_place = target.into_iter().flat_map(|target| {
        let folders = spill_dirs
            .iter()
            .map(|place| folder_in(store, place, target, job));
        folders.flatten()
    });
    let mut found = Vec::new();
    for folder in staged.chain(spilled).chain(in_place) {
        if !found.contains(&folder) && is_there(store, &folder)? {
            found.push(folder);
        }
    }
    Ok(found)
}

/// What a dead job kept of itself, by [`super::Committer::keep_definition`]; none where its folder is not there.
///
/// # Errors
/// Somebody else may have written it.
pub fn definition_of(store: &dyn LocalDisk, target: &Path, job: &str) -> Result<Option<Vec<u8>>> {
    for (folder, _) in folders_of(target, job) {
        let path = folder.join(DEFINITION);
        if is_there(store, &path)? {
            return store.read_private(&path).map(Some);
        }
    }
    Ok(None)
}

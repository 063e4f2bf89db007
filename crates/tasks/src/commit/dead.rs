//! What a dead job left: found by the names that follow from its options and id, read, cleared away.

use std::path::{Path, PathBuf};

use super::directory::places_of;
use super::file::FileStaging;
use super::in_place::{check_copied, folder_in};
use super::job_folder::{DEFINITION, JobFolder, holds_old, is_there, only_copy};
use super::ownership::Ownership;
use super::spill_dirs::SpillDirs;
use gristmill_base::error::Result;
use gristmill_storage::{LOCK, LocalDisk};

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
        let owner = Ownership::of_resumed_job(job);
        JobFolder::take_over(store, folder, &owner)?.remove()?;
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
        let owner = Ownership::of_resumed_job(job);
        let left = JobFolder::take_over(store, folder.clone(), &owner)?;
        if target.map_or(Ok(false), |target| holds_old(store, folder, target))? {
            return Err(only_copy(folder));
        }
        if let Some(target) = target {
            check_copied(store, folder, target)?;
        }
        if !dry_run {
            left.remove()?;
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
    let spilled = spill_dirs
        .iter()
        .map(|directory| SpillDirs::folder_in(directory, job));
    let staged = target.into_iter().flat_map(|target| {
        let short = FileStaging::names(store, target)
            .map(|(target, prefix)| FileStaging::place_of(&target, prefix).folder_of(job));
        let long = places_of(target).map(|(place, _)| place.folder_of(job));
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

/// What a dead job kept of itself, by [`JobFolder::keep_definition`]; none where its folder is not there.
///
/// # Errors
/// Somebody else may have written it.
pub fn definition_of(store: &dyn LocalDisk, target: &Path, job: &str) -> Result<Option<Vec<u8>>> {
    for (place, _) in places_of(target) {
        let path = place.folder_of(job).join(DEFINITION);
        if is_there(store, &path)? {
            return store.read_private(&path).map(Some);
        }
    }
    Ok(None)
}

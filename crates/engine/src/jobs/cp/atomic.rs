//! `--atomic`: the copy is made under another name beside the target, and renamed when it is whole.
//!
//! A job that fails, or is told to stop, removes what it has copied; one that was killed leaves it to whoever resumes it. On a
//! disk a lock in the job folder keeps others away from it; in a store with renames, such as HDFS, the name of the job does.

use std::path::{Path, PathBuf};

use super::CpSpec;
use super::roots::{means_contents, plain};
use super::rounds::CopyTotals;
use crate::jobs::steps::RunningJob;
use gristmill_base::error::{Error, Result};
use gristmill_storage::location::Location;
use gristmill_storage::staged::RenameStore;
use gristmill_storage::stores::Stores;
use gristmill_tasks::commit::{TreeStaging, is_in_the_way};

const OPERATION: &str = "copy files";

/// Copies all to `target`, which appears at once.
pub(super) fn copy(job: &mut RunningJob<'_>, spec: &CpSpec, target: &Path) -> Result<()> {
    let target: PathBuf = target.components().collect();
    let disk = job.environment.store.disk().clone();
    if spec.dry_run {
        TreeStaging::check(&*disk, &target)?;
        return spec.copy(job);
    }
    let Some(staging) = TreeStaging::begin(&*disk, &target, job.ownership())? else {
        job.takes_over();
        spec.report(job, &CopyTotals::default()); // all was copied by the one that died
        return Ok(());
    };
    placed(spec, staging.staged().into()).copy(job)?;
    staging.publish(!job.common.no_sync)
}

/// Copies all to a target in a place that renames directories, where it appears at once.
pub(super) fn copy_in_store(
    job: &mut RunningJob<'_>,
    spec: &CpSpec,
    place: &dyn RenameStore,
) -> Result<()> {
    let target = plain(&spec.output);
    let Some(staged) = beside(&target, job.ownership().job()) else {
        return Err(is_in_the_way(target.as_typed()));
    };
    let is_there = |at: &Location| Ok::<_, Error>(place.find(OPERATION, at.as_typed())?.is_some());
    if is_there(&target)? {
        if !job.ownership().resumes() || is_there(&staged)? {
            return Err(is_in_the_way(target.as_typed()));
        }
        job.takes_over();
        spec.report(job, &CopyTotals::default()); // all was copied by the one that died
        return Ok(());
    }
    if spec.dry_run {
        return spec.copy(job);
    }
    let copied = placed(spec, staged.clone())
        .copy(job)
        .and_then(|()| match is_there(&staged)? {
            true => place.move_to(OPERATION, staged.as_typed(), target.as_typed(), false),
            false => Ok(()), // a copy of nothing
        });
    if copied.is_err() && job.ownership().is_taken() {
        let _ = place.remove_tree(staged.as_typed()); // why it failed is what counts
    }
    copied
}

/// The name beside its target that a copy of this job has in a store; none beside the root.
fn beside(target: &Location, job: &str) -> Option<Location> {
    let name = target.name()?.to_string_lossy();
    Some(target.parent()?.join(format!(".{name}.gristmill-{job}")))
}

/// What a dead job has left in a store with renames, beside what was to be its copy; removed unless `dry_run`.
///
/// # Errors
/// The store does not answer, or refuses.
pub(super) fn clear(
    stores: &Stores,
    output: &Location,
    job: &str,
    dry_run: bool,
) -> Result<Option<PathBuf>> {
    let place = stores.publisher(output).and_then(|place| place.renames());
    let (Some(place), Some(left)) = (place, beside(&plain(output), job)) else {
        return Ok(None);
    };
    let path = left.as_typed();
    if place.find("remove", path)?.is_none() {
        return Ok(None);
    }
    if !dry_run {
        place.remove_tree(path)?;
    }
    Ok(Some(path.to_owned()))
}

/// The same copy under another name.
fn placed(spec: &CpSpec, staged: Location) -> CpSpec {
    let contents = means_contents(&spec.output);
    CpSpec {
        output: if contents { staged.join("") } else { staged },
        ..spec.clone()
    }
}

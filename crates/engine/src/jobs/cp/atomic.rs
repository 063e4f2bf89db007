//! `--atomic`: the copy is made under another name beside the target, and renamed when it is whole.
//!
//! A job that fails, or is told to stop, removes what it has copied; one that was killed leaves it to whoever resumes it.

use std::path::{Path, PathBuf};

use super::CpSpec;
use super::roots::means_contents;
use super::rounds::CopyTotals;
use crate::jobs::steps::RunningJob;
use gristmill_base::error::Result;
use gristmill_storage::location::Location;
use gristmill_tasks::commit::TreeStaging;

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
    let mut staged: Location = staging.staged().into();
    if means_contents(&spec.output) {
        staged = staged.join("");
    }
    let placed = CpSpec {
        output: staged,
        ..spec.clone()
    };
    placed.copy(job)?;
    staging.publish(!job.common.no_sync)
}

//! What must hold of a cluster's job that is over, and what the cluster went through.

use std::collections::BTreeSet;
use std::fmt::Debug;

use gristmill_engine::driver::RetryPolicy;
use gristmill_engine::error::{Error, Kind, Result};
use gristmill_engine::task::AttemptId;

use super::{CLUSTERS, Cluster, Seen};

impl Cluster {
    pub(super) fn seen(&self, outcome: &Result<()>) -> Seen {
        let kind = outcome.as_ref().err().map(Error::kind);
        let through = &self.model.through;
        let tasks: BTreeSet<u32> = through.iter().map(|id| id.task).collect();
        Seen {
            succeeded: u32::from(kind.is_none()),
            cancelled: u32::from(kind == Some(Kind::Cancelled)),
            gave_up: u32::from(kind.is_some_and(|kind| kind != Kind::Cancelled)),
            attempts_failed: self.failures.values().sum(),
            attempts_lost: self.losses.values().sum(),
            tasks_done_again: (through.len() - tasks.len()) as u32,
            attempts_beside: self.model.beside,
            reports_too_late: self.late,
            drivers_killed: self.history.kills,
            tasks_kept: self.history.told,
        }
    }

    /// What must hold of a job that is over.
    pub(super) fn judge(
        &self,
        outcome: &Result<()>,
        reports: &[Vec<AttemptId>],
    ) -> Result<(), String> {
        let batches = self.model.job.batches();
        for (found, tasks) in reports.iter().skip(1).zip(&batches) {
            if !found.iter().map(|id| id.task).eq(tasks.clone()) {
                return Err(format!("stages of tasks {tasks:?} gave {found:?}"));
            }
            if let Some(id) = found.iter().find(|id| !self.model.through.contains(id)) {
                return Err(format!("a report of {id:?}, which does not count"));
            }
        }
        let retries = RetryPolicy::default().retries;
        match outcome {
            Ok(()) if reports.len() != batches.len() + 1 => {
                Err("over before its last stage".into())
            }
            Ok(()) => Ok(()),
            Err(error) if error.kind() == Kind::Cancelled && self.cancelled => Ok(()),
            Err(error) => {
                let failed = self.failures.values().any(|failures| *failures > retries);
                let lost = self.losses.values().any(|losses| *losses > 100);
                if failed || lost && self.crash_ms > 0 && self.bug.is_none() {
                    Ok(())
                } else {
                    Err(format!("gave up without a reason: {error}"))
                }
            }
        }
    }
}

/// What all clusters went through, of which none had anything wrong.
pub(super) fn all_well(simulate: impl Fn(u64) -> Result<Seen, String>) -> Vec<Seen> {
    let (mut wrong, mut clusters) = (Vec::new(), Vec::new());
    for seed in CLUSTERS {
        match simulate(seed) {
            Ok(seen) => clusters.push(seen),
            Err(why) => wrong.push((seed, why)),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {CLUSTERS:?}: {:?}",
        wrong.len(),
        &wrong[..wrong.len().min(5)]
    );
    clusters
}

/// Fails unless a planted bug shows in some clusters.
pub(super) fn assert_caught(bug: impl Debug, simulate: impl Fn(u64) -> Result<Seen, String>) {
    let caught = (0..300).filter(|seed| simulate(*seed).is_err()).count();
    assert!(caught > 5, "{bug:?}: caught in {caught} of 300 clusters");
}

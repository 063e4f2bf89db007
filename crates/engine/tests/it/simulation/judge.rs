//! What must hold of a cluster's job that is over, and what the cluster went through.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use gristmill_engine::error::{Error, Kind, Result};
use gristmill_engine::task::AttemptId;

use super::{CLUSTERS, Cluster, POLICY, Seen};

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
            workers_changed: self.changed,
            attempts_waited: self.waited,
            begun_again: self.begun_again,
            gave_up_on_versions: u32::from(kind == Some(Kind::Proof)),
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
        self.judge_versions(reports)?;
        let retries = POLICY.retries;
        match outcome {
            Ok(()) if reports.len() != batches.len() + 1 => {
                Err("over before its last stage".into())
            }
            Ok(()) => Ok(()),
            Err(error) if error.kind() == Kind::Cancelled && self.cancelled => Ok(()),
            Err(error) if error.kind() == Kind::Proof => {
                let often = self.begun_again == POLICY.rounds && self.fickle > 0;
                often
                    .then_some(())
                    .ok_or_else(|| format!("gave up too early: {error}"))
            }
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

impl Cluster {
    /// What the plan was given was made of one version of each task: that which the plan was given.
    fn judge_versions(&self, reports: &[Vec<AttemptId>]) -> Result<(), String> {
        let given = reports.iter().flatten().map(|id| (id.task, *id));
        let given: BTreeMap<u32, AttemptId> = given.collect();
        for id in given.values() {
            for (need, version) in self.model.read.get(id).into_iter().flatten() {
                let other = given
                    .get(need)
                    .filter(|need| self.model.made(**need) != Some(*version));
                if let Some(other) = other {
                    return Err(format!("{id:?} was made of another version than {other:?}"));
                }
            }
        }
        Ok(())
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

//! Passes: more runs than one merge can take are first merged to fewer, as often as it takes.
//!
//! ```text
//!   runs ──▶ a b | c d | e ──merged by group──▶ ab cd e ──▶ few enough: the last merge
//! ```
//!
//! Neighbours only, so that equal keys stay in input order; a run that is alone in its group stays as it is.

use std::sync::Arc;

use crate::driver::Stage;
use crate::error::{Error, Result};
use crate::plan::spill::SpillNumbers;
use crate::spill::SpilledRun;
use crate::storage::Store;
use crate::task::{MergeRun, MergeRunsSpec, RunPlan, TaskReport, TaskSpec};

/// What comes next for some runs.
#[derive(Debug)]
pub(super) enum Next {
    /// These are merged to fewer first.
    Pass(Pass),
    /// One merge takes all of them.
    Last(Vec<MergeRun>),
}

/// Runs in groups, each of which becomes one run.
#[derive(Debug)]
pub(super) struct Pass {
    groups: Vec<Vec<MergeRun>>,
}

/// What comes next for `runs`.
///
/// # Errors
/// Memory does not hold two of them.
pub(super) fn next(runs: Vec<MergeRun>, numbers: &SpillNumbers) -> Result<Next> {
    let groups = numbers.groups(&longest_of(&runs))?;
    if groups.is_empty() {
        return Ok(Next::Last(runs));
    }
    let mut rest = runs.into_iter();
    let groups = groups.into_iter();
    let groups = groups.map(|len| rest.by_ref().take(len).collect());
    Ok(Next::Pass(Pass {
        groups: groups.collect(),
    }))
}

impl Pass {
    /// The stage that merges them.
    pub(super) fn stage(&self, plan: &Arc<RunPlan>, numbers: &SpillNumbers, bytes: u64) -> Stage {
        let task = |(number, group): (u64, &Vec<MergeRun>)| {
            TaskSpec::MergeRuns(MergeRunsSpec {
                plan: Arc::clone(plan),
                runs: group.clone(),
                source_bytes: numbers.source_bytes(&longest_of(group)),
                number,
            })
        };
        let together = (0..).zip(&self.groups).filter(|(_, group)| group.len() > 1);
        Stage {
            name: "merge runs",
            bytes,
            tasks: together.map(task).collect(),
        }
    }

    /// The runs after the pass: what was merged is removed, and each run that was made is shown to `made`.
    ///
    /// # Errors
    /// A run cannot be removed, or the reports are those of other tasks.
    pub(super) fn over(
        self,
        reports: Vec<TaskReport>,
        store: &dyn Store,
        mut made: impl FnMut(&SpilledRun),
    ) -> Result<Vec<MergeRun>> {
        let mut reports = reports.into_iter();
        let mut runs = Vec::with_capacity(self.groups.len());
        for mut group in self.groups {
            if group.len() < 2 {
                runs.append(&mut group);
                continue;
            }
            let Some(TaskReport::MergeRuns(run)) = reports.next() else {
                return Err(wrong_report());
            };
            for merged in &group {
                store.remove(&merged.path)?;
            }
            made(&run);
            runs.push(MergeRun::from(run));
        }
        Ok(runs)
    }
}

/// The longest record of each run.
pub(super) fn longest_of(runs: &[MergeRun]) -> Vec<u64> {
    runs.iter().map(|run| run.longest).collect()
}

/// The error of a report that none of a stage's tasks can have given.
pub(super) fn wrong_report() -> Error {
    Error::bug("run the job", "a report of another kind")
}

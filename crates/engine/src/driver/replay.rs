//! What a job's history proves, for the driver that resumes the job.
//!
//! A task counts as done only where the plan, made anew, has the same task in the same place: the number says where,
//! the fingerprint what.
//!
//! Decision: docs/decisions/resume-by-replay.md.

use std::collections::BTreeMap;

use gristmill_tasks::task::{TaskReport, TaskSpec};

/// What is known of the tasks of a job that was begun by another process. By default nothing is.
#[derive(Debug, Default)]
pub struct Replay {
    done: BTreeMap<u32, (u64, TaskReport)>,
    attempts: BTreeMap<u32, u32>,
}

impl Replay {
    /// An attempt at a task began: its number is not given again, as what it wrote may still be there.
    pub fn tried(&mut self, task: u32, attempt: u32) {
        let next = self.attempts.entry(task).or_default();
        *next = (*next).max(attempt.saturating_add(1));
    }

    /// A task with this fingerprint is over, and what it made is there.
    pub fn done(&mut self, task: u32, fingerprint: u64, report: TaskReport) {
        self.done.insert(task, (fingerprint, report));
    }

    /// How many tasks are known to be over.
    pub fn len(&self) -> usize {
        self.done.len()
    }

    /// Whether no task is known to be over.
    pub fn is_empty(&self) -> bool {
        self.done.is_empty()
    }

    /// The first number that an attempt at this task may have.
    pub(super) fn first_attempt(&self, task: u32) -> u32 {
        self.attempts.get(&task).copied().unwrap_or(0)
    }

    /// The report of this task, if it is known to be over.
    pub(super) fn take(&mut self, task: u32, spec: &TaskSpec) -> Option<TaskReport> {
        let (fingerprint, report) = self.done.remove(&task)?;
        (fingerprint == spec.fingerprint()).then_some(report)
    }
}

//! What became of the attempts of a job, as reports count them.

use gristmill_tasks::task::{Side, TaskSpec};

/// What became of the attempts of a job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AttemptCounts {
    /// Attempts that failed.
    pub failed: u64,
    /// Attempts that were told to stop, came too late, or were lost: no fault of theirs.
    pub killed: u64,
    /// Attempts that were begun beside a slow one.
    pub speculative: u64,
    /// Attempts that were begun.
    pub launched: LaunchCounts,
    /// Tasks that failed for good, so that the job did.
    pub failed_tasks: LaunchCounts,
}

/// Attempts that a driver began, or tasks, as Hadoop counts them: of maps and of reduces. Samples are neither, nor are merges of
/// runs to longer ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LaunchCounts {
    /// At the tasks that take the input.
    pub maps: u64,
    /// At those that give the output, where there are two stages.
    pub reduces: u64,
}

impl LaunchCounts {
    pub(super) fn count(&mut self, spec: &TaskSpec) {
        match spec.side() {
            Some(Side::Map) => self.maps += 1,
            Some(Side::Reduce) => self.reduces += 1,
            None => {}
        }
    }
}

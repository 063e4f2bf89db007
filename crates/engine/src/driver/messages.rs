//! What goes between driver and runner: events in, actions out.

use std::sync::Arc;

use gristmill_base::error::{Error, Result};
use gristmill_tasks::task::{AttemptId, ReleasedSpace, TaskReport, TaskSpec};

/// What happened.
#[derive(Debug)]
pub enum DriverEvent {
    /// The runner is ready, with room for so many attempts at once.
    Started {
        /// How many attempts may run at once.
        slots: usize,
    },
    /// An attempt is through.
    Finished {
        /// Which.
        id: AttemptId,
        /// With what.
        report: TaskReport,
    },
    /// An attempt at a task that was done before is through, and gave something else than then.
    Differs {
        /// Which.
        id: AttemptId,
        /// With what.
        report: TaskReport,
    },
    /// An attempt ended without a result.
    Failed {
        /// Which.
        id: AttemptId,
        /// Why.
        error: Error,
    },
    /// An attempt is gone with its worker, or what it needed is gone. It is no fault of the task, and not counted as
    /// a failure.
    Lost {
        /// Which.
        id: AttemptId,
    },
    /// What a task that is over had made is gone.
    OutputLost {
        /// The task's number.
        task: u32,
    },
    /// A task takes longer than it should: another attempt may begin beside those that run.
    Straggles {
        /// The task's number.
        task: u32,
    },
    /// There is room for so many attempts at once from now on.
    Slots {
        /// How many attempts may run at once.
        slots: usize,
    },
    /// Tasks of this stage are so short that so many attempts more may begin, which wait where others run.
    Ahead {
        /// How many more than there are slots. None when the next stage begins.
        attempts: usize,
    },
    /// A time that was asked for has come.
    Woken,
    /// The user wants the job to end.
    Cancel,
}

/// What the runner is to do.
#[derive(Debug)]
pub enum Action {
    /// A stage begins.
    BeginStage {
        /// Its name.
        name: &'static str,
        /// Bytes that its tasks will note as done.
        bytes: u64,
        /// How many tasks it has.
        tasks: usize,
        /// How many of them are known to be over, and will not be launched.
        kept: usize,
    },
    /// Run this attempt.
    Launch {
        /// Which.
        id: AttemptId,
        /// What it is to do.
        spec: Arc<TaskSpec>,
    },
    /// Stop this attempt, which still reports its end.
    Abort {
        /// Which.
        id: AttemptId,
    },
    /// Give this space back, once all that was recorded is in the history for good: another process that resumes the
    /// job would miss what is gone.
    ReleaseSpace {
        /// What no task needs any more.
        spent: Vec<ReleasedSpace>,
    },
    /// The plan begins again, and what these tasks made is of the round before: their runs may go, and other tasks have
    /// their numbers.
    Forget {
        /// Their numbers.
        tasks: Vec<u32>,
    },
    /// Send `Woken` at this time.
    WakeAt {
        /// Milliseconds on the clock of the events.
        at_ms: u64,
    },
    /// The job is over; nothing of it runs any more.
    Complete {
        /// How it ended.
        outcome: Result<()>,
    },
}

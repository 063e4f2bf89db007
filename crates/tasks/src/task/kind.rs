//! A kind of task: what the engine needs to know of it. Adding one costs its file, which implements [`TaskKind`], and
//! its line in `spec.rs`.

use std::fmt::{self, Debug, Write};

use super::attempt::TaskAttempt;
use super::checkpoint::Checkpoint;
use super::context::{JobShared, Scratch, TaskContext};
use super::fingerprint::Fingerprint;
use super::input::InputPiece;
use super::released_space::ReleasedSpace;
use super::runs::MergeRun;
use crate::spill::SpilledRun;
use crate::worker::TaskPrintout;
use gristmill_base::error::Result;
use gristmill_storage::objects::Upload;

/// Which half of a job a task belongs to, as Hadoop has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// It takes input.
    Map,
    /// It gives output, from what others took in.
    Reduce,
}

/// What a task did, by Hadoop's names for it.
pub type Counters = Vec<(&'static str, u64)>;

/// What a task runs with: all of them share the context; the attempt is its own; the worker keeps the scratch for the
/// next.
pub type TaskEnvironment<'a> = (&'a TaskContext, &'a TaskAttempt<'a>, &'a mut Scratch);

/// A kind of task. The implementor says what one task is to do.
pub trait TaskKind: Debug {
    /// What a task did.
    type Report;

    /// Does the task.
    ///
    /// # Errors
    /// It failed, or was told to stop.
    fn run(&self, environment: TaskEnvironment<'_>) -> Result<Self::Report>;

    /// What the task works on, in a few words for people.
    fn input(&self, context: &TaskContext) -> String;

    /// What the task did.
    fn counters(&self, report: &Self::Report) -> Counters;

    /// The side that the task counts for, if any.
    fn side(&self) -> Option<Side> {
        None
    }

    /// How many runs it reads a segment of, to merge them.
    fn segments_read(&self) -> usize {
        0
    }

    /// Whether it runs user code.
    fn runs_user_code(&self) -> bool {
        false
    }

    /// Whether only the driver's process can do it: it reads or writes a stream, or what other tasks left in memory.
    fn stays_here(&self) -> bool {
        false
    }

    /// Whether each attempt writes files of its own where several machines write, so that two may run at once: a file of the output
    /// is staged there under a name of the attempt. Others share a stream, or memory, or count what they find.
    fn writes_apart(&self) -> bool {
        true
    }

    /// The runs that it reads.
    fn reads(&self) -> &[MergeRun] {
        &[]
    }

    /// The node that should do it, of as many as there are.
    fn home(&self) -> Option<u32> {
        None
    }

    /// The pieces of the job's input that it reads, where it reads any.
    fn input_pieces(&self, _job: &JobShared) -> Vec<InputPiece> {
        Vec::new()
    }

    /// Whether the task uses up what other tasks made: to do it again, these have to be done again.
    fn uses_up(&self) -> bool {
        false
    }

    /// What a task has used up that gave this report.
    fn consumed(&self, _report: &Self::Report) -> Vec<ReleasedSpace> {
        Vec::new()
    }

    /// What of the report outlives the process. A kind that does not say so is done again.
    fn checkpoint(&self, _report: &Self::Report) -> Option<Checkpoint> {
        None
    }

    /// Feeds all that decides the bytes that the task writes. A kind with a checkpoint leaves out folders, and what
    /// decides only how the task goes about it.
    ///
    /// # Errors
    /// None: writing to a fingerprint cannot fail.
    fn fingerprint(&self, print: &mut Fingerprint) -> fmt::Result {
        write!(print, "{self:?}")
    }

    /// The uploads that a committer has to complete.
    fn uploads(_report: &Self::Report) -> Vec<&Upload> {
        Vec::new()
    }

    /// The runs that the task wrote.
    fn runs(_report: &Self::Report) -> &[SpilledRun] {
        &[]
    }

    /// What user code printed, where it ran.
    fn printed(_report: &Self::Report) -> Option<&TaskPrintout> {
        None
    }
}

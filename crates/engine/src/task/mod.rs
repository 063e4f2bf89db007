//! A task is a value: `TaskSpec` in, `TaskReport` out, `run_task` does it.
//!
//! A runner decides where a task runs, never what it does. One file per kind of task; all of them only put stages
//! together. What they run with is a [`TaskContext`].
//!
//! ```text
//!   spec                                      TaskSpec, TaskReport, run_task: names all kinds
//!   sample  map  reduce  spill  merge  ...    a kind of task each
//!   kind                                      what each of them implements
//!   checkpoint  fingerprint  spent  input     what they say of a task and its report
//!   context                                   what tasks run with
//!   user                                      executors of user code
//!   attempt  runs  ranges  wire               what all of them share
//! ```
//!
//! Each uses only what stands below it.
//!
//! Decision: docs/decisions/tasks-are-values.md.

mod attempt;
mod checkpoint;
mod context;
mod fingerprint;
mod gather_lines;
mod generate;
mod input;
mod kind;
mod map;
mod merge;
mod merge_runs;
mod opened;
mod ranges;
mod recoded;
mod reduce;
mod runs;
mod sample;
mod sample_decoded;
mod sample_keys;
mod sample_rows;
mod sampled;
mod scatter_lines;
mod spec;
mod spent;
mod spill;
mod user;
mod user_task;
mod validate;
mod verify;
pub mod wire;

pub use attempt::{Attempt, AttemptId};
pub use checkpoint::{Checkpoint, WrittenRange};
pub use context::{InMemory, InProcess, JobShared, Node, Scratch, TaskContext};
pub use fingerprint::Fingerprint;
pub use gather_lines::{GATHER_WORKER_BYTES, GatherLinesSpec};
pub use generate::{GENERATE_WORKER_BYTES, GenerateSpec};
pub use input::InputPiece;
pub use kind::{Counters, Side, TaskKind, With};
pub use map::{MapReport, MapSpec};
pub use merge::{MergeReport, MergeSpec, MergeTarget, WholeFile};
pub use merge_runs::MergeRunsSpec;
pub use ranges::{OutputFile, RangeSpec};
pub use recoded::Codes;
pub use reduce::ReduceSpec;
pub use runs::{AgentFolders, MergeRun, RunPlan};
pub use sample::SampleSpec;
pub use sample_keys::SampleKeysSpec;
pub use scatter_lines::{LinePlan, ScatterLinesReport, ScatterLinesSpec};
pub use spec::{TaskReport, TaskSpec, run_task};
pub use spent::Spent;
pub use spill::{SpillInput, SpillSpec, parse_keys};
pub use user::{
    ExecutorKind, ExecutorSpec, FailedAt, Failures, Here, LargestGroup, Mapper, NativeExecutor,
    ON_AGENT, ProcessPoolExecutor, RETRY, Selection, SplitData, UserAttemptSpec, UserTaskExecutor,
    UserTaskFile, UserTaskKind, UserTaskReport, UserTaskSplit, feed_of, group_mark, kinds,
    streaming,
};
pub use user_task::{UserTaskPlan, UserTaskSpec};
pub use validate::{VALIDATE_WORKER_BYTES, ValidateReport, ValidateSpec};
pub use verify::{Proved, verify};

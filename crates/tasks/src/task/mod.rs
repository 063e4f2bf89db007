//! A task is a value: `TaskSpec` in, `TaskReport` out, `run_task` does it.
//!
//! A runner decides where a task runs, never what it does. One file per kind of task; all of them only put stages
//! together. What they run with is a [`TaskContext`].
//!
//! ```text
//!   spec                                      TaskSpec, TaskReport, run_task: names all kinds
//!   kinds                                     a kind of task each: sample, scatter, gather, spill, merge ...
//!   kind                                      what each of them implements
//!   checkpoint  fingerprint  released_space  input     what they say of a task and its report
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
mod input;
mod kind;
mod kinds;
mod opened;
mod ranges;
mod recoded;
mod released_space;
mod runs;
mod spec;
mod user;
mod verify;
pub mod wire;

pub use self::kinds::copy::files::{
    COPY_FAILURES_NAMED, COPY_WORKER_BYTES, CopyFilesSpec, CopyReport, SHORT_FILE_BYTES,
};
pub use self::kinds::copy::item::{
    CopiedFile, CopiedPiece, CopyItem, CopyOutcome, CopyPiece, CopyRules, CopySource, ExistingFile,
    FailedPiece, JoinedPieces, PUT_FILE_BYTES, found_at,
};
pub use self::kinds::copy::streams::CopyStreams;
pub use self::kinds::entries::EntryPlan;
pub use self::kinds::gather::{GatherPlan, GatherSpec};
pub use self::kinds::generate::{GENERATE_WORKER_BYTES, GenerateSpec};
pub use self::kinds::lines::{GATHER_WORKER_BYTES, LinePlan};
pub use self::kinds::merge::{MergeReport, MergeSpec};
pub use self::kinds::merge_runs::{MergeRunsReport, MergeRunsSpec};
pub use self::kinds::merge_target::{MergeTarget, WholeFile};
pub use self::kinds::sample::SampleSpec;
pub use self::kinds::sample_keys::SampleKeysSpec;
pub use self::kinds::scatter::{ScatterPlan, ScatterReport, ScatterSpec};
pub use self::kinds::spill::{SpillInput, SpillSpec, parse_keys};
pub use self::kinds::user_task::{UserTaskPlan, UserTaskSpec};
pub use self::kinds::validate::{VALIDATE_WORKER_BYTES, ValidateReport, ValidateSpec};
pub use attempt::{AttemptId, TaskAttempt};
pub use checkpoint::{Checkpoint, WrittenRange};
pub use context::{InMemory, InProcess, JobShared, NodeContext, Scratch, TaskContext};
pub use fingerprint::Fingerprint;
pub use input::InputPiece;
pub use kind::{Counters, Side, TaskEnvironment, TaskKind};
pub use ranges::{OutputFile, RangeSpec, WrittenProof};
pub use recoded::Codes;
pub use released_space::ReleasedSpace;
pub use runs::{AgentFolders, MergeRun, RunPlan};
pub use spec::{TaskReport, TaskSpec, TypedTask, run_task};
pub use user::{
    Combined, CombinedStates, CountedKeys, ExecutorKind, ExecutorSpec, FailedAt, FailureFolder,
    FirstRecords, FirstWanted, InputRanges, KeySelection, LEFT_OUT, LargestGroup, LetterCase,
    LineKeys, Mapper, NOT_DECODED, NativeExecutor, NativeSplit, NextRecord, NodeEnvironment,
    Operator, OutputLine, Pairs, PartFiles, PartMapper, ProcessPoolExecutor, RecordForm, Records,
    Reducer, Regrouper, SIDE_BYTES, ScratchFile, SplitData, UserAttemptSpec, UserTaskExecutor,
    UserTaskFile, UserTaskKind, UserTaskReport, UserTaskSplit, feed_of, group_mark, key_types,
    place_of, read_records, streaming, too_many_files,
};
pub use verify::{Proved, verify};

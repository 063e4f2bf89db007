//! A task is a value: `TaskSpec` in, `TaskReport` out, `run_task` does it.
//!
//! A runner decides where a task runs, never what it does. One file per kind of task; all of them only put stages
//! together. What many tasks share while a job runs (the store, the arena, the map outputs) is in [`TaskContext`].

mod generate;
mod map;
mod reduce;
mod sample;
mod validate;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub use generate::{GENERATE_WORKER_BYTES, GenerateSpec};
pub use map::{MapReport, MapSpec};
pub use reduce::{RangeSpec, ReduceSpec};
pub use sample::SampleSpec;
pub use validate::{VALIDATE_WORKER_BYTES, ValidateReport, ValidateSpec};

use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::map::MapOutput;
use crate::order::Entry;
use crate::order::scatter::Staging;
use crate::record::arena::Arena;
use crate::reduce::{RangeProof, ReduceScratch};
use crate::storage::Store;
use crate::storage::input::InputFile;

/// One try of one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptId {
    /// The task's number in its job, over all stages.
    pub task: u32,
    /// 0 for the first try.
    pub attempt: u32,
}

/// What a task is to do.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskSpec {
    /// Reads keys here and there.
    Sample(SampleSpec),
    /// Scatters a split.
    Map(MapSpec),
    /// Writes ranges of the output.
    Reduce(ReduceSpec),
    /// Makes records.
    Generate(GenerateSpec),
    /// Checks records.
    Validate(ValidateSpec),
}

/// What a task did.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskReport {
    /// Keys of the input, with their positions.
    Sample(Vec<Entry>),
    /// What the split held.
    Map(MapReport),
    /// The proof of each range.
    Reduce(Vec<RangeProof>),
    /// The proof of what was made (its order is not asked).
    Generate(RangeProof),
    /// What was found.
    Validate(ValidateReport),
}

/// What the tasks of a job share.
#[derive(Debug)]
pub struct TaskContext {
    /// Where files are.
    pub store: Arc<dyn Store>,
    /// The job's memory.
    pub budget: Budget,
    /// The input.
    pub files: Vec<InputFile>,
    /// Where the input lies; empty for jobs that keep none.
    pub arena: Option<Arena>,
    /// Bytes done, over all tasks of the stage.
    pub done_bytes: AtomicU64,
    /// Map outputs, until the job ends.
    outputs: Mutex<BTreeMap<AttemptId, Arc<MapOutput>>>,
}

impl TaskContext {
    /// The context of a job over `files`.
    pub fn new(
        store: Arc<dyn Store>,
        budget: Budget,
        files: Vec<InputFile>,
        arena: Option<Arena>,
    ) -> Self {
        let (done_bytes, outputs) = (AtomicU64::new(0), Mutex::default());
        TaskContext {
            store,
            budget,
            files,
            arena,
            done_bytes,
            outputs,
        }
    }

    fn arena(&self) -> Result<&Arena> {
        self.arena
            .as_ref()
            .ok_or_else(|| Error::bug("run a task", "the job has no arena"))
    }

    fn keep_output(&self, id: AttemptId, output: MapOutput) {
        self.lock_outputs().insert(id, Arc::new(output));
    }

    fn output_of(&self, id: AttemptId) -> Result<Arc<MapOutput>> {
        let output = self.lock_outputs().get(&id).cloned();
        output.ok_or_else(|| Error::bug("run a task", format!("the output of {id:?} is gone")))
    }

    fn lock_outputs(&self) -> std::sync::MutexGuard<'_, BTreeMap<AttemptId, Arc<MapOutput>>> {
        // A panic elsewhere leaves the map whole: inserting and reading are all that is done to it.
        self.outputs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one worker reuses from task to task.
#[derive(Debug, Default)]
pub struct Scratch {
    staging: Staging,
    reduce: ReduceScratch,
    buffers: crate::storage::overlap::Buffers,
}

/// One attempt, while it runs: who it is, whether it should stop, and how far it is.
#[derive(Debug)]
pub struct Attempt<'a> {
    /// Which attempt of which task.
    pub id: AttemptId,
    /// Set when the attempt should stop.
    pub stop: Arc<AtomicBool>,
    /// The job's count of bytes, to which this attempt adds.
    pub done_bytes: &'a AtomicU64,
    /// What this attempt has added: taken back if it fails.
    pub own_bytes: AtomicU64,
}

impl Attempt<'_> {
    /// Notes `bytes` more done; an error if the attempt should stop.
    pub fn progress(&self, bytes: u64) -> Result<()> {
        self.done_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.own_bytes.fetch_add(bytes, Ordering::Relaxed);
        if self.stop.load(Ordering::Relaxed) {
            Err(Error::cancelled())
        } else {
            Ok(())
        }
    }

    /// Takes back what was noted, as the attempt has failed.
    pub fn take_back(&self) {
        let own = self.own_bytes.swap(0, Ordering::Relaxed);
        self.done_bytes.fetch_sub(own, Ordering::Relaxed);
    }
}

/// Does a task. The same for every runner.
pub fn run_task(
    spec: &TaskSpec,
    context: &TaskContext,
    attempt: &Attempt<'_>,
    scratch: &mut Scratch,
) -> Result<TaskReport> {
    match spec {
        TaskSpec::Sample(spec) => sample::run(spec, context).map(TaskReport::Sample),
        TaskSpec::Map(spec) => map::run(spec, context, attempt, scratch).map(TaskReport::Map),
        TaskSpec::Reduce(spec) => {
            reduce::run(spec, context, attempt, scratch).map(TaskReport::Reduce)
        }
        TaskSpec::Generate(spec) => {
            generate::run(spec, context, attempt, scratch).map(TaskReport::Generate)
        }
        TaskSpec::Validate(spec) => {
            validate::run(spec, context, attempt, scratch).map(TaskReport::Validate)
        }
    }
}

/// A file that several tasks write ranges of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputFile {
    /// Its path in the staging directory.
    pub path: PathBuf,
    /// Its whole length.
    pub bytes: u64,
}

//! A task is a value: `TaskSpec` in, `TaskReport` out, `run_task` does it.
//!
//! A runner decides where a task runs, never what it does. One file per kind of task; all of them only put stages
//! together. What many tasks share while a job runs (the store, the arena, the map outputs) is in [`TaskContext`].

mod again;
mod fingerprint;
mod generate;
mod kept;
mod map;
mod merge;
mod processes;
mod reduce;
mod reprove;
mod sample;
mod sample_keys;
mod spill;
pub mod streaming;
mod validate;
mod work;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub use again::{How, WorkAgain};
pub use generate::{GENERATE_WORKER_BYTES, GenerateSpec};
pub use kept::{Kept, KeptFile, KeptRange, KeptRun, KeptTask};
pub use map::{MapReport, MapSpec};
pub use merge::{MergeRun, MergeRunsSpec, MergeSpec, MergeTarget};
pub use processes::ProcessWork;
pub use reduce::{RangeSpec, ReduceSpec};
pub use reprove::prove_again;
pub use sample::SampleSpec;
pub use sample_keys::SampleKeysSpec;
pub use spill::{RunPlan, SpillInput, SpillSpec};
pub use validate::{VALIDATE_WORKER_BYTES, ValidateReport, ValidateSpec};
pub use work::{Work, WorkFile, WorkKind, WorkReport, WorkSpec, WorkSplit, crc_of};

use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::map::MapOutput;
use crate::merge::output::MergeProof;
use crate::order::Entry;
use crate::order::borders::Border;
use crate::order::scatter::Staging;
use crate::record::arena::{Arena, file_starts};
use crate::reduce::{RangeProof, ReduceScratch};
use crate::spill::{SpillScratch, SpilledRun, Stream};
use crate::storage::input::InputFile;
use crate::storage::overlap::Buffers;
use crate::storage::{Store, WriteFile};

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
    /// Reads keys of any length here and there.
    SampleKeys(SampleKeysSpec),
    /// Sorts what fits, and writes it as runs.
    Spill(SpillSpec),
    /// Merges runs to the output.
    Merge(MergeSpec),
    /// Merges runs to a longer one.
    MergeRuns(MergeRunsSpec),
    /// Makes records.
    Generate(GenerateSpec),
    /// Checks records.
    Validate(ValidateSpec),
    /// Runs people's code.
    Work(WorkSpec),
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
    /// Keys of any length, with their positions.
    SampleKeys(Vec<Border>),
    /// The runs that were written.
    Spill(Vec<SpilledRun>),
    /// The proof of each range, or of all.
    Merge(Vec<MergeProof>),
    /// The run that was made.
    MergeRuns(SpilledRun),
    /// The proof of what was made (its order is not asked).
    Generate(RangeProof),
    /// What was found.
    Validate(ValidateReport),
    /// What people's code made.
    Work(WorkReport),
}

impl TaskReport {
    /// What the task did, by Hadoop's names for it.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        match self {
            TaskReport::Sample(keys) => vec![("SAMPLED_KEYS", keys.len() as u64)],
            TaskReport::SampleKeys(keys) => vec![("SAMPLED_KEYS", keys.len() as u64)],
            TaskReport::Map(map) => vec![
                ("MAP_INPUT_RECORDS", map.records),
                ("MAP_OUTPUT_RECORDS", map.records),
                ("FILE_BYTES_READ", map.bytes),
            ],
            TaskReport::Spill(runs) => {
                let sum = |of: fn(&SpilledRun) -> u64| runs.iter().map(of).sum();
                vec![
                    ("MAP_INPUT_RECORDS", sum(|run| run.records_read)),
                    ("MAP_OUTPUT_RECORDS", sum(|run| run.records)),
                    ("SPILLED_RECORDS", sum(|run| run.records)),
                    ("SPILLED_RUNS", runs.len() as u64),
                    ("FILE_BYTES_READ", sum(|run| run.bytes_read)),
                    ("FILE_BYTES_WRITTEN", sum(|run| run.bytes)),
                ]
            }
            TaskReport::MergeRuns(run) => vec![
                ("SPILLED_RECORDS", run.records),
                ("FILE_BYTES_READ", run.bytes),
                ("FILE_BYTES_WRITTEN", run.bytes),
            ],
            TaskReport::Reduce(ranges) => {
                let records = ranges.iter().map(|range| range.check.records).sum();
                vec![
                    ("REDUCE_INPUT_RECORDS", records),
                    ("REDUCE_OUTPUT_RECORDS", records),
                ]
            }
            TaskReport::Merge(proofs) => {
                let sum = |of: fn(&MergeProof) -> u64| proofs.iter().map(of).sum();
                vec![
                    ("REDUCE_INPUT_RECORDS", sum(|proof| proof.records)),
                    ("REDUCE_OUTPUT_RECORDS", sum(|proof| proof.records)),
                    ("FILE_BYTES_WRITTEN", sum(|proof| proof.bytes)),
                ]
            }
            TaskReport::Generate(range) => vec![("MAP_OUTPUT_RECORDS", range.check.records)],
            TaskReport::Validate(found) => vec![("MAP_INPUT_RECORDS", found.check.records)],
            TaskReport::Work(report) => report.counters(),
        }
    }

    /// The runs that it wrote.
    pub fn runs(&self) -> &[SpilledRun] {
        match self {
            TaskReport::Spill(runs) => runs,
            TaskReport::MergeRuns(run) => std::slice::from_ref(run),
            TaskReport::Work(report) => &report.runs,
            _ => &[],
        }
    }
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
    /// Where each file begins in the job's address space.
    pub starts: Vec<u64>,
    /// The job's name.
    pub job_id: String,
    /// Input that is read once, for jobs that have such.
    pub streams: Vec<Stream>,
    /// Where runs are: the same store, or memory.
    pub runs: Arc<dyn Store>,
    /// Output that is written once, for jobs that have such.
    pub sink: Option<Arc<dyn WriteFile>>,
    /// Who runs people's code, in jobs that have some.
    pub work: Option<Arc<dyn Work>>,
    /// Whether what a task wrote is made durable before what it was made of may go.
    pub durable: bool,
    /// Whether files of people's code must be known again by another process.
    pub remembered: bool,
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
        let sizes: Vec<u64> = files.iter().map(|file| file.stat.bytes).collect();
        TaskContext {
            runs: Arc::clone(&store),
            store,
            budget,
            files,
            arena,
            starts: file_starts(&sizes),
            job_id: String::new(),
            streams: Vec::new(),
            sink: None,
            work: None,
            durable: false,
            remembered: false,
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
    spill: SpillScratch,
    merge: Buffers,
    buffers: Buffers,
    spent: Vec<Spent>,
}

/// A part of a run that is not needed any more.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Spent {
    run: PathBuf,
    bytes: Range<u64>,
}

impl Scratch {
    /// Whether the last task used up runs.
    pub fn has_spent(&self) -> bool {
        !self.spent.is_empty()
    }

    /// Gives back the space of what the last task has used up: to be called when its report is in the history, or
    /// nothing would be left to go on from.
    pub fn settle(&mut self, context: &TaskContext) {
        for Spent { run, bytes } in self.spent.drain(..) {
            // Space that is not given back now is given back at the job's end.
            let _ = context.runs.discard(&run, bytes);
        }
    }

    /// Gives back what spilling has no use for: stages have the memory in turn.
    fn keep_for_spill(&mut self) {
        let spill = std::mem::take(&mut self.spill);
        *self = Scratch {
            spill,
            ..Scratch::default()
        };
    }

    /// Gives back what merging has no use for.
    fn keep_for_merge(&mut self) {
        let (merge, buffers) = (
            std::mem::take(&mut self.merge),
            std::mem::take(&mut self.buffers),
        );
        *self = Scratch {
            merge,
            buffers,
            ..Scratch::default()
        };
    }
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
        TaskSpec::SampleKeys(spec) => {
            sample_keys::run(spec, context, attempt).map(TaskReport::SampleKeys)
        }
        TaskSpec::Spill(spec) => spill::run(spec, context, attempt, scratch).map(TaskReport::Spill),
        TaskSpec::Merge(spec) => merge::run(spec, context, attempt, scratch).map(TaskReport::Merge),
        TaskSpec::MergeRuns(spec) => {
            merge::run_to_run(spec, context, attempt, scratch).map(TaskReport::MergeRuns)
        }
        TaskSpec::Generate(spec) => {
            generate::run(spec, context, attempt, scratch).map(TaskReport::Generate)
        }
        TaskSpec::Validate(spec) => {
            validate::run(spec, context, attempt, scratch).map(TaskReport::Validate)
        }
        TaskSpec::Work(spec) => work::run(spec, context, attempt).map(TaskReport::Work),
    }
}

/// The error of a task that was told to find pairs in its input.
fn not_read() -> Error {
    Error::bug("run a task", "pairs are made by tasks, not found in input")
}

/// A file that several tasks write ranges of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputFile {
    /// Its path in the staging directory.
    pub path: PathBuf,
    /// Its whole length.
    pub bytes: u64,
}

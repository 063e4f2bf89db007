//! `sort` of lines that fit in memory: they are sorted where they lie, and copied to the output.
//!
//! ```text
//!   sample keys ──borders──▶ map: scatter lines to buckets ──sizes──▶ reduce: gather, sort, write ──proof──▶ commit
//! ```
//!
//! Plain lines of files, to a file that tasks can write parts of. Others go by runs, in memory where they fit; and so do
//! these where lines turn out to be so many that memory has no room for their entries.
//!
//! Decision: docs/decisions/lines-in-memory.md.

use std::sync::{Arc, Mutex};

use super::input::SortInput;
use super::keys::SortKeys;
use super::plan::{PLACES_PER_TASK, output_share, sample_tasks};
use super::{SortOutcome, SortOutput, SortSpec, prove, sorted};
use crate::driver::{Next, Reports, StagedPlan, stage};
use crate::jobs::runs::{RunOutcome, Targets, count_runs};
use crate::jobs::steps::RunningJob;
use crate::jobs::steps::explain::{self, PlannedRuns, memory};
use crate::jobs::steps::map_inputs::map_inputs;
use crate::plan::explain::Explanation;
use crate::plan::format::RecordFormat;
use gristmill_base::budget::Budget;
use gristmill_base::error::{Error, Kind, Result, show_bytes};
use gristmill_base::order::borders::borders_from_sample;
use gristmill_base::order::lines::{ASCENDING, LineStaging, POSITIONS, ScatteredLines, shortened};
use gristmill_base::record::arena::layout_bytes;
use gristmill_base::record::shape::{LineShape, Shape};
use gristmill_base::sync::lock;
use gristmill_storage::Caps;
use gristmill_tasks::reduce::lines::oversized_bytes;
use gristmill_tasks::split::records::at_records;
use gristmill_tasks::split::{Split, splits};
use gristmill_tasks::task::{
    GATHER_WORKER_BYTES, GatherSpec, InMemory, InProcess, LinePlan, MergeTarget, NodeContext,
    SampleKeysSpec, ScatterReport, ScatterSpec, TaskContext,
};

/// Input below which runs do: cutting it would cost more than it saves.
const BYTES_MIN: u64 = 8 << 20;

/// Bytes of a bucket: its lines, and an entry for each, stay in a core's own cache.
const BUCKET_BYTES: u64 = 384 << 10;
const BUCKETS_MAX: u64 = 1 << 14;

/// Keys sampled for each bucket: each is a read. Buckets need not be even.
const SAMPLES_PER_BUCKET: u64 = 8;

/// What a task scatters.
const SPLIT_BYTES_MIN: u64 = 1 << 20;
const SPLIT_BYTES_MAX: u64 = 64 << 20;

/// Splits for each worker, where there is enough to do: tasks should end together.
const SPLITS_PER_WORKER: u64 = 8;

/// Memory for tasks and their reports.
const FIXED_BYTES: u64 = 2 << 20;

/// A sort of lines in memory that is planned.
#[derive(Debug)]
pub(super) struct LineSort {
    shape: LineShape,
    bytes: u64,
    buckets: usize,
    splits: Vec<Split>,
    /// The input, as if all of it were read.
    input_bytes: u64,
    /// Entries of lines, for more of them than there seem to be.
    entry_bytes: u64,
    /// What workers hold.
    worker_bytes: u64,
}

impl LineSort {
    /// The plan; nothing where the lines go by runs.
    pub(super) fn of(
        job: &RunningJob<'_>,
        spec: &SortSpec,
        input: &SortInput,
    ) -> Result<Option<Self>> {
        let bytes = input.bytes();
        if bytes < BYTES_MIN || !is_plain(job, spec, input)? {
            return Ok(None);
        }
        let shape = LineShape {
            descending: spec.reverse,
        };
        let sizes: Vec<u64> = input.files.iter().map(|file| file.stat.bytes).collect();
        let input_bytes = layout_bytes(&sizes);
        let buckets = (bytes / BUCKET_BYTES).clamp(1, BUCKETS_MAX) as usize;
        let workers = job.workers as u64;
        let target =
            (bytes / (workers * SPLITS_PER_WORKER)).clamp(SPLIT_BYTES_MIN, SPLIT_BYTES_MAX);
        let cut = splits(&sizes, target, 1);
        let lines = bytes / input.typical_line(job.store())?.max(1);
        let entry_bytes = ScatteredLines::bytes(lines + lines / 4, cut.len() as u64, buckets);
        let worker_bytes = workers * (GATHER_WORKER_BYTES + LineStaging::bytes(buckets));
        let mut planned = LineSort {
            shape,
            bytes,
            buckets,
            splits: Vec::new(),
            input_bytes,
            entry_bytes,
            worker_bytes,
        };
        let room = job.room_for(&input.files).free_bytes();
        if planned.needed_bytes() > room || input_bytes > POSITIONS {
            return Ok(None);
        }
        planned.splits = at_records(shape, job.store(), &input.files, cut)?;
        Ok(Some(planned))
    }

    fn needed_bytes(&self) -> u64 {
        self.input_bytes + self.entry_bytes + self.worker_bytes + FIXED_BYTES
    }

    /// Sorts. Sets `writing` when output may have been written: until then runs can do what this cannot.
    pub(super) fn run(
        &self,
        job: &mut RunningJob<'_>,
        input: &SortInput,
        output: &SortOutput<'_>,
        writing: &mut bool,
    ) -> Result<SortOutcome> {
        let files = input.files.len();
        job.watched.planned(|| self.explain(job, files));
        let store = Arc::clone(&job.environment.store);
        let arena = map_inputs(&store, &input.files)?;
        let node = NodeContext::new(store, job.budget());
        let process = InProcess::Memory(InMemory::new(arena));
        let context = TaskContext::new(job.shared(input.files.clone()), node, process);
        let budget = context.node.budget.clone();
        let _input = budget.reserve("input, mapped or read", self.input_bytes)?;
        let _tasks = budget.reserve("tasks and their reports", FIXED_BYTES)?;
        let _workers = budget.reserve("lines and buffers of workers", self.worker_bytes)?;
        let outcome = Arc::new(Mutex::new(RunOutcome::default()));
        let stages = Stages {
            shape: self.shape,
            bytes: self.bytes,
            buckets: self.buckets,
            workers: job.workers,
            splits: self.splits.clone(),
            targets: output.targets(&context.node.store, false, self.bytes),
            budget,
            outcome: Arc::clone(&outcome),
        };
        let records = (self.shape.kind(), false);
        let places = output.places(Vec::new(), records, job.common.compress_runs);
        let ended = job.run_kept(stages.plan(self.sample(input)), &context, &places);
        *writing = lock(&outcome).merging;
        ended.map_err(read_twice)?;
        let outcome = lock(&outcome);
        prove((self.shape, false), &context, &outcome, Some(1)).map_err(read_twice)?;
        count_runs(job, outcome.bytes_read, &outcome);
        Ok(sorted(&outcome, false))
    }

    /// What `explain` says of it.
    pub(super) fn explain(&self, job: &RunningJob<'_>, files: usize) -> Result<Explanation> {
        let bytes = self.bytes;
        let shown = show_bytes(job.room().held_bytes + self.needed_bytes());
        let mut explained = Explanation {
            mode: "memory",
            reason: format!("sorted in memory it needs {shown}, which the budget has"),
            parts: 1,
            buckets: self.buckets,
            ..job.explanation(files, bytes)
        };
        explained.reservations = vec![
            memory("input, mapped or read", self.input_bytes),
            memory("entries of lines", self.entry_bytes),
            memory(
                "to scatter and to gather: lines, buffers",
                self.worker_bytes,
            ),
            memory("tasks and their reports", FIXED_BYTES),
        ];
        let ranges = (bytes / output_share(bytes)).max(1);
        explained.stages = vec![
            explain::stage(
                "sample",
                self.sampled().div_ceil(PLACES_PER_TASK as u64),
                0,
                0,
            ),
            explain::stage("map", self.splits.len() as u64, bytes, 0),
            explain::stage("reduce", ranges, 0, bytes),
        ];
        explained.disks = job.disks(Some(bytes), PlannedRuns::None)?;
        Ok(job.with_process(explained))
    }

    fn sampled(&self) -> u64 {
        self.buckets as u64 * SAMPLES_PER_BUCKET
    }

    /// Tasks that sample keys at even places.
    fn sample(&self, input: &SortInput) -> Vec<SampleKeysSpec> {
        let places = input.even_places(self.bytes / self.sampled());
        let of_all = SampleKeysSpec {
            places: Vec::new(),
            shape: self.shape.kind(),
            keys: Vec::new(),
            table: None,
            decoded: Vec::new(),
        };
        sample_tasks(&places, &of_all)
    }
}

/// The input is read by maps and again by reduces: where the output is not proved, it has likely changed in between.
fn read_twice(error: Error) -> Error {
    if error.kind() == Kind::Proof {
        return error.advise("let no program write to the input, which may have changed meanwhile, and run the job again");
    }
    error
}

/// Whether these are lines without keys, from files of this machine to a file that tasks can write parts of, and tasks share
/// memory.
fn is_plain(job: &RunningJob<'_>, spec: &SortSpec, input: &SortInput) -> Result<bool> {
    let from_files = input.streams.is_empty()
        && !input.has_compressed()
        && !input.files.iter().any(|file| file.path.is_remote());
    let plain_output = spec.compress.codec().is_none() && spec.parts.is_none();
    let target = spec.target().filter(|_| spec.writes_file() && plain_output);
    let to_parts = target
        .is_some_and(|target| !target.is_remote() && job.store().caps(target) == Caps::Ranges);
    let whole_lines =
        spec.format == RecordFormat::Lines && !spec.is_table() && SortKeys::of(spec)?.is_none();
    Ok(job.sorts_in_memory() && from_files && to_parts && whole_lines && !spec.unique)
}

/// What the stages of the sort know.
struct Stages {
    shape: LineShape,
    bytes: u64,
    buckets: usize,
    workers: usize,
    splits: Vec<Split>,
    targets: Targets,
    budget: Budget,
    outcome: Arc<Mutex<RunOutcome>>,
}

impl Stages {
    /// The plan, which begins with these tasks.
    fn plan(self, sample: Vec<SampleKeysSpec>) -> StagedPlan {
        let sample = stage("sample", 0, sample);
        StagedPlan::new(sample.then(|keys| {
            let keys = keys.into_iter().flatten().collect();
            let borders = borders_from_sample(ASCENDING, keys, self.buckets);
            let plan = LinePlan {
                shape: self.shape,
                borders: shortened(&borders),
            };
            Ok(self.scatter(Arc::new(plan)))
        }))
    }

    fn scatter(self, plan: Arc<LinePlan>) -> Next {
        let task = |split: &Split| ScatterSpec {
            split: split.clone(),
            plan: Arc::clone(&plan),
        };
        let map = stage("map", self.bytes, self.splits.iter().map(task));
        map.then(move |reports| self.gather(reports, &plan))
    }

    /// The input side of the proof is complete here: what was read is counted.
    fn gather(
        mut self,
        reports: Reports<ScatterReport<(u64, u64)>>,
        plan: &Arc<LinePlan>,
    ) -> Result<Next> {
        let mut sizes = vec![(0, 0); plan.borders.len() + 1];
        let (mut inputs, mut longest) = (Vec::new(), 0);
        let mut outcome = lock(&self.outcome);
        for report in reports {
            inputs.push(report.output);
            outcome.records_read += report.records;
            outcome.bytes_read += report.bytes;
            outcome.checksum_read += report.checksum;
            longest = report.longest.max(longest);
            for (sum, size) in sizes.iter_mut().zip(report.sizes) {
                *sum = (sum.0 + size.0, sum.1 + size.1);
            }
        }
        let in_buckets: u64 = sizes.iter().map(|size| size.1).sum();
        if in_buckets != outcome.records_read {
            let read = outcome.records_read;
            let message = format!("{in_buckets} of {read} lines are in buckets");
            return Err(Error::new(Kind::Proof, "prove the input", message));
        }
        (outcome.first_records, outcome.first_bytes) = (outcome.records_read, outcome.bytes_read);
        let targets = (self.targets)(&sizes)?;
        // Memory for the buckets that are too large to be gathered, and for long lines.
        let large = oversized_bytes(&sizes, longest, self.workers, targets.len());
        let large = match large {
            0 => None,
            large => Some(self.budget.reserve("large buckets, long lines", large)?),
        };
        let inputs = Arc::new(inputs);
        let task = |target: &MergeTarget| match target {
            MergeTarget::Ranges(ranges) => Ok(GatherSpec {
                ranges: ranges.clone(),
                inputs: Arc::clone(&inputs),
                plan: Arc::clone(plan),
            }),
            _ => Err(Error::bug(
                "sort lines in memory",
                "the output has no ranges",
            )),
        };
        let tasks = targets.iter().map(task).collect::<Result<Vec<_>>>()?;
        outcome.merging = true;
        let reduce = stage("reduce", outcome.bytes_read, tasks);
        drop(outcome);
        Ok(reduce.then(move |proofs| {
            lock(&self.outcome).merged = targets.into_iter().zip(proofs).collect();
            drop(large);
            Ok(Next::end())
        }))
    }
}

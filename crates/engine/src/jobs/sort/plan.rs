//! How `sort` goes about it: what memory is for, what each task reads, where the output is cut.

use super::SortSpec;
use super::input::Input;
use super::keys::{Growth, SortKeys};
use crate::budget::Room;
use crate::driver::Stage;
use crate::error::Result;
use crate::jobs::runs::Borders;
use crate::jobs::steps::{Job, wrong_report};
use crate::order::borders::borders_from_sample;
use crate::plan::spill::MemoryLayout;
use crate::record::shape::Shape;
use crate::split::records::at_records;
use crate::split::{splits, stride};
use crate::storage::location::Location;
use crate::storage::stores::Stores;
use crate::task::{
    MergeTarget, OutputFile, RangeSpec, SampleKeysSpec, SpillInput, TaskReport, TaskSpec,
};

/// Input below which one merge writes the output: cutting it would cost more than it saves.
const CUT_BYTES_MIN: u64 = 32 << 20;

/// Bytes of a bucket of runs.
const BUCKET_BYTES: u64 = 8 << 20;
const BUCKETS_MAX: u64 = 1024;

/// Keys sampled for each bucket.
const SAMPLES_PER_BUCKET: u64 = 32;

/// What a task reads at most where the runs stay in memory: what is sorted at once should not leave the caches too far
/// behind, and tasks should end together.
const MEMORY_TASK_BYTES: u64 = 96 << 20;

/// Runs that memory is worth holding: for more input each is longer.
const FEW_RUNS: u64 = 50;

/// A sort that is planned.
pub(super) struct Sort<'a, S> {
    pub(super) spec: &'a SortSpec,
    pub(super) shape: S,
    /// The keys of lines, where they have other ones than themselves.
    pub(super) keys: Option<SortKeys>,
    pub(super) numbers: MemoryLayout,
    /// Bytes of the files' records in runs, which codes make longer.
    pub(super) grown: u64,
    /// What memory may hold of the runs.
    pub(super) memory_runs: u64,
    /// Whether that is all of them.
    pub(super) fits: bool,
    /// What a spill task reads of files.
    share_bytes: u64,
    pub(super) buckets: usize,
}

impl<'a, S: Shape> Sort<'a, S> {
    /// The plan; `in_memory` says whether memory may hold runs if it has room for them.
    pub(super) fn new(
        job: &Job<'_>,
        spec: &'a SortSpec,
        shape: S,
        input: &Input,
        in_memory: bool,
    ) -> Result<Self> {
        let (typical, longest) = match shape.kind().record_bytes() {
            Some(bytes) => (bytes as u64, bytes as u64),
            None => (input.typical_line(job.store())?, 0),
        };
        let keys = SortKeys::of(spec)?;
        let growth = match &keys {
            Some(keys) => keys.growth(job.store(), input)?,
            None => Growth::NONE,
        };
        let typical = (typical as f64 * growth.planned) as u64;
        let (room, workers, known) = (job.room_for(&input.files), job.workers, input.bytes());
        let planned_bytes = (known as f64 * growth.planned) as u64;
        let runs_bytes =
            planned_bytes + planned_bytes / 1000 + (input.files.len() as u64 + 64) * 16_384;
        let plan = |room: Room| MemoryLayout::new(room, workers, typical, longest);
        let streams = !input.streams.is_empty();
        // Memory that is reserved and not touched costs nothing: long lines have room, and tasks are small.
        let share_of = |numbers: &MemoryLayout| {
            numbers
                .task_bytes()
                .min(MEMORY_TASK_BYTES.max(known / FEW_RUNS))
        };
        // A pass would need room for all runs a second time.
        let merged_at_once = |numbers: &MemoryLayout| {
            let tasks = spill_tasks(planned_bytes, share_of(numbers), workers);
            numbers.passes((tasks + tasks / 8) as usize) == 0
        };
        let memory_runs = match (in_memory && job.runner.shares_memory(), streams) {
            (false, _) => room.free_bytes(),
            (true, true) => room.free_bytes() / 2,
            (true, false) => runs_bytes,
        };
        let (numbers, memory_runs) = match plan(room.less(memory_runs)) {
            Ok(numbers) if streams => (numbers, memory_runs),
            Ok(numbers) if merged_at_once(&numbers) => (numbers.in_memory(), memory_runs),
            _ => (plan(room)?, 0),
        };
        let fits = memory_runs > 0 && !streams;
        let share_bytes = if fits {
            share_of(&numbers)
        } else {
            numbers.task_bytes()
        };
        // Of the lines that codes are put in front of, fewer fill the memory.
        let share_bytes = (share_bytes as f64 / growth.planned) as u64;
        let cut = known >= CUT_BYTES_MIN && !streams && !spec.unique && spec.output.is_some();
        let buckets = if cut {
            (known / BUCKET_BYTES).clamp(1, BUCKETS_MAX)
        } else {
            1
        };
        Ok(Sort {
            spec,
            shape,
            keys,
            numbers,
            grown: (known as f64 * growth.seen) as u64,
            memory_runs,
            fits,
            share_bytes,
            buckets: buckets as usize,
        })
    }

    /// What the spill tasks read: shares of the files, and the streams between them, in input order.
    pub(super) fn inputs(
        &self,
        store: &Stores,
        input: &Input,
        workers: usize,
    ) -> Result<Vec<SpillInput>> {
        let record_bytes = self.shape.kind().record_bytes().unwrap_or(1) as u64;
        let usable = self.share_bytes;
        let mut inputs = Vec::new();
        let mut first = 0;
        let ends = input.streams.iter().map(|(place, ..)| *place);
        for (stream, end) in ends.chain([input.files.len()]).enumerate() {
            let between = first..end;
            let size = |(number, file): (usize, &crate::storage::input::InputFile)| {
                if between.contains(&number) {
                    file.stat.bytes
                } else {
                    0
                }
            };
            let sizes: Vec<u64> = input.files.iter().enumerate().map(size).collect();
            let bytes: u64 = sizes.iter().sum();
            let tasks = spill_tasks(bytes, usable, workers).max(1);
            let target = bytes.div_ceil(tasks).clamp(usable.min(1 << 20), usable);
            let cut = splits(&sizes, target, stride(record_bytes));
            let cut = match &self.keys {
                Some(keys) => at_records(keys.lines(), store, &input.files, cut)?,
                None => at_records(self.shape, store, &input.files, cut)?,
            };
            inputs.extend(cut.into_iter().map(SpillInput::Ranges));
            if stream < input.streams.len() {
                inputs.extend((0..workers).map(|_| SpillInput::Stream(stream)));
            }
            first = end;
        }
        Ok(inputs)
    }

    /// The stage that samples keys at even places, where the output is cut.
    pub(super) fn sample(&self, input: &Input) -> Option<Stage> {
        if self.buckets == 1 {
            return None;
        }
        let count = self.buckets as u64 * SAMPLES_PER_BUCKET;
        let places = input.even_places(input.bytes() / count);
        let shape = self.shape.kind();
        let keys = self
            .keys
            .as_ref()
            .map(|keys| keys.words.clone())
            .unwrap_or_default();
        let task = |places: &[(usize, u64)]| {
            TaskSpec::SampleKeys(SampleKeysSpec {
                places: places.to_vec(),
                shape,
                keys: keys.clone(),
            })
        };
        let tasks = places.chunks(1024).map(task).collect();
        Some(Stage::new("sample", 0, tasks))
    }

    /// Where runs are cut, from the reports of the sample tasks.
    pub(super) fn borders(&self) -> Borders {
        let (shape, buckets) = (self.shape, self.buckets);
        Box::new(move |reports| {
            let mut sample = Vec::new();
            for report in reports {
                match report {
                    TaskReport::SampleKeys(keys) => sample.extend(keys),
                    _ => return Err(wrong_report()),
                }
            }
            Ok(borders_from_sample(shape, sample, buckets))
        })
    }
}

/// How many tasks spill so many bytes, a share each.
fn spill_tasks(bytes: u64, share_bytes: u64, workers: usize) -> u64 {
    bytes
        .div_ceil(share_bytes.max(1))
        .next_multiple_of(workers as u64)
}

/// Merge tasks of ranges of one file, of about `share` bytes each.
pub(super) fn ranges(path: &Location, sizes: &[(u64, u64)], share: u64) -> Vec<MergeTarget> {
    let file = OutputFile {
        path: path.clone(),
        bytes: sizes.iter().map(|(bytes, _)| bytes).sum(),
    };
    let (mut targets, mut start, mut offset, mut bytes) = (Vec::new(), 0, 0, 0);
    for (bucket, size) in sizes.iter().enumerate() {
        bytes += size.0;
        let last = bucket + 1 == sizes.len();
        if bytes >= share || last {
            targets.push(MergeTarget::Ranges(vec![RangeSpec {
                file: file.clone(),
                offset,
                buckets: start..bucket + 1,
            }]));
            (start, offset, bytes) = (bucket + 1, offset + bytes, 0);
        }
    }
    targets
}

//! How `sort` goes about it: what memory is for, what each task reads, where the output is cut.

use std::ops::Range;
use std::path::PathBuf;

use super::SortSpec;
use super::columns::Table;
use super::input::Input;
use super::keys::{Growth, SortKeys};
use super::table;
use crate::budget::Room;
use crate::codec::Codec;
use crate::driver::Stage;
use crate::error::Result;
use crate::jobs::runs::Borders;
use crate::jobs::steps::{Job, wrong_report};
use crate::order::borders::{Border, borders_from_sample};
use crate::plan::spill::MemoryLayout;
use crate::record::shape::Shape;
use crate::storage::location::Location;
use crate::task::{
    Codes, MergeTarget, OutputFile, RangeSpec, SampleKeysSpec, TaskReport, TaskSpec,
};

/// Input below which one merge writes the output: cutting it would cost more than it saves.
const CUT_BYTES_MIN: u64 = 32 << 20;

/// Bytes of a bucket of runs.
const BUCKET_BYTES: u64 = 8 << 20;
const BUCKETS_MAX: u64 = 1024;

/// Buckets of a part, at least: parts begin where buckets do.
const BUCKETS_PER_PART: u64 = 4;

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
    /// What rows are, where the input is a table.
    pub(super) table: Option<Table>,
    pub(super) numbers: MemoryLayout,
    /// Bytes of the files' records in runs, which codes make longer.
    pub(super) grown: u64,
    /// What memory may hold of the runs.
    pub(super) memory_runs: u64,
    /// Whether that is all of them.
    pub(super) fits: bool,
    /// How many files are compressed.
    pub(super) compressed: usize,
    /// What a spill task reads of files.
    pub(super) share_bytes: u64,
    pub(super) buckets: usize,
    /// Whether all records with equal keys lie in one bucket: where only one of them stays, and of compressed files, whose
    /// records have no positions.
    together: bool,
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
        let keys = match &input.table {
            Some(_) => None,
            None => SortKeys::of(spec)?,
        };
        let growth = match (&input.table, &keys) {
            (Some(table), _) => table::growth(table, job.store(), input)?,
            (None, Some(keys)) => keys.growth(job.store(), input)?,
            (None, None) => Growth::NONE,
        };
        let typical = (typical as f64 * growth.planned) as u64;
        let (room, workers, known) = (job.room_for(&input.files), job.workers, input.bytes());
        let planned_bytes = (known as f64 * growth.planned) as u64;
        let runs_bytes =
            planned_bytes + planned_bytes / 1000 + (input.files.len() as u64 + 64) * 16_384;
        let streams = input.has_unknown_bytes();
        let grown = (!streams && !input.has_compressed()).then_some(planned_bytes);
        let plan = |room: Room| {
            let numbers = MemoryLayout::new(room, workers, typical, longest)?;
            let numbers = numbers.opening(job.runs_at_once);
            Ok(match grown {
                Some(bytes) => numbers.for_input(bytes),
                None => numbers,
            })
        };
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
            Ok(numbers) if streams => (numbers.beside_runs(), memory_runs),
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
        Ok(Sort {
            spec,
            shape,
            keys,
            table: input.table.clone(),
            numbers,
            grown: (known as f64 * growth.seen) as u64,
            memory_runs,
            fits,
            compressed: input.codecs.iter().flatten().count(),
            share_bytes,
            buckets: buckets_of(spec, (!streams).then_some(known)),
            together: spec.unique || input.has_compressed(),
        })
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
        let table = self.table.as_ref().map(|table| table.keys.clone());
        let task = |places: &[(usize, u64)], decoded: &[(usize, Codec)]| {
            TaskSpec::SampleKeys(SampleKeysSpec {
                places: places.to_vec(),
                decoded: decoded.to_vec(),
                shape,
                keys: keys.clone(),
                table: table.clone(),
            })
        };
        let codecs = input.codecs.iter().enumerate();
        let decoded: Vec<_> = codecs
            .filter_map(|(file, codec)| codec.map(|codec| (file, codec)))
            .collect();
        let mut tasks: Vec<_> = places
            .chunks(1024)
            .map(|places| task(places, &[]))
            .collect();
        tasks.extend(decoded.chunks(16).map(|decoded| task(&[], decoded)));
        (!tasks.is_empty()).then(|| Stage::new("sample", 0, tasks))
    }

    /// What gives lines of an output, whose first file is named, their codes again.
    pub(super) fn codes(&self, first_file: Option<&PathBuf>) -> Option<Codes> {
        let rows = |table: &Table| Codes::Rows {
            table: table.keys.clone(),
            first_file: first_file.cloned().unwrap_or_default(),
        };
        let lines = |keys: &SortKeys| Codes::Lines(keys.words.clone());
        let of_table = self.table.as_ref().map(rows);
        of_table.or_else(|| self.keys.as_ref().map(lines))
    }

    /// Where runs are cut, from the reports of the sample tasks.
    pub(super) fn borders(&self) -> Borders {
        let (shape, buckets) = (self.shape, self.buckets);
        let together = self.together;
        Box::new(move |reports| {
            let mut sample = Vec::new();
            for report in reports {
                match report {
                    TaskReport::SampleKeys(keys) => sample.extend(keys),
                    _ => return Err(wrong_report()),
                }
            }
            let mut borders = borders_from_sample(shape, sample, buckets);
            if together {
                borders.iter_mut().for_each(|border| border.position = 0);
            }
            // Of an input without records there is no sample, and parts there are all the same.
            let last = borders.last().cloned();
            let last = last.unwrap_or(Border {
                key: Vec::new(),
                position: 0,
            });
            borders.resize(buckets - 1, last);
            Ok(borders)
        })
    }
}

/// Buckets of an output: several where several tasks write it. How much is read may not be known.
fn buckets_of(spec: &SortSpec, known: Option<u64>) -> usize {
    let parts = spec.parts.unwrap_or(1) as u64;
    // So many that parts can be even.
    let least = if parts > 1 {
        parts * BUCKETS_PER_PART
    } else {
        1
    };
    let whole = spec.unique || spec.compress.codec().is_some();
    let is_cut = |known: &u64| *known >= CUT_BYTES_MIN && !whole && spec.output.is_some();
    let natural = known
        .filter(is_cut)
        .map_or(1, |known| (known / BUCKET_BYTES).clamp(1, BUCKETS_MAX));
    natural.max(least) as usize
}

/// How many tasks spill so many bytes, a share each.
pub(super) fn spill_tasks(bytes: u64, share_bytes: u64, workers: usize) -> u64 {
    bytes
        .div_ceil(share_bytes.max(1))
        .next_multiple_of(workers as u64)
}

/// Merge tasks of ranges of one file, which holds `buckets`, of about `share` bytes each.
pub(super) fn ranges(
    path: &Location,
    sizes: &[(u64, u64)],
    buckets: Range<usize>,
    share: u64,
) -> Vec<MergeTarget> {
    let in_file = sizes.get(buckets.clone()).unwrap_or_default();
    let file = OutputFile {
        path: path.clone(),
        bytes: in_file.iter().map(|(bytes, _)| bytes).sum(),
    };
    let (mut targets, mut start, mut offset, mut bytes) = (Vec::new(), buckets.start, 0, 0);
    for (bucket, size) in (buckets.start..).zip(in_file) {
        bytes += size.0;
        let last = bucket + 1 == buckets.end;
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

//! How `sort` goes about it: what memory is for, what each task reads, where the output is cut.

use std::ops::Range;
use std::path::PathBuf;

use super::SortSpec;
use super::input::SortInput;
use super::keys::{Growth, SortKeys};
use super::table;
use crate::driver::{TypedStage, stage};
use crate::jobs::steps::RunningJob;
use crate::jobs::tables::InputTable;
use crate::plan::node_runs::layout_on_nodes;
use crate::plan::spill::MemoryLayout;
use gristmill_base::budget::JobMemory;
use gristmill_base::error::Result;
use gristmill_base::order::borders::{Border, borders_from_sample};
use gristmill_base::record::shape::Shape;
use gristmill_storage::location::Location;
use gristmill_tasks::task::{Codes, MergeTarget, OutputFile, RangeSpec, SampleKeysSpec};

/// Input below which one merge writes the output: cutting it would cost more than it saves.
const CUT_BYTES_MIN: u64 = 32 << 20;

/// Bytes of a bucket of runs.
const BUCKET_BYTES: u64 = 8 << 20;
const BUCKETS_MAX: u64 = 1024;

/// Buckets of a part, at least: parts begin where buckets do.
const BUCKETS_PER_PART: u64 = 4;

/// Keys sampled for each bucket.
const SAMPLES_PER_BUCKET: u64 = 32;

/// Places that a task samples.
pub(super) const PLACES_PER_TASK: usize = 1024;

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
    pub(super) table: Option<InputTable>,
    pub(super) memory_layout: MemoryLayout,
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
        job: &RunningJob<'_>,
        spec: &'a SortSpec,
        shape: S,
        input: &SortInput,
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
        let runs_bytes = run_files_bytes(planned_bytes, input.files.len());
        let streams = input.has_unknown_bytes();
        let grown = (!streams && !input.has_compressed()).then_some(planned_bytes);
        let plan = |room: JobMemory| {
            let memory_layout = MemoryLayout::new(room, workers, typical, longest)?;
            let memory_layout = memory_layout.opening(job.runs_at_once);
            Ok(match grown {
                Some(bytes) => memory_layout.for_input(bytes),
                None => memory_layout,
            })
        };
        // Memory that is reserved and not touched costs nothing: long lines have room, and tasks are small.
        let share_of = |memory_layout: &MemoryLayout| {
            memory_layout
                .task_bytes()
                .min(MEMORY_TASK_BYTES.max(known / FEW_RUNS))
        };
        // A pass would need room for all runs a second time.
        let merged_at_once = |memory_layout: &MemoryLayout| {
            let tasks = spill_tasks(planned_bytes, share_of(memory_layout), workers);
            memory_layout.passes((tasks + tasks / 8) as usize) == 0
        };
        let memory_runs = match (in_memory && job.sorts_in_memory(), streams) {
            (false, _) => room.free_bytes(),
            (true, true) => room.free_bytes() / 2,
            (true, false) => runs_bytes,
        };
        let on_nodes = in_memory && job.keeps_runs_on_nodes() && !streams;
        let (memory_layout, memory_runs) = match plan(room.less(memory_runs)) {
            _ if on_nodes => with_node_runs(layout_on_nodes(room, planned_bytes, plan)?),
            Ok(memory_layout) if streams => (memory_layout.beside_runs(), memory_runs),
            Ok(memory_layout) if merged_at_once(&memory_layout) => {
                (memory_layout.in_memory(), memory_runs)
            }
            _ => (plan(room)?, 0),
        };
        let fits = memory_runs > 0 && !streams;
        let share_bytes = match fits && !on_nodes {
            true => share_of(&memory_layout),
            false => memory_layout.task_bytes_of(planned_bytes),
        };
        // Of the lines that codes are put in front of, fewer fill the memory.
        let share_bytes = (share_bytes as f64 / growth.planned) as u64;
        Ok(Sort {
            spec,
            shape,
            keys,
            table: input.table.clone(),
            memory_layout,
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
    pub(super) fn sample(&self, input: &SortInput) -> Option<TypedStage<SampleKeysSpec>> {
        if self.buckets == 1 {
            return None;
        }
        let count = self.buckets as u64 * SAMPLES_PER_BUCKET;
        let places = input.even_places(input.bytes() / count);
        let of_all = SampleKeysSpec {
            places: Vec::new(),
            decoded: Vec::new(),
            shape: self.shape.kind(),
            keys: self.key_words(),
            table: self.table.as_ref().map(|table| table.keys.clone()),
        };
        let codecs = input.codecs.iter().enumerate();
        let decoded: Vec<_> = codecs
            .filter_map(|(file, codec)| codec.map(|codec| (file, codec)))
            .collect();
        let mut tasks = sample_tasks(&places, &of_all);
        tasks.extend(decoded.chunks(16).map(|decoded| SampleKeysSpec {
            decoded: decoded.to_vec(),
            ..of_all.clone()
        }));
        (!tasks.is_empty()).then(|| stage("sample", 0, tasks))
    }

    /// About how many tasks merge an output of so many bytes.
    pub(super) fn merges(&self, bytes: u64) -> u64 {
        (bytes / output_share(bytes)).clamp(1, self.buckets as u64)
    }

    /// GNU sort's options for keys; none where lines have none.
    pub(super) fn key_words(&self) -> Vec<String> {
        let words = self.keys.as_ref().map(|keys| keys.words.clone());
        words.unwrap_or_default()
    }

    /// What gives lines of an output, whose first file is named, their codes again.
    pub(super) fn codes(&self, first_file: Option<&PathBuf>) -> Option<Codes> {
        let rows = |table: &InputTable| Codes::Rows {
            table: table.keys.clone(),
            first_file: first_file.cloned().unwrap_or_default(),
        };
        let lines = |keys: &SortKeys| Codes::Lines(keys.words.clone());
        let of_table = self.table.as_ref().map(rows);
        of_table.or_else(|| self.keys.as_ref().map(lines))
    }

    /// Where runs are cut, from sampled keys.
    pub(super) fn borders(&self) -> impl FnOnce(Vec<Border>) -> Vec<Border> + Send + use<S> {
        let (shape, buckets) = (self.shape, self.buckets);
        let together = self.together;
        move |sample| {
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
            borders
        }
    }
}

/// What runs of so many bytes, of so many files, take as files.
fn run_files_bytes(bytes: u64, files: usize) -> u64 {
    bytes + bytes / 1000 + (files as u64 + 64) * 16_384
}

/// Numbers, and what they leave to runs in the memory of nodes.
fn with_node_runs(layout: MemoryLayout) -> (MemoryLayout, u64) {
    let runs_bytes = layout.node_runs_bytes;
    (layout, runs_bytes)
}

/// Tasks that sample keys at `places`, 1,024 each; what else they know is that of `of_all`.
pub(super) fn sample_tasks(
    places: &[(usize, u64)],
    of_all: &SampleKeysSpec,
) -> Vec<SampleKeysSpec> {
    let task = |places: &[(usize, u64)]| SampleKeysSpec {
        places: places.to_vec(),
        ..of_all.clone()
    };
    places.chunks(PLACES_PER_TASK).map(task).collect()
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

/// What a task writes of an output of so many bytes, about.
pub(super) fn output_share(bytes: u64) -> u64 {
    (bytes / 16).clamp(4 << 20, 128 << 20)
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

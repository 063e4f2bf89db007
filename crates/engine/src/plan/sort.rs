//! The numbers of an in-memory sort of fixed-width records.
//!
//! ```text
//!   input ──▶ splits (map tasks)          buckets ──grouped──▶ ranges (reduce tasks) ──▶ parts
//!             of 4 to 128 MB               about 32,768 entries                          of 256 MB
//! ```
//!
//! Decision: docs/decisions/task-sizes.md.

use std::ops::Range;

use crate::plan::amount::ByteAmount;
use gristmill_base::budget::JobMemory;
use gristmill_base::error::Result;
use gristmill_base::order::cuts::BUCKETS_MAX;
use gristmill_base::order::packed::{Packed, Packing};
use gristmill_base::order::scatter::{EntryStaging, ScatteredEntries};
use gristmill_base::record::arena;
use gristmill_storage::input::InputRange;
use gristmill_tasks::reduce;
use gristmill_tasks::split::{Split, splits, stride};
use gristmill_tasks::task::{OutputFile, RangeSpec};

/// Input for each part, unless the user says how many parts.
pub const PART_BYTES: u64 = 256_000_000;

/// Entries of an even bucket: 256 kB, and as much again where they are sorted to, in a core's own cache.
const BUCKET_ENTRIES: u64 = 1 << 15;

/// Sampled keys for each bucket: bucket sizes then vary by a fifth, part sizes by 2 %.
const SAMPLES_PER_BUCKET: u64 = 32;

/// Sampled keys at least: with fewer records than this, all of them.
const SAMPLES_MIN: u64 = 1 << 14;

/// Records of one stretch of the sample: what a device gives for the price of one.
const STRETCH_RECORDS: u64 = 32;

/// Stretches of a sample task.
const STRETCHES_PER_TASK: usize = 1024;

/// Bytes of a batch: at 16 MB the gather visits places so near each other that they share lines of the page tables.
const BATCH_BYTES: usize = 16 << 20;

/// Bytes of a bucket of a run: small enough that ranges of them make even tasks.
const RUN_BUCKET_BYTES: u64 = 16 << 20;

/// What a job holds beside its data: channels, lists, stacks of threads.
const FIXED_BYTES: u64 = 8 << 20;

/// Bytes of a task's work: small enough that workers end together, large enough that starting a task, and waiting for
/// its last write, is little.
fn task_bytes(input_bytes: u64) -> u64 {
    (input_bytes / 16).clamp(4 << 20, 128 << 20)
}

/// Bytes of a reduce task. Its end waits for its last write, so that few long ones are better than many, as long as all
/// workers have some; the output does not depend on it.
pub fn reduce_bytes(input_bytes: u64, workers: usize) -> u64 {
    (input_bytes / (workers as u64 * TASKS_PER_WORKER)).clamp(4 << 20, 512 << 20)
}

/// Reduce tasks for each worker, where there is enough to do: the last ones end at about the same time.
const TASKS_PER_WORKER: u64 = 8;

/// How an output of `bytes` bytes is cut into files when the user does not say.
///
/// ```
/// use gristmill_engine::plan::sort::default_parts;
/// assert_eq!((default_parts(0), default_parts(1_000_000_000), default_parts(5_000_000_000)), (1, 4, 20));
/// ```
pub fn default_parts(bytes: u64) -> usize {
    bytes.div_ceil(PART_BYTES).max(1) as usize
}

/// The numbers of one sort.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortPlan {
    /// The record length.
    pub record_bytes: usize,
    /// The length of each input file.
    pub file_bytes: Vec<u64>,
    /// Part files.
    pub parts: usize,
    /// Buckets of each part.
    pub buckets_per_part: usize,
    /// What the map tasks read.
    pub splits: Vec<Split>,
    /// Whether one task writes a part: its store takes no ranges.
    pub whole: bool,
    /// Most bytes that a task reads, if the user says so.
    pub split_bytes: Option<u64>,
}

impl SortPlan {
    /// The plan for files of these lengths, cut into `parts` (default: one for each 256 MB).
    ///
    /// ```
    /// use gristmill_engine::plan::sort::SortPlan;
    /// let plan = SortPlan::new(100, vec![5_000_000_000], None)?;
    /// assert_eq!((plan.parts, plan.parts * plan.buckets_per_part, plan.splits.len()), (20, 1540, 38));
    /// # Ok::<(), gristmill_engine::Error>(())
    /// ```
    pub fn new(record_bytes: usize, file_bytes: Vec<u64>, parts: Option<usize>) -> Result<Self> {
        super::amount::check_count("partitions", parts, BUCKETS_MAX)?;
        let input_bytes: u64 = file_bytes.iter().sum();
        let parts = parts.unwrap_or_else(|| default_parts(input_bytes).min(BUCKETS_MAX));
        let records = input_bytes / record_bytes as u64;
        let wanted = records.div_ceil(BUCKET_ENTRIES).div_ceil(parts as u64) as usize;
        let buckets_per_part = wanted.clamp(1, BUCKETS_MAX / parts);
        let splits = splits(
            &file_bytes,
            task_bytes(input_bytes),
            stride(record_bytes as u64),
        );
        Ok(SortPlan {
            record_bytes,
            file_bytes,
            parts,
            buckets_per_part,
            splits,
            whole: false,
            split_bytes: None,
        })
    }

    /// The same with splits of so many bytes, if that is given.
    ///
    /// ```
    /// use gristmill_engine::plan::sort::SortPlan;
    /// let plan = SortPlan::new(100, vec![10_240_000], None)?.split_by(Some(1_024_000));
    /// assert_eq!((plan.splits.len(), plan.spill_splits(1 << 30, 2).len()), (10, 10));
    /// # Ok::<(), gristmill_engine::Error>(())
    /// ```
    #[must_use]
    pub fn split_by(mut self, bytes: Option<u64>) -> Self {
        self.split_bytes = bytes;
        if let Some(bytes) = bytes {
            self.splits = splits(&self.file_bytes, bytes, stride(self.record_bytes as u64));
        }
        self
    }

    /// Bytes of the whole input.
    pub fn input_bytes(&self) -> u64 {
        self.file_bytes.iter().sum()
    }

    /// Records of the whole input.
    pub fn records(&self) -> u64 {
        self.input_bytes() / self.record_bytes as u64
    }

    /// Buckets of the whole output.
    pub fn buckets(&self) -> usize {
        self.parts * self.buckets_per_part
    }

    /// Records that a reduce task gathers together: more make the gather cheaper, and its buffers larger.
    pub fn batch_records(&self) -> usize {
        let most = (BATCH_BYTES / self.record_bytes).clamp(1, reduce::BATCH_RECORDS_MAX);
        let least = most.min(2 * BUCKET_ENTRIES as usize);
        (self.records() as usize / 64).clamp(least, most)
    }

    /// Memory that the job needs with so many workers, beside what the process holds.
    pub fn memory_bytes(&self, workers: usize) -> u64 {
        let entries = self.records() * size_of::<Packed>() as u64;
        let indexes =
            ScatteredEntries::index_bytes(self.records(), self.splits.len() as u64, self.buckets());
        let reduce = reduce::worker_bytes(self.batch_records(), self.record_bytes);
        let worker = EntryStaging::bytes(self.buckets()) + Packing::bytes(self.buckets()) + reduce;
        let each = workers as u64 * worker;
        arena::layout_bytes(&self.file_bytes) + entries + indexes + each + FIXED_BYTES
    }

    /// Whether the job has room; what has not is spilled.
    pub fn fits(&self, room: impl Into<JobMemory>, workers: usize) -> bool {
        self.memory_bytes(workers) <= room.into().free_bytes()
    }

    /// The same parts in fewer buckets, for runs: each run's index has an entry for each of them.
    pub fn coarse(&self) -> Self {
        let part_bytes = self.input_bytes() / self.parts as u64;
        let wanted = part_bytes.div_ceil(RUN_BUCKET_BYTES) as usize;
        SortPlan {
            buckets_per_part: wanted.clamp(1, self.buckets_per_part),
            ..self.clone()
        }
    }

    /// Where the buckets of the coarse plan begin among this plan's, the first bucket left out.
    pub fn coarse_borders(&self) -> impl Iterator<Item = usize> {
        let (fine, coarse) = (self.buckets_per_part, self.coarse().buckets_per_part);
        (1..self.parts * coarse)
            .map(move |bucket| bucket / coarse * fine + bucket % coarse * fine / coarse)
    }

    /// What each spill task reads: shares of the input, at most `usable` bytes, the last ones as large as the others.
    pub fn spill_splits(&self, usable: u64, workers: usize) -> Vec<Split> {
        let usable = usable.min(self.split_bytes.unwrap_or(u64::MAX));
        let tasks = self
            .input_bytes()
            .div_ceil(usable.max(1))
            .next_multiple_of(workers as u64);
        let target = self.input_bytes().div_ceil(tasks.max(1)).min(usable);
        splits(&self.file_bytes, target, stride(self.record_bytes as u64))
    }

    /// The stretches of records to sample, for each sample task.
    pub fn sample(&self) -> Vec<Vec<InputRange>> {
        let wanted = (self.buckets() as u64 * SAMPLES_PER_BUCKET).max(SAMPLES_MIN);
        let stretches = if self.records() <= wanted {
            splits(
                &self.file_bytes,
                1,
                STRETCH_RECORDS * self.record_bytes as u64,
            )
            .concat()
        } else {
            self.even_stretches(wanted / STRETCH_RECORDS)
        };
        stretches
            .chunks(STRETCHES_PER_TASK)
            .map(<[InputRange]>::to_vec)
            .collect()
    }

    /// `count` stretches, which are fewer than there is room for, at even places of the input.
    fn even_stretches(&self, count: u64) -> Vec<InputRange> {
        let (record, records) = (self.record_bytes as u64, self.records());
        let place = |i| (u128::from(i) * u128::from(records) / u128::from(count)) as u64;
        let mut stretches = Vec::with_capacity(count as usize);
        let (mut next, mut first_of_file) = (0, 0);
        for (file, file_bytes) in self.file_bytes.iter().enumerate() {
            let end = first_of_file + file_bytes / record;
            while next < count && place(next) < end {
                let offset = (place(next) - first_of_file) * record;
                let bytes = (STRETCH_RECORDS * record).min(file_bytes - offset);
                stretches.push(InputRange {
                    file,
                    offset,
                    bytes,
                });
                next += 1;
            }
            first_of_file = end;
        }
        stretches
    }

    /// The reduce tasks of so many workers: ranges of parts whose buckets hold so many entries each.
    ///
    /// Every part has a range, if only an empty one: the files are there whatever the data.
    pub fn reduce_tasks(
        &self,
        counts: &[u64],
        workers: usize,
        path_of: &dyn Fn(usize) -> OutputFile,
    ) -> Vec<Vec<RangeSpec>> {
        let target = reduce_bytes(self.input_bytes(), workers);
        let bytes_of =
            |buckets: Range<usize>| counts[buckets].iter().sum::<u64>() * self.record_bytes as u64;
        let (mut tasks, mut task, mut task_size) = (Vec::new(), Vec::new(), 0);
        for part in 0..self.parts {
            let all = part * self.buckets_per_part..(part + 1) * self.buckets_per_part;
            let file = OutputFile {
                bytes: bytes_of(all.clone()),
                ..path_of(part)
            };
            let (mut start, mut offset, mut size) = (all.start, 0, 0);
            for bucket in all.clone() {
                size += bytes_of(bucket..bucket + 1);
                let last = bucket + 1 == all.end;
                if last || !self.whole && task_size + size >= target {
                    task.push(RangeSpec {
                        file: file.clone(),
                        offset,
                        buckets: start..bucket + 1,
                    });
                    (start, offset, task_size) = (bucket + 1, offset + size, task_size + size);
                    size = 0;
                }
                if task_size >= target && (last || !self.whole) {
                    tasks.push(std::mem::take(&mut task));
                    task_size = 0;
                }
            }
        }
        if !task.is_empty() {
            tasks.push(task);
        }
        tasks
    }
}

/// Part `number` of an output: `part-r-00007`.
pub fn part_name(kind: char, number: usize) -> String {
    format!("part-{kind}-{number:05}")
}

/// The workers to use: what was given, or one for each core.
pub fn workers(given: Option<usize>) -> Result<usize> {
    super::amount::check_count("workers", given, 1024)?;
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    Ok(given.unwrap_or_else(cores))
}

/// The memory to use: what was given, or 60 % of what is available.
pub fn memory(given: Option<ByteAmount>, available: Option<u64>) -> u64 {
    let share = available.unwrap_or(1 << 30) / 10 * 6;
    given.map_or(share, |bytes| bytes.0)
}

/// What must be available, so that the memory of a job that is given none is so much.
///
/// ```
/// use gristmill_engine::plan::sort::{available_for, memory};
/// assert!(memory(None, Some(available_for(7_000_001))) >= 7_000_001);
/// ```
pub fn available_for(bytes: u64) -> u64 {
    bytes.div_ceil(6).saturating_mul(10).next_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::Path;

    proptest! {
        /// Reduce tasks tile the buckets, and their offsets tile each part.
        #[test]
        fn reduce_tasks_tile_the_output(
            parts in 1_usize..8,
            shares in proptest::collection::vec(0_u64..60_000, 1..64),
        ) {
            let buckets_per_part = shares.len().div_ceil(parts);
            let mut counts = shares.clone();
            counts.resize(parts * buckets_per_part, 0);
            let records: u64 = counts.iter().sum();
            let mut plan = SortPlan::new(100, vec![records * 100], Some(parts)).unwrap();
            plan.buckets_per_part = buckets_per_part;
            let path = |part| OutputFile { path: part_name('r', part).as_str().into(), bytes: 0 };
            let ranges = plan.reduce_tasks(&counts, 3, &path).concat();
            let (mut next_bucket, mut end) = (0, BTreeEnd::default());
            for range in &ranges {
                prop_assert_eq!(range.buckets.start, next_bucket);
                next_bucket = range.buckets.end;
                let bytes: u64 = counts[range.buckets.clone()].iter().sum::<u64>() * 100;
                prop_assert_eq!(range.offset, end.of(range.file.path.as_typed()));
                end.add(range.file.path.as_typed(), bytes);
                prop_assert!(end.of(range.file.path.as_typed()) <= range.file.bytes);
            }
            prop_assert_eq!(next_bucket, counts.len());
            prop_assert_eq!(end.0.len(), parts);
        }

        #[test]
        fn samples_lie_inside_files(
            files in proptest::collection::vec(0_u64..200_000, 0..6),
            parts in 1_usize..3000,
        ) {
            let sizes: Vec<u64> = files.iter().map(|records| records * 100).collect();
            let plan = SortPlan::new(100, sizes.clone(), Some(parts)).unwrap();
            let stretches = plan.sample().concat();
            for piece in &stretches {
                prop_assert!(piece.bytes > 0 && piece.offset + piece.bytes <= sizes[piece.file]);
            }
            let sampled: u64 = stretches.iter().map(|piece| piece.bytes / 100).sum();
            prop_assert!(sampled >= plan.records().min(1000));
        }
    }

    /// How far each part is filled.
    #[derive(Default)]
    struct BTreeEnd(std::collections::BTreeMap<std::path::PathBuf, u64>);

    impl BTreeEnd {
        fn of(&self, path: &Path) -> u64 {
            self.0.get(path).copied().unwrap_or(0)
        }
        fn add(&mut self, path: &Path, bytes: u64) {
            *self.0.entry(path.to_owned()).or_default() += bytes;
        }
    }

    #[test]
    fn coarse_buckets_begin_where_parts_do() {
        let plan = SortPlan::new(100, vec![5_000_000_000], Some(7)).unwrap();
        let coarse = plan.coarse();
        assert!(coarse.buckets_per_part > 1 && coarse.buckets_per_part < plan.buckets_per_part);
        let borders: Vec<usize> = plan.coarse_borders().collect();
        assert_eq!(borders.len() + 1, coarse.buckets());
        assert!(borders.is_sorted_by(|a, b| a < b));
        for part in 1..7 {
            let begins = borders[part * coarse.buckets_per_part - 1];
            assert_eq!(begins, part * plan.buckets_per_part);
        }
    }
}

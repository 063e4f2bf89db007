//! Spill: what does not fit in memory goes out as sorted runs, a worker's memory full at a time.
//!
//! ```text
//!   pieces of files ─┐                ┌─ sort, refine ─┐
//!   or a stream ─────┴──▶ chunk ──────┘                └──▶ run file: sorted records, cut into buckets
//!                         records + entries, reused             (docs/internals/run-file.md)
//! ```
//!
//! A run holds records that were next to each other in the input, in order, equal keys in input order: merging
//! neighbouring runs, in their order, is a stable sort. Every record read is in exactly one run.
//!
//! Decision: docs/decisions/spill-task.md.

mod appended;
mod chunk;
pub mod collect;
pub mod counts;
mod first_bytes;
pub mod in_order;
pub mod keyed;
mod memory_model;
pub mod record_assembler;
pub mod rows;
mod sizes;
mod sorted;
mod source;
pub mod table;

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use self::appended::AppendedRuns;
pub use self::appended::LeftOut;
use self::chunk::Chunk;
pub use self::first_bytes::FirstBytes;
use self::in_order::{InOrder, read_records};
pub use self::memory_model::MemoryModel;
pub use self::sizes::{BucketSizes, WrittenSizes};
use self::sorted::SortedChunk;
pub use self::source::{Progress, SharedStream, UnreadRanges};
use gristmill_base::error::{Error, JobOption, Result};
use gristmill_base::order::borders::{Border, compare};
use gristmill_base::record::shape::Shape;
use gristmill_base::record::sum::RecordSum;
use gristmill_storage::io::overlap::{Buffers, OverlappedWriter, writer_bytes};
use gristmill_storage::run_name::is_in_memory;
use gristmill_storage::sorted_run::{
    RunCompression, RunHeader, RunIndex, RunWriter, file_bytes_max,
};
use gristmill_storage::stores::Stores;
use gristmill_storage::{Caching, LocalDisk};

/// How many records ahead of the copy the prefetch runs.
const AHEAD: usize = 40;

/// What a worker spills with.
#[derive(Debug)]
pub struct SpillPlan<'a, S> {
    /// What the records are.
    pub shape: S,
    /// Where runs are cut into buckets, ascending.
    pub borders: &'a [Border],
    /// Whether of records with equal keys only the first stays.
    pub unique: bool,
    /// Bytes of a worker's memory for records and their entries.
    pub chunk_bytes: usize,
    /// The length of a record to reckon with before there are any.
    pub typical_bytes: usize,
    /// What memory longer records would need.
    pub needed: MemoryModel,
    /// Bytes of each buffer of the writer.
    pub buffer_bytes: usize,
    /// How runs are compressed.
    pub compression: RunCompression,
    /// The job, for the runs' headers.
    pub job_id: &'a str,
    /// Where runs may be written, in order.
    pub places: &'a [PathBuf],
}

/// A run that was written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpilledRun {
    /// Where it is; in a checkpoint, its name alone.
    #[serde(rename = "name", with = "gristmill_base::names")]
    pub path: PathBuf,
    /// Its place among the runs of its task, or of the stream.
    pub number: u64,
    /// Records in it.
    pub records: u64,
    /// Bytes of records in it.
    pub bytes: u64,
    /// Bytes that are stored of them: fewer where the run is compressed.
    #[serde(default)]
    pub stored_bytes: u64,
    /// Bytes of the longest.
    pub longest: u64,
    /// Records that were read for it: more, where equal ones were left out.
    pub records_read: u64,
    /// Their bytes, newlines included that were added to last lines.
    pub bytes_read: u64,
    /// The sum of the CRCs of the records read.
    #[serde(with = "gristmill_base::record::checksum::hex")]
    pub checksum_read: u128,
    /// Input that was read for it and is in no run.
    #[serde(default)]
    pub left_out: LeftOut,
    /// The CRC of its index, by which it is known again.
    pub index_crc: u32,
    /// What lies in each bucket. A history leaves it out where the index of the run says the same.
    #[serde(default)]
    pub buckets: BucketSizes,
}

impl SpilledRun {
    /// Bytes that are stored of it on disk: none where it is in memory.
    pub fn disk_bytes(&self) -> u64 {
        if is_in_memory(&self.path) {
            return 0;
        }
        self.stored_bytes
    }

    /// The same without what lies in its buckets, which is as long as there are buckets.
    #[must_use]
    pub fn without_buckets(&self) -> Self {
        SpilledRun {
            buckets: BucketSizes::default(),
            ..self.clone()
        }
    }
}

/// What one worker reuses from task to task.
#[derive(Debug, Default)]
pub struct SpillScratch {
    chunk: Chunk,
    buffers: Buffers,
    /// Lines as they were read, where codes are put in front of them.
    raw: Chunk,
}

/// Memory of a worker with so many bytes for records and entries, and buffers of so many bytes.
pub fn spill_bytes(chunk_bytes: usize, buffer_bytes: usize) -> u64 {
    chunk_bytes as u64 + writer_bytes(buffer_bytes)
}

/// What a task spills.
#[derive(Debug)]
pub enum SpillSource<'a> {
    /// Ranges of files.
    Ranges(UnreadRanges<'a>),
    /// What a stream still has, beside other workers. Runs carry their numbers in the stream.
    Stream(&'a SharedStream),
    /// What one task reads from its beginning to its end.
    InOrder(InOrder<'a>, &'a Stores),
}

/// Spills all records of `source`. The runs are named `name`-0000 and so on.
///
/// # Errors
/// It cannot be read, or decoded; it ends inside a record; a record is too long for the memory.
pub fn spill_source<S: Shape>(
    plan: &SpillPlan<'_, S>,
    store: &dyn LocalDisk,
    source: SpillSource<'_>,
    name: &str,
    scratch: &mut SpillScratch,
    progress: Progress<'_>,
) -> Result<Vec<SpilledRun>> {
    let mut runs = AttemptRuns::new(store, name);
    match source {
        SpillSource::Ranges(mut pieces) => {
            runs.write_all(plan, scratch, progress, |chunk, number| {
                pieces.fill(plan.shape, chunk, &plan.needed, progress)?;
                Ok(number)
            })?;
        }
        SpillSource::Stream(stream) => runs.write_all(plan, scratch, progress, |chunk, _| {
            stream.fill(plan.shape, chunk, &plan.needed, progress)
        })?,
        SpillSource::InOrder(source, stores) => {
            let mut runs = AppendedRuns::new(plan, store, name, scratch)?;
            let mut take = |runs: &mut AppendedRuns<'_, S>, record: &[u8]| {
                runs.take(&[record], record.len(), progress)
            };
            read_records(plan.shape, source, stores, &mut runs, progress, &mut take)?;
            return runs.finish(progress);
        }
    }
    Ok(runs.keep())
}

/// The runs of an attempt; removed with it unless kept.
struct AttemptRuns<'a> {
    store: &'a dyn LocalDisk,
    name: &'a str,
    runs: Vec<SpilledRun>,
}

impl<'a> AttemptRuns<'a> {
    fn new(store: &'a dyn LocalDisk, name: &'a str) -> Self {
        let runs = Vec::new();
        AttemptRuns { store, name, runs }
    }

    /// Writes a run of every chunk until `fill`, which is given the number of the next run and gives the number that
    /// it is to have, leaves one empty.
    fn write_all<S: Shape>(
        &mut self,
        plan: &SpillPlan<'_, S>,
        scratch: &mut SpillScratch,
        progress: Progress<'_>,
        mut fill: impl FnMut(&mut Chunk, u64) -> Result<u64>,
    ) -> Result<()> {
        loop {
            let chunk = &mut scratch.chunk;
            chunk.reserve(plan.shape, plan.chunk_bytes, plan.typical_bytes)?;
            let number = fill(chunk, self.runs.len() as u64)?;
            if chunk.is_empty() {
                return Ok(());
            }
            self.write(plan, scratch, number, progress)?;
        }
    }

    fn keep(mut self) -> Vec<SpilledRun> {
        std::mem::take(&mut self.runs)
    }

    /// Sorts the chunk and writes it as a run, in the first place that has room.
    fn write<S: Shape>(
        &mut self,
        plan: &SpillPlan<'_, S>,
        scratch: &mut SpillScratch,
        number: u64,
        progress: Progress<'_>,
    ) -> Result<()> {
        let SpillScratch { chunk, buffers, .. } = scratch;
        let (bytes, longest, checksum) = (chunk.bytes(), chunk.longest(), chunk.checksum());
        let sorted = chunk.sort(plan.shape);
        progress(0)?;
        let file_name = format!("run-{}-{number:04}", self.name);
        let kept = if plan.unique {
            unique_bytes(plan.shape, &sorted)
        } else {
            bytes
        };
        // As if no block would shrink: what was not needed is given back when the run is written.
        let buckets = plan.borders.len() as u64 + 1;
        let bytes_of = |compression| file_bytes_max(compression, kept, buckets);
        let place = (plan.places, file_name.as_str(), plan.compression);
        let (path, file, compression) = create_run(self.store, place, bytes_of)?;
        self.runs.push(SpilledRun {
            path,
            number,
            longest,
            records_read: sorted.positions.len() as u64,
            bytes_read: bytes,
            checksum_read: checksum,
            ..SpilledRun::default()
        });
        let header = RunHeader {
            shape: plan.shape.kind(),
            job_id: plan.job_id.to_owned(),
            number,
            compression,
        };
        let (index, sizes) = OverlappedWriter::run(buffers, plan.buffer_bytes, |writer| {
            let run = RunWriter::begin(writer, file, &header)?;
            write_records(plan, &sorted, run, checksum, progress)
        })?;
        if let Some(run) = self.runs.last_mut() {
            (run.records, run.bytes) = (index.records, index.data_bytes);
            run.stored_bytes = index.stored_bytes();
            run.index_crc = index.crc();
            run.buckets = if plan.shape.is_stripped() {
                BucketSizes::of(&sizes)
            } else {
                BucketSizes::of_run(plan.shape.kind(), &index)
            };
        }
        Ok(())
    }
}

impl Drop for AttemptRuns<'_> {
    fn drop(&mut self) {
        for run in &self.runs {
            // The attempt's own error is what counts; the job's end removes what stays.
            let _ = self.store.remove(&run.path);
        }
    }
}

/// Creates a run file with its space reserved, in the first place that has room, and says how it is to be compressed: in
/// memory not at all, as that spares no device. `bytes_of` says how much is to be reserved.
pub fn create_run(
    store: &dyn LocalDisk,
    (places, name, compression): (&[PathBuf], &str, RunCompression),
    bytes_of: impl Fn(RunCompression) -> Option<u64>,
) -> Result<(
    PathBuf,
    Arc<dyn gristmill_storage::WriteFile>,
    RunCompression,
)> {
    let mut failed = Error::bug("spill", "there is no place for runs");
    for place in places {
        let path = place.join(name);
        let compression = if is_in_memory(place) {
            RunCompression::None
        } else {
            compression
        };
        let bytes = bytes_of(compression).unwrap_or(u64::MAX);
        match store.create_run(&path, bytes, Caching::Direct) {
            Ok(file) => return Ok((path, Arc::from(file), compression)),
            Err(error) if error.kind() == gristmill_base::Kind::DiskFull => {
                store.remove(&path)?;
                let failure = error.during("reserve space for a run").with("bytes", bytes);
                failed = failure.advise_options(
                    "free some space, or add a {} on another file system",
                    [JobOption::SpillDir.named()],
                );
            }
            Err(error) => return Err(error),
        }
    }
    Err(failed)
}

/// Bytes of the records that stay where only the first of those with equal keys does: a place that has no room for
/// them must refuse them before they are written.
fn unique_bytes<S: Shape>(shape: S, sorted: &SortedChunk<'_, S>) -> u64 {
    let (mut bytes, mut last) = (0, None);
    for (i, position) in sorted.positions.iter().enumerate() {
        if let Some(later) = sorted.positions.get(i + AHEAD) {
            sorted.records.prefetch(*later);
        }
        let record = sorted.records.at(*position);
        if last.is_none_or(|last| shape.compare(last, record).is_ne()) {
            bytes += record.len() as u64;
            last = Some(record);
        }
    }
    bytes
}

/// Copies the records in order; returns the index of the run, and of stripped records the bytes and records up to the end of
/// each bucket that the output will have.
fn write_records<S: Shape>(
    plan: &SpillPlan<'_, S>,
    sorted: &SortedChunk<'_, S>,
    mut run: RunWriter<'_>,
    checksum: u128,
    progress: Progress<'_>,
) -> Result<(RunIndex, Vec<(u64, u64)>)> {
    let (shape, positions) = (plan.shape, sorted.positions);
    let mut cuts = cut_indexes(plan, sorted).into_iter().peekable();
    let mut ends = Vec::with_capacity(plan.borders.len() + 1);
    let (mut records, mut last, mut sum) = (0, None, RecordSum::new(shape.kind()));
    let (mut written, mut sizes) = (0, Vec::new());
    for (i, position) in positions.iter().enumerate() {
        while cuts.next_if_eq(&i).is_some() {
            ends.push((run.data_bytes(), records));
            sizes.push((written, records));
        }
        if let Some(later) = positions.get(i + AHEAD) {
            sorted.records.prefetch(*later);
        }
        let record = sorted.records.at(*position);
        if plan.unique {
            if last.is_some_and(|last| shape.compare(last, record).is_eq()) {
                continue;
            }
            last = Some(record);
            sum.update(record);
        }
        run.append(record)?;
        if shape.is_stripped() {
            written += shape.written(record).len() as u64;
        }
        records += 1;
        if i % (1 << 14) == 0 {
            progress(0)?;
        }
    }
    ends.extend(cuts.map(|_| (run.data_bytes(), records)));
    ends.push((run.data_bytes(), records));
    sizes.resize(ends.len(), (written, records));
    let checksum = if plan.unique { sum.value() } else { checksum };
    Ok((run.finish(&ends, checksum)?, sizes))
}

/// The index of the first entry of each bucket but the first.
fn cut_indexes<S: Shape>(plan: &SpillPlan<'_, S>, sorted: &SortedChunk<'_, S>) -> Vec<usize> {
    let shape = plan.shape;
    let below = |at: &u64, border: &Border| {
        let key = shape.key(sorted.records.at(*at));
        compare(shape, key, sorted.position_of(*at), border).is_lt()
    };
    let cut = |border| sorted.positions.partition_point(|at| below(at, border));
    plan.borders.iter().map(cut).collect()
}

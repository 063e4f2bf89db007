//! The collector: pairs that user code puts out, sorted by partition and key, a memory full at a time.
//!
//! ```text
//!   append(partition, key, order, value)
//!        │
//!        ▼
//!   chunk ──full──▶ sort ──▶ run file, cut into partitions ─▶ merge, one partition of all runs at a time
//!
//!   the key of a record:   | partition | key ........ | order ..... |
//!                           0 to 4 bytes, big-endian    what else decides among equal keys, may be empty
//! ```
//!
//! A partition is the beginning of a key to the engine, and a bucket of a run: runs of pairs are sorted, merged and
//! read like all others. Pairs that are equal in all of that stay in the order in which they were appended.
//!
//! The rule that must hold: every pair appended is in exactly one run when the collector is finished.
//!
//! Decision: docs/decisions/collector-memory.md.

use std::path::PathBuf;
use std::sync::Arc;

use super::chunk::Chunk;
use super::{AttemptRuns, MemoryModel, Progress, SpillPlan, SpillScratch, SpilledRun};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::order::borders::Border;
use gristmill_base::record::shape::{PairShape, Shape};
use gristmill_storage::LocalDisk;
use gristmill_storage::sorted_run::RunCompression;

/// The first memories full are so small, and the next ones an eighth of all before: memory that is touched for the first
/// time costs 2 ns a byte and more, so that a job of few pairs that used all of it would wait for that most of all, and
/// runs more are few (docs/tuning.md).
const FIRST_BYTES: usize = 32 << 20;

/// How pairs are collected: the same for all tasks of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectPlan {
    /// How many partitions there are, at least one.
    pub partitions: u32,
    /// Bytes of pairs and their entries that are sorted at once.
    pub chunk_bytes: usize,
    /// Bytes of each buffer of the writer of runs.
    pub buffer_bytes: usize,
    /// The job, for the runs' headers.
    pub job_id: String,
    /// Where runs may be written, in order.
    pub places: Vec<PathBuf>,
    /// How runs are compressed.
    pub compression: RunCompression,
}

/// Bytes of a key that say its partition: as few as there can be.
///
/// ```
/// use gristmill_tasks::spill::collect::partition_bytes;
/// assert_eq!([1, 2, 256, 257, 65_536, 65_537].map(partition_bytes), [0, 1, 1, 2, 2, 4]);
/// ```
pub fn partition_bytes(partitions: u32) -> usize {
    match partitions {
        0 | 1 => 0,
        2..=0x100 => 1,
        0x101..=0x1_0000 => 2,
        _ => 4,
    }
}

/// Where runs are cut: at the first key of each partition but the first.
///
/// ```
/// use gristmill_tasks::spill::collect::partition_borders;
/// let keys = |partitions| partition_borders(partitions).into_iter().map(|border| border.key).collect::<Vec<_>>();
/// assert_eq!((keys(1), keys(3)), (vec![], vec![vec![1], vec![2]]));
/// ```
pub fn partition_borders(partitions: u32) -> Vec<Border> {
    let bytes = partition_bytes(partitions);
    let border = |partition: u32| Border {
        key: partition.to_be_bytes()[4 - bytes..].to_vec(),
        position: 0,
    };
    (1..partitions).map(border).collect()
}

/// Collects pairs of one attempt, and leaves them in sorted runs.
pub struct PairCollector {
    store: Arc<dyn LocalDisk>,
    plan: CollectPlan,
    borders: Vec<Border>,
    prefix_bytes: usize,
    /// The runs' common name.
    name: String,
    scratch: SpillScratch,
    runs: Vec<SpilledRun>,
    records: u64,
    bytes: u64,
}

impl PairCollector {
    /// An empty collector. Its runs are named after `name`; `scratch` is the memory of the one before.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use gristmill_tasks::spill::collect::{CollectPlan, PairCollector};
    /// use gristmill_storage::{LocalDisk, memory::Memory};
    /// let store = Arc::new(Memory::with_room_for(1 << 20));
    /// store.create_directory("/runs".as_ref())?;
    /// let plan = CollectPlan {
    ///     partitions: 2,
    ///     chunk_bytes: 1 << 16,
    ///     buffer_bytes: 1 << 16,
    ///     job_id: "a-job".into(),
    ///     places: vec!["/runs".into()],
    ///     compression: Default::default(),
    /// };
    /// let mut collector = PairCollector::new(store, plan, "0-0".into(), Default::default())?;
    /// collector.append(1, b"key", b"", b"value", &|_| Ok(()))?;
    /// collector.append(0, b"other", b"", b"value", &|_| Ok(()))?;
    /// let (runs, _) = collector.finish(&|_| Ok(()))?;
    /// assert_eq!((runs.len(), runs[0].records), (1, 2));
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    pub fn new(
        store: Arc<dyn LocalDisk>,
        plan: CollectPlan,
        name: String,
        mut scratch: SpillScratch,
    ) -> Result<Self> {
        scratch.chunk.reserve(PairShape, plan.chunk_bytes, 1)?;
        scratch.chunk.narrow(FIRST_BYTES);
        Ok(PairCollector {
            borders: partition_borders(plan.partitions),
            prefix_bytes: partition_bytes(plan.partitions),
            store,
            plan,
            name,
            scratch,
            runs: Vec::new(),
            records: 0,
            bytes: 0,
        })
    }

    /// Appends a pair of `partition`, which comes where its key and then `order` say.
    #[inline]
    pub fn append(
        &mut self,
        partition: u32,
        key: &[u8],
        order: &[u8],
        value: &[u8],
        progress: Progress<'_>,
    ) -> Result<()> {
        debug_assert!(partition < self.plan.partitions.max(1));
        let prefix = partition.to_be_bytes();
        let prefix = &prefix[4 - self.prefix_bytes..];
        let key_bytes = prefix.len() + key.len() + order.len();
        if key_bytes > u32::MAX as usize || value.len() > u32::MAX as usize {
            return Err(self.too_long(key_bytes.max(value.len())));
        }
        let header = PairShape::header(key_bytes, value.len());
        let parts = [&header[..], prefix, key, order, value];
        if !self.scratch.chunk.append(PairShape, &parts)
            && !self.append_to_next(&parts, progress)?
        {
            return Err(self.too_long(key_bytes + value.len()));
        }
        self.records += 1;
        self.bytes += (key_bytes - prefix.len() + value.len()) as u64;
        Ok(())
    }

    /// Appends a record that has no room beside those that are there; false where it has none alone.
    #[cold]
    fn append_to_next(&mut self, parts: &[&[u8]], progress: Progress<'_>) -> Result<bool> {
        if !self.scratch.chunk.is_empty() {
            self.spill(progress)?;
            if self.scratch.chunk.append(PairShape, parts) {
                return Ok(true);
            }
        }
        self.scratch.chunk.widen();
        Ok(self.scratch.chunk.append(PairShape, parts))
    }

    /// How many partitions there are.
    pub fn partitions(&self) -> u32 {
        self.plan.partitions
    }

    /// Pairs appended so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Bytes of their keys and values.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Spills the rest; gives the runs, in the order in which they were made, and the memory.
    pub fn finish(mut self, progress: Progress<'_>) -> Result<(Vec<SpilledRun>, SpillScratch)> {
        if !self.scratch.chunk.is_empty() {
            self.spill(progress)?;
        }
        Ok((
            std::mem::take(&mut self.runs),
            std::mem::take(&mut self.scratch),
        ))
    }

    /// Sorts what there is and writes it as a run.
    fn spill(&mut self, progress: Progress<'_>) -> Result<()> {
        let plan = SpillPlan {
            shape: PairShape,
            borders: &self.borders,
            unique: false,
            chunk_bytes: self.plan.chunk_bytes,
            typical_bytes: 1,
            needed: MemoryModel {
                fixed_bytes: 0,
                workers: 1,
                half: false,
                worker_fixed_bytes: 0,
                buffer_bytes: self.plan.buffer_bytes,
                buffer_share: 1,
            }, // of input that is read: there is none
            buffer_bytes: self.plan.buffer_bytes,
            job_id: &self.plan.job_id,
            places: &self.plan.places,
            compression: self.plan.compression,
        };
        let number = self.runs.len() as u64;
        let mut written = AttemptRuns::new(&*self.store, &self.name);
        written.runs = std::mem::take(&mut self.runs);
        written.write(&plan, &mut self.scratch, number, progress)?;
        self.runs = written.keep();
        let chunk = &mut self.scratch.chunk;
        chunk.reserve(PairShape, self.plan.chunk_bytes, 1)?;
        chunk.narrow(FIRST_BYTES);
        Ok(())
    }

    fn too_long(&self, bytes: usize) -> Error {
        let chunk = self.plan.chunk_bytes;
        let message =
            format!("a pair of {bytes} bytes does not fit into the {chunk} bytes of a worker");
        Error::new(Kind::Memory, "collect what the map gave", message)
            .advise("give the job more memory or fewer workers, or make smaller values")
    }
}

impl Drop for PairCollector {
    /// What was not finished is not wanted.
    fn drop(&mut self) {
        for run in &self.runs {
            let _ = self.store.remove(&run.path); // the attempt's own error is what counts
        }
    }
}

impl std::fmt::Debug for PairCollector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Collector")
            .field("plan", &self.plan)
            .field("records", &self.records)
            .finish_non_exhaustive()
    }
}

/// A memory full of pairs, to be combined before they go to a collector.
#[derive(Debug, Default)]
pub struct CombineBatch {
    chunk: Chunk,
    /// Bytes of the partition before each key.
    prefix_bytes: usize,
}

impl CombineBatch {
    /// Empties the batch, and gives it so many bytes for the pairs of `partitions`.
    pub fn reserve(&mut self, bytes: usize, partitions: u32) -> Result<()> {
        self.prefix_bytes = partition_bytes(partitions);
        self.chunk.reserve(PairShape, bytes, 1)
    }

    /// Appends a pair; false where it has no room.
    pub fn append(&mut self, partition: u32, key: &[u8], order: &[u8], value: &[u8]) -> bool {
        let prefix = partition.to_be_bytes();
        let prefix = &prefix[4 - self.prefix_bytes..];
        let header = PairShape::header(prefix.len() + key.len() + order.len(), value.len());
        self.chunk
            .append(PairShape, &[&header, prefix, key, order, value])
    }

    /// Sorts the pairs by partition, key and order.
    ///
    /// ```
    /// use gristmill_tasks::spill::collect::CombineBatch;
    /// let mut batch = CombineBatch::default();
    /// batch.reserve(1000, 300)?;
    /// assert!(batch.append(299, b"b", b"", b"1") && batch.append(299, b"a", b"", b"2"));
    /// batch.sort();
    /// assert_eq!((batch.len(), batch.pair(0), batch.pair(1)), (2, (299, &b"a"[..], &b"2"[..]), (299, &b"b"[..], &b"1"[..])));
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    pub fn sort(&mut self) {
        self.chunk.sort(PairShape);
    }

    /// How many pairs there are.
    pub fn len(&self) -> usize {
        self.chunk.records()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.chunk.is_empty()
    }

    /// A pair: its partition, its key with what orders it, its value.
    pub fn pair(&self, number: usize) -> (u32, &[u8], &[u8]) {
        let record = self.chunk.record(PairShape, number);
        let key = PairShape.key(record);
        let (prefix, key) = key.split_at(self.prefix_bytes.min(key.len()));
        let partition = prefix
            .iter()
            .fold(0, |number, byte| number << 8 | u32::from(*byte));
        (partition, key, PairShape.value(record))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_storage::memory::Memory;

    /// Memories become larger with what lay in them; a pair that is longer than the first has all there is.
    #[test]
    fn memories_grow_and_long_pairs_fit() {
        let store = Arc::new(Memory::with_room_for(1 << 30));
        store.create_directory("/runs".as_ref()).unwrap();
        let plan = CollectPlan {
            partitions: 1,
            chunk_bytes: 3 * FIRST_BYTES,
            buffer_bytes: 1 << 20,
            job_id: "a-job".into(),
            places: vec!["/runs".into()],
            compression: RunCompression::None,
        };
        let mut collector =
            PairCollector::new(store, plan, "0-0".into(), SpillScratch::default()).unwrap();
        let value = vec![7; 2 * FIRST_BYTES];
        let mut append =
            |length: usize| collector.append(0, b"key", b"", &value[..length], &|_| Ok(()));
        for _ in 0..6 {
            append(FIRST_BYTES / 4).unwrap(); // three fill the first memory, and the second
        }
        for length in [value.len(), 1, 1] {
            append(length).unwrap();
        }
        let long = vec![7; 3 * FIRST_BYTES];
        let error = collector
            .append(0, b"key", b"", &long, &|_| Ok(()))
            .unwrap_err();
        assert_eq!(error.kind(), Kind::Memory);
        let (runs, scratch) = collector.finish(&|_| Ok(())).unwrap();
        let records: Vec<u64> = runs.iter().map(|run| run.records).collect();
        assert_eq!(records, [3, 3, 3]);
        assert_eq!(scratch.chunk.memory_bytes(), 3 * FIRST_BYTES);
    }
}

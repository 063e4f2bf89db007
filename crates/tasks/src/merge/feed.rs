//! The feed: a merge that is pulled, one pair after another, by whoever reduces.
//!
//! ```text
//!   runs ──▶ thread: merge_segments ──▶ [batch] [batch] ──▶ next() next() next()
//!                                        bounded channel, memory goes back and is used again
//! ```
//!
//! A merge hands its records on; a reducer asks for them. Between the two stands a thread and a few batches, which is
//! also what lets reading and reducing overlap. Dropping the feed ends the thread.
//!
//! Decision: docs/decisions/key-prefix-buckets.md.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::{Segment, merge_segments};
use gristmill_base::budget::Budget;
use gristmill_base::error::{Error, Result};
use gristmill_base::record::shape::{PairShape, Shape};
use gristmill_base::sys::threads::begin;
use gristmill_storage::Store;
use gristmill_storage::sorted_run::RunFile;

/// Bytes of a batch: large enough that handing one over costs nothing beside what is in it.
const BATCH_BYTES: usize = 256 << 10;

/// Batches that wait at most; one more is being filled, and one being read.
const WAITING: usize = 2;

/// Memory of the batches, but for records longer than one.
pub const FEED_BYTES: u64 = ((WAITING + 2) * BATCH_BYTES) as u64;

/// A run is read through so many buffers full at least, unless they were small: 30 runs of 33 MB need not touch 480 MB of
/// memory for the first time, as they would with two buffers of 8 MB each, before there is a first record.
const BUFFERS_OF_RUN: u64 = 128;
const SOURCE_BYTES_MIN: usize = 256 << 10;

/// A run to be read, and its longest record in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedRun {
    /// Where it is.
    pub path: PathBuf,
    /// Bytes of its longest record.
    pub longest: u64,
}

/// The pairs of one partition of some runs, in order.
#[derive(Debug)]
pub struct MergedPairs {
    /// In a mutex that is never locked: so others may hold a feed that only one can use.
    batches: Mutex<Receiver<Result<Vec<u8>>>>,
    spares: Sender<Vec<u8>>,
    thread: Option<JoinHandle<()>>,
    batch: Vec<u8>,
    /// Where the next record begins in the batch.
    next: usize,
    /// Where the present one lies.
    here: std::ops::Range<usize>,
    prefix_bytes: usize,
    records: u64,
    bytes: u64,
}

impl MergedPairs {
    /// Begins to merge `partition` of `runs`, which are in input order. `prefix_bytes` of each key say its
    /// partition; each run is read through two buffers of `source_bytes` bytes.
    pub fn begin(
        store: Arc<dyn Store>,
        runs: Vec<FeedRun>,
        partition: usize,
        prefix_bytes: usize,
        source_bytes: usize,
        budget: Budget,
    ) -> Result<Self> {
        let (give, batches) = sync_channel(WAITING);
        let (spares, empty) = channel();
        let work = move || {
            let mut filler = Filler {
                give,
                empty,
                batch: Vec::with_capacity(BATCH_BYTES),
            };
            let merged =
                Partition::open(&*store, &runs, partition, prefix_bytes).and_then(|open| {
                    open.each_record(source_bytes, &budget, |record| filler.append(record))
                });
            if let Err(error) = merged.and_then(|()| filler.send()) {
                let _ = filler.give.send(Err(error)); // nobody there wants no error either
            }
        };
        let spawned = begin("merge", work)?;
        Ok(MergedPairs {
            batches: Mutex::new(batches),
            spares,
            thread: Some(spawned),
            batch: Vec::new(),
            next: 0,
            here: 0..0,
            prefix_bytes,
            records: 0,
            bytes: 0,
        })
    }

    /// Goes on to the next pair; false at the end.
    #[inline]
    pub fn advance(&mut self) -> Result<bool> {
        if self.next == self.batch.len() && !self.next_batch()? {
            self.here = 0..0;
            return Ok(false);
        }
        let bytes = PairShape.length(&self.batch[self.next..]);
        let bytes =
            bytes.ok_or_else(|| Error::bug("read merged pairs", "a batch ends within a pair"))?;
        self.here = self.next..self.next + bytes;
        self.next += bytes;
        self.records += 1;
        self.bytes += bytes as u64;
        Ok(true)
    }

    /// The key of the present pair with what orders it, and its value.
    #[inline]
    pub fn pair(&self) -> (&[u8], &[u8]) {
        let record = &self.batch[self.here.clone()];
        let key = PairShape.key(record);
        (
            key.get(self.prefix_bytes..).unwrap_or_default(),
            PairShape.value(record),
        )
    }

    /// Pairs and bytes of records that were gone through.
    pub fn seen(&self) -> (u64, u64) {
        (self.records, self.bytes)
    }

    #[cold]
    fn next_batch(&mut self) -> Result<bool> {
        loop {
            let used = std::mem::take(&mut self.batch);
            if used.capacity() == BATCH_BYTES {
                let _ = self.spares.send(used); // the thread may have come to its end
            }
            self.next = 0;
            match receiver(&mut self.batches).recv() {
                Ok(batch) => self.batch = batch?,
                Err(_over) => return self.ended().map(|()| false),
            }
            if !self.batch.is_empty() {
                return Ok(true);
            }
        }
    }
}

impl MergedPairs {
    /// The thread has given all it had, or panicked.
    fn ended(&mut self) -> Result<()> {
        match self.thread.take().map(JoinHandle::join) {
            Some(Err(_panic)) => Err(Error::bug("merge runs", "the thread of a merge panicked")),
            _ => Ok(()),
        }
    }
}

fn receiver<T>(batches: &mut Mutex<Receiver<T>>) -> &mut Receiver<T> {
    batches.get_mut().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for MergedPairs {
    fn drop(&mut self) {
        let (_, nothing) = sync_channel(0);
        *receiver(&mut self.batches) = nothing; // whatever the thread sends next tells it to end
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // a panic there has shown as an end of batches
        }
    }
}

/// The thread's side.
struct Filler {
    give: SyncSender<Result<Vec<u8>>>,
    empty: Receiver<Vec<u8>>,
    batch: Vec<u8>,
}

impl Filler {
    fn append(&mut self, record: &[u8]) -> Result<()> {
        if self.batch.len() + record.len() > BATCH_BYTES && !self.batch.is_empty() {
            self.send()?;
        }
        self.batch.extend_from_slice(record);
        Ok(())
    }

    fn send(&mut self) -> Result<()> {
        let mut empty = self
            .empty
            .try_recv()
            .unwrap_or_else(|_| Vec::with_capacity(BATCH_BYTES));
        empty.clear();
        let batch = std::mem::replace(&mut self.batch, empty);
        self.give
            .send(Ok(batch))
            .map_err(|_gone| Error::cancelled())
    }
}

/// One partition of some runs, opened: for whoever takes pairs as they come, without a thread between.
///
/// ```
/// use gristmill_storage::{LocalDisk as _, OutputStore as _};
/// use std::sync::Arc;
/// use gristmill_base::budget::Budget;
/// use gristmill_tasks::merge::feed::{FeedRun, Partition};
/// use gristmill_tasks::spill::collect::{CollectPlan, PairCollector};
/// use gristmill_storage::{Store, memory::Memory};
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
/// let mut collector = PairCollector::new(store.clone(), plan, "0-0".into(), Default::default())?;
/// for (key, partition) in [(b"b", 1), (b"a", 1), (b"c", 0)] {
///     collector.append(partition, key, b"", b"value", &|_| Ok(()))?;
/// }
/// let (runs, _) = collector.finish(&|_| Ok(()))?;
/// let runs = runs.into_iter().map(|run| FeedRun { path: run.path, longest: run.longest });
/// let partition = Partition::open(&*store, &runs.collect::<Vec<_>>(), 1, 1)?;
/// let mut keys = Vec::new();
/// partition.each(1 << 16, &Budget::new(u64::MAX), |key, _value| {
///     keys.extend_from_slice(key);
///     Ok(())
/// })?;
/// assert_eq!((partition.records()?, keys), (2, b"ab".to_vec()));
/// # Ok::<(), gristmill_base::Error>(())
/// ```
#[derive(Debug)]
pub struct Partition {
    /// The runs, with their longest records.
    runs: Vec<(RunFile, u64)>,
    number: usize,
    prefix_bytes: usize,
}

impl Partition {
    /// Opens partition `number` of `runs`, as [`MergedPairs::begin`] does.
    pub fn open(
        store: &dyn Store,
        runs: &[FeedRun],
        number: usize,
        prefix_bytes: usize,
    ) -> Result<Self> {
        let paths: Vec<&Path> = runs.iter().map(|run| &*run.path).collect();
        let opened = RunFile::open_all(store, &paths)?.into_iter();
        let longest = runs.iter().map(|run| run.longest);
        Ok(Partition {
            runs: opened.zip(longest).collect(),
            number,
            prefix_bytes,
        })
    }

    fn segments(&self) -> Result<Vec<Segment<'_>>> {
        let mut segments = Vec::with_capacity(self.runs.len());
        for (run, longest) in &self.runs {
            let (bytes, records) = run.segment(self.number..self.number + 1)?;
            if records > 0 {
                segments.push(Segment {
                    run,
                    bytes,
                    records,
                    longest: *longest,
                });
            }
        }
        Ok(segments)
    }

    /// Pairs in it.
    pub fn records(&self) -> Result<u64> {
        let segments = self.segments()?;
        Ok(segments.iter().map(|segment| segment.records).sum())
    }

    /// Calls `take` with the key (and what orders it) and the value of each pair, in order. Each run is read through
    /// two buffers of `source_bytes` bytes. Gives the bytes of all records.
    pub fn each(
        &self,
        source_bytes: usize,
        budget: &Budget,
        mut take: impl FnMut(&[u8], &[u8]) -> Result<()>,
    ) -> Result<u64> {
        let mut bytes = 0;
        self.each_record(source_bytes, budget, |record| {
            let (key, value) = PairShape.both(record);
            bytes += record.len() as u64;
            take(key.get(self.prefix_bytes..).unwrap_or_default(), value)
        })?;
        Ok(bytes)
    }

    fn each_record(
        &self,
        source_bytes: usize,
        budget: &Budget,
        emit: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let segments = self.segments()?;
        let bytes = |segment: &Segment<'_>| segment.bytes.end - segment.bytes.start;
        let Some(longest) = segments.iter().map(bytes).max() else {
            return Ok(());
        };
        let worth = usize::try_from(longest / BUFFERS_OF_RUN).unwrap_or(usize::MAX);
        merge_segments(
            PairShape,
            &segments,
            source_bytes.min(worth.max(SOURCE_BYTES_MIN)),
            &mut Vec::new(),
            budget,
            emit,
        )
    }
}

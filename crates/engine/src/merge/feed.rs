//! The feed: a merge that is pulled, one pair after another, by whoever reduces.
//!
//! ```text
//!   runs ──▶ thread: merge_segments ──▶ [batch] [batch] ──▶ next() next() next()
//!                                        bounded channel, memory goes back and is used again
//! ```
//!
//! A merge hands its records on; a reducer asks for them. Between the two stands a thread and a few batches, which is
//! also what lets reading and reducing overlap. Dropping the feed ends the thread.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use super::{Segment, merge_segments};
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::record::shape::{Pairs, Shape};
use crate::run::RunFile;
use crate::storage::Store;

/// Bytes of a batch: large enough that handing one over costs nothing beside what is in it.
const BATCH_BYTES: usize = 256 << 10;

/// Batches that wait at most; one more is being filled, and one being read.
const WAITING: usize = 2;

/// Memory of the batches, but for records longer than one.
pub const FEED_BYTES: u64 = ((WAITING + 2) * BATCH_BYTES) as u64;

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
pub struct Feed {
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

impl Feed {
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
            let merged = merge(
                &*store,
                &runs,
                partition,
                source_bytes,
                &budget,
                &mut filler,
            );
            if let Err(error) = merged.and_then(|()| filler.send()) {
                let _ = filler.give.send(Err(error)); // nobody there wants no error either
            }
        };
        let spawned = thread::Builder::new()
            .name("merge".to_owned())
            .spawn(work)
            .map_err(|error| {
                Error::new(
                    crate::Kind::Io,
                    "begin a thread for a merge",
                    error.to_string(),
                )
                .retryable_error()
            })?;
        Ok(Feed {
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
        let bytes = Pairs.length(&self.batch[self.next..]);
        let bytes = bytes.ok_or_else(|| Error::bug("read merged pairs", "a batch ends in one"))?;
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
        let key = Pairs.key(record);
        (
            key.get(self.prefix_bytes..).unwrap_or_default(),
            Pairs.value(record),
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

impl Feed {
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

impl Drop for Feed {
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

fn merge(
    store: &dyn Store,
    runs: &[FeedRun],
    partition: usize,
    source_bytes: usize,
    budget: &Budget,
    filler: &mut Filler,
) -> Result<()> {
    let open = |run: &FeedRun| Ok((RunFile::open(store, &run.path)?, run.longest));
    let opened = runs.iter().map(open).collect::<Result<Vec<_>>>()?;
    let mut segments = Vec::with_capacity(opened.len());
    for (run, longest) in &opened {
        let (bytes, records) = run.segment(partition..partition + 1)?;
        if records > 0 {
            let longest = *longest;
            segments.push(Segment {
                run,
                bytes,
                records,
                longest,
            });
        }
    }
    if segments.is_empty() {
        return Ok(());
    }
    merge_segments(
        Pairs,
        &segments,
        source_bytes,
        &mut Vec::new(),
        budget,
        |record| filler.append(record),
    )
}

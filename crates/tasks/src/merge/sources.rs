//! The sources of a merge: each segment's records one after another, read ahead by other threads.
//!
//! ```text
//!               ┌──────── emptied, with the range to read next ─────────────┐
//!               │                                                           ▼
//!   source 0   [buffer in use] [buffer filled]                     readers: read whole blocks,
//!   source 1   [buffer in use] [buffer on its way] ◀──── filled ──── verify their CRCs
//!   ...
//!
//!   a record that ends in the next buffer:    ...... rec|   |ord ......
//!                                                     └──▶ carry ◀──┘
//! ```
//!
//! Two buffers to a source, or more and smaller ones (`readers.rs`), used in the order in which they were asked for. A
//! record that lies in two buffers is put together in the source's carry, the one memory here that depends on the data:
//! beyond [`CARRY_BYTES`] it is asked of the budget.

use std::collections::VecDeque;
use std::ops::Range;

use super::Segment;
use super::readers::{Cut, FilledBuffer, ReadHandle, Request};
use super::tree::Heads;
use gristmill_base::budget::{Budget, Reservation};
use gristmill_base::error::{Error, JobOption, Kind, Result};
use gristmill_base::record::shape::Shape;
use gristmill_base::sys::pages::{self, Pages};
use gristmill_storage::io::overlap::Buffers;
use gristmill_storage::sorted_run::{BLOCK_BYTES, RunFile};

/// Memory of a carry that needs no further reservation: enough for records of common lengths.
pub(super) const CARRY_BYTES: usize = 4096;

/// All sources of a merge.
pub(super) struct Sources<'a, S> {
    shape: S,
    segments: &'a [Segment<'a>],
    cut: Cut,
    handle: ReadHandle,
    sources: Vec<MergeSource>,
    /// Buffers of which there is no further use in this merge.
    spares: Buffers,
}

impl<'a, S: Shape> Sources<'a, S> {
    /// Asks for the first buffers of all sources, and waits until each has its first record. How many buffers a source
    /// has, and how large they are, is what `cut` says.
    pub(super) fn begin(
        shape: S,
        segments: &'a [Segment<'a>],
        cut: Cut,
        budget: &Budget,
        handle: ReadHandle,
        buffers: &mut Buffers,
    ) -> Result<Self> {
        cut.keep(segments, buffers);
        let sources = segments
            .iter()
            .map(|segment| MergeSource::new(segment, budget))
            .collect();
        let mut all = Sources {
            shape,
            segments,
            cut,
            handle,
            sources,
            spares: Buffers::new(),
        };
        // All have their first buffer before one has its second.
        for round in 0..cut.most() {
            for (source, segment) in segments.iter().enumerate() {
                let (count, bytes) = cut.of(segment);
                if round >= count || all.sources[source].unasked.is_empty() {
                    continue;
                }
                let spare = buffers.iter().position(|spare| spare.len() == bytes);
                let spare = spare.map(|spare| buffers.swap_remove(spare));
                let buffer = spare.map_or_else(|| Pages::zeroed(bytes), Ok)?;
                all.ask(source, buffer)?;
            }
        }
        for source in 0..segments.len() {
            all.refill(source)?;
        }
        Ok(all)
    }

    /// Goes on to the next record of `source`, whose last one has been taken.
    #[inline]
    pub(super) fn advance(&mut self, source: usize) -> Result<()> {
        let here = &mut self.sources[source];
        here.records += 1;
        here.bytes += here.length as u64;
        if !here.carried {
            here.before = here.start;
            here.start += here.length;
            let rest = &here.buffer[here.start..here.end];
            if let Some(length) = self.shape.length(rest) {
                here.length = length;
                prefetch(rest.as_ptr().wrapping_add(length));
                return Ok(());
            }
        }
        self.refill(source)
    }

    /// Finds the next record where it does not lie whole in the present buffer.
    #[cold]
    #[inline(never)]
    fn refill(&mut self, source: usize) -> Result<()> {
        let shape = self.shape;
        let run = self.segments[source].run;
        self.sources[source].leave_carry();
        loop {
            let here = &mut self.sources[source];
            let found = here
                .find(shape)
                .map_err(|error| error.with_path(run.path()))?;
            here.before = here.start;
            if found {
                return Ok(());
            }
            if self.next_buffer(source)? {
                continue;
            }
            let here = &mut self.sources[source];
            (here.length, here.before) = (0, here.start);
            let cut = here.carry.bytes.len();
            if cut == 0 {
                return Ok(());
            }
            let message =
                format!("a run's segment ends inside a record, {cut} bytes after its start");
            let end = self.segments[source].bytes.end;
            return Err(proof(message, run).with("data offset", end));
        }
    }

    /// Exchanges the buffer in use, which is used up, for the next one. False where there is none any more.
    fn next_buffer(&mut self, source: usize) -> Result<bool> {
        if self.sources[source].asked == 0 {
            return Ok(false);
        }
        let filled = loop {
            if let Some(filled) = self.sources[source].next_filled() {
                break filled;
            }
            let filled = self.handle.next()?;
            self.sources[filled.source].keep(filled);
        };
        let here = &mut self.sources[source];
        here.asked -= 1;
        here.start = filled.range.start;
        here.end = filled.range.end;
        let used = std::mem::replace(&mut here.buffer, filled.buffer);
        if used.is_empty() {
            return Ok(true); // there was none before the first
        }
        if here.unasked.is_empty() {
            self.spares.push(used);
            return Ok(true);
        }
        self.ask(source, used)?;
        Ok(true)
    }

    /// Sends a buffer to be filled with what `source` needs next: whole blocks but for the segment's ends.
    fn ask(&mut self, source: usize, buffer: Pages<u8>) -> Result<()> {
        let here = &mut self.sources[source];
        let start = here.unasked.start;
        let first_block = start - start % BLOCK_BYTES as u64;
        let end = here.unasked.end.min(first_block + buffer.len() as u64);
        here.unasked.start = end;
        here.asked += 1;
        let request = Request {
            source,
            number: here.requests,
            bytes: start..end,
            buffer,
        };
        here.requests += 1;
        let is_apart = self.cut.is_apart(self.segments[source].run);
        self.handle.ask(is_apart, request)
    }

    /// Shows that every segment gave what it has; gives the buffers back.
    pub(super) fn finish(self, buffers: &mut Buffers) -> Result<()> {
        for (here, segment) in self.sources.into_iter().zip(self.segments) {
            let (records, bytes) = (segment.records, segment.bytes.end - segment.bytes.start);
            if (here.records, here.bytes) != (records, bytes) {
                let message = format!(
                    "a run's segment gave {} records and {} bytes; it has {records} records and {bytes} bytes",
                    here.records, here.bytes
                );
                return Err(proof(message, segment.run));
            }
            if !here.buffer.is_empty() {
                buffers.push(here.buffer);
            }
        }
        buffers.extend(self.spares);
        Ok(())
    }
}

impl<S: Shape> Heads for Sources<'_, S> {
    #[inline]
    fn head(&self, source: usize) -> Option<&[u8]> {
        let here = self.sources.get(source)?;
        if here.length == 0 {
            return None;
        }
        if here.carried {
            return Some(&here.carry.bytes);
        }
        here.buffer.get(here.start..here.start + here.length)
    }

    /// Of records that lie next to each other in one buffer.
    #[inline]
    fn repeats(&self, source: usize) -> bool {
        let here = &self.sources[source];
        if here.carried || here.before == here.start {
            return false;
        }
        let before = &here.buffer[here.before..here.start];
        let present = &here.buffer[here.start..here.start + here.length];
        here.length > 0 && self.shape.key(before) == self.shape.key(present)
    }
}

/// Asks for the cache lines of the record behind the head, which this source's next turn moves to: with 64 sources
/// the processor follows too few of them by itself, and a record takes 114 ns without this, 55 with it (`cargo bench`,
/// medians as in tree.rs). Three lines hold 100 bytes wherever they begin.
#[inline]
fn prefetch(record: *const u8) {
    for within in [0, 64, 128] {
        pages::prefetch(record.wrapping_add(within));
    }
}

/// One segment on its way through the merge. What every record touches comes first, in one cache line.
#[repr(C, align(64))]
struct MergeSource {
    buffer: Pages<u8>,
    /// The record at the head, in `buffer` from `start` on or all of the carry; of length 0 at the segment's end.
    length: usize,
    start: usize,
    end: usize,
    /// Where in `buffer` the record before it begins; `start` where it does not lie there.
    before: usize,
    /// What was taken so far.
    records: u64,
    bytes: u64,
    carried: bool,
    carry: Carry,
    /// Filled buffers behind the one in use, by number, which may have come in another order; and how many are still to
    /// be used, filled or not.
    filled: VecDeque<FilledBuffer>,
    asked: usize,
    /// How many were asked for so far: the number of the next one.
    requests: usize,
    /// What nobody has been asked to read yet.
    unasked: Range<u64>,
}

impl MergeSource {
    fn new(segment: &Segment<'_>, budget: &Budget) -> Self {
        let segment_bytes = segment.bytes.end - segment.bytes.start;
        MergeSource {
            length: 0,
            start: 0,
            end: 0,
            before: 0,
            carried: false,
            buffer: Pages::default(),
            records: 0,
            bytes: 0,
            carry: Carry::new(segment_bytes.min(segment.longest), budget),
            filled: VecDeque::new(),
            asked: 0,
            requests: 0,
            unasked: segment.bytes.clone(),
        }
    }

    /// Takes in a buffer that has come, perhaps before an earlier one.
    fn keep(&mut self, filled: FilledBuffer) {
        let before = |other: &FilledBuffer| other.number < filled.number;
        let at = self.filled.partition_point(before);
        self.filled.insert(at, filled);
    }

    /// The buffer behind the one in use, if it has come.
    fn next_filled(&mut self) -> Option<FilledBuffer> {
        let next = self.requests - self.asked;
        let is_next = self
            .filled
            .front()
            .is_some_and(|first| first.number == next);
        if is_next {
            self.filled.pop_front()
        } else {
            None
        }
    }

    /// The record in the carry has been taken: the next one begins in the buffer.
    fn leave_carry(&mut self) {
        self.carried = false;
        self.carry.clear();
    }

    /// Looks for the end of the record in the buffer. Where it is not there, the carry holds all there is of it.
    fn find(&mut self, shape: impl Shape) -> Result<bool> {
        let rest = &self.buffer[self.start..self.end];
        if self.carry.bytes.is_empty() {
            if let Some(length) = shape.length(rest) {
                self.length = length;
                return Ok(true);
            }
            self.start = self.end;
            self.carry.append(rest)?;
            return Ok(false);
        }
        let Some(taken) = shape.rest_of(&self.carry.bytes, rest) else {
            self.start = self.end;
            self.carry.append(rest)?;
            return Ok(false);
        };
        self.carry.append(&rest[..taken])?;
        self.start += taken;
        self.length = self.carry.bytes.len();
        self.carried = true;
        Ok(true)
    }
}

/// A record that lies in more than one buffer, made whole.
struct Carry {
    bytes: Vec<u8>,
    /// No record is longer.
    most_bytes: u64,
    budget: Budget,
    reservation: Option<Reservation>,
}

impl Carry {
    fn new(most_bytes: u64, budget: &Budget) -> Self {
        Carry {
            bytes: Vec::new(),
            most_bytes,
            budget: budget.clone(),
            reservation: None,
        }
    }

    fn append(&mut self, more: &[u8]) -> Result<()> {
        let needed = self.bytes.len() + more.len();
        if needed > self.bytes.capacity() {
            self.grow(needed)?;
        }
        self.bytes.extend_from_slice(more);
        Ok(())
    }

    /// Moves to memory for the longest record there may be. A carry that is small has no reservation.
    fn grow(&mut self, needed: usize) -> Result<()> {
        let most = self.most_bytes.max(needed as u64) as usize;
        let capacity = if needed > CARRY_BYTES {
            most
        } else {
            most.min(CARRY_BYTES)
        };
        let reservation = if capacity > CARRY_BYTES {
            Some(self.budget.reserve("long records", capacity as u64)?)
        } else {
            None
        };
        let mut grown = Vec::new();
        grown.try_reserve_exact(capacity).map_err(|error| {
            Error::new(Kind::Memory, "hold a long record", error.to_string())
                .with("bytes", capacity)
                .advise_options(
                    "give a smaller {}, or end other programs",
                    [JobOption::Memory.named()],
                )
        })?;
        grown.extend_from_slice(&self.bytes);
        self.bytes = grown;
        self.reservation = reservation;
        Ok(())
    }

    /// What one long record needed is given back.
    fn clear(&mut self) {
        self.bytes.clear();
        if self.reservation.is_some() {
            self.bytes = Vec::new();
            self.reservation = None;
        }
    }
}

fn proof(message: String, run: &RunFile) -> Error {
    Error::new(Kind::Proof, "merge runs", message)
        .with_path(run.path())
        .with("run", run.header().number)
}

//! The sources of a merge: each segment's records one after another, read ahead by one thread for all.
//!
//! ```text
//!               ┌──────── emptied, with the range to read next ─────────────┐
//!               │                                                           ▼
//!   source 0   [buffer in use] [buffer filled]                     thread: read whole blocks,
//!   source 1   [buffer in use] [buffer on its way] ◀──── filled ──── verify their CRCs
//!   ...
//!
//!   a record that ends in the next buffer:    ...... rec|   |ord ......
//!                                                     └──▶ carry ◀──┘
//! ```
//!
//! Two buffers to a source, filled in the order in which they were emptied. A record that lies in two buffers is
//! put together in the source's carry, the one memory here that depends on the data: beyond [`CARRY_BYTES`] it is
//! asked of the budget. Dropping one end of a channel ends the other side, so that no error leaves a thread behind.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender};

use super::Segment;
use super::tree::Heads;
use crate::budget::{Budget, Reservation};
use crate::error::{Error, JobOption, Kind, Result};
use crate::record::shape::Shape;
use crate::sorted_run::{BLOCK_BYTES, BlockDecoder, RunFile};
use crate::storage::overlap::Buffers;
use crate::sys::pages::{self, Pages};

/// Buffers of a source: one being merged, one being filled.
pub(super) const BUFFERS: usize = 2;

/// Memory of a carry that needs no further reservation: enough for records of common lengths.
pub(super) const CARRY_BYTES: usize = 4096;

/// A buffer on its way to the thread, and what to fill it with.
pub(super) struct Request {
    source: usize,
    bytes: Range<u64>,
    buffer: Pages<u8>,
}

/// A buffer on its way back, and where in it the bytes are.
pub(super) struct Filled {
    source: usize,
    buffer: Pages<u8>,
    range: Range<usize>,
}

/// The ends of the channels that the merge holds.
pub(super) struct Channels {
    pub(super) requests: Sender<Request>,
    pub(super) filled: Receiver<Result<Filled>>,
}

/// The thread's work: fills buffers until nobody asks any more.
pub(super) fn fill_all(
    segments: &[Segment<'_>],
    requests: &Receiver<Request>,
    filled: &Sender<Result<Filled>>,
) {
    let mut decoder = BlockDecoder::default();
    for mut request in requests {
        let run = segments[request.source].run;
        let read = run.read_blocks(request.bytes, &mut request.buffer, &mut decoder);
        let failed = read.is_err();
        let done = read.map(|range| Filled {
            source: request.source,
            buffer: request.buffer,
            range,
        });
        if filled.send(done).is_err() || failed {
            return;
        }
    }
}

/// All sources of a merge.
pub(super) struct Sources<'a, S> {
    shape: S,
    segments: &'a [Segment<'a>],
    channels: Channels,
    sources: Vec<Source>,
}

impl<'a, S: Shape> Sources<'a, S> {
    /// Asks for the first buffers of all sources, and waits until each has its first record. Buffers have
    /// `buffer_bytes` bytes, a multiple of [`BLOCK_BYTES`].
    pub(super) fn begin(
        shape: S,
        segments: &'a [Segment<'a>],
        buffer_bytes: usize,
        budget: &Budget,
        channels: Channels,
        buffers: &mut Buffers,
    ) -> Result<Self> {
        buffers.retain(|buffer| buffer.len() == buffer_bytes);
        let sources = segments
            .iter()
            .map(|segment| Source::new(segment, budget))
            .collect();
        let mut all = Sources {
            shape,
            segments,
            channels,
            sources,
        };
        for _ in 0..BUFFERS {
            for source in 0..segments.len() {
                if all.sources[source].unasked.is_empty() {
                    continue;
                }
                let spare = buffers.pop();
                let buffer = spare.map_or_else(|| Pages::zeroed(buffer_bytes), Ok)?;
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
            if let Some(filled) = self.sources[source].filled.pop_front() {
                break filled;
            }
            let filled = self.channels.filled.recv().map_err(ended_early)??;
            self.sources[filled.source].filled.push_back(filled);
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
            here.spare = used;
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
            bytes: start..end,
            buffer,
        };
        self.channels.requests.send(request).map_err(|gone| {
            // The thread has ended with an error, which is among what it sent.
            let failed = self.channels.filled.iter().find_map(Result::err);
            failed.unwrap_or_else(|| ended_early(gone))
        })
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
            let spares = [here.buffer, here.spare].into_iter();
            buffers.extend(spares.filter(|buffer| !buffer.is_empty()));
        }
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
struct Source {
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
    /// Filled buffers behind the one in use, and how many were asked for in all.
    filled: VecDeque<Filled>,
    asked: usize,
    /// What nobody has been asked to read yet.
    unasked: Range<u64>,
    /// The second buffer, when there is nothing left to read.
    spare: Pages<u8>,
}

impl Source {
    fn new(segment: &Segment<'_>, budget: &Budget) -> Self {
        let segment_bytes = segment.bytes.end - segment.bytes.start;
        Source {
            length: 0,
            start: 0,
            end: 0,
            before: 0,
            carried: false,
            buffer: Pages::default(),
            records: 0,
            bytes: 0,
            carry: Carry::new(segment_bytes.min(segment.longest), budget),
            filled: VecDeque::with_capacity(BUFFERS),
            asked: 0,
            unasked: segment.bytes.clone(),
            spare: Pages::default(),
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

/// The other end of a channel is gone, though its thread lives as long as this side does.
fn ended_early<E: std::fmt::Display>(error: E) -> Error {
    Error::bug("merge runs", error.to_string())
}

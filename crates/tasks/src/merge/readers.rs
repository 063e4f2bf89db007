//! The threads that read for a merge, and how the memory of a source is cut for them.
//!
//! ```text
//!               ┌─▶ local: one thread; a disk is busy with one read                     two large buffers a source
//!   requests ───┤
//!               └─▶ remote: several; a reply comes late, and others in the time of one   more and smaller buffers
//! ```
//!
//! A run of another machine ([`RunFile::is_remote`]) comes over a link that carries bytes only
//! while somebody has asked for some. So several requests are under way, reads of this machine's disk are not in between, and
//! the merge begins when a small part of each segment has come: the rest comes while it works. The memory is that of two large
//! buffers.
//!
//! The rules that must hold: a source gets its buffers back by their numbers, in whatever order they are filled; a merge that
//! ends early ends its readers, but for the requests that are under way, so that no error leaves a thread behind.
//!
//! Decision: docs/decisions/segments-ahead.md.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, Scope};

use super::Segment;
use gristmill_base::error::{Error, Result};
use gristmill_base::sync::lock;
use gristmill_base::sys::pages::Pages;
use gristmill_base::sys::threads::begin_in;
use gristmill_storage::io::overlap::Buffers;
use gristmill_storage::sorted_run::{
    BLOCK_BYTES, BlockDecoder, DECODER_BYTES, RunCompression, RunFile,
};

/// Buffers of a source of this machine: one being merged, one being filled.
pub(super) const BUFFERS: usize = 2;

/// Into so many buffers the memory of a far source is cut, and a segment at least, as far as requests stay long enough.
const REMOTE_BUFFERS: u64 = 8;

/// Requests below the first are dear beside what they bring; those beyond the second gain nothing.
const REMOTE_BYTES_MIN: u64 = 256 << 10;
const REMOTE_BYTES_MAX: u64 = 2 << 20;

/// A merge has requests for so many bytes of remote runs under way, in so many requests at least and at most.
const REMOTE_AHEAD_BYTES: u64 = 4 << 20;
const REMOTE_READERS_MIN: u64 = 4;
const REMOTE_READERS_MAX: u64 = 16;

/// A buffer on its way to a reader, and what to fill it with.
pub(super) struct Request {
    pub(super) source: usize,
    /// Which one it is of those of its source.
    pub(super) number: usize,
    pub(super) bytes: Range<u64>,
    pub(super) buffer: Pages<u8>,
}

/// A buffer on its way back, and where in it the bytes are.
pub(super) struct FilledBuffer {
    pub(super) source: usize,
    pub(super) number: usize,
    pub(super) buffer: Pages<u8>,
    pub(super) range: Range<usize>,
}

/// How the memory of sources is cut into buffers, and how many read into those of remote ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    near_bytes: usize,
    remote_bytes: usize,
    remote_count: usize,
    remote_readers: usize,
}

impl Cut {
    /// Each source has the memory of two buffers of `buffer_bytes` bytes, which are whole blocks of a run.
    pub(super) fn new(segments: &[Segment<'_>], buffer_bytes: usize) -> Self {
        let remote = || segments.iter().filter(|segment| segment.run.is_remote());
        let near = segments.iter().filter(|segment| !segment.run.is_remote());
        let blocks = near.map(|segment| blocks_of(&segment.bytes)).max();
        // A power of two, as below. What is longer than a segment is touched for nothing, in huge pages at that.
        let near_bytes = blocks.unwrap_or(1).next_power_of_two() as usize * BLOCK_BYTES;
        let bytes_of = |segment: &Segment<'_>| segment.bytes.end - segment.bytes.start;
        let memory = (BUFFERS * buffer_bytes) as u64;
        let longest = remote().map(bytes_of).max().unwrap_or(0);
        let even = (memory.min(longest) / REMOTE_BUFFERS).max(1);
        // A power of two: tasks whose segments are about as long use the same buffers.
        let remote_bytes = (1 << even.ilog2()).clamp(REMOTE_BYTES_MIN, REMOTE_BYTES_MAX);
        let remote_bytes = remote_bytes.min(buffer_bytes as u64);
        let remote_count = (memory / remote_bytes) as usize;
        let requests = remote().map(|segment| bytes_of(segment).div_ceil(remote_bytes));
        let requests: u64 = requests.sum();
        let each_bytes = remote().map(bytes_of).sum::<u64>() / requests.max(1);
        let under_way = REMOTE_AHEAD_BYTES / each_bytes.max(1);
        let under_way = under_way.clamp(REMOTE_READERS_MIN, REMOTE_READERS_MAX);
        let remote_readers = requests.min(under_way) as usize;
        let cut = Cut {
            near_bytes: near_bytes.min(buffer_bytes),
            remote_bytes: remote_bytes as usize,
            remote_count,
            remote_readers,
        };
        let is_packed =
            |segment: &Segment<'_>| segment.run.header().compression != RunCompression::None;
        if remote().any(is_packed) {
            cut.decompressing(remote().count())
        } else {
            cut
        }
    }

    /// The reader of this machine's runs has the memory of the caller to decompress. That of others is a buffer less for
    /// each remote source; where each has only two, the one reads all.
    fn decompressing(self, remote: usize) -> Self {
        let readers = self
            .remote_readers
            .min(remote * self.remote_bytes / DECODER_BYTES);
        let has_spare = self.remote_count > BUFFERS && readers > 0;
        Cut {
            remote_count: self.remote_count - usize::from(has_spare),
            remote_readers: if has_spare { readers } else { 0 },
            ..self
        }
    }

    /// Whether a run has readers of its kind alone.
    pub(super) fn is_apart(&self, run: &RunFile) -> bool {
        self.remote_readers > 0 && run.is_remote()
    }

    /// How many buffers the source of a segment has at most, and their bytes.
    pub(super) fn of(&self, segment: &Segment<'_>) -> (usize, usize) {
        if segment.run.is_remote() {
            (self.remote_count, self.remote_bytes)
        } else {
            (BUFFERS, self.near_bytes)
        }
    }

    /// The most buffers that a source has.
    pub(super) fn most(&self) -> usize {
        self.remote_count.max(BUFFERS)
    }

    /// Keeps those of the buffers that sources of these segments can use: no more memory than theirs.
    pub(super) fn keep(&self, segments: &[Segment<'_>], buffers: &mut Buffers) {
        let mut wanted: Vec<(usize, usize)> =
            segments.iter().map(|segment| self.of(segment)).collect();
        wanted.sort_unstable_by_key(|(_, bytes)| *bytes);
        wanted.dedup_by(|(more, bytes), (count, same)| {
            let is_same = bytes == same;
            *count += if is_same { *more } else { 0 };
            is_same
        });
        buffers.retain(|buffer| {
            let place = wanted
                .iter_mut()
                .find(|(count, bytes)| *bytes == buffer.len() && *count > 0);
            place.map(|(count, _)| *count -= 1).is_some()
        });
    }
}

/// How many blocks of a run a range of its bytes touches, one at least.
fn blocks_of(bytes: &Range<u64>) -> u64 {
    let block = BLOCK_BYTES as u64;
    (bytes.end.div_ceil(block))
        .saturating_sub(bytes.start / block)
        .max(1)
}

/// The ends of the channels that the merge holds.
pub(super) struct ReadHandle {
    local: Sender<Request>,
    remote: Sender<Request>,
    filled: Receiver<Result<FilledBuffer>>,
    over: Arc<AtomicBool>,
}

impl ReadHandle {
    /// Has a buffer filled, by the readers of remote runs or by the other one.
    pub(super) fn ask(&self, is_remote: bool, request: Request) -> Result<()> {
        let line = if is_remote { &self.remote } else { &self.local };
        line.send(request).map_err(ended_early)
    }

    /// Waits for the next buffer that is filled.
    pub(super) fn next(&self) -> Result<FilledBuffer> {
        self.filled.recv().map_err(ended_early)?
    }
}

impl Drop for ReadHandle {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// The other ends, which the readers share.
pub(super) struct ReadRequests {
    local: Mutex<Receiver<Request>>,
    remote: Mutex<Receiver<Request>>,
    /// Nobody wants what was asked for any more.
    over: Arc<AtomicBool>,
}

/// Both ends; and where readers send what they have filled.
pub(super) fn channels() -> (ReadHandle, ReadRequests, Sender<Result<FilledBuffer>>) {
    let (local, local_asked) = channel();
    let (remote, remote_asked) = channel();
    let (give, filled) = channel();
    let over = Arc::new(AtomicBool::new(false));
    let requests = ReadRequests {
        local: Mutex::new(local_asked),
        remote: Mutex::new(remote_asked),
        over: Arc::clone(&over),
    };
    let handle = ReadHandle {
        local,
        remote,
        filled,
        over,
    };
    (handle, requests, give)
}

/// Begins the readers of segments, which end when nobody asks any more.
pub(super) fn begin<'s>(
    scope: &'s Scope<'s, '_>,
    (segments, cut): (&'s [Segment<'s>], Cut),
    requests: &'s ReadRequests,
    give: &Sender<Result<FilledBuffer>>,
) -> Result<()> {
    let read = |asked: &'s Mutex<Receiver<Request>>| {
        let give = give.clone();
        move || fill_all(segments, asked, &requests.over, &give)
    };
    if segments.iter().any(|segment| !cut.is_apart(segment.run)) {
        begin_in(scope, "read", read(&requests.local))?;
    }
    if cut.remote_readers > 0 {
        begin_in(scope, "read", read(&requests.remote))?;
    }
    for _ in 1..cut.remote_readers {
        // A system that gives no more threads makes it slower, and nothing else.
        let _ = begin_in(scope, "read", read(&requests.remote));
    }
    Ok(())
}

/// A reader's work: fills buffers until nobody asks any more.
fn fill_all(
    segments: &[Segment<'_>],
    asked: &Mutex<Receiver<Request>>,
    over: &AtomicBool,
    give: &Sender<Result<FilledBuffer>>,
) {
    let _told = PanicReporter(give);
    let mut decoder = BlockDecoder::default();
    let next = || lock(asked).recv();
    while let Ok(mut request) = next() {
        if over.load(Ordering::Relaxed) {
            return;
        }
        let run = segments[request.source].run;
        let read = run.read_blocks(request.bytes, &mut request.buffer, &mut decoder);
        let failed = read.is_err();
        let done = read.map(|range| FilledBuffer {
            source: request.source,
            number: request.number,
            buffer: request.buffer,
            range,
        });
        if give.send(done).is_err() || failed {
            return;
        }
    }
}

/// Tells the merge of a panic, for which it would wait while other readers live.
struct PanicReporter<'a>(&'a Sender<Result<FilledBuffer>>);

impl Drop for PanicReporter<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let _ = self
                .0
                .send(Err(Error::bug("merge runs", "a reader panicked")));
        }
    }
}

/// The other end of a channel is gone, though its thread lives as long as this side does.
fn ended_early<E: std::fmt::Display>(error: E) -> Error {
    Error::bug("merge runs", error.to_string())
}

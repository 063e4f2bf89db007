//! Reading a far file from front to back: ranges that are under way while the reader works on those before.
//!
//! ```text
//!   reader ──read_at──▶ | range that is read | there, or under way | under way |     to be asked for ...
//!                       passed: its memory is the next range's      ◀─ wanted ─▶
//! ```
//!
//! A reader of lines, a decoder or Python asks for a block, works on it, and asks for the next. Of a disk the system
//! reads ahead of it; a store would be asked for one block after another, and its answer waited for each time. So a
//! [`Window`] asks for ranges of about [`RANGE_BYTES`], some of them before they are wanted. How many is measured: the time
//! that a range takes to come, in ranges that the reader passes meanwhile. That is latency × the reader's bandwidth; memory
//! ([`WindowMemory`]) is the limit. Files of disks are read as they were: they get no window.
//!
//! The rules that must hold: a reader gets the bytes, and the errors, that the file itself would give it at that place; no
//! range is asked for twice, and no more ranges than `bytes / RANGE_BYTES` of what is read from front to back, where there
//! is memory for such. What is read elsewhere is asked of the file. A window that is dropped leaves requests to their end:
//! their threads hold their memory until then.
//!
//! Decision: docs/decisions/read-windows.md.

mod memory;

use std::collections::VecDeque;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

pub use self::memory::{SHARE_BYTES_MAX, SHARE_BYTES_MIN, Share, WindowMemory};

use self::memory::RangeBuffer;
use super::read_ahead::{RANGE_BYTES, RANGES_AT_ONCE, read_into};
use crate::{ReadFile, RemoteFile};
use gristmill_base::error::{Error, Result};
use gristmill_base::sync::lock;

/// The shortest range that is worth a thread.
const STEP_BYTES_MIN: u64 = SHARE_BYTES_MIN / 2;

/// What a reader reads behind the end of its range, to the end of its last record, mostly: so much more costs less than
/// a request.
pub const BEHIND_BYTES: u64 = 16 << 10;

/// What ranges of long reads are multiples of.
const PIECE_BYTES: usize = 64 << 10;

/// A far file with ranges under way.
#[derive(Debug)]
pub struct Window {
    file: Arc<dyn ReadFile>,
    remote: RemoteFile,
    /// Whether nobody has said what will be read.
    guesses: bool,
    state: Mutex<WindowState>,
}

#[derive(Debug)]
struct WindowState {
    /// What is not asked for yet.
    left: Range<u64>,
    /// Bytes of each range.
    step: u64,
    /// How many ranges to hold, with the one that is read.
    wanted: usize,
    /// One after the other, up to where `left` begins.
    ranges: VecDeque<RequestedRange>,
    /// Memory of ranges that were passed.
    spare: Vec<RangeBuffer>,
    /// When the reader came to the first range, and how long it has waited since.
    came: Instant,
    waited: Duration,
    /// Where the last read beside the window ended.
    next: Option<u64>,
}

/// A range that was asked for.
#[derive(Debug)]
struct RequestedRange {
    range: Range<u64>,
    arrival: Arrival,
}

#[derive(Debug)]
enum Arrival {
    UnderWay(Receiver<Result<Arrived>>),
    There(Arrived),
}

/// What came.
#[derive(Debug)]
struct Arrived {
    memory: RangeBuffer,
    read: usize,
    took: Duration,
}

/// The file for a reader that reads `range` from front to back, or most of it; and other places, if it has to. Of a disk it is
/// the file.
///
/// ```
/// use gristmill_storage::objects::{ObjectStore, directory::DirectoryStore};
/// use gristmill_storage::io::window::in_order;
/// use gristmill_storage::{Caching, ReadFile, Store};
/// let folder = tempfile::tempdir()?;
/// std::fs::write(folder.path().join("a"), vec![7; 20_000_000])?;
/// let path = format!("objects://{}/a", folder.path().display());
/// let store = ObjectStore::new(std::sync::Arc::new(DirectoryStore));
/// let file = in_order(store.open(path.as_ref(), Caching::Cached)?, 5..20_000_000);
/// let (mut block, mut offset) = (vec![0; 1 << 20], 5);
/// while let 1.. = file.read_at(&mut block, offset)? {
///     offset += block.len() as u64;
/// }
/// assert!(offset >= 20_000_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn in_order(file: Box<dyn ReadFile>, range: Range<u64>) -> Box<dyn ReadFile> {
    Window::over(file, Some(range))
}

/// The file for a reader of which nobody knows what it will read. What it reads in order is read ahead from then on, as
/// much as it has read so far; what is long is read in several ranges at once.
pub fn in_any_order(file: Box<dyn ReadFile>) -> Box<dyn ReadFile> {
    Window::over(file, None)
}

impl Window {
    fn over(file: Box<dyn ReadFile>, range: Option<Range<u64>>) -> Box<dyn ReadFile> {
        let Some(remote) = file.remote() else {
            return file;
        };
        let guesses = range.is_none();
        let left = range.map_or(0..0, |range| range.start..range.end.min(remote.bytes));
        let each_bytes = remote.memory.each_bytes();
        if !guesses && each_bytes < SHARE_BYTES_MIN {
            return file;
        }
        let state = WindowState {
            step: step_of(left.end.saturating_sub(left.start), each_bytes),
            left,
            wanted: remote.memory.wanted(),
            ranges: VecDeque::new(),
            spare: Vec::new(),
            came: Instant::now(),
            waited: Duration::ZERO,
            next: None,
        };
        Box::new(Window {
            file: Arc::from(file),
            remote,
            guesses,
            state: Mutex::new(state),
        })
    }

    /// Copies what the window has at `at`, waiting for it; nothing where the file is to be asked. Less than `buffer`
    /// takes where a range ends, and no bytes where the file does.
    fn copy(&self, state: &mut WindowState, buffer: &mut [u8], at: u64) -> Result<Option<usize>> {
        self.pass(state, at);
        if !self.has(state, at, buffer.len() as u64) || !self.ask(state)? {
            return Ok(None);
        }
        let (range, arrived) = state.first()?;
        let data = &arrived.memory.bytes[..arrived.read];
        let there = data.get((at - range.start) as usize..).unwrap_or_default();
        let count = there.len().min(buffer.len());
        buffer[..count].copy_from_slice(&there[..count]);
        Ok(Some(count))
    }

    /// Goes on behind the ranges that end before `at`, and learns from it how many are wanted.
    fn pass(&self, state: &mut WindowState, at: u64) {
        while state
            .ranges
            .front()
            .is_some_and(|first| first.range.end <= at)
        {
            let passed = state.ranges.pop_front().map(|first| first.arrival);
            let Some(Arrival::There(arrived)) = passed else {
                continue; // a seek has passed over it
            };
            state.measure(arrived.took);
            self.remote.memory.set_wanted(state.wanted);
            state.spare.push(arrived.memory);
            let surplus = (state.ranges.len() + state.spare.len()).saturating_sub(state.wanted);
            state
                .spare
                .truncate(state.spare.len().saturating_sub(surplus));
            if self.guesses {
                state.step = (2 * state.step).min(self.step_bytes_max());
            }
        }
    }

    /// The longest range, where two are to be had.
    fn step_bytes_max(&self) -> u64 {
        (self.remote.memory.each_bytes() / 2).min(RANGE_BYTES as u64)
    }

    /// Whether the window has what is at `at`, or may ask for it. What is left is read at once where a reader wants all of
    /// it.
    fn has(&self, state: &mut WindowState, at: u64, bytes: u64) -> bool {
        if let Some(first) = state.ranges.front() {
            return first.range.start <= at;
        }
        if self.guesses && state.next == Some(at) && self.step_bytes_max() >= STEP_BYTES_MIN {
            state.left = at..self.remote.bytes;
            state.step = (2 * bytes).clamp(STEP_BYTES_MIN, self.step_bytes_max());
        }
        if !state.left.contains(&at) {
            return false;
        }
        state.left.start = at;
        if state.left.end - at <= bytes {
            state.left.start = state.left.end;
            return false;
        }
        true
    }

    /// Asks for as many ranges as are wanted, if there is memory for them. False where there is none for the first.
    fn ask(&self, state: &mut WindowState) -> Result<bool> {
        let most = self.remote.memory.each_bytes() / state.step.max(1);
        let wanted = state.wanted.min(most as usize);
        let mut first = None;
        if state.ranges.is_empty() {
            let Some(memory) = state.memory(&self.remote.memory) else {
                return Ok(false);
            };
            first = Some((state.next_range(), memory));
        }
        while !state.left.is_empty() && state.ranges.len() + usize::from(first.is_some()) < wanted {
            let Some(memory) = state.memory(&self.remote.memory) else {
                break;
            };
            let range = state.next_range();
            let Some(arrival) = begin(&self.file, range.clone(), memory) else {
                state.left.start = range.start; // a system that gives no more threads makes it slower
                break;
            };
            state.ranges.push_back(RequestedRange { range, arrival });
        }
        // The reader, who would only wait, asks for the first one.
        if let Some((range, memory)) = first {
            let arrived = fetch(&*self.file, &range, memory).inspect_err(|_error| state.end())?;
            let arrival = Arrival::There(arrived);
            state.ranges.push_front(RequestedRange { range, arrival });
            state.came();
        }
        Ok(true)
    }

    /// Reads what the window does not have.
    fn read_beside(&self, buffer: &mut [u8], at: u64) -> Result<usize> {
        if buffer.len() < 2 * RANGE_BYTES {
            return self.file.read_at(buffer, at);
        }
        let mut read = 0;
        read_into(&*self.file, at, buffer, PIECE_BYTES, |block| {
            read += block.len();
            Ok(())
        })?;
        Ok(read)
    }

    fn state(&self) -> MutexGuard<'_, WindowState> {
        lock(&self.state)
    }
}

impl WindowState {
    /// The next range to ask for.
    fn next_range(&mut self) -> Range<u64> {
        let start = self.left.start;
        self.left.start = self.left.end.min(start + self.step);
        start..self.left.start
    }

    /// Memory for a range.
    fn memory(&mut self, of: &Arc<WindowMemory>) -> Option<RangeBuffer> {
        let step = self.step as usize;
        let spare = self.spare.pop().filter(|spare| spare.bytes.len() >= step);
        spare.or_else(|| of.take(step))
    }

    /// The first range, once it is there.
    fn first(&mut self) -> Result<(&Range<u64>, &Arrived)> {
        let wait = |arrival: &Receiver<Result<Arrived>>| {
            let arrived = arrival.recv();
            arrived.unwrap_or_else(|_gone| Err(Error::bug("read the input", "its thread is gone")))
        };
        if let Some(RequestedRange { arrival, .. }) = self.ranges.front_mut()
            && let Arrival::UnderWay(under_way) = arrival
        {
            let began = Instant::now();
            match wait(under_way) {
                Ok(arrived) => *arrival = Arrival::There(arrived),
                Err(error) => {
                    self.end();
                    return Err(error);
                }
            }
            self.waited += began.elapsed();
        }
        match self.ranges.front() {
            Some(RequestedRange {
                range,
                arrival: Arrival::There(arrived),
            }) => Ok((range, arrived)),
            _ => Err(Error::bug("read the input", "no range was asked for")),
        }
    }

    /// The reader begins with a range that is there.
    fn came(&mut self) {
        (self.came, self.waited) = (Instant::now(), Duration::ZERO);
    }

    /// The reader has passed a range that took so long to come: as many more have to be under way as it passes meanwhile.
    fn measure(&mut self, took: Duration) {
        let worked = self.came.elapsed().saturating_sub(self.waited);
        self.came();
        let meanwhile = took.as_secs_f64() / worked.as_secs_f64().max(1e-6);
        let now = 1 + (meanwhile.ceil() as usize).clamp(1, RANGES_AT_ONCE - 1);
        // One that was late is no reason to hold more for long.
        self.wanted = now.max((self.wanted + now) / 2);
    }

    /// Forgets what is under way; the rest of the file is read as it is wanted.
    fn end(&mut self) {
        self.ranges.clear();
        self.spare.clear();
        self.left = 0..0;
    }
}

/// Bytes of each of the ranges that so many bytes are read in, with memory for two at least.
fn step_of(bytes: u64, each_bytes: u64) -> u64 {
    let range_bytes = RANGE_BYTES as u64;
    let ranges = ((bytes + range_bytes / 2) / range_bytes).max(1);
    let least = bytes.div_ceil((each_bytes / 2).max(1));
    bytes.div_ceil(ranges.max(least)).max(1)
}

/// Begins to read a range; nothing where there is no thread for it.
fn begin(file: &Arc<dyn ReadFile>, range: Range<u64>, memory: RangeBuffer) -> Option<Arrival> {
    let (send, arrival) = channel();
    let file = Arc::clone(file);
    let read = move || {
        let _ = send.send(fetch(&*file, &range, memory)); // nobody wants it where the window is gone
    };
    let thread = thread::Builder::new().name("read".to_owned());
    thread.spawn(read).ok().map(|_| Arrival::UnderWay(arrival))
}

fn fetch(file: &dyn ReadFile, range: &Range<u64>, mut memory: RangeBuffer) -> Result<Arrived> {
    let began = Instant::now();
    let bytes = (range.end - range.start) as usize;
    let read = file.read_at(&mut memory.bytes[..bytes], range.start)?;
    Ok(Arrived {
        memory,
        read,
        took: began.elapsed(),
    })
}

impl ReadFile for Window {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let mut state = self.state();
        let mut done = 0;
        while done < buffer.len() {
            let (rest, at) = (&mut buffer[done..], offset + done as u64);
            match self.copy(&mut state, rest, at)? {
                Some(0) => break,
                Some(copied) => done += copied,
                None => {
                    if self.guesses {
                        state.end();
                        state.next = Some(at + rest.len() as u64);
                    }
                    drop(state);
                    return Ok(done + self.read_beside(rest, at)?);
                }
            }
        }
        Ok(done)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn remote(&self) -> Option<RemoteFile> {
        Some(self.remote.clone())
    }
}

#[cfg(test)]
mod tests;

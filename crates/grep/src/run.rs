//! The workers: each takes a block, searches it, and writes when its turn comes.
//!
//! ```text
//!   worker 1   take 0 │ search 0 │ write 0 │ take 2 │ search 2      │ write 2
//!   worker 2   take 1 │ search 1    │ wait │ write 1 │ take 3 │ ...
//! ```
//!
//! A worker that waits for its turn holds one block; a long line is read by the worker whose turn it is, so memory is bounded. When nothing more is wanted, the search ends at
//! once: it does not wait for a worker that reads a stream.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::blocks::{BlockBytes, InputBlock, InputBlocks, LONG_BYTES, LineRoom, SearchInput, load};
use crate::find::{BlockMatches, find};
use crate::options::Options;
use crate::pattern::Pattern;
use crate::print::{NextBlock, Note, Printer, Summary};
use crate::trouble::{InputError, TooLarge};

/// How often the wish to stop is checked.
const LOOK: Duration = Duration::from_millis(50);

/// What the system says when it is to write memory that is not there: `EFAULT`.
const BAD_ADDRESS: i32 = 14;

/// What a search runs with.
pub struct SearchSettings {
    /// Threads that search.
    pub workers: usize,
    /// The longest line that is read to memory, in bytes; lines before a selected one may have as many. A file that is mapped has
    /// lines of any length.
    pub line_bytes_max: usize,
    /// Set it to end the search.
    pub stop: Arc<AtomicBool>,
}

/// Searches `inputs` one after the other and writes what `options` say to `out`; `note` is told of each file that cannot
/// be read, in its turn.
///
/// # Errors
/// `out` cannot be written, also as nobody reads it any more (`BrokenPipe`); the search was stopped (`Interrupted`).
///
/// ```
/// use gristmill_grep::{Data, SearchInput, Options, Pattern, PatternOptions, SearchSettings, search};
/// let text = "one fish\ntwo fish\nblue whale\n".as_bytes();
/// let open = Box::new(move || Ok(Data::Stream(Box::new(text))));
/// let inputs = [SearchInput { name: b"book".to_vec(), open }].into_iter();
/// let pattern = Pattern::new(&[b"fish$"], PatternOptions::default())?;
/// let (out, written) = std::io::pipe()?;
/// let run = SearchSettings { workers: 2, line_bytes_max: 1 << 20, stop: Default::default() };
/// let summary = search(inputs, pattern, Options::default(), &run, written, |note| panic!("{note:?}"))?;
/// assert_eq!(std::io::read_to_string(out)?, "one fish\ntwo fish\n");
/// assert_eq!((summary.files, summary.lines), (1, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn search<W: Write + Send + 'static>(
    inputs: impl Iterator<Item = SearchInput> + Send + 'static,
    pattern: Pattern,
    options: Options,
    run: &SearchSettings,
    out: W,
    note: impl FnMut(Note) + Send + 'static,
) -> io::Result<Summary> {
    // One kind of search, whatever it writes to: with two the compiler does not inline the search for bytes any more, and
    // `grep -c` took 20 % more.
    let inputs: Box<dyn Iterator<Item = SearchInput> + Send> = Box::new(inputs);
    let out: Box<dyn Write + Send> = Box::new(out);
    let note: Box<dyn FnMut(Note) + Send> = Box::new(note);
    let workers = run.workers.max(1);
    let shared = Arc::new(SearchState {
        blocks: Mutex::new(InputBlocks::new(inputs, pattern.end())),
        turn: Mutex::new(Turn {
            next: 0,
            working: workers,
            ended: None,
            printer: Printer::new(out, &pattern, options.clone(), run.line_bytes_max, note),
        }),
        changed: Condvar::new(),
        enough: AtomicU64::new(0),
        over: AtomicBool::new(false),
        line_bytes_max: run.line_bytes_max,
        pattern,
        options,
    });
    for _ in 0..workers {
        let shared = Arc::clone(&shared);
        thread::Builder::new()
            .name("grep".to_owned())
            .spawn(move || shared.work())?;
    }
    shared.wait(&run.stop)
}

struct SearchState<I, W, N> {
    blocks: Mutex<InputBlocks<I>>,
    turn: Mutex<Turn<W, N>>,
    changed: Condvar,
    /// The first file that is still wanted.
    enough: AtomicU64,
    over: AtomicBool,
    line_bytes_max: usize,
    pattern: Pattern,
    options: Options,
}

struct Turn<W, N> {
    /// The block that is written next.
    next: u64,
    /// Workers that are not done.
    working: usize,
    /// How the search ended, if not with the last block.
    ended: Option<io::Result<()>>,
    printer: Printer<W, N>,
}

impl<I, W, N> SearchState<I, W, N>
where
    I: Iterator<Item = SearchInput>,
    W: Write,
    N: FnMut(Note),
{
    /// Waits for the end.
    fn wait(&self, stop: &AtomicBool) -> io::Result<Summary> {
        let mut turn = lock(&self.turn);
        while turn.ended.is_none() && turn.working > 0 {
            if stop.load(Ordering::Relaxed) {
                turn.ended = Some(Err(io::ErrorKind::Interrupted.into()));
            } else {
                let waited = self.changed.wait_timeout(turn, LOOK);
                turn = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        self.over.store(true, Ordering::Relaxed);
        self.changed.notify_all();
        turn.ended.take().unwrap_or(Ok(()))?;
        turn.printer.flush()?;
        Ok(turn.printer.summary)
    }

    fn work(&self) {
        let leaving = Leaving(self);
        let turn = |sequence| self.turn_of(sequence).ended.is_none();
        let room = LineRoom {
            line_bytes_max: self.line_bytes_max,
            turn: &turn,
        };
        let mut buffer = Vec::new();
        while !self.over.load(Ordering::Relaxed) {
            let enough = self.enough.load(Ordering::Relaxed);
            let taken = lock(&self.blocks).next(&mut buffer, enough, &room);
            let Some(block) = taken else { break };
            let searched = self.searched(&block, &mut buffer, enough, &room);
            if !self.write(block, searched, &mut buffer) {
                break;
            }
        }
        drop(leaving);
    }

    /// Reads a block, if it is not here, and searches it.
    fn searched(
        &self,
        block: &InputBlock,
        buffer: &mut Vec<u8>,
        enough: u64,
        room: &LineRoom<'_>,
    ) -> Result<(Range<usize>, BlockMatches), InputError> {
        let range = match &block.bytes {
            BlockBytes::Here => 0..buffer.len(),
            _ if block.file < enough => 0..0,
            BlockBytes::There(file, from, to, bytes) => {
                let (end, room) = (self.pattern.end(), (room, block.sequence));
                load(&**file, (*from, *to, *bytes), buffer, end, room)?
            }
            BlockBytes::Failed(trouble) => return Err(trouble.clone()),
        };
        let first = block.name.is_some();
        let bytes = &block.bytes.memory(buffer)[range.clone()];
        let found = find(&self.pattern, &self.options, bytes, first);
        if let BlockBytes::There(file, ..) = &block.bytes {
            file.check()?;
        }
        Ok((range, found))
    }

    /// Waits until a block is written next, or the search has ended.
    fn turn_of(&self, sequence: u64) -> MutexGuard<'_, Turn<W, N>> {
        let mut turn = lock(&self.turn);
        while turn.next != sequence && turn.ended.is_none() {
            turn = self
                .changed
                .wait(turn)
                .unwrap_or_else(PoisonError::into_inner);
        }
        turn
    }

    /// Writes what was found when the block's turn comes; returns whether the search goes on.
    fn write(
        &self,
        block: InputBlock,
        searched: Result<(Range<usize>, BlockMatches), InputError>,
        buffer: &mut Vec<u8>,
    ) -> bool {
        let mut turn = self.turn_of(block.sequence);
        if turn.ended.is_some() {
            return false;
        }
        match written(&mut turn.printer, block, searched, buffer) {
            Ok((NextBlock::Block, _)) => {}
            Ok((NextBlock::File, file)) => {
                self.enough.fetch_max(file + 1, Ordering::Relaxed);
            }
            Ok((NextBlock::End, _)) => turn.ended = Some(Ok(())),
            Err(error) => turn.ended = Some(Err(error)),
        }
        if buffer.capacity() > LONG_BYTES {
            *buffer = Vec::new(); // before the next worker may have a long one
        }
        turn.next += 1;
        self.changed.notify_all();
        turn.ended.is_none()
    }
}

/// Writes what was found in a block.
fn written<W: Write, N: FnMut(Note)>(
    printer: &mut Printer<W, N>,
    mut block: InputBlock,
    searched: Result<(Range<usize>, BlockMatches), InputError>,
    buffer: &[u8],
) -> io::Result<(NextBlock, u64)> {
    let is_whole = block.name.is_some() && block.last;
    if let Some(name) = block.name.take() {
        printer.begin(name);
    }
    let next = match searched {
        Ok((range, found)) => {
            match printer.block(&block.bytes.memory(buffer)[range], &found) {
                // What lies in memory is the file's no more.
                Err(error) if error.raw_os_error() == Some(BAD_ADDRESS) => {
                    printer.fail_as("the file became shorter while it was searched")?;
                    NextBlock::File
                }
                Err(error) if error.get_ref().is_some_and(|error| error.is::<TooLarge>()) => {
                    printer.fail(error.into())?;
                    NextBlock::File
                }
                next => next?,
            }
        }
        Err(trouble) => {
            printer.fail(trouble)?;
            NextBlock::File
        }
    };
    if block.last || next == NextBlock::End {
        printer.end()?;
    }
    if !is_whole || matches!(block.bytes, BlockBytes::Here) {
        printer.flush()?; // of a slow stream each line is seen as it comes
    }
    Ok((next, block.file))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says that a worker leaves, also by a panic, so that the others do not wait for it.
struct Leaving<'s, I, W, N>(&'s SearchState<I, W, N>);

impl<I, W, N> Drop for Leaving<'_, I, W, N> {
    fn drop(&mut self) {
        let mut turn = lock(&self.0.turn);
        turn.working -= 1;
        if thread::panicking() {
            turn.ended = Some(Err(io::Error::other("a thread of the search panicked")));
        }
        self.0.changed.notify_all();
    }
}

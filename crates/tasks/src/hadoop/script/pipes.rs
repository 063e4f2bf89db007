//! The pipes to a script, from our side: none of them can block for good.
//!
//! Our ends are set not to block, and waits look up every so often: whether the attempt is to stop, whether
//! nothing has moved for too long. So a script that hangs, or a child of its that outlives it, holds nobody up.

use std::io::{ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::exit::Exit;
use super::pace::Pace;
use gristmill_base::error::{Error, Result};
use gristmill_base::sys::descriptors::{self, PollEvent, wait};

/// How long to wait before looking up.
const WAIT_MS: u32 = 50;

/// Bytes that a pipe may hold, where the system lets us ask: fewer switches between the script and us.
const PIPE_BYTES: usize = 1 << 20;

/// What any pipe holds: the least a system has.
const PIPE_BYTES_MIN: usize = 4 << 10;

/// Writes are gathered to so many bytes, as Hadoop gathers them.
const GATHER_BYTES: usize = 128 << 10;

/// Why the waiting ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Halt {
    /// The attempt was told to stop.
    Stopped,
    /// Nothing was read or written for too long.
    TimedOut,
    /// Another of the script's threads failed.
    Failed,
}

/// What the threads around one script share.
#[derive(Debug)]
pub struct ScriptDeadline<'a> {
    stop: &'a AtomicBool,
    failed: AtomicBool,
    began: Instant,
    /// When something last moved, in milliseconds after the beginning.
    moved_ms: AtomicU64,
    timeout: Option<Duration>,
    /// Whether an exit code other than 0 is a failure.
    exit_matters: bool,
}

impl<'a> ScriptDeadline<'a> {
    /// A deadline that also looks at `stop`; nothing may take longer than `timeout`.
    pub fn new(stop: &'a AtomicBool, timeout: Option<Duration>) -> Self {
        ScriptDeadline {
            stop,
            failed: AtomicBool::new(false),
            began: Instant::now(),
            moved_ms: AtomicU64::new(0),
            timeout,
            exit_matters: true,
        }
    }

    /// The same for a script whose exit code says nothing.
    #[must_use]
    pub fn with_any_exit(mut self) -> Self {
        self.exit_matters = false;
        self
    }

    /// Whether a script that ended so has failed.
    pub(super) fn is_failure(&self, exit: Option<Exit>) -> bool {
        self.exit_matters && exit != Some(Exit::Code(0))
    }

    /// Something moved.
    pub fn moved(&self) {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.moved_ms.fetch_max(now, Ordering::Relaxed);
    }

    /// Tells the other threads to end.
    pub fn fail(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }

    /// Whether it is time to end.
    pub fn check(&self) -> Option<Halt> {
        if self.stop.load(Ordering::Relaxed) {
            return Some(Halt::Stopped);
        }
        if self.failed.load(Ordering::Relaxed) {
            return Some(Halt::Failed);
        }
        let idle = self
            .began
            .elapsed()
            .saturating_sub(Duration::from_millis(self.moved_ms.load(Ordering::Relaxed)));
        self.timeout
            .is_some_and(|most| idle > most)
            .then_some(Halt::TimedOut)
    }
}

/// Our end of a pipe.
#[derive(Debug)]
pub(super) struct Pipe<End> {
    end: End,
    pace: Pace,
}

impl<End: AsFd + From<OwnedFd>> Pipe<End> {
    pub(super) fn new(end: OwnedFd) -> Self {
        // What cannot be done is no harm.
        let _ = descriptors::never_block(end.as_fd());
        let holds = descriptors::grow_pipe(end.as_fd(), PIPE_BYTES);
        Pipe {
            end: End::from(end),
            pace: Pace::new(holds.unwrap_or(PIPE_BYTES_MIN)),
        }
    }

    /// Leaves the script alone for a while, unless it ends: there is nothing to do before it has read or written more.
    fn rest(&mut self) {
        let rest_ms = self.pace.rest_ms();
        if rest_ms > 0 {
            wait(&self.end, PollEvent::End, rest_ms.into());
        }
    }
}

impl Pipe<PipeReader> {
    /// Reads what there is; 0 at the end. `halt` is asked between waits.
    pub(super) fn read(
        &mut self,
        buffer: &mut [u8],
        mut halt: impl FnMut() -> Option<Halt>,
    ) -> Result<usize, Halt> {
        loop {
            match self.end.read(buffer) {
                Ok(count) => {
                    self.pace.moved(count);
                    return Ok(count);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_broken) => return Ok(0),
            }
            if !wait(&self.end, PollEvent::Read, WAIT_MS)
                && let Some(halt) = halt()
            {
                return Err(halt);
            }
        }
    }
}

impl Pipe<PipeWriter> {
    /// Writes all of `data`; false once nobody reads any more.
    fn write(&mut self, data: &[u8], watch: &ScriptDeadline<'_>) -> Result<bool, Halt> {
        let mut rest = data;
        while !rest.is_empty() {
            match self.end.write(rest) {
                Ok(count) => {
                    watch.moved();
                    self.pace.moved(count);
                    rest = rest.get(count..).unwrap_or_default();
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_broken) => return Ok(false),
            }
            self.rest();
            if !wait(&self.end, PollEvent::Write, WAIT_MS)
                && let Some(halt) = watch.check()
            {
                return Err(halt);
            }
        }
        Ok(true)
    }
}

/// A script's standard input. Closed when it is dropped.
#[derive(Debug)]
pub struct Stdin<'a> {
    pipe: Option<Pipe<PipeWriter>>,
    gathered: Vec<u8>,
    watch: &'a ScriptDeadline<'a>,
    /// Why writing ended early.
    halt: Option<Halt>,
}

impl<'a> Stdin<'a> {
    pub(super) fn new(pipe: Pipe<PipeWriter>, watch: &'a ScriptDeadline<'a>) -> Self {
        Stdin {
            pipe: Some(pipe),
            gathered: Vec::with_capacity(2 * GATHER_BYTES),
            watch,
            halt: None,
        }
    }

    /// Bytes that will be written: whoever appends to them calls [`Stdin::gathered`] after each record.
    #[inline]
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.gathered
    }

    /// Writes what was gathered, if it is enough. False once the script does not read any more: what else there is
    /// need not be made.
    #[inline]
    pub fn gathered(&mut self) -> bool {
        if self.gathered.len() < GATHER_BYTES {
            self.pipe.is_some()
        } else {
            self.flush()
        }
    }

    /// Writes bytes as they are, behind those that were gathered.
    pub fn write(&mut self, data: &[u8]) -> bool {
        if data.len() < GATHER_BYTES / 2 {
            self.gathered.extend_from_slice(data);
            return self.gathered();
        }
        self.flush() && self.write_through(data)
    }

    /// Writes what was gathered.
    pub fn flush(&mut self) -> bool {
        let gathered = std::mem::take(&mut self.gathered);
        let open = self.write_through(&gathered);
        self.gathered = gathered;
        self.gathered.clear();
        open
    }

    fn write_through(&mut self, data: &[u8]) -> bool {
        let Some(pipe) = &mut self.pipe else {
            return false;
        };
        match pipe.write(data, self.watch) {
            Ok(true) => return true,
            Ok(false) => {}
            Err(halt) => self.halt = Some(halt),
        }
        self.pipe = None;
        false
    }

    /// Fails once the script has: nothing more need be made for it.
    pub fn check_wanted(&self) -> Result<()> {
        if self.watch.failed.load(Ordering::Relaxed) {
            return Err(Error::cancelled());
        }
        Ok(())
    }

    /// Why writing ended, if it was not the script's will.
    pub fn halt(&self) -> Option<Halt> {
        self.halt
    }
}

/// A script's standard output.
#[derive(Debug)]
pub struct Stdout<'a> {
    pipe: Pipe<PipeReader>,
    watch: &'a ScriptDeadline<'a>,
    /// Whether the last read left the pipe empty.
    is_empty: bool,
    /// Why reading ended early.
    halt: Option<Halt>,
}

impl<'a> Stdout<'a> {
    pub(super) fn new(pipe: Pipe<PipeReader>, watch: &'a ScriptDeadline<'a>) -> Self {
        Stdout {
            pipe,
            watch,
            is_empty: false,
            halt: None,
        }
    }

    /// Reads some bytes; 0 at the end, and where [`Stdout::halt`] says why.
    pub fn read(&mut self, buffer: &mut [u8]) -> usize {
        self.watch.moved(); // what was read before is dealt with: that took its time
        if self.halt.is_some() {
            return 0;
        }
        if self.is_empty {
            self.pipe.rest();
        }
        match self.pipe.read(buffer, || self.watch.check()) {
            Ok(count) => {
                self.watch.moved();
                self.is_empty = count < buffer.len();
                count
            }
            Err(halt) => {
                self.halt = Some(halt);
                0
            }
        }
    }

    /// Why reading ended, if it was not the output's end.
    pub fn halt(&self) -> Option<Halt> {
        self.halt
    }
}

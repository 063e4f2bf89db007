//! The one conversation that there is with a worker: a task there, a report back, with an eye on the worker all the
//! while.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::failure::{TaskFailure, WorkerError};
use super::frame::{Frame, FrameKind, header};
use super::heartbeat::Look;
use super::member::PoolWorker;
use super::{WorkerDefinition, WorkerLimits};
use gristmill_base::sys::descriptors::wait_for;
use gristmill_base::sys::memory::Gauge;
use gristmill_base::sys::signals;

/// Between two looks at the worker.
const LOOK: Duration = Duration::from_millis(20);
/// Between two looks at its descendants, which cost more.
const LOOK_AT_DESCENDANTS: Duration = Duration::from_millis(100);
/// How long a worker may take from its start to its hello: an interpreter from a cold network disk.
const HELLO: Duration = Duration::from_secs(120);
/// How long a worker whose pipe ended may take to be dead.
const DYING: Duration = Duration::from_secs(1);
/// How long a hung worker has to write its stacks.
const STACK: Duration = Duration::from_millis(200);
const PIPE_BYTES: usize = 64 << 10;

/// One task in one worker.
pub(super) struct WorkerAttempt<'a> {
    worker: &'a mut PoolWorker,
    limits: WorkerLimits,
    stop: &'a AtomicBool,
    on_progress: &'a mut dyn FnMut(u64),
    gauge: Gauge,
    seen: Look,
    bytes_done: u64,
    changed: Instant,
    descendants_bytes: u64,
    descendants_seen: Instant,
    /// The most anonymous memory that the worker and its children were seen to hold.
    pub(super) peak_bytes: u64,
}

impl<'a> WorkerAttempt<'a> {
    pub(super) fn new(
        worker: &'a mut PoolWorker,
        limits: WorkerLimits,
        stop: &'a AtomicBool,
        on_progress: &'a mut dyn FnMut(u64),
    ) -> Self {
        let now = Instant::now();
        worker.pulse.reset();
        WorkerAttempt {
            gauge: Gauge::new(worker.process.id()),
            seen: worker.pulse.look(),
            worker,
            limits,
            stop,
            on_progress,
            bytes_done: 0,
            changed: now,
            descendants_bytes: 0,
            descendants_seen: now,
            peak_bytes: 0,
        }
    }

    pub(super) fn run(
        &mut self,
        definition: &WorkerDefinition,
        task_json: &[u8],
    ) -> Result<Vec<u8>, WorkerError> {
        self.expect_hello()?;
        self.expect_silence()?;
        if !self.worker.remember(&definition.key) {
            self.send(FrameKind::Definition, &[&definition.key, &definition.bytes])?;
        }
        self.send(FrameKind::Task, &[&definition.key, task_json])?;
        let frame = self.receive()?;
        self.note_progress(self.worker.pulse.look());
        match frame.kind {
            FrameKind::Report if self.worker.decoder.is_empty() => Ok(frame.payload),
            FrameKind::Report => Err(broken("it wrote more than its report")),
            FrameKind::Failure => {
                let mut failure: TaskFailure = serde_json::from_slice(&frame.payload)
                    .map_err(|error| broken(&format!("its failure cannot be read: {error}")))?;
                failure.stderr = self.worker.stderr();
                failure.stdout = self.worker.stdout();
                failure.at = self.worker.pulse.place();
                Err(WorkerError::Failed(Box::new(failure)))
            }
            kind => Err(broken(&format!("it sent {kind:?} in place of a report"))),
        }
    }

    /// A new worker's first word. Nothing of the user's has been sent, so that all that goes wrong is the start's.
    pub(super) fn expect_hello(&mut self) -> Result<(), WorkerError> {
        if self.worker.started.is_none() {
            return Ok(());
        }
        let frame = self.receive().map_err(|error| match error {
            WorkerError::Died { how, .. } => self.worker.not_started(format!("it {how}")),
            WorkerError::Broken(what) => self.worker.not_started(what),
            other => other,
        })?;
        if frame.kind != FrameKind::Hello {
            let reason = format!("it sent {:?} in place of its hello", frame.kind);
            return Err(self.worker.not_started(reason));
        }
        self.worker.started = None;
        self.changed = Instant::now();
        Ok(())
    }

    /// A worker that waits has said all it had to say: what is in its pipe would be taken for the next report.
    fn expect_silence(&mut self) -> Result<(), WorkerError> {
        match self.worker.process.stdout().read(&mut [0]) {
            Ok(1..) => Err(broken("it wrote more than its report")),
            Ok(0) => Err(self.ended("closed its stdout")),
            Err(_) => Ok(()), // it would block; anything else comes again with the report
        }
    }

    fn send(&mut self, kind: FrameKind, parts: &[&[u8]]) -> Result<(), WorkerError> {
        let bytes = parts.iter().map(|part| part.len()).sum();
        let header = header(kind, bytes).map_err(WorkerError::Broken)?;
        self.write(&header)?;
        parts.iter().try_for_each(|part| self.write(part))
    }

    fn write(&mut self, mut bytes: &[u8]) -> Result<(), WorkerError> {
        while !bytes.is_empty() {
            let Some(mut stdin) = self.worker.process.stdin() else {
                return Err(broken("its stdin is closed"));
            };
            match stdin.write(bytes) {
                Ok(written) => {
                    bytes = bytes.get(written..).unwrap_or(&[]);
                    self.changed = Instant::now(); // it takes what it is given: it lives
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let waited = wait_for(&[], Some(stdin.as_fd()), Some(LOOK));
                    waited.map_err(|error| broken(&error.to_string()))?;
                    self.look()?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(self.ended("closed its stdin")),
            }
        }
        Ok(())
    }

    /// The next frame. A reply that is complete counts, even if the worker died after it.
    fn receive(&mut self) -> Result<Frame, WorkerError> {
        let mut bytes = vec![0; PIPE_BYTES];
        loop {
            if let Some(frame) = self.worker.decoder.next().map_err(WorkerError::Broken)? {
                return Ok(frame);
            }
            let mut stdout = self.worker.process.stdout();
            match stdout.read(&mut bytes) {
                Ok(0) => return Err(self.ended("closed its stdout")),
                Ok(found) => {
                    let found = bytes.get(..found).unwrap_or(&[]);
                    self.worker.decoder.push(found);
                    self.look()?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let waited = wait_for(&[stdout.as_fd()], None, Some(LOOK));
                    let ready = waited.map_err(|error| broken(&error.to_string()))?;
                    self.look()?;
                    // A child that the worker left behind can hold its pipe open.
                    if !ready && self.worker.process.death().is_some() {
                        return Err(self.ended("closed its stdout"));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(broken(&error.to_string())),
            }
        }
    }

    /// What a pipe that ended means: mostly, that the worker did.
    fn ended(&mut self, what: &str) -> WorkerError {
        match self.worker.process.wait(DYING) {
            Some(how) => {
                self.note_progress(self.worker.pulse.look());
                WorkerError::Died {
                    how,
                    at: self.worker.pulse.place(),
                    stderr: self.worker.stderr(),
                    stdout: self.worker.stdout(),
                }
            }
            None => broken(&format!("it {what} and lives on")),
        }
    }

    /// One look at all that can end the task early.
    fn look(&mut self) -> Result<(), WorkerError> {
        if self.stop.load(Ordering::Relaxed) {
            self.worker.process.close_stdin();
            self.worker.process.wait(self.limits.grace);
            return Err(WorkerError::Cancelled);
        }
        self.look_at_pulse()?;
        self.look_at_memory()
    }

    fn look_at_pulse(&mut self) -> Result<(), WorkerError> {
        if let Some(started) = self.worker.started {
            if started.elapsed() >= HELLO {
                let reason = format!("it said nothing for {} s", HELLO.as_secs());
                return Err(self.worker.not_started(reason));
            }
            return Ok(());
        }
        let now = self.worker.pulse.look();
        if now != self.seen {
            self.note_progress(now);
            return Ok(());
        }
        match self.limits.timeout {
            Some(timeout) if self.changed.elapsed() >= timeout => Err(self.hung()),
            _ => Ok(()),
        }
    }

    fn note_progress(&mut self, now: Look) {
        if now == self.seen {
            return;
        }
        self.seen = now;
        self.changed = Instant::now();
        let done = now.bytes_done();
        if done > self.bytes_done {
            (self.on_progress)(done - self.bytes_done);
            self.bytes_done = done;
        }
    }

    fn look_at_memory(&mut self) -> Result<(), WorkerError> {
        let Some(own) = self.gauge.own_bytes() else {
            return Ok(());
        };
        if self.descendants_seen.elapsed() >= LOOK_AT_DESCENDANTS {
            self.descendants_bytes = self.gauge.descendants_bytes();
            self.descendants_seen = Instant::now();
        }
        let bytes = own + self.descendants_bytes;
        self.peak_bytes = self.peak_bytes.max(bytes);
        match self.limits.memory_bytes {
            Some(limit) if bytes > limit => {
                let at = self.worker.pulse.place();
                // Killed before anything is looked up: it eats on.
                self.worker.process.kill();
                Err(WorkerError::TooMuchMemory {
                    bytes,
                    limit,
                    at,
                    stderr: self.worker.stderr(),
                    stdout: self.worker.stdout(),
                })
            }
            _ => Ok(()),
        }
    }

    /// Asks a worker that stands still for its stacks: what runs in it registered a handler that writes them to its
    /// stderr (Python: `faulthandler`). One that did not ends by the signal, which is what comes next anyway.
    fn hung(&mut self) -> WorkerError {
        let seconds = self.changed.elapsed().as_secs_f64();
        let tail = Arc::clone(self.worker.process.tail());
        let stderr = self.worker.stderr();
        let (mark, start) = (tail.total_bytes(), Instant::now());
        self.worker.process.signal(signals::SIGUSR1);
        let mut written = 0;
        while start.elapsed() < STACK {
            std::thread::sleep(LOOK);
            let now = tail.total_bytes();
            if now > mark && now == written {
                break; // it wrote, and wrote no more
            }
            written = now;
        }
        let stack = tail.since(mark);
        WorkerError::Hung {
            seconds,
            at: self.worker.pulse.place(),
            stack: (!stack.trim().is_empty()).then_some(stack),
            stderr,
            stdout: self.worker.stdout(),
        }
    }
}

pub(super) fn broken(what: &str) -> WorkerError {
    WorkerError::Broken(what.to_owned())
}

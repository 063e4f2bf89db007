//! A leased worker, and the one conversation there is with it: a task there, a report back, with an eye on the
//! worker all the while.

use std::fmt;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::command::Command;
use super::failure::{Failure, WorkerError};
use super::frame::{Decoder, Frame, FrameKind, REMEMBERED, header};
use super::memory::Gauge;
use super::pool::Shared;
use super::process::Process;
use super::pulse::{Look, Pulse};
use super::tail::Log;
use super::wait::wait_for;
use super::{Definition, DefinitionKey, Limits};

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

/// A process of the pool, with what the driver knows of it.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) process: Process,
    pub(super) command: Command,
    pulse: Pulse,
    /// The file of the pulse, until it is removed.
    pulse_path: Option<PathBuf>,
    decoder: Decoder,
    /// When it was started, until it says hello.
    started: Option<Instant>,
    /// The definitions that it has, the one used last at the end.
    definitions: Vec<DefinitionKey>,
}

impl Worker {
    pub(super) fn start(
        command: &Command,
        on_end: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let made = Pulse::create(&command.scratch);
        let (pulse, path) = made.map_err(|error| io::Error::other(error.to_string()))?;
        let process =
            Process::spawn(command, Some(path.as_os_str()), on_end).inspect_err(|_| {
                let _ = std::fs::remove_file(&path);
            })?;
        Ok(Worker {
            process,
            command: command.clone(),
            pulse,
            pulse_path: Some(path),
            decoder: Decoder::default(),
            started: Some(Instant::now()),
            definitions: Vec::new(),
        })
    }

    pub(super) fn remembers(&self, definition: &DefinitionKey) -> bool {
        self.definitions.contains(definition)
    }

    /// Notes that a definition is used now, as the worker does; false if it has to be sent.
    fn remember(&mut self, definition: &DefinitionKey) -> bool {
        let known = self.remembers(definition);
        self.definitions.retain(|key| key != definition);
        self.definitions.push(*definition);
        let surplus = self.definitions.len().saturating_sub(REMEMBERED);
        self.definitions.drain(..surplus);
        known
    }

    fn remove_pulse_file(&mut self) {
        if let Some(path) = self.pulse_path.take() {
            let _ = std::fs::remove_file(path);
        }
    }

    fn stderr(&self) -> String {
        self.process.tail().settle();
        self.process.tail().last_lines()
    }

    fn not_started(&self, reason: String) -> WorkerError {
        WorkerError::NotStarted {
            program: self.command.program.display().to_string(),
            reason,
            stderr: self.stderr(),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.remove_pulse_file();
    }
}

/// A worker for one task after another, until dropped: then it waits in the pool for the next lease, unless a run
/// ended with an error.
///
/// ```
/// use gristmill_engine::worker::{Command, Definition, Limits, Processes};
/// use std::sync::atomic::AtomicBool;
/// # let script = r#"
/// # import os, struct
/// # def frame(kind, payload): os.write(1, kind + struct.pack("<I", len(payload)) + payload)
/// # def read(n):
/// #     data = b""
/// #     while len(data) < n:
/// #         data += os.read(0, n - len(data)) or exit()
/// #     return data
/// # frame(b"H", b"1")
/// # while True:
/// #     kind, n = struct.unpack("<cI", read(5))
/// #     payload = read(n)
/// #     if kind == b"T": frame(b"R", payload[32:].upper())
/// # "#;
/// let command = Command::new("python3", "/tmp").argument("-c").argument(script);
/// let definition = Definition { key: [7; 32], bytes: b"functions".as_slice().into() };
/// let pool = Processes::new(2);
/// let mut worker = pool.lease(&command, &definition.key)?;
/// let report =
///     worker.run(&definition, b"{\"a\": 1}", Limits::default(), &AtomicBool::new(false), &mut |_| ())?;
/// assert_eq!(report, b"{\"A\": 1}");
/// drop(worker);
/// assert_eq!(pool.idle(), 1);
/// # Ok::<(), gristmill_engine::worker::WorkerError>(())
/// ```
pub struct Leased {
    worker: Option<Worker>,
    shared: Arc<Shared>,
    peak_bytes: u64,
}

impl Leased {
    pub(super) fn new(worker: Worker, shared: Arc<Shared>) -> Self {
        Leased {
            worker: Some(worker),
            shared,
            peak_bytes: 0,
        }
    }

    /// The worker's process number; `None` once a run ended with an error.
    pub fn id(&self) -> Option<u32> {
        self.worker.as_ref().map(|worker| worker.process.id())
    }

    /// The most anonymous memory that the worker and its children were seen to hold during runs of this lease. 0
    /// where that is not known.
    pub fn peak_bytes(&self) -> u64 {
        self.peak_bytes
    }

    /// Passes on what the worker writes to its stderr, line by line, until the lease ends.
    pub fn log_to(&self, log: Option<Log>) {
        if let Some(worker) = &self.worker {
            worker.process.tail().log_to(log);
        }
    }

    /// Runs a task and gives its report. `on_progress` is told how many bytes of input were done since it was told
    /// last. When `stop` is seen, the worker is killed. After an error it is gone, and every further run fails.
    pub fn run(
        &mut self,
        definition: &Definition,
        task_json: &[u8],
        limits: Limits,
        stop: &AtomicBool,
        on_progress: &mut dyn FnMut(u64),
    ) -> Result<Vec<u8>, WorkerError> {
        let Some(mut worker) = self.worker.take() else {
            return Err(WorkerError::Broken("it ended in an earlier task".into()));
        };
        if worker.started.is_none() {
            worker.process.tail().clear(); // what a new one said is why it did not start, if it did not
        }
        let mut attempt = Attempt::new(&mut worker, limits, stop, on_progress);
        let report = attempt.run(definition, task_json);
        self.peak_bytes = self.peak_bytes.max(attempt.peak_bytes);
        if report.is_ok() {
            worker.process.tail().settle();
            self.worker = Some(worker);
        }
        report
    }
}

impl Drop for Leased {
    fn drop(&mut self) {
        if let Some(worker) = &self.worker {
            worker.process.tail().log_to(None);
        }
        self.shared.give_back(self.worker.take());
    }
}

impl fmt::Debug for Leased {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Leased({:?})", self.id())
    }
}

/// One task in one worker.
struct Attempt<'a> {
    worker: &'a mut Worker,
    limits: Limits,
    stop: &'a AtomicBool,
    on_progress: &'a mut dyn FnMut(u64),
    gauge: Gauge,
    seen: Look,
    bytes_done: u64,
    changed: Instant,
    descendants_bytes: u64,
    descendants_seen: Instant,
    peak_bytes: u64,
}

impl<'a> Attempt<'a> {
    fn new(
        worker: &'a mut Worker,
        limits: Limits,
        stop: &'a AtomicBool,
        on_progress: &'a mut dyn FnMut(u64),
    ) -> Self {
        let now = Instant::now();
        worker.pulse.reset();
        Attempt {
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

    fn run(&mut self, definition: &Definition, task_json: &[u8]) -> Result<Vec<u8>, WorkerError> {
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
                let mut failure: Failure = serde_json::from_slice(&frame.payload)
                    .map_err(|error| broken(&format!("its failure cannot be read: {error}")))?;
                failure.stderr = self.worker.stderr();
                Err(WorkerError::Failed(Box::new(failure)))
            }
            kind => Err(broken(&format!("it sent {kind:?} in place of a report"))),
        }
    }

    /// A new worker's first word. Nothing of the user's has been sent, so that all that goes wrong is the start's.
    fn expect_hello(&mut self) -> Result<(), WorkerError> {
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
        self.worker.remove_pulse_file();
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
                }
            }
            None => broken(&format!("it {what} and lives on")),
        }
    }

    /// One look at all that can end the task early.
    fn look(&mut self) -> Result<(), WorkerError> {
        if self.stop.load(Ordering::Relaxed) {
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
                let stderr = self.worker.stderr();
                Err(WorkerError::TooMuchMemory {
                    bytes,
                    limit,
                    at,
                    stderr,
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
        self.worker.process.signal(libc::SIGUSR1);
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
        }
    }
}

fn broken(what: &str) -> WorkerError {
    WorkerError::Broken(what.to_owned())
}

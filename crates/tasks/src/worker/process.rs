//! A child process with pipes, in a process group of its own: started, watched, killed with its children, reaped.
//!
//! Rules: Ctrl-C at the terminal does not reach it (another group); if its driver is killed, the kernel kills it (so
//! whoever starts it must be a thread that lives as long: `pool.rs`); under memory pressure the kernel takes it before
//! the driver; it is reaped whatever happens, and its group is killed before that, while its number cannot be another's.

use std::ffi::OsString;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::command::WorkerCommand;
use super::tail::OutputTail;
use gristmill_base::sys::death::Death;
use gristmill_base::sys::descriptors::never_block;
use gristmill_base::sys::{lifeline, processes};

/// Added to the likelihood of being killed when memory is short: half of the scale.
const OOM_SCORE_ADJ: u32 = 500;
/// How long a killed process may take to be gone before a thread of its own waits for it.
const REAPING: Duration = Duration::from_secs(5);

/// A running child.
///
/// ```
/// use gristmill_tasks::worker::{WorkerCommand, Death, WorkerProcess};
/// let command = WorkerCommand::new("/bin/sh", "/tmp").argument("-c").argument("echo no >&2; exit 3");
/// let mut process = WorkerProcess::spawn(&command, None, || ())?;
/// let death = process.wait(std::time::Duration::from_secs(10));
/// assert_eq!(death, Some(Death::Exit { code: 3 }));
/// process.tail().settle();
/// assert_eq!(process.tail().last_lines(), "no");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct WorkerProcess {
    pid: u32,
    /// The process that started it: a fork of that must leave it alone.
    driver: u32,
    stdin: Option<PipeWriter>,
    stdout: PipeReader,
    tail: Arc<OutputTail>,
    printed: Arc<OutputTail>,
    /// Closed when the process is gone, for the threads that read what it writes.
    _alive: [PipeWriter; 2],
    reaped: bool,
}

impl WorkerProcess {
    /// Starts a command; `on_end` is called, by another thread, when its stderr ends, which is mostly when it does.
    /// A worker is given two arguments more: the descriptors of a pipe for what user code prints, and of its pulse.
    pub fn spawn(
        command: &WorkerCommand,
        pulse: Option<BorrowedFd<'_>>,
        on_end: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let (printed, print) = io::pipe()?;
        let inherited = pulse.map_or(Vec::new(), |pulse| vec![print.as_fd(), pulse]);
        let number = |descriptor: &BorrowedFd<'_>| descriptor.as_raw_fd().to_string().into();
        let more: Vec<OsString> = inherited.iter().map(number).collect();
        let mut prepared = command.prepare(&more);
        lifeline::bind(&mut prepared);
        for descriptor in inherited {
            processes::inherit(&mut prepared, descriptor);
        }
        let ((gone, alive), (gone_too, alive_too)) = (io::pipe()?, io::pipe()?);
        let mut child = prepared.spawn()?;
        drop(print);
        let pid = child.id();
        processes::offer_to_kill(pid, OOM_SCORE_ADJ);
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(io::Error::other("a pipe of the child is missing"));
        };
        let started = || -> io::Result<_> {
            never_block(stdin.as_fd())?;
            never_block(stdout.as_fd())?;
            let printed = OutputTail::start(printed.into(), gone_too, || ())?;
            Ok((OutputTail::start(stderr.into(), gone, on_end)?, printed))
        };
        let (tail, printed) = started().inspect_err(|_| {
            let _ = child.kill();
            let _ = child.wait();
        })?;
        Ok(WorkerProcess {
            pid,
            driver: std::process::id(),
            stdin: Some(OwnedFd::from(stdin).into()),
            stdout: OwnedFd::from(stdout).into(),
            tail,
            printed,
            _alive: [alive, alive_too],
            reaped: false,
        })
    }

    /// Its number, which is also that of its group.
    pub fn id(&self) -> u32 {
        self.pid
    }

    /// The end of its stderr.
    pub fn tail(&self) -> &Arc<OutputTail> {
        &self.tail
    }

    /// The end of what user code printed, of a worker.
    pub fn printed(&self) -> &Arc<OutputTail> {
        &self.printed
    }

    /// Its stdin, which never blocks; `None` once closed.
    pub fn stdin(&self) -> Option<&PipeWriter> {
        self.stdin.as_ref()
    }

    /// Its stdout, which never blocks.
    pub fn stdout(&self) -> &PipeReader {
        &self.stdout
    }

    /// Ends its stdin.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// How it ended, if it has; it stays to be reaped, and its children live on until [`WorkerProcess::kill`].
    pub fn death(&self) -> Option<Death> {
        processes::look(self.pid)
    }

    /// Waits for its end, for a limited time.
    pub fn wait(&self, longest: Duration) -> Option<Death> {
        let start = Instant::now();
        let mut pause = Duration::from_micros(200);
        loop {
            let death = self.death();
            if death.is_some() || start.elapsed() >= longest {
                return death;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }

    /// Sends it a signal: to it alone, not to its children.
    pub fn signal(&self, number: i32) {
        if !self.reaped && self.driver == std::process::id() {
            processes::signal(self.pid, number);
        }
    }

    /// Kills it and its group, and reaps it.
    pub fn kill(&mut self) {
        if self.reaped || self.driver != std::process::id() {
            return;
        }
        self.reaped = true;
        self.stdin = None;
        if self.death() == Some(Death::Unknown) {
            return; // reaped by somebody else: the number may be another's by now
        }
        let pid = self.pid;
        processes::kill_group(pid);
        if self.wait(REAPING).is_some() {
            processes::reap(pid);
        } else {
            // It hangs in the kernel (a dead network file system, for one): it is dead when it comes back.
            let waiting = std::thread::Builder::new().spawn(move || processes::reap(pid));
            drop(waiting);
        }
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

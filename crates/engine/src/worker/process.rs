//! A child process with pipes, in a process group of its own: started, watched, killed with its children, reaped.
//!
//! Rules: Ctrl-C at the terminal does not reach it (another group); if its driver is killed, the kernel kills it (so
//! whoever starts it must be a thread that lives as long: `pool.rs`); under memory pressure the kernel takes it before
//! the driver; it is reaped whatever happens, and its group is killed before that, while its number cannot be another's.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, PipeWriter};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::command::Command;
use super::death::Death;
use super::tail::Tail;
use super::wait::never_block;
use crate::lifeline::die_with_us;

/// Added to the likelihood of being killed when memory is short: half of the scale.
const OOM_SCORE: &str = "500";
/// How long a killed process may take to be gone before a thread of its own waits for it.
const REAPING: Duration = Duration::from_secs(5);

/// A running child.
///
/// ```
/// use gristmill_engine::worker::{Command, Death, Process};
/// let command = Command::new("/bin/sh", "/tmp").argument("-c").argument("echo no >&2; exit 3");
/// let mut process = Process::spawn(&command, None, || ())?;
/// let death = process.wait(std::time::Duration::from_secs(10));
/// assert_eq!(death, Some(Death::Exit { code: 3 }));
/// process.tail().settle();
/// assert_eq!(process.tail().last_lines(), "no");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Process {
    pid: u32,
    /// The process that started it: a fork of that must leave it alone.
    driver: u32,
    stdin: Option<File>,
    stdout: File,
    tail: Arc<Tail>,
    /// Closed when the process is gone, for the thread that reads its stderr.
    _alive: PipeWriter,
    reaped: bool,
}

impl Process {
    /// Starts a command, with one argument more; `on_end` is called, by another thread, when its stderr ends, which
    /// is mostly when it does.
    pub fn spawn(
        command: &Command,
        last: Option<&OsStr>,
        on_end: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let mut prepared = command.prepare(last);
        prepared
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        die_with_us(&mut prepared);
        let (gone, alive) = io::pipe()?;
        let mut child = prepared.spawn()?;
        let pid = child.id();
        // It may not be permitted, and then the kernel chooses as it likes.
        let _ = std::fs::write(format!("/proc/{pid}/oom_score_adj"), OOM_SCORE);
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(io::Error::other("a pipe of the child is missing"));
        };
        let started = || {
            never_block(stdin.as_fd())?;
            never_block(stdout.as_fd())?;
            Tail::start(stderr, gone, on_end)
        };
        let tail = started().inspect_err(|_| {
            let _ = child.kill();
            let _ = child.wait();
        })?;
        Ok(Process {
            pid,
            driver: std::process::id(),
            stdin: Some(File::from(OwnedFd::from(stdin))),
            stdout: File::from(OwnedFd::from(stdout)),
            tail,
            _alive: alive,
            reaped: false,
        })
    }

    /// Its number, which is also that of its group.
    pub fn id(&self) -> u32 {
        self.pid
    }

    /// The end of its stderr.
    pub fn tail(&self) -> &Arc<Tail> {
        &self.tail
    }

    /// Its stdin, which never blocks; `None` once closed.
    pub fn stdin(&self) -> Option<&File> {
        self.stdin.as_ref()
    }

    /// Its stdout, which never blocks.
    pub fn stdout(&self) -> &File {
        &self.stdout
    }

    /// Ends its stdin.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// How it ended, if it has; it stays to be reaped, and its children live on until [`Process::kill`].
    pub fn death(&self) -> Option<Death> {
        look(self.pid)
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
            // SAFETY: no memory is involved; the number is ours as long as the child is not reaped.
            unsafe { libc::kill(self.pid.cast_signed(), number) };
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
        let pid = self.pid.cast_signed();
        // SAFETY: no memory is involved; the group is ours as long as its leader is not reaped.
        unsafe { libc::killpg(pid, libc::SIGKILL) };
        if self.wait(REAPING).is_some() {
            reap(pid);
        } else {
            // It hangs in the kernel (a dead network file system, for one): it is dead when it comes back.
            let waiting = std::thread::Builder::new().spawn(move || reap(pid));
            drop(waiting);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// How a child ended, leaving it to be reaped.
fn look(pid: u32) -> Option<Death> {
    // SAFETY: zeros are a value of this plain structure, which the call may fill.
    let (failed, info) = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        let failed = libc::waitid(libc::P_PID, pid as libc::id_t, &raw mut info, flags) != 0;
        (failed, info)
    };
    if failed {
        let gone = io::Error::last_os_error().raw_os_error() == Some(libc::ECHILD);
        return gone.then_some(Death::Unknown);
    }
    // SAFETY: after a successful `waitid` these fields are those of a child, or zero.
    let (found, status) = unsafe { (info.si_pid(), info.si_status()) };
    if found == 0 {
        return None;
    }
    Some(match info.si_code {
        libc::CLD_EXITED => Death::Exit { code: status },
        code => Death::Signal {
            number: status,
            core_dumped: code == libc::CLD_DUMPED,
        },
    })
}

/// Waits for a child that is dead or dying.
fn reap(pid: libc::pid_t) {
    let interrupted = || io::Error::last_os_error().raw_os_error() == Some(libc::EINTR);
    // SAFETY: the status is not asked for.
    while unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) } < 0 && interrupted() {}
}

//! Descriptors of pipes, terminals and devices: opened so that nothing waits, made so, waited for with a limit, replaced;
//! and how many there may be.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{Errno, ioctl_fionread};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::stdio::{dup2_stdin, dup2_stdout};

/// Opened with this, no call waits for the other side. A terminal does not become ours. Only Linux tells a FIFO without a
/// writer yet from one without a writer any more.
const NO_WAIT: i32 = if cfg!(target_os = "linux") {
    libc::O_NONBLOCK | libc::O_NOCTTY
} else {
    libc::O_NOCTTY
};

/// More open files than any job has: some programs go through all that there may be, one by one.
const OPEN_FILES_MAX: u64 = 1 << 16;

/// How many files the process could open before more were allowed.
static OPEN_FILES_GIVEN: OnceLock<Rlimit> = OnceLock::new();

/// Lets this process open as many files as its hard limit allows. Programs of the user begin with the limit that there was
/// (`give_back_limit`): `select` knows no descriptor beyond 1023.
pub fn raise_open_files() {
    let given = getrlimit(Resource::Nofile);
    let most = given.maximum.unwrap_or(u64::MAX).min(OPEN_FILES_MAX);
    let raised = Rlimit {
        current: Some(most),
        maximum: given.maximum,
    };
    if given.current.is_some_and(|soft| soft < most) && setrlimit(Resource::Nofile, raised).is_ok()
    {
        let _ = OPEN_FILES_GIVEN.set(given); // the first one is the user's
    }
}

/// How many files this process may have open; nothing where that has no limit.
pub fn open_files() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// Has a program of the user begin with the limit of open files that the user gave us.
pub(crate) fn give_back_limit(prepared: &mut Command) {
    let Some(given) = OPEN_FILES_GIVEN.get().copied() else {
        return;
    };
    // SAFETY: between fork and exec one system call that is safe there; nothing is allocated.
    unsafe {
        prepared.pre_exec(move || Ok(setrlimit(Resource::Nofile, given)?));
    }
}

/// What a wait is for. Each ends when the other side is gone, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PollEvent {
    /// Something can be read.
    Read,
    /// Something can be written.
    Write,
    /// Nothing else.
    End,
}

/// Opens a stream. To write to a FIFO without a reader fails: see [`lacks_reader`].
pub fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    options.custom_flags(NO_WAIT).open(path)
}

/// Opens once more what a descriptor stands for: not to wait is a matter of the new one alone.
pub fn open_again(options: &mut OpenOptions, stream: &File) -> io::Result<File> {
    let path = format!("/proc/self/fd/{}", stream.as_raw_fd());
    open(options, path.as_ref())
}

/// Whether a FIFO could not be opened since nobody reads it yet.
pub fn lacks_reader(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENXIO)
}

/// Reads and writes on `pipe` return at once from now on. It touches our end alone: the ends of a pipe are two
/// open files.
pub fn never_block(pipe: BorrowedFd<'_>) -> io::Result<()> {
    Ok(fcntl_setfl(pipe, fcntl_getfl(pipe)? | OFlags::NONBLOCK)?)
}

/// Whether reads and writes return at once.
pub fn never_blocks(file: &File) -> bool {
    fcntl_getfl(file).is_ok_and(|flags| flags.contains(OFlags::NONBLOCK))
}

/// Waits for one descriptor; false after so many milliseconds, and after a signal.
pub fn wait(on: &impl AsFd, wait: PollEvent, most_ms: u32) -> bool {
    let most = Duration::from_millis(most_ms.into());
    wait_until(&mut [entry(on.as_fd(), wait)], Some(most)).unwrap_or(false)
}

/// Waits until one of the pipes can be read (or has ended), or `write` can be written; true if so. `None` waits for
/// as long as it takes.
pub fn wait_for(
    read: &[BorrowedFd<'_>],
    write: Option<BorrowedFd<'_>>,
    longest: Option<Duration>,
) -> io::Result<bool> {
    let mut polled = Vec::with_capacity(read.len() + 1);
    polled.extend(read.iter().map(|pipe| entry(*pipe, PollEvent::Read)));
    polled.extend(write.map(|pipe| entry(pipe, PollEvent::Write)));
    wait_until(&mut polled, longest)
}

fn entry(pipe: BorrowedFd<'_>, wait: PollEvent) -> PollFd<'_> {
    let events = match wait {
        PollEvent::Read => PollFlags::IN,
        PollEvent::Write => PollFlags::OUT,
        PollEvent::End => PollFlags::empty(),
    };
    PollFd::from_borrowed_fd(pipe, events)
}

fn wait_until(polled: &mut [PollFd<'_>], longest: Option<Duration>) -> io::Result<bool> {
    let longest = longest.and_then(|longest| Timespec::try_from(longest).ok());
    match poll(polled, longest.as_ref()) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Bytes that can be read from a pipe at once.
pub fn waiting_bytes(pipe: BorrowedFd<'_>) -> usize {
    let bytes = ioctl_fionread(pipe).unwrap_or(0);
    usize::try_from(bytes).unwrap_or(0)
}

/// Asks for room in a pipe; how many bytes it holds now, where the system says.
#[cfg(target_os = "linux")]
pub fn grow_pipe(pipe: BorrowedFd<'_>, bytes: usize) -> Option<usize> {
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, bytes);
    rustix::pipe::fcntl_getpipe_size(pipe).ok()
}

/// Elsewhere a pipe holds what it holds.
#[cfg(not(target_os = "linux"))]
pub fn grow_pipe(_pipe: BorrowedFd<'_>, _bytes: usize) -> Option<usize> {
    None
}

/// Takes over the standard input and output of the process. What reads stdin from now on finds its end, and what writes to
/// stdout writes to stderr. Children do not inherit the two that are given back.
///
/// # Errors
/// The process has no stdin or stdout, or no free descriptors.
pub fn take_over() -> io::Result<(OwnedFd, OwnedFd)> {
    let from = io::stdin().as_fd().try_clone_to_owned()?;
    let to = io::stdout().as_fd().try_clone_to_owned()?;
    dup2_stdin(File::open("/dev/null")?)?;
    dup2_stdout(io::stderr())?;
    Ok((from, to))
}

/// The file that whoever began this process left open for it under this number.
///
/// # Errors
/// No file is open under it.
pub fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: a number, and no memory involved.
    if unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) } == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is open, and was left for this one call: nothing else in the process knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

//! Descriptors of pipes, terminals and devices: opened so that nothing waits, made so, waited for with a limit, replaced;
//! and how many there may be.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

/// Opened with this, no call waits for the other side. A terminal does not become ours. Only Linux tells a FIFO without a
/// writer yet from one without a writer any more.
const NO_WAIT: i32 = if cfg!(target_os = "linux") {
    libc::O_NONBLOCK | libc::O_NOCTTY
} else {
    libc::O_NOCTTY
};

/// More open files than any job has: some programs go through all that there may be, one by one.
const OPEN_FILES_MAX: u64 = 1 << 16;

/// How many files the process could open, softly and at most, before more were allowed.
static OPEN_FILES_GIVEN: OnceLock<(u64, u64)> = OnceLock::new();

/// Lets this process open as many files as its hard limit allows. Programs of the user begin with the limit that there was
/// (`give_back_limit`): `select` knows no descriptor beyond 1023.
pub fn raise_open_files() {
    let Some((soft, hard)) = super::limits_of(libc::RLIMIT_NOFILE) else {
        return;
    };
    let raised = hard.min(OPEN_FILES_MAX);
    if soft < raised && super::limit_softly(libc::RLIMIT_NOFILE, raised, hard).is_ok() {
        let _ = OPEN_FILES_GIVEN.set((soft, hard)); // the first one is the user's
    }
}

/// How many files this process may have open; nothing where that has no limit.
pub fn open_files() -> Option<u64> {
    super::soft_limit(libc::RLIMIT_NOFILE)
}

/// Has a program of the user begin with the limit of open files that the user gave us.
pub(crate) fn give_back_limit(prepared: &mut Command) {
    let Some((soft, hard)) = OPEN_FILES_GIVEN.get().copied() else {
        return;
    };
    // SAFETY: between fork and exec one system call that is safe there; nothing is allocated.
    unsafe {
        prepared.pre_exec(move || super::limit_softly(libc::RLIMIT_NOFILE, soft, hard));
    }
}

/// What a wait is for. Each ends when the other side is gone, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i16)]
pub enum PollEvent {
    /// Something can be read.
    Read = libc::POLLIN,
    /// Something can be written.
    Write = libc::POLLOUT,
    /// Nothing else.
    End = 0,
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
    let fd = pipe.as_raw_fd();
    // SAFETY: the descriptor is open while it is borrowed; the calls touch no memory.
    let failed = unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        flags < 0 || libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK) < 0
    };
    if failed {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Whether reads and writes return at once.
pub fn never_blocks(file: &File) -> bool {
    // SAFETY: a valid descriptor, and no memory involved.
    let flags = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) };
    flags >= 0 && flags & libc::O_NONBLOCK != 0
}

/// Waits for one descriptor; false after so many milliseconds, and after a signal.
pub fn wait(on: &impl AsFd, wait: PollEvent, most_ms: i32) -> bool {
    poll(&mut [entry(on.as_fd(), wait)], most_ms).unwrap_or(false)
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
    let longest_ms = longest.map_or(-1, |longest| {
        i32::try_from(longest.as_millis().max(1)).unwrap_or(i32::MAX)
    });
    poll(&mut polled, longest_ms)
}

fn entry(pipe: BorrowedFd<'_>, wait: PollEvent) -> libc::pollfd {
    libc::pollfd {
        fd: pipe.as_raw_fd(),
        events: wait as i16,
        revents: 0,
    }
}

fn poll(polled: &mut [libc::pollfd], most_ms: i32) -> io::Result<bool> {
    let (entries, count) = (polled.as_mut_ptr(), polled.len() as libc::nfds_t);
    // SAFETY: `polled` holds as many entries as are announced, and outlives the call.
    let ready = unsafe { libc::poll(entries, count, most_ms) };
    if ready >= 0 {
        return Ok(ready > 0);
    }
    match io::Error::last_os_error() {
        error if error.kind() == io::ErrorKind::Interrupted => Ok(false),
        error => Err(error),
    }
}

/// Bytes that can be read from a pipe at once.
pub fn waiting_bytes(pipe: BorrowedFd<'_>) -> usize {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the call writes one `c_int`.
    unsafe { libc::ioctl(pipe.as_raw_fd(), libc::FIONREAD as _, &raw mut bytes) };
    usize::try_from(bytes).unwrap_or(0)
}

/// Asks for room in a pipe; how many bytes it holds now, where the system says.
#[cfg(target_os = "linux")]
pub fn grow_pipe(pipe: BorrowedFd<'_>, bytes: i32) -> Option<usize> {
    // SAFETY: the descriptor is open while it is borrowed; the calls touch no memory.
    let holds = unsafe {
        libc::fcntl(pipe.as_raw_fd(), libc::F_SETPIPE_SZ, bytes);
        libc::fcntl(pipe.as_raw_fd(), libc::F_GETPIPE_SZ)
    };
    usize::try_from(holds).ok()
}

/// Elsewhere a pipe holds what it holds.
#[cfg(not(target_os = "linux"))]
pub(crate) fn grow_pipe(_pipe: BorrowedFd<'_>, _bytes: i32) -> Option<usize> {
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
    replace(File::open("/dev/null")?.as_fd(), libc::STDIN_FILENO)?;
    replace(io::stderr().as_fd(), libc::STDOUT_FILENO)?;
    Ok((from, to))
}

/// The file that whoever began this process left open for it under this number.
///
/// # Errors
/// No file is open under it.
pub fn inherited(number: i32) -> io::Result<OwnedFd> {
    // SAFETY: a number, and no memory involved.
    if unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) } == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is open, and was left for this one call: nothing else in the process knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Has `number` stand for what `descriptor` does.
fn replace(descriptor: BorrowedFd<'_>, number: libc::c_int) -> io::Result<()> {
    // SAFETY: both are numbers of descriptors; no memory is involved.
    match unsafe { libc::dup2(descriptor.as_raw_fd(), number) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

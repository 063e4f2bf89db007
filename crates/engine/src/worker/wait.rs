//! Pipes that never block: waiting for them, for a limited time.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// Reads and writes on `pipe` return at once from now on. It touches our end alone: the ends of a pipe are two
/// open files.
pub(super) fn never_block(pipe: BorrowedFd<'_>) -> io::Result<()> {
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

/// Waits until one of the pipes can be read (or has ended), or `write` can be written; true if so. `None` waits for
/// as long as it takes.
pub(super) fn wait_for(
    read: &[BorrowedFd<'_>],
    write: Option<BorrowedFd<'_>>,
    longest: Option<Duration>,
) -> io::Result<bool> {
    let mut polled: Vec<libc::pollfd> = Vec::with_capacity(read.len() + 1);
    let entry = |pipe: &BorrowedFd<'_>, events| libc::pollfd {
        fd: pipe.as_raw_fd(),
        events,
        revents: 0,
    };
    polled.extend(read.iter().map(|pipe| entry(pipe, libc::POLLIN)));
    polled.extend(write.iter().map(|pipe| entry(pipe, libc::POLLOUT)));
    let longest_ms = longest.map_or(-1, |longest| {
        i32::try_from(longest.as_millis().max(1)).unwrap_or(i32::MAX)
    });
    // SAFETY: `polled` holds as many entries as are announced, and outlives the call.
    let ready = unsafe {
        libc::poll(
            polled.as_mut_ptr(),
            polled.len() as libc::nfds_t,
            longest_ms,
        )
    };
    if ready >= 0 {
        return Ok(ready > 0);
    }
    let error = io::Error::last_os_error();
    if error.kind() == io::ErrorKind::Interrupted {
        return Ok(false);
    }
    Err(error)
}

/// Bytes that can be read from a pipe at once.
pub(super) fn waiting_bytes(pipe: BorrowedFd<'_>) -> usize {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the call writes one `c_int`.
    unsafe { libc::ioctl(pipe.as_raw_fd(), libc::FIONREAD as _, &raw mut bytes) };
    usize::try_from(bytes).unwrap_or(0)
}

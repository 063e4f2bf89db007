//! Output that is written once, from its beginning to its end: a pipe, a terminal, a device.
//!
//! A reader that does not read blocks whoever writes; here it is waited for, with a look at whether the job was
//! cancelled. A pipe that is ready takes 4096 bytes without blocking, a file takes any number.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::WriteFile;
use crate::error::{Error, Result};

/// What a pipe takes at once (POSIX: PIPE_BUF is at least 512; 4096 on Linux).
const PIPE_BYTES: usize = 4096;

/// How long to wait for a reader before looking whether the job was cancelled.
const WAIT_MS: i32 = 50;

/// A stream as a file to write, front to back.
#[derive(Debug)]
pub struct Sink {
    /// The stream, and how much of it is written.
    state: Mutex<(File, u64)>,
    /// How much is written at once.
    step_bytes: usize,
    cancelled: Arc<AtomicBool>,
}

impl Sink {
    /// Writes to `file` from where it stands, until `cancelled` is set.
    pub fn new(file: File, cancelled: Arc<AtomicBool>) -> Self {
        let regular = file.metadata().is_ok_and(|found| found.is_file());
        Sink {
            state: Mutex::new((file, 0)),
            step_bytes: if regular { usize::MAX } else { PIPE_BYTES },
            cancelled,
        }
    }

    fn write(&self, file: &mut File, data: &[u8]) -> Result<()> {
        let mut rest = data;
        while !rest.is_empty() {
            while !ready(file) {
                if self.cancelled.load(Ordering::Relaxed) {
                    return Err(Error::cancelled());
                }
            }
            match file.write(&rest[..rest.len().min(self.step_bytes)]) {
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                    return Err(Error::reader_gone());
                }
                Err(error) => {
                    let path = Path::new("standard output");
                    let failed = Error::from_io("write the output", path, &error);
                    // What was written cannot be taken back: another attempt could only make it worse.
                    return Err(failed.final_error());
                }
            }
        }
        Ok(())
    }
}

/// Waits until a stream takes bytes, or is broken; false after a while without.
fn ready(file: &File) -> bool {
    let mut waiting = libc::pollfd {
        fd: file.as_raw_fd(),
        events: libc::POLLOUT,
        revents: 0,
    };
    // SAFETY: one valid descriptor, and the memory of one answer.
    unsafe { libc::poll(&raw mut waiting, 1, WAIT_MS) != 0 }
}

impl WriteFile for Sink {
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, written) = &mut *state;
        if offset != *written {
            let message = format!("a stream stands at {written}, not at {offset}");
            return Err(Error::bug("write the output", message));
        }
        self.write(file, data)?;
        *written += data.len() as u64;
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }
}

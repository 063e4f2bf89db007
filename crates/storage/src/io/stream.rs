//! What is read or written once, from its beginning to its end: a pipe, a terminal, a device.
//!
//! The rule that must hold: no call waits for the other side. Streams are opened so that nothing blocks where the system
//! has that, and are polled; between polls the caller checks whether the job was cancelled. A stream that others opened
//! and that cannot be opened again may block: a pipe that is ready takes 4096 bytes all the same, a file any number.

pub use std::fs::File;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, IsTerminal, Read, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::WriteFile;
use gristmill_base::error::{Error, Result};
use gristmill_base::sync::lock;
use gristmill_base::sys::descriptors::{self, PollEvent, wait};
use gristmill_base::sys::file_calls::on;

/// What a pipe takes at once (POSIX: PIPE_BUF is at least 512; 4096 on Linux).
const PIPE_BYTES: usize = 4096;

/// How long to wait for the other side before checking for a cancelled job.
const WAIT_MS: u32 = 50;

/// Opens a stream to be read. A FIFO has no writer yet, perhaps: [`read_some`] waits.
///
/// ```
/// use gristmill_storage::io::stream::{open_to_read, read_some};
/// let mut nothing = open_to_read("/dev/null".as_ref())?;
/// assert_eq!(read_some(&mut nothing, &mut [0; 4]).unwrap(), Some(0));
/// # Ok::<(), gristmill_base::Error>(())
/// ```
pub fn open_to_read(path: &Path) -> Result<File> {
    let opened = descriptors::open(OpenOptions::new().read(true), path);
    opened.map_err(|error| Error::from_io("open the input", path, &error))
}

/// Opens a stream to be written, once a FIFO has a reader, unless `cancelled` is set before.
///
/// ```
/// use std::io::Write;
/// use std::sync::atomic::AtomicBool;
/// use gristmill_storage::io::stream::open_to_write;
/// let mut nowhere = open_to_write("/dev/null".as_ref(), &AtomicBool::new(false))?;
/// assert!(nowhere.write_all(b"text").is_ok());
/// # Ok::<(), gristmill_base::Error>(())
/// ```
pub fn open_to_write(path: &Path, cancelled: &AtomicBool) -> Result<File> {
    loop {
        match descriptors::open(OpenOptions::new().write(true), path) {
            Err(error) if descriptors::lacks_reader(&error) && is_fifo(path) => {
                if cancelled.load(Ordering::Relaxed) {
                    return Err(Error::cancelled());
                }
                thread::sleep(Duration::from_millis(WAIT_MS.into()));
            }
            opened => {
                return opened.map_err(|error| Error::from_io("open the output", path, &error));
            }
        }
    }
}

/// Whether something is there that is neither file nor directory: a device or a pipe, which is read once, and is
/// written, not replaced.
pub fn is_special(path: &Path) -> bool {
    // Of what a link leads to, and of where it leads to only if something is there.
    on(path, || std::fs::metadata(path)).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

fn is_fifo(path: &Path) -> bool {
    on(path, || std::fs::metadata(path)).is_ok_and(|found| found.file_type().is_fifo())
}

/// A stream that this process was given, as a file of our own. Pipes and terminals are opened again where that is
/// possible, so that not to wait is no matter of the other processes that have them.
///
/// ```
/// use std::io::Write;
/// use std::os::fd::AsFd;
/// use gristmill_storage::io::stream::{read_some, standard};
/// let (ours, mut theirs) = std::io::pipe().unwrap();
/// theirs.write_all(b"text").unwrap();
/// let (mut stream, mut bytes) = (standard(ours.as_fd(), "standard input", false)?, [0; 10]);
/// assert_eq!(read_some(&mut stream, &mut bytes).unwrap(), Some(4));
/// # Ok::<(), gristmill_base::Error>(())
/// ```
pub fn standard(stream: BorrowedFd<'_>, name: &str, writes: bool) -> Result<File> {
    let failed = |error: io::Error| Error::from_io("use a stream", Path::new(name), &error);
    let ours = File::from(stream.try_clone_to_owned().map_err(failed)?);
    let kind = ours.metadata().map_err(failed)?.file_type();
    let terminal = kind.is_char_device() && ours.is_terminal();
    if !(kind.is_fifo() || terminal) {
        return Ok(ours);
    }
    let again = descriptors::open_again(OpenOptions::new().read(!writes).write(writes), &ours);
    Ok(again.unwrap_or(ours))
}

/// Reads what there is; `None` where nothing came in time.
///
/// ```
/// use std::fs::File;
/// use std::os::fd::OwnedFd;
/// use gristmill_storage::io::stream::read_some;
/// let (stream, writer) = std::io::pipe().unwrap();
/// let mut stream = File::from(OwnedFd::from(stream));
/// assert_eq!(read_some(&mut stream, &mut [0; 4]).unwrap(), None);
/// drop(writer);
/// assert_eq!(read_some(&mut stream, &mut [0; 4]).unwrap(), Some(0));
/// ```
pub fn read_some(file: &mut File, memory: &mut [u8]) -> io::Result<Option<usize>> {
    if !wait(file, PollEvent::Read, WAIT_MS) {
        return Ok(None);
    }
    match file.read(memory) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if may_try_again(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn may_try_again(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock)
}

/// A stream as a file to write, front to back.
#[derive(Debug)]
pub struct StreamWriter {
    /// What it is called in errors.
    name: PathBuf,
    /// The stream, and how much of it is written.
    state: Mutex<(File, u64)>,
    /// How much is written at once.
    step_bytes: usize,
    cancelled: Arc<AtomicBool>,
}

impl StreamWriter {
    /// Writes to `file` from where it stands, until `cancelled` is set. Errors call it `name`.
    pub fn new(file: File, name: PathBuf, cancelled: Arc<AtomicBool>) -> Self {
        let regular = file.metadata().is_ok_and(|found| found.is_file());
        let any = regular || descriptors::never_blocks(&file);
        StreamWriter {
            name,
            state: Mutex::new((file, 0)),
            step_bytes: if any { usize::MAX } else { PIPE_BYTES },
            cancelled,
        }
    }

    fn write(&self, file: &mut File, data: &[u8]) -> Result<()> {
        let mut rest = data;
        while !rest.is_empty() {
            while !wait(file, PollEvent::Write, WAIT_MS) {
                if self.cancelled.load(Ordering::Relaxed) {
                    return Err(Error::cancelled());
                }
            }
            match file.write(&rest[..rest.len().min(self.step_bytes)]) {
                Ok(written) => rest = &rest[written..],
                Err(error) if may_try_again(&error) => {}
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                    return Err(Error::reader_gone());
                }
                Err(error) => {
                    let failed = Error::from_io("write the output", &self.name, &error);
                    // What was written cannot be taken back: another attempt could only make it worse.
                    return Err(failed.final_error());
                }
            }
        }
        Ok(())
    }
}

impl WriteFile for StreamWriter {
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        let mut state = lock(&self.state);
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

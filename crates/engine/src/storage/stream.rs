//! Output that is written once, from its beginning to its end: a pipe, a terminal, a device.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::WriteFile;
use crate::error::{Error, Result};

/// A stream as a file to write, front to back.
#[derive(Debug)]
pub struct Sink {
    /// The stream, and how much of it is written.
    state: Mutex<(File, u64)>,
}

impl Sink {
    /// Writes to `file` from where it stands.
    pub fn new(file: File) -> Self {
        Sink {
            state: Mutex::new((file, 0)),
        }
    }
}

impl WriteFile for Sink {
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, written) = &mut *state;
        if offset != *written {
            let message = format!("a stream stands at {written}, not at {offset}");
            return Err(Error::bug("write the output", message));
        }
        file.write_all(data).map_err(|error| {
            let failed = Error::from_io("write the output", Path::new("standard output"), &error);
            // What was written cannot be taken back, so that another attempt could only make it worse.
            match error.kind() {
                ErrorKind::BrokenPipe => Error::reader_gone(),
                _ => failed.final_error(),
            }
        })?;
        *written += data.len() as u64;
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }
}

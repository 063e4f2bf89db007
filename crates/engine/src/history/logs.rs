//! What attempts printed: a line of JSON for each that did, in a file of its own.
//!
//! Apart from the events, since nobody who lists jobs or draws a report reads it. The lines of one attempt are bounded
//! by who collects them; those of a job here: a job of a million tasks that print has the logs of its first ones.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;

use gristmill_base::names::without_signatures;

/// The file in a job's folder.
pub const LOGS: &str = "logs.jsonl";

/// What a job's logs take at most.
const JOB_BYTES_MAX: usize = 32 << 20;

/// A job's logs.
#[derive(Debug, Default)]
pub(super) struct Logs {
    file: Option<File>,
    bytes: usize,
}

#[derive(Serialize)]
struct LogLine<'a> {
    task: u32,
    attempt: u32,
    stdout: &'a str,
    stderr: &'a str,
}

impl Logs {
    /// Appends what an attempt printed, as long as there is room for it. Logs that cannot be written are missing: no
    /// reason for a job to fail, nor to warn of, as its history would have said so.
    pub(super) fn append(
        &mut self,
        folder: &Path,
        task: u32,
        attempt: u32,
        stdout: &str,
        stderr: &str,
    ) {
        let line = LogLine {
            task,
            attempt,
            stdout,
            stderr,
        };
        let Ok(line) = serde_json::to_string(&line) else {
            return;
        };
        let mut line = without_signatures(&line).into_owned().into_bytes();
        line.push(b'\n');
        self.bytes += line.len();
        if self.bytes > JOB_BYTES_MAX {
            return;
        }
        let written = self.open(folder).and_then(|file| file.write_all(&line));
        if written.is_err() {
            self.bytes = JOB_BYTES_MAX;
        }
    }

    fn open(&mut self, folder: &Path) -> io::Result<&mut File> {
        let file = match self.file.take() {
            Some(file) => file,
            None => File::options()
                .append(true)
                .create(true)
                .open(folder.join(LOGS))?,
        };
        Ok(self.file.insert(file))
    }
}

//! Streams that a job writes: standard output, or what a path leads to that is no file.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use super::job::RunningJob;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_storage::io::stream::{File, StreamWriter, open_to_write, standard};

/// What standard output is called in errors.
const STDOUT: &str = "standard output";

/// Opens a stream, standard output where it has no path; gives what it is called, too. A FIFO is waited for until it has
/// a reader, or the job is cancelled.
pub(in crate::jobs) fn open_stream(
    job: &RunningJob<'_>,
    path: Option<&Path>,
) -> Result<(File, PathBuf)> {
    match path {
        Some(path) => Ok((open_to_write(path, &job.control.flag())?, path.to_owned())),
        None => {
            let stdout = standard(std::io::stdout().as_fd(), STDOUT, true)?;
            Ok((stdout, STDOUT.into()))
        }
    }
}

/// The same, to be written until the job is cancelled.
pub(in crate::jobs) fn stream_writer(
    job: &RunningJob<'_>,
    path: Option<&Path>,
) -> Result<StreamWriter> {
    let (file, name) = open_stream(job, path)?;
    Ok(StreamWriter::new(file, name, job.control.flag()))
}

/// The error of parts that were asked for where the output is a stream.
pub(in crate::jobs) fn no_parts_in_stream() -> Error {
    let message = "parts go to a directory, and the output is a stream";
    Error::new(Kind::BadOption, "read the options", message)
        .advise("name a directory that is not there yet: -o DIR")
}

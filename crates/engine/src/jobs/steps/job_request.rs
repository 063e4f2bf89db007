//! What was asked for, whatever the kind of job.

use crate::plan::table::Common;
use gristmill_storage::location::Location;

/// What was asked for.
#[derive(Debug, Clone, Copy)]
pub(in crate::jobs) struct JobRequest<'a> {
    pub(in crate::jobs) command: &'static str,
    /// The options that the job has in common with others.
    pub(in crate::jobs) common: &'a Common,
    /// All its options, as JSON.
    pub(in crate::jobs) options: &'a str,
    /// Whether runs go to a directory for what is temporary: there is no place where they usually are.
    pub(in crate::jobs) spills_elsewhere: bool,
    /// What it publishes.
    pub(in crate::jobs) output: Option<JobOutput<'a>>,
}

/// What a job publishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::jobs) enum JobOutput<'a> {
    /// A directory with a `_SUCCESS`.
    Directory(&'a Location),
    /// Such a directory, whose files are called as its records say.
    NamedFiles(&'a Location),
    /// One file.
    File(&'a Location),
}

impl<'a> JobOutput<'a> {
    /// Where it is.
    pub(in crate::jobs) fn path(self) -> &'a Location {
        match self {
            JobOutput::Directory(path) | JobOutput::NamedFiles(path) | JobOutput::File(path) => {
                path
            }
        }
    }

    /// Whether its records say how its files are called.
    pub(in crate::jobs) fn names_files(self) -> bool {
        matches!(self, JobOutput::NamedFiles(_))
    }

    /// A name that a file of it may have.
    pub(in crate::jobs) fn any_file(self) -> Location {
        match self {
            JobOutput::Directory(path) | JobOutput::NamedFiles(path) => path.join("part"),
            JobOutput::File(path) => path.clone(),
        }
    }
}

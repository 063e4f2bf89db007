//! How a task in a worker can fail: what each case knows, for whoever makes a paragraph of it.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Death;
use super::heartbeat::RecordPosition;
use gristmill_base::error::Advice;

/// Why a task did not end well. Apart from `Failed`, the worker is gone in every case.
#[derive(Debug, Clone, PartialEq)]
pub enum WorkerError {
    /// The worker says so itself: an exception of the user's code, for one.
    Failed(Box<TaskFailure>),
    /// The worker could not be started, or did not get as far as its first word.
    NotStarted {
        /// The program.
        program: String,
        /// What happened: an error of the system's, or how it ended.
        reason: String,
        /// The end of what it wrote to stderr.
        stderr: String,
    },
    /// The worker ended in the middle of the task.
    Died {
        /// How.
        how: Death,
        /// Where it stood.
        at: Option<RecordPosition>,
        /// The end of what it wrote to stderr; the stack, if it could write one.
        stderr: String,
        /// The end of what it printed.
        stdout: String,
    },
    /// The pulse stood still for too long.
    Hung {
        /// For how long.
        seconds: f64,
        /// Where it stands.
        at: Option<RecordPosition>,
        /// The stacks of its threads, if it could write them.
        stack: Option<String>,
        /// The end of what it wrote to stderr before.
        stderr: String,
        /// The end of what it printed.
        stdout: String,
    },
    /// The worker and its children held more memory than they may.
    TooMuchMemory {
        /// What they held.
        bytes: u64,
        /// What they may.
        limit: u64,
        /// Where it stood.
        at: Option<RecordPosition>,
        /// The end of what it wrote to stderr.
        stderr: String,
        /// The end of what it printed.
        stdout: String,
    },
    /// The task was stopped.
    Cancelled,
    /// What came from the worker is not the protocol.
    Broken(String),
}

/// What a worker says about a task that failed. Read leniently: what is missing is empty.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskFailure {
    /// What kind of thing went wrong.
    pub kind: FailureKind,
    /// One paragraph, without the traceback.
    pub message: String,
    /// The frames of the user's code; empty where there are none.
    pub traceback: String,
    /// Where in the input.
    #[serde(rename = "where")]
    pub place: Option<Where>,
    /// Where else, by name: what an error of the engine's says.
    pub context: Vec<(String, String)>,
    /// What to do about it.
    pub advice: Option<Advice>,
    /// Whether what is wrong is a file that the job had made itself.
    pub own_work: bool,
    /// The record, shortened, as a person would recognise it.
    pub record: String,
    /// Equal for the same exception at the same record: then another attempt will not help either.
    pub fingerprint: String,
    /// Whether another attempt can help.
    pub retryable: bool,
    /// The end of what the task wrote to stderr; the driver's to say.
    #[serde(skip)]
    pub stderr: String,
    /// The end of what it printed, likewise.
    #[serde(skip)]
    pub stdout: String,
    /// Where the pulse stood, likewise.
    #[serde(skip)]
    pub at: Option<RecordPosition>,
}

/// The kinds of failures that a worker tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The user's code raised an exception.
    UserCode,
    /// The input is not what it was said to be.
    BadInput,
    /// The worker's memory is too small.
    Memory,
    /// A device or file system failed.
    Io,
    /// A disk is full.
    DiskFull,
    /// Gristmill is wrong, as it is where a worker names another kind.
    #[default]
    #[serde(other)]
    Bug,
}

/// Where in the input a worker found a failure.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Where {
    /// The file; empty where it is not known.
    #[serde(with = "gristmill_base::names")]
    pub file: PathBuf,
    /// The byte at which the record begins.
    pub offset: u64,
    /// The record's number in its split, from 0.
    pub record: u64,
    /// The line's number in the file, from 1; 0: not known.
    pub line: u64,
}

impl fmt::Display for WorkerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = |at: &Option<RecordPosition>| match at {
            Some(at) => format!(" at record {}, offset {}", at.record, at.offset),
            None => String::new(),
        };
        match self {
            WorkerError::Failed(failure) => f.write_str(&failure.message),
            WorkerError::NotStarted {
                program, reason, ..
            } => write!(f, "the worker {program} did not start: {reason}"),
            WorkerError::Died { how, at, .. } => write!(f, "the worker {how}{}", place(at)),
            WorkerError::Hung { seconds, at, .. } => {
                write!(
                    f,
                    "the worker made no progress for {seconds:.1} s{}",
                    place(at)
                )
            }
            WorkerError::TooMuchMemory {
                bytes, limit, at, ..
            } => write!(
                f,
                "the worker held {bytes} bytes of memory, more than its {limit}{}",
                place(at)
            ),
            WorkerError::Cancelled => f.write_str("the task was stopped"),
            WorkerError::Broken(what) => write!(f, "the worker broke the protocol: {what}"),
        }
    }
}

impl std::error::Error for WorkerError {}

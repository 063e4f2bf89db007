//! People's code in worker processes: a task goes there as JSON, and its report or its failure comes back.
//!
//! ```text
//!   WorkSpec ──JSON──▶ a leased worker ──JSON──▶ WorkReport
//!                          └──▶ an exception, a crash, silence, too much memory ──▶ one Error with all that is known
//! ```
//!
//! The rule that must hold: what fails in the same way at the same record twice is not tried again.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::Attempt;
use super::again::{How, WorkAgain};
use super::work::{Work, WorkKind, WorkReport, WorkSpec};
use crate::error::{Error, JobOption, Kind, MAKE_ROOM, Result};
use crate::worker::{
    Command, Definition, Failure, FailureKind, Limits, Place, Processes, WorkerError,
};

/// Runs tasks of one job in processes of this process's pool.
#[derive(Debug)]
pub struct ProcessWork {
    command: Command,
    definition: Definition,
    limits: Limits,
    /// How each task failed the last time.
    failures: Mutex<BTreeMap<u32, String>>,
}

impl ProcessWork {
    /// Work by processes of `command` that are given `definition`.
    pub fn new(command: Command, definition: Definition, limits: Limits) -> Self {
        ProcessWork {
            command,
            definition,
            limits,
            failures: Mutex::default(),
        }
    }

    /// Whether the task failed like this before; notes that it did.
    fn again(&self, task: u32, fingerprint: &str) -> bool {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let before = failures.insert(task, fingerprint.to_owned());
        before.as_deref() == Some(fingerprint)
    }

    fn error(&self, spec: &WorkSpec, error: WorkerError) -> Error {
        if error == WorkerError::Cancelled {
            return Error::cancelled();
        }
        let (error, fingerprint) = match error {
            WorkerError::Failed(failure) => of_failure(spec, *failure),
            error => of_process(spec, &error),
        };
        if !fingerprint.is_empty() && self.again(spec.task, &fingerprint) {
            return error.final_error();
        }
        error
    }
}

impl Work for ProcessWork {
    fn again(&self) -> Option<WorkAgain> {
        Some(WorkAgain {
            how: How::processes(&self.command, self.limits)?,
            definition: self.definition.bytes.to_vec(),
        })
    }

    fn run(&self, spec: &WorkSpec, attempt: &Attempt<'_>) -> Result<WorkReport> {
        let json = serde_json::to_vec(spec)
            .map_err(|error| Error::bug("write a task", error.to_string()))?;
        let mut on_progress = |bytes| {
            let _ = attempt.progress(bytes); // the worker is told of a stop by the flag itself
        };
        let report = Processes::shared()
            .lease(&self.command, &self.definition.key)
            .and_then(|mut worker| {
                let (definition, stop) = (&self.definition, &attempt.stop);
                worker.run(definition, &json, self.limits, stop, &mut on_progress)
            })
            .map_err(|error| self.error(spec, error))?;
        serde_json::from_slice(&report).map_err(|error| {
            Error::bug("read the report of a worker", error.to_string()).with("task", spec.task)
        })
    }
}

/// What the user's function was doing.
fn operation(spec: &WorkSpec) -> &'static str {
    match spec.work {
        WorkKind::Map { .. } => "map a record",
        WorkKind::Reduce { .. } => "reduce a partition",
    }
}

/// The error that a worker itself reported.
fn of_failure(spec: &WorkSpec, failure: Failure) -> (Error, String) {
    let kind = match failure.kind {
        FailureKind::UserCode => Kind::UserCode,
        FailureKind::BadInput => Kind::BadInput,
        FailureKind::Memory => Kind::Memory,
        FailureKind::Io => Kind::Io,
        FailureKind::DiskFull => Kind::DiskFull,
        FailureKind::Bug => Kind::Bug,
    };
    let message = failure.message.trim().trim_end_matches('.').to_owned();
    let mut error = Error::new(kind, operation(spec), message);
    if kind == Kind::DiskFull {
        error = error.advise(MAKE_ROOM);
    }
    if let Some(place) = &failure.place {
        if !place.file.is_empty() {
            error = error.with("file", &place.file).with("offset", place.offset);
        }
        if place.line > 0 {
            error = error.with("line", place.line);
        }
    }
    for (name, value) in failure.context {
        error = error.with(name, value);
    }
    if !failure.record.is_empty() {
        error = error.with("record", &failure.record);
    }
    if let Some(advice) = failure.advice {
        error = error.with_advice(advice);
    }
    if failure.own_work {
        error = error.of_own_work();
    }
    if !failure.traceback.is_empty() {
        error = error.detail("traceback", failure.traceback);
    }
    if !failure.stderr.is_empty() {
        error = error.detail("stderr", failure.stderr);
    }
    if failure.retryable {
        error = error.retryable_error();
    }
    (error, failure.fingerprint)
}

/// The error of a worker that came to its end.
fn of_process(spec: &WorkSpec, error: &WorkerError) -> (Error, String) {
    let told = |kind, message: String, at: &Option<Place>, stderr: &str| {
        let mut error = Error::new(kind, operation(spec), message);
        if let Some(at) = at {
            error = located(error, spec, at);
        }
        if !stderr.is_empty() {
            error = error.detail("stderr", stderr.to_owned());
        }
        let place = at.map(|at| (at.file, at.offset, at.record));
        (error.retryable_error(), place)
    };
    match error {
        WorkerError::Died { how, at, stderr } => {
            let message = format!("the worker process {how}");
            let (error, place) = told(Kind::UserCode, message, at, stderr);
            let error = error.advise(
                "look whether a native library that your code uses fails at this record, and whether memory ran out",
            );
            (error, format!("died {how} {place:?}"))
        }
        WorkerError::Hung {
            seconds,
            at,
            stack,
            stderr,
        } => {
            let message = format!("there was no progress for {seconds:.0} seconds");
            let (mut error, place) = told(Kind::UserCode, message, at, stderr);
            if let Some(stack) = stack {
                error = error.detail("stack", stack.clone());
            }
            let error = error.advise_options(
                "look for an endless loop, or give a longer {}",
                [JobOption::Timeout.named()],
            );
            (error, format!("hung {place:?}"))
        }
        WorkerError::TooMuchMemory {
            bytes,
            limit,
            at,
            stderr,
        } => {
            let message =
                format!("the worker process held {bytes} bytes of memory, more than its {limit}");
            let (error, place) = told(Kind::Memory, message, at, stderr);
            let error = error.advise_options(
                "keep less in memory at once, or give a larger {}",
                [JobOption::WorkerMemory.named()],
            );
            (error, format!("memory {place:?}"))
        }
        WorkerError::NotStarted { stderr, .. } => {
            let (error, _) = told(Kind::Io, error.to_string(), &None, stderr);
            (error, "not started".to_owned())
        }
        _ => {
            let (error, _) = told(Kind::UserCode, error.to_string(), &None, "");
            let error = error
                .advise("look whether your code writes to file descriptors that are not its own");
            (error, error_text(spec))
        }
    }
}

fn error_text(spec: &WorkSpec) -> String {
    format!("broken {}", spec.task)
}

/// Where a worker stood, by the names in its split.
fn located(error: Error, spec: &WorkSpec, at: &Place) -> Error {
    let WorkKind::Map { what, .. } = &spec.work else {
        return error.with("pair", at.record);
    };
    let piece = &what["pieces"][at.file as usize];
    match piece["path"].as_str() {
        Some(path) => error.with("file", path).with("offset", at.offset),
        None => error,
    }
    .with("record of the split", at.record)
}

//! User code in worker processes: a task goes there as JSON, and its report or its failure comes back.
//!
//! ```text
//!   UserAttemptSpec ──JSON──▶ a leased worker ──JSON──▶ UserTaskReport
//!                          └──▶ an exception, a crash, silence, too much memory ──▶ one Error with all that is known
//! ```
//!
//! The rule that must hold: an error says what is equal if the task fails in the same way at the same record again, so
//! that the runner does not try a third time.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use serde_json::json;

use super::executor::UserTaskExecutor;
use super::executor_spec::{ExecutorKind, ExecutorSpec};
use super::failed::{FailedAt, file_of};
use super::spec::{UserAttemptSpec, UserTaskFile, UserTaskKind, UserTaskReport};
use crate::task::attempt::TaskAttempt;
use crate::worker::{
    Death, FailureKind, ProcessPool, RecordPosition, TaskFailure, WorkerCommand, WorkerDefinition,
    WorkerError, WorkerLimits,
};
use gristmill_base::error::{Error, JobOption, Kind, MAKE_ROOM, Result, show_bytes};
use gristmill_base::names::{name_of, spell};
use gristmill_base::sync::lock;
use gristmill_storage::net::requests::{RequestCounts, Requests};

/// What [`UserTaskExecutor::give_one_schema`] does, for errors.
const ONE_SCHEMA: &str = "give all parts of the output one schema";

/// Runs tasks of one job in processes of this process's pool.
#[derive(Debug)]
pub struct ProcessPoolExecutor {
    command: WorkerCommand,
    definition: WorkerDefinition,
    limits: WorkerLimits,
    /// Where each task failed the last time.
    failures: Mutex<BTreeMap<u32, Option<FailedAt>>>,
    /// What the processes have asked stores for, until somebody takes it.
    requests: Requests,
}

impl ProcessPoolExecutor {
    /// Work by processes of `command` that are given `definition`.
    pub fn new(command: WorkerCommand, definition: WorkerDefinition, limits: WorkerLimits) -> Self {
        ProcessPoolExecutor {
            command,
            definition,
            limits,
            failures: Mutex::default(),
            requests: Requests::default(),
        }
    }

    fn error(&self, spec: &UserAttemptSpec, error: WorkerError) -> Error {
        if error == WorkerError::Cancelled {
            return Error::cancelled();
        }
        let at = FailedAt::of(spec, &error, self.limits);
        let (error, fingerprint) = match error {
            WorkerError::Failed(failure) => of_failure((operation(spec), attempt(spec)), *failure),
            error => of_process(spec, &error),
        };
        let mut failures = lock(&self.failures);
        failures.insert(spec.task, at);
        error.recurring(fingerprint)
    }
}

impl UserTaskExecutor for ProcessPoolExecutor {
    fn spec(&self) -> Option<ExecutorSpec> {
        Some(ExecutorSpec {
            kind: ExecutorKind::processes(&self.command, self.limits),
            definition: self.definition.bytes.to_vec(),
        })
    }

    fn take_requests(&self) -> RequestCounts {
        self.requests.take()
    }

    fn failed_at(&self, task: u32) -> Option<FailedAt> {
        let failures = lock(&self.failures);
        failures.get(&task).cloned().flatten()
    }

    fn run(&self, spec: &UserAttemptSpec, attempt: &TaskAttempt<'_>) -> Result<UserTaskReport> {
        let json = serde_json::to_vec(spec)
            .map_err(|error| Error::bug("write a task", error.to_string()))?;
        let mut on_progress = |bytes| {
            let _ = attempt.progress(bytes); // the worker is told of a stop by the flag itself
        };
        let (report, printed) = ProcessPool::shared()
            .lease(&self.command, &self.definition.key)
            .and_then(|mut worker| {
                let (definition, stop) = (&self.definition, &attempt.stop);
                let ran = worker.run(definition, &json, self.limits, stop, &mut on_progress);
                self.requests.add(worker.requests());
                Ok((ran?, worker.printed()))
            })
            .map_err(|error| self.error(spec, error))?;
        let report: UserTaskReport = serde_json::from_slice(&report).map_err(|error| {
            Error::bug("read the report of a worker", error.to_string()).with("task", spec.task)
        })?;
        Ok(UserTaskReport { printed, ..report })
    }

    fn give_one_schema(
        &self,
        folder: &Path,
        files: &[&UserTaskFile],
        stop: &AtomicBool,
    ) -> Result<Vec<UserTaskFile>> {
        let spec = json!({"folder": spell(folder), "files": files}).to_string();
        let limits = WorkerLimits {
            timeout: None, // a part is as long as it is
            ..self.limits
        };
        let report = ProcessPool::shared()
            .lease(&self.command, &self.definition.key)
            .and_then(|mut worker| {
                worker.run(&self.definition, spec.as_bytes(), limits, stop, &mut |_| ())
            })
            .map_err(|error| match error {
                WorkerError::Cancelled => Error::cancelled(),
                WorkerError::Failed(failure) => of_failure((ONE_SCHEMA, ONE_SCHEMA), *failure).0,
                error => Error::new(Kind::UserCode, ONE_SCHEMA, error.to_string()),
            })?;
        serde_json::from_slice(&report)
            .map_err(|error| Error::bug("read the report of a worker", error.to_string()))
    }
}

/// What the user's function was doing.
fn operation(spec: &UserAttemptSpec) -> &'static str {
    match spec.work {
        UserTaskKind::Map { .. } => "map a record",
        UserTaskKind::Reduce { .. } | UserTaskKind::Regroup { .. } => "reduce a partition",
    }
}

/// What the task was: no function is to blame for a disk that is full.
fn attempt(spec: &UserAttemptSpec) -> &'static str {
    match spec.work {
        UserTaskKind::Map { .. } => "run a map task",
        UserTaskKind::Reduce { .. } | UserTaskKind::Regroup { .. } => "run a reduce task",
    }
}

/// The error that a worker itself reported.
fn of_failure(
    (operation, attempt): (&'static str, &'static str),
    failure: TaskFailure,
) -> (Error, String) {
    let kind = match failure.kind {
        FailureKind::UserCode => Kind::UserCode,
        FailureKind::BadInput => Kind::BadInput,
        FailureKind::Memory => Kind::Memory,
        FailureKind::Io => Kind::Io,
        FailureKind::DiskFull => Kind::DiskFull,
        FailureKind::Bug => Kind::Bug,
    };
    let message = failure.message.trim().trim_end_matches('.').to_owned();
    let mut error = Error::new(kind, operation, message);
    if kind == Kind::DiskFull {
        error = error.advise(MAKE_ROOM);
    }
    if let Some(place) = &failure.place {
        if !place.file.as_os_str().is_empty() {
            error = error.with_path(&place.file).with("offset", place.offset);
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
    error = printed(error, &failure.stdout, &failure.stderr);
    if kind == Kind::DiskFull {
        error = error.during(attempt);
    }
    if failure.retryable {
        error = error.retryable_error();
    }
    (error, failure.fingerprint)
}

/// The error of a worker that stood at a place when it ended, and what is equal where it ends there again.
fn ended(
    spec: &UserAttemptSpec,
    (kind, message): (Kind, String),
    at: &Option<RecordPosition>,
    (stdout, stderr): (&str, &str),
) -> (Error, Option<(u64, u64, u64)>) {
    let mut error = Error::new(kind, operation(spec), message);
    if let Some(at) = at {
        error = located(error, spec, at);
    }
    error = printed(error, stdout, stderr);
    let place = at.map(|at| (at.file, at.offset, at.record));
    (error.retryable_error(), place)
}

/// The error of a worker that came to its end.
fn of_process(spec: &UserAttemptSpec, error: &WorkerError) -> (Error, String) {
    let told = |kind, message, at: &_, printed| ended(spec, (kind, message), at, printed);
    match error {
        WorkerError::Died {
            how,
            at,
            stderr,
            stdout,
        } => {
            let message = format!("the worker process {how}");
            let (error, place) = told(Kind::UserCode, message, at, (stdout, stderr));
            let error = error.advise(match how {
                Death::Exit { .. } if stderr.is_empty() => "look for os._exit() in your code and its libraries",
                Death::Exit { .. } => "see what its stderr says, and look for os._exit() in your code and its libraries",
                _ => "check that no native library that your code uses fails at this record, and that memory did not run out",
            });
            (error, format!("died {how} {place:?}"))
        }
        WorkerError::Hung {
            seconds,
            at,
            stack,
            stderr,
            stdout,
        } => {
            let message = format!("there was no progress for {seconds:.0} seconds");
            let (mut error, place) = told(Kind::UserCode, message, at, (stdout, stderr));
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
            stdout,
        } => {
            let message = format!(
                "the worker process held {} of memory, more than its {}",
                show_bytes(*bytes),
                show_bytes(*limit)
            );
            let (error, place) = told(Kind::Memory, message, at, (stdout, stderr));
            let error = error.advise_options(
                "keep less in memory at once, or give a larger {}",
                [JobOption::WorkerMemory.named()],
            );
            (error, format!("memory {place:?}"))
        }
        WorkerError::NotStarted { stderr, .. } => (
            told(Kind::Io, error.to_string(), &None, ("", stderr)).0,
            "not started".to_owned(),
        ),
        _ => {
            let (error, _) = told(Kind::UserCode, error.to_string(), &None, ("", ""));
            let error = error
                .advise("check that your code writes to no file descriptors that are not its own");
            (error, error_text(spec))
        }
    }
}

fn error_text(spec: &UserAttemptSpec) -> String {
    format!("broken {}", spec.task)
}

/// What user code wrote, each stream for itself.
fn printed(mut error: Error, stdout: &str, stderr: &str) -> Error {
    for (name, text) in [("stdout", stdout), ("stderr", stderr)] {
        if !text.is_empty() {
            error = error.detail(name, text);
        }
    }
    error
}

/// Where a worker stood, by the names in its split.
fn located(error: Error, spec: &UserAttemptSpec, at: &RecordPosition) -> Error {
    let UserTaskKind::Map { what, .. } = &spec.work else {
        return error.with("pair", at.record);
    };
    match file_of(&what.value(), at.file) {
        Some(path) => error
            .with_path(name_of(path).as_ref())
            .with("offset", at.offset),
        None => error,
    }
    .with("record", format!("{} of its split", at.record))
}

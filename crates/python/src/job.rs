//! A job, run on a thread of its own so that Python stays free to show progress and take Ctrl-C.

use std::ffi::OsString;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use gristmill_engine::budget::ProcessOwner;
use gristmill_engine::error::Spelling;
use gristmill_engine::history::HistoryConfig;
use gristmill_engine::jobs::{self, Environment, JobReport, JobSpec};
use gristmill_engine::names::spell;
use gristmill_engine::runner::{Cluster as Agents, Control};
use gristmill_engine::sys::threads::begin;
use gristmill_engine::{Error, Kind};
use pyo3::prelude::*;

use crate::attended::attended_as;
use crate::cluster::PyCluster;
use crate::error::{to_exception, to_python};
use crate::history::History;
use crate::stores::stores_of_job;
use crate::tasks::worker_command;
use crate::work::Executor;
use gristmill_engine::sync::lock;

/// The longest that a job which is dropped may take to clean up.
const CLEANING: Duration = Duration::from_secs(30);

/// What the job's thread and Python share.
#[derive(Default)]
struct JobState {
    control: Control,
    report: Mutex<Option<JobReport>>,
    over: Condvar,
}

/// A running or finished job.
#[pyclass(frozen)]
pub struct Job {
    shared: Arc<JobState>,
    /// How options are called where the job was begun.
    spelling: Spelling,
    /// Nobody waits for it any more, even if it does not clean up.
    left: AtomicBool,
    /// The process that it runs in: a fork of it has this object, but not the job.
    process: u32,
}

/// A job that nobody waits for any more, as when Ctrl-C comes before the wait begins, ends and cleans up first.
impl Drop for Job {
    fn drop(&mut self) {
        if self.process == std::process::id() && !self.shared.wait(Duration::ZERO) {
            self.shared.control.cancel();
            if self.left.load(Ordering::Relaxed) {
                return;
            }
            Python::try_attach(|py| py.detach(|| self.shared.wait(CLEANING)));
        }
    }
}

impl JobState {
    /// Whether the job is over, within so long.
    fn wait(&self, longest: Duration) -> bool {
        let report = lock(&self.report);
        let waited = self
            .over
            .wait_timeout_while(report, longest, |report| report.is_none());
        waited.unwrap_or_else(PoisonError::into_inner).0.is_some()
    }
}

/// How options are called on the command line, or by Python's functions.
pub fn spelling_of(command_line: bool) -> Spelling {
    if command_line {
        Spelling::CommandLine
    } else {
        Spelling::Python
    }
}

/// Whose process a job runs in: `gristmill`'s own, or that of a program which uses the package.
fn process_of(command_line: bool) -> ProcessOwner {
    if command_line {
        ProcessOwner::Own
    } else {
        ProcessOwner::Host
    }
}

#[pymethods]
impl Job {
    #[new]
    #[pyo3(signature = (spec, job_id, history = None, *, work = None, cluster = None, command_line = false))]
    fn new(
        py: Python<'_>,
        spec: &str,
        job_id: String,
        history: Option<&History>,
        work: Option<&Executor>,
        cluster: Option<&PyCluster>,
        command_line: bool,
    ) -> PyResult<Self> {
        let spelling = spelling_of(command_line);
        let cluster = cluster.map(|cluster| Arc::clone(&cluster.0));
        let spec = JobSpec::from_json(spec).map_err(|error| to_exception(&error, spelling))?;
        let store = stores_of_job().map_err(|error| to_exception(&error, spelling))?;
        let spec = spec.placed(&store, Path::new("."));
        let options = kept_options(spec.options());
        let history = history.map_or_else(HistoryConfig::default, |history| history.place(options));
        let work = work.map(Executor::to_engine);
        let (interpreter, worker) = (interpreter(py)?, worker_command(py)?);
        let shared = Arc::new(JobState::default());
        let theirs = Arc::clone(&shared);
        let job = move || {
            let environment = Environment {
                store,
                job_id,
                history,
                work,
                interpreter,
                process: process_of(command_line),
                worker,
                cluster,
            };
            let report = jobs::run(&spec, &environment, &theirs.control);
            *lock(&theirs.report) = Some(report);
            theirs.over.notify_all();
        };
        begin("job", job).map_err(|error| to_exception(&error, spelling))?;
        Ok(Job {
            shared,
            spelling,
            left: AtomicBool::new(false),
            process: std::process::id(),
        })
    }

    fn wait(&self, py: Python<'_>, timeout_s: f64) -> bool {
        let limit = Duration::from_secs_f64(timeout_s.clamp(0.0, 3600.0));
        py.detach(|| self.shared.wait(limit))
    }

    fn progress(&self) -> (&'static str, usize, u64, u64) {
        let progress = self.shared.control.progress();
        (
            progress.name,
            progress.index,
            progress.done_bytes,
            progress.bytes,
        )
    }

    fn nodes(&self) -> (usize, usize) {
        let progress = self.shared.control.progress();
        (progress.nodes, progress.running)
    }

    fn notices(&self) -> Vec<String> {
        self.shared.control.notices()
    }

    fn cancel(&self) {
        self.shared.control.cancel();
    }

    fn leave(&self) {
        self.shared.control.cancel();
        self.left.store(true, Ordering::Relaxed);
    }

    fn report(&self) -> PyResult<String> {
        let report = lock(&self.shared.report);
        let Some(report) = &*report else {
            let error = Error::new(Kind::BadOption, "give the report", "the job still runs");
            return Err(to_python(&error));
        };
        to_json(&report.clone().spelled(self.spelling))
    }

    fn raise_failure(&self) -> PyResult<()> {
        let report = lock(&self.shared.report);
        match report.as_ref().and_then(|report| report.failure.as_ref()) {
            Some(error) => Err(to_exception(error, self.spelling)),
            None => Ok(()),
        }
    }
}

/// Which Python runs user code: a resumed job runs the same.
fn interpreter(py: Python<'_>) -> PyResult<String> {
    let program: Option<OsString> = py.import("sys")?.getattr("executable")?.extract()?;
    let version = Python::version_str();
    Ok(format!(
        "Python {version} at {}",
        spell(program.unwrap_or_default())
    ))
}

/// The options as the history keeps them: without what is as long as the input has parts.
fn kept_options(spec: &str) -> serde_json::Value {
    let mut options: serde_json::Value = serde_json::from_str(spec).unwrap_or_default();
    if let Some(job) = options
        .get_mut("mapreduce")
        .and_then(|job| job.as_object_mut())
    {
        for long in ["splits", "files", "side_files", "code"] {
            job.remove(long);
        }
    }
    options
}

/// The names of the commands' functions: without their options, since every import asks for them.
#[pyfunction]
pub fn function_names() -> Vec<&'static str> {
    let commands = jobs::commands().into_iter();
    commands.map(|command| command.function()).collect()
}

/// The table of commands and their options, as JSON.
#[pyfunction]
pub fn commands() -> PyResult<String> {
    to_json(&jobs::commands())
}

/// The command of user code, as JSON: its options are those that it has in common with others.
#[pyfunction]
pub fn user_code() -> PyResult<String> {
    to_json(jobs::user_code())
}

fn to_json<T: serde::Serialize>(value: &T) -> PyResult<String> {
    serde_json::to_string(value)
        .map_err(|error| to_python(&Error::bug("write JSON", error.to_string())))
}

/// Why a dead job cannot be resumed, if it cannot.
#[pyfunction]
#[pyo3(signature = (spec, *, program, keeps_code))]
pub fn why_not_resumed(spec: &str, program: &str, keeps_code: bool) -> Option<String> {
    jobs::why_not_resumed(spec, program, keeps_code)
}

/// What must be known to begin the agents of a job that is resumed on a cluster, as JSON; nothing of one that ran on this machine.
#[pyfunction]
pub fn resumed_agents(py: Python<'_>, history: &History, name: &str) -> PyResult<Option<String>> {
    let store = stores_of_job().map_err(|error| to_python(&error))?;
    let environment = Environment {
        store: Arc::clone(&store),
        job_id: String::new(),
        history: history.place(serde_json::Value::Null),
        work: None,
        interpreter: interpreter(py)?,
        process: process_of(false),
        worker: None,
        cluster: None,
    };
    let found = attended_as(py, &store, Spelling::Python, |_| {
        jobs::resumed_agents(name, &environment)
    })?;
    found.map(|found| to_json(&found)).transpose()
}

/// What a job would do, as JSON.
#[pyfunction]
#[pyo3(signature = (spec, *, cluster = None, command_line = false))]
pub fn explain(
    py: Python<'_>,
    spec: &str,
    cluster: Option<&str>,
    command_line: bool,
) -> PyResult<String> {
    let worker = worker_command(py)?;
    let spelling = spelling_of(command_line);
    let cluster = cluster.map(Agents::from_json).transpose();
    let cluster = cluster.map_err(|error| to_exception(&error, spelling))?;
    let cluster = cluster.map(Arc::new);
    let store = stores_of_job().map_err(|error| to_exception(&error, spelling))?;
    let explained = attended_as(py, &store, spelling, |_| {
        let spec = JobSpec::from_json(spec)?.placed(&store, Path::new("."));
        let environment = Environment {
            store: Arc::clone(&store),
            job_id: String::new(),
            history: HistoryConfig::default(),
            work: None,
            interpreter: String::new(),
            process: process_of(command_line),
            worker,
            cluster: cluster.clone(),
        };
        jobs::explain(&spec, &environment)
    })?;
    serde_json::to_string(&explained)
        .map_err(|error| to_python(&Error::bug("write a plan", error.to_string())))
}

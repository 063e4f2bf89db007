//! What runs a job's tasks: worker processes of a command, with the job's pickled functions; or scripts.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use gristmill_engine::Error;
use gristmill_engine::plan::streaming::{SplitRequest, split};
use gristmill_engine::task::streaming::{StreamingExecutor, retry};
use gristmill_engine::task::{self, ProcessPoolExecutor};
use gristmill_engine::worker::{ProcessPool, WorkerCommand, WorkerDefinition, WorkerLimits};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::attended::attended;
use crate::error::to_python;
use crate::stores::stores;

/// Between two looks for a signal.
const LOOK: Duration = Duration::from_millis(50);

/// Who runs the tasks of one job.
#[pyclass(frozen)]
pub struct Executor(ExecutorBackend);

enum ExecutorBackend {
    /// In so many processes.
    Processes(Arc<ProcessPoolExecutor>, usize),
    Scripts(Arc<StreamingExecutor>),
}

#[pymethods]
impl Executor {
    #[new]
    #[pyo3(signature = (command, definition, key, *, environment, scratch, workers, folder = None, timeout_s = None, worker_memory = None))]
    #[expect(clippy::too_many_arguments, reason = "each is an option of its own")]
    #[expect(clippy::needless_pass_by_value, reason = "as PyO3 gives it")]
    fn new(
        command: Vec<OsString>,
        definition: &[u8],
        key: [u8; 32],
        environment: BTreeMap<OsString, OsString>,
        scratch: PathBuf,
        workers: usize,
        folder: Option<PathBuf>,
        timeout_s: Option<f64>,
        worker_memory: Option<u64>,
    ) -> PyResult<Self> {
        let command = worker_command(&command, environment, scratch, folder)?;
        let timeout = timeout_s.map(Duration::try_from_secs_f64).transpose();
        let timeout =
            timeout.map_err(|error| PyValueError::new_err(format!("timeout_s: {error}")))?;
        let bytes = definition.into();
        let limits = WorkerLimits {
            timeout,
            memory_bytes: worker_memory,
            ..WorkerLimits::default()
        };
        let work = ProcessPoolExecutor::new(command, WorkerDefinition { key, bytes }, limits);
        Ok(Executor(ExecutorBackend::Processes(
            Arc::new(work),
            workers,
        )))
    }

    #[staticmethod]
    #[expect(
        clippy::disallowed_methods,
        reason = "the edge itself: it is the environment that scripts inherit"
    )]
    fn scripts(definition: &str) -> PyResult<Self> {
        let work = StreamingExecutor::new(definition, stores());
        let environment = std::env::vars_os().collect();
        let work = work.map_err(|error| to_python(&error))?;
        Ok(Executor(ExecutorBackend::Scripts(Arc::new(
            work.inheriting(environment),
        ))))
    }
}

/// The splits of a job with scripts, as JSON.
#[pyfunction]
pub fn plan_streaming(py: Python<'_>, request: &str) -> PyResult<String> {
    let request: SplitRequest = serde_json::from_str(request)
        .map_err(|error| PyValueError::new_err(format!("a request to split input: {error}")))?;
    let splits = attended(py, &stores(), |stores| split(stores, &request))?;
    serde_json::to_string(&splits)
        .map_err(|error| to_python(&Error::bug("write JSON", error.to_string())))
}

/// Runs a task with scripts again that a failed job has kept, with files in `folder`; gives what it said on stderr.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "as PyO3 gives it")]
pub fn retry_scripts(py: Python<'_>, task: PathBuf, folder: PathBuf) -> PyResult<String> {
    let stop = Arc::new(AtomicBool::new(false));
    thread::scope(|scope| {
        let running = scope.spawn(|| retry(&task, &folder, &stores(), Arc::clone(&stop)));
        let mut signal = Ok(());
        while !running.is_finished() {
            py.detach(|| thread::sleep(LOOK));
            signal = signal.and_then(|()| py.check_signals());
            stop.store(signal.is_err(), Ordering::Relaxed);
        }
        signal?;
        let ended = running.join();
        let ended = ended.unwrap_or_else(|_| Err(Error::bug("retry the task", "it panicked")));
        ended
            .map(|report| report.printed.stderr)
            .map_err(|error| with_stderr(py, &error))
    })
}

/// The exception for an error of a script, with a note of what that said on stderr.
fn with_stderr(py: Python<'_>, error: &Error) -> PyErr {
    let raised = to_python(error);
    if let Some(said) = error.detail_of("stderr") {
        // Without it the exception has its text all the same.
        let _ = raised.value(py).call_method1("add_note", (said,));
    }
    raised
}

impl Executor {
    /// The work of a new job.
    pub fn to_engine(&self) -> Arc<dyn task::UserTaskExecutor> {
        match &self.0 {
            ExecutorBackend::Scripts(work) => work.clone(),
            ExecutorBackend::Processes(work, workers) => {
                ProcessPool::shared().keep(*workers);
                work.clone()
            }
        }
    }
}

/// The command of a worker, as Python gives it.
fn worker_command(
    command: &[OsString],
    environment: BTreeMap<OsString, OsString>,
    scratch: PathBuf,
    folder: Option<PathBuf>,
) -> PyResult<WorkerCommand> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(PyValueError::new_err("a command has at least a program"));
    };
    let mut command = WorkerCommand::new(program, scratch);
    for argument in arguments {
        command = command.argument(argument);
    }
    for (name, value) in environment {
        command = command.variable(name, value);
    }
    command.whole_environment = true;
    command.folder = folder;
    Ok(command)
}

/// Starts a worker that the first task will take, unless one waits.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "as PyO3 gives it")]
#[pyo3(signature = (command, *, environment, scratch, folder = None))]
pub fn prepare_worker(
    command: Vec<OsString>,
    environment: BTreeMap<OsString, OsString>,
    scratch: PathBuf,
    folder: Option<PathBuf>,
) -> PyResult<()> {
    ProcessPool::shared().prepare(&worker_command(&command, environment, scratch, folder)?);
    Ok(())
}

/// Kills and reaps the workers that wait for a task.
#[pyfunction]
pub fn dismiss_workers(py: Python<'_>) {
    py.detach(|| ProcessPool::shared().dismiss());
}

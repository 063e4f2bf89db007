//! Processes that run tasks for a job of another process, and how they are begun.

use std::ffi::OsString;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use gristmill_engine::Error;

use gristmill_engine::jobs::native_work;
use gristmill_engine::runner::cluster::agent::{
    AgentSpec, Hello, ShutdownFlags, serve as serve_agent,
};
use gristmill_engine::runner::worker::serve;
use gristmill_engine::sys::threads::begin;
use gristmill_engine::worker::WorkerCommand;
use pyo3::prelude::*;

use crate::error::to_python;
use crate::stores::stores;

/// What the interpreter of a worker runs: this module alone, found beside the package's files. Nothing of the package is
/// imported: 6 MB and 30 ms less for each worker.
const PROGRAM: &str = "import sys; sys.path.insert(0, sys.argv[1]); import _core; del sys.path[0]; _core.run_tasks(int(sys.argv[-1]))";

/// Runs tasks for the driver at the other end of stdin and stdout.
#[pyfunction]
pub fn run_tasks(py: Python<'_>, pulse: i32) -> PyResult<()> {
    py.detach(|| serve(pulse, stores(), native_work))
        .map_err(|error| to_python(&error))
}

/// Runs an agent until its job is over, which a byte of stdin says, too; or stdin ends: whoever began it is gone then.
/// `hello` is called with what it says of itself, as JSON.
#[pyfunction]
pub fn run_agent(py: Python<'_>, spec: &str, hello: &Bound<'_, PyAny>) -> PyResult<()> {
    let spec: AgentSpec = serde_json::from_str(spec)
        .map_err(|error| to_python(&Error::bug("begin an agent", error.to_string())))?;
    let end = Arc::new(ShutdownFlags::default());
    let coming = Arc::clone(&end);
    let watch = move || {
        let read = std::io::stdin().read(&mut [0]);
        let end = match read {
            Ok(1) => &coming.over,
            _ => &coming.alone,
        };
        end.store(true, Ordering::Relaxed);
    };
    begin("end", watch).map_err(|error| to_python(&error))?;
    let hello = hello.clone().unbind();
    let say = move |said: &Hello| {
        let said = serde_json::to_string(said).map_err(|error| error.to_string());
        let said = said.and_then(|said| {
            Python::attach(|py| hello.call1(py, (said,)).map(drop))
                .map_err(|error| error.to_string())
        });
        said.map_err(|error| Error::bug("begin an agent", error))
    };
    py.detach(|| serve_agent(&spec, &stores(), native_work, &end, say))
        .map_err(|error| to_python(&error))
}

/// The command that begins such a process; nothing where no interpreter is known.
pub fn worker_command(py: Python<'_>) -> PyResult<Option<WorkerCommand>> {
    let program: Option<OsString> = py.import("sys")?.getattr("executable")?.extract()?;
    let module: PathBuf = py
        .import("gristmill._core")?
        .getattr("__file__")?
        .extract()?;
    let (Some(program), Some(folder)) = (program, module.parent()) else {
        return Ok(None);
    };
    if program.is_empty() {
        return Ok(None);
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "a page of 4 KB, where /dev/shm has no room"
    )]
    let command = WorkerCommand::new(program, std::env::temp_dir());
    let plain = ["-I", "-S", "-c", PROGRAM];
    let command = plain.into_iter().fold(command, WorkerCommand::argument);
    Ok(Some(command.argument(folder)))
}

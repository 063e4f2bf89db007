//! Processes that run tasks for a job of another process, and how they are begun.

use std::ffi::OsString;
use std::path::PathBuf;

use gristmill_engine::jobs::native_work;
use gristmill_engine::runner::worker::serve;
use gristmill_engine::worker::Command;
use pyo3::prelude::*;

use crate::error::to_python;
use crate::stores::stores;

/// What the interpreter of a worker runs: this module alone, found beside the package's files. Nothing of the package is
/// imported: 6 MB and 30 ms less for each worker.
const PROGRAM: &str = "import sys; sys.path.insert(0, sys.argv[1]); import _core; del sys.path[0]; _core.run_tasks(sys.argv[-1])";

/// Runs tasks for the driver at the other end of stdin and stdout.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "as PyO3 gives it")]
pub fn run_tasks(py: Python<'_>, pulse: PathBuf) -> PyResult<()> {
    py.detach(|| serve(&pulse, stores(), native_work))
        .map_err(|error| to_python(&error))
}

/// The command that begins such a process; nothing where no interpreter is known.
pub fn worker_command(py: Python<'_>) -> PyResult<Option<Command>> {
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
    let command = Command::new(program, std::env::temp_dir());
    let plain = ["-I", "-S", "-c", PROGRAM];
    let command = plain.into_iter().fold(command, Command::argument);
    Ok(Some(command.argument(folder)))
}

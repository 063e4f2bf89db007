//! Where the history of a job goes, and what goes with it when it is pruned.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use gristmill_engine::error::Spelling;
use gristmill_engine::history::event::JobOrigin;
use gristmill_engine::history::{Hidden, HistoryConfig};
use gristmill_engine::jobs;
use gristmill_engine::storage::private::mark;
use pyo3::prelude::*;

use crate::error::to_exception;
use crate::stores::stores;

/// Where the history of a job goes, and what it says of the job's beginning.
#[pyclass(frozen)]
pub struct History {
    folder: PathBuf,
    keep_short: bool,
    code_goes: bool,
    origin: JobOrigin,
    hidden: Hidden,
}

#[pymethods]
impl History {
    #[new]
    #[pyo3(signature = (folder, *, keep_short = false, code_goes = false, argv = Vec::new(), host = String::new(), hidden = Vec::new()))]
    fn new(
        folder: PathBuf,
        keep_short: bool,
        code_goes: bool,
        argv: Vec<OsString>,
        host: String,
        hidden: Vec<(String, String)>,
    ) -> Self {
        keep_in_home_of(&folder);
        History {
            folder,
            keep_short,
            code_goes,
            origin: JobOrigin { argv, host },
            hidden: Hidden::new(hidden),
        }
    }
}

/// The engine keeps what is this user's beside the folder of all jobs.
fn keep_in_home_of(jobs: &Path) {
    if let Some(home) = jobs.parent() {
        mark::keep_in(home);
    }
}

impl History {
    /// The same for the engine, with the job's options as they were given.
    pub fn place(&self, options: serde_json::Value) -> HistoryConfig {
        HistoryConfig {
            jobs: Some(self.folder.clone()),
            keep_short: self.keep_short,
            code_goes: self.code_goes,
            options,
            origin: self.origin.clone(),
            hidden: self.hidden.clone(),
        }
    }
}

/// Whether what a dead job of user code needs to be resumed is gone from this machine.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "as PyO3 gives it")]
pub fn is_code_gone(py: Python<'_>, folder: PathBuf) -> bool {
    py.detach(|| jobs::is_code_gone(&stores(), &folder))
}

/// Removes the hidden folders that a dead job left.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "as PyO3 gives it")]
#[pyo3(signature = (folder, *, dry_run))]
pub fn clear_left(py: Python<'_>, folder: PathBuf, dry_run: bool) -> PyResult<Vec<OsString>> {
    if let Some(jobs) = folder.parent() {
        keep_in_home_of(jobs);
    }
    let left = py
        .detach(|| jobs::clear_left(&stores(), &folder, dry_run))
        .map_err(|error| to_exception(&error, Spelling::CommandLine))?;
    Ok(left.into_iter().map(PathBuf::into_os_string).collect())
}

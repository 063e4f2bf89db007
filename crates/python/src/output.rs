//! Whether an output can be written, asked before anything is done for it.

use std::path::PathBuf;

use gristmill_engine::commit;
use pyo3::prelude::*;

use crate::attended::attended_as;
use crate::job::spelling_of;
use crate::stores::stores;

/// Refuses an output that no job could begin to write now.
#[pyfunction]
#[pyo3(signature = (folder, *, overwrite, command_line))]
pub fn check_output(
    py: Python<'_>,
    folder: PathBuf,
    overwrite: bool,
    command_line: bool,
) -> PyResult<()> {
    attended_as(py, &stores(), spelling_of(command_line), |stores| {
        commit::check_output(stores, &folder.into(), overwrite)
    })
}

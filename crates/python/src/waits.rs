//! What this process waits for, and its end where that does not come.

use std::time::Duration;

use gristmill_engine::names::show_path;
use gristmill_engine::storage::net::waiting;
use gristmill_engine::sys::processes;
use pyo3::prelude::*;

/// The files that this process and its workers wait for, as they are shown, that longest first; and for how many seconds.
#[pyfunction]
pub(crate) fn files_awaited(at_least_s: f64) -> Vec<(String, f64)> {
    let at_least = Duration::from_secs_f64(at_least_s.clamp(0.0, 3600.0));
    let found = waiting::files_awaited(at_least).into_iter();
    found
        .map(|(path, waited)| (show_path(&path).to_string(), waited.as_secs_f64()))
        .collect()
}

/// Kills all processes below this one, which is about to end without cleaning up.
#[pyfunction]
pub(crate) fn kill_children(py: Python<'_>) {
    py.detach(processes::kill_children);
}

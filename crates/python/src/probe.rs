//! What the machine has: memory that a job may use, and the device's floor, measured.

use std::path::PathBuf;

use gristmill_engine::storage::io::probe;
use gristmill_engine::storage::local::Local;
use gristmill_engine::storage::mounts::SharedMount;
use gristmill_engine::{budget, plan};
use pyo3::prelude::*;

use crate::error::to_python;

/// The memory of a job that is given none.
#[pyfunction]
pub fn default_memory() -> u64 {
    plan::sort::memory(None, budget::available_bytes())
}

/// The memory that new work can have.
#[pyfunction]
pub fn available_memory() -> Option<u64> {
    budget::available_bytes()
}

/// The kind of the mount that a path lies in, if machines share it.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "as PyO3 gives it")]
pub fn shared_mount(path: PathBuf) -> Option<String> {
    SharedMount::of(&path).map(|mount| mount.to_string())
}

/// The workers of a job that is given none.
#[pyfunction]
pub fn default_workers() -> PyResult<usize> {
    plan::sort::workers(None).map_err(|error| to_python(&error))
}

/// Bytes per second of writing, reading and reading from the page cache below `folder`.
#[pyfunction]
pub fn device_rates(
    py: Python<'_>,
    folder: PathBuf,
    size_bytes: u64,
    streams: u64,
) -> PyResult<(f64, f64, f64)> {
    let mut path = folder;
    path.push(format!(".gristmill-probe-{}", std::process::id()));
    let rates = py.detach(|| probe::device_rates(&Local, &path, size_bytes, streams));
    rates
        .map(|rates| (rates.write, rates.read, rates.cached_read))
        .map_err(|error| to_python(&error))
}

/// Seconds to write and to read `size_bytes` bytes below `folder`.
#[pyfunction]
pub fn device_floor(
    py: Python<'_>,
    folder: PathBuf,
    size_bytes: u64,
    streams: u64,
) -> PyResult<(f64, f64)> {
    let mut path = folder;
    path.push(".gristmill-probe");
    let floor = py.detach(|| probe::device_floor(&Local, &path, size_bytes, streams));
    floor
        .map(|floor| (floor.write_s, floor.cached_read_s))
        .map_err(|error| to_python(&error))
}

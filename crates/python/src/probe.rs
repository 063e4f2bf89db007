//! The device's floor, measured.

use std::path::PathBuf;

use gristmill_engine::storage::local::Local;
use gristmill_engine::storage::probe;
use pyo3::prelude::*;

use crate::error::to_python;

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

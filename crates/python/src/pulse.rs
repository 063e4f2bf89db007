//! The pulse of this process, if it is a worker.

use gristmill_engine::worker::{Heartbeat, RecordPosition};
use pyo3::prelude::*;

use crate::error::to_python;

/// Opens the pulse that the driver made, and left open as `descriptor`; the first one stays.
#[pyfunction]
pub(crate) fn pulse_open(descriptor: i32) -> PyResult<()> {
    let opened = Heartbeat::adopt(descriptor).map(|_pulse| ());
    opened.map_err(|error| to_python(&error))
}

/// Says where this worker stands.
#[pyfunction]
pub(crate) fn pulse(record: u64, offset: u64, file: u64, bytes_done: u64) {
    if let Some(pulse) = Heartbeat::mine() {
        pulse.write(&RecordPosition {
            record,
            offset,
            file,
            bytes_done,
        });
        pulse.beat();
    }
}

/// Says that this worker makes progress of some kind.
#[pyfunction]
pub(crate) fn beat() {
    if let Some(pulse) = Heartbeat::mine() {
        pulse.beat();
    }
}

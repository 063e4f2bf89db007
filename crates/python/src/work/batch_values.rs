//! The values of a key that a combiner gets: some pairs of a batch, which it keeps alive.

use std::ops::Range;
use std::sync::Arc;

use gristmill_engine::spill::collect::CombineBatch;
use pyo3::prelude::*;

use super::objects::read_value;

/// The values of a key in a batch.
#[pyclass]
pub struct BatchValues {
    batch: Arc<CombineBatch>,
    next: usize,
    end: usize,
}

impl BatchValues {
    /// Those of some pairs.
    pub fn new(batch: &Arc<CombineBatch>, pairs: Range<usize>) -> Self {
        BatchValues {
            batch: Arc::clone(batch),
            next: pairs.start,
            end: pairs.end,
        }
    }
}

#[pymethods]
impl BatchValues {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.next == self.end {
            return Ok(None);
        }
        self.next += 1;
        read_value(py, self.batch.pair(self.next - 1).2).map(Some)
    }
}

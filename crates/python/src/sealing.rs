//! Secrets that only one process opens.

use gristmill_engine::runner::cluster::sealing;
use pyo3::prelude::*;

use crate::error::to_python;

#[pyclass(frozen, name = "Unsealer")]
pub struct PyUnsealer(sealing::Unsealer);

#[pymethods]
impl PyUnsealer {
    #[new]
    fn new() -> Self {
        PyUnsealer(sealing::Unsealer::new())
    }

    fn public_key(&self) -> Vec<u8> {
        self.0.public_key()
    }

    fn open(&self, sealed: &[u8]) -> PyResult<Vec<u8>> {
        self.0.open(sealed).map_err(|error| to_python(&error))
    }
}

#[pyfunction]
pub fn seal(public_key: &[u8], text: &[u8]) -> PyResult<Vec<u8>> {
    sealing::seal(public_key, text).map_err(|error| to_python(&error))
}

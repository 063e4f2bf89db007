//! The agents of a job on a cluster, which may change while the job runs.

use std::sync::Arc;

use gristmill_engine::runner::Cluster as Agents;
use pyo3::prelude::*;

use crate::error::to_python;

/// The agents of a job.
#[pyclass(frozen, name = "Cluster")]
pub struct PyCluster(pub Arc<Agents>);

#[pymethods]
impl PyCluster {
    #[new]
    fn new(said: &str) -> PyResult<Self> {
        let agents = Agents::from_json(said).map_err(|error| to_python(&error))?;
        Ok(PyCluster(Arc::new(agents)))
    }

    fn joined(&self, number: u32, hello: &str) -> PyResult<()> {
        self.0
            .joined(number, hello)
            .map_err(|error| to_python(&error))
    }

    fn drained(&self, number: u32) {
        self.0.drained(number);
    }

    #[pyo3(signature = (address))]
    fn headless(&self, address: Option<String>) {
        self.0.headless(address);
    }
}

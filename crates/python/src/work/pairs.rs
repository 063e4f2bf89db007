//! The pairs of what a map gives.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};

use super::value::shown;

/// A key and its value.
pub type Pair<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

/// The pair that a map gave: a tuple of two.
#[inline]
pub fn pair_of<'py>(given: &Bound<'py, PyAny>) -> PyResult<Pair<'py>> {
    match given.cast_exact::<PyTuple>() {
        Ok(pair) if pair.len() == 2 => Ok((pair.get_item(0)?, pair.get_item(1)?)),
        _ => other_pair(given),
    }
}

/// A pair that is no plain tuple.
#[cold]
fn other_pair<'py>(pair: &Bound<'py, PyAny>) -> PyResult<Pair<'py>> {
    let text = pair.is_instance_of::<PyString>() || pair.is_instance_of::<PyBytes>();
    if !text && let Ok(tuple) = pair.extract::<Pair<'py>>() {
        return Ok(tuple);
    }
    Err(PyTypeError::new_err(format!(
        "the map must give pairs (key, value), and it gave {}",
        shown(pair)
    )))
}

//! What no value may be: too deep, or an encoding that none has.

use gristmill_engine::value::DEPTH_MAX;
use gristmill_engine::{Error, Kind};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::to_python;

/// An error (`ValueError`) where as many tuples are open as there may be.
#[inline]
pub fn refuse_deeper(depth: u32) -> PyResult<()> {
    if depth >= DEPTH_MAX {
        let message = format!("tuples are at most {DEPTH_MAX} deep");
        return Err(PyValueError::new_err(message));
    }
    Ok(())
}

/// The error of an encoding that no value has.
pub fn damaged(message: &str) -> PyErr {
    to_python(&Error::new(Kind::BadInput, "decode a value", message))
}

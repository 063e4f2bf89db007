//! Engine errors as Python exceptions: the built-in one where Python has the word.

use gristmill_engine::{Error, Kind};
use pyo3::PyErr;
use pyo3::exceptions::{
    PyBrokenPipeError, PyFileExistsError, PyFileNotFoundError, PyKeyboardInterrupt, PyMemoryError,
    PyOSError, PyPermissionError, PyRuntimeError, PyValueError,
};

/// The exception for an engine error; its text is the error's paragraph.
pub fn to_python(error: &Error) -> PyErr {
    let text = error.to_string();
    match error.kind() {
        Kind::BadInput | Kind::BadOption | Kind::InputChanged | Kind::Disorder => {
            PyValueError::new_err(text)
        }
        Kind::NotFound => PyFileNotFoundError::new_err(text),
        Kind::Exists => PyFileExistsError::new_err(text),
        Kind::Permission => PyPermissionError::new_err(text),
        Kind::Memory => PyMemoryError::new_err(text),
        Kind::ReaderGone => PyBrokenPipeError::new_err(text),
        Kind::DiskFull | Kind::Io => PyOSError::new_err(text),
        Kind::Cancelled => PyKeyboardInterrupt::new_err(text),
        Kind::UserCode | Kind::Proof | Kind::Bug => PyRuntimeError::new_err(text),
    }
}

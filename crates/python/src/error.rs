//! Engine errors as Python exceptions: the built-in one where Python has the word.

use std::borrow::Cow;

use gristmill_engine::error::{Advice, Spelling};
use gristmill_engine::{Error, Kind};
use pyo3::exceptions::{
    PyBrokenPipeError, PyFileExistsError, PyFileNotFoundError, PyKeyboardInterrupt, PyMemoryError,
    PyOSError, PyPermissionError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;
use serde::Serialize;

/// The attribute of an exception in which a worker finds what it tells its driver (mapreduce/worker/failures.py).
const TOLD: &str = "gristmill_told";

/// An engine error in parts, so that the driver can make one paragraph of it for whoever began the job.
#[derive(Serialize)]
struct ErrorParts<'a> {
    kind: &'static str,
    what: String,
    context: &'a [(Cow<'static, str>, String)],
    advice: Option<&'a Advice>,
    own_work: bool,
    /// The option whose value is wrong.
    option: Option<&'a str>,
}

/// The exception for an engine error; its text is the error's paragraph, in which options are keyword arguments.
pub fn to_python(error: &Error) -> PyErr {
    to_exception(error, Spelling::Python)
}

/// The exception for an engine error, for those who know options by the names of `spelling`.
pub fn to_exception(error: &Error, spelling: Spelling) -> PyErr {
    let text = error.spelled(spelling);
    let raised = match error.kind() {
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
    };
    let told = ErrorParts {
        kind: error.kind().name(),
        what: error.what(),
        context: error.context(),
        advice: error.advice(),
        own_work: error.is_of_own_work(),
        option: error.details.option.as_deref(),
    };
    with_parts(raised, &told)
}

/// The exception of what user code gave and cannot be taken; a worker's driver puts the place before the advice.
pub fn type_error(what: &str, advice: &str) -> PyErr {
    let raised = PyTypeError::new_err(format!("{what}. What to do: {advice}."));
    let error = Error::new(Kind::UserCode, "take what user code gave", what).advise(advice);
    let told = ErrorParts {
        kind: error.kind().name(),
        what: what.to_owned(),
        context: &[],
        advice: error.advice(),
        own_work: false,
        option: None,
    };
    with_parts(raised, &told)
}

fn with_parts(raised: PyErr, told: &ErrorParts<'_>) -> PyErr {
    if let Ok(told) = serde_json::to_string(told) {
        // Without it the exception has its text all the same.
        let _ = Python::attach(|py| raised.value(py).setattr(TOLD, told));
    }
    raised
}

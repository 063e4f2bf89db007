//! Columns of Arrow as keys and values, without a Python object for each of them: `value::columns` over Python's buffers.
//!
//! What Python hands over are the buffers of an array, which its buffer protocol lends, and the format that says what
//! they hold.
//!
//! The rule that must hold: a cell is encoded as the object that `to_pylist` makes of it would be.
//!
//! Decision: docs/decisions/table-buffers.md.

use std::ops::Range;

use gristmill_engine::task::key_types;
use gristmill_engine::value::columns::{Column, ColumnError, ColumnKind, damaged};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView, PySlice};

use crate::error::to_python;

/// An array as Python hands it over: its format, how many elements come before its first, its buffers.
pub type Buffers = (char, usize, Vec<Option<Py<PyAny>>>);

/// Takes `rows` rows out of an array's buffers.
pub fn fill(column: &mut Column, py: Python<'_>, rows: usize, array: Buffers) -> PyResult<()> {
    let (format, first, buffers) = array;
    let mut raised = None;
    let mut copy_of = |number: usize, range: Range<usize>, out: &mut Vec<u8>| {
        let buffer = buffers.get(number).and_then(Option::as_ref);
        copy(py, buffer, range, out).map_err(|error| {
            raised = Some(error);
            damaged()
        })
    };
    let nulls = buffers.first().is_some_and(Option::is_some);
    let filled = column.fill(format, first..first + rows, nulls, &mut copy_of);
    filled.map_err(|error| raised.unwrap_or_else(|| to_python(&error)))
}

/// Bits of the column's type, if it is one that keys should not mix with another.
pub fn kind_of(column: &Column) -> u16 {
    match column.kind() {
        Some(ColumnKind::Boolean) => key_types::BOOL,
        Some(ColumnKind::Int) => key_types::INT,
        Some(ColumnKind::Double) => key_types::FLOAT,
        Some(ColumnKind::Text) => key_types::TEXT,
        Some(ColumnKind::Bytes) => key_types::BYTES,
        None => 0,
    }
}

/// The exception for a value that cannot be read: of text, the one that Python itself has.
#[cold]
pub fn unreadable(py: Python<'_>, why: ColumnError<'_>) -> PyErr {
    let raised = match why {
        ColumnError::Damaged => None,
        ColumnError::NotText(bytes) => PyBytes::new(py, bytes).call_method0("decode").err(),
    };
    raised.unwrap_or_else(|| to_python(&damaged()))
}

/// Appends a range of a buffer.
fn copy(
    py: Python<'_>,
    buffer: Option<&Py<PyAny>>,
    range: Range<usize>,
    out: &mut Vec<u8>,
) -> PyResult<()> {
    if range.is_empty() {
        return Ok(());
    }
    let wrong = || -> PyErr { to_python(&damaged()) };
    let view = PyMemoryView::from(buffer.ok_or_else(wrong)?.bind(py))?;
    let place = |at: usize| isize::try_from(at).map_err(|_too_far| wrong());
    let slice = PySlice::new(py, place(range.start)?, place(range.end)?, 1);
    let slice = view.get_item(slice)?;
    if slice.len()? != range.len() {
        return Err(wrong());
    }
    let bytes = PyBuffer::<u8>::get(&slice.call_method1("cast", ("B",))?)?;
    let start = out.len();
    out.resize(start + range.len(), 0);
    bytes.copy_to_slice(py, &mut out[start..])
}

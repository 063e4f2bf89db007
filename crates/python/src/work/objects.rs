//! The engine's values as Python objects, as they were before `value.rs` encoded them.

use gristmill_engine::value::{Token, ValueReader};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyNone, PyString, PyTuple};

use super::refused::damaged;
use super::{OrRaise, held, scalar_keys};

/// Reads all of `bytes` as one value.
#[inline]
pub fn read_value<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let mut reader = ValueReader::new(bytes);
    let Some(token) = reader.token().or_raise()? else {
        return Err(damaged("there is no value"));
    };
    let value = object(py, token, &mut reader)?;
    if reader.position() < bytes.len() {
        return Err(damaged("bytes follow the value"));
    }
    Ok(value)
}

/// The object that begins with `token`.
pub fn object<'py>(
    py: Python<'py>,
    token: Token<'_>,
    reader: &mut ValueReader<'_>,
) -> PyResult<Bound<'py, PyAny>> {
    match token {
        Token::Null => Ok(PyNone::get(py).to_owned().into_any()),
        Token::Bytes(bytes) => Ok(PyBytes::new(py, &bytes).into_any()),
        Token::Text(text) => Ok(PyString::new(py, &text).into_any()),
        Token::Int(int) => int.into_bound_py_any(py),
        Token::BigInt {
            negative,
            magnitude,
        } => {
            let int = py.get_type::<PyInt>();
            let int = int.call_method1("from_bytes", (PyBytes::new(py, &magnitude), "big"))?;
            if negative { int.neg() } else { Ok(int) }
        }
        Token::Double(double) => Ok(PyFloat::new(py, double).into_any()),
        Token::Boolean(boolean) => Ok(PyBool::new(py, boolean).to_owned().into_any()),
        Token::Pickled(pickled) => loads(py)?.call1((PyBytes::new(py, &pickled),)),
        Token::Date(day) => held::date(py, day),
        Token::Datetime { micros, utc } => held::datetime(py, micros, utc),
        Token::Decimal(decimal) => scalar_keys::decimal(py, &decimal),
        Token::Written(written) => held::decimal(py, &written),
        Token::Duration { days, micros } => held::duration(py, days, micros),
        Token::Moment(moment) => held::moment(py, &moment),
        Token::Uuid { safety, bytes } => held::uuid(py, safety, bytes),
        Token::Descending(inner) => read_value(py, &inner),
        Token::Begin => Ok(PyTuple::new(py, elements(py, reader)?)?.into_any()),
        Token::List => Ok(PyList::new(py, elements(py, reader)?)?.into_any()),
        Token::Dict => dict(py, reader),
        Token::End => Err(damaged("a tuple ends that has not begun")),
    }
}

/// What stands in a tuple or list that has begun.
fn elements<'py>(
    py: Python<'py>,
    reader: &mut ValueReader<'_>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let mut elements = Vec::new();
    loop {
        match reader.token().or_raise()? {
            Some(Token::End) => return Ok(elements),
            Some(token) => elements.push(object(py, token, reader)?),
            None => return Err(damaged("a tuple or list does not end")),
        }
    }
}

fn dict<'py>(py: Python<'py>, reader: &mut ValueReader<'_>) -> PyResult<Bound<'py, PyAny>> {
    let dict = PyDict::new(py);
    loop {
        let name = match reader.token().or_raise()? {
            Some(Token::End) => return Ok(dict.into_any()),
            Some(token) => object(py, token, reader)?,
            None => return Err(damaged("a dict does not end")),
        };
        match reader.token().or_raise()? {
            None | Some(Token::End) => return Err(damaged("a key of a dict has no value")),
            Some(token) => dict.set_item(name, object(py, token, reader)?)?,
        }
    }
}

fn loads(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    LOADS
        .import(py, "pickle", "loads")
        .map(|function: &Bound<'_, PyAny>| function)
}

/// The key of an encoding; where its order is turned, in whole or in part, as `gm.desc` made it.
#[pyfunction]
pub fn decode_key<'py>(py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let mut reader = ValueReader::new(data);
    match reader.token().or_raise()? {
        Some(token) => turned_token(py, token, &mut reader),
        None => read_value(py, data),
    }
}

fn turned_token<'py>(
    py: Python<'py>,
    token: Token<'_>,
    reader: &mut ValueReader<'_>,
) -> PyResult<Bound<'py, PyAny>> {
    match token {
        Token::Descending(inner) => scalar_keys::desc(&decode_key(py, &inner)?),
        Token::Begin => {
            let mut elements = Vec::new();
            while let Some(token) = reader.token().or_raise()? {
                if token == Token::End {
                    break;
                }
                elements.push(turned_token(py, token, reader)?);
            }
            Ok(PyTuple::new(py, elements)?.into_any())
        }
        other => object(py, other, reader),
    }
}

/// The value of an encoding.
#[pyfunction]
pub fn decode<'py>(py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    read_value(py, data)
}

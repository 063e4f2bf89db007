//! Python objects as the engine's values, and back.
//!
//! Keys are of the types that have an order: str, bytes, int, float, bool, None, and tuples of them. Other values are
//! pickled.

use gristmill_engine::value::{Reader, Token, write};
use gristmill_engine::{Error, Kind};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyNone, PyString, PyTuple};

use super::OrRaise;
use crate::error::to_python;

/// Tuples within tuples, as the engine has it.
const DEPTH_MAX: u32 = gristmill_engine::value::DEPTH_MAX;

/// Appends a key.
#[inline]
pub fn write_key(key: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> PyResult<()> {
    if let Ok(text) = key.cast_exact::<PyString>() {
        write::text(out, utf8(text)?);
        return Ok(());
    }
    let start = out.len();
    if write_ordered(key, out, 0, true)? {
        return Ok(());
    }
    out.truncate(start);
    Err(no_key(key))
}

/// Appends a value: pickled where it is of no other type.
#[inline]
pub fn write_value(value: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> PyResult<()> {
    let start = out.len();
    match write_ordered(value, out, 0, false) {
        Ok(true) => return Ok(()),
        Ok(false) => {}
        // Text that is not UTF-8 and the like: what has no encoding is pickled.
        Err(error) if error.is_instance_of::<PyValueError>(value.py()) => {}
        Err(error) => return Err(error),
    }
    out.truncate(start);
    let pickled = match dumps(value.py())?.call1((value, 5)) {
        Ok(pickled) => pickled,
        Err(error) => by_value(value, error)?,
    };
    write::pickled(out, pickled.cast::<PyBytes>()?.as_bytes());
    Ok(())
}

/// What `pickle` cannot name, such as a function made in a function: pickled as it is, by cloudpickle. That is slow.
#[cold]
fn by_value<'py>(value: &Bound<'py, PyAny>, error: PyErr) -> PyResult<Bound<'py, PyAny>> {
    let cloudpickle = value.py().import("cloudpickle")?;
    // What the first one said is what people know.
    cloudpickle
        .call_method1("dumps", (value,))
        .map_err(|_also| error)
}

/// Appends what has an order; false where `value` has none. `lenient` also takes subclasses, and what counts as an
/// integer: a key comes back as a plain one.
fn write_ordered(
    value: &Bound<'_, PyAny>,
    out: &mut Vec<u8>,
    depth: u32,
    lenient: bool,
) -> PyResult<bool> {
    if let Ok(text) = value.cast_exact::<PyString>() {
        write::text(out, utf8(text)?);
    } else if let Ok(int) = value.cast_exact::<PyInt>() {
        write_int(int.as_any(), out)?;
    } else if let Ok(bytes) = value.cast_exact::<PyBytes>() {
        write::bytes(out, bytes.as_bytes());
    } else if let Ok(double) = value.cast_exact::<PyFloat>() {
        write::double(out, double.value());
    } else if let Ok(boolean) = value.cast_exact::<PyBool>() {
        write::boolean(out, boolean.is_true());
    } else if value.is_none() {
        if depth > 0 {
            write::null_in_tuple(out);
        } else {
            write::null(out);
        }
    } else if let Ok(tuple) = value.cast_exact::<PyTuple>() {
        if depth == DEPTH_MAX {
            let message = format!("tuples are at most {DEPTH_MAX} deep");
            return Err(PyValueError::new_err(message));
        }
        write::begin_tuple(out);
        for element in tuple.iter() {
            if !write_ordered(&element, out, depth + 1, lenient)? {
                return Ok(false);
            }
        }
        write::end_tuple(out);
    } else if lenient {
        return write_similar(value, out, depth);
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// Keys of subclasses, and numbers of other libraries.
fn write_similar(value: &Bound<'_, PyAny>, out: &mut Vec<u8>, depth: u32) -> PyResult<bool> {
    if let Ok(text) = value.cast::<PyString>() {
        write::text(out, utf8(text)?);
    } else if let Ok(bytes) = value.cast::<PyBytes>() {
        write::bytes(out, bytes.as_bytes());
    } else if let Ok(double) = value.cast::<PyFloat>() {
        write::double(out, double.value());
    } else if let Ok(tuple) = value.cast::<PyTuple>() {
        let plain = PyTuple::new(value.py(), tuple.iter())?;
        return write_ordered(plain.as_any(), out, depth, true);
    } else if let Some(int) = index_of(value)? {
        write_int(&int, out)?;
    } else if let Some(number) = number_of_array_library(value)? {
        return write_ordered(&number, out, depth, false);
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// The integer that an object stands for. Arrays have the method, and raise.
#[cold]
fn index_of<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    if !value.hasattr("__index__")? {
        return Ok(None);
    }
    match value.call_method0("__index__") {
        Err(error) if error.is_instance_of::<PyTypeError>(value.py()) => Ok(None),
        int => int.map(Some),
    }
}

/// The float or bool that a scalar of numpy and its like holds. Not every `__float__` will do: a Decimal's rounds.
#[cold]
fn number_of_array_library<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let is_scalar = value.hasattr("dtype")?
        && value
            .getattr("ndim")
            .is_ok_and(|n| n.eq(0).unwrap_or(false));
    if !is_scalar {
        return Ok(None);
    }
    let held = value.call_method0("item")?;
    let is_number = held.is_exact_instance_of::<PyFloat>() || held.is_exact_instance_of::<PyBool>();
    Ok(is_number.then_some(held))
}

/// Appends a value that is to be compared or added up, as keys are: numbers of other libraries as Python's. False where
/// it is of no type that has an order.
pub fn write_comparable(value: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> PyResult<bool> {
    let start = out.len();
    match write_ordered(value, out, 0, true) {
        Ok(true) => return Ok(true),
        Err(error) if !error.is_instance_of::<PyValueError>(value.py()) => return Err(error),
        // Text that is not UTF-8, tuples that are too deep.
        Ok(false) | Err(_) => {}
    }
    out.truncate(start);
    Ok(false)
}

#[inline]
fn utf8<'a>(text: &'a Bound<'_, PyString>) -> PyResult<&'a str> {
    text.to_str()
}

#[inline]
fn write_int(int: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> PyResult<()> {
    match int.extract::<i64>() {
        Ok(small) => {
            write::int(out, small);
            Ok(())
        }
        Err(_too_big) => write_big_int(int, out),
    }
}

#[cold]
fn write_big_int(int: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> PyResult<()> {
    let negative = int.lt(0)?;
    let magnitude = int.call_method0("__abs__")?;
    let bits: usize = magnitude.call_method0("bit_length")?.extract()?;
    let bytes = magnitude.call_method1("to_bytes", (bits.div_ceil(8), "big"))?;
    write::big_int(out, negative, bytes.cast::<PyBytes>()?.as_bytes()).or_raise()
}

/// The name of an object's type.
pub fn kind_of(object: &Bound<'_, PyAny>) -> String {
    let kind = object.get_type();
    kind.name()
        .map_or_else(|_| String::new(), |name| name.to_string())
}

fn no_key(key: &Bound<'_, PyAny>) -> PyErr {
    let (shown, kind) = (shown(key), kind_of(key));
    PyTypeError::new_err(format!(
        "a key must be str, bytes, int, float, bool, None or a tuple of them, and {shown} is of type {kind}. To go \
         on: make a key of one of these types from it."
    ))
}

/// An object as Python shows it, in short.
pub fn shown(object: &Bound<'_, PyAny>) -> String {
    const MOST: usize = 200;
    let shown = object
        .repr()
        .map(|repr| repr.to_string_lossy().into_owned());
    let shown = shown.unwrap_or_else(|_| "an object that cannot be shown".to_owned());
    if shown.chars().count() <= MOST {
        return shown;
    }
    shown.chars().take(MOST).chain("...".chars()).collect()
}

/// Reads all of `bytes` as one value.
#[inline]
pub fn read_value<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let mut reader = Reader::new(bytes);
    let Some(token) = reader.token().or_raise()? else {
        return Err(damaged("there is no value"));
    };
    let value = object(py, token, &mut reader)?;
    if reader.position() < bytes.len() {
        return Err(damaged("there is something behind the value"));
    }
    Ok(value)
}

/// The object that begins with `token`.
pub fn object<'py>(
    py: Python<'py>,
    token: Token<'_>,
    reader: &mut Reader<'_>,
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
        Token::Begin => {
            let mut elements = Vec::new();
            loop {
                match reader.token().or_raise()? {
                    Some(Token::End) => break,
                    Some(token) => elements.push(object(py, token, reader)?),
                    None => return Err(damaged("a tuple does not end")),
                }
            }
            Ok(PyTuple::new(py, elements)?.into_any())
        }
        Token::End => Err(damaged("a tuple ends that has not begun")),
    }
}

fn damaged(message: &str) -> PyErr {
    to_python(&Error::new(Kind::BadInput, "decode a value", message))
}

fn dumps(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static DUMPS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    DUMPS
        .import(py, "pickle", "dumps")
        .map(|function: &Bound<'_, PyAny>| function)
}

fn loads(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    LOADS
        .import(py, "pickle", "loads")
        .map(|function: &Bound<'_, PyAny>| function)
}

/// The encoding of any value.
#[pyfunction]
pub fn encode<'py>(py: Python<'py>, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let mut out = Vec::new();
    write_value(value, &mut out)?;
    Ok(PyBytes::new(py, &out))
}

/// The encoding of a key.
#[pyfunction]
pub fn encode_key<'py>(py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let mut out = Vec::new();
    write_key(key, &mut out)?;
    Ok(PyBytes::new(py, &out))
}

/// The value of an encoding.
#[pyfunction]
pub fn decode<'py>(py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    read_value(py, data)
}

//! Python objects as the engine's values; `objects.rs` has the way back.
//!
//! Keys are of the types that have an order: str, bytes, int, float, bool, None, Decimal, date, datetime, `gm.desc` of one,
//! and tuples of them. Values are also lists, dicts and what `held.rs` takes; all others are pickled.

use gristmill_engine::task::key_types;
use gristmill_engine::value::{DEPTH_MAX, DESCENDING_DEPTH, descending, one_nan, order, write};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use super::refused::refuse_deeper;
use super::scalar_keys::{self, ScalarKey};
use super::seen_key_types::SeenKeyTypes;
use super::{OrRaise, held};
use crate::error::type_error;

/// Appends a key; `seen` learns of which types it is. Whether its order may be turned, in whole or in part.
#[inline]
pub fn write_key(
    key: &Bound<'_, PyAny>,
    out: &mut Vec<u8>,
    seen: &mut SeenKeyTypes,
) -> PyResult<bool> {
    write_key_as("a key", key, out, seen)
}

/// The same; `role` is what the key is to the user, for the error.
#[inline]
pub fn write_key_as(
    role: &str,
    key: &Bound<'_, PyAny>,
    out: &mut Vec<u8>,
    seen: &mut SeenKeyTypes,
) -> PyResult<bool> {
    // What most keys are, without a look at what may be inside them.
    if let Ok(text) = key.cast_exact::<PyString>() {
        seen.types |= key_types::TEXT;
        write::text(out, utf8(text)?);
        return Ok(false);
    }
    if let Ok(int) = key.cast_exact::<PyInt>()
        && let Ok(small) = int.extract::<i64>()
    {
        seen.types |= key_types::INT;
        write::int(out, small);
        return Ok(false);
    }
    let start = out.len();
    if write_ordered(key, out, 0, seen)? {
        return Ok(seen.has_descending());
    }
    out.truncate(start);
    Err(no_key(role, key))
}

/// Appends a value: pickled where it is of no other type.
#[inline]
pub fn write_value(value: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> PyResult<()> {
    if write_scalar(value, out, 0, false).is_ok_and(|kind| kind.is_some()) {
        return Ok(());
    }
    let start = out.len();
    let mut nesting = held::NestingState::new(start);
    match write_held(value, out, 0, &mut nesting) {
        Ok(true) if !nesting.is_shared() => return Ok(()),
        Ok(_) => {}
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

/// Appends a value as it is; false where it is to be pickled.
fn write_held(
    value: &Bound<'_, PyAny>,
    out: &mut Vec<u8>,
    depth: u32,
    nesting: &mut held::NestingState,
) -> PyResult<bool> {
    if write_scalar(value, out, depth, false)?.is_some() {
        return Ok(true);
    }
    if let Ok(tuple) = value.cast_exact::<PyTuple>() {
        // There is only one empty tuple: it may stand anywhere.
        if !tuple.is_empty() {
            nesting.go_in(value, depth, false)?;
        }
        refuse_deeper(depth)?;
        write::begin_tuple(out);
        for element in tuple.iter() {
            if nesting.is_long(out) || !write_held(&element, out, depth + 1, nesting)? {
                return Ok(false);
            }
        }
    } else if let Ok(list) = value.cast_exact::<PyList>() {
        nesting.go_in(value, depth, true)?;
        write::begin_list(out);
        for element in list.iter() {
            if nesting.is_long(out) || !write_held(&element, out, depth + 1, nesting)? {
                return Ok(false);
            }
        }
    } else if let Ok(dict) = value.cast_exact::<PyDict>() {
        nesting.go_in(value, depth, true)?;
        write::begin_dict(out);
        for (name, element) in dict.iter() {
            let is_written = !nesting.is_long(out)
                && write_held(&name, out, depth + 1, nesting)?
                && write_held(&element, out, depth + 1, nesting)?;
            if !is_written {
                return Ok(false);
            }
        }
    } else {
        return held::write(value, out);
    }
    write::end_tuple(out);
    Ok(true)
}

/// Appends what has no parts, if `value` is such; says of which kind it is, for keys. As a key every NaN is the same one.
#[inline]
fn write_scalar(
    value: &Bound<'_, PyAny>,
    out: &mut Vec<u8>,
    depth: u32,
    as_key: bool,
) -> PyResult<Option<u16>> {
    Ok(Some(if let Ok(text) = value.cast_exact::<PyString>() {
        write::text(out, utf8(text)?);
        key_types::TEXT
    } else if let Ok(int) = value.cast_exact::<PyInt>() {
        write_int(int.as_any(), out)?;
        key_types::INT
    } else if let Ok(bytes) = value.cast_exact::<PyBytes>() {
        write::bytes(out, bytes.as_bytes());
        key_types::BYTES
    } else if let Ok(double) = value.cast_exact::<PyFloat>() {
        let double = double.value();
        write::double(out, if as_key { one_nan(double) } else { double });
        key_types::FLOAT
    } else if let Ok(boolean) = value.cast_exact::<PyBool>() {
        write::boolean(out, boolean.is_true());
        key_types::BOOL
    } else if value.is_none() {
        if depth > 0 {
            write::null_in_tuple(out);
        } else {
            write::null(out);
        }
        0
    } else {
        return Ok(None);
    }))
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

/// Appends what has an order; false where `value` has none. Subclasses count, and what stands for an integer; types may come back as
/// another object than they were. `seen` learns of types.
fn write_ordered(
    value: &Bound<'_, PyAny>,
    out: &mut Vec<u8>,
    depth: u32,
    seen: &mut SeenKeyTypes,
) -> PyResult<bool> {
    if let Some(kind) = write_scalar(value, out, depth, true)? {
        seen.types |= kind;
        return Ok(true);
    }
    let Ok(tuple) = value.cast_exact::<PyTuple>() else {
        return write_similar(value, out, depth, seen);
    };
    refuse_deeper(depth)?;
    write::begin_tuple(out);
    for (at, element) in tuple.iter().enumerate() {
        if !write_ordered(&element, out, depth + 1, seen.element(at))? {
            return Ok(false);
        }
    }
    write::end_tuple(out);
    Ok(true)
}

/// Keys of rarer types, of subclasses, and numbers of other libraries.
fn write_similar(
    value: &Bound<'_, PyAny>,
    out: &mut Vec<u8>,
    depth: u32,
    seen: &mut SeenKeyTypes,
) -> PyResult<bool> {
    match scalar_keys::write(value, out, seen)? {
        ScalarKey::Written => return Ok(true),
        ScalarKey::Descending(key) => return write_descending(&key, out, depth, seen),
        ScalarKey::Not => {}
    }
    if let Ok(text) = value.cast::<PyString>() {
        seen.types |= key_types::TEXT;
        write::text(out, utf8(text)?);
    } else if let Ok(bytes) = value.cast::<PyBytes>() {
        seen.types |= key_types::BYTES;
        write::bytes(out, bytes.as_bytes());
    } else if let Ok(double) = value.cast::<PyFloat>() {
        seen.types |= key_types::FLOAT;
        write::double(out, one_nan(double.value()));
    } else if let Ok(tuple) = value.cast::<PyTuple>() {
        let plain = PyTuple::new(value.py(), tuple.iter())?;
        return write_ordered(plain.as_any(), out, depth, seen);
    } else if let Some(int) = index_of(value)? {
        seen.types |= key_types::INT;
        write_int(&int, out)?;
    } else if let Some(number) = number_of_array_library(value)? {
        return write_ordered(&number, out, depth, seen);
    } else {
        return Ok(false);
    }
    Ok(true)
}

fn write_descending(
    value: &Bound<'_, PyAny>,
    out: &mut Vec<u8>,
    depth: u32,
    seen: &mut SeenKeyTypes,
) -> PyResult<bool> {
    let depth = depth + DESCENDING_DEPTH;
    if depth > DEPTH_MAX {
        return Err(PyValueError::new_err("gm.desc is within gm.desc too often"));
    }
    let mut inner = Vec::new();
    // It stands by itself, so that a None in it is one outside of tuples.
    if value.is_none() {
        write::null(&mut inner);
    } else if !write_ordered(value, &mut inner, depth, seen)? {
        return Ok(false);
    }
    descending::write(out, &inner);
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
pub fn write_comparable(
    value: &Bound<'_, PyAny>,
    out: &mut Vec<u8>,
    seen: &mut SeenKeyTypes,
) -> PyResult<bool> {
    let start = out.len();
    match write_ordered(value, out, 0, seen) {
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

/// An integer that is no boolean and no other subclass, if it has 64 bits.
#[inline]
pub fn small_int(value: &Bound<'_, PyAny>) -> Option<i64> {
    value.cast_exact::<PyInt>().ok()?.extract().ok()
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

fn no_key(role: &str, key: &Bound<'_, PyAny>) -> PyErr {
    let misfit = misfit(key);
    type_error(
        &format!(
            "{role} must be str, bytes, int, float, bool, None, Decimal, date, datetime, gm.desc of one of these or a \
             tuple of them, and {misfit}"
        ),
        "make a key of one of these types from it",
    )
}

/// What of a value has no order: it, or an element of the tuple that it is, and of which type that is.
pub fn misfit(value: &Bound<'_, PyAny>) -> String {
    let (mut found, mut place) = (value.clone(), String::new());
    while let Ok(tuple) = found.cast::<PyTuple>() {
        let is_misfit = |element: &Bound<'_, PyAny>| {
            let written = write_ordered(element, &mut Vec::new(), 0, &mut SeenKeyTypes::default());
            !written.unwrap_or(true)
        };
        let elements = tuple.iter().enumerate();
        let Some((at, element)) = elements.into_iter().find(|(_, one)| is_misfit(one)) else {
            break;
        };
        place = format!("element {at} of {place}");
        found = element;
    }
    let kind = kind_of(&found);
    if place.is_empty() {
        return format!("{} is of type {kind}", shown(value));
    }
    format!(
        "{place}{}, {}, is of type {kind}",
        shown(value),
        shown(&found)
    )
}

/// An object as Python shows it, in short.
pub fn shown(object: &Bound<'_, PyAny>) -> String {
    const CHARS_MAX: usize = 200;
    let shown = object
        .repr()
        .map(|repr| repr.to_string_lossy().into_owned());
    let shown = shown.unwrap_or_else(|_| "an object that cannot be shown".to_owned());
    if shown.chars().count() <= CHARS_MAX {
        return shown;
    }
    shown.chars().take(CHARS_MAX).chain("...".chars()).collect()
}

fn dumps(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static DUMPS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    DUMPS
        .import(py, "pickle", "dumps")
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
    write_key(key, &mut out, &mut SeenKeyTypes::default())?;
    Ok(PyBytes::new(py, &out))
}

/// Bytes that compare as the key does by what it is worth.
#[pyfunction]
pub fn encode_order<'py>(
    py: Python<'py>,
    key: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (mut encoded, mut out) = (Vec::new(), Vec::new());
    write_key(key, &mut encoded, &mut SeenKeyTypes::default())?;
    order::ordered(&encoded, &mut out).or_raise()?;
    Ok(PyBytes::new(py, &out))
}

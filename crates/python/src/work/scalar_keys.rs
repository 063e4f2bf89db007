//! Keys of rarer types: Decimal, date, datetime, `gm.desc`. Python takes them apart and makes them (`mapreduce/keys.py`),
//! but for dates and datetimes that are plain (`held.rs`).
//!
//! ```text
//!   key ──parts_of──▶ (kind, content) ──▶ the engine's encoding ──▶ made by decimal
//! ```

use gristmill_engine::task::key_types;
use gristmill_engine::value::decimal::Finite;
use gristmill_engine::value::{Decimal, moment};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyBytes;

use super::seen_key_types::SeenKeyTypes;
use super::{OrRaise, held};

/// A function of `mapreduce/keys.py`.
macro_rules! python {
    ($py:expr, $name:literal) => {{
        static FUNCTION: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let function: &Bound<'_, PyAny> =
            FUNCTION.import($py, "gristmill.mapreduce.keys", $name)?;
        function
    }};
}

/// What became of a value that may be a key of a rarer type.
pub enum ScalarKey<'py> {
    /// It is of another type.
    Not,
    /// Its encoding was appended.
    Written,
    /// It is `gm.desc` of this key, which is to be written.
    Descending(Bound<'py, PyAny>),
}

/// Appends a key of a rarer type. An error (`ValueError`) where it has no encoding.
pub fn write<'py>(
    value: &Bound<'py, PyAny>,
    out: &mut Vec<u8>,
    seen: &mut SeenKeyTypes,
) -> PyResult<ScalarKey<'py>> {
    if let Some(day) = held::exact_date(value)? {
        seen.types |= key_types::DATE;
        moment::write_date(out, day);
        return Ok(ScalarKey::Written);
    }
    if let Some((micros, utc)) = held::exact_datetime(value)? {
        seen.types |= if utc {
            key_types::AWARE
        } else {
            key_types::NAIVE
        };
        moment::write_datetime(out, micros, utc);
        return Ok(ScalarKey::Written);
    }
    let parts = python!(value.py(), "parts_of").call1((value,))?;
    if parts.is_none() {
        return Ok(ScalarKey::Not);
    }
    let (kind, content): (u8, Bound<'py, PyAny>) = parts.extract()?;
    match kind {
        b'd' => {
            seen.types |= key_types::DATE;
            moment::write_date(out, content.extract()?);
        }
        b'n' | b'a' => {
            let utc = kind == b'a';
            seen.types |= if utc {
                key_types::AWARE
            } else {
                key_types::NAIVE
            };
            moment::write_datetime(out, content.extract()?, utc);
        }
        b'x' => {
            seen.types |= key_types::DECIMAL;
            decimal_of(&content)?.write(out);
        }
        _ => {
            seen.descending = true;
            return Ok(ScalarKey::Descending(content));
        }
    }
    Ok(ScalarKey::Written)
}

/// A decimal of its sign, its digits and its exponent, which is a text where it is not finite.
fn decimal_of(parts: &Bound<'_, PyAny>) -> PyResult<Decimal> {
    let (negative, digits, exponent): (bool, Bound<'_, PyBytes>, Bound<'_, PyAny>) =
        parts.extract()?;
    if let Ok(exponent) = exponent.extract::<i64>() {
        let finite = Finite::new(negative, digits.as_bytes(), exponent).or_raise()?;
        return Ok(Decimal::Finite(finite));
    }
    Ok(if exponent.eq("F")? {
        Decimal::Infinite { negative }
    } else {
        Decimal::Nan
    })
}

/// Whether a value is a Decimal.
pub fn is_decimal(value: &Bound<'_, PyAny>) -> bool {
    static DECIMAL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let class: PyResult<&Bound<'_, PyAny>> = DECIMAL.import(value.py(), "decimal", "Decimal");
    class.is_ok_and(|class| value.is_instance(class).unwrap_or(false))
}

/// Python's Decimal.
pub fn decimal<'py>(py: Python<'py>, decimal: &Decimal) -> PyResult<Bound<'py, PyAny>> {
    let make = python!(py, "decimal_of");
    match decimal {
        Decimal::Nan => make.call1((false, b"", "n")),
        Decimal::Infinite { negative } => make.call1((*negative, b"", "F")),
        Decimal::Finite(finite) => {
            let (negative, digits, exponent) = finite.plain();
            make.call1((negative, PyBytes::new(py, &digits), exponent))
        }
    }
}

/// `gm.desc` of a key.
pub fn desc<'py>(key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    python!(key.py(), "desc").call1((key,))
}

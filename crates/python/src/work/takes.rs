//! What values a native aggregate takes from user code, and how they are written.
//!
//! The engine compares encodings, and of what is pickled these say nothing: an aggregate that compares or adds up
//! takes what has an order, and refuses the rest by its type.

use gristmill_engine::aggregate::Aggregate;
use pyo3::prelude::*;
use pyo3::types::PyFloat;

use super::met::Met;
use super::rare;
use super::value::{misfit, write_comparable, write_value};
use crate::error::type_error;

/// What an aggregate does with values.
#[derive(Debug, Clone, Copy)]
pub enum Takes {
    /// Adds them up; its name.
    Sums(&'static str),
    /// Compares them; its name.
    Compares(&'static str),
    /// Tells them apart: numbers of other libraries are Python's.
    TellsApart,
    /// Hands them on as they are.
    Any,
}

impl Takes {
    /// What this aggregate does.
    pub fn of(aggregate: Option<&Aggregate>) -> Self {
        let Some((aggregate, _)) = aggregate.map(Aggregate::plain) else {
            return Takes::Any;
        };
        match aggregate {
            Aggregate::Sum | Aggregate::Mean => Takes::Sums(aggregate.name()),
            Aggregate::Min | Aggregate::Max | Aggregate::Top(_) | Aggregate::Quantiles(_) => {
                Takes::Compares(aggregate.name())
            }
            Aggregate::Distinct | Aggregate::ApproxDistinct => Takes::TellsApart,
            Aggregate::Count
            | Aggregate::First
            | Aggregate::Last
            | Aggregate::Collect
            | Aggregate::SkipNone(_) => Takes::Any,
        }
    }

    /// Appends a value; `met` learns of the types of those that are compared.
    #[inline]
    pub fn write(self, value: &Bound<'_, PyAny>, out: &mut Vec<u8>, met: &mut Met) -> PyResult<()> {
        match self {
            Takes::Any => write_value(value, out),
            Takes::Sums(name) if is_exact(value) => Err(not_added(name, value)),
            _ if write_comparable(value, out, met)? => Ok(()),
            Takes::TellsApart => write_value(value, out),
            Takes::Sums(name) => Err(not_added(name, value)),
            Takes::Compares(name) => Err(refused(
                value,
                &format!(
                    "gm.{name}() compares str, bytes, int, float, bool, None, Decimal, date, datetime and tuples of them"
                ),
                "give one of these types, such as float(...), or write the reduction as a function",
            )),
        }
    }
}

#[cold]
fn not_added(name: &str, value: &Bound<'_, PyAny>) -> PyErr {
    refused(
        value,
        &format!("gm.{name}() adds up int, float and bool"),
        "give float(...), or whole units as int, or write the reduction as a function",
    )
}

/// Whether a value is of a type that has an order and is not added up: its sum would be rounded.
fn is_exact(value: &Bound<'_, PyAny>) -> bool {
    !value.is_exact_instance_of::<PyFloat>() && rare::is_decimal(value)
}

#[cold]
fn refused(value: &Bound<'_, PyAny>, takes: &str, advice: &str) -> PyErr {
    let misfit = misfit(value);
    type_error(&format!("{takes}, and {misfit}"), advice)
}

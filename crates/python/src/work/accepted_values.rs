//! Which values of user code a native aggregate accepts, and how they are written.
//!
//! The engine compares the encoded bytes of values. The bytes of a pickle have no order. So an aggregate that compares or adds
//! up accepts only types that have an order, and refuses any other with an error that names the type.

use gristmill_engine::aggregate::Aggregate;
use pyo3::prelude::*;
use pyo3::types::PyFloat;

use super::scalar_keys;
use super::seen_key_types::SeenKeyTypes;
use super::value::{misfit, write_comparable, write_value};
use crate::error::type_error;

/// What an aggregate does with values.
#[derive(Debug, Clone, Copy)]
pub enum AcceptedValues {
    /// Adds them up; the aggregate's name, for errors.
    Sums(&'static str),
    /// Compares them; the aggregate's name, for errors.
    Compares(&'static str),
    /// Tells them apart: a number of another library, such as NumPy, counts as Python's number.
    TellsApart,
    /// Does not look at them: any value will do.
    Any,
}

impl AcceptedValues {
    /// What an aggregate does with values; without one, `Any`.
    pub fn of(aggregate: Option<&Aggregate>) -> Self {
        let Some((aggregate, _)) = aggregate.map(Aggregate::plain) else {
            return AcceptedValues::Any;
        };
        match aggregate {
            Aggregate::Sum | Aggregate::Mean => AcceptedValues::Sums(aggregate.name()),
            Aggregate::Min | Aggregate::Max | Aggregate::Top(_) | Aggregate::Quantiles(_) => {
                AcceptedValues::Compares(aggregate.name())
            }
            Aggregate::Distinct | Aggregate::CountDistinct | Aggregate::ApproxDistinct => {
                AcceptedValues::TellsApart
            }
            Aggregate::Count
            | Aggregate::First
            | Aggregate::Last
            | Aggregate::Collect
            | Aggregate::DecimalSum
            | Aggregate::DecimalMean
            | Aggregate::CellMin
            | Aggregate::CellMax
            | Aggregate::SkipNone(_)
            | Aggregate::Several(_) => AcceptedValues::Any,
        }
    }

    /// Appends a value to `out`; records in `seen` the types of values that have an order.
    #[inline]
    pub fn write(
        self,
        value: &Bound<'_, PyAny>,
        out: &mut Vec<u8>,
        seen: &mut SeenKeyTypes,
    ) -> PyResult<()> {
        match self {
            AcceptedValues::Any => write_value(value, out),
            AcceptedValues::Sums(name) if is_exact(value) => Err(not_added(name, value)),
            _ if write_comparable(value, out, seen)? => Ok(()),
            AcceptedValues::TellsApart => write_value(value, out),
            AcceptedValues::Sums(name) => Err(not_added(name, value)),
            AcceptedValues::Compares(name) => Err(refused(
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

/// Whether a value is a Decimal. It has an order, but is not added up: the sum would be rounded.
fn is_exact(value: &Bound<'_, PyAny>) -> bool {
    !value.is_exact_instance_of::<PyFloat>() && scalar_keys::is_decimal(value)
}

#[cold]
fn refused(value: &Bound<'_, PyAny>, takes: &str, advice: &str) -> PyErr {
    let misfit = misfit(value);
    type_error(&format!("{takes}, and {misfit}"), advice)
}

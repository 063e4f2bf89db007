//! Lets the user's combiner make fewer pairs of those in a batch.

use std::sync::Arc;

use gristmill_engine::spill::collect::CombineBatch;
use gristmill_engine::value::order;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::OrRaise;
use super::batch_values::BatchValues;
use super::objects::read_value;
use super::value::{shown, write_value};

/// Gives the values of each key of a sorted batch to `combine`, and what it makes of them to `give`, with partition and key.
///
/// Returns how many values it took, and how many it gave. `ranked` says that keys are ordered by what they are worth.
pub(super) fn combine_all(
    py: Python<'_>,
    combine: &Py<PyAny>,
    sorted: &Arc<CombineBatch>,
    ranked: bool,
    give: &mut impl FnMut(u32, &[u8], &[u8]) -> PyResult<()>,
) -> PyResult<(u64, u64)> {
    let (mut start, mut given) = (0, 0);
    let mut encoded = Vec::new();
    while start < sorted.len() {
        let (partition, key, _) = sorted.pair(start);
        let same = |number: &usize| {
            let (other, also, _) = sorted.pair(*number);
            (other, also) == (partition, key)
        };
        let end = (start + 1..sorted.len())
            .find(|number| !same(number))
            .unwrap_or(sorted.len());
        let values = BatchValues::new(sorted, start..end);
        let encoding = if ranked {
            order::key_of(key).or_raise()?.0
        } else {
            0..key.len()
        };
        let combined = combine
            .bind(py)
            .call1((read_value(py, &key[encoding])?, values))?;
        let Ok(combined) = combined.try_iter() else {
            let message = format!(
                "the combiner must give values, and it gave {}",
                shown(&combined)
            );
            return Err(PyTypeError::new_err(message));
        };
        for value in combined {
            encoded.clear();
            write_value(&value?, &mut encoded)?;
            give(partition, key, &encoded)?;
            given += 1;
        }
        start = end;
    }
    Ok((sorted.len() as u64, given))
}

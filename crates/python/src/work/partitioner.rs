//! Which partition a pair goes to.

use gristmill_engine::value::{self, order};
use gristmill_engine::{Error, Kind, Result};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::OrRaise;
use super::seen_key_types::SeenKeyTypes;
use super::value::{shown, write_key};

/// What decides the partition of a key.
pub enum Partitioner {
    Hash,
    /// Ordered bytes of keys, ascending: where each partition but the first begins. The keys are ranked.
    Ranges(Vec<Vec<u8>>),
    Function(Py<PyAny>),
}

impl Partitioner {
    /// By a function of the user's, or by the keys at which partitions begin, or else by the hash.
    pub fn new(
        function: Option<Py<PyAny>>,
        cuts: Option<Vec<Bound<'_, PyAny>>>,
        partitions: u32,
    ) -> PyResult<Self> {
        Ok(match (function, cuts) {
            (Some(function), _) => Partitioner::Function(function),
            (None, Some(cuts)) => Partitioner::Ranges(encoded_cuts(&cuts, partitions)?),
            (None, None) => Partitioner::Hash,
        })
    }

    /// The partition of a key, given by its encoding and, for functions, as an object.
    #[inline]
    pub fn of(
        &self,
        py: Python<'_>,
        key: Option<&Bound<'_, PyAny>>,
        encoded: &[u8],
        hash: u64,
        partitions: u32,
    ) -> Result<u32> {
        match self {
            Partitioner::Hash => Ok(value::partition(hash, partitions as usize) as u32),
            Partitioner::Ranges(cuts) => {
                Ok(cuts.partition_point(|cut| cut.as_slice() <= encoded) as u32)
            }
            Partitioner::Function(function) => {
                let Some(key) = key else {
                    return Err(Error::bug("choose a partition", "the key is not an object"));
                };
                let chosen = function.bind(py).call1((key, partitions));
                chosen_partition(py, key, chosen, partitions)
            }
        }
    }
}

fn encoded_cuts(cuts: &[Bound<'_, PyAny>], partitions: u32) -> PyResult<Vec<Vec<u8>>> {
    let mut encoded = Vec::with_capacity(cuts.len());
    for cut in cuts {
        let (mut key, mut bytes) = (Vec::new(), Vec::new());
        write_key(cut, &mut key, &mut SeenKeyTypes::default())?;
        order::ordered(&key, &mut bytes).or_raise()?;
        encoded.push(bytes);
    }
    if !encoded.is_sorted_by(|a, b| a < b) {
        return Err(PyValueError::new_err("the cuts of ranges must ascend"));
    }
    if encoded.len() + 1 != partitions as usize {
        let message = format!(
            "{} cuts make {} parts, and there are {partitions}",
            encoded.len(),
            encoded.len() + 1
        );
        return Err(PyValueError::new_err(message));
    }
    Ok(encoded)
}

/// What a user's partitioner said.
fn chosen_partition(
    py: Python<'_>,
    key: &Bound<'_, PyAny>,
    chosen: PyResult<Bound<'_, PyAny>>,
    partitions: u32,
) -> Result<u32> {
    let wrong = |what: String| {
        let message = format!("for the key {} the partitioner {what}", shown(key));
        Error::new(Kind::UserCode, "choose a partition", message).advise(format!(
            "let it return a number from 0 to {}",
            partitions.saturating_sub(1)
        ))
    };
    let chosen = chosen.map_err(|error| wrong(format!("raised {}", error.value(py))))?;
    match chosen.extract::<u32>() {
        Ok(partition) if partition < partitions => Ok(partition),
        _ => Err(wrong(format!("returned {}", shown(&chosen)))),
    }
}

//! The groups of a partition: each key with its values, or with what an aggregate makes of them.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use gristmill_engine::Error;
use gristmill_engine::aggregate::Aggregate;
use gristmill_engine::merge::groups as merge;
use gristmill_engine::task::{feed_of, group_mark};
use gristmill_engine::worker::{Heartbeat, RecordPosition};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use serde_json::json;

use super::objects::read_value;
use super::{OrRaise, aggregate_of, spec_of, to_json};
use crate::stores::{runs_read, stores};

/// Goes through the groups, in order.
#[pyclass]
pub struct Groups {
    groups: merge::MergedGroups,
    aggregate: Option<Aggregate>,
    /// Whether all groups were gone through.
    ended: bool,
    /// The memory for a key's result.
    room: usize,
    /// What the aggregate has made of the group's values.
    result: Vec<u8>,
}

#[pymethods]
impl Groups {
    #[new]
    #[pyo3(signature = (spec, *, aggregate = None, counts = false, ordered = false, ranked = false))]
    fn new(
        spec: &str,
        aggregate: Option<&str>,
        counts: bool,
        ordered: bool,
        ranked: bool,
    ) -> PyResult<Self> {
        let spec = spec_of(spec)?;
        let aggregate = aggregate_of(aggregate)?;
        // A set of a million texts is counted here, not made in Python.
        let aggregate = if counts {
            aggregate.map(Aggregate::counted)
        } else {
            aggregate
        };
        let feed = feed_of(&spec, stores().disk().clone()).or_raise()?;
        Ok(Groups {
            groups: merge::MergedGroups::new(feed, merge::KeyForm { ordered, ranked }, note),
            aggregate,
            ended: false,
            room: spec.chunk_bytes,
            result: Vec::new(),
        })
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
        let py = slf.py();
        let mut groups = slf.borrow_mut();
        if groups.aggregate.is_some() {
            let Some((key, result)) = groups.next_aggregate().or_raise()? else {
                return Ok(None);
            };
            return Ok(Some((read_value(py, key)?, read_value(py, result)?)));
        }
        if !groups.groups.next_group().or_raise()? {
            groups.ended = true;
            return Ok(None);
        }
        let key = read_value(py, groups.groups.key())?;
        let number = groups.groups.number();
        drop(groups);
        let values = Values {
            groups: slf.clone().unbind(),
            number,
            ended: AtomicBool::default(),
            again: AtomicBool::default(),
        };
        Ok(Some((key, Bound::new(py, values)?.into_any())))
    }

    /// User code has done with all groups so far: what it is given next begins with the next one.
    fn begin_batch(&mut self) {
        self.groups.begin_batch();
    }

    /// Pairs and groups gone through, and what was read for them of the runs of agents.
    fn finish(&mut self) -> PyResult<String> {
        while self.groups.next_group().or_raise()? {}
        let (records, bytes) = self.groups.seen();
        let (pairs, key) = self.groups.largest();
        to_json(&json!({
            "records_in": records,
            "bytes_in": bytes,
            "groups": self.groups.number(),
            "largest_group": {"pairs": pairs, "key": key},
            "reads": runs_read(),
        }))
    }

    /// The number of the group, and of pairs up to here.
    fn seen(&self) -> (u64, u64) {
        (self.groups.number(), self.groups.seen().0)
    }
}

impl Groups {
    /// The next group's key and the aggregate of its values, both encoded; nothing at the end.
    pub fn next_aggregate(&mut self) -> gristmill_engine::Result<Option<(&[u8], &[u8])>> {
        let Some(aggregate) = &self.aggregate else {
            return Err(Error::bug("reduce", "there is no aggregate"));
        };
        let found = self
            .groups
            .next_aggregate(aggregate, self.room, &mut self.result)?;
        Ok(found.then_some((self.groups.key(), &self.result)))
    }
}

/// Writes to the pulse, now and then and where a group begins, which pairs user code has: those from `offset` on, in
/// groups up to that which `file` marks.
#[inline]
fn note(groups: &merge::MergedGroups, begins: bool) {
    let (record, bytes_done) = groups.seen();
    if (begins || record.is_multiple_of(1 << 8))
        && let Some(pulse) = Heartbeat::mine()
    {
        let (given, first, bytes) = groups.given();
        pulse.write(&RecordPosition {
            record,
            offset: given,
            file: group_mark(first, bytes),
            bytes_done,
        });
    }
}

/// The values of one group, which can be read once.
#[pyclass(module = "gristmill")]
pub struct Values {
    groups: Py<Groups>,
    number: u64,
    /// Whether all were read, and whether somebody began to read them again.
    ended: AtomicBool,
    again: AtomicBool,
}

#[pymethods]
impl Values {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf.again.fetch_or(slf.ended.load(Relaxed), Relaxed);
        slf
    }

    /// Whether somebody began to read them once more after their end.
    #[getter]
    fn read_again(&self) -> bool {
        self.again.load(Relaxed)
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut groups = self.groups.bind(py).borrow_mut();
        if groups.ended || groups.groups.number() != self.number {
            return Err(PyRuntimeError::new_err(
                "the values of a key can only be gone through while it is reduced: make a list of them",
            ));
        }
        if !groups.groups.next_pair().or_raise()? {
            self.ended.store(true, Relaxed);
            return Ok(None);
        }
        let value = read_value(py, groups.groups.value())?;
        Ok(Some(value))
    }
}

//! The groups of a partition: each key with its values, or with what an aggregate makes of them.

use gristmill_engine::Error;
use gristmill_engine::aggregate::Aggregate;
use gristmill_engine::budget::Budget;
use gristmill_engine::merge::feed::{FEED_BYTES, Feed, FeedRun};
use gristmill_engine::spill::collect::partition_bytes;
use gristmill_engine::task::WorkKind;
use gristmill_engine::value::skip;
use gristmill_engine::worker::{Place, Pulse};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use serde_json::json;

use super::value::read_value;
use super::{OrRaise, aggregate_of, spec_of, store, to_json};
use crate::error::to_python;

/// Goes through the groups, in order.
#[pyclass]
pub struct Groups {
    feed: Feed,
    aggregate: Option<Aggregate>,
    /// Keys go on behind the group's: with what orders its values.
    ordered: bool,
    /// The group's key.
    key: Vec<u8>,
    /// What the aggregate has made of the group's values.
    result: Vec<u8>,
    /// The number of the group; iterators of earlier ones have ended.
    number: u64,
    /// Whether the feed stands at a pair that nobody has had yet, of this group or the next.
    ahead: bool,
    /// Whether there may be more pairs of this group.
    inside: bool,
    ended: bool,
}

#[pymethods]
impl Groups {
    #[new]
    #[pyo3(signature = (spec, *, aggregate = None, ordered = false))]
    fn new(spec: &str, aggregate: Option<&str>, ordered: bool) -> PyResult<Self> {
        let spec = spec_of(spec)?;
        let aggregate = aggregate_of(aggregate)?;
        let WorkKind::Reduce {
            partition,
            runs,
            source_bytes,
        } = &spec.work
        else {
            return Err(to_python(&Error::bug("reduce", "the task is no reduce")));
        };
        let feeds = runs.iter().map(|run| FeedRun {
            path: run.path.clone(),
            longest: run.longest,
        });
        let feed = Feed::begin(
            store(),
            feeds.collect(),
            *partition as usize,
            partition_bytes(spec.partitions),
            *source_bytes,
            Budget::new(spec.chunk_bytes as u64 + FEED_BYTES),
        );
        Ok(Groups {
            feed: feed.or_raise()?,
            aggregate,
            ordered,
            key: Vec::new(),
            result: Vec::new(),
            number: 0,
            ahead: false,
            inside: false,
            ended: false,
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
        if !groups.next_group().or_raise()? {
            return Ok(None);
        }
        let key = read_value(py, &groups.key)?;
        let number = groups.number;
        drop(groups);
        let values = Values {
            groups: slf.clone().unbind(),
            number,
        };
        Ok(Some((key, Bound::new(py, values)?.into_any())))
    }

    /// Pairs and groups gone through.
    fn finish(&mut self) -> PyResult<String> {
        while !self.ended {
            self.next_group().or_raise()?;
        }
        let (records, bytes) = self.feed.seen();
        to_json(&json!({"records_in": records, "bytes_in": bytes, "groups": self.number}))
    }

    /// The number of the group, and of pairs up to here.
    fn seen(&self) -> (u64, u64) {
        (self.number, self.feed.seen().0)
    }
}

impl Groups {
    /// Goes to the first pair of the next group; false at the end.
    fn next_group(&mut self) -> gristmill_engine::Result<bool> {
        while self.inside {
            self.next_pair()?;
        }
        if self.ended || (!self.ahead && !self.advance()?) {
            return Ok(false);
        }
        let key = self.feed.pair().0;
        let bytes = if self.ordered { skip(key)? } else { key.len() };
        self.key.clear();
        self.key.extend_from_slice(&key[..bytes]);
        self.number += 1;
        (self.ahead, self.inside) = (true, true);
        Ok(true)
    }

    /// Goes to the next pair of this group; false where it has no more.
    #[inline]
    fn next_pair(&mut self) -> gristmill_engine::Result<bool> {
        if !self.inside {
            return Ok(false);
        }
        if self.ahead {
            self.ahead = false;
            return Ok(true);
        }
        if !self.advance()? {
            self.inside = false;
            return Ok(false);
        }
        let key = self.feed.pair().0;
        // A key that begins with the group's is of the group, unless 255 follows: that belongs to an escaped zero (the
        // encoding of "" begins that of "\0"), and no encoding begins with it.
        let same = if self.ordered {
            key.strip_prefix(self.key.as_slice())
                .is_some_and(|rest| rest.first() != Some(&u8::MAX))
        } else {
            key == self.key
        };
        (self.inside, self.ahead) = (same, !same);
        Ok(same)
    }

    #[inline]
    fn advance(&mut self) -> gristmill_engine::Result<bool> {
        if self.ended || !self.feed.advance()? {
            self.ended = true;
            return Ok(false);
        }
        let (records, bytes) = self.feed.seen();
        if records.is_multiple_of(1 << 8)
            && let Some(pulse) = Pulse::mine()
        {
            pulse.write(&Place {
                record: records,
                offset: 0,
                file: 0,
                bytes_done: bytes,
            });
        }
        Ok(true)
    }

    /// The next group's key and the aggregate of its values, both encoded; nothing at the end.
    pub fn next_aggregate(&mut self) -> gristmill_engine::Result<Option<(&[u8], &[u8])>> {
        if !self.next_group()? {
            return Ok(None);
        }
        let Some(aggregate) = self.aggregate.take() else {
            return Err(Error::bug("reduce", "there is no aggregate"));
        };
        let folded = self.fold(&aggregate);
        self.aggregate = Some(aggregate);
        folded?;
        Ok(Some((&self.key, &self.result)))
    }

    fn fold(&mut self, aggregate: &Aggregate) -> gristmill_engine::Result<()> {
        let mut state = aggregate.empty();
        while self.next_pair()? {
            aggregate.merge(&mut state, self.feed.pair().1)?;
        }
        self.result.clear();
        aggregate.finish(&state, &mut self.result)
    }
}

/// The values of one group.
#[pyclass]
pub struct Values {
    groups: Py<Groups>,
    number: u64,
}

#[pymethods]
impl Values {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut groups = self.groups.bind(py).borrow_mut();
        if groups.number != self.number {
            return Err(PyRuntimeError::new_err(
                "the values of a key can only be gone through while it is reduced: make a list of them",
            ));
        }
        if !groups.next_pair().or_raise()? {
            return Ok(None);
        }
        let value = read_value(py, groups.feed.pair().1)?;
        Ok(Some(value))
    }
}

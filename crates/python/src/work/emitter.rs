//! Takes the pairs of a map, and leaves them in runs: sorted, and aggregated or combined where the job says so.

mod rows;

use std::sync::Arc;

use gristmill_engine::aggregate::Aggregate;
use gristmill_engine::spill::collect::{CombineBatch, PairCollector};
use gristmill_engine::spill::table::AggregateTable;
use gristmill_engine::task::key_types::{Kinds, TIMES};
use gristmill_engine::value::block::KeyBlock;
use gristmill_engine::value::columns::Column;
use gristmill_engine::value::{self, order};
use gristmill_engine::{Error, Result};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use serde_json::json;

use super::accepted_values::AcceptedValues;
use super::columns::{self, Buffers};
use super::combine::combine_all;
use super::objects::read_value;
use super::pairs::pair_of;
use super::partitioner::Partitioner;
use super::seen_key_types::SeenKeyTypes;
use super::value::{shown, small_int, write_key, write_key_as, write_value};
use super::{OrRaise, aggregate_of, spec_of, to_json};
use crate::error::to_python;
use crate::pulse::beat;
use crate::stores::stores;

/// Pairs between two signs of life.
const PAIRS_A_BEAT: u64 = 1 << 10;

/// Where pairs go.
enum PairSink {
    Collector,
    Table(Box<AggregateTable>),
    Combine(Box<CombineBatch>, Py<PyAny>),
}

/// Takes pairs.
#[pyclass]
pub struct Emitter {
    collector: Option<PairCollector>,
    sink: PairSink,
    accepted: AcceptedValues,
    partitions: u32,
    partitioner: Partitioner,
    /// Whether keys are ordered by what they are worth: as ranked keys (`value/order.rs`).
    ranked: bool,
    /// Types of keys, of what `sort_by` returned, of values that are compared, and of keys that `group_by` got.
    seen: Box<[SeenKeyTypes; 4]>,
    group_by: Option<Py<PyAny>>,
    sort_by: Option<Py<PyAny>>,
    /// The position of the next pair among all of the job: the task's number, and the pair's.
    position: u64,
    pairs: u64,
    bytes: u64,
    combined: (u64, u64),
    /// Whether the combiner runs, or has failed.
    combining: bool,
    batch_bytes: usize,
    key: Vec<u8>,
    order: Vec<u8>,
    value: Vec<u8>,
    /// What `sort_by` returned.
    scratch: Vec<u8>,
    /// Keys and values of a table, and some encoded keys.
    columns: Box<(Column, Column, KeyBlock)>,
    /// Keys of the table here that wait to be looked for, many at once, with the integers for them.
    waiting: Box<KeyBlock>,
    /// Whether they wait: in a table of sums or counts, to which an integer can be added at any time, and no function of the
    /// user's chooses their partition.
    waits: bool,
}

fn alive(_: u64) -> Result<()> {
    beat();
    Ok(())
}

#[pymethods]
impl Emitter {
    #[new]
    #[pyo3(signature = (spec, *, aggregate = None, cuts = None, partition = None, group_by = None, sort_by = None, combine = None))]
    fn new(
        spec: &str,
        aggregate: Option<&str>,
        cuts: Option<Vec<Bound<'_, PyAny>>>,
        partition: Option<Py<PyAny>>,
        group_by: Option<Py<PyAny>>,
        sort_by: Option<Py<PyAny>>,
        combine: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let spec = spec_of(spec)?;
        let aggregate = aggregate_of(aggregate)?;
        let accepted = AcceptedValues::of(aggregate.as_ref());
        let adds_up = aggregate.as_ref().map(Aggregate::plain);
        let adds_up = matches!(adds_up, Some((Aggregate::Sum | Aggregate::Count, _)));
        let ordered = group_by.is_some() || sort_by.is_some();
        if ordered && (aggregate.is_some() || combine.is_some()) {
            let message = "an order of values within a key cannot be had together with an aggregate or a combiner";
            return Err(PyValueError::new_err(message));
        }
        let mut plan = spec.collect_plan();
        let partitions = plan.partitions;
        let half = plan.chunk_bytes / 2;
        let sink = match (aggregate, combine) {
            (Some(aggregate), _) => PairSink::Table(Box::new(AggregateTable::new(aggregate, half))),
            (None, Some(combine)) => {
                let mut batch = CombineBatch::default();
                batch.reserve(half, partitions).or_raise()?;
                PairSink::Combine(Box::new(batch), combine)
            }
            (None, None) => PairSink::Collector,
        };
        if !matches!(sink, PairSink::Collector) {
            plan.chunk_bytes = half;
        }
        let partitioner = Partitioner::new(partition, cuts, partitions)?;
        let collector = PairCollector::new(
            stores().disk().clone(),
            plan,
            spec.run_name(),
            Default::default(),
        );
        Ok(Emitter {
            collector: Some(collector.or_raise()?),
            sink,
            accepted,
            partitions,
            ranked: matches!(partitioner, Partitioner::Ranges(_)),
            waiting: Box::default(),
            waits: adds_up && !matches!(partitioner, Partitioner::Function(_)),
            partitioner,
            seen: Box::default(),
            group_by,
            sort_by,
            position: u64::from(spec.task) << 40,
            pairs: 0,
            bytes: 0,
            combined: (0, 0),
            combining: false,
            batch_bytes: half,
            key: Vec::new(),
            order: Vec::new(),
            value: Vec::new(),
            scratch: Vec::new(),
            columns: Box::default(),
        })
    }

    /// Takes one pair.
    fn emit(
        &mut self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.take(py, key, value)
    }

    /// Takes all pairs of an iterable.
    fn consume(&mut self, py: Python<'_>, pairs: &Bound<'_, PyAny>) -> PyResult<()> {
        if pairs.is_none() {
            return Ok(());
        }
        let Ok(pairs) = pairs.try_iter() else {
            let message = format!(
                "the map must give pairs (key, value), or nothing, and it gave {}",
                shown(pairs)
            );
            return Err(PyTypeError::new_err(message));
        };
        for pair in pairs {
            let (key, value) = pair_of(&pair?)?;
            self.take(py, &key, &value)?;
        }
        Ok(())
    }

    /// Takes the pairs of a table's rows: its keys and its values as buffers of Arrow. Not together with the user's
    /// partitioners, groups and orders, which want objects.
    fn consume_columns(
        &mut self,
        py: Python<'_>,
        rows: usize,
        keys: Buffers,
        values: Buffers,
    ) -> PyResult<()> {
        if self.group_by.is_some() || self.sort_by.is_some() {
            let bug = Error::bug("collect a table", "groups and orders want objects");
            return Err(to_python(&bug));
        }
        let mut columns = std::mem::take(&mut self.columns);
        columns::fill(&mut columns.0, py, rows, keys)?;
        columns::fill(&mut columns.1, py, rows, values)?;
        self.seen[0].types |= columns::kind_of(&columns.0);
        let taken = self.take_rows(py, rows, &mut columns);
        self.columns = columns;
        taken
    }

    /// Whether it was the combiner that raised.
    fn combining(&self) -> bool {
        self.combining
    }

    /// Leaves all pairs in runs; says which.
    fn finish(&mut self, py: Python<'_>) -> PyResult<String> {
        self.settle(py)?;
        let mut collector = self.take_collector()?;
        match &mut self.sink {
            PairSink::Collector => {}
            PairSink::Table(table) => {
                table.give(&mut collector, &alive).or_raise()?;
                self.combined = (table.added(), table.given());
            }
            PairSink::Combine(..) => {
                self.collector = Some(collector);
                self.combine(py)?;
                collector = self.take_collector()?;
            }
        }
        let (runs, _) = py.detach(|| collector.finish(&alive)).or_raise()?;
        let mut kinds = Kinds::default();
        for (seen, place) in self
            .seen
            .iter()
            .zip(["key", "sort_by", "value", "group_by"])
        {
            // Only as keys numbers of several types are told apart.
            let types = if place == "key" { u16::MAX } else { TIMES };
            seen.give(types, place, &mut kinds);
        }
        to_json(&json!({
            "runs": runs,
            "records_out": self.pairs,
            "bytes_out": self.bytes,
            "combine_in": self.combined.0,
            "combine_out": self.combined.1,
            "kinds": kinds,
        }))
    }
}

impl Emitter {
    #[inline]
    fn take(
        &mut self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if self.waits
            && let Some(int) = small_int(value)
        {
            return self.wait(py, key, int);
        }
        self.key.clear();
        let seen = &mut self.seen[if self.group_by.is_some() { 3 } else { 0 }];
        let plain; // functions of the user's see keys as the reduce does
        let key = if write_key(key, &mut self.key, seen)? {
            plain = read_value(py, &self.key)?;
            &plain
        } else {
            key
        };
        self.begin_pair();
        if let PairSink::Table(_) = self.sink {
            let int = small_int(value);
            if int.is_none() {
                self.value.clear();
                self.accepted
                    .write(value, &mut self.value, &mut self.seen[2])?;
            }
            self.rank_key()?;
            let encoded = std::mem::take(&mut self.key);
            let added = self.add(py, Some(key), &encoded, value::hash(&encoded), int);
            self.key = encoded;
            return added;
        }
        self.value.clear();
        write_value(value, &mut self.value)?;
        self.order.clear();
        let mut grouped = None;
        if let Some(group_by) = &self.group_by {
            let group = group_by.bind(py).call1((key,))?;
            order::ordered(&self.key, &mut self.order).or_raise()?;
            self.key.clear();
            let seen = &mut self.seen[0];
            let turned = write_key_as("what group_by returns", &group, &mut self.key, seen)?;
            grouped = Some(match turned {
                true => read_value(py, &self.key)?,
                false => group,
            });
        }
        if let Some(sort_by) = &self.sort_by {
            let by = sort_by.bind(py).call1((key, value))?;
            self.scratch.clear();
            let seen = &mut self.seen[1];
            write_key_as("what sort_by returns", &by, &mut self.scratch, seen)?;
            order::ordered(&self.scratch, &mut self.order).or_raise()?;
        }
        self.rank_key()?;
        let hash = match self.partitioner {
            Partitioner::Hash => value::hash(&self.key),
            _ => 0,
        };
        self.append(py, Some(grouped.as_ref().unwrap_or(key)), hash)
    }

    /// Takes a key and an integer, which are added to the table a little later.
    #[inline]
    fn wait(&mut self, py: Python<'_>, key: &Bound<'_, PyAny>, int: i64) -> PyResult<()> {
        let (seen, ranked) = (&mut self.seen[0], self.ranked);
        self.waiting.push(int, |bytes| {
            let start = bytes.len();
            write_key(key, bytes, seen)?;
            if ranked {
                order::rank(bytes, start).or_raise()?;
            }
            Ok::<_, PyErr>(())
        })?;
        self.begin_pair();
        if self.waiting.is_full() {
            return self.settle(py);
        }
        Ok(())
    }

    /// Adds to the table what waits.
    fn settle(&mut self, py: Python<'_>) -> PyResult<()> {
        let mut block = std::mem::take(&mut *self.waiting);
        if let PairSink::Table(table) = &self.sink {
            table.touch(&block.hashes);
        }
        for ((key, hash), int) in block.keys().zip(&block.ints) {
            self.add(py, None, key, hash, Some(*int))?;
        }
        block.clear();
        *self.waiting = block;
        Ok(())
    }

    /// Ranks the key in the buffer, if keys are ranked.
    #[inline(always)]
    fn rank_key(&mut self) -> PyResult<()> {
        if self.ranked {
            order::rank(&mut self.key, 0).or_raise()?;
        }
        Ok(())
    }

    /// One pair more.
    #[inline]
    fn begin_pair(&mut self) {
        self.pairs += 1;
        self.position += 1;
        if self.pairs.is_multiple_of(PAIRS_A_BEAT) {
            beat();
        }
    }

    /// Adds a value to an encoded key of the table: the value `int`, or that in the buffer. `key` is the key, if it is an object.
    #[inline]
    fn add(
        &mut self,
        py: Python<'_>,
        key: Option<&Bound<'_, PyAny>>,
        encoded: &[u8],
        hash: u64,
        int: Option<i64>,
    ) -> PyResult<()> {
        let PairSink::Table(table) = &mut self.sink else {
            return Ok(());
        };
        let partitioner = &self.partitioner;
        let of = |hash| partitioner.of(py, key, encoded, hash, self.partitions);
        self.bytes += encoded.len() as u64;
        let added = match int {
            Some(int) => table.add_int(hash, encoded, int, self.position, of),
            None => table.add(hash, encoded, &self.value, self.position, of),
        };
        added.or_raise()?;
        if table.is_full() {
            let collector = self.collector.as_mut().ok_or_else(closed)?;
            table.give(collector, &alive).or_raise()?;
        }
        Ok(())
    }

    /// Gives the pair that is in the buffers to where it goes. `key` is what it is grouped by, if that is an object; `hash`
    /// that of the encoded key, if partitions go by it.
    #[inline]
    fn append(
        &mut self,
        py: Python<'_>,
        key: Option<&Bound<'_, PyAny>>,
        hash: u64,
    ) -> PyResult<()> {
        let partition = self
            .partitioner
            .of(py, key, &self.key, hash, self.partitions);
        let partition = partition.or_raise()?;
        self.bytes += (self.key.len() + self.order.len() + self.value.len()) as u64;
        if let PairSink::Combine(batch, _) = &mut self.sink {
            if batch.append(partition, &self.key, b"", &self.value) {
                return Ok(());
            }
            self.combine(py)?;
            if let PairSink::Combine(batch, _) = &mut self.sink
                && batch.append(partition, &self.key, b"", &self.value)
            {
                return Ok(());
            }
        }
        let collector = self.collector.as_mut().ok_or_else(closed)?;
        let (key, order, value) = (&self.key, &self.order, &self.value);
        collector
            .append(partition, key, order, value, &alive)
            .or_raise()
    }

    /// Lets the user's combiner make fewer pairs of those in the batch.
    fn combine(&mut self, py: Python<'_>) -> PyResult<()> {
        let PairSink::Combine(batch, combine) = &mut self.sink else {
            return Ok(());
        };
        let collector = self.collector.as_mut().ok_or_else(closed)?;
        self.combining = true;
        let mut full = std::mem::take(&mut **batch);
        full.sort();
        let full = Arc::new(full);
        let mut give = |partition, key: &[u8], value: &[u8]| {
            collector
                .append(partition, key, b"", value, &alive)
                .or_raise()
        };
        let (taken, given) = combine_all(py, combine, &full, self.ranked, &mut give)?;
        self.combined.0 += taken;
        self.combined.1 += given;
        // The memory is used again, unless the user's code has kept an iterator over it.
        let mut empty = Arc::try_unwrap(full).unwrap_or_default();
        empty
            .reserve(self.batch_bytes, self.partitions)
            .or_raise()?;
        **batch = empty;
        self.combining = false;
        Ok(())
    }

    fn take_collector(&mut self) -> PyResult<PairCollector> {
        self.collector.take().ok_or_else(closed)
    }
}

fn closed() -> PyErr {
    to_python(&Error::bug("collect pairs", "the collector is finished"))
}

//! Groups rows: states of their columns, and streams of their values.
//!
//! ```text
//!   pairs    key │           │ states                          first, so that the counts of streams are known
//!            key │ 0, number │ how many, that are written alike
//!            key │ 1, cell   │ how many
//! ```
//!
//! What stands behind the key orders the pairs of a group: a stream's number, the order code of a number and its cell, or a cell.
//! So the values of a stream come in order, and a median is found by counting: a group takes no more memory than a row of it.
//!
//! Decision: docs/decisions/streamed-medians.md.

use super::figures::{CellKind, FigureSource, GroupFigures};
use crate::jobs::tables::{ObjectWriter, RecordFields, RecordWriter};
use gristmill_base::aggregate::{Aggregate, AggregateState};
use gristmill_base::error::{Error, Result};
use gristmill_base::value::{Token, ValueReader, skip, write, write_cell};
use gristmill_tasks::merge::groups::MergedGroups;
use gristmill_tasks::task::{
    Combined, CombinedStates, Mapper, Operator, Pairs, PartFiles, Records, Reducer,
};

/// Pairs of a group that are reduced at once.
const PAIRS_AT_ONCE: usize = 1 << 12;

/// What a value of a stream is counted by: counts take any.
const COUNTED: &[u8] = &[0];

/// Groups rows.
#[derive(Debug)]
pub(super) struct GroupOperator {
    pub(super) by: Vec<usize>,
    pub(super) figures: GroupFigures,
    pub(super) fields: RecordFields,
    pub(super) header: Vec<u8>,
    /// Where rows are JSON objects: what writes them, and the number of the first state of a column of the key.
    pub(super) objects: Option<(ObjectWriter, usize)>,
    /// What makes the states of the figures.
    pub(super) aggregate: Aggregate,
}

impl Operator for GroupOperator {
    fn combines(&self) -> bool {
        true
    }

    fn ordered(&self) -> bool {
        true
    }

    fn header(&self) -> &[u8] {
        &self.header
    }

    fn mapper(&self, memory: usize) -> Result<Box<dyn Mapper + '_>> {
        let streams = !self.figures.streams.is_empty();
        let memory = if streams { memory / 2 } else { memory };
        Ok(Box::new(GroupMapper {
            group: self,
            states: CombinedStates::new(self.aggregate.clone(), memory),
            values: streams.then(|| CombinedStates::new(Aggregate::Count, memory)),
            key: Vec::new(),
            value: Vec::new(),
            room: Vec::new(),
        }))
    }

    fn reducer(&self, _memory: usize) -> Result<Box<dyn Reducer + '_>> {
        let (figures, streams) = (&self.figures.all, &self.figures.streams);
        Ok(Box::new(GroupReducer {
            group: self,
            is_inside: false,
            state: self.aggregate.empty(),
            results: Vec::new(),
            starts: Vec::new(),
            stream: None,
            seen: vec![0; streams.len()],
            last: Vec::new(),
            wanted: Vec::new(),
            cells: vec![Vec::new(); figures.len()],
            writer: self.fields.writer(),
            objects: self.objects.clone(),
            row: Vec::new(),
        }))
    }
}

struct GroupMapper<'o> {
    group: &'o GroupOperator,
    states: CombinedStates,
    /// How often values of streams come.
    values: Option<CombinedStates>,
    key: Vec<u8>,
    value: Vec<u8>,
    room: Vec<u8>,
}

impl GroupMapper<'_> {
    /// Counts the values of a record whose key is there.
    fn count_values(&mut self, record: &Records<'_>, pairs: &mut Pairs<'_>) -> Result<()> {
        let GroupOperator {
            figures, fields, ..
        } = self.group;
        let Some(values) = &mut self.values else {
            return Ok(());
        };
        let group_bytes = self.key.len();
        for (number, stream) in (0_u16..).zip(&figures.streams) {
            let cell = fields.value(record, stream.column, &mut self.room);
            if cell.is_empty() {
                continue;
            }
            self.key.truncate(group_bytes);
            self.key.extend_from_slice(&number.to_be_bytes());
            let written = stream.write_order(cell, &mut self.key);
            written.map_err(|error| error.with("column", fields.place(stream.column)))?;
            values.add_ordered((&self.key, group_bytes), COUNTED, record.position, pairs)?;
        }
        Ok(())
    }
}

impl Mapper for GroupMapper<'_> {
    fn records(&mut self, record: &Records<'_>, pairs: &mut Pairs<'_>) -> Result<()> {
        let GroupOperator {
            by,
            figures,
            fields,
            ..
        } = self.group;
        fields.write_key(record, by, &mut self.room, &mut self.key)?;
        self.value.clear();
        for state in &figures.states {
            match state.column {
                None => write::null(&mut self.value),
                Some(column) => {
                    let mut cell = fields.value(record, column, &mut self.room);
                    if state.reads == CellKind::AsWritten && !cell.is_empty() {
                        cell = RecordFields::as_written(record, column);
                    }
                    let encoded = state.encode(cell, &mut self.value);
                    encoded.map_err(|error| error.with("column", fields.place(column)))?;
                }
            }
        }
        self.states
            .add((&self.key, &self.value), record.position, pairs)?;
        self.count_values(record, pairs)
    }

    fn end(&mut self, pairs: &mut Pairs<'_>) -> Result<Option<Combined>> {
        let mut combined = self.states.end(pairs)?;
        if let Some(values) = &mut self.values {
            let more = values.end(pairs)?;
            combined.records += more.records;
            combined.bytes += more.bytes;
        }
        Ok(Some(combined))
    }
}

struct GroupReducer<'o> {
    group: &'o GroupOperator,
    /// Whether there may be more pairs of the group.
    is_inside: bool,
    state: AggregateState,
    /// What the states have come to, once there are no more of them, and where each result begins.
    results: Vec<u8>,
    starts: Vec<usize>,
    /// The stream whose values come.
    stream: Option<usize>,
    /// Values of each stream so far; of cells, different ones.
    seen: Vec<u64>,
    /// The last cell of a stream.
    last: Vec<u8>,
    /// Which numbers of the stream are figures, the last one first.
    wanted: Vec<(u64, usize)>,
    /// The text of each figure that a stream makes.
    cells: Vec<Vec<u8>>,
    writer: RecordWriter,
    objects: Option<(ObjectWriter, usize)>,
    row: Vec<u8>,
}

impl GroupReducer<'_> {
    fn begin_group(&mut self) {
        self.is_inside = true;
        self.state = self.group.aggregate.empty();
        self.starts.clear();
        self.stream = None;
        self.seen.fill(0);
        self.cells.iter_mut().for_each(Vec::clear);
    }

    /// Takes the present pair.
    #[inline]
    fn take(&mut self, groups: &MergedGroups) -> Result<()> {
        let Some((number, value)) = groups.order().split_first_chunk() else {
            return groups.merge_pair(&self.group.aggregate, &mut self.state);
        };
        let number = usize::from(u16::from_be_bytes(*number));
        let begins = self.stream != Some(number);
        if begins {
            self.begin_stream(number)?;
        }
        let stream = self.group.figures.streams.get(number);
        let (Some(stream), Some(seen)) = (stream, self.seen.get_mut(number)) else {
            return Err(Error::bug("reduce a group", "a value is of no column"));
        };
        if stream.counted.is_none() {
            if begins || value != self.last {
                *seen += 1;
                self.last.clear();
                self.last.extend_from_slice(value);
            }
            return Ok(());
        }
        *seen += count_of(groups.value())?;
        while let Some((rank, figure)) = self.wanted.last()
            && rank <= seen
        {
            let cell = value.get(skip(value)?..).unwrap_or_default();
            if let Some(found) = self.cells.get_mut(*figure) {
                found.extend_from_slice(cell);
            }
            self.wanted.pop();
        }
        Ok(())
    }

    /// Sees which of the numbers of a stream are wanted.
    fn begin_stream(&mut self, number: usize) -> Result<()> {
        if self.stream.is_none() {
            self.finish_states()?;
        }
        self.stream = Some(number);
        self.wanted.clear();
        let GroupFigures { all, streams, .. } = &self.group.figures;
        let Some(counted) = streams.get(number).and_then(|stream| stream.counted) else {
            return Ok(());
        };
        let count = count_of(self.result(counted))?;
        for (at, figure) in all.iter().enumerate() {
            if let FigureSource::Rank { stream, percent } = figure.source
                && stream == number
            {
                self.wanted.push((percent.rank(count), at));
            }
        }
        self.wanted.sort_unstable_by(|a, b| b.cmp(a));
        Ok(())
    }

    /// There are no more states of the group.
    fn finish_states(&mut self) -> Result<()> {
        self.results.clear();
        self.group
            .aggregate
            .finish(&self.state, &mut self.results)?;
        let mut start = 0;
        for _ in &self.group.figures.states {
            self.starts.push(start);
            start += skip(self.results.get(start..).unwrap_or_default())?;
        }
        Ok(())
    }

    /// The result of a state, and those behind it.
    fn result(&self, state: usize) -> &[u8] {
        let start = self.starts.get(state).copied();
        let result = start.and_then(|start| self.results.get(start..));
        result.unwrap_or_default()
    }

    /// Writes the row of the group.
    fn end_group(&mut self, key: &[u8], part: &mut PartFiles) -> Result<()> {
        if self.stream.is_none() {
            self.finish_states()?;
        }
        self.row.clear();
        self.write_key(key)?;
        for (at, figure) in self.group.figures.all.iter().enumerate() {
            let mut cell = self
                .cells
                .get_mut(at)
                .map(std::mem::take)
                .unwrap_or_default();
            let mut is_json = false;
            match figure.source {
                FigureSource::State(state) => {
                    write_cell(self.result(state), &mut cell)?;
                    let state = self.group.figures.states.get(state);
                    is_json = state.is_some_and(|state| state.reads == CellKind::AsWritten);
                }
                FigureSource::Rank { .. } => {}
                FigureSource::Different { stream } => {
                    let seen = self.seen.get(stream).copied().unwrap_or_default();
                    cell.extend_from_slice(seen.to_string().as_bytes());
                }
            }
            self.write(&cell, is_json);
            if let Some(room) = self.cells.get_mut(at) {
                *room = cell;
            }
        }
        match &mut self.objects {
            Some((objects, _)) => objects.end(&mut self.row),
            None => self.writer.end(&mut self.row),
        }
        part.record(&self.row)
    }

    /// Writes the cells of the key; of objects the values that came first.
    fn write_key(&mut self, key: &[u8]) -> Result<()> {
        if let Some((_, first)) = self.group.objects {
            let mut value = Vec::new();
            for state in first..first + self.group.by.len() {
                value.clear();
                write_cell(self.result(state), &mut value)?;
                self.write(&value, true);
            }
            return Ok(());
        }
        let mut key = ValueReader::new(key);
        while let Some(token) = key.token()? {
            if let Token::Bytes(cell) = token {
                self.write(&cell, false);
            }
        }
        Ok(())
    }

    /// Writes the next cell of the row.
    fn write(&mut self, cell: &[u8], is_json: bool) {
        match &mut self.objects {
            Some((objects, _)) => objects.value(cell, is_json, &mut self.row),
            None => self.writer.field(cell, &mut self.row),
        }
    }
}

/// The count that `encoded` begins with.
#[inline]
fn count_of(encoded: &[u8]) -> Result<u64> {
    match ValueReader::new(encoded).token()? {
        Some(Token::Int(count)) => Ok(count.unsigned_abs()),
        _ => Err(Error::bug("reduce a group", "a count is not a number")),
    }
}

impl Reducer for GroupReducer<'_> {
    fn next(&mut self, groups: &mut MergedGroups, part: &mut PartFiles) -> Result<bool> {
        if !self.is_inside {
            if !groups.next_group()? {
                return Ok(false);
            }
            self.begin_group();
        }
        for _ in 0..PAIRS_AT_ONCE {
            if !groups.next_pair()? {
                self.is_inside = false;
                self.end_group(groups.key(), part)?;
                break;
            }
            self.take(groups)?;
        }
        Ok(true)
    }
}

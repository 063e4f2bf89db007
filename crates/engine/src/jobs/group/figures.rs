//! The figures of a group: what they are called, and what is kept of cells to make them.
//!
//! ```text
//!   state    an aggregate of a column                      sum, mean, min, max, first, last; count of all rows
//!   stream   the values of a column of a group, in order   median, percentile, distinct
//! ```
//!
//! A stream of numbers has a state beside it that counts them: which of them a percentile is, is known before the first comes.

use crate::jobs::mapreduce::wrong_option;
use crate::jobs::tables::RecordFields;
use gristmill_base::aggregate::Aggregate;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::value::cell_number::NoNumber;
use gristmill_base::value::{CellNumber, write};

/// Characters of a cell that an error shows.
const SHOWN_CHARS: usize = 60;

/// Streams, at most: the first of the two bytes of a stream's number is not 255, which would not tell its key from another.
const STREAMS_MAX: usize = 0xff00;

/// A hundred percent.
const WHOLE: u128 = 100;

/// As what a cell is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CellKind {
    Number,
    NumberOrText,
    Text,
    /// JSON, as it stands.
    AsWritten,
    /// Whether there is something in it.
    Present,
}

/// A column of the output that is no key.
#[derive(Debug)]
pub(super) struct Figure {
    name: Vec<u8>,
    pub(super) source: FigureSource,
}

/// What a figure is made of.
#[derive(Debug, Clone, Copy)]
pub(super) enum FigureSource {
    /// The state of this number.
    State(usize),
    /// The least number of a stream that a share of them does not exceed.
    Rank { stream: usize, percent: Percent },
    /// How many different cells a stream has.
    Different { stream: usize },
}

/// A column, for which an aggregate has a state.
#[derive(Debug)]
pub(super) struct StateColumn {
    /// Of rows, there is none.
    pub(super) column: Option<usize>,
    name: Vec<u8>,
    pub(super) reads: CellKind,
    aggregate: Aggregate,
}

/// A column, whose values come in order.
#[derive(Debug)]
pub(super) struct ValueStream {
    pub(super) column: usize,
    name: Vec<u8>,
    /// The state that counts its numbers; cells that are told apart are not counted.
    pub(super) counted: Option<usize>,
}

/// What is asked for.
#[derive(Debug, Default)]
pub(super) struct GroupFigures {
    pub(super) all: Vec<Figure>,
    pub(super) states: Vec<StateColumn>,
    pub(super) streams: Vec<ValueStream>,
}

/// The fields of records, what a figure of one of them is, and which.
type OfColumn<'a> = (&'a RecordFields, &'a str, usize);

impl GroupFigures {
    /// Adds the number of rows.
    pub(super) fn count(&mut self) {
        self.add_state(b"count".to_vec(), None, Aggregate::Count, CellKind::Present);
    }

    /// Adds an aggregate of a column.
    pub(super) fn state(&mut self, of: OfColumn<'_>, aggregate: Aggregate, reads: CellKind) {
        self.add_state(name_of(of), Some(of.2), aggregate, reads);
    }

    fn add_state(
        &mut self,
        name: Vec<u8>,
        column: Option<usize>,
        aggregate: Aggregate,
        reads: CellKind,
    ) {
        let source = FigureSource::State(self.states.len());
        self.states.push(StateColumn {
            column,
            name: name.clone(),
            reads,
            aggregate,
        });
        self.all.push(Figure { name, source });
    }

    /// Adds states that keep the first values of the columns of a key as they are written; gives the number of the first of them.
    pub(super) fn keys_as_written(&mut self, by: &[usize]) -> usize {
        let first = self.states.len();
        self.states.extend(by.iter().map(|column| StateColumn {
            column: Some(*column),
            name: Vec::new(),
            reads: CellKind::AsWritten,
            aggregate: Aggregate::First,
        }));
        first
    }

    /// Adds a percentile of a column.
    pub(super) fn rank(&mut self, of: OfColumn<'_>, percent: Percent) {
        let (name, column) = (name_of(of), of.2);
        let found = self
            .streams
            .iter()
            .position(|stream| stream.column == column && stream.counted.is_some());
        let stream = found.unwrap_or_else(|| {
            self.states.push(StateColumn {
                column: Some(column),
                name: name.clone(),
                reads: CellKind::Present,
                aggregate: Aggregate::Count,
            });
            self.add_stream(column, &name, Some(self.states.len() - 1))
        });
        let source = FigureSource::Rank { stream, percent };
        self.all.push(Figure { name, source });
    }

    /// Adds how many different cells a column has.
    pub(super) fn different(&mut self, of: OfColumn<'_>) {
        let (name, column) = (name_of(of), of.2);
        let stream = self.add_stream(column, &name, None);
        let source = FigureSource::Different { stream };
        self.all.push(Figure { name, source });
    }

    fn add_stream(&mut self, column: usize, name: &[u8], counted: Option<usize>) -> usize {
        self.streams.push(ValueStream {
            column,
            name: name.to_vec(),
            counted,
        });
        self.streams.len() - 1
    }

    /// An error where there are more streams than can be told apart.
    pub(super) fn check(&self) -> Result<()> {
        if self.streams.len() <= STREAMS_MAX {
            return Ok(());
        }
        let why = format!("median, percentile and distinct take {STREAMS_MAX} columns at most");
        Err(wrong_option("distinct", &why).advise("ask for fewer, or twice"))
    }

    /// What they are called.
    pub(super) fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.all.iter().map(|figure| figure.name.as_slice())
    }

    /// What makes all states: cells that are empty are no values.
    pub(super) fn aggregate(&self) -> Aggregate {
        let of = |state: &StateColumn| match state.column {
            None => state.aggregate.clone(),
            Some(_) => Aggregate::SkipNone(Box::new(state.aggregate.clone())),
        };
        Aggregate::Several(self.states.iter().map(of).collect())
    }
}

/// `price_sum`; where columns have no names what only errors show.
fn name_of((fields, name, column): OfColumn<'_>) -> Vec<u8> {
    let of = fields.name(column).unwrap_or_default();
    [of, b"_", name.as_bytes()].concat()
}

impl StateColumn {
    /// Encodes a cell.
    #[inline]
    pub(super) fn encode(&self, cell: &[u8], out: &mut Vec<u8>) -> Result<()> {
        if cell.is_empty() {
            write::null(out);
            return Ok(());
        }
        match self.reads {
            CellKind::Present => write::int(out, 0),
            CellKind::Text | CellKind::AsWritten => write::bytes(out, cell),
            CellKind::Number => match CellNumber::of(cell) {
                Ok(number) => number.write(cell, out),
                Err(why) => return Err(no_number(&self.name, cell, why)),
            },
            CellKind::NumberOrText => match CellNumber::of(cell) {
                Err(why @ NoNumber::TooLong) => {
                    return Err(no_number(&self.name, cell, why));
                }
                _ => write::bytes(out, cell),
            },
        }
        Ok(())
    }
}

impl ValueStream {
    /// Appends what orders a cell among those of the stream. That of a number has the cell behind it.
    #[inline]
    pub(super) fn write_order(&self, cell: &[u8], out: &mut Vec<u8>) -> Result<()> {
        if self.counted.is_some() {
            match CellNumber::of(cell) {
                Ok(number) => number.write_order(out),
                Err(why) => return Err(no_number(&self.name, cell, why)),
            }
        }
        out.extend_from_slice(cell);
        Ok(())
    }
}

#[cold]
fn no_number(name: &[u8], cell: &[u8], why: NoNumber) -> Error {
    let name = String::from_utf8_lossy(name.strip_prefix(b"_").unwrap_or(name));
    let cell = String::from_utf8_lossy(cell);
    let cell: String = cell.chars().take(SHOWN_CHARS).collect();
    let numbers = match why {
        NoNumber::Text => "numbers",
        NoNumber::TooLong => "numbers of up to 600 digits before the point and behind it",
    };
    let message = format!("{name} takes {numbers}, not {cell:?}");
    Error::new(Kind::BadInput, "group the rows", message)
        .advise("correct the cell; one that is empty is left out")
}

/// A percentage: a whole number, in so many parts of one percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Percent {
    number: u128,
    parts: u128,
}

impl Percent {
    pub(super) const MEDIAN: Percent = Percent {
        number: 50,
        parts: 1,
    };

    /// The percentage of `95:latency`, the name of its figure and the column.
    pub(super) fn of_option(given: &str) -> Result<(Self, String, String)> {
        let parts = given.split_once(':').and_then(|(text, column)| {
            let percent = Self::of(text)?;
            (!column.is_empty()).then(|| (percent, format!("p{text}"), column.to_owned()))
        });
        parts.ok_or_else(|| {
            wrong_option(
                "percentile",
                &format!("{given:?} is not a number from 0 to 100, a colon and a column"),
            )
            .advise("give the 95th of a column as 95:latency")
        })
    }

    fn of(text: &str) -> Option<Self> {
        if !text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
        {
            return None; // neither blanks nor a sign: it is a part of a column's name
        }
        let Ok(CellNumber::Short { mantissa, scale }) = CellNumber::of(text.as_bytes()) else {
            return None;
        };
        let percent = Percent {
            number: mantissa.try_into().ok()?,
            parts: 10_u128.pow(scale.into()),
        };
        (percent.number <= WHOLE * percent.parts).then_some(percent)
    }

    /// Which of so many values it is, from 1 on: the first that a share of them does not exceed.
    pub(super) fn rank(self, count: u64) -> u64 {
        let rank = (self.number * u128::from(count)).div_ceil(WHOLE * self.parts);
        rank.max(1) as u64 // no more than the count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_least_that_a_share_does_not_exceed() {
        for (percent, count, rank) in [
            ("0", 10, 1),
            ("50", 10, 5),
            ("50", 11, 6),
            ("7", 100, 7),
            ("99.9", 1000, 999),
            ("99.9", 1001, 1000),
            ("100", 3, 3),
            ("1e1", 3, 0),
            ("100.000000000000001", 3, 0),
            ("-1", 3, 0),
            ("50", u64::MAX, u64::MAX / 2 + 1),
        ] {
            let found = Percent::of(percent).map_or(0, |percent| percent.rank(count));
            assert_eq!(found, rank, "{percent} of {count}");
        }
    }
}

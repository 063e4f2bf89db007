//! The least and the greatest cell: `cell_min`, `cell_max`. Cells with numbers compare by what they are worth, exactly; text by its
//! bytes, below all numbers. Of equal ones the cell with the lowest position is kept, as it is written.
//!
//! ```text
//!   in memory   | class | nearest double, 8 bytes | position, 8 bytes | cell |       nothing before the first
//!   state       | position | cell |
//! ```
//!
//! The doubles nearest to two numbers decide unless they are equal, which is seldom so for cells that are not the same bytes.

use std::cmp::Ordering;

use super::{Aggregate, bad_state, no_number, split_unsigned};
use crate::Result;
use crate::value::cell_number::NoNumber;
use crate::value::{CellNumber, Token, ValueReader, write};

/// Bytes in front of the cell.
const HEAD: usize = 17;
const TEXT: u8 = 0;
const NUMBER: u8 = 1;
const NAN: u8 = 2;

/// The best so far.
#[derive(Debug, Clone, Default)]
pub(super) struct ExtremeCell(Vec<u8>);

/// A cell, and what decides first.
#[derive(Debug, Clone, Copy)]
struct RankedCell<'a> {
    class: u8,
    nearest: f64,
    position: u64,
    cell: &'a [u8],
}

impl<'a> RankedCell<'a> {
    /// `None`: its number is too long.
    #[inline]
    fn of(cell: &'a [u8], position: u64) -> Option<Self> {
        let (class, nearest) = match CellNumber::of(cell) {
            Ok(CellNumber::Nan) => (NAN, 0.0),
            Ok(number) => (NUMBER, number.nearest()),
            Err(NoNumber::Text) => (TEXT, 0.0),
            Err(NoNumber::TooLong) => return None,
        };
        Some(RankedCell {
            class,
            nearest,
            position,
            cell,
        })
    }

    /// By what they are worth.
    #[inline]
    fn worth(&self, other: &RankedCell<'_>) -> Ordering {
        let classes = self.class.cmp(&other.class);
        let order = classes.then_with(|| self.nearest.total_cmp(&other.nearest));
        order.then_with(|| {
            if self.cell == other.cell {
                Ordering::Equal
            } else {
                self.worth_exactly(other)
            }
        })
    }

    fn worth_exactly(&self, other: &RankedCell<'_>) -> Ordering {
        if self.class == TEXT {
            return self.cell.cmp(other.cell);
        }
        match (CellNumber::of(self.cell), CellNumber::of(other.cell)) {
            (Ok(a), Ok(b)) => a.compare(&b),
            _ => Ordering::Equal,
        }
    }
}

impl ExtremeCell {
    pub(super) fn heap_bytes(&self) -> usize {
        self.0.capacity()
    }

    #[inline]
    pub(super) fn add(&mut self, aggregate: &Aggregate, value: &[u8], position: u64) -> Result<()> {
        let mut reader = ValueReader::new(value);
        match reader.token()? {
            Some(Token::Bytes(cell)) if reader.position() == value.len() => {
                let ranked = RankedCell::of(&cell, position);
                let ranked = ranked.ok_or_else(|| no_number(aggregate.name(), value))?;
                self.offer(aggregate, ranked);
                Ok(())
            }
            _ => Err(no_number(aggregate.name(), value)),
        }
    }

    pub(super) fn merge(&mut self, aggregate: &Aggregate, other: &[u8]) -> Result<()> {
        let (position, cell) = split_unsigned(other)?;
        let ranked = RankedCell::of(cell, position);
        let ranked = ranked.ok_or_else(|| bad_state("a cell has too many digits"))?;
        self.offer(aggregate, ranked);
        Ok(())
    }

    fn best(&self) -> Option<RankedCell<'_>> {
        let (class, rest) = self.0.split_first()?;
        let (nearest, rest) = rest.split_first_chunk()?;
        let (position, cell) = rest.split_first_chunk()?;
        Some(RankedCell {
            class: *class,
            nearest: f64::from_be_bytes(*nearest),
            position: u64::from_be_bytes(*position),
            cell,
        })
    }

    #[inline]
    fn offer(&mut self, aggregate: &Aggregate, new: RankedCell<'_>) {
        if let Some(best) = self.best() {
            let order = match aggregate {
                Aggregate::CellMax => best.worth(&new),
                _ => new.worth(&best),
            };
            let order = order.then_with(|| new.position.cmp(&best.position));
            if order.then_with(|| new.cell.cmp(best.cell)).is_ge() {
                return;
            }
        }
        self.0.clear();
        self.0.reserve(HEAD + new.cell.len());
        self.0.push(new.class);
        self.0.extend_from_slice(&new.nearest.to_be_bytes());
        self.0.extend_from_slice(&new.position.to_be_bytes());
        self.0.extend_from_slice(new.cell);
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        if let Some(best) = self.best() {
            write::unsigned(out, best.position);
            out.extend_from_slice(best.cell);
        }
    }

    pub(super) fn finish(&self, out: &mut Vec<u8>) {
        match self.best() {
            None => write::null(out),
            Some(best) => write::bytes(out, best.cell),
        }
    }
}

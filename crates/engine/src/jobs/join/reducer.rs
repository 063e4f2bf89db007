//! What becomes of the rows of a key: those of all inputs but the left are held, and each left row is written with all of them.
//!
//! ```text
//!   order   1, 2, ...                held, an input after another
//!           LAST   the left          written as they come: for each, the rows of the second input, for each of these those of the third
//! ```
//!
//! The rule that must hold: no left row is held but the present one.

use super::held_rows::HeldRows;
use super::joined_rows::JoinRows;
use gristmill_base::error::Result;
use gristmill_tasks::merge::groups::MergedGroups;
use gristmill_tasks::task::{PartFiles, Reducer};

/// Pairs and rows between two looks at whether the task should stop.
const ROWS_A_STEP: usize = 1 << 12;

/// What orders the pairs of the left within a key: they come last, as the others are held.
pub(super) const LAST: u8 = 254;

/// Joins the rows of a part.
pub(super) struct JoinReducer<'o> {
    join: &'o JoinRows,
    /// The rows of the inputs but the left, the second input's first.
    held: Vec<HeldRows>,
    /// Whether there may be more pairs of the present key.
    is_inside: bool,
    /// What becomes of left rows; `None` before the first.
    left: Option<FirstInput>,
    /// How the key is written.
    key: Vec<u8>,
    /// The row to write.
    row: Vec<u8>,
    /// The row of each held input that is written next.
    at: Vec<usize>,
    /// Rows written.
    rows: usize,
}

/// The first input whose rows of a key are written, if any are.
type FirstInput = Option<usize>;

impl<'o> JoinReducer<'o> {
    pub(super) fn new(join: &'o JoinRows, memory: usize) -> Self {
        let others = join.inputs.len().saturating_sub(1);
        let held = (0..others).map(|_| HeldRows::within(memory / others.max(1)));
        JoinReducer {
            join,
            held: held.collect(),
            is_inside: false,
            left: None,
            key: Vec::new(),
            row: Vec::new(),
            at: vec![0; others],
            rows: 0,
        }
    }
}

impl Reducer for JoinReducer<'_> {
    fn next(&mut self, groups: &mut MergedGroups, part: &mut PartFiles) -> Result<bool> {
        if !self.is_inside {
            if !groups.next_group()? {
                return Ok(false);
            }
            self.begin(groups.key())?;
        }
        let (mut pairs, rows) = (0, self.rows);
        while pairs + (self.rows - rows) < ROWS_A_STEP {
            if !groups.next_pair()? {
                self.is_inside = false;
                self.end_key(groups.key(), part)?;
                break;
            }
            pairs += 1;
            match groups.order() {
                [LAST] => self.take_left(groups, part)?,
                order => self.hold(order, groups.value()),
            }
        }
        Ok(true)
    }
}

impl JoinReducer<'_> {
    fn begin(&mut self, key: &[u8]) -> Result<()> {
        self.held.iter_mut().for_each(HeldRows::clear);
        (self.is_inside, self.left) = (true, None);
        self.key.clear();
        self.join.write_key(key, &mut self.key)
    }

    fn hold(&mut self, order: &[u8], row: &[u8]) {
        let number = order.first().map_or(0, |order| usize::from(*order) - 1);
        let Some(held) = self.held.get_mut(number) else {
            return;
        };
        match self.join.selects {
            true => held.count(),
            false => held.take(row),
        }
    }

    /// The first input whose rows are written of this key, once all but the left are held.
    fn first_input(&self, has_left: bool) -> FirstInput {
        let others = self.held.iter().map(|held| !held.is_empty());
        let has_rows = std::iter::once(has_left).chain(others);
        self.join.wanted.first_input(has_rows)
    }

    /// Writes what becomes of the present pair, a left row.
    fn take_left(&mut self, groups: &MergedGroups, part: &mut PartFiles) -> Result<()> {
        let first = match self.left {
            Some(first) => first,
            None => {
                let first = self.first_input(true);
                if first == Some(0) && !self.join.selects {
                    self.check(0, groups.key())?;
                }
                *self.left.insert(first)
            }
        };
        if first != Some(0) {
            return Ok(());
        }
        match self.join.selects {
            true => {
                self.row.clear();
                self.row.extend_from_slice(groups.value());
                self.end_row(part)
            }
            false => self.write_all(0, groups.value(), part),
        }
    }

    /// Writes the rows of a key that has none on the left, or whose left rows are left out.
    fn end_key(&mut self, key: &[u8], part: &mut PartFiles) -> Result<()> {
        let first = match self.left {
            Some(first) => first,
            None => self.first_input(false),
        };
        match first {
            None | Some(0) => Ok(()),
            Some(first) => {
                self.check(first, key)?;
                self.write_all(first, &[], part)
            }
        }
    }

    /// Fails unless all rows of the inputs from this one on are held.
    fn check(&self, first: usize, key: &[u8]) -> Result<()> {
        let written = self.held.iter().zip(1..).skip(first.saturating_sub(1));
        for (held, input) in written {
            held.check(&self.join.name_of(input), key)?;
        }
        Ok(())
    }

    /// Writes a left row, unless `first` is behind it, with each of the rows of the others from `first` on.
    fn write_all(&mut self, first: usize, left: &[u8], part: &mut PartFiles) -> Result<()> {
        self.at.fill(0);
        loop {
            let mut row = std::mem::take(&mut self.row);
            row.clear();
            let row_of = |input: usize| self.row_of(input, first, left);
            self.join.layout.write(&self.key, first, row_of, &mut row);
            self.row = row;
            self.end_row(part)?;
            if !self.advance(first) {
                return Ok(());
            }
        }
    }

    /// The row of an input that is written next, or what stands for one.
    #[inline]
    fn row_of<'r>(&'r self, input: usize, first: usize, left: &'r [u8]) -> &'r [u8] {
        let held = input
            .checked_sub(1)
            .map(|number| (self.held.get(number), self.at.get(number)));
        match held {
            _ if input < first => self.join.absent(input),
            None => left,
            Some((Some(held), Some(at))) if !held.is_empty() => held.get(*at),
            Some(_) => self.join.absent(input),
        }
    }

    /// Goes to the next rows of the others; false where all were written.
    #[inline]
    fn advance(&mut self, first: usize) -> bool {
        let begin = first.saturating_sub(1);
        for (at, held) in self.at.iter_mut().zip(&self.held).skip(begin).rev() {
            *at += 1;
            if *at < held.len() {
                return true;
            }
            *at = 0;
        }
        false
    }

    fn end_row(&mut self, part: &mut PartFiles) -> Result<()> {
        self.join.writer.end_row(&mut self.row);
        self.rows += 1;
        part.record(&self.row)
    }
}

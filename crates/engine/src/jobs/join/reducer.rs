//! What becomes of the rows of a key: those of all inputs but the left are held, and each left row is written with all of them.
//!
//! ```text
//!   order   1, 2, ...                held, an input after another
//!           LAST   the left          written as they come: for each, the rows of the second input, for each of these those of the third
//! ```
//!
//! The rule that must hold: no left row is held but the present one, and of the others no more than memory has room for.

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
    /// What is done next.
    step: JoinStep,
    /// What becomes of left rows; `None` before the first.
    left: Option<FirstInput>,
    /// How the key is written.
    key: Vec<u8>,
    /// The row to write.
    row: Vec<u8>,
    /// Rows written.
    rows: usize,
}

/// What is done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JoinStep {
    /// The first pair of the next key is taken.
    Key,
    /// The next pair of the key is taken.
    Pair,
    /// The left row of the present pair is written with the next rows of the others.
    Left,
    /// There are no more pairs, and rows are written that begin with this input.
    Unpaired(usize),
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
            step: JoinStep::Key,
            left: None,
            key: Vec::new(),
            row: Vec::new(),
            rows: 0,
        }
    }
}

impl Reducer for JoinReducer<'_> {
    fn next(&mut self, groups: &mut MergedGroups, part: &mut PartFiles) -> Result<bool> {
        if self.step == JoinStep::Key {
            if !groups.next_group()? {
                return Ok(false);
            }
            self.begin(groups.key())?;
        }
        let (mut pairs, end) = (0, self.rows + ROWS_A_STEP);
        while pairs < ROWS_A_STEP && self.rows < end {
            match self.step {
                JoinStep::Key => break,
                JoinStep::Pair if groups.next_pair()? => {
                    pairs += 1;
                    self.take(groups, part)?;
                }
                JoinStep::Pair => self.end_pairs()?,
                JoinStep::Left => {
                    if self.write_some(0, groups.value(), (part, end))? {
                        self.step = JoinStep::Pair;
                    }
                }
                JoinStep::Unpaired(first) => {
                    if self.write_some(first, &[], (part, end))? {
                        self.step = JoinStep::Key;
                    }
                }
            }
        }
        Ok(true)
    }
}

impl JoinReducer<'_> {
    fn begin(&mut self, key: &[u8]) -> Result<()> {
        self.held.iter_mut().for_each(HeldRows::clear);
        (self.step, self.left) = (JoinStep::Pair, None);
        self.key.clear();
        self.join.write_key(key, &mut self.key)
    }

    /// Takes the present pair.
    fn take(&mut self, groups: &MergedGroups, part: &mut PartFiles) -> Result<()> {
        match groups.order() {
            [LAST] => self.take_left(groups.value(), part),
            order => {
                let number = order.first().map_or(0, |order| usize::from(*order) - 1);
                match self.held.get_mut(number) {
                    Some(held) if self.join.selects => held.count(),
                    Some(held) => held.take(groups.value(), part)?,
                    None => (),
                }
                Ok(())
            }
        }
    }

    /// The first input whose rows are written of this key, now that all but the left are held.
    fn first_input(&mut self, has_left: bool) -> Result<FirstInput> {
        self.held.iter_mut().try_for_each(HeldRows::seal)?;
        let others = self.held.iter().map(|held| !held.is_empty());
        let has_rows = std::iter::once(has_left).chain(others);
        Ok(self.join.wanted.first_input(has_rows))
    }

    fn take_left(&mut self, row: &[u8], part: &mut PartFiles) -> Result<()> {
        let first = match self.left {
            Some(first) => first,
            None => {
                let first = self.first_input(true)?;
                *self.left.insert(first)
            }
        };
        if first != Some(0) {
            return Ok(());
        }
        if self.join.selects {
            self.row.clear();
            self.row.extend_from_slice(row);
            self.join.writer.end_row(&mut self.row);
            return self.count_row(part);
        }
        self.step = JoinStep::Left;
        self.go_to_first(0)
    }

    /// All pairs of the key are taken: what is left are rows of a key that the left has not, or whose left rows are left out.
    fn end_pairs(&mut self) -> Result<()> {
        let first = match self.left {
            Some(first) => first,
            None => self.first_input(false)?,
        };
        match first {
            None | Some(0) => {
                self.step = JoinStep::Key;
                Ok(())
            }
            Some(first) => {
                self.step = JoinStep::Unpaired(first);
                self.go_to_first(first)
            }
        }
    }

    /// Goes to the first rows of the inputs but the left, from this one on.
    fn go_to_first(&mut self, first: usize) -> Result<()> {
        let mut written = self.held.iter_mut().skip(first.saturating_sub(1));
        written.try_for_each(HeldRows::first)
    }

    /// Writes a left row, unless `first` is behind it, with the next rows of the others from `first` on, until so many rows are
    /// written in all; says whether that was it.
    fn write_some(
        &mut self,
        first: usize,
        left: &[u8],
        (part, end): (&mut PartFiles, usize),
    ) -> Result<bool> {
        while self.rows < end {
            let mut row = std::mem::take(&mut self.row);
            row.clear();
            let row_of = |input: usize| self.row_of(input, first, left);
            self.join.write_row((&self.key, first), row_of, &mut row)?;
            self.row = row;
            self.count_row(part)?;
            if !self.advance(first)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The row of an input that is written next, or what stands for one.
    #[inline]
    fn row_of<'r>(&'r self, input: usize, first: usize, left: &'r [u8]) -> &'r [u8] {
        match input.checked_sub(1).map(|number| self.held.get(number)) {
            _ if input < first => self.join.absent(input),
            None => left,
            Some(Some(held)) if !held.is_empty() => held.get(),
            Some(_) => self.join.absent(input),
        }
    }

    /// Goes to the next rows of the others; false where all were written.
    #[inline]
    fn advance(&mut self, first: usize) -> Result<bool> {
        let begin = first.saturating_sub(1);
        for held in self.held.iter_mut().skip(begin).rev() {
            if held.next()? {
                return Ok(true);
            }
            held.first()?;
        }
        Ok(false)
    }

    fn count_row(&mut self, part: &mut PartFiles) -> Result<()> {
        self.rows += 1;
        part.record(&self.row)
    }
}

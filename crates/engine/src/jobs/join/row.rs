//! What becomes of a record of an input: a key and a row.

use std::ops::Range;

use gristmill_base::error::Result;

/// What a row is, beside its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowForm {
    /// The record as it stands, without its end.
    Whole,
    /// Nothing: it is only asked whether there is one.
    Nothing,
    /// What is written of it.
    Pieces,
}

impl RowForm {
    /// The form of the rows of an input of a join that selects rows of the left, or puts rows together.
    pub(super) fn of(input: usize, selects: bool) -> Self {
        match (selects, input) {
            (false, _) => RowForm::Pieces,
            (true, 0) => RowForm::Whole,
            (true, _) => RowForm::Nothing,
        }
    }
}

/// Takes the key and the row of a record.
pub(super) type TakeRow<'t> = &'t mut dyn FnMut(&[u8], &[u8]) -> Result<()>;

/// Room for what is made of one record.
#[derive(Debug, Default)]
pub(super) struct RowRoom {
    pub(super) key: Vec<u8>,
    pub(super) row: Vec<u8>,
    pub(super) cell: Vec<u8>,
    pub(super) fields: Vec<Range<usize>>,
}

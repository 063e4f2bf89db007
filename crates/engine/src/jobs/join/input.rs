//! One of the inputs of a join: what its records say, as a key and as a row.

use super::lines::JoinLines;
use super::row::{RowForm, RowRoom, TakeRow};
use crate::jobs::tables::{RecordFields, RecordWriter};
use gristmill_base::error::Result;
use gristmill_base::record::table::without_end;
use gristmill_tasks::task::Records;

/// An input.
#[derive(Debug)]
pub(super) enum JoinInput {
    /// Rows of a table.
    Rows(JoinTable),
    /// Lines.
    Lines(JoinLines),
}

impl JoinInput {
    /// Gives the key and the row of each of the records.
    #[inline]
    pub(super) fn each(
        &self,
        records: &Records<'_>,
        room: &mut RowRoom,
        take: TakeRow<'_>,
    ) -> Result<()> {
        match self {
            JoinInput::Rows(rows) => {
                rows.write(records, room)?;
                take(&room.key, &room.row)
            }
            JoinInput::Lines(lines) => lines.each(records, room, take),
        }
    }
}

/// A table.
#[derive(Debug)]
pub(super) struct JoinTable {
    pub(super) fields: RecordFields,
    pub(super) key: Vec<usize>,
    pub(super) form: RowForm,
    pub(super) writer: RecordWriter,
}

impl JoinTable {
    /// The columns that are no key; none where nothing is known of the table.
    pub(super) fn others(&self) -> impl Iterator<Item = usize> {
        (0..self.fields.width()).filter(|column| !self.key.contains(column))
    }

    fn write(&self, record: &Records<'_>, room: &mut RowRoom) -> Result<()> {
        self.fields
            .write_key(record, &self.key, &mut room.cell, &mut room.key)?;
        room.row.clear();
        match self.form {
            RowForm::Whole => room.row.extend_from_slice(without_end(record.bytes)),
            RowForm::Nothing => {}
            RowForm::Pieces => {
                for column in (0..record.fields.len()).filter(|column| !self.key.contains(column)) {
                    let cell = self.fields.value(record, column, &mut room.cell);
                    self.writer.behind(cell, &mut room.row);
                }
            }
        }
        Ok(())
    }
}

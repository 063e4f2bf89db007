//! What is joined, and how its rows are put together.

use super::input::JoinInput;
use super::join_kind::RowsWanted;
use super::layout::Layout;
use super::objects::JoinObjects;
use crate::jobs::tables::RecordWriter;
use gristmill_base::error::Result;
use gristmill_base::value::{Token, ValueReader};

/// How rows are put together.
#[derive(Debug)]
pub(super) enum JoinedForm {
    /// Of pieces.
    Pieces(Layout),
    /// Of the members of JSON objects.
    Objects(JoinObjects),
}

/// What is joined, and how rows are put together.
#[derive(Debug)]
pub(super) struct JoinRows {
    pub(super) inputs: Vec<JoinInput>,
    pub(super) wanted: RowsWanted,
    /// Whether rows of the left are chosen, and stay as they are.
    pub(super) selects: bool,
    pub(super) form: JoinedForm,
    /// What stands in a row for an input that has no row.
    pub(super) absent: Vec<Vec<u8>>,
    /// What stands for a cell of the key that is empty.
    pub(super) empty_key: Vec<u8>,
    pub(super) header: Vec<u8>,
    pub(super) writer: RecordWriter,
}

impl JoinRows {
    /// What stands for a row of an input that has none.
    pub(super) fn absent(&self, input: usize) -> &[u8] {
        self.absent.get(input).map_or(&[], Vec::as_slice)
    }

    /// Writes a row of the output: `key` is how the key is written, if rows do not keep theirs, and `source` the first input that
    /// has a row.
    #[inline]
    pub(super) fn write_row<'r>(
        &self,
        (key, source): (&[u8], usize),
        row_of: impl Fn(usize) -> &'r [u8],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        match &self.form {
            JoinedForm::Objects(objects) => objects.write(source, row_of, out)?,
            JoinedForm::Pieces(layout) => layout.write(key, source, row_of, out),
        }
        self.writer.end_row(out);
        Ok(())
    }

    /// Writes a key as it stands in rows, where these do not keep theirs.
    pub(super) fn write_key(&self, key: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let writes_key = matches!(&self.form, JoinedForm::Pieces(layout) if !layout.keeps_key);
        if self.selects || !writes_key {
            return Ok(());
        }
        let (mut key, mut is_behind) = (ValueReader::new(key), false);
        while let Some(token) = key.token()? {
            let Token::Bytes(cell) = token else { continue };
            let cell = if cell.is_empty() {
                &self.empty_key
            } else {
                &*cell
            };
            match std::mem::replace(&mut is_behind, true) {
                true => self.writer.behind(cell, out),
                false => self.writer.first(cell, out),
            }
        }
        Ok(())
    }
}

impl JoinRows {
    /// The header that the first lines of inputs of lines make, as any lines of one key do.
    pub(super) fn header_of_lines(&self, first: &[Option<&[u8]>]) -> Result<Vec<u8>> {
        let mut header = Vec::new();
        if self.selects {
            let Some(line) = first.first().copied().flatten() else {
                return Ok(header);
            };
            header.extend_from_slice(line);
            self.writer.end_row(&mut header);
        } else {
            let Some(source) = first.iter().position(Option::is_some) else {
                return Ok(header);
            };
            let (mut key, mut written_key, mut rows) = (Vec::new(), Vec::new(), Vec::new());
            for (number, input) in self.inputs.iter().enumerate() {
                let line = first.get(number).copied().flatten();
                rows.push(match (input, line) {
                    (JoinInput::Lines(lines), Some(line)) => lines.first_row(line, &mut key)?,
                    _ => self.absent(number).to_vec(),
                });
                if number == source {
                    self.write_key(&key, &mut written_key)?;
                }
            }
            let row_of = |input: usize| rows.get(input).map_or(&[][..], Vec::as_slice);
            self.write_row((&written_key, source), row_of, &mut header)?;
        }
        Ok(header)
    }
}

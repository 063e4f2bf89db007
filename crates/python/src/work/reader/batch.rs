//! Lines of a split as a column of Arrow, many at a time.
//!
//! ```text
//!   "one\ntwo\n\n" ──▶ offsets | 0 3 6 6 |   data | onetwo |      32 bits each, in the machine's order
//! ```
//!
//! A batch ends with the line with which it has so many bytes, or with the file: its borders are a function of the split.

use gristmill_engine::Error;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::super::{OrRaise, exclusive};
use super::{LineReader, PieceReader};
use crate::error::to_python;

/// The buffers of a column, used again and again.
#[derive(Default)]
pub(super) struct ColumnBuffers {
    offsets: Vec<u8>,
    data: Vec<u8>,
    rows: usize,
    /// Where in the file the first bytes are that are no text, if text is wanted.
    no_text: Option<u64>,
}

/// How many lines, the column's buffers, and the offset of what is no text.
pub(super) type Given<'py> = (usize, Bound<'py, PyBytes>, Bound<'py, PyBytes>, Option<u64>);

impl ColumnBuffers {
    fn clear(&mut self) {
        self.offsets.clear();
        self.offsets.extend_from_slice(&0_i32.to_ne_bytes());
        self.data.clear();
        (self.rows, self.no_text) = (0, None);
    }

    /// Appends a line; false where the column's offsets cannot say so much.
    #[inline]
    fn push(&mut self, offset: u64, line: &[u8], text: bool) -> bool {
        if text && let Err(error) = std::str::from_utf8(line) {
            let bad = offset + error.valid_up_to() as u64;
            self.no_text.get_or_insert(bad);
        }
        self.data.extend_from_slice(line);
        self.rows += 1;
        let Ok(end) = i32::try_from(self.data.len()) else {
            return false;
        };
        self.offsets.extend_from_slice(&end.to_ne_bytes());
        true
    }

    fn given<'py>(&self, py: Python<'py>) -> Given<'py> {
        let offsets = PyBytes::new(py, &self.offsets);
        (
            self.rows,
            offsets,
            PyBytes::new(py, &self.data),
            self.no_text,
        )
    }
}

impl LineReader {
    /// Reads lines until they are of so many bytes, or the file is at its end. Nothing at the end of the split.
    pub(super) fn next_batch<'py>(
        &mut self,
        py: Python<'py>,
        bytes: u64,
    ) -> PyResult<Option<Given<'py>>> {
        loop {
            let Some(PieceReader::Lines(lines, _)) = exclusive(&mut self.source) else {
                if self.open().or_raise()? {
                    continue;
                }
                return Ok(None);
            };
            self.batch.clear();
            let end = lines.consumed() + bytes;
            while lines.consumed() < end
                && let Some(line) = lines.next_line().or_raise()?
            {
                if self.batch.rows == 0 {
                    self.offset = line.offset;
                }
                if !self.batch.push(line.offset, line.bytes, self.text) {
                    let message = "a batch has more than two gigabytes";
                    return Err(to_python(&Error::bug("read lines", message)));
                }
            }
            if self.batch.rows > 0 {
                self.line = 0;
                self.note();
                return Ok(Some(self.batch.given(py)));
            }
            self.close().or_raise()?;
        }
    }
}

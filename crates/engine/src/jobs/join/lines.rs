//! Lines as an input of a join, as GNU join has them: where their fields lie, and which of them are written.
//!
//! ```text
//!   "  a b "    without -t: a, b and an empty field, as blanks that stand before nothing separate, too
//!   "a::"       with -t: a and two empty fields; an empty line has no field
//! ```
//!
//! A field that a line has not is empty. An empty field is written as the text of `--empty`.

use std::ops::Range;

use super::layout::write_piece;
use super::row::{RowForm, RowRoom, TakeRow};
use gristmill_base::error::Result;
use gristmill_base::value::ValueWriter;
use gristmill_tasks::task::Records;

/// Which fields a piece of a row has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LinePiece {
    /// Those of the key, with nothing before them.
    Key,
    /// All that are no key: those of the line, or the first so many.
    Others(Option<usize>),
    /// These.
    Fields(Vec<usize>),
}

/// Lines.
#[derive(Debug)]
pub(super) struct JoinLines {
    /// The byte between fields; `None`: blanks.
    pub(super) separator: Option<u8>,
    /// The fields of the key.
    pub(super) key: Vec<usize>,
    /// Whether small letters of keys equal large ones.
    pub(super) ignores_case: bool,
    /// Whether the first line of a file is a header.
    pub(super) has_header: bool,
    pub(super) form: RowForm,
    pub(super) pieces: Vec<LinePiece>,
    /// The number of the piece that rows of the output begin with: no separator stands before its first field.
    pub(super) first_piece: Option<usize>,
    /// What separates fields of the output, and what stands for an empty one.
    pub(super) between: u8,
    pub(super) empty: Vec<u8>,
}

impl JoinLines {
    /// Gives the key and the row of each line.
    pub(super) fn each(
        &self,
        records: &Records<'_>,
        room: &mut RowRoom,
        take: TakeRow<'_>,
    ) -> Result<()> {
        for (offset, line) in records.lines() {
            if self.has_header && offset == 0 {
                continue;
            }
            self.cut(line, &mut room.fields);
            self.write_key(line, room)?;
            room.row.clear();
            match self.form {
                RowForm::Whole => room.row.extend_from_slice(line),
                RowForm::Nothing => {}
                RowForm::Pieces => self.write_row(line, &room.fields, &mut room.row),
            }
            take(&room.key, &room.row)?;
        }
        Ok(())
    }

    /// The row of a line alone, whose key is written to `key`.
    pub(super) fn first_row(&self, line: &[u8], key: &mut Vec<u8>) -> Result<Vec<u8>> {
        let mut room = RowRoom::default();
        self.cut(line, &mut room.fields);
        self.write_key(line, &mut room)?;
        self.write_row(line, &room.fields, &mut room.row);
        *key = room.key;
        Ok(room.row)
    }

    /// What stands for a line where there is none: fields that are named, all of them empty.
    pub(super) fn absent(&self) -> Vec<u8> {
        let mut row = Vec::new();
        self.write_row(&[], &[], &mut row);
        row
    }

    /// How many fields a line has.
    pub(super) fn count(&self, line: &[u8]) -> usize {
        let mut fields = Vec::new();
        self.cut(line, &mut fields);
        fields.len()
    }

    #[inline]
    fn cut(&self, line: &[u8], fields: &mut Vec<Range<usize>>) {
        fields.clear();
        match self.separator {
            Some(separator) => between(line, separator, fields),
            None => between_blanks(line, fields),
        }
    }

    fn write_key(&self, line: &[u8], room: &mut RowRoom) -> Result<()> {
        room.key.clear();
        let mut tuple = ValueWriter::new(&mut room.key);
        tuple.begin_tuple()?;
        for number in &self.key {
            let field = field_of(line, &room.fields, *number);
            match self.ignores_case {
                false => tuple.bytes(field),
                true => {
                    room.cell.clear();
                    room.cell.extend_from_slice(field);
                    room.cell.make_ascii_uppercase();
                    tuple.bytes(&room.cell);
                }
            }
        }
        tuple.end_tuple();
        Ok(())
    }

    fn write_row(&self, line: &[u8], fields: &[Range<usize>], row: &mut Vec<u8>) {
        let last = self.pieces.len().saturating_sub(1);
        for (number, piece) in self.pieces.iter().enumerate() {
            let write = |out: &mut Vec<u8>| self.write_fields(line, fields, (number, piece), out);
            match number == last {
                true => write(row),
                false => write_piece(row, write),
            }
        }
    }

    #[inline]
    fn write_fields(
        &self,
        line: &[u8],
        fields: &[Range<usize>],
        (number, piece): (usize, &LinePiece),
        out: &mut Vec<u8>,
    ) {
        let mut is_first = self.first_piece == Some(number) || *piece == LinePiece::Key;
        let mut write = |number: usize| {
            if !std::mem::take(&mut is_first) {
                out.push(self.between);
            }
            match field_of(line, fields, number) {
                [] => out.extend_from_slice(&self.empty),
                field => out.extend_from_slice(field),
            }
        };
        match piece {
            LinePiece::Key => self.key.iter().copied().for_each(write),
            LinePiece::Fields(numbers) => numbers.iter().copied().for_each(write),
            LinePiece::Others(count) => {
                for number in 0..count.unwrap_or(fields.len()) {
                    if !self.key.contains(&number) {
                        write(number);
                    }
                }
            }
        }
    }
}

/// A field of a line; empty where it has not so many.
#[inline]
fn field_of<'l>(line: &'l [u8], fields: &[Range<usize>], number: usize) -> &'l [u8] {
    let field = fields.get(number).cloned().unwrap_or_default();
    line.get(field).unwrap_or_default()
}

/// The fields between bytes like this.
fn between(line: &[u8], separator: u8, fields: &mut Vec<Range<usize>>) {
    if line.is_empty() {
        return;
    }
    let mut start = 0;
    for at in memchr::memchr_iter(separator, line) {
        fields.push(start..at);
        start = at + 1;
    }
    fields.push(start..line.len());
}

/// The fields between blanks, of which those at the beginning of the line do not count.
fn between_blanks(line: &[u8], fields: &mut Vec<Range<usize>>) {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n'); // LF is in lines that NUL ends
    let next = |from: usize, is_wanted: &dyn Fn(&u8) -> bool| {
        let rest = line.get(from..).unwrap_or_default();
        let found = rest.iter().position(is_wanted);
        found.map_or(line.len(), |length| from + length)
    };
    let mut start = next(0, &|byte| !is_blank(byte));
    if start == line.len() {
        return;
    }
    loop {
        let end = next(start, &is_blank);
        fields.push(start..end);
        if end == line.len() {
            return;
        }
        start = next(end, &|byte| !is_blank(byte));
        if start == line.len() {
            return fields.push(start..start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(line: &str, separator: Option<u8>) -> Vec<&str> {
        let mut found = Vec::new();
        match separator {
            Some(separator) => between(line.as_bytes(), separator, &mut found),
            None => between_blanks(line.as_bytes(), &mut found),
        }
        found.into_iter().map(|field| &line[field]).collect()
    }

    #[test]
    fn fields_are_those_of_gnu_join() {
        assert_eq!(fields("a,,b,", Some(b',')), ["a", "", "b", ""]);
        assert_eq!(fields("", Some(b',')), [""; 0]);
        assert_eq!(fields(",", Some(b',')), ["", ""]);
        assert_eq!(fields("  a \t bc", None), ["a", "bc"]);
        assert_eq!(fields("a b ", None), ["a", "b", ""]);
        assert_eq!(fields(" \t", None), [""; 0]);
        assert_eq!(fields("", None), [""; 0]);
    }

    #[test]
    fn rows_have_the_fields_that_are_asked_for() {
        let input = |pieces: Vec<LinePiece>, first_piece| JoinLines {
            separator: Some(b':'),
            key: vec![1],
            ignores_case: false,
            has_header: false,
            form: RowForm::Pieces,
            pieces,
            first_piece,
            between: b':',
            empty: b"-".to_vec(),
        };
        let row = |pieces: Vec<LinePiece>, line: &[u8]| {
            String::from_utf8(
                input(pieces, None)
                    .first_row(line, &mut Vec::new())
                    .unwrap(),
            )
            .unwrap()
        };
        assert_eq!(row(vec![LinePiece::Others(None)], b"a:k::b"), ":a:-:b");
        assert_eq!(row(vec![LinePiece::Others(Some(3))], b"a:k"), ":a:-");
        assert_eq!(row(vec![LinePiece::Fields(vec![1, 5])], b"a:k"), ":k:-");
        let first = input(vec![LinePiece::Fields(vec![0, 1])], Some(0));
        assert_eq!(first.first_row(b"a:k", &mut Vec::new()).unwrap(), b"a:k");
        assert_eq!(first.absent(), b"-:-");
        assert_eq!(first.count(b"a:b:"), 3);
    }
}

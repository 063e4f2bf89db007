//! Columns of Arrow as values, read out of an array's buffers.
//!
//! ```text
//!   buffers ──a slice of each, copied──▶ Column ──cell(row)──▶ Cell ──write──▶ the encoding
//! ```
//!
//! Slices are copied before they are read: that costs a fiftieth of what their pairs take, and everything behind it is
//! checked and safe, whatever the buffers hold. The format says what they hold.
//!
//! Source: <https://arrow.apache.org/docs/format/Columnar.html>; formats are those of the C data interface.

use std::ops::Range;

use super::{one_nan, write};
use crate::error::{Error, Kind, Result};

/// Why a value cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnError<'a> {
    /// The buffers do not hold what the array's length and its offsets say.
    Damaged,
    /// These bytes should be text, and are not UTF-8.
    NotText(&'a [u8]),
}

/// One value of a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell<'a> {
    /// No value.
    Null,
    /// A boolean.
    Boolean(bool),
    /// An integer.
    Int(i64),
    /// An integer above all others.
    Unsigned(u64),
    /// A floating-point number.
    Double(f64),
    /// Text.
    Text(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
}

/// What the values of a column are, where keys of two such types are taken for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Booleans.
    Boolean,
    /// Integers.
    Int,
    /// Floating-point numbers.
    Double,
    /// Text.
    Text,
    /// Bytes.
    Bytes,
}

impl Cell<'_> {
    /// Appends the encoding.
    #[inline]
    pub fn write(&self, out: &mut Vec<u8>) {
        match *self {
            Cell::Null => write::null(out),
            Cell::Boolean(boolean) => write::boolean(out, boolean),
            Cell::Int(int) => write::int(out, int),
            Cell::Unsigned(int) => write::unsigned(out, int),
            Cell::Double(double) => write::double(out, double),
            Cell::Text(text) => write::text(out, text),
            Cell::Bytes(bytes) => write::bytes(out, bytes),
        }
    }

    /// Appends the encoding that it has as a key: every NaN is the same one.
    #[inline]
    pub fn write_key(&self, out: &mut Vec<u8>) {
        match *self {
            Cell::Double(double) => write::double(out, one_nan(double)),
            _ => self.write(out),
        }
    }
}

/// What values are, and how they lie in the buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ColumnLayout {
    Null,
    Bits,
    Int { bytes: usize },
    Unsigned { bytes: usize },
    Single,
    Double,
    Text { offset_bytes: usize },
    Bytes { offset_bytes: usize },
}

impl ColumnLayout {
    fn of(format: char) -> Option<Self> {
        Some(match format {
            'n' => ColumnLayout::Null,
            'b' => ColumnLayout::Bits,
            'c' => ColumnLayout::Int { bytes: 1 },
            's' => ColumnLayout::Int { bytes: 2 },
            'i' => ColumnLayout::Int { bytes: 4 },
            'l' => ColumnLayout::Int { bytes: 8 },
            'C' => ColumnLayout::Unsigned { bytes: 1 },
            'S' => ColumnLayout::Unsigned { bytes: 2 },
            'I' => ColumnLayout::Unsigned { bytes: 4 },
            'L' => ColumnLayout::Unsigned { bytes: 8 },
            'f' => ColumnLayout::Single,
            'g' => ColumnLayout::Double,
            'u' => ColumnLayout::Text { offset_bytes: 4 },
            'U' => ColumnLayout::Text { offset_bytes: 8 },
            'z' => ColumnLayout::Bytes { offset_bytes: 4 },
            'Z' => ColumnLayout::Bytes { offset_bytes: 8 },
            _ => return None,
        })
    }

    /// Bytes of a value, or of the offset of one that has any length.
    fn width(self) -> usize {
        match self {
            ColumnLayout::Null | ColumnLayout::Bits => 0,
            ColumnLayout::Int { bytes } | ColumnLayout::Unsigned { bytes } => bytes,
            ColumnLayout::Single => 4,
            ColumnLayout::Double => 8,
            ColumnLayout::Text { offset_bytes } | ColumnLayout::Bytes { offset_bytes } => {
                offset_bytes
            }
        }
    }
}

/// Some rows of a column. It is filled again and again, so that its memory is touched once.
#[derive(Debug)]
pub struct Column {
    layout: ColumnLayout,
    rows: usize,
    /// Bits: which rows are not null. Empty where all are.
    valid: Vec<u8>,
    /// The first row's bit in its byte, in `valid` and of booleans.
    first_bit: usize,
    /// Values of a fixed width, or the offsets of others.
    fixed: Vec<u8>,
    /// Values of any width, and the offset of the first of them.
    content: RowContent,
    base: usize,
    /// Whether there is a zero in the content, which an encoding escapes.
    zeros: bool,
}

/// Text is checked once for all rows; what is none is checked row by row, to say which.
#[derive(Debug)]
enum RowContent {
    Text(String),
    Bytes(Vec<u8>),
}

impl Default for Column {
    fn default() -> Self {
        Column {
            layout: ColumnLayout::Null,
            rows: 0,
            valid: Vec::new(),
            first_bit: 0,
            fixed: Vec::new(),
            content: RowContent::Bytes(Vec::new()),
            base: 0,
            zeros: false,
        }
    }
}

impl Column {
    /// Takes `rows` rows out of an array with so many elements before them. `copy` appends a range of the array's n-th
    /// buffer; `nulls` says whether it has the first, which says where values are.
    ///
    /// # Errors
    /// There is no such format, offsets make no sense, or `copy` fails.
    ///
    /// ```
    /// use gristmill_base::value::columns::{Cell, Column};
    /// let buffer: Vec<u8> = [5_i32, -7].iter().flat_map(|number| number.to_ne_bytes()).collect();
    /// let mut column = Column::default();
    /// column.fill('i', 0..2, false, &mut |_, range, out| Ok(out.extend_from_slice(&buffer[range])))?;
    /// assert_eq!(column.cell(1), Ok(Cell::Int(-7)));
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    pub fn fill(
        &mut self,
        format: char,
        rows: Range<usize>,
        nulls: bool,
        copy: &mut Copy<'_>,
    ) -> Result<()> {
        let Some(layout) = ColumnLayout::of(format) else {
            let message = format!("there is no layout for the format {format}");
            return Err(Error::bug("read a column", message));
        };
        let width = layout.width();
        (self.layout, self.rows, self.first_bit) = (layout, rows.len(), rows.start % 8);
        let bits = rows.start / 8..rows.end.div_ceil(8);
        self.valid.clear();
        self.fixed.clear();
        if layout == ColumnLayout::Null || rows.is_empty() {
            return Ok(());
        }
        if nulls {
            copy(0, bits.clone(), &mut self.valid)?;
        }
        match layout {
            ColumnLayout::Bits => copy(1, bits, &mut self.fixed),
            ColumnLayout::Text { .. } | ColumnLayout::Bytes { .. } => {
                let offsets = rows.start * width..(rows.end + 1) * width;
                copy(1, offsets, &mut self.fixed)?;
                self.fill_content(copy)
            }
            _ => copy(1, rows.start * width..rows.end * width, &mut self.fixed),
        }
    }

    /// Takes the bytes that the offsets span.
    fn fill_content(&mut self, copy: &mut Copy<'_>) -> Result<()> {
        let spanned = self.offset(0).zip(self.offset(self.rows));
        let (from, to) = spanned.ok_or_else(damaged)?;
        self.base = from;
        let mut bytes = match std::mem::replace(&mut self.content, RowContent::Bytes(Vec::new())) {
            RowContent::Text(text) => text.into_bytes(),
            RowContent::Bytes(bytes) => bytes,
        };
        bytes.clear();
        if from != to {
            copy(2, from..to, &mut bytes)?;
        }
        self.zeros = bytes.contains(&0);
        self.content = match self.layout {
            ColumnLayout::Text { .. } => match String::from_utf8(bytes) {
                Ok(text) => RowContent::Text(text),
                Err(error) => RowContent::Bytes(error.into_bytes()),
            },
            _ => RowContent::Bytes(bytes),
        };
        Ok(())
    }

    /// The type of its values, if it is one that keys should not mix with another; nothing where all are null.
    pub fn kind(&self) -> Option<ColumnKind> {
        let all = |row| !self.valid.is_empty() && !self.bit(&self.valid, row);
        if (0..self.rows).all(all) {
            return None;
        }
        match self.layout {
            ColumnLayout::Bits => Some(ColumnKind::Boolean),
            ColumnLayout::Int { .. } | ColumnLayout::Unsigned { .. } => Some(ColumnKind::Int),
            ColumnLayout::Single | ColumnLayout::Double => Some(ColumnKind::Double),
            ColumnLayout::Text { .. } => Some(ColumnKind::Text),
            ColumnLayout::Bytes { .. } => Some(ColumnKind::Bytes),
            ColumnLayout::Null => None,
        }
    }

    /// The value of a row.
    ///
    /// # Errors
    /// It is text that is not UTF-8, or the column is damaged.
    #[inline(always)]
    pub fn cell(&self, row: usize) -> Result<Cell<'_>, ColumnError<'_>> {
        if !self.valid.is_empty() && !self.bit(&self.valid, row) {
            return Ok(Cell::Null);
        }
        let found = match self.layout {
            ColumnLayout::Null => Some(Cell::Null),
            ColumnLayout::Bits => Some(Cell::Boolean(self.bit(&self.fixed, row))),
            ColumnLayout::Int { bytes: 1 } => self.fixed::<1>(row).map(i8::from_ne_bytes).map(int),
            ColumnLayout::Int { bytes: 2 } => self.fixed::<2>(row).map(i16::from_ne_bytes).map(int),
            ColumnLayout::Int { bytes: 4 } => self.fixed::<4>(row).map(i32::from_ne_bytes).map(int),
            ColumnLayout::Int { .. } => self.fixed::<8>(row).map(i64::from_ne_bytes).map(int),
            ColumnLayout::Unsigned { bytes: 1 } => {
                self.fixed::<1>(row).map(u8::from_ne_bytes).map(int)
            }
            ColumnLayout::Unsigned { bytes: 2 } => {
                self.fixed::<2>(row).map(u16::from_ne_bytes).map(int)
            }
            ColumnLayout::Unsigned { bytes: 4 } => {
                self.fixed::<4>(row).map(u32::from_ne_bytes).map(int)
            }
            ColumnLayout::Unsigned { .. } => {
                self.fixed::<8>(row).map(u64::from_ne_bytes).map(unsigned)
            }
            ColumnLayout::Single => self.fixed::<4>(row).map(f32::from_ne_bytes).map(double),
            ColumnLayout::Double => self.fixed::<8>(row).map(f64::from_ne_bytes).map(double),
            ColumnLayout::Text { .. } => return self.text(row),
            ColumnLayout::Bytes { .. } => self.bytes(row).map(Cell::Bytes),
        };
        found.ok_or(ColumnError::Damaged)
    }

    /// The integers of some rows, if that is what they are and none is null or above all others.
    pub fn ints(&self, rows: Range<usize>, out: &mut Vec<i64>) -> bool {
        out.clear();
        if !self.valid.is_empty() {
            return false;
        }
        match self.layout {
            ColumnLayout::Int { bytes: 1 } => self.widened(rows, i8::from_ne_bytes, out),
            ColumnLayout::Int { bytes: 2 } => self.widened(rows, i16::from_ne_bytes, out),
            ColumnLayout::Int { bytes: 4 } => self.widened(rows, i32::from_ne_bytes, out),
            ColumnLayout::Int { bytes: 8 } => self.widened(rows, i64::from_ne_bytes, out),
            ColumnLayout::Unsigned { bytes: 1 } => self.widened(rows, u8::from_ne_bytes, out),
            ColumnLayout::Unsigned { bytes: 2 } => self.widened(rows, u16::from_ne_bytes, out),
            ColumnLayout::Unsigned { bytes: 4 } => self.widened(rows, u32::from_ne_bytes, out),
            ColumnLayout::Unsigned { bytes: 8 } => self.widened(rows, u64::from_ne_bytes, out),
            _ => false,
        }
    }

    fn widened<const BYTES: usize, I: TryInto<i64>>(
        &self,
        rows: Range<usize>,
        read: fn([u8; BYTES]) -> I,
        out: &mut Vec<i64>,
    ) -> bool {
        let values = self.fixed.as_chunks::<BYTES>().0.get(rows);
        let ints = values.unwrap_or_default().iter();
        out.extend(ints.map_while(|value| read(*value).try_into().ok()));
        values.is_some_and(|values| out.len() == values.len())
    }

    /// Appends the encoding of a row's value as a key.
    #[inline(always)]
    pub(super) fn write_key(&self, row: usize, out: &mut Vec<u8>) -> Result<(), ColumnError<'_>> {
        if let Some(bytes) = self.plain(row) {
            match self.content {
                RowContent::Text(_) => write::plain_text(out, bytes),
                RowContent::Bytes(_) => write::plain_bytes(out, bytes),
            }
            return Ok(());
        }
        self.cell(row)?.write_key(out);
        Ok(())
    }

    /// The bytes of a row's value, where those of the layout's type are plainly it: there is nothing to escape, and no row is null.
    #[inline(always)]
    fn plain(&self, row: usize) -> Option<&[u8]> {
        if self.zeros || !self.valid.is_empty() {
            return None;
        }
        match (self.layout, &self.content) {
            (ColumnLayout::Text { .. }, RowContent::Text(text)) => {
                let (from, to) = self.span(row)?;
                text.get(from..to).map(str::as_bytes)
            }
            (ColumnLayout::Bytes { .. }, RowContent::Bytes(bytes)) => {
                let (from, to) = self.span(row)?;
                bytes.get(from..to)
            }
            _ => None,
        }
    }

    #[inline]
    fn text(&self, row: usize) -> Result<Cell<'_>, ColumnError<'_>> {
        if let (RowContent::Text(text), Some((from, to))) = (&self.content, self.span(row))
            && let Some(text) = text.get(from..to)
        {
            return Ok(Cell::Text(text));
        }
        let bytes = self.bytes(row).ok_or(ColumnError::Damaged)?;
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Cell::Text(text)),
            Err(_) => Err(ColumnError::NotText(bytes)),
        }
    }

    #[inline]
    fn bytes(&self, row: usize) -> Option<&[u8]> {
        let (from, to) = self.span(row)?;
        match &self.content {
            RowContent::Text(text) => text.as_bytes().get(from..to),
            RowContent::Bytes(bytes) => bytes.get(from..to),
        }
    }

    /// Where a row's bytes are in the content.
    #[inline]
    fn span(&self, row: usize) -> Option<(usize, usize)> {
        let from = self.offset(row)?.checked_sub(self.base)?;
        let to = self.offset(row + 1)?.checked_sub(self.base)?;
        Some((from, to))
    }

    #[inline]
    fn offset(&self, row: usize) -> Option<usize> {
        if self.layout.width() == 4 {
            usize::try_from(i32::from_ne_bytes(self.fixed(row)?)).ok()
        } else {
            usize::try_from(i64::from_ne_bytes(self.fixed(row)?)).ok()
        }
    }

    #[inline]
    fn fixed<const BYTES: usize>(&self, row: usize) -> Option<[u8; BYTES]> {
        self.fixed.as_chunks::<BYTES>().0.get(row).copied()
    }

    #[inline]
    fn bit(&self, bits: &[u8], row: usize) -> bool {
        let at = self.first_bit + row;
        bits.get(at / 8)
            .is_some_and(|byte| byte >> (at % 8) & 1 == 1)
    }
}

/// Appends a range of the n-th buffer.
type Copy<'a> = dyn FnMut(usize, Range<usize>, &mut Vec<u8>) -> Result<()> + 'a;

#[inline(always)]
fn int<'a>(int: impl Into<i64>) -> Cell<'a> {
    Cell::Int(int.into())
}

#[inline(always)]
fn unsigned<'a>(int: u64) -> Cell<'a> {
    i64::try_from(int).map_or(Cell::Unsigned(int), Cell::Int)
}

#[inline(always)]
fn double<'a>(double: impl Into<f64>) -> Cell<'a> {
    Cell::Double(double.into())
}

/// The error of a damaged column.
pub fn damaged() -> Error {
    let message = "its buffers do not hold what its length and its offsets say";
    let error = Error::new(Kind::BadInput, "read a column", message);
    error.advise("check it with validate(full=True)")
}

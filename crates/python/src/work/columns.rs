//! Columns of Arrow as keys and values, without a Python object for each of them.
//!
//! ```text
//!   batch ──buffers, a slice of each──▶ Column ──cell(row)──▶ Cell ──write──▶ the engine's encoding
//! ```
//!
//! What Python hands over are the buffers of an array, which its buffer protocol lends, and the format string that says
//! what they hold. Slices are copied before they are read: that is a fiftieth of what their pairs take, and everything
//! behind it is checked and safe, whatever the buffers hold.
//!
//! The rule that must hold: a cell is encoded as the object that `to_pylist` makes of it would be.
//!
//! Source: <https://arrow.apache.org/docs/format/Columnar.html>; format strings are those of the C data interface.

use std::ops::Range;

use gristmill_engine::value::{hash, write};
use gristmill_engine::{Error, Kind};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView, PySlice};

use crate::error::to_python;

/// An array as Python hands it over: its format, how many elements come before its first, its buffers.
pub type Buffers = (char, usize, Vec<Option<Py<PyAny>>>);

/// One value of a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell<'a> {
    Null,
    Boolean(bool),
    Int(i64),
    /// One that is above all others.
    Unsigned(u64),
    Double(f64),
    Text(&'a str),
    Bytes(&'a [u8]),
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
}

/// What values are, and how they lie in the buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    Null,
    Bits,
    Int { bytes: usize },
    Unsigned { bytes: usize },
    Single,
    Double,
    Text { offset_bytes: usize },
    Bytes { offset_bytes: usize },
}

impl Layout {
    fn of(format: char) -> Option<Self> {
        Some(match format {
            'n' => Layout::Null,
            'b' => Layout::Bits,
            'c' => Layout::Int { bytes: 1 },
            's' => Layout::Int { bytes: 2 },
            'i' => Layout::Int { bytes: 4 },
            'l' => Layout::Int { bytes: 8 },
            'C' => Layout::Unsigned { bytes: 1 },
            'S' => Layout::Unsigned { bytes: 2 },
            'I' => Layout::Unsigned { bytes: 4 },
            'L' => Layout::Unsigned { bytes: 8 },
            'f' => Layout::Single,
            'g' => Layout::Double,
            'u' => Layout::Text { offset_bytes: 4 },
            'U' => Layout::Text { offset_bytes: 8 },
            'z' => Layout::Bytes { offset_bytes: 4 },
            'Z' => Layout::Bytes { offset_bytes: 8 },
            _ => return None,
        })
    }

    /// Bytes of a value, or of the offset of one that has any length.
    fn width(self) -> usize {
        match self {
            Layout::Null | Layout::Bits => 0,
            Layout::Int { bytes } | Layout::Unsigned { bytes } => bytes,
            Layout::Single => 4,
            Layout::Double => 8,
            Layout::Text { offset_bytes } | Layout::Bytes { offset_bytes } => offset_bytes,
        }
    }
}

/// Some rows of a column. It is filled again and again, so that its memory is touched once.
#[derive(Debug)]
pub struct Column {
    layout: Layout,
    rows: usize,
    /// Bits: which rows are not null. Empty where all are.
    valid: Vec<u8>,
    /// The first row's bit in its byte, in `valid` and of booleans.
    first_bit: usize,
    /// Values of a fixed width, or the offsets of others.
    fixed: Vec<u8>,
    /// Values of any width, and the offset of the first of them.
    content: Content,
    base: usize,
    /// Whether there is a zero in the content, which an encoding escapes.
    zeros: bool,
}

/// Text is checked once for all rows; what is none is checked row by row, to say which.
#[derive(Debug)]
enum Content {
    Text(String),
    Bytes(Vec<u8>),
}

impl Default for Column {
    fn default() -> Self {
        Column {
            layout: Layout::Null,
            rows: 0,
            valid: Vec::new(),
            first_bit: 0,
            fixed: Vec::new(),
            content: Content::Bytes(Vec::new()),
            base: 0,
            zeros: false,
        }
    }
}

impl Column {
    /// Takes `rows` rows out of an array's buffers.
    pub fn fill(&mut self, py: Python<'_>, rows: usize, array: Buffers) -> PyResult<()> {
        let (format, first, buffers) = array;
        let Some(layout) = Layout::of(format) else {
            let message = format!("there is no layout for the format {format}");
            return Err(to_python(&Error::bug("read a column", message)));
        };
        let buffer = |number: usize| buffers.get(number).and_then(Option::as_ref);
        let width = layout.width();
        (self.layout, self.rows, self.first_bit) = (layout, rows, first % 8);
        let bits = first / 8..(first + rows).div_ceil(8);
        self.valid.clear();
        self.fixed.clear();
        if layout == Layout::Null || rows == 0 {
            return Ok(());
        }
        if buffer(0).is_some() {
            copy(py, buffer(0), bits.clone(), &mut self.valid)?;
        }
        match layout {
            Layout::Bits => copy(py, buffer(1), bits, &mut self.fixed),
            Layout::Text { .. } | Layout::Bytes { .. } => {
                let offsets = first * width..(first + rows + 1) * width;
                copy(py, buffer(1), offsets, &mut self.fixed)?;
                self.fill_content(py, buffer(2))
            }
            _ => {
                let values = first * width..(first + rows) * width;
                copy(py, buffer(1), values, &mut self.fixed)
            }
        }
    }

    /// Takes the bytes that the offsets span.
    fn fill_content(&mut self, py: Python<'_>, buffer: Option<&Py<PyAny>>) -> PyResult<()> {
        let spanned = self.offset(0).zip(self.offset(self.rows));
        let (from, to) = spanned.ok_or_else(damaged)?;
        self.base = from;
        let mut bytes = match std::mem::replace(&mut self.content, Content::Bytes(Vec::new())) {
            Content::Text(text) => text.into_bytes(),
            Content::Bytes(bytes) => bytes,
        };
        bytes.clear();
        copy(py, buffer, from..to, &mut bytes)?;
        self.zeros = bytes.contains(&0);
        self.content = match self.layout {
            Layout::Text { .. } => match String::from_utf8(bytes) {
                Ok(text) => Content::Text(text),
                Err(error) => Content::Bytes(error.into_bytes()),
            },
            _ => Content::Bytes(bytes),
        };
        Ok(())
    }

    /// The value of a row; an error where it is text that is none.
    #[inline(always)]
    pub fn cell(&self, py: Python<'_>, row: usize) -> PyResult<Cell<'_>> {
        if !self.valid.is_empty() && !self.bit(&self.valid, row) {
            return Ok(Cell::Null);
        }
        let found = match self.layout {
            Layout::Null => Some(Cell::Null),
            Layout::Bits => Some(Cell::Boolean(self.bit(&self.fixed, row))),
            Layout::Int { bytes: 1 } => self.fixed::<1>(row).map(i8::from_ne_bytes).map(int),
            Layout::Int { bytes: 2 } => self.fixed::<2>(row).map(i16::from_ne_bytes).map(int),
            Layout::Int { bytes: 4 } => self.fixed::<4>(row).map(i32::from_ne_bytes).map(int),
            Layout::Int { .. } => self.fixed::<8>(row).map(i64::from_ne_bytes).map(int),
            Layout::Unsigned { bytes: 1 } => self.fixed::<1>(row).map(u8::from_ne_bytes).map(int),
            Layout::Unsigned { bytes: 2 } => self.fixed::<2>(row).map(u16::from_ne_bytes).map(int),
            Layout::Unsigned { bytes: 4 } => self.fixed::<4>(row).map(u32::from_ne_bytes).map(int),
            Layout::Unsigned { .. } => self.fixed::<8>(row).map(u64::from_ne_bytes).map(unsigned),
            Layout::Single => self.fixed::<4>(row).map(f32::from_ne_bytes).map(double),
            Layout::Double => self.fixed::<8>(row).map(f64::from_ne_bytes).map(double),
            Layout::Text { .. } => return self.text(py, row),
            Layout::Bytes { .. } => self.bytes(row).map(Cell::Bytes),
        };
        found.ok_or_else(damaged)
    }

    /// The integers of some rows, if that is what they are and none is null or above all others.
    pub fn ints(&self, rows: Range<usize>, out: &mut Vec<i64>) -> bool {
        out.clear();
        if !self.valid.is_empty() {
            return false;
        }
        match self.layout {
            Layout::Int { bytes: 1 } => self.widened(rows, i8::from_ne_bytes, out),
            Layout::Int { bytes: 2 } => self.widened(rows, i16::from_ne_bytes, out),
            Layout::Int { bytes: 4 } => self.widened(rows, i32::from_ne_bytes, out),
            Layout::Int { bytes: 8 } => self.widened(rows, i64::from_ne_bytes, out),
            Layout::Unsigned { bytes: 1 } => self.widened(rows, u8::from_ne_bytes, out),
            Layout::Unsigned { bytes: 2 } => self.widened(rows, u16::from_ne_bytes, out),
            Layout::Unsigned { bytes: 4 } => self.widened(rows, u32::from_ne_bytes, out),
            Layout::Unsigned { bytes: 8 } => self.widened(rows, u64::from_ne_bytes, out),
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

    /// Appends the encoding of a row's value.
    #[inline(always)]
    fn write(&self, py: Python<'_>, row: usize, out: &mut Vec<u8>) -> PyResult<()> {
        if let Some(bytes) = self.plain(row) {
            match self.content {
                Content::Text(_) => write::plain_text(out, bytes),
                Content::Bytes(_) => write::plain_bytes(out, bytes),
            }
            return Ok(());
        }
        self.cell(py, row)?.write(out);
        Ok(())
    }

    /// The bytes of a row's value, where those of the layout's type are plainly it: there is nothing to escape, and no row is null.
    #[inline(always)]
    fn plain(&self, row: usize) -> Option<&[u8]> {
        if self.zeros || !self.valid.is_empty() {
            return None;
        }
        match (self.layout, &self.content) {
            (Layout::Text { .. }, Content::Text(text)) => {
                let (from, to) = self.span(row)?;
                text.get(from..to).map(str::as_bytes)
            }
            (Layout::Bytes { .. }, Content::Bytes(bytes)) => {
                let (from, to) = self.span(row)?;
                bytes.get(from..to)
            }
            _ => None,
        }
    }

    #[inline]
    fn text(&self, py: Python<'_>, row: usize) -> PyResult<Cell<'_>> {
        if let (Content::Text(text), Some((from, to))) = (&self.content, self.span(row))
            && let Some(text) = text.get(from..to)
        {
            return Ok(Cell::Text(text));
        }
        let bytes = self.bytes(row).ok_or_else(damaged)?;
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Cell::Text(text)),
            Err(_) => Err(no_text(py, bytes)),
        }
    }

    #[inline]
    fn bytes(&self, row: usize) -> Option<&[u8]> {
        let (from, to) = self.span(row)?;
        match &self.content {
            Content::Text(text) => text.as_bytes().get(from..to),
            Content::Bytes(bytes) => bytes.get(from..to),
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

/// Rows whose keys are encoded, and looked for, before their values are added.
pub const BLOCK_ROWS: usize = 128;

/// The encoded keys of some rows, with their hashes; their values, where all are integers.
#[derive(Debug, Default)]
pub struct Block {
    bytes: Vec<u8>,
    /// Where each key ends in the bytes.
    ends: Vec<usize>,
    pub hashes: Vec<u64>,
    pub ints: Vec<i64>,
}

impl Block {
    /// Encodes the keys of some rows.
    pub fn fill(&mut self, py: Python<'_>, keys: &Column, rows: Range<usize>) -> PyResult<()> {
        self.bytes.clear();
        self.ends.clear();
        self.hashes.clear();
        for row in rows {
            let start = self.bytes.len();
            keys.write(py, row, &mut self.bytes)?;
            self.ends.push(self.bytes.len());
            self.hashes.push(hash(&self.bytes[start..]));
        }
        Ok(())
    }

    /// The keys, one after the other, with their hashes.
    pub fn keys(&self) -> impl Iterator<Item = (&[u8], u64)> {
        let mut start = 0;
        let keys = self.ends.iter().map(move |end| {
            let key = &self.bytes[start..*end];
            start = *end;
            key
        });
        keys.zip(self.hashes.iter().copied())
    }
}

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

/// Appends a range of a buffer.
fn copy(
    py: Python<'_>,
    buffer: Option<&Py<PyAny>>,
    range: Range<usize>,
    out: &mut Vec<u8>,
) -> PyResult<()> {
    if range.is_empty() {
        return Ok(());
    }
    let view = PyMemoryView::from(buffer.ok_or_else(damaged)?.bind(py))?;
    let place = |at: usize| isize::try_from(at).map_err(|_too_far| damaged());
    let slice = PySlice::new(py, place(range.start)?, place(range.end)?, 1);
    let slice = view.get_item(slice)?;
    if slice.len()? != range.len() {
        return Err(damaged());
    }
    let bytes = PyBuffer::<u8>::get(&slice.call_method1("cast", ("B",))?)?;
    let start = out.len();
    out.resize(start + range.len(), 0);
    bytes.copy_to_slice(py, &mut out[start..])
}

#[cold]
fn damaged() -> PyErr {
    let message = "its buffers do not hold what its length and its offsets say";
    let error = Error::new(Kind::BadInput, "read a column", message);
    to_python(&error.advise("look at it with validate(full=True)"))
}

/// The error that Python has for bytes that are no text.
#[cold]
fn no_text(py: Python<'_>, bytes: &[u8]) -> PyErr {
    match PyBytes::new(py, bytes).call_method0("decode") {
        Err(error) => error,
        Ok(_) => damaged(),
    }
}

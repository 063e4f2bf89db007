//! Reads the records of a split of text: lines, several at a time, records of one length, or whole files.

mod batch;

use std::ffi::OsString;
use std::sync::Mutex;

use gristmill_engine::codec::{self, Coding};
use gristmill_engine::split::lines::{LineOptions, LineRecordReader as Lines, Terminator};
use gristmill_engine::split::text::open_lines;
use gristmill_engine::storage::input::FileRange;
use gristmill_engine::storage::io::window::in_order;
use gristmill_engine::storage::{Caching, ReadFile};
use gristmill_engine::worker::{Heartbeat, RecordPosition};
use gristmill_engine::{Error, Kind, Result};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use super::{OrRaise, exclusive};
use crate::error::to_python;
use crate::stores::stores;

/// What a record is.
enum Unit {
    Line,
    Lines(usize),
    Whole,
    Fixed(usize),
}

/// The records of a split, one after another.
#[pyclass]
pub struct LineReader {
    pieces: Vec<FileRange>,
    /// The piece that is read, or the next one.
    piece: usize,
    source: Mutex<Option<PieceReader>>,
    unit: Unit,
    text: bool,
    terminator: Terminator,
    /// Files, records and bytes that others read before these pieces, for the same task.
    of_others: (u64, u64, u64),
    /// Bytes of the pieces before this one.
    before: u64,
    records: u64,
    /// The present record: where it begins, and its bytes.
    offset: u64,
    line: u64,
    raw: Vec<u8>,
    batch: batch::ColumnBuffers,
}

/// What reads a piece.
enum PieceReader {
    /// And the bytes of the file, if it is compressed: those that were read are consumed, all of them at its end.
    Lines(Box<Lines>, Option<u64>),
    Bytes(Box<codec::FileDecoder>, u64),
    Range(PlainRange),
}

/// A range of a plain file, a block at a time.
struct PlainRange {
    file: Box<dyn ReadFile>,
    /// Where the range begins, and its bytes.
    start: u64,
    bytes: u64,
    /// Bytes of it that were given.
    done: u64,
    block: Vec<u8>,
    /// Where in the block the next byte is.
    at: usize,
}

/// Bytes of a block.
const BLOCK_BYTES: usize = 1 << 20;

impl PlainRange {
    fn new(file: Box<dyn ReadFile>, piece: &FileRange) -> Self {
        PlainRange {
            file,
            start: piece.offset,
            bytes: piece.bytes,
            done: 0,
            block: Vec::new(),
            at: 0,
        }
    }

    /// Fills `out`; less only where the file ends. Nothing at the range's end.
    fn fill(&mut self, out: &mut [u8]) -> Result<usize> {
        if self.done >= self.bytes {
            return Ok(0);
        }
        let mut filled = 0;
        while filled < out.len() {
            if self.at == self.block.len() {
                let left = self.bytes.saturating_sub(self.done + filled as u64);
                let wanted = left.clamp(out.len() as u64, BLOCK_BYTES.max(out.len()) as u64);
                self.block.resize(wanted as usize, 0);
                self.at = 0;
                let from = self.start + self.done + filled as u64;
                let read = self.file.read_at(&mut self.block, from)?;
                self.block.truncate(read);
                if read == 0 {
                    break;
                }
            }
            let taken = (out.len() - filled).min(self.block.len() - self.at);
            out[filled..filled + taken].copy_from_slice(&self.block[self.at..self.at + taken]);
            self.at += taken;
            filled += taken;
        }
        self.done += filled as u64;
        Ok(filled)
    }
}

#[pymethods]
impl LineReader {
    #[new]
    #[pyo3(signature = (pieces, *, text = true, terminator = None, strip_cr = false, lines = 1, whole = false, fixed = None, before = (0, 0, 0)))]
    #[expect(clippy::too_many_arguments, reason = "each is an option of its own")]
    fn new(
        pieces: &str,
        text: bool,
        terminator: Option<Vec<u8>>,
        strip_cr: bool,
        lines: usize,
        whole: bool,
        fixed: Option<usize>,
        before: (u64, u64, u64),
    ) -> PyResult<Self> {
        let pieces = serde_json::from_str(pieces)
            .map_err(|error| to_python(&Error::bug("read a split", error.to_string())))?;
        let unit = match (whole, fixed, lines) {
            (true, _, _) => Unit::Whole,
            (false, Some(bytes), _) if bytes > 0 => Unit::Fixed(bytes),
            (false, None, 1) => Unit::Line,
            (false, None, 2..) => Unit::Lines(lines),
            _ => {
                return Err(PyValueError::new_err(
                    "a record has at least one line or byte",
                ));
            }
        };
        let terminator = match terminator {
            Some(bytes) if bytes != b"\n" => Terminator::Bytes(bytes),
            _ => Terminator::Lf { strip_cr },
        };
        Ok(LineReader {
            pieces,
            piece: 0,
            source: Mutex::new(None),
            unit,
            text,
            terminator,
            of_others: before,
            before: 0,
            records: 0,
            offset: 0,
            line: 0,
            raw: Vec::new(),
            batch: batch::ColumnBuffers::default(),
        })
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.unit {
            Unit::Line => {
                if !self.next_line()? {
                    return Ok(None);
                }
                self.object(py).map(Some)
            }
            Unit::Lines(count) => self.next_lines(py, count),
            Unit::Fixed(bytes) => {
                if !self.next_fixed(bytes).or_raise()? {
                    return Ok(None);
                }
                Ok(Some(PyBytes::new(py, &self.raw).into_any()))
            }
            Unit::Whole => self.next_file(py),
        }
    }

    /// The next lines as a column, so many bytes of them or the rest of a file: how many they are, the column's offsets and
    /// its data, and where in the file what is no text begins.
    fn batch<'py>(&mut self, py: Python<'py>, size: u64) -> PyResult<Option<batch::Given<'py>>> {
        self.next_batch(py, size)
    }

    /// File, offset, number of the record in the split, and line in the file where that is known.
    #[pyo3(name = "where")]
    fn where_(&self) -> (OsString, u64, u64, u64) {
        let piece = self
            .pieces
            .get(self.piece.min(self.pieces.len().saturating_sub(1)));
        let path = piece.map_or_else(OsString::new, |piece| piece.file.path.as_typed().into());
        let known = piece.is_some_and(|piece| piece.offset == 0);
        let line = if known { self.line } else { 0 };
        (path, self.offset, self.records.saturating_sub(1), line)
    }

    /// The bytes of the present record.
    fn raw<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.raw)
    }

    /// Bytes of input consumed.
    fn bytes_read(&mut self) -> u64 {
        self.before
            + exclusive(&mut self.source)
                .as_ref()
                .map_or(0, PieceReader::consumed)
    }

    /// Records read.
    fn records_read(&self) -> u64 {
        self.records
    }
}

impl LineReader {
    /// Reads the next line into `raw`; false at the end.
    #[inline]
    fn next_line(&mut self) -> PyResult<bool> {
        while exclusive(&mut self.source).is_some() || self.open().or_raise()? {
            if self.next_line_of_piece()? {
                return Ok(true);
            }
            self.close().or_raise()?;
        }
        Ok(false)
    }

    /// Reads the next line of the piece that is open; false at its end.
    #[inline]
    fn next_line_of_piece(&mut self) -> PyResult<bool> {
        let Some(PieceReader::Lines(lines, _)) = exclusive(&mut self.source) else {
            return Ok(false);
        };
        let Some(line) = lines.next_line().or_raise()? else {
            return Ok(false);
        };
        self.offset = line.offset;
        self.raw.clear();
        self.raw.extend_from_slice(line.bytes);
        self.line = lines.lines();
        self.note();
        Ok(true)
    }

    /// The next `count` lines, or less at the end of a file.
    fn next_lines<'py>(
        &mut self,
        py: Python<'py>,
        count: usize,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        if !self.next_line()? {
            return Ok(None);
        }
        let (offset, records, line) = (self.offset, self.records, self.line);
        let list = PyList::empty(py);
        let mut raw = Vec::new();
        loop {
            list.append(self.object(py)?)?;
            raw.extend_from_slice(&self.raw);
            raw.push(b'\n');
            if list.len() == count || !self.next_line_of_piece()? {
                break;
            }
        }
        (self.offset, self.records, self.line, self.raw) = (offset, records, line, raw);
        self.say();
        Ok(Some(list.into_any()))
    }

    fn next_file<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if !self.open().or_raise()? {
            return Ok(None);
        }
        let read = |source: &mut PieceReader, raw: &mut Vec<u8>| -> Result<()> {
            let PieceReader::Bytes(reader, _) = source else {
                return Err(Error::bug("read a file", "it was opened for lines"));
            };
            loop {
                let start = raw.len();
                raw.resize(start + (1 << 20), 0);
                let read = reader.fill(&mut raw[start..])?;
                raw.truncate(start + read);
                if read == 0 {
                    return Ok(());
                }
            }
        };
        self.raw.clear();
        self.offset = 0;
        if let Some(source) = exclusive(&mut self.source) {
            read(source, &mut self.raw).or_raise()?;
        }
        self.note();
        let content = self.object(py)?;
        let path = self.pieces[self.piece]
            .file
            .path
            .as_typed()
            .as_os_str()
            .to_owned();
        self.close().or_raise()?;
        Ok(Some((path, content).into_pyobject(py)?.into_any()))
    }

    fn next_fixed(&mut self, bytes: usize) -> Result<bool> {
        loop {
            if exclusive(&mut self.source).is_none() && !self.open()? {
                return Ok(false);
            }
            let piece = &self.pieces[self.piece];
            self.raw.resize(bytes, 0);
            let (at, read) = match exclusive(&mut self.source) {
                Some(PieceReader::Bytes(reader, done)) => {
                    let at = *done;
                    let read = reader.fill(&mut self.raw)?;
                    *done += read as u64;
                    (at, read)
                }
                Some(PieceReader::Range(range)) => {
                    let at = range.start + range.done;
                    (at, range.fill(&mut self.raw)?)
                }
                _ => return Err(Error::bug("read records", "the file was opened for lines")),
            };
            if read == 0 {
                self.close()?;
                continue;
            }
            self.offset = at;
            if read < bytes {
                self.raw.truncate(read);
                let message = format!("its last record has {read} bytes, and records have {bytes}");
                return Err(Error::new(Kind::BadInput, "read the input", message)
                    .with_path(piece.file.path.as_typed())
                    .with("offset", at)
                    .advise(
                        "check that the file was copied whole, and that it holds such records",
                    ));
            }
            self.note();
            return Ok(true);
        }
    }

    /// Opens the next piece; false where there is none.
    fn open(&mut self) -> Result<bool> {
        let Some(piece) = self.pieces.get(self.piece) else {
            return Ok(false);
        };
        let stores = stores();
        let (store, path) = stores.resolve(&piece.file.path)?;
        let options = LineOptions {
            terminator: self.terminator.clone(),
            ..LineOptions::default()
        };
        self.line = 0;
        let source = match (&self.unit, piece.coding()) {
            (Unit::Line | Unit::Lines(_), _) => {
                let lines = open_lines(&stores, piece, &options)?;
                let counted = lines.is_decoded().then_some(piece.bytes);
                PieceReader::Lines(Box::new(lines), counted)
            }
            (Unit::Fixed(_), Coding::Plain) => {
                let file = piece.file.open(store, Caching::Cached)?;
                PieceReader::Range(PlainRange::new(in_order(file, piece.range()), piece))
            }
            (Unit::Fixed(_) | Unit::Whole, coding) => {
                let file = piece.file.open(store, Caching::Cached)?;
                PieceReader::Bytes(Box::new(codec::open_file(file, path, coding)?), 0)
            }
        };
        *exclusive(&mut self.source) = Some(source);
        Ok(true)
    }

    /// The piece is at its end.
    fn close(&mut self) -> Result<()> {
        if let Some(source) = exclusive(&mut self.source).take() {
            self.before += match source {
                PieceReader::Lines(_, Some(bytes)) => bytes, // decoded to its end
                source => source.consumed(),
            };
        }
        self.piece += 1;
        Ok(())
    }

    /// The present record is worked on now.
    #[inline]
    fn note(&mut self) {
        self.records += 1;
        self.say();
    }

    /// Writes where the present record is to the pulse.
    #[inline]
    fn say(&mut self) {
        let (files, records, bytes) = self.of_others;
        if let Some(pulse) = Heartbeat::mine() {
            pulse.write(&RecordPosition {
                record: records + self.records - 1,
                offset: self.offset,
                file: files + self.piece as u64,
                bytes_done: bytes
                    + self.before
                    + exclusive(&mut self.source)
                        .as_ref()
                        .map_or(0, PieceReader::consumed),
            });
        }
    }

    #[inline]
    fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if !self.text {
            return Ok(PyBytes::new(py, &self.raw).into_any());
        }
        match std::str::from_utf8(&self.raw) {
            Ok(text) => Ok(PyString::new(py, text).into_any()),
            Err(error) => {
                let at = error.valid_up_to();
                let message = format!("byte {at} of the record at this offset is not UTF-8");
                Err(to_python(
                    &Error::new(Kind::BadInput, "read the input", message)
                        .with_path(self.pieces[self.piece].file.path.as_typed())
                        .with("offset", self.offset)
                        .advise("name the encoding with encoding=, or give errors=\"replace\""),
                ))
            }
        }
    }
}

impl PieceReader {
    fn consumed(&self) -> u64 {
        match self {
            PieceReader::Lines(lines, None) => lines.consumed(),
            PieceReader::Lines(lines, Some(bytes)) => lines.fetched().min(*bytes),
            PieceReader::Bytes(reader, _) => reader.consumed(),
            PieceReader::Range(range) => range.done,
        }
    }
}

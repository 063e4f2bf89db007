//! Rows of tables behind codes of their keys: read in order, encoded once, and spilled as sorted runs.
//!
//! ```text
//!   | header | row | row | ...     of the first source: the header gets no code, and sorts before all rows
//!   | header | row | row | ...     of all others: the header is left out
//!   | row | row | ...              of tables without a header: a byte order mark is left out
//! ```
//!
//! A source is read from where a row begins: rows cannot be told from the middle of a file ([`gristmill_base::record::table`]).

use std::ops::Range;

use super::appended::{AppendedRuns, LeftOut, NAMED_MAX};
use super::in_order::{InOrder, block_bytes};
use super::record_assembler::RecordAssembler;
use super::{Progress, SpillPlan, SpillScratch, SpilledRun};
use gristmill_base::error::{Error, JobOption, Kind, Result};
use gristmill_base::record::comment::{COMMENT_BYTES_MAX, is_comment};
use gristmill_base::record::shape::{Keyed, PairShape};
use gristmill_base::record::table::{open_quote, without_end};
use gristmill_base::record::table_keys::{BadRow, RowCodes, TableKeys, TableSource};
use gristmill_storage::input::InputFile;
use gristmill_storage::io::overlap::TRANSFER_BYTES;
use gristmill_storage::io::read_ahead::read_through;
use gristmill_storage::lines::BYTE_ORDER_MARK;
use gristmill_storage::stores::Stores;
use gristmill_storage::{Caching, LocalDisk};

/// How rows are keyed.
#[derive(Debug)]
pub struct RowsPlan<'a> {
    /// How their runs are made.
    pub spill: SpillPlan<'a, Keyed>,
    /// What the keys are.
    pub table: &'a TableKeys,
}

/// What becomes of the row at the beginning of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum First {
    /// It is a row like all others.
    Row,
    /// It is the header of the output.
    Header,
    /// It is a header that is there already.
    LeftOut,
    /// It is a row; a byte order mark in front of it is left out.
    Unmarked,
}

impl First {
    /// That of a source, at its beginning.
    pub fn of(table: &TableKeys, source: TableSource) -> Self {
        match (table.no_header, table.header == Some(source)) {
            (true, _) => First::Unmarked,
            (false, true) => First::Header,
            (false, false) => First::LeftOut,
        }
    }
}

/// Spills all rows of `sources`, as [`spill_source`](super::spill_source) does.
///
/// # Errors
/// Besides, a row has not the fields of the header, and no more such may be left out; or a quote is open at the end.
pub fn spill_rows(
    plan: &RowsPlan<'_>,
    (disk, store): (&dyn LocalDisk, &Stores),
    sources: &[(InOrder<'_>, First)],
    name: &str,
    scratch: &mut SpillScratch,
    progress: Progress<'_>,
) -> Result<Vec<SpilledRun>> {
    let mut reader = RowReader::new(plan.table)?;
    let mut runs = AppendedRuns::new(&plan.spill, disk, name, scratch)?;
    for (source, first) in sources {
        let mut spilling = Spilling {
            runs: &mut runs,
            progress,
        };
        reader.read(store, *source, *first, &mut spilling)?;
        runs.left_out += std::mem::take(&mut reader.left_out);
    }
    runs.finish(progress)
}

/// A row as it was read.
#[derive(Clone, Copy)]
pub struct TableRow<'a> {
    /// All of it, with its end.
    pub bytes: &'a [u8],
    /// Its code, which is empty of the header.
    pub code: &'a [u8],
    /// Where its fields lie, with their quotes; none are known of the header.
    pub fields: &'a [Range<usize>],
    /// The number of its first line in the source, from 1 on.
    pub line: u64,
    /// Where it begins in its file, decoded if that is compressed.
    pub offset: u64,
    /// Says in an error where in the input it is.
    pub locate: &'a dyn Fn(Error) -> Error,
}

/// Takes rows with their codes.
pub trait RowSink<'p> {
    /// Takes a row.
    fn row(&mut self, row: &TableRow<'_>) -> Result<()>;

    /// What is told how many bytes were read.
    fn progress(&self) -> Progress<'p>;

    /// Bytes of a block to read at once, and of the longest row.
    fn room(&self) -> (usize, usize);

    /// The error of a row of so many bytes, which is too long.
    fn too_long(&self, bytes: u64) -> Error;
}

struct Spilling<'s, 'r, 'p> {
    runs: &'s mut AppendedRuns<'r, Keyed>,
    progress: Progress<'p>,
}

impl<'p> RowSink<'p> for Spilling<'_, '_, 'p> {
    fn row(&mut self, row: &TableRow<'_>) -> Result<()> {
        let (code, bytes) = (row.code, row.bytes);
        let header = PairShape::header(code.len(), bytes.len());
        self.runs
            .take(&[&header, code, bytes], bytes.len(), self.progress)
    }

    fn progress(&self) -> Progress<'p> {
        self.progress
    }

    fn room(&self) -> (usize, usize) {
        (block_bytes(self.runs.chunk_bytes()), self.runs.longest())
    }

    fn too_long(&self, bytes: u64) -> Error {
        self.runs.too_long_to_read("row", bytes)
    }
}

/// Reads rows of sources, one after the other.
#[derive(Debug)]
pub struct RowReader<'t> {
    table: &'t TableKeys,
    codes: RowCodes,
    code: Vec<u8>,
    /// A row that was filled.
    filled: Vec<u8>,
    bad_rows: u64,
    /// What was read and went to no sink.
    pub left_out: LeftOut,
}

/// Where in a source a row is.
#[derive(Debug, Clone, Copy)]
struct RowPosition {
    offset: u64,
    /// Rows before it, in the source.
    rows: u64,
    /// Lines before it, in the source.
    lines: u64,
    first: First,
}

impl<'t> RowReader<'t> {
    /// For rows of this table.
    ///
    /// # Errors
    /// Its keys cannot be.
    pub fn new(table: &'t TableKeys) -> Result<Self> {
        Ok(RowReader {
            table,
            codes: RowCodes::new(table)?,
            code: Vec::new(),
            filled: Vec::new(),
            bad_rows: 0,
            left_out: LeftOut::default(),
        })
    }

    /// Hands all rows of `source` to `sink`; a last one without an end gets one. An empty line is no row of a table of several
    /// columns, and a comment is none of any: they are passed over.
    ///
    /// # Errors
    /// A row has not the fields of the header, and no more such may be left out; or a quote is open at the end.
    pub fn read(
        &mut self,
        store: &Stores,
        source: InOrder<'_>,
        first: First,
        sink: &mut dyn RowSink<'_>,
    ) -> Result<()> {
        let table = self.table;
        let mut ends = match source.start() {
            0 => table.row_ends_of_file(),
            _ => table.row_ends(),
        };
        let mut place = RowPosition {
            offset: source.start(),
            rows: 0,
            lines: 0,
            first,
        };
        let (block, longest) = sink.room();
        let mut feed = RecordAssembler::new(longest);
        let progress = sink.progress();
        source.read(store, block, progress, &mut |block| {
            let mut cut = |_, more: &[u8]| ends.rest(more);
            let mut take = |row: &[u8]| self.take(row, &mut place, (source, store), sink);
            match feed.block(block, &mut cut, &mut take)? {
                None => Ok(()),
                Some(length) => {
                    let error = overlong(length, ends.is_quoted(), sink);
                    Err(at(error, place, (source, store), table))
                }
            }
        })?;
        let is_quoted = ends.is_quoted();
        let rest = feed.rest().map_err(|length| {
            let error = overlong(length, is_quoted, sink);
            at(error, place, (source, store), table)
        })?;
        if is_quoted {
            let (error, before) = never_closes(rest, table.delimiter);
            place.skip(rest.get(..before).unwrap_or_default());
            return Err(at(error, place, (source, store), table));
        }
        if rest.is_empty() {
            return Ok(());
        }
        let is_mark = *rest == BYTE_ORDER_MARK && place.offset == 0;
        if is_mark || is_comment(rest, table.comment, place.offset == 0) {
            self.left_out.bytes += rest.len() as u64;
            return Ok(());
        }
        end_row(rest, &self.table.ending);
        self.take(rest, &mut place, (source, store), sink)
    }

    fn take(
        &mut self,
        row: &[u8],
        place: &mut RowPosition,
        from: (InOrder<'_>, &Stores),
        sink: &mut dyn RowSink<'_>,
    ) -> Result<()> {
        if is_comment(row, self.table.comment, place.offset == 0) {
            self.left_out.bytes += row.len() as u64;
            place.skip(row);
            return Ok(());
        }
        self.code.clear();
        let first = std::mem::replace(&mut place.first, First::Row);
        let marked = match row.strip_prefix(BYTE_ORDER_MARK) {
            Some(_) if first == First::Unmarked => BYTE_ORDER_MARK.len(),
            _ => 0,
        };
        let (mark, row) = row.split_at(marked);
        self.left_out.bytes += mark.len() as u64;
        place.skip(mark);
        let encoded = match first {
            First::Row | First::Unmarked => self.codes.encode(row, &mut self.code),
            First::Header => Ok(()),
            First::LeftOut => {
                self.left_out.bytes += row.len() as u64;
                place.pass(row);
                return Ok(());
            }
        };
        let here = *place;
        let (bytes, encoded) = match encoded {
            Err(bad) if self.may_fill(row, bad) => {
                let encoded = self.fill(row, bad);
                (&*self.filled, encoded)
            }
            encoded => (row, encoded),
        };
        match encoded {
            Ok(()) => sink.row(&TableRow {
                bytes,
                code: &self.code,
                fields: match first {
                    First::Header => &[],
                    _ => self.codes.fields(),
                },
                line: here.lines + 1,
                offset: here.offset,
                locate: &|error| at(error, here, from, self.table),
            })?,
            Err(_) if without_end(row).is_empty() => self.left_out.bytes += row.len() as u64,
            Err(bad) => self.leave_out(row, bad, *place, from)?,
        }
        match first {
            First::Row if !self.codes.is_quoted() => place.pass_line(row),
            _ => place.pass(row),
        }
        Ok(())
    }

    /// Whether a row is short, and short ones are filled.
    fn may_fill(&self, row: &[u8], bad: BadRow) -> bool {
        self.table.pads && bad.found < bad.columns && !without_end(row).is_empty()
    }

    /// Adds empty cells to a short row, and encodes it.
    fn fill(&mut self, row: &[u8], bad: BadRow) -> Result<(), BadRow> {
        let (cells, end) = row.split_at(without_end(row).len());
        let missing = bad.columns.saturating_sub(bad.found);
        self.filled.clear();
        self.filled.extend_from_slice(cells);
        self.filled
            .resize(cells.len() + missing, self.table.delimiter);
        self.filled.extend_from_slice(end);
        self.left_out.added += missing as u64;
        self.code.clear();
        self.codes.encode(&self.filled, &mut self.code)
    }

    /// Leaves out a row that is no row of this table, if it may be.
    fn leave_out(
        &mut self,
        row: &[u8],
        bad: BadRow,
        place: RowPosition,
        from: (InOrder<'_>, &Stores),
    ) -> Result<()> {
        self.bad_rows += 1;
        if self.bad_rows > self.table.skip_bad {
            let skipped = self.table.skip_bad;
            return Err(at(bad_row(bad, skipped), place, from, self.table));
        }
        self.left_out.bad_rows += 1;
        self.left_out.bytes += row.len() as u64;
        if self.left_out.first.len() < NAMED_MAX {
            self.left_out.first.push(named(bad, place, from.0));
        }
        Ok(())
    }
}

impl RowPosition {
    /// Goes on behind `row`.
    fn pass(&mut self, row: &[u8]) {
        self.rows += 1;
        self.skip(row);
    }

    /// Goes on behind `row`, which is one line.
    fn pass_line(&mut self, row: &[u8]) {
        self.rows += 1;
        self.lines += 1;
        self.offset += row.len() as u64;
    }

    /// Goes on behind `bytes` of a row.
    fn skip(&mut self, bytes: &[u8]) {
        self.offset += bytes.len() as u64;
        self.lines += memchr::memchr_iter(b'\n', bytes).count() as u64;
    }
}

/// Ends the last row of a file as the header ends. A CR that stands there is the half of such an end.
fn end_row(row: &mut Vec<u8>, ending: &str) {
    if ending.starts_with('\r') && row.ends_with(b"\r") {
        row.pop();
    }
    row.extend_from_slice(ending.as_bytes());
}

/// The error of a row that is too long, so far or at all: where a quote is open, it is that which makes it so.
fn overlong(length: u64, is_quoted: bool, sink: &dyn RowSink<'_>) -> Error {
    if !is_quoted {
        return sink.too_long(length);
    }
    let message =
        format!("a quote is not closed: its row begins here, and goes on for {length} bytes");
    Error::new(Kind::BadInput, "read the input", message).advise(CLOSE_QUOTES)
}

/// The error of a row that cannot be read.
///
/// ```
/// use gristmill_base::record::table_keys::BadRow;
/// let row = BadRow { found: 1, columns: 2, by: "header" };
/// use gristmill_tasks::spill::rows::bad_row;
/// let error = bad_row(row, 0).to_string();
/// assert!(error.contains("the row has 1 field, and the header has 2 fields"), "{error}");
/// ```
pub fn bad_row(bad: BadRow, skipped: u64) -> Error {
    let mut message = bad.to_string();
    if skipped > 0 {
        message = format!("{message}, and so many are left out already: {skipped}");
    }
    let again = skipped.saturating_add(1).max(10);
    Error::new(Kind::BadInput, "read the input", message).advise_options(
        "correct the row, or leave such rows out: give {}",
        [JobOption::SkipBad.count(again)],
    )
}

/// What to do about a quote that is open.
const CLOSE_QUOTES: &str = "close the quotes, or double a quote that is part of the field";

/// The error of a table that ends in a field, and how many bytes of its last row, `rest`, stand before that.
///
/// ```
/// use gristmill_tasks::spill::rows::never_closes;
/// let (error, before) = never_closes(b"1,\"two\n3,4\n", b',');
/// assert!(error.to_string().contains("a quote is open at the end"));
/// assert_eq!(before, 2);
/// ```
pub fn never_closes(rest: &[u8], delimiter: u8) -> (Error, usize) {
    let message = "a quote is open at the end of the input: its field begins here";
    let error = Error::new(Kind::BadInput, "read the input", message).advise(CLOSE_QUOTES);
    (error, open_quote(rest, delimiter))
}

/// What is wrong with a row that is left out, and where it is: with its line where no more of the file must be read for that.
fn named(bad: BadRow, place: RowPosition, source: InOrder<'_>) -> String {
    let line = match source.start() {
        0 => format!("line {}, ", place.lines + 1),
        _ => String::new(),
    };
    format!(
        "{bad} (file {}, {line}offset {})",
        source.name(),
        place.offset
    )
}

/// Says where in the input it is, with the numbers of the row and of the line; the header is row 1.
fn at(
    error: Error,
    place: RowPosition,
    (source, store): (InOrder<'_>, &Stores),
    table: &TableKeys,
) -> Error {
    let before = match source {
        InOrder::Range(file, range) => before(store, file, range.offset, table),
        InOrder::Decoded(..) | InOrder::Stream(_) => Ok((0, 0)),
    };
    let error = error.with("file", source.name());
    let error = match before {
        Ok((rows, lines)) => error
            .with("row", rows + place.rows + 1)
            .with("line", lines + place.lines + 1),
        Err(_) => error, // the file is gone by now
    };
    error.with("offset", place.offset)
}

/// Rows, without comments, and newlines in the first bytes of a file. Nobody counts them before somebody wants to know.
fn before(store: &Stores, file: &InputFile, bytes: u64, table: &TableKeys) -> Result<(u64, u64)> {
    let opened = store.open_input(file, Caching::Cached)?;
    let (mut rows, mut lines, mut buffers) = (0, 0, Vec::new());
    let mut begun = Vec::new(); // the first bytes of the row that goes on
    let mut is_first = true;
    let mut ends = table.row_ends_of_file();
    let blocks = (TRANSFER_BYTES, 2);
    read_through(&*opened, 0..bytes, blocks, &mut buffers, |block| {
        lines += memchr::memchr_iter(b'\n', block).count() as u64;
        let mut rest = block;
        while let Some(length) = ends.rest(rest) {
            begin_row(&mut begun, rest);
            rows += u64::from(!is_comment(&begun, table.comment, is_first));
            begun.clear();
            is_first = false;
            rest = rest.get(length..).unwrap_or_default();
        }
        begin_row(&mut begun, rest);
        Ok(())
    })?;
    Ok((rows, lines))
}

/// Takes more of a row, as far as it says whether that is a comment.
fn begin_row(begun: &mut Vec<u8>, more: &[u8]) {
    let most = BYTE_ORDER_MARK.len() + COMMENT_BYTES_MAX;
    let missing = most.saturating_sub(begun.len()).min(more.len());
    begun.extend_from_slice(more.get(..missing).unwrap_or_default());
}

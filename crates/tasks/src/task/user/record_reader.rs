//! Reads the records of a native job's splits, as their form says.
//!
//! ```text
//!   Lines    16 kB of whole lines at once
//!   Fields   a line, with where its fields lie
//!   Objects  a line that is a JSON object, with where the values of paths lie and with the code of its keys; blank lines are left out
//!   Rows     a row, with where its fields lie and with the code of its keys; headers are left out
//! ```
//!
//! The rule that must hold: every record that begins in a piece is handed on once, in the order of the file, and the bytes that are
//! told as read are, over all pieces, those of the files.

use std::ops::Range;

use gristmill_grep::encoding_of;

use super::native_split::NativeSplit;
use super::operator::{RecordForm, Records};
use super::spec::UserTaskReport;
use crate::spill::in_order::InOrder;
use crate::spill::rows::{First, RowReader, RowSink, TableRow};
use crate::spill::{LeftOut, Progress};
use crate::split::lines::LineOptions;
use crate::split::text::{codec_of, open_lines};
use gristmill_base::error::{Error, JobOption, Kind, Result};
use gristmill_base::record::objects::{ObjectCodes, ObjectKeys};
use gristmill_base::record::table_keys::{TableKeys, TableSource};
use gristmill_storage::codec::Coding;
use gristmill_storage::input::{FileRange, InputFile, InputRange, SplitFile};
use gristmill_storage::lines::LineEnd;
use gristmill_storage::stores::Stores;

/// Bytes of lines that are mapped at once: in the first-level cache while they are.
const LINES_BYTES: u64 = 16 << 10;

/// Bytes of input between two signs of life.
const BYTES_A_BEAT: u64 = 1 << 20;

/// Bytes of a table that are read at once: a quarter of the room for rows, within these bounds.
const BLOCK_BYTES_MIN: usize = 64 << 10;
const BLOCK_BYTES_MAX: usize = 1 << 20;

/// The counters' group of files that are not UTF-8, nor anything like it. The job tells them as warnings.
pub const NOT_DECODED: &str = "Files that are not decoded";

/// That of rows that are left out: what is wrong with each, and where it is.
pub const LEFT_OUT: &str = "Rows that are left out";

/// Takes records.
type Take<'t> = &'t mut dyn FnMut(&Records<'_>) -> Result<()>;

/// Reads the pieces of a split, one after the other.
pub(super) struct SplitReader<'a> {
    pub(super) store: &'a Stores,
    pub(super) form: &'a RecordForm,
    /// The number of the input.
    pub(super) input: usize,
    /// The number of the file that is read.
    pub(super) file: u32,
    /// Bytes of memory for rows on their way.
    pub(super) row_bytes: usize,
    /// That of the next record.
    pub(super) position: u64,
    /// What was read.
    pub(super) report: UserTaskReport,
}

impl SplitReader<'_> {
    /// Hands on the records of all pieces of a split.
    ///
    /// # Errors
    /// One cannot be read, or has a record that is none; and those of `take`.
    pub(super) fn read_all(
        &mut self,
        split: &NativeSplit,
        progress: Progress<'_>,
        take: Take<'_>,
    ) -> Result<()> {
        for (piece, file) in split.pieces.iter().zip(&split.files) {
            self.file = *file;
            self.read(piece, progress, take)?;
        }
        Ok(())
    }

    fn read(&mut self, piece: &FileRange, progress: Progress<'_>, take: Take<'_>) -> Result<()> {
        match self.form {
            RecordForm::Lines(end) => self.lines(piece, *end, progress, &mut |lines| {
                take(lines).map_err(|error| among(error, piece, lines.offset))
            }),
            RecordForm::Fields(end, separator) => {
                let mut fields = Vec::new();
                let first = self.position;
                self.lines(piece, *end, progress, &mut |lines| {
                    for ((offset, bytes), position) in lines.lines().zip(lines.position..) {
                        fields_of_line(bytes, *separator, &mut fields);
                        let taken = take(&Records {
                            bytes,
                            fields: &fields,
                            position,
                            offset,
                            ..*lines
                        });
                        taken.map_err(|error| at_line(error, piece, position - first + 1))?;
                    }
                    Ok(())
                })
            }
            RecordForm::Objects(keys) => self.objects(piece, (keys, progress), take),
            RecordForm::Rows(table) => self.rows(piece, (table, progress), take),
        }
    }

    fn objects(
        &mut self,
        piece: &FileRange,
        (keys, progress): (&ObjectKeys, Progress<'_>),
        take: Take<'_>,
    ) -> Result<()> {
        let (mut codes, mut code, mut record) = (ObjectCodes::new(keys)?, Vec::new(), Vec::new());
        let first = self.position;
        self.lines(piece, LineEnd::Lf, progress, &mut |lines| {
            for ((offset, line), position) in lines.lines().zip(lines.position..) {
                if line.trim_ascii().is_empty() {
                    continue;
                }
                code.clear();
                let encoded = codes.encode(line, &mut code);
                let taken = encoded.map_err(|what| no_object(&what)).and_then(|()| {
                    record.clear();
                    record.extend_from_slice(line);
                    record.push(b'\n');
                    take(&Records {
                        bytes: &record,
                        fields: codes.fields(),
                        code: &code,
                        position,
                        offset,
                        ..*lines
                    })
                });
                taken.map_err(|error| at_line(error, piece, position - first + 1))?;
            }
            Ok(())
        })
    }

    fn lines(
        &mut self,
        piece: &FileRange,
        end: LineEnd,
        progress: Progress<'_>,
        take: Take<'_>,
    ) -> Result<()> {
        let mut lines = open_lines(self.store, piece, &LineOptions::ended_by(end))?;
        let (mut told, mut before, mut taken) = (0, 0, 0);
        let mut begins = piece.offset == 0 && end == LineEnd::Lf; // NULs are no sign of an encoding where they end lines
        loop {
            let offset = lines.offset();
            let Some(some) = lines.next_lines(LINES_BYTES)? else {
                break;
            };
            if std::mem::take(&mut begins)
                && let Some(encoding) = encoding_of(some)
            {
                let counters = &mut self.report.counters;
                let group = counters.entry(NOT_DECODED.into()).or_default();
                group.insert(format!("{} looks like {encoding}", piece.file.path), 1);
            }
            take(&Records {
                input: self.input,
                bytes: some,
                end,
                fields: &[],
                code: &[],
                position: self.position,
                file: self.file,
                offset,
            })?;
            self.position += lines.lines() - taken;
            taken = lines.lines();
            if lines.consumed() - before >= BYTES_A_BEAT {
                before = lines.consumed();
                // Of a compressed file nothing is told, but it is asked whether it should stop.
                let done = if lines.is_decoded() { 0 } else { before };
                progress(done - told)?;
                told = done;
            }
        }
        self.report.records_in += lines.lines();
        // A compressed file was decoded to its end.
        let done = if lines.is_decoded() {
            piece.bytes
        } else {
            lines.consumed()
        };
        progress(done - told)?;
        self.report.bytes_in += done;
        Ok(())
    }

    fn rows(
        &mut self,
        piece: &FileRange,
        (table, progress): (&TableKeys, Progress<'_>),
        take: Take<'_>,
    ) -> Result<()> {
        let file = input_file(self.store, &piece.file)?;
        let codec = match piece.coding() {
            Coding::Plain => None,
            Coding::Coded(codec) => Some(codec),
            Coding::Detect => codec_of(self.store, &file)?,
        };
        let range = InputRange {
            file: 0,
            offset: piece.offset,
            bytes: piece.bytes,
        };
        let source = match codec {
            Some(codec) => InOrder::Decoded(&file, codec),
            None => InOrder::Range(&file, range),
        };
        let first = match piece.offset {
            0 => First::of(table, TableSource::File(0)),
            _ => First::Row,
        };
        let mut rows = TakeRows {
            take,
            input: self.input,
            file: self.file,
            position: self.position,
            row_bytes: self.row_bytes,
            progress,
        };
        let mut reader = RowReader::new(table)?;
        reader.read(self.store, source, first, &mut rows)?;
        let position = rows.position;
        self.leave_out(&reader.left_out);
        self.report.records_in += position - self.position;
        self.report.bytes_in += piece.bytes;
        self.position = position;
        Ok(())
    }

    /// Tells of rows that are no rows of the table.
    fn leave_out(&mut self, left_out: &LeftOut) {
        self.report.skipped += left_out.bad_rows;
        if left_out.bad_rows > 0 {
            let named = self.report.counters.entry(LEFT_OUT.into()).or_default();
            named.extend(left_out.first.iter().map(|row| (row.clone(), 1)));
        }
    }
}

/// Hands on rows as records.
struct TakeRows<'t, 'p> {
    take: Take<'t>,
    input: usize,
    file: u32,
    position: u64,
    row_bytes: usize,
    progress: Progress<'p>,
}

impl<'p> RowSink<'p> for TakeRows<'_, 'p> {
    fn row(&mut self, row: &TableRow<'_>) -> Result<()> {
        let position = self.position;
        self.position += 1;
        let taken = (self.take)(&Records {
            input: self.input,
            bytes: row.bytes,
            end: LineEnd::Lf,
            fields: row.fields,
            code: row.code,
            position,
            file: self.file,
            offset: row.offset,
        });
        taken.map_err(|error| match error.kind() {
            Kind::BadInput => (row.locate)(error),
            _ => error,
        })
    }

    fn progress(&self) -> Progress<'p> {
        self.progress
    }

    fn room(&self) -> (usize, usize) {
        let block = (self.row_bytes / 4).clamp(BLOCK_BYTES_MIN, BLOCK_BYTES_MAX);
        (block, self.row_bytes)
    }

    fn too_long(&self, bytes: u64) -> Error {
        let message = format!(
            "a row has {bytes} bytes, and a worker has room for {}",
            self.row_bytes
        );
        Error::new(Kind::Memory, "read the input", message).advise_options(
            "give more {}, or fewer {}",
            [JobOption::Memory.named(), JobOption::Workers.named()],
        )
    }
}

/// Whether an error follows from what a record is: wrong, or too long.
fn is_of_record(error: &Error) -> bool {
    matches!(error.kind(), Kind::BadInput | Kind::Memory)
}

/// Says in which file, and from where on, such lines are as came many at once.
#[cold]
fn among(error: Error, piece: &FileRange, offset: u64) -> Error {
    match is_of_record(&error) {
        true => error
            .with("file", piece.file.path.to_string())
            .with("from offset", offset),
        false => error,
    }
}

/// Says in which file a wrong line is: its number where the piece begins with the file, else that behind the piece's beginning.
fn at_line(error: Error, piece: &FileRange, line: u64) -> Error {
    if !is_of_record(&error) {
        return error;
    }
    let error = error
        .with("file", piece.file.path.to_string())
        .with("line", line);
    match piece.offset {
        0 => error,
        offset => error.with("counted from offset", offset),
    }
}

/// The error of a line that is no JSON object.
#[cold]
fn no_object(what: &str) -> Error {
    let message = format!("the line is not a JSON object: {what}");
    Error::new(Kind::BadInput, "read the input", message)
        .advise("correct the line, or leave it out: grep '^{' FILE")
}

/// A file of a split, as it is in its store.
fn input_file(store: &Stores, file: &SplitFile) -> Result<InputFile> {
    let stat = match &file.version {
        Some(version) => Some(version.stat(file.bytes)),
        None => store.stat(&file.path)?,
    };
    let gone = || Error::new(Kind::NotFound, "read the input", "it is gone");
    Ok(InputFile {
        stat: stat.ok_or_else(|| gone().with_path(file.path.as_typed()))?,
        path: file.path.clone(),
    })
}

/// Where the fields of a line lie, which may have its end: between separators, or, without one, between blanks.
fn fields_of_line(line: &[u8], separator: Option<u8>, fields: &mut Vec<Range<usize>>) {
    fields.clear();
    let mut start = 0;
    match separator {
        Some(separator) => {
            for at in memchr::memchr_iter(separator, line) {
                fields.push(start..at);
                start = at + 1;
            }
            fields.push(start..line.len());
        }
        None => {
            let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n'); // LF is in lines that NUL ends
            while let Some(begin) = line[start..].iter().position(|byte| !is_blank(byte)) {
                let begin = start + begin;
                let length = line[begin..].iter().position(is_blank);
                let end = length.map_or(line.len(), |length| begin + length);
                fields.push(begin..end);
                start = end;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(line: &str, separator: Option<u8>) -> Vec<&str> {
        let mut found = Vec::new();
        fields_of_line(line.as_bytes(), separator, &mut found);
        found.into_iter().map(|field| &line[field]).collect()
    }

    #[test]
    fn fields_lie_between_separators_or_blanks() {
        assert_eq!(fields("a,,b,", Some(b',')), ["a", "", "b", ""]);
        assert_eq!(fields("", Some(b',')), [""]);
        assert_eq!(fields("  a \t bc ", None), ["a", "bc"]);
        assert_eq!(fields(" ", None), [""; 0]);
    }
}

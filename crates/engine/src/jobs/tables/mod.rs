//! Tables as jobs are asked for them: where the header ends, which columns are meant, where rows begin.

mod columns;
mod cuts;
mod fields;
mod header;
mod keys_asked;
mod object_writer;
mod ragged;
mod record_options;
mod requested_keys;
mod rows_asked;

pub(in crate::jobs) use self::columns::InputTable;
pub(in crate::jobs) use self::cuts::Starts;
pub(in crate::jobs) use self::fields::{FieldsAsked, RecordFields, RecordWriter};
pub(in crate::jobs) use self::header::{beginning, beginning_of_file, first_line};
pub(in crate::jobs) use self::keys_asked::KeysAsked;
pub(in crate::jobs) use self::object_writer::ObjectWriter;
pub(in crate::jobs) use self::ragged::Ragged;
pub(in crate::jobs) use self::record_options::{
    comment_option, json_lines, record_inputs, record_options, rows_of, zero_option,
};
pub(in crate::jobs) use self::requested_keys::{RequestedKey, asked_in_all, name_tables, wrong};
pub(in crate::jobs) use self::rows_asked::RowsAsked;

use std::os::unix::ffi::OsStrExt;

use gristmill_base::error::Result;
use gristmill_base::names::name_of;
use gristmill_base::record::comment::CommentMark;
use gristmill_base::record::objects::ObjectKeys;
use gristmill_base::record::row_ends::RowEnds;
use gristmill_base::record::table_keys::TableKeys;
use gristmill_storage::lines::LineEnd;

/// How the rows of a table are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::jobs) struct RowsForm {
    /// The byte between fields.
    pub(in crate::jobs) delimiter: u8,
    /// Whether the first row of a file is a row like all others.
    pub(in crate::jobs) no_header: bool,
    /// How many rows may be left out as they have another number of fields.
    pub(in crate::jobs) skip_bad: u64,
    /// Whether rows with fewer fields are filled with empty ones.
    pub(in crate::jobs) pads: bool,
    /// What lines begin with that are no rows.
    pub(in crate::jobs) comment: Option<CommentMark>,
}

impl RowsForm {
    /// That of a table.
    fn of(table: &TableKeys) -> Self {
        RowsForm {
            delimiter: table.delimiter,
            no_header: table.no_header,
            skip_bad: table.skip_bad,
            pads: table.pads,
            comment: table.comment,
        }
    }

    /// Finds the ends of rows, from the beginning of a file on.
    fn row_ends(self) -> RowEnds {
        RowEnds::of_file(self.delimiter).with_comment(self.comment)
    }
}

/// What the records of a native job are.
#[derive(Debug)]
pub(in crate::jobs) enum RecordsAsked {
    /// Lines, many at once.
    Lines(LineEnd),
    /// Lines with fields.
    Fields(LineEnd, Option<u8>),
    /// Rows of tables: how those of each input are read, with the keys that they are encoded by.
    Rows(Vec<(RowsForm, Vec<RequestedKey>)>),
    /// Lines that are JSON objects: how those of each input are read.
    Objects(Vec<ObjectKeys>),
}

impl RecordsAsked {
    /// What ends lines.
    pub(in crate::jobs) fn line_end(&self) -> LineEnd {
        match self {
            RecordsAsked::Lines(end) | RecordsAsked::Fields(end, _) => *end,
            RecordsAsked::Rows(_) | RecordsAsked::Objects(_) => LineEnd::Lf,
        }
    }
}

/// The byte between the fields of a table, which is said to be CSV or TSV, and may have a separator of its own.
///
/// # Errors
/// It is said to be both, or the separator is none.
pub(in crate::jobs) fn delimiter_of(
    (csv, tsv): (bool, bool),
    separator: Option<&str>,
) -> Result<u8> {
    if csv && tsv {
        return Err(wrong("csv and tsv exclude each other").advise("give one of them"));
    }
    let Some(given) = separator else {
        return Ok(if tsv { b'\t' } else { b',' });
    };
    match name_of(given.to_owned()).as_bytes() {
        b"\\t" => Ok(b'\t'),
        [byte] if !b"\"\r\n".contains(byte) => Ok(*byte),
        _ => Err(
            wrong(format!("{given:?} does not separate the fields of a table"))
                .advise("give one byte, which is neither a quote nor the end of a line: -t ';'"),
        ),
    }
}

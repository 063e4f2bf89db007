//! Records with fields, as native jobs are asked for them: rows of CSV or TSV, or lines with a byte or blanks between fields.
//!
//! ```text
//!   --csv --by city,#2     columns by name, or by number from 1 on
//!   -t ':' --by 1,2        fields by number
//!   --jsonl --by user.id   values of JSON objects, by paths
//! ```

use std::os::unix::ffi::OsStrExt;

use super::requested_keys::wrong;
use super::rows_asked::no_zeros;
use super::{InputTable, RecordsAsked, RequestedKey, RowsAsked, RowsForm};
use gristmill_base::error::{Error, Result};
use gristmill_base::names::name_of;
use gristmill_base::record::comment::{CommentMark, is_comment};
use gristmill_base::record::objects::{ObjectKeys, ObjectPaths, text_of};
use gristmill_base::record::table::{fields_of, value_of, write_field, write_quoted};
use gristmill_base::record::table_keys::ColumnKey;
use gristmill_base::value::ValueWriter;
use gristmill_storage::lines::LineEnd;
use gristmill_tasks::task::Records;

/// What stands between fields that were told by blanks, where they are written again.
const BETWEEN: u8 = b'\t';

/// The options of a command that say what a record is.
#[derive(Debug, Clone, Copy)]
pub(in crate::jobs) struct FieldsAsked<'a> {
    pub(in crate::jobs) rows: RowsAsked<'a>,
    /// Where lines are JSON objects: the paths that are columns.
    pub(in crate::jobs) objects: Option<&'a [String]>,
}

impl<'a> FieldsAsked<'a> {
    /// The same of a command that may read JSON objects, and then has these columns beside its keys.
    pub(in crate::jobs) fn of_objects(self, jsonl: bool, columns: &'a [String]) -> Self {
        FieldsAsked {
            objects: jsonl.then_some(columns),
            ..self
        }
    }

    /// How so many inputs are read, whose rows have these keys.
    ///
    /// # Errors
    /// The options do not go together.
    pub(in crate::jobs) fn records(
        self,
        inputs: usize,
        keys: Vec<RequestedKey>,
    ) -> Result<RecordsAsked> {
        if let Some(columns) = self.objects {
            self.form()?;
            if keys.iter().any(|key| key.name.is_empty()) {
                return Err(wrong("keys of JSON objects are paths, and none is given")
                    .advise("give one, such as user.id; to compare whole lines leave jsonl out"));
            }
            return Ok(RecordsAsked::Objects(vec![
                objects_of(columns, keys);
                inputs
            ]));
        }
        Ok(match self.form()? {
            Some(form) => RecordsAsked::Rows(vec![(form, keys); inputs]),
            None => RecordsAsked::Fields(self.line_end(), self.separator_byte()?),
        })
    }

    /// The same where no field is asked for: lines come many at once.
    ///
    /// # Errors
    /// The options do not go together.
    pub(in crate::jobs) fn whole_records(self, inputs: usize) -> Result<RecordsAsked> {
        if !self.rows.csv && !self.rows.tsv && self.rows.separator.is_some() {
            return Err(
                wrong("field_separator is for fields, and these lines are taken whole")
                    .advise("leave it out, or say that the input is csv or tsv"),
            );
        }
        Ok(match self.records(inputs, Vec::new())? {
            RecordsAsked::Fields(..) | RecordsAsked::Objects(_) => {
                RecordsAsked::Lines(self.line_end())
            }
            asked => asked,
        })
    }

    fn form(self) -> Result<Option<RowsForm>> {
        if self.objects.is_some()
            && (self.rows.csv || self.rows.tsv || self.rows.separator.is_some())
        {
            return Err(wrong("jsonl excludes csv, tsv and field_separator")
                .of_option("jsonl")
                .advise("give one of them"));
        }
        if self.objects.is_some() && self.rows.zero_terminated {
            return Err(no_zeros("JSON objects end with LF"));
        }
        self.rows.form()
    }

    /// What ends lines.
    pub(in crate::jobs) fn line_end(self) -> LineEnd {
        self.rows.line_end()
    }

    /// The byte between fields of lines; `None`: blanks.
    fn separator_byte(self) -> Result<Option<u8>> {
        let Some(given) = self.rows.separator else {
            return Ok(None);
        };
        let end = self.line_end().byte();
        match name_of(given.to_owned()).as_bytes() {
            b"\\t" => Ok(Some(b'\t')),
            b"\\0" if end != 0 => Ok(Some(0)),
            [byte] if *byte != end => Ok(Some(*byte)),
            _ => Err(wrong(format!("{given:?} does not separate fields"))
                .advise("give one byte: -t ':', or \\t for a tab")),
        }
    }

    /// What is known of the fields of an input: its table, if it is one.
    ///
    /// # Errors
    /// The options do not go together.
    pub(in crate::jobs) fn fields(self, table: Option<&InputTable>) -> Result<RecordFields> {
        Ok(match self.form()? {
            None if self.objects.is_some() => {
                RecordFields::Objects(split_names(self.objects.unwrap_or_default()))
            }
            Some(_) => RecordFields::Table(table.cloned().map(Box::new)),
            None => RecordFields::Lines(self.line_end(), self.separator_byte()?),
        })
    }
}

/// The fields of the records of an input.
#[derive(Debug)]
pub(in crate::jobs) enum RecordFields {
    /// Of rows of a table; nothing is known of it before its header was read.
    Table(Option<Box<InputTable>>),
    /// Of lines, with what ends lines, and what stands between fields.
    Lines(LineEnd, Option<u8>),
    /// Of JSON objects: the paths that are columns.
    Objects(Vec<Vec<u8>>),
}

impl RecordFields {
    /// The numbers of the columns that some words name, each of which may name several, from 0 on.
    ///
    /// # Errors
    /// There is no such column.
    pub(in crate::jobs) fn columns(&self, words: &[String]) -> Result<Vec<usize>> {
        let names = split_names(words);
        names.iter().map(|name| self.column(name)).collect()
    }

    /// The number of a column, from 0 on.
    ///
    /// # Errors
    /// There is none of this name.
    pub(in crate::jobs) fn column(&self, name: &[u8]) -> Result<usize> {
        match self {
            RecordFields::Table(Some(table)) if table.keys.columns > 0 => table.column(name),
            RecordFields::Table(_) => Ok(0), // there are no rows
            RecordFields::Objects(paths) => {
                let found = paths.iter().position(|path| path == name);
                found.ok_or_else(|| Error::bug("find a column", "its path was not asked for"))
            }
            RecordFields::Lines(..) => {
                let text = String::from_utf8_lossy(name);
                let number = text.strip_prefix('#').unwrap_or(&text).parse::<usize>();
                let number = number.ok().filter(|number| *number > 0);
                number.map(|number| number - 1).ok_or_else(|| {
                    wrong(format!("{text:?} is not the number of a field")).advise(
                        "give numbers from 1 on; for names of columns say that the input is csv or tsv",
                    )
                })
            }
        }
    }

    /// The name of a column, or its path; `None` where columns have none.
    pub(in crate::jobs) fn name(&self, column: usize) -> Option<&[u8]> {
        match self {
            RecordFields::Table(Some(table)) => table.names.get(column).map(Vec::as_slice),
            RecordFields::Objects(paths) => paths.get(column).map(Vec::as_slice),
            RecordFields::Table(None) | RecordFields::Lines(..) => None,
        }
    }

    /// Where a column is, for people: its path, or its number from 1 on.
    pub(in crate::jobs) fn place(&self, column: usize) -> String {
        match self {
            RecordFields::Objects(paths) => {
                String::from_utf8_lossy(paths.get(column).map_or(&[], Vec::as_slice)).into_owned()
            }
            RecordFields::Table(_) | RecordFields::Lines(..) => format!("#{}", column + 1),
        }
    }

    /// How many columns there are; 0 where that differs from record to record, or there is no record.
    pub(in crate::jobs) fn width(&self) -> usize {
        match self {
            RecordFields::Table(Some(table)) => table.keys.columns,
            RecordFields::Table(None) | RecordFields::Lines(..) | RecordFields::Objects(_) => 0,
        }
    }

    /// Whether the output has a header.
    pub(in crate::jobs) fn has_header(&self) -> bool {
        matches!(self, RecordFields::Table(Some(table)) if !table.names.is_empty())
    }

    /// What each part of whole rows begins with: the header, as it was found first, with its end.
    pub(in crate::jobs) fn header(&self) -> Vec<u8> {
        match self {
            RecordFields::Table(Some(table)) => table.header_row(),
            RecordFields::Table(None) | RecordFields::Lines(..) | RecordFields::Objects(_) => {
                Vec::new()
            }
        }
    }

    /// A field of a record as it stands; empty where it has not so many.
    #[inline]
    pub(in crate::jobs) fn as_written<'a>(record: &Records<'a>, column: usize) -> &'a [u8] {
        let field = record.fields.get(column).cloned().unwrap_or_default();
        record.bytes.get(field).unwrap_or_default()
    }

    /// What a field of a record says; empty where it has not so many. It is put together in `room` where it does not lie in one
    /// piece.
    #[inline]
    pub(in crate::jobs) fn value<'a>(
        &self,
        record: &Records<'a>,
        column: usize,
        room: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        let field = Self::as_written(record, column);
        match self {
            RecordFields::Table(_) => value_of(field, room),
            RecordFields::Lines(..) => field,
            RecordFields::Objects(_) => text_of(field, room),
        }
    }

    /// Writes the key that some columns of a record make, in the place of the one before: a tuple of what they say, as bytes.
    ///
    /// # Errors
    /// It is nested too deep: a defect of Gristmill.
    #[inline]
    pub(in crate::jobs) fn write_key(
        &self,
        record: &Records<'_>,
        columns: &[usize],
        room: &mut Vec<u8>,
        key: &mut Vec<u8>,
    ) -> Result<()> {
        key.clear();
        let mut tuple = ValueWriter::new(key);
        tuple.begin_tuple()?;
        for column in columns {
            tuple.bytes(self.value(record, *column, room));
        }
        tuple.end_tuple();
        Ok(())
    }

    /// What writes records with such fields.
    pub(in crate::jobs) fn writer(&self) -> RecordWriter {
        match self {
            RecordFields::Table(table) => {
                let keys = table.as_ref().map(|table| &table.keys);
                RecordWriter {
                    delimiter: keys.map_or(b',', |keys| keys.delimiter),
                    quotes: true,
                    comment: keys.and_then(|keys| keys.comment),
                    ending: keys.map_or_else(|| "\n".to_owned(), |keys| keys.ending.clone()),
                    fields: 0,
                }
            }
            RecordFields::Lines(end, separator) => {
                RecordWriter::of_lines(*end, separator.unwrap_or(BETWEEN))
            }
            RecordFields::Objects(_) => RecordWriter::of_lines(LineEnd::Lf, BETWEEN),
        }
    }
}

/// Writes records, field by field.
#[derive(Debug, Clone)]
pub(in crate::jobs) struct RecordWriter {
    delimiter: u8,
    quotes: bool,
    /// What comments begin with: a record must not.
    comment: Option<CommentMark>,
    ending: String,
    /// Fields of the record so far.
    fields: usize,
}

impl RecordWriter {
    fn of_lines(end: LineEnd, delimiter: u8) -> Self {
        RecordWriter {
            delimiter,
            quotes: false,
            comment: None,
            ending: end.text().to_owned(),
            fields: 0,
        }
    }

    /// The byte between fields.
    pub(in crate::jobs) fn delimiter(&self) -> u8 {
        self.delimiter
    }

    /// Writes the next field.
    pub(in crate::jobs) fn field(&mut self, value: &[u8], out: &mut Vec<u8>) {
        match self.fields {
            0 => self.first(value, out),
            _ => self.behind(value, out),
        }
        self.fields += 1;
    }

    /// Ends the record. One of a single empty field has quotes: without them it would be no row.
    pub(in crate::jobs) fn end(&mut self, out: &mut Vec<u8>) {
        if self.quotes && self.fields == 1 && (out.is_empty() || out.ends_with(b"\n")) {
            out.extend_from_slice(b"\"\"");
        }
        self.fields = 0;
        out.extend_from_slice(self.ending.as_bytes());
    }

    /// Writes a field that a record begins with: for records that are put together of pieces.
    pub(in crate::jobs) fn first(&self, value: &[u8], out: &mut Vec<u8>) {
        match is_comment(value, self.comment, false) {
            true => write_quoted(value, out),
            false => self.cell(value, out),
        }
    }

    /// Writes a field behind others.
    pub(in crate::jobs) fn behind(&self, value: &[u8], out: &mut Vec<u8>) {
        out.push(self.delimiter);
        self.cell(value, out);
    }

    fn cell(&self, value: &[u8], out: &mut Vec<u8>) {
        match self.quotes {
            true => write_field(value, self.delimiter, out),
            false => out.extend_from_slice(value),
        }
    }

    /// Ends the record that is all of `row`.
    pub(in crate::jobs) fn end_row(&self, row: &mut Vec<u8>) {
        if self.quotes && row.is_empty() {
            row.extend_from_slice(b"\"\"");
        }
        row.extend_from_slice(self.ending.as_bytes());
    }
}

/// How objects are read whose columns these words name, and behind them the keys.
fn objects_of(columns: &[String], keys: Vec<RequestedKey>) -> ObjectKeys {
    let mut paths = split_names(columns);
    let keys = keys.into_iter().map(|key| {
        paths.push(key.name);
        ColumnKey {
            column: paths.len() - 1,
            letters: key.letters,
        }
    });
    let keys = keys.collect();
    let paths: Vec<_> = paths
        .iter()
        .map(|path| String::from_utf8_lossy(path))
        .collect();
    ObjectKeys {
        paths: ObjectPaths::new(paths.iter().map(|path| &**path)),
        keys,
    }
}

/// The names in some words, each of which may have several with commas between them; quotes hold a comma together.
fn split_names(words: &[String]) -> Vec<Vec<u8>> {
    let (mut names, mut fields, mut room) = (Vec::new(), Vec::new(), Vec::new());
    for given in words {
        let given = name_of(given.clone());
        let given = given.as_bytes();
        fields_of(given, b',', &mut fields);
        for field in &fields {
            let field = given.get(field.clone()).unwrap_or_default();
            names.push(value_of(field, &mut room).to_vec());
        }
    }
    names
}

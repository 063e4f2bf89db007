//! The keys of rows: which columns decide, in which order, as bytes that compare as the rows do.
//!
//! ```text
//!   price:desc,name ──▶ columns 2 (letters Nr), 0 ──▶ code of field 2, code of field 0
//! ```
//!
//! A field is compared as GNU sort compares a line: the codes are those of `gristmill_gnu_keys`. The header has no code, so that
//! it sorts before all rows.

use std::fmt;
use std::ops::Range;

use gristmill_gnu_keys::Keys;
use memchr::memchr;
use serde::{Deserialize, Serialize};

use super::comment::CommentMark;
use super::row_ends::RowEnds;
use super::table::{QUOTE, fields_of, plain_fields_of, value_of, without_end};
use crate::error::{Error, Kind, Result};

/// A column that decides, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnKey {
    /// Its number, from 0 on.
    pub column: usize,
    /// The letters for its order, as [`Keys::of_field`] has them.
    pub letters: String,
}

/// A place that rows come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TableSource {
    /// The input file of this number.
    File(usize),
    /// The input stream of this number.
    Stream(usize),
}

/// How the rows of a job are read and sorted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableKeys {
    /// The byte between fields.
    pub delimiter: u8,
    /// How many fields a row has.
    pub columns: usize,
    /// What decides, the first first.
    pub keys: Vec<ColumnKey>,
    /// How many rows of the job may be left out as they have another number of fields.
    pub skip_bad: u64,
    /// Whether rows with fewer fields are filled with empty ones.
    #[serde(default)]
    pub pads: bool,
    /// What lines begin with that are no rows.
    #[serde(default)]
    pub comment: Option<CommentMark>,
    /// What a last row gets that has no end.
    pub ending: String,
    /// The source whose header is kept.
    pub header: Option<TableSource>,
    /// Whether the first row of a file is a row like all others, and no header.
    pub no_header: bool,
}

impl TableKeys {
    /// Finds the ends of rows, from the beginning of a row on.
    pub fn row_ends(&self) -> RowEnds {
        RowEnds::new(self.delimiter).with_comment(self.comment)
    }

    /// Finds the ends of rows, from the beginning of a file on.
    pub fn row_ends_of_file(&self) -> RowEnds {
        RowEnds::of_file(self.delimiter).with_comment(self.comment)
    }

    /// What says how many fields a row has.
    pub fn first(&self) -> &'static str {
        if self.no_header {
            "first row"
        } else {
            "header"
        }
    }
}

/// A row that has not the fields of the header, or of the first row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadRow {
    /// How many it has.
    pub found: usize,
    /// How many it should have.
    pub columns: usize,
    /// By what: [`TableKeys::first`].
    pub by: &'static str,
}

impl fmt::Display for BadRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = |count: usize| match count {
            1 => "1 field".to_owned(),
            _ => format!("{count} fields"),
        };
        let (found, columns) = (fields(self.found), fields(self.columns));
        write!(f, "the row has {found}, and the {} has {columns}", self.by)
    }
}

/// Encodes rows.
#[derive(Debug)]
pub struct RowCodes {
    delimiter: u8,
    columns: usize,
    by: &'static str,
    orders: Vec<(usize, Keys)>,
    fields: Vec<Range<usize>>,
    /// Whether there are quotes in the row.
    is_quoted: bool,
    room: Vec<u8>,
}

impl RowCodes {
    /// What encodes rows of such a table.
    ///
    /// # Errors
    /// The letters of a key exclude each other.
    ///
    /// ```
    /// use gristmill_base::record::table_keys::{ColumnKey, RowCodes, TableKeys};
    /// let keys = TableKeys {
    ///     delimiter: b',',
    ///     columns: 2,
    ///     keys: vec![ColumnKey { column: 1, letters: "N".into() }],
    ///     skip_bad: 0,
    ///     pads: false,
    ///     comment: None,
    ///     ending: "\n".into(),
    ///     header: None,
    ///     no_header: false,
    /// };
    /// let mut codes = RowCodes::new(&keys)?;
    /// let mut code = |row: &[u8]| {
    ///     let mut code = Vec::new();
    ///     codes.encode(row, &mut code).map(|()| code)
    /// };
    /// assert!(code(b"a,\"9\"\r\n").unwrap() < code(b"b,1e1\n").unwrap());
    /// let error = code(b"a\n").unwrap_err();
    /// assert_eq!(error.to_string(), "the row has 1 field, and the header has 2 fields");
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    pub fn new(table: &TableKeys) -> Result<Self> {
        let order = |key: &ColumnKey| {
            let wrong = |error: gristmill_gnu_keys::Error| {
                Error::new(Kind::BadOption, "read the options", error.to_string())
            };
            Ok((key.column, Keys::of_field(&key.letters).map_err(wrong)?))
        };
        Ok(RowCodes {
            delimiter: table.delimiter,
            columns: table.columns,
            by: table.first(),
            orders: table.keys.iter().map(order).collect::<Result<_>>()?,
            fields: Vec::with_capacity(table.columns),
            is_quoted: false,
            room: Vec::new(),
        })
    }

    /// Appends the code of a row, which may have its end.
    ///
    /// # Errors
    /// It has more fields than there are columns, or fewer.
    pub fn encode(&mut self, row: &[u8], code: &mut Vec<u8>) -> Result<(), BadRow> {
        let row = without_end(row);
        self.is_quoted = memchr(QUOTE, row).is_some();
        if self.is_quoted {
            fields_of(row, self.delimiter, &mut self.fields);
        } else {
            plain_fields_of(row, self.delimiter, &mut self.fields);
        }
        if self.fields.len() != self.columns {
            return Err(BadRow {
                found: self.fields.len(),
                columns: self.columns,
                by: self.by,
            });
        }
        for (column, order) in &self.orders {
            let field = self.fields.get(*column).cloned().unwrap_or_default();
            let field = row.get(field).unwrap_or_default();
            order.encode(value_of(field, &mut self.room), code);
        }
        Ok(())
    }

    /// Whether there are quotes in the row that was encoded last: one without them is one line.
    pub fn is_quoted(&self) -> bool {
        self.is_quoted
    }

    /// Where the fields lie, with their quotes, of the row that was encoded last.
    pub fn fields(&self) -> &[Range<usize>] {
        &self.fields
    }
}

//! How the rows of a table are read, as options ask for it.

use std::os::unix::ffi::OsStrExt;

use super::{Ragged, RowsForm, delimiter_of, wrong};
use gristmill_base::error::{Error, Result};
use gristmill_base::names::name_of;
use gristmill_base::record::comment::{COMMENT_BYTES_MAX, CommentMark};
use gristmill_storage::lines::LineEnd;

/// The options that say whether the input is a table, and how its rows are read.
#[derive(Debug, Clone, Copy)]
pub(in crate::jobs) struct RowsAsked<'a> {
    pub(in crate::jobs) csv: bool,
    pub(in crate::jobs) tsv: bool,
    pub(in crate::jobs) separator: Option<&'a str>,
    pub(in crate::jobs) no_header: bool,
    pub(in crate::jobs) skip_bad: Option<usize>,
    pub(in crate::jobs) ragged: Ragged,
    pub(in crate::jobs) comment: Option<&'a str>,
    pub(in crate::jobs) zero_terminated: bool,
}

/// The error of records that NUL does not end.
pub(super) fn no_zeros(why: &str) -> Error {
    wrong(why)
        .of_option("zero_terminated")
        .advise("leave it out: it is for lines")
}

impl RowsAsked<'_> {
    /// How the rows are read; `None` where the input is lines.
    ///
    /// # Errors
    /// The options do not go together.
    pub(in crate::jobs) fn form(self) -> Result<Option<RowsForm>> {
        if !self.csv && !self.tsv {
            return self.check_lines().map(|()| None);
        }
        if self.zero_terminated {
            return Err(no_zeros("rows of a table do not end with NUL"));
        }
        let delimiter = delimiter_of((self.csv, self.tsv), self.separator)?;
        let (skip_bad, pads) = self.ragged.rows(self.skip_bad)?;
        Ok(Some(RowsForm {
            delimiter,
            no_header: self.no_header,
            skip_bad,
            pads,
            comment: self.comment_mark(delimiter)?,
        }))
    }

    /// What ends lines.
    pub(in crate::jobs) fn line_end(self) -> LineEnd {
        match self.zero_terminated {
            true => LineEnd::Nul,
            false => LineEnd::Lf,
        }
    }

    /// Refuses options of tables.
    fn check_lines(self) -> Result<()> {
        let given = [
            (
                self.skip_bad.is_some(),
                "skip_bad is for tables: lines are never bad",
            ),
            (
                self.no_header,
                "no_header is for tables: lines have no header",
            ),
            (
                self.ragged != Ragged::Error,
                "ragged is for tables: lines have any number of fields",
            ),
            (
                self.comment.is_some(),
                "comment is for tables: of lines grep -v leaves some out",
            ),
        ];
        match given.iter().find(|(is_given, _)| *is_given) {
            None => Ok(()),
            Some((_, why)) => {
                Err(wrong(*why).advise("leave it out, or say that the input is csv or tsv"))
            }
        }
    }

    /// What comments begin with.
    fn comment_mark(self, delimiter: u8) -> Result<Option<CommentMark>> {
        let Some(given) = self.comment else {
            return Ok(None);
        };
        let name = name_of(given.to_owned());
        let is_wrong = |byte: &u8| b"\"\r\n".contains(byte) || *byte == delimiter;
        match CommentMark::new(name.as_bytes()) {
            Some(mark) if !mark.as_bytes().iter().any(is_wrong) => Ok(Some(mark)),
            _ => Err(
                wrong(format!("comments of a table cannot begin with {given:?}"))
                    .of_option("comment")
                    .advise(format!(
                        "give at most {COMMENT_BYTES_MAX} bytes, such as # or //, without quotes and the byte between fields"
                    )),
            ),
        }
    }
}

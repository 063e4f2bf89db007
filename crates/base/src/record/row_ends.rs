//! Where the rows of a table end, in bytes that come in blocks; comments end like rows.
//!
//! ```text
//!   7,"a LF b" LF       one row: an LF in quotes ends nothing
//!   # don't, "x LF      a comment, where lines that begin with # are such: its quote opens nothing
//! ```

use memchr::{memchr, memchr2, memrchr};

use super::BYTE_ORDER_MARK;
use super::comment::CommentMark;
use super::table::QUOTE;

/// Finds the ends of rows in bytes that come in blocks.
///
/// ```
/// use gristmill_base::record::row_ends::RowEnds;
/// let mut ends = RowEnds::new(b',');
/// assert_eq!(ends.rest(b"1,\"two\n"), None);
/// assert!(ends.is_quoted());
/// assert_eq!(ends.rest(b"lines\"\r\n2,x\n"), Some(8));
/// assert_eq!(ends.rest(b"2,x\n"), Some(4));
/// ```
#[derive(Debug, Clone)]
pub struct RowEnds {
    delimiter: u8,
    /// What a line that is no row begins with.
    comment: Option<CommentMark>,
    state: QuoteState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QuoteState {
    /// At the beginning of a file, of whose byte order mark so many bytes were seen.
    Mark(usize),
    /// In a row of which so many bytes were seen, all of them as a comment begins.
    Begin(usize),
    /// In a comment, where quotes are like all else.
    Comment,
    /// Not in quotes; `fresh` where a field begins with the next byte.
    Outside { fresh: bool },
    /// In quotes.
    Inside,
    /// Behind a quote that was in quotes: it closes them, unless another one follows.
    Quote,
}

impl RowEnds {
    /// From the beginning of a row on.
    pub fn new(delimiter: u8) -> Self {
        RowEnds {
            delimiter,
            comment: None,
            state: QuoteState::Outside { fresh: true },
        }
    }

    /// From the beginning of a file on, which may have a byte order mark.
    ///
    /// ```
    /// use gristmill_base::record::row_ends::RowEnds;
    /// assert_eq!(RowEnds::of_file(b',').rest(b"\xef\xbb\xbf\"a\nb\"\n"), Some(9));
    /// ```
    pub fn of_file(delimiter: u8) -> Self {
        RowEnds {
            delimiter,
            comment: None,
            state: QuoteState::Mark(0),
        }
    }

    /// The same where lines that begin with this mark are comments, in which quotes open nothing.
    ///
    /// ```
    /// use gristmill_base::record::{comment::CommentMark, row_ends::RowEnds};
    /// let mut ends = RowEnds::new(b',').with_comment(CommentMark::new(b"#"));
    /// assert_eq!(ends.rest(b"#,\"two\n1,#\n"), Some(7));
    /// assert_eq!(ends.rest(b"1,#\n"), Some(4));
    /// ```
    #[must_use]
    pub fn with_comment(mut self, comment: Option<CommentMark>) -> Self {
        self.comment = comment;
        if comment.is_some() && self.state == (QuoteState::Outside { fresh: true }) {
            self.state = QuoteState::Begin(0);
        }
        self
    }

    /// The state at the beginning of a row.
    #[inline]
    fn begin(&self) -> QuoteState {
        match self.comment {
            None => QuoteState::Outside { fresh: true },
            Some(_) => QuoteState::Begin(0),
        }
    }

    /// The state behind the first bytes of a row, in which no quote is.
    fn behind(&self, row: &[u8]) -> QuoteState {
        let Some(mark) = self.comment.as_ref().map(CommentMark::as_bytes) else {
            return self.fresh_behind(row);
        };
        if row.starts_with(mark) {
            QuoteState::Comment
        } else if mark.starts_with(row) {
            QuoteState::Begin(row.len())
        } else {
            self.fresh_behind(row)
        }
    }

    /// The same of a row that is no comment.
    fn fresh_behind(&self, row: &[u8]) -> QuoteState {
        QuoteState::Outside {
            fresh: row.last().is_none_or(|last| *last == self.delimiter),
        }
    }

    /// How many bytes of `more`, which follow those of the call before, belong to the row; `None` where it goes on.
    #[inline]
    pub fn rest(&mut self, more: &[u8]) -> Option<usize> {
        let mut at = 0;
        loop {
            let rest = more.get(at..).unwrap_or_default();
            match self.state {
                QuoteState::Mark(seen) => {
                    let mark = BYTE_ORDER_MARK.get(seen);
                    self.state = if mark == Some(rest.first()?) {
                        at += 1;
                        QuoteState::Mark(seen + 1)
                    } else {
                        match mark.is_none() {
                            true => self.begin(),
                            false => self.behind(BYTE_ORDER_MARK.get(..seen).unwrap_or_default()),
                        }
                    };
                }
                QuoteState::Begin(seen) => {
                    let first = *rest.first()?;
                    let mark = self.comment.as_ref().map_or(&[][..], CommentMark::as_bytes);
                    let is_next = mark.get(seen) == Some(&first);
                    at += usize::from(is_next);
                    self.state = match (is_next, seen + 1 == mark.len()) {
                        (true, true) => QuoteState::Comment,
                        (true, false) => QuoteState::Begin(seen + 1),
                        (false, _) => QuoteState::Outside { fresh: seen == 0 },
                    };
                }
                QuoteState::Comment => {
                    at += memchr(b'\n', rest)? + 1;
                    self.state = self.begin();
                    return Some(at);
                }
                QuoteState::Outside { fresh } => {
                    let Some(found) = memchr2(QUOTE, b'\n', rest) else {
                        self.settle(rest);
                        return None;
                    };
                    let begins = match found {
                        0 => fresh,
                        _ => rest.get(found - 1) == Some(&self.delimiter),
                    };
                    at += found + 1;
                    if rest.get(found) == Some(&b'\n') {
                        self.state = self.begin();
                        return Some(at);
                    }
                    self.state = if begins {
                        QuoteState::Inside
                    } else {
                        QuoteState::Outside { fresh: false }
                    };
                }
                QuoteState::Inside => {
                    at += memchr(QUOTE, rest)? + 1;
                    self.state = QuoteState::Quote;
                }
                QuoteState::Quote => {
                    self.state = match rest.first()? {
                        &QUOTE => {
                            at += 1;
                            QuoteState::Inside
                        }
                        _ => QuoteState::Outside { fresh: false },
                    };
                }
            }
        }
    }

    /// Passes over the bytes of `block` before its first quote, outside of quotes; gives how many. Rows may end in them.
    ///
    /// ```
    /// use gristmill_base::record::row_ends::RowEnds;
    /// let mut ends = RowEnds::new(b',');
    /// assert_eq!((ends.pass_over(b"1,2\n3,\"4"), ends.pass_over(b"\"4\n\"\n")), (6, 0));
    /// assert_eq!(ends.rest(b"\"4\n\"\n"), Some(5));
    /// ```
    pub fn pass_over(&mut self, block: &[u8]) -> usize {
        if !matches!(
            self.state,
            QuoteState::Outside { .. } | QuoteState::Begin(_)
        ) {
            return 0;
        }
        let plain = memchr(QUOTE, block).unwrap_or(block.len());
        self.settle(block.get(..plain).unwrap_or_default());
        plain
    }

    /// Whether a quote is open.
    pub fn is_quoted(&self) -> bool {
        self.state == QuoteState::Inside
    }

    /// Behind `bytes` without quotes, outside of quotes.
    fn settle(&mut self, bytes: &[u8]) {
        let Some(last) = bytes.last() else { return };
        self.state = match (memrchr(b'\n', bytes), self.state) {
            (Some(end), _) => self.behind(bytes.get(end + 1..).unwrap_or_default()),
            (None, QuoteState::Begin(0)) => self.behind(bytes),
            (None, QuoteState::Begin(seen)) => self.behind_more(seen, bytes),
            (None, _) => QuoteState::Outside {
                fresh: *last == self.delimiter,
            },
        };
    }

    /// The state behind the first bytes of a row of which so many were seen as a comment begins.
    #[cold]
    fn behind_more(&self, seen: usize, bytes: &[u8]) -> QuoteState {
        let mark = self.comment.as_ref().map_or(&[][..], CommentMark::as_bytes);
        let seen = mark.get(..seen).unwrap_or_default();
        self.behind(&[seen, bytes].concat())
    }
}

//! Where the rows of a table end, in bytes that come in blocks; comments end like rows.
//!
//! ```text
//!   7,"a LF b" LF       one row: an LF in quotes ends nothing
//!   # don't, "x LF      a comment, where lines that begin with # are such: its quote opens nothing
//! ```

use memchr::{memchr, memchr2, memrchr};

use super::BYTE_ORDER_MARK;
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
    comment: Option<u8>,
    state: QuoteState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QuoteState {
    /// At the beginning of a file, of whose byte order mark so many bytes were seen.
    Mark(usize),
    /// At the beginning of a row, which may be a comment.
    Begin,
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

    /// The same where lines that begin with this byte are comments, in which quotes open nothing.
    ///
    /// ```
    /// use gristmill_base::record::row_ends::RowEnds;
    /// let mut ends = RowEnds::new(b',').with_comment(Some(b'#'));
    /// assert_eq!(ends.rest(b"#,\"two\n1,#\n"), Some(7));
    /// assert_eq!(ends.rest(b"1,#\n"), Some(4));
    /// ```
    #[must_use]
    pub fn with_comment(mut self, comment: Option<u8>) -> Self {
        self.comment = comment;
        if comment.is_some() && self.state == (QuoteState::Outside { fresh: true }) {
            self.state = QuoteState::Begin;
        }
        self
    }

    /// The state at the beginning of a row.
    #[inline]
    fn begin(&self) -> QuoteState {
        match self.comment {
            None => QuoteState::Outside { fresh: true },
            Some(_) => QuoteState::Begin,
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
                        match seen == 0 || mark.is_none() {
                            true => self.begin(),
                            false => QuoteState::Outside { fresh: false },
                        }
                    };
                }
                QuoteState::Begin => {
                    let first = rest.first()?;
                    self.state = match self.comment == Some(*first) {
                        true => QuoteState::Comment,
                        false => QuoteState::Outside { fresh: true },
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
        if !matches!(self.state, QuoteState::Outside { .. } | QuoteState::Begin) {
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
        let fresh = *last == self.delimiter || *last == b'\n';
        let mut state = QuoteState::Outside { fresh };
        if self.comment.is_some() {
            let row = match memrchr(b'\n', bytes) {
                Some(end) => bytes.get(end + 1..),
                None => (self.state == QuoteState::Begin).then_some(bytes),
            };
            match row.map(<[u8]>::first) {
                Some(None) => state = QuoteState::Begin,
                Some(first) if first == self.comment.as_ref() => state = QuoteState::Comment,
                _ => {}
            }
        }
        self.state = state;
    }
}

/// Whether a row is a comment: it begins with this byte, if it is first behind a byte order mark.
///
/// ```
/// use gristmill_base::record::row_ends::is_comment;
/// assert!(is_comment(b"\xef\xbb\xbf# a\n", Some(b'#'), true));
/// assert!(!is_comment(b"\"#\",1\n", Some(b'#'), false) && !is_comment(b"#\n", None, false));
/// ```
#[inline]
pub fn is_comment(row: &[u8], comment: Option<u8>, is_first: bool) -> bool {
    let Some(comment) = comment else { return false };
    let marked = row.strip_prefix(BYTE_ORDER_MARK);
    let row = marked.filter(|_| is_first).unwrap_or(row);
    row.first() == Some(&comment)
}

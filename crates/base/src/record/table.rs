//! Rows of tables (CSV, TSV): where a row ends, and what its fields are.
//!
//! ```text
//!   7,"a, ""b""
//!   c",x"y CR LF        one row of three fields: 7 │ a, "b" LF c │ x"y
//! ```
//!
//! The rules are those of RFC 4180, read as Python's `csv` module reads it: a quote opens a field only as its first
//! byte; inside, two quotes are one; what follows the closing quote belongs to the field. A row ends with LF or CR LF outside
//! quotes. A CR anywhere else is a byte of its field. So where rows end is known only from the beginning of a file on: the
//! same bytes are other rows inside and outside of quotes.
//!
//! Why not the `csv-core` crate: it gives fields without saying where in the file their row ends, takes a CR alone for an
//! end, and passes over empty lines. Rows are cut, counted and written here as they are.

use std::ops::Range;

use memchr::{memchr, memchr_iter, memchr2};

use super::BYTE_ORDER_MARK;

pub(super) const QUOTE: u8 = b'"';

/// Finds the ends of rows in bytes that come in blocks.
///
/// ```
/// use gristmill_base::record::table::RowEnds;
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
    /// use gristmill_base::record::table::RowEnds;
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
    /// use gristmill_base::record::table::RowEnds;
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
    /// use gristmill_base::record::table::RowEnds;
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
            let row = match memchr::memrchr(b'\n', bytes) {
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
/// use gristmill_base::record::table::is_comment;
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

/// A row without its end.
///
/// ```
/// use gristmill_base::record::table::without_end;
/// assert_eq!(without_end(b"1,2\r\n"), b"1,2");
/// assert_eq!(without_end(b"1,2"), b"1,2");
/// ```
pub fn without_end(row: &[u8]) -> &[u8] {
    let row = row.strip_suffix(b"\n").unwrap_or(row);
    row.strip_suffix(b"\r").unwrap_or(row)
}

/// Where the fields of a row lie, which comes without its end; with their quotes.
///
/// ```
/// use gristmill_base::record::table::fields_of;
/// let mut fields = Vec::new();
/// fields_of(b"7,\"a,b\",", b',', &mut fields);
/// assert_eq!(fields, [0..1, 2..7, 8..8]);
/// ```
pub fn fields_of(row: &[u8], delimiter: u8, fields: &mut Vec<Range<usize>>) {
    fields.clear();
    let (mut start, mut at) = (0, 0);
    loop {
        if row.get(at) == Some(&QUOTE) {
            at = behind_quotes(row, at + 1);
        }
        match memchr(delimiter, row.get(at..).unwrap_or_default()) {
            Some(found) => fields.push(start..at + found),
            None => return fields.push(start..row.len()),
        }
        start = fields.last().map_or(0, |field| field.end + 1);
        at = start;
    }
}

/// The same of a row that has no quotes.
#[inline]
pub(super) fn plain_fields_of(row: &[u8], delimiter: u8, fields: &mut Vec<Range<usize>>) {
    fields.clear();
    let mut start = 0;
    for end in memchr_iter(delimiter, row) {
        fields.push(start..end);
        start = end + 1;
    }
    fields.push(start..row.len());
}

/// Where the quotes close that are open at `at`.
fn behind_quotes(row: &[u8], mut at: usize) -> usize {
    while let Some(found) = memchr(QUOTE, row.get(at..).unwrap_or_default()) {
        at += found + 1;
        if row.get(at) != Some(&QUOTE) {
            return at;
        }
        at += 1;
    }
    row.len()
}

/// What a field says, without its quotes; put together in `room` where it does not lie in one piece.
///
/// ```
/// use gristmill_base::record::table::value_of;
/// let mut room = Vec::new();
/// assert_eq!(value_of(b"\"a \"\"b\"\"\"", &mut room), b"a \"b\"");
/// assert_eq!(value_of(b"5\" nail", &mut room), b"5\" nail");
/// ```
pub fn value_of<'a>(field: &'a [u8], room: &'a mut Vec<u8>) -> &'a [u8] {
    let Some(mut rest) = field.strip_prefix(&[QUOTE]) else {
        return field;
    };
    if let Some(end) = memchr(QUOTE, rest).filter(|end| end + 1 == rest.len()) {
        return rest.get(..end).unwrap_or_default();
    }
    room.clear();
    while let Some(at) = memchr(QUOTE, rest) {
        let (inside, after) = rest.split_at(at);
        room.extend_from_slice(inside);
        rest = after.get(1..).unwrap_or_default();
        match rest.strip_prefix(&[QUOTE]) {
            Some(after) => {
                room.push(QUOTE);
                rest = after;
            }
            None => break,
        }
    }
    room.extend_from_slice(rest);
    room
}

/// Writes what a field says, in quotes where that is needed: a delimiter, a quote or the end of a line is in it.
///
/// ```
/// use gristmill_base::record::table::write_field;
/// let mut row = Vec::new();
/// write_field(b"a \"b\"", b',', &mut row);
/// write_field(b"plain", b',', &mut row);
/// assert_eq!(row, b"\"a \"\"b\"\"\"plain");
/// ```
pub fn write_field(value: &[u8], delimiter: u8, out: &mut Vec<u8>) {
    let is_special = |byte: &u8| matches!(*byte, QUOTE | b'\n' | b'\r') || *byte == delimiter;
    match value.iter().any(is_special) {
        false => out.extend_from_slice(value),
        true => write_quoted(value, out),
    }
}

/// The same, always in quotes.
///
/// ```
/// use gristmill_base::record::table::write_quoted;
/// let mut row = Vec::new();
/// write_quoted(b"#", &mut row);
/// assert_eq!(row, b"\"#\"");
/// ```
pub fn write_quoted(value: &[u8], out: &mut Vec<u8>) {
    out.push(QUOTE);
    for piece in value.split_inclusive(|byte| *byte == QUOTE) {
        out.extend_from_slice(piece);
        if piece.ends_with(&[QUOTE]) {
            out.push(QUOTE);
        }
    }
    out.push(QUOTE);
}

/// The values of a file's first row, which comes as it is.
///
/// ```
/// use gristmill_base::record::table::names_in;
/// assert_eq!(names_in(b"\xef\xbb\xbf\"id\",name\r\n", b','), [&b"id"[..], b"name"]);
/// ```
pub fn names_in(header: &[u8], delimiter: u8) -> Vec<Vec<u8>> {
    let header = without_end(header);
    let header = header.strip_prefix(BYTE_ORDER_MARK).unwrap_or(header);
    let (mut fields, mut room) = (Vec::new(), Vec::new());
    fields_of(header, delimiter, &mut fields);
    let value = |field: Range<usize>| {
        let field = header.get(field).unwrap_or_default();
        value_of(field, &mut room).to_vec()
    };
    fields.into_iter().map(value).collect()
}

/// Whether there is a CR outside of quotes that ends no row: in a file whose lines end with CR alone, the first row has some.
///
/// ```
/// use gristmill_base::record::table::has_lone_cr;
/// assert!(has_lone_cr(b"id,v\r2,a\r", b',') && has_lone_cr(b"\"id\"\r\"2\"", b','));
/// assert!(!has_lone_cr(b"id,\"a\rb\",c\r\n", b','));
/// ```
pub fn has_lone_cr(row: &[u8], delimiter: u8) -> bool {
    let row = row.trim_ascii_end();
    let row = row.strip_prefix(BYTE_ORDER_MARK).unwrap_or(row);
    let mut fields = Vec::new();
    fields_of(row, delimiter, &mut fields);
    fields.into_iter().any(|field| {
        let field = row.get(field).unwrap_or_default();
        let plain = match field.first() {
            Some(&QUOTE) => behind_quotes(field, 1),
            _ => 0,
        };
        memchr(b'\r', field.get(plain..).unwrap_or_default()).is_some()
    })
}

/// Where in a row, whose quotes do not close, the last quote stands that opens some.
///
/// ```
/// use gristmill_base::record::table::open_quote;
/// assert_eq!(open_quote(b"\"a\",\"b\n", b','), 4);
/// ```
pub fn open_quote(row: &[u8], delimiter: u8) -> usize {
    let mut fields = Vec::new();
    fields_of(row, delimiter, &mut fields);
    fields.last().map_or(0, |field| field.start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Python's `csv`, byte by byte: rows as values, and where each ends.
    fn naive(text: &[u8]) -> Vec<(Vec<Vec<u8>>, usize)> {
        let (mut rows, mut row, mut value) = (Vec::new(), Vec::new(), Vec::new());
        let (mut quoted, mut begins, mut at) = (false, true, 0);
        while at < text.len() {
            let byte = text[at];
            at += 1;
            let next = text.get(at);
            if quoted {
                match (byte, next) {
                    (b'"', Some(b'"')) => {
                        value.push(b'"');
                        at += 1;
                    }
                    (b'"', _) => quoted = false,
                    _ => value.push(byte),
                }
                continue;
            }
            match byte {
                b'"' if begins => (quoted, begins) = (true, false),
                b',' => {
                    row.push(std::mem::take(&mut value));
                    begins = true;
                }
                b'\r' if next == Some(&b'\n') || next.is_none() => {}
                b'\n' => {
                    row.push(std::mem::take(&mut value));
                    rows.push((std::mem::take(&mut row), at));
                    begins = true;
                }
                _ => {
                    value.push(byte);
                    begins = false;
                }
            }
        }
        if text.last() != Some(&b'\n') && !text.is_empty() {
            row.push(value);
            rows.push((row, text.len()));
        }
        rows
    }

    fn text() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![
            3 => Just(b'"'), 2 => Just(b','), 2 => Just(b'\n'), 1 => Just(b'\r'), 2 => Just(b'a')
        ];
        let closed = |text: &Vec<u8>| {
            let mut ends = RowEnds::new(b',');
            let mut rest = &text[..];
            while let Some(length) = ends.rest(rest) {
                rest = &rest[length..];
            }
            !ends.is_quoted() && !rest.ends_with(b"\n")
        };
        proptest::collection::vec(byte, 0..40).prop_filter("a quote is open", closed)
    }

    proptest! {
        #[test]
        fn rows_are_those_of_python(text in text(), step in 1_usize..9) {
            let mut found = Vec::new();
            let mut ends = RowEnds::new(b',');
            let (mut start, mut fed) = (0, 0);
            while fed < text.len() {
                let to = (fed + step).min(text.len());
                match ends.rest(&text[fed..to]) {
                    Some(length) => {
                        fed += length;
                        found.push((names_in(&text[start..fed], b','), fed));
                        start = fed;
                    }
                    None => fed = to,
                }
            }
            if start < text.len() {
                found.push((names_in(&text[start..], b','), text.len()));
            }
            prop_assert_eq!(found, naive(&text));
        }

        #[test]
        fn what_is_passed_over_changes_no_row(text in text(), at in 0_usize..40) {
            let at = at.min(text.len());
            let (mut one, mut other) = (RowEnds::new(b','), RowEnds::new(b','));
            let mut before = &text[..at];
            while let Some(length) = one.rest(before) {
                before = &before[length..];
            }
            // All that can be passed over is, and the rest is looked at.
            let mut fed = 0;
            while fed < at {
                fed += match other.pass_over(&text[fed..at]) {
                    0 => other.rest(&text[fed..at]).unwrap_or(at - fed),
                    passed => passed,
                };
            }
            prop_assert_eq!(one.rest(&text[at..]), other.rest(&text[at..]));
        }
    }
}

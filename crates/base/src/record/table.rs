//! Rows of tables (CSV, TSV): what their fields are. Where a row ends: row_ends.rs.
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

use memchr::{memchr, memchr_iter};

use super::BYTE_ORDER_MARK;

pub(super) const QUOTE: u8 = b'"';

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
    use super::super::row_ends::RowEnds;
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

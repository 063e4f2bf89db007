//! Lines of fields: tabs between them, special characters escaped where the format is TSV.
//!
//! ```text
//!   tsv    tab, newline, carriage return and backslash within a field are \t, \n, \r and \\
//!   text   fields are as they are
//! ```
//!
//! A field is the content of text and of bytes, nothing for null, and digits for an integer. The elements of tuples are
//! fields of the line.

use std::io::Write;

/// The fields of one line, appended to a buffer.
#[derive(Debug)]
pub struct Fields<'a> {
    escape: bool,
    first: bool,
    out: &'a mut Vec<u8>,
}

impl<'a> Fields<'a> {
    /// A line that begins where `out` ends.
    ///
    /// ```
    /// use gristmill_base::value::fields::Fields;
    /// let mut line = Vec::new();
    /// let mut fields = Fields::new(true, &mut line);
    /// fields.bytes(b"a\tb");
    /// fields.null();
    /// fields.int(-7);
    /// assert_eq!(line, b"a\\tb\t\t-7");
    /// ```
    pub fn new(escape: bool, out: &'a mut Vec<u8>) -> Self {
        Fields {
            escape,
            first: true,
            out,
        }
    }

    /// A field of bytes.
    #[inline]
    pub fn bytes(&mut self, content: &[u8]) {
        self.separate();
        let mut rest = content;
        let special = |byte: &u8| matches!(byte, b'\\' | b'\t' | b'\n' | b'\r');
        while self.escape
            && let Some(at) = rest.iter().position(special)
        {
            self.out.extend_from_slice(&rest[..at]);
            self.out.extend_from_slice(match rest[at] {
                b'\t' => b"\\t",
                b'\n' => b"\\n",
                b'\r' => b"\\r",
                _ => b"\\\\",
            });
            rest = &rest[at + 1..];
        }
        self.out.extend_from_slice(rest);
    }

    /// A field of digits.
    #[inline]
    pub fn int(&mut self, int: i64) {
        self.separate();
        let written = write!(self.out, "{int}");
        debug_assert!(written.is_ok(), "memory takes all");
    }

    /// An empty field.
    #[inline]
    pub fn null(&mut self) {
        self.separate();
    }

    #[inline]
    fn separate(&mut self) {
        if !self.first {
            self.out.push(b'\t');
        }
        self.first = false;
    }
}

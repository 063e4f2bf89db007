//! What ends the lines of a text that lies in memory: LF, or NUL as with `sort -z`.

use memchr::memchr;
use serde::{Deserialize, Serialize};

/// The lines of a text, without the LF that ends each but perhaps the last.
///
/// ```
/// use gristmill_storage::lines::lines_of;
/// assert!(lines_of(b"a\n\nb").eq([&b"a"[..], b"", b"b"]));
/// assert!(lines_of(b"a\n").eq([b"a"]));
/// ```
pub fn lines_of(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    LineEnd::Lf.lines_of(text)
}

/// What ends each line of a text, but perhaps the last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineEnd {
    /// LF.
    #[default]
    Lf,
    /// NUL. An LF is a byte like any other, and a blank.
    Nul,
}

impl LineEnd {
    /// The byte.
    pub const fn byte(self) -> u8 {
        match self {
            LineEnd::Lf => b'\n',
            LineEnd::Nul => 0,
        }
    }

    /// The byte, as a text.
    pub const fn text(self) -> &'static str {
        match self {
            LineEnd::Lf => "\n",
            LineEnd::Nul => "\0",
        }
    }

    /// A line without its end, if it has one.
    #[inline]
    pub fn strip(self, line: &[u8]) -> &[u8] {
        let end = &[self.byte()];
        line.strip_suffix(end).unwrap_or(line)
    }

    /// The lines of a text, without their ends.
    ///
    /// ```
    /// use gristmill_storage::lines::LineEnd;
    /// assert!(LineEnd::Nul.lines_of(b"a\n\0\0b").eq([&b"a\n"[..], b"", b"b"]));
    /// ```
    pub fn lines_of(self, text: &[u8]) -> impl Iterator<Item = &[u8]> {
        let (end, mut rest) = (self.byte(), text);
        std::iter::from_fn(move || next_line(end, &mut rest))
    }
}

/// Cuts the next line, without its end, off the beginning of a text.
#[inline]
fn next_line<'t>(end: u8, rest: &mut &'t [u8]) -> Option<&'t [u8]> {
    let (line, next) = match memchr(end, rest) {
        Some(at) => (at, at + 1),
        None if rest.is_empty() => return None,
        None => (rest.len(), rest.len()),
    };
    let found = rest.get(..line)?;
    *rest = rest.get(next..)?;
    Some(found)
}

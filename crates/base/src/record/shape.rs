//! Shapes: what a record is, to code that walks over bytes and compares keys.
//!
//! ```text
//!  Fixed       | key_bytes |    rest    | key_bytes |    rest    | ...
//!              |<---- record_bytes ---->|
//!
//!  LineShape   | key ... \n| key \n| key ......... \n| ...        the key is the line without its end
//!
//!  PairShape, Keyed          lengths before any bytes: see `shape/pairs.rs`
//! ```
//!
//! Keys are compared as bytes, as `LC_ALL=C sort` does; one that is exhausted sorts first. The rule that must
//! hold: a smaller prefix is a smaller key, and of equal ones a smaller second prefix is. So code that holds a prefix beside each record compares integers, and
//! looks at records only where two prefixes are equal.

mod pairs;

use std::cmp::Ordering;
use std::fmt::Debug;

use serde::{Deserialize, Serialize};

/// Bytes of key in a prefix.
const PREFIX_BYTES: usize = size_of::<u64>();

/// What a record is. Static dispatch: the hot loops are compiled for each shape.
pub trait Shape: Copy + Send + Sync + Debug + 'static {
    /// Length of the record at the start of `data`, or `None` where `data` ends before the record does.
    ///
    /// ```
    /// use gristmill_base::record::shape::{Fixed, LineShape, Shape};
    /// let lines = LineShape { descending: false };
    /// assert_eq!((lines.length(b"one\ntwo"), lines.length(b"two")), (Some(4), None));
    /// let fixed = Fixed { record_bytes: 4, key_bytes: 2, descending: false };
    /// assert_eq!((fixed.length(b"abcdefg"), fixed.length(b"efg")), (Some(4), None));
    /// ```
    #[inline]
    fn length(&self, data: &[u8]) -> Option<usize> {
        self.rest_length(0, data)
    }

    /// How many bytes of `more` belong to a record that has not ended in the `begun` bytes before them, or `None`
    /// where it goes on beyond `more`: so a record that arrives in pieces is searched once, and copied nowhere.
    ///
    /// ```
    /// use gristmill_base::record::shape::{Fixed, LineShape, Shape};
    /// assert_eq!(LineShape { descending: false }.rest_length(100, b"end\nnext"), Some(4));
    /// let fixed = Fixed { record_bytes: 4, key_bytes: 2, descending: false };
    /// assert_eq!((fixed.rest_length(3, b"abc"), fixed.rest_length(1, b"ab")), (Some(1), None));
    /// ```
    fn rest_length(&self, begun: usize, more: &[u8]) -> Option<usize>;

    /// The same, where those first bytes are at hand: a record whose length stands in its beginning needs them.
    ///
    /// ```
    /// use gristmill_base::record::shape::{PairShape, Shape};
    /// let mut record = Vec::new();
    /// PairShape.write(b"key", b"value", &mut record);
    /// assert_eq!(PairShape.rest_of(&record[..5], &record[5..]), Some(record.len() - 5));
    /// assert_eq!(PairShape.rest_of(&record[..5], &record[5..9]), None);
    /// ```
    #[inline]
    fn rest_of(&self, begun: &[u8], more: &[u8]) -> Option<usize> {
        self.rest_length(begun.len(), more)
    }

    /// The key of a whole record, as long as [`Shape::length`] says.
    ///
    /// ```
    /// use gristmill_base::record::shape::{LineShape, Shape};
    /// assert_eq!(LineShape { descending: false }.key(b"one\n"), b"one");
    /// ```
    fn key<'a>(&self, record: &'a [u8]) -> &'a [u8];

    /// The first eight bytes of the key as a number of the same order: big-endian, zeros behind a short key, the
    /// complement where the order is descending. So a smaller number always sorts first.
    ///
    /// ```
    /// use gristmill_base::record::shape::{LineShape, Shape};
    /// let (up, down) = (LineShape { descending: false }, LineShape { descending: true });
    /// assert!(up.prefix(b"a\n") < up.prefix(b"ab\n"));
    /// assert!(down.prefix(b"a\n") > down.prefix(b"ab\n"));
    /// ```
    fn prefix(&self, record: &[u8]) -> u64;

    /// The eight bytes behind those in the same way, for records whose prefixes are equal; 0 for all of a shape whose
    /// keys hardly go on there.
    ///
    /// ```
    /// use gristmill_base::record::shape::{LineShape, Shape};
    /// let lines = LineShape { descending: false };
    /// assert!(lines.second_prefix(b"the same a\n") < lines.second_prefix(b"the same b\n"));
    /// assert_eq!(lines.second_prefix(b"short\n"), 0);
    /// ```
    fn second_prefix(&self, record: &[u8]) -> u64;

    /// Whether larger keys come first.
    fn descending(&self) -> bool;

    /// No key is longer than this.
    fn longest_key(&self) -> usize;

    /// The order of two keys; reversed as a whole where the order is descending.
    #[inline]
    fn compare_keys(&self, a: &[u8], b: &[u8]) -> Ordering {
        directed(a.cmp(b), self.descending())
    }

    /// The order of two whole records by their keys.
    ///
    /// ```
    /// use gristmill_base::record::shape::{Fixed, Shape};
    /// let shape = Fixed { record_bytes: 4, key_bytes: 2, descending: true };
    /// assert!(shape.compare(b"ab--", b"aa++").is_lt());
    /// assert!(shape.compare(b"ab--", b"ab++").is_eq());
    /// ```
    #[inline]
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.compare_keys(self.key(a), self.key(b))
    }

    /// What a merge to the output writes of a record: all of it, unless a key was put in front.
    ///
    /// ```
    /// use gristmill_base::record::shape::{Keyed, Shape};
    /// let mut record = Vec::new();
    /// Keyed { whole_lines: true }.write(b"code", b"line\n", &mut record);
    /// assert_eq!(Keyed { whole_lines: true }.written(&record), b"line\n");
    /// ```
    #[inline]
    fn written<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        record
    }

    /// Whether that is less than all of it.
    #[inline]
    fn is_stripped(&self) -> bool {
        false
    }

    /// What ends a last record that has no end.
    #[inline]
    fn ending(&self) -> u8 {
        b'\n'
    }

    /// The shape as a value, which is what a run file says of itself.
    fn kind(&self) -> ShapeKind;
}

/// Any of the shapes there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ShapeKind {
    /// Records of one length.
    Fixed(Fixed),
    /// Lines.
    Lines(LineShape),
    /// Pairs of a key and a value, of any bytes.
    Pairs(PairShape),
    /// Lines behind codes of their keys.
    Keyed(Keyed),
}

/// Records of one length, whose key comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fixed {
    /// Bytes of a record, at least one.
    pub record_bytes: usize,
    /// Bytes of its key, at most those of the record.
    pub key_bytes: usize,
    /// Whether larger keys come first.
    pub descending: bool,
}

/// Lines: all bytes up to and including a newline. The key is the line without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineShape {
    /// Whether larger keys come first.
    pub descending: bool,
}

/// Pairs of a key and a value, any bytes both, their lengths before them: what tasks with user code put
/// out. They are made in memory, and never looked for in a file that somebody else wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairShape;

/// Lines with the code of their key in front, by which they are sorted; what is written is the line. They are made in
/// memory, as pairs are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keyed {
    /// Whether lines with equal codes are compared whole.
    pub whole_lines: bool,
}

/// Lines of input with an end of any byte: where they begin, not how they are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedLineShape {
    /// The byte that ends a line.
    pub end: u8,
}

impl ShapeKind {
    /// The length of every record, where they have one.
    ///
    /// ```
    /// use gristmill_base::record::shape::{LineShape, Shape};
    /// assert_eq!(LineShape { descending: false }.kind().record_bytes(), None);
    /// ```
    pub fn record_bytes(self) -> Option<usize> {
        match self {
            ShapeKind::Fixed(fixed) => Some(fixed.record_bytes),
            ShapeKind::Lines(_) | ShapeKind::Pairs(_) | ShapeKind::Keyed(_) => None,
        }
    }
}

impl Shape for EndedLineShape {
    #[inline]
    fn rest_length(&self, _begun: usize, more: &[u8]) -> Option<usize> {
        memchr::memchr(self.end, more).map(|end| end + 1)
    }

    #[inline]
    fn key<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        record.strip_suffix(&[self.end]).unwrap_or(record)
    }

    fn prefix(&self, record: &[u8]) -> u64 {
        padded(self.key(record))
    }

    fn second_prefix(&self, record: &[u8]) -> u64 {
        second(self.key(record))
    }

    fn descending(&self) -> bool {
        false
    }

    fn longest_key(&self) -> usize {
        usize::MAX
    }

    #[inline]
    fn ending(&self) -> u8 {
        self.end
    }

    /// That of lines, as it has their length: any.
    fn kind(&self) -> ShapeKind {
        ShapeKind::Lines(LineShape { descending: false })
    }
}

impl Shape for Fixed {
    #[inline]
    fn rest_length(&self, begun: usize, more: &[u8]) -> Option<usize> {
        let rest = self.record_bytes - begun;
        (more.len() >= rest).then_some(rest)
    }

    #[inline]
    fn key<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        record.get(..self.key_bytes).unwrap_or(record)
    }

    #[inline]
    fn prefix(&self, record: &[u8]) -> u64 {
        let ascending = match record.first_chunk() {
            Some(first) if self.key_bytes >= PREFIX_BYTES => u64::from_be_bytes(*first),
            _ => padded(self.key(record)),
        };
        directed_prefix(ascending, self.descending)
    }

    #[inline]
    fn second_prefix(&self, _record: &[u8]) -> u64 {
        0
    }

    fn descending(&self) -> bool {
        self.descending
    }

    fn longest_key(&self) -> usize {
        self.key_bytes
    }

    fn kind(&self) -> ShapeKind {
        ShapeKind::Fixed(*self)
    }
}

impl Shape for LineShape {
    #[inline]
    fn rest_length(&self, _begun: usize, more: &[u8]) -> Option<usize> {
        memchr::memchr(b'\n', more).map(|end| end + 1)
    }

    #[inline]
    fn key<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        record.strip_suffix(b"\n").unwrap_or(record)
    }

    #[inline]
    fn prefix(&self, record: &[u8]) -> u64 {
        let ascending = match record.first_chunk() {
            Some(first) if record.len() > PREFIX_BYTES => u64::from_be_bytes(*first),
            _ => padded(self.key(record)),
        };
        directed_prefix(ascending, self.descending)
    }

    #[inline]
    fn second_prefix(&self, record: &[u8]) -> u64 {
        directed_prefix(second(self.key(record)), self.descending)
    }

    fn descending(&self) -> bool {
        self.descending
    }

    fn longest_key(&self) -> usize {
        usize::MAX
    }

    fn kind(&self) -> ShapeKind {
        ShapeKind::Lines(*self)
    }
}

/// The first eight bytes of a key that may be shorter, as a number of the same order. Without a call for a copy of a few
/// bytes, which costs more than they do.
#[inline]
pub(crate) fn padded(key: &[u8]) -> u64 {
    if let Some(first) = key.first_chunk() {
        return u64::from_be_bytes(*first);
    }
    if let (Some(first), Some(last)) = (key.first_chunk(), key.last_chunk()) {
        // Some bytes may be of both; they say the same.
        let last = u64::from(u32::from_be_bytes(*last));
        return u64::from(u32::from_be_bytes(*first)) << 32
            | last << (8 * (PREFIX_BYTES - key.len()));
    }
    let few = key.iter().zip([56, 48, 40]);
    few.fold(0, |number, (byte, shift)| {
        number | u64::from(*byte) << shift
    })
}

/// The bytes of a key behind its prefix.
#[inline]
fn second(key: &[u8]) -> u64 {
    match key
        .get(PREFIX_BYTES..)
        .map(|rest| (rest.first_chunk(), rest))
    {
        Some((Some(second), _)) => u64::from_be_bytes(*second),
        Some((None, rest)) => padded(rest),
        None => 0,
    }
}

#[inline]
fn directed_prefix(ascending: u64, descending: bool) -> u64 {
    if descending { !ascending } else { ascending }
}

#[inline]
fn directed(ascending: Ordering, descending: bool) -> Ordering {
    if descending {
        ascending.reverse()
    } else {
        ascending
    }
}

#[cfg(test)]
mod tests;

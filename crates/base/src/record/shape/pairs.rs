//! Shapes that are made in memory: two parts of any bytes, with their lengths before them.
//!
//! ```text
//!  PairShape   | key bytes u32 | value bytes u32 | key ... | value ... | ...      little-endian lengths
//!
//!  Keyed       | code bytes u32 | line bytes u32 | code ... | line ... \n| ...      key: the code, or code and line without its end
//! ```
//!
//! The length of a record stands in its first eight bytes, so that no byte of it is looked for.

use super::{Keyed, PairShape, Shape, ShapeKind, padded, second};

/// Bytes of the two lengths before a pair.
const PAIR_HEADER_BYTES: usize = 8;

impl PairShape {
    /// Appends a record to `out`. Neither key nor value has 4 GiB or more.
    ///
    /// ```
    /// use gristmill_base::record::shape::{PairShape, Shape};
    /// let mut record = Vec::new();
    /// PairShape.write(b"key", b"value", &mut record);
    /// assert_eq!((PairShape.key(&record), PairShape.value(&record)), (&b"key"[..], &b"value"[..]));
    /// ```
    #[inline]
    pub fn write(&self, key: &[u8], value: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&Self::header(key.len(), value.len()));
        out.extend_from_slice(key);
        out.extend_from_slice(value);
    }

    /// The value of a whole record.
    #[inline]
    pub fn value<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        self.both(record).1
    }

    /// The key and the value of a whole record.
    #[inline]
    pub fn both<'a>(&self, record: &'a [u8]) -> (&'a [u8], &'a [u8]) {
        let key = self.key(record);
        let rest = record.get(PAIR_HEADER_BYTES..).unwrap_or_default();
        (key, rest.get(key.len()..).unwrap_or_default())
    }

    /// The bytes before a pair's key.
    #[inline]
    pub fn header(key_bytes: usize, value_bytes: usize) -> [u8; PAIR_HEADER_BYTES] {
        let lengths = (value_bytes as u64) << 32 | key_bytes as u64;
        lengths.to_le_bytes()
    }

    /// Bytes of the record that begins with `header`.
    #[inline]
    fn bytes(header: &[u8; PAIR_HEADER_BYTES]) -> u64 {
        let lengths = u64::from_le_bytes(*header);
        PAIR_HEADER_BYTES as u64 + (lengths >> 32) + (lengths & u64::from(u32::MAX))
    }
}

impl Shape for PairShape {
    /// `more` is the record's beginning: see [`Shape::rest_of`] for the rest of one that has begun.
    #[inline]
    fn rest_length(&self, begun: usize, more: &[u8]) -> Option<usize> {
        let header = more.first_chunk().filter(|_| begun == 0)?;
        let bytes = Self::bytes(header);
        (bytes <= more.len() as u64).then_some(bytes as usize)
    }

    #[inline]
    fn rest_of(&self, begun: &[u8], more: &[u8]) -> Option<usize> {
        let mut header = [0; PAIR_HEADER_BYTES];
        let here = begun.len().min(PAIR_HEADER_BYTES);
        header[..here].copy_from_slice(&begun[..here]);
        header[here..].copy_from_slice(more.get(..PAIR_HEADER_BYTES - here)?);
        let rest = Self::bytes(&header).saturating_sub(begun.len() as u64);
        (rest <= more.len() as u64).then_some(rest as usize)
    }

    #[inline]
    fn key<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        let Some((header, rest)) = record.split_first_chunk::<PAIR_HEADER_BYTES>() else {
            return &[];
        };
        let key_bytes = u64::from_le_bytes(*header) & u64::from(u32::MAX);
        rest.get(..key_bytes as usize).unwrap_or(rest)
    }

    #[inline]
    fn prefix(&self, record: &[u8]) -> u64 {
        padded(self.key(record))
    }

    #[inline]
    fn second_prefix(&self, record: &[u8]) -> u64 {
        second(self.key(record))
    }

    fn descending(&self) -> bool {
        false
    }

    fn longest_key(&self) -> usize {
        usize::MAX
    }

    fn kind(&self) -> ShapeKind {
        ShapeKind::Pairs(*self)
    }
}

impl Keyed {
    /// Appends a record to `out`. The line comes with its end; neither part has 4 GiB or more.
    #[inline]
    pub fn write(&self, code: &[u8], line: &[u8], out: &mut Vec<u8>) {
        PairShape.write(code, line, out);
    }
}

impl Shape for Keyed {
    /// As of [`PairShape`].
    #[inline]
    fn rest_length(&self, begun: usize, more: &[u8]) -> Option<usize> {
        PairShape.rest_length(begun, more)
    }

    #[inline]
    fn rest_of(&self, begun: &[u8], more: &[u8]) -> Option<usize> {
        PairShape.rest_of(begun, more)
    }

    #[inline]
    fn key<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        if self.whole_lines {
            let end = record.len().saturating_sub(1);
            record.get(PAIR_HEADER_BYTES..end).unwrap_or_default()
        } else {
            PairShape.key(record)
        }
    }

    #[inline]
    fn prefix(&self, record: &[u8]) -> u64 {
        padded(self.key(record))
    }

    #[inline]
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
    fn written<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        PairShape.value(record)
    }

    #[inline]
    fn is_stripped(&self) -> bool {
        true
    }

    fn kind(&self) -> ShapeKind {
        ShapeKind::Keyed(*self)
    }
}

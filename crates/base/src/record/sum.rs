//! The checksum of a set of records of any shape: what tells whether those at one end are those at the other.

use super::checksum::Checksum;
use super::crc_clmul::crc_of;
use super::shape::{Keyed, LineShape, Shape, ShapeKind};

/// The CRC-32 of one line, and where it has no newline of one that is put behind it.
///
/// ```
/// use gristmill_base::record::sum::line_crc;
/// assert_eq!((line_crc(b"one\n"), line_crc(b"one")), (crc32fast::hash(b"one\n"), crc32fast::hash(b"one\n")));
/// ```
#[inline]
pub fn line_crc(line: &[u8]) -> u32 {
    if line.ends_with(b"\n") {
        return crc_of(line);
    }
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(line);
    hasher.update(b"\n");
    hasher.finalize()
}

/// The sum of the CRC-32s of records of any shape; 0 for pairs, which are made anew from stage to stage, so that the
/// sum at one end says nothing about the other.
///
/// ```
/// use gristmill_base::record::shape::{LineShape, Shape};
/// use gristmill_base::record::sum::RecordSum;
/// let mut sum = RecordSum::new(LineShape { descending: false }.kind());
/// sum.update(b"one\ntwo\n");
/// assert_eq!(sum.value(), u128::from(crc32fast::hash(b"one\n")) + u128::from(crc32fast::hash(b"two\n")));
/// ```
#[derive(Debug, Clone)]
pub enum RecordSum {
    /// Of records of one length, by the kernel for them.
    Fixed(Box<Checksum>),
    /// Of lines.
    Lines(LineShape, u128),
    /// Of pairs: none.
    Pairs,
    /// Of lines behind codes: the sum of the lines.
    Keyed(Keyed, u128),
}

impl RecordSum {
    /// The sum of no records.
    pub fn new(kind: ShapeKind) -> Self {
        match kind {
            ShapeKind::Fixed(fixed) => {
                RecordSum::Fixed(Box::new(Checksum::new(fixed.record_bytes)))
            }
            ShapeKind::Lines(lines) => RecordSum::Lines(lines, 0),
            ShapeKind::Pairs(_) => RecordSum::Pairs,
            ShapeKind::Keyed(keyed) => RecordSum::Keyed(keyed, 0),
        }
    }

    /// Adds whole records.
    pub fn update(&mut self, records: &[u8]) {
        match self {
            RecordSum::Fixed(sum) => sum.update(records),
            RecordSum::Lines(lines, sum) => {
                let mut rest = records;
                while let Some(length) = lines.length(rest) {
                    let (record, after) = rest.split_at(length);
                    *sum += u128::from(crc_of(record));
                    rest = after;
                }
            }
            RecordSum::Keyed(keyed, sum) => {
                let mut rest = records;
                while let Some(length) = keyed.length(rest) {
                    let (record, after) = rest.split_at(length);
                    *sum += u128::from(crc_of(keyed.written(record)));
                    rest = after;
                }
            }
            RecordSum::Pairs => {}
        }
    }

    /// Adds one record, whose end is known: of lines this saves looking for it. Records of one length are faster
    /// many at a time.
    #[inline]
    pub fn add(&mut self, record: &[u8]) {
        match self {
            RecordSum::Fixed(sum) => sum.update(record),
            RecordSum::Lines(_, sum) => *sum += u128::from(crc_of(record)),
            RecordSum::Keyed(keyed, sum) => {
                *sum += u128::from(crc_of(keyed.written(record)));
            }
            RecordSum::Pairs => {}
        }
    }

    /// The sum so far.
    pub fn value(&self) -> u128 {
        match self {
            RecordSum::Fixed(sum) => sum.value(),
            RecordSum::Lines(_, sum) | RecordSum::Keyed(_, sum) => *sum,
            RecordSum::Pairs => 0,
        }
    }
}

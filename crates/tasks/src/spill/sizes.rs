//! How much of a run lies in each of its buckets: what a plan must know to share out the output, in few bytes.
//!
//! ```text
//!   bytes of a record, where all have the same │ records of each bucket              1 to 2 bytes a bucket
//!   0                                          │ bytes, records of each bucket       4 to 6
//! ```
//!
//! Numbers are LEB128. A driver holds the sizes of all runs of a stage at once: a sort of 100 GB with 1 GB of memory
//! has some 500 runs of 6,000 buckets, 6 MB like this and 48 MB as pairs of words.

use serde::{Deserialize, Serialize};

use gristmill_base::record::shape::ShapeKind;
use gristmill_storage::sorted_run::RunIndex;

/// Bytes and records of each bucket of a run.
///
/// ```
/// use gristmill_tasks::spill::BucketSizes;
/// let sizes = BucketSizes::of(&[(300, 3), (300, 3), (1000, 10)]);
/// let mut sum = vec![(0, 0), (0, 0), (5, 1)];
/// sizes.add_to(&mut sum);
/// assert_eq!(sum, [(300, 3), (0, 0), (705, 8)]);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BucketSizes(#[serde(with = "in_base64")] Vec<u8>);

impl BucketSizes {
    /// From the bytes and records up to the end of each bucket.
    pub fn of(ends: &[(u64, u64)]) -> Self {
        let before = std::iter::once(&(0, 0)).chain(ends);
        let sizes = || {
            before
                .clone()
                .zip(ends)
                .map(|(a, b)| (b.0 - a.0, b.1 - a.1))
        };
        let (bytes, records) = ends.last().copied().unwrap_or_default();
        let each = bytes.checked_div(records).unwrap_or(0);
        let same =
            each > 0 && sizes().all(|(bytes, records)| records.checked_mul(each) == Some(bytes));
        let mut packed = Vec::with_capacity(2 * ends.len() + 1);
        put(&mut packed, if same { each } else { 0 });
        for (bytes, records) in sizes() {
            if !same {
                put(&mut packed, bytes);
            }
            put(&mut packed, records);
        }
        packed.shrink_to_fit();
        BucketSizes(packed)
    }

    /// Those of a run; none of pairs, as no plan asks: a partition goes to one task, however large it is. None of keyed
    /// lines either, of which the output has less than the run: who writes such a run counts what it writes of them.
    pub fn of_run(shape: ShapeKind, index: &RunIndex) -> Self {
        match shape {
            ShapeKind::Pairs(_) | ShapeKind::Keyed(_) => BucketSizes::default(),
            ShapeKind::Fixed(_) | ShapeKind::Lines(_) => BucketSizes::of(&index.ends),
        }
    }

    /// Whether the index of a run says all that a plan asks: else who keeps a run keeps its sizes.
    pub fn are_in_index(shape: ShapeKind) -> bool {
        !matches!(shape, ShapeKind::Keyed(_))
    }

    /// Adds them to the (bytes, records) of each bucket.
    pub fn add_to(&self, sums: &mut [(u64, u64)]) {
        let mut rest = self.0.as_slice();
        let each = take(&mut rest);
        for sum in sums {
            let bytes = if each > 0 { 0 } else { take(&mut rest) };
            let records = take(&mut rest);
            *sum = (sum.0 + bytes + records * each, sum.1 + records);
        }
    }
}

/// Counts what a merge to the output will write of each bucket of a run, where that is less than the run has.
///
/// ```
/// use gristmill_tasks::spill::WrittenSizes;
/// let ends = [(50, 2), (50, 2), (80, 3)]; // of records in the run
/// let mut sizes = WrittenSizes::default();
/// [&b"one\n"[..], b"two\n", b"three\n"].iter().for_each(|line| sizes.count(line, &ends));
/// let mut sums = vec![(0, 0); 3];
/// sizes.buckets(&ends).add_to(&mut sums);
/// assert_eq!(sums, [(8, 2), (0, 0), (6, 1)]);
/// ```
#[derive(Debug, Default)]
pub struct WrittenSizes {
    /// Bytes up to the end of each bucket that is over.
    ends: Vec<u64>,
    bytes: u64,
    records: u64,
}

impl WrittenSizes {
    /// Counts the next record, where the buckets end behind so many `(bytes, records)`.
    #[inline]
    pub fn count(&mut self, written: &[u8], ends: &[(u64, u64)]) {
        while ends
            .get(self.ends.len())
            .is_some_and(|end| end.1 <= self.records)
        {
            self.ends.push(self.bytes);
        }
        self.bytes += written.len() as u64;
        self.records += 1;
    }

    /// The sizes, when all records were counted.
    pub fn buckets(mut self, ends: &[(u64, u64)]) -> BucketSizes {
        self.ends.resize(ends.len(), self.bytes);
        let ends: Vec<_> = self
            .ends
            .into_iter()
            .zip(ends)
            .map(|(bytes, end)| (bytes, end.1))
            .collect();
        BucketSizes::of(&ends)
    }
}

/// In JSON a text: a number for each byte would be three times as long. Histories of earlier versions have no bytes.
mod in_base64 {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum SizeFormat {
        Text(String),
        Numbers(Vec<u8>),
    }

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(&BASE64.encode(bytes))
        } else {
            bytes.serialize(serializer)
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u8>, D::Error> {
        if !deserializer.is_human_readable() {
            return Vec::deserialize(deserializer);
        }
        match SizeFormat::deserialize(deserializer)? {
            SizeFormat::Text(text) => BASE64.decode(text).map_err(D::Error::custom),
            SizeFormat::Numbers(bytes) => Ok(bytes),
        }
    }
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// The next number; 0 behind the end.
fn take(bytes: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    while let Some((byte, rest)) = bytes.split_first() {
        *bytes = rest;
        number |= u64::from(byte & 0x7F).checked_shl(shift).unwrap_or(0);
        if byte & 0x80 == 0 {
            break;
        }
        shift += 7;
    }
    number
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_history_has_them_as_a_text() {
        let sizes = BucketSizes::of(&[(300, 3), (700, 9)]);
        let text = serde_json::to_string(&sizes).unwrap();
        assert_eq!(text, r#""AKwCA5ADBg""#);
        assert_eq!(serde_json::from_str::<BucketSizes>(&text).unwrap(), sizes);
        let none: BucketSizes = serde_json::from_str("[]").unwrap();
        assert_eq!(none, BucketSizes::default(), "of an earlier version");
        assert!(serde_json::from_str::<BucketSizes>(r#""%""#).is_err());
        let packed = rmp_serde::to_vec(&sizes).unwrap();
        assert_eq!(
            rmp_serde::from_slice::<BucketSizes>(&packed).unwrap(),
            sizes
        );
    }

    proptest! {
        /// What comes out is what went in, whether records have one length or not.
        #[test]
        fn sizes_are_kept(
            sizes in proptest::collection::vec((0_u64..1 << 40, 0_u64..1 << 20), 0..50), each in 0_u64..200,
        ) {
            let size = |(bytes, records): &(u64, u64)| {
                if each > 0 { (records * each, *records) } else { (*bytes, *records) }
            };
            let sizes: Vec<(u64, u64)> = sizes.iter().map(size).collect();
            let mut end = (0, 0);
            let ends: Vec<(u64, u64)> = sizes.iter().map(|(bytes, records)| {
                end = (end.0 + bytes, end.1 + records);
                end
            }).collect();
            let mut found = vec![(0, 0); sizes.len()];
            BucketSizes::of(&ends).add_to(&mut found);
            prop_assert_eq!(&found, &sizes);
            BucketSizes::of(&ends).add_to(&mut found);
            prop_assert!(found.iter().zip(&sizes).all(|(twice, once)| *twice == (2 * once.0, 2 * once.1)));
        }

        /// Bytes that nobody packed do no harm.
        #[test]
        fn anything_can_be_read(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let mut rest = bytes.as_slice();
            (0..50).for_each(|_| { take(&mut rest); });
            prop_assert!(rest.is_empty());
        }
    }

    #[test]
    fn records_of_one_length_take_two_bytes_a_bucket() {
        let ends: Vec<(u64, u64)> = (1..=1000).map(|end| (end * 33_300, end * 333)).collect();
        assert!(BucketSizes::of(&ends).0.len() <= 2001);
    }
}

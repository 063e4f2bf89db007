//! Which part a record falls into: Hadoop's partitioners, by their own hash functions, so that records fall
//! into the same part files as there.
//!
//! ```text
//!   HashPartitioner            31·h + byte from 1 on, over the key's bytes        (Text, BytesWritable)
//!   KeyFieldBasedPartitioner   31·h + byte from 0 on, over the fields named
//!   BinaryPartitioner          as HashPartitioner, over bytes left..=right
//!   TotalOrderPartitioner      the first cut point that is larger
//! ```
//!
//! Bytes have a sign in Java; sums wrap at 32 bits; the sign bit of the hash is dropped before the remainder.

use super::keyfields::KeyFields;
use super::text;
use gristmill_base::sys::vectors::sum_by_powers_of_31;

/// How keys are partitioned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HadoopPartitioner {
    /// By a hash of the whole key.
    Hash,
    /// By a hash of some fields.
    Fields(KeyFields),
    /// By a hash of the bytes from `left` to `right`, which count from the end where they are negative.
    Binary {
        /// The first byte.
        left: i64,
        /// The last byte.
        right: i64,
    },
    /// By ranges: part i holds the keys from cut point i-1 on that are smaller than cut point i.
    Ranges(Vec<Vec<u8>>),
}

impl HadoopPartitioner {
    /// The part of `parts` that `key` belongs to.
    ///
    /// ```
    /// use gristmill_tasks::hadoop::partition::HadoopPartitioner;
    /// assert_eq!(HadoopPartitioner::Hash.part(b"hello", 10), 3); // new Text("hello").hashCode() is 127791473
    /// ```
    pub fn part(&self, key: &[u8], parts: u32) -> u32 {
        match self {
            HadoopPartitioner::Hash => part_of(hash(1, key), parts),
            HadoopPartitioner::Fields(fields) => by_fields(fields, key, parts),
            HadoopPartitioner::Binary { left, right } => {
                part_of(hash(1, cut(key, *left, *right)), parts)
            }
            HadoopPartitioner::Ranges(cuts) => {
                let part = cuts.partition_point(|cut| cut.as_slice() <= key);
                u32::try_from(part)
                    .unwrap_or(u32::MAX)
                    .min(parts.saturating_sub(1))
            }
        }
    }
}

/// The part of a `LongWritable`, whose hash is its lower half.
pub fn part_of_long(value: i64, parts: u32) -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the lower half is the hash"
    )]
    part_of(value as i32, parts)
}

fn part_of(hash: i32, parts: u32) -> u32 {
    (hash.cast_unsigned() & 0x7fff_ffff)
        .checked_rem(parts)
        .unwrap_or(0)
}

/// Powers of 31: what a byte counts that so many follow.
const POWERS: [u32; 17] = powers_of_31();

/// `WritableComparator.hashBytes`, begun with `start`: many bytes at once, as their products need not wait for each other.
fn hash(start: i32, bytes: &[u8]) -> i32 {
    let (sixteens, rest) = bytes.as_chunks::<16>();
    let (eights, rest) = rest.as_chunks::<8>();
    let mut hash = start.cast_unsigned();
    for sixteen in sixteens {
        hash = hash
            .wrapping_mul(POWERS[16])
            .wrapping_add(sum_by_powers_of_31(sixteen));
    }
    for eight in eights {
        hash = hash
            .wrapping_mul(POWERS[8])
            .wrapping_add(hash_of_eight(u64::from_le_bytes(*eight)));
    }
    let hash = match (bytes.last_chunk::<8>(), POWERS.get(rest.len())) {
        // The last bytes with those before them, of which zeros are made: they count for nothing.
        (Some(last), Some(power)) if !rest.is_empty() => {
            let rest_alone = u64::MAX << (64 - 8 * rest.len());
            hash.wrapping_mul(*power)
                .wrapping_add(hash_of_eight(u64::from_le_bytes(*last) & rest_alone))
        }
        _ => rest.iter().fold(hash, |hash, byte| {
            hash.wrapping_mul(31)
                .wrapping_add(i32::from(byte.cast_signed()).cast_unsigned())
        }),
    };
    hash.cast_signed()
}

/// The hash of eight bytes, begun with 0, the first of them lowest. Neighbours are put together: two bytes, then four, then
/// all; 128 is added to each byte, so that none has a sign, and taken away at the end.
#[inline]
fn hash_of_eight(bytes: u64) -> u32 {
    const SIGNS: u64 = 0x8080_8080_8080_8080;
    const EVEN_BYTES: u64 = 0x00ff_00ff_00ff_00ff;
    const EVEN_PAIRS: u64 = 0x0000_ffff_0000_ffff;
    let bytes = bytes ^ SIGNS;
    let two = (bytes & EVEN_BYTES) * 31 + (bytes >> 8 & EVEN_BYTES);
    let four = (two & EVEN_PAIRS) * (31 * 31) + (two >> 16 & EVEN_PAIRS);
    let (first, last) = (four & u64::from(u32::MAX), four >> 32);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the lower half is the hash"
    )]
    let all = (first * u64::from(POWERS[4]) + last) as u32;
    all.wrapping_sub(SIGNS_HASH)
}

/// What the 128 added to each of eight bytes make.
const SIGNS_HASH: u32 = {
    let (mut hash, mut i) = (0_u32, 0);
    while i < 8 {
        hash = hash.wrapping_mul(31).wrapping_add(128);
        i += 1;
    }
    hash
};

const fn powers_of_31() -> [u32; 17] {
    let (mut powers, mut i) = ([1_u32; 17], 1);
    while i < powers.len() {
        powers[i] = powers[i - 1].wrapping_mul(31);
        i += 1;
    }
    powers
}

fn by_fields(fields: &KeyFields, key: &[u8], parts: u32) -> u32 {
    let text = text::decoded(key); // Hadoop goes through a string too
    if fields.ranges().is_empty() {
        let add = |hash: i32, unit: u16| hash.wrapping_mul(31).wrapping_add(i32::from(unit));
        return part_of(text.encode_utf16().fold(0, add), parts);
    }
    let slices = fields
        .slices(text.as_bytes())
        .filter_map(|(_, slice)| slice);
    part_of(slices.fold(0, hash), parts)
}

fn cut(key: &[u8], left: i64, right: i64) -> &[u8] {
    let len = i64::try_from(key.len()).unwrap_or(i64::MAX).max(1);
    let at = |offset: i64| usize::try_from((offset + len) % len).unwrap_or(0);
    key.get(at(left)..=at(right)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_javas() {
        assert_eq!(hash(1, b""), 1);
        assert_eq!(hash(1, b"a"), 128);
        assert_eq!(hash(1, b"hello"), 127_791_473);
        assert_eq!(hash(1, &[0xff]), 30); // bytes have a sign
        assert_eq!(hash(0, b"hello"), 99_162_322); // "hello".hashCode()
    }

    proptest::proptest! {
        /// As the definition has it, a byte at a time.
        #[test]
        fn many_bytes_at_once_give_the_same_hash(
            start in proptest::num::i32::ANY,
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..60),
        ) {
            let add = |hash: i32, byte: &u8| {
                hash.wrapping_mul(31).wrapping_add(i32::from(byte.cast_signed()))
            };
            proptest::prop_assert_eq!(hash(start, &bytes), bytes.iter().fold(start, add));
        }
    }

    #[test]
    fn fields_that_are_not_there_do_not_count() {
        let fields = KeyFields::parse("-k2,2", b"\t").unwrap();
        let partitioner = HadoopPartitioner::Fields(fields);
        assert_eq!(
            partitioner.part(b"a\thello", 7),
            partitioner.part(b"b\thello\tc", 7)
        );
        assert_eq!(partitioner.part(b"a\thello", 7), 99_162_322 % 7);
        assert_eq!(partitioner.part(b"a", 7), 0);
        assert_eq!(partitioner.part(b"", 7), 0);
    }

    #[test]
    fn whole_keys_are_hashed_as_strings() {
        let fields = HadoopPartitioner::Fields(KeyFields::parse("", b"\t").unwrap());
        assert_eq!(fields.part("é".as_bytes(), 1000), 233);
        assert_eq!(fields.part(&[0xff], 100_000), 0xfffd); // not UTF-8: the replacement character
    }

    #[test]
    fn keys_equal_to_a_cut_go_right() {
        let ranges = HadoopPartitioner::Ranges(vec![b"g".to_vec(), b"p".to_vec()]);
        let part = |key: &[u8]| ranges.part(key, 3);
        assert_eq!(
            [
                part(b""),
                part(b"f"),
                part(b"g"),
                part(b"o"),
                part(b"p"),
                part(b"z")
            ],
            [0, 0, 1, 1, 2, 2]
        );
    }

    #[test]
    fn binary_offsets_count_from_either_end() {
        let all = HadoopPartitioner::Binary { left: 0, right: -1 };
        let tail = HadoopPartitioner::Binary {
            left: -2,
            right: -1,
        };
        assert_eq!(
            all.part(b"hello", 97),
            HadoopPartitioner::Hash.part(b"hello", 97)
        );
        assert_eq!(
            tail.part(b"hello", 97),
            HadoopPartitioner::Hash.part(b"lo", 97)
        );
    }
}

//! A stable hash of encoded values, and the partition it means.
//!
//! XXH3, 64 bits, without a seed: its values are fixed by a written specification (`doc/xxhash_spec.md` of the xxHash project,
//! since 0.8.0), there are implementations of it in every language, and a short key takes a few nanoseconds. Which partition a
//! key belongs to is part of the output, so that no hash will do whose values may change with a release, a process or a processor.

use twox_hash::XxHash3_64;

/// The hash of an encoding (or of the [`super::prefix`] of one).
///
/// ```
/// use gristmill_base::value::hash;
/// assert_eq!(hash(b""), 0x2d06_8005_38d3_94c2); // the specification's own
/// ```
#[inline]
pub fn hash(encoded: &[u8]) -> u64 {
    XxHash3_64::oneshot(encoded)
}

/// Which of `parts` partitions a hash belongs to: its place in `0..2^64`, scaled (`hash * parts / 2^64`), so that every
/// number of partitions gets even shares and there is no division. Where `parts` is zero it is zero.
///
/// ```
/// use gristmill_base::value::partition;
/// assert_eq!((partition(0, 10), partition(1 << 63, 10), partition(u64::MAX, 10)), (0, 5, 9));
/// ```
#[inline]
pub fn partition(hash: u64, parts: usize) -> usize {
    ((u128::from(hash) * parts as u128) >> 64) as usize
}

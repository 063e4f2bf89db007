//! Sorts one bucket: distribute by the leading bits that differ, then sort pieces of a few entries.
//!
//! ```text
//!   slices of the bucket, one per split        | split 0 | split 1 | split 2 | ...
//!       1. lowest and highest entry
//!       2. count per piece   piece = (entry - lowest) >> shift, about two entries each
//!       3. distribute        |p0|p1|p2|p3|...                 into `out`
//!       4. each piece        insertion sort; the standard sort where it is large (skew)
//! ```
//!
//! With even keys a piece is a handful of entries and the whole costs a third of a comparison sort of the
//! bucket; with skewed keys step 4 does the work, at n log n. The bucket, read three times and written twice,
//! is sized to stay in a core's second-level cache.
//!
//! Decision: docs/decisions/bucket-sort.md.

use super::packed::Packed;

/// Reused counters for the distribution.
#[derive(Debug, Default)]
pub struct SortScratch {
    ends: Vec<u32>,
}

/// Entries in a piece, on average over even keys: 4 takes 1.5 x the time, 1 takes 1.2 x.
const PIECE_ENTRIES: usize = 2;

/// Pieces at most: 2^15 counters of 4 bytes leave most of the cache to the entries.
const PIECE_BITS_MAX: u32 = 15;

/// Largest piece that insertion sort takes.
const INSERTION_MAX: usize = 24;

/// Sorts the entries of all `slices` into `out`, which has room for exactly those.
///
/// ```
/// use gristmill_base::order::sort::{SortScratch, sort_slices};
/// let mut out = [0; 3];
/// sort_slices(&[&[30], &[10, 20]], &mut out, &mut SortScratch::default());
/// assert_eq!(out, [10, 20, 30]);
/// ```
pub fn sort_slices(slices: &[&[Packed]], out: &mut [Packed], scratch: &mut SortScratch) {
    debug_assert_eq!(
        slices.iter().map(|slice| slice.len()).sum::<usize>(),
        out.len()
    );
    if out.len() <= INSERTION_MAX {
        concatenate(slices, out);
        insertion_sort(out);
        return;
    }
    let (low, high) = key_range(slices);
    let piece_bits = (out.len() / PIECE_ENTRIES).ilog2().clamp(1, PIECE_BITS_MAX);
    let shift = (u64::BITS - (high - low).leading_zeros()).saturating_sub(piece_bits);
    count(
        slices,
        low,
        shift,
        &mut scratch.ends,
        ((high - low) >> shift) as usize + 1,
    );
    distribute(slices, low, shift, &mut scratch.ends, out);
    let mut start = 0;
    for end in &scratch.ends {
        let piece = &mut out[start..*end as usize];
        start = *end as usize;
        match piece.len() {
            0..=1 => {}
            2..=INSERTION_MAX => insertion_sort(piece),
            _ => piece.sort_unstable(),
        }
    }
}

fn concatenate(slices: &[&[Packed]], out: &mut [Packed]) {
    let mut rest = out;
    for slice in slices {
        let (head, tail) = rest.split_at_mut(slice.len());
        head.copy_from_slice(slice);
        rest = tail;
    }
}

/// The lowest and the highest entry.
fn key_range(slices: &[&[Packed]]) -> (u64, u64) {
    let (mut low, mut high) = (u64::MAX, 0);
    for slice in slices {
        for entry in *slice {
            low = low.min(*entry);
            high = high.max(*entry);
        }
    }
    (low, high)
}

/// Leaves in `starts` where each piece begins.
fn count(slices: &[&[Packed]], low: u64, shift: u32, starts: &mut Vec<u32>, pieces: usize) {
    starts.clear();
    starts.resize(pieces, 0);
    for slice in slices {
        for entry in *slice {
            starts[((entry - low) >> shift) as usize] += 1;
        }
    }
    let mut next = 0;
    for start in starts {
        next += *start;
        *start = next - *start;
    }
}

/// Moves every entry to its piece; the starts become the ends.
fn distribute(slices: &[&[Packed]], low: u64, shift: u32, starts: &mut [u32], out: &mut [Packed]) {
    for slice in slices {
        for entry in *slice {
            let slot = &mut starts[((entry - low) >> shift) as usize];
            out[*slot as usize] = *entry;
            *slot += 1;
        }
    }
}

/// Sorts a few entries.
#[inline]
pub(super) fn insertion_sort<T: Ord + Copy>(piece: &mut [T]) {
    for i in 1..piece.len() {
        let entry = piece[i];
        let mut hole = i;
        while hole > 0 && entry < piece[hole - 1] {
            piece[hole] = piece[hole - 1];
            hole -= 1;
        }
        piece[hole] = entry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equals_the_standard_sort(
            keys in proptest::collection::vec((0..3_u8, any::<u32>()), 0..2000),
            cut in 0.0..1.0_f64,
        ) {
            // Over a third of the keys equal, a third close to them, a third random.
            let entries: Vec<Packed> = keys.iter().enumerate().map(|(i, (shape, random))| {
                let key = match shape {
                    0 => 7 << 28,
                    1 => (7 << 28) | u64::from(random & 7),
                    _ => u64::from(*random),
                };
                (key << 32) | (i as u64 * 100)
            }).collect();
            let (a, b) = entries.split_at((entries.len() as f64 * cut) as usize);
            let mut sorted = vec![0; entries.len()];
            sort_slices(&[a, b], &mut sorted, &mut SortScratch::default());
            let mut want = entries.clone();
            want.sort();
            prop_assert_eq!(sorted, want);
        }
    }
}

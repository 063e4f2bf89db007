//! Cut points: where the order of all entries is divided into buckets, and a table that finds the bucket of
//! an entry.
//!
//! A cut point is a whole entry: key and input position. So a key that fills half of the input is cut like any
//! other, and the cuts follow from the sample alone.
//!
//! ```text
//!   sample, sorted    . . . . . . . . . . . . . . . . . . . . . . . .
//!   cuts                    |         |         |         |             every (sample / buckets)-th
//!   bucket               0  |    1    |    2    |    3    |    4
//! ```
//!
//! An entry equal to a cut goes right of it, as in Hadoop's TotalOrderPartitioner.

use serde::{Deserialize, Serialize};

use super::Entry;

/// The cut points between buckets, ascending.
///
/// ```
/// use gristmill_base::order::{CutPoints, Entry};
/// let entry = |i: u64| Entry::new(b"all equal!", i);
/// let cuts = CutPoints::from_sample((0..100).map(entry).collect(), 4);
/// assert_eq!(cuts.bucket_of(entry(24)), 0);
/// assert_eq!(cuts.bucket_of(entry(25)), 1); // one key, cut by position
/// assert_eq!(cuts.buckets(), 4);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutPoints {
    cuts: Vec<Entry>,
}

impl CutPoints {
    /// Cuts `sample` (any order; no entry twice) at even ranks, for `buckets` buckets.
    ///
    /// With fewer samples than buckets some cuts are equal and the buckets between them stay empty.
    pub fn from_sample(mut sample: Vec<Entry>, buckets: usize) -> Self {
        sample.sort_unstable();
        let cut = |i: usize| {
            let rank = i as u128 * sample.len() as u128 / buckets as u128;
            sample.get(rank as usize).copied().unwrap_or(Entry::MIN)
        };
        CutPoints {
            cuts: (1..buckets).map(cut).collect(),
        }
    }

    /// How many buckets the cuts divide into.
    pub fn buckets(&self) -> usize {
        self.cuts.len() + 1
    }

    /// The cut points that bound `bucket`: its first entry could be the one, the other is beyond its last.
    pub fn range_of(&self, bucket: usize) -> (Option<Entry>, Option<Entry>) {
        let first = bucket.checked_sub(1).and_then(|below| self.cuts.get(below));
        (first.copied(), self.cuts.get(bucket).copied())
    }

    /// The bucket of `entry`: how many cuts are not above it. [`Classifier`] answers the same faster.
    pub fn bucket_of(&self, entry: Entry) -> usize {
        self.cuts.partition_point(|cut| *cut <= entry)
    }
}

/// Most buckets that a classifier can tell apart.
pub const BUCKETS_MAX: usize = 1 << 16;

/// Cells of the table at most: 2^15 of 4 bytes stay in a core's second-level cache.
const CELL_BITS_MAX: u32 = 15;

/// Finds buckets with one table look-up for most entries.
///
/// The range between the lowest and the highest cut is divided into even cells by the leading bits in which
/// keys differ. A cell that no cut falls into lies in one bucket; in the others (few: there are 16 cells for
/// each cut) the cuts between its first and last bucket are searched.
#[derive(Debug)]
pub struct Classifier {
    cuts: Vec<Entry>,
    low: u64,
    high: u64,
    shift: u32,
    /// For each cell its first and its last bucket.
    cells: Vec<(u16, u16)>,
}

impl Classifier {
    /// A table over `cuts`, which make at most [`BUCKETS_MAX`] buckets.
    pub fn new(cuts: &CutPoints) -> Self {
        debug_assert!(cuts.buckets() <= BUCKETS_MAX);
        let low = cuts.cuts.first().map_or(0, |cut| cut.key_high());
        let high = cuts.cuts.last().map_or(0, |cut| cut.key_high());
        let cell_bits = (cuts.cuts.len() * 16).max(2).ilog2().min(CELL_BITS_MAX);
        let shift = (u64::BITS - (high - low).leading_zeros()).saturating_sub(cell_bits);
        let last_cell = ((high - low) >> shift) as usize;
        // A cut inside a cell ends the bucket below it there; the bucket above it begins there.
        let mut cells = Vec::with_capacity(last_cell + 1);
        let mut below = 0_usize;
        for cell in 0..=last_cell {
            let first = below;
            while below < cuts.cuts.len()
                && ((cuts.cuts[below].key_high() - low) >> shift) as usize == cell
            {
                below += 1;
            }
            cells.push((first as u16, below as u16));
        }
        Classifier {
            cuts: cuts.cuts.clone(),
            low,
            high,
            shift,
            cells,
        }
    }

    /// The bucket of `entry`.
    #[inline]
    pub fn bucket_of(&self, entry: Entry) -> u16 {
        let key = entry.key_high().clamp(self.low, self.high);
        let (first, last) = self.cells[((key - self.low) >> self.shift) as usize];
        if first == last {
            return first;
        }
        let within = &self.cuts[usize::from(first)..usize::from(last)];
        first + within.partition_point(|cut| *cut <= entry) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Keys that collide in every way: few bytes, long common prefixes, extremes.
    fn entries() -> impl Strategy<Value = Vec<Entry>> {
        let byte = prop_oneof![Just(0_u8), Just(255), 0..4_u8, any::<u8>()];
        let tail = proptest::collection::vec(byte, 0..=10);
        let entry = (tail, 0..50_u64).prop_map(|(tail, position)| {
            let mut key = [b'x'; 10];
            let start = 10 - tail.len();
            key[start..].copy_from_slice(&tail);
            Entry::new(&key, position)
        });
        proptest::collection::vec(entry, 0..200)
    }

    proptest! {
        #[test]
        fn classifier_equals_search(sample in entries(), probes in entries(), buckets in 1_usize..300) {
            let cuts = CutPoints::from_sample(sample.clone(), buckets);
            let classifier = Classifier::new(&cuts);
            for entry in probes.into_iter().chain(sample) {
                prop_assert_eq!(usize::from(classifier.bucket_of(entry)), cuts.bucket_of(entry));
            }
        }

        #[test]
        fn even_ranks_make_even_buckets(n in 1_u64..500, buckets in 1_usize..20) {
            let sample: Vec<Entry> = (0..n).map(|i| Entry::new(b"0123456789", i)).collect();
            let cuts = CutPoints::from_sample(sample.clone(), buckets);
            let mut counts = vec![0_u64; buckets];
            sample.iter().for_each(|entry| counts[cuts.bucket_of(*entry)] += 1);
            let even = n / buckets as u64;
            prop_assert!(counts.iter().all(|count| (even..=even + 1).contains(count)), "{:?}", counts);
        }
    }
}

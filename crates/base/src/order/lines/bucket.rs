//! Finds the bucket of a line: a search among the first eight bytes of the borders, for several lines at once.
//!
//! One search is a chain of loads, each of which waits for the one before; eight side by side wait together, and none of
//! them has a branch that depends on the line. What agrees in eight bytes is told apart by sixteen: borders are as short as
//! their neighbours allow, so that sixteen nearly always hold all of one.

use std::hint::select_unpredictable;

use super::leading;
use crate::order::borders::{Border, compare};
use crate::record::shape::LineShape;

/// Lines that are looked up together.
pub const TOGETHER: usize = 8;

/// Buckets are cut in ascending order, whatever the order of the output is.
pub const ASCENDING: LineShape = LineShape { descending: false };

/// Bytes of a border that a search compares.
const LEADING_BYTES: usize = size_of::<u128>();

/// Borders with the same eight bytes that are looked at one by one.
const NEAR: usize = 16;

/// The borders between buckets, ready to be searched.
#[derive(Debug)]
pub struct Buckets<'a> {
    shape: LineShape,
    /// In ascending order.
    borders: &'a [Border],
    /// The first eight bytes of each; behind them as many of the largest as a search may come to.
    highs: Vec<u64>,
    /// The first sixteen.
    leadings: Vec<u128>,
    /// Whether those are all of a border: a line that has them is not below it.
    is_whole: Vec<bool>,
    /// The first step of a search: the largest power of two that is not more than there are borders.
    step: usize,
}

impl<'a> Buckets<'a> {
    /// Those between these borders, which are in ascending order.
    ///
    /// ```
    /// use gristmill_base::order::borders::Border;
    /// use gristmill_base::order::lines::Buckets;
    /// use gristmill_base::record::shape::LineShape;
    /// let border = |key: &[u8], position| Border { key: key.to_vec(), position };
    /// let borders = [border(b"fig", 0), border(b"figs", 7), border(b"figs", 90)];
    /// let of = |descending| {
    ///     let buckets = Buckets::new(LineShape { descending }, &borders);
    ///     [("apple", 5), ("fig", 9), ("figs", 7), ("figs", 80), ("plum", 1)]
    ///         .map(|(key, at)| buckets.of(key.as_bytes(), at))
    /// };
    /// assert_eq!((of(false), of(true)), ([0, 1, 2, 2, 3], [3, 2, 1, 1, 0]));
    /// ```
    pub fn new(shape: LineShape, borders: &'a [Border]) -> Self {
        let leadings = borders
            .iter()
            .map(|border| leading(&border.key, border.key.len()));
        let leadings: Vec<u128> = leadings.collect();
        let is_whole = |border: &Border| {
            let key = &border.key;
            key.len() <= LEADING_BYTES && border.position == 0 && key.last() > Some(&0)
        };
        let step: usize = match borders.len() {
            0 => 0,
            count => 1 << count.ilog2(),
        };
        let mut highs: Vec<u64> = leadings.iter().map(|leading| high_of(*leading)).collect();
        highs.resize((2 * step).saturating_sub(1), u64::MAX);
        Buckets {
            shape,
            borders,
            highs,
            leadings,
            is_whole: borders.iter().map(is_whole).collect(),
            step,
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.borders.len() + 1
    }

    /// How many borders have no larger first eight bytes than each of these, which are the first sixteen of keys.
    #[inline]
    pub fn near(&self, leadings: &[u128; TOGETHER]) -> [usize; TOGETHER] {
        let mut found = [0; TOGETHER];
        let mut step = self.step;
        while step > 0 {
            for (found, leading) in found.iter_mut().zip(leadings) {
                let next = *found + step;
                let is_behind = self.highs[next - 1] <= high_of(*leading);
                // As a branch, which the compiler would make of it, it would be mispredicted half of the time.
                *found = select_unpredictable(is_behind, next, *found);
            }
            step /= 2;
        }
        found
    }

    /// The bucket of a key with these first sixteen bytes at `position`, for which [`near`](Self::near) has found `near`.
    #[inline]
    pub fn settle(&self, near: usize, leading: u128, key: &[u8], position: u64) -> usize {
        let near = near.min(self.borders.len());
        let mut behind = near;
        while behind > 0 && self.leadings[behind - 1] >= leading {
            let is_same = self.leadings[behind - 1] == leading;
            if is_same && self.is_whole[behind - 1] {
                break;
            }
            if is_same || near - behind == NEAR {
                behind = self.settle_by_key(near, leading, key, position);
                break;
            }
            behind -= 1;
        }
        self.in_order(behind)
    }

    /// Of the first `near` borders those that a key with these first sixteen bytes is not below.
    #[cold]
    fn settle_by_key(&self, near: usize, leading: u128, key: &[u8], position: u64) -> usize {
        let is_behind = |border: &Border, of_border: u128| {
            if leading != of_border {
                return leading > of_border;
            }
            // Where these are all of both, they differ in zeros at the end alone. (Comparing the bytes of an empty border is
            // slow: it has no memory.)
            if key.len().max(border.key.len()) <= LEADING_BYTES {
                return (key.len(), position) >= (border.key.len(), border.position);
            }
            compare(ASCENDING, key, position, border).is_ge()
        };
        let (mut low, mut high) = (0, near);
        while low < high {
            let middle = low.midpoint(high);
            if is_behind(&self.borders[middle], self.leadings[middle]) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The bucket of a key at `position`.
    pub fn of(&self, key: &[u8], position: u64) -> usize {
        let leading = leading(key, key.len());
        self.in_order(self.settle_by_key(self.borders.len(), leading, key, position))
    }

    /// The number of a bucket, or its place among the borders: the one as the other.
    #[inline]
    fn in_order(&self, bucket: usize) -> usize {
        if self.shape.descending {
            self.borders.len() - bucket
        } else {
            bucket
        }
    }

    /// How many first bytes the keys of `bucket` share, as the borders on both sides tell.
    ///
    /// ```
    /// use gristmill_base::order::borders::Border;
    /// use gristmill_base::order::lines::Buckets;
    /// use gristmill_base::record::shape::LineShape;
    /// let borders = ["the cat", "the cow"].map(|key| Border { key: key.into(), position: 0 });
    /// let buckets = Buckets::new(LineShape { descending: false }, &borders);
    /// assert_eq!([0, 1, 2].map(|bucket| buckets.shared(bucket)), [0, 5, 0]);
    /// ```
    pub fn shared(&self, bucket: usize) -> usize {
        let bucket = self.in_order(bucket);
        let before = bucket.checked_sub(1).and_then(|at| self.borders.get(at));
        match (before, self.borders.get(bucket)) {
            (Some(low), Some(high)) => agreeing(&low.key, &high.key),
            _ => 0,
        }
    }
}

#[inline]
fn high_of(leading: u128) -> u64 {
    (leading >> 64) as u64
}

fn agreeing(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}

/// Borders in ascending order, each as short as the one before it allows, where that is short enough to be compared at
/// once.
///
/// ```
/// use gristmill_base::order::borders::Border;
/// use gristmill_base::order::lines::shortened;
/// let borders = ["the cat sat", "the cow"].map(|key| Border { key: key.into(), position: 9 });
/// let cut = shortened(&borders);
/// assert_eq!(cut.iter().map(|border| &border.key[..]).collect::<Vec<_>>(), [&b"t"[..], b"the co"]);
/// ```
pub fn shortened(borders: &[Border]) -> Vec<Border> {
    let mut shorter = Vec::with_capacity(borders.len());
    let mut before: &[u8] = &[];
    for border in borders {
        let bytes = agreeing(before, &border.key) + 1;
        shorter.push(if bytes <= LEADING_BYTES.min(border.key.len()) {
            Border {
                key: border.key[..bytes].to_vec(),
                position: 0,
            }
        } else {
            border.clone()
        });
        before = &border.key;
    }
    shorter
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn key() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![Just(0_u8), Just(b'a'), Just(b'b'), Just(0xFF)];
        let key =
            |(long, byte, tail): (usize, u8, Vec<u8>)| [&vec![byte; 4 * long], &*tail].concat();
        (0..6_usize, byte.clone(), vec(byte, 0..4)).prop_map(key)
    }

    proptest! {
        /// Against a comparison with every border.
        #[test]
        fn a_key_is_behind_the_borders_that_it_is_not_below(
            keys in vec((key(), 0..20_u64), 0..40),
            lines in vec((key(), 0..20_u64), TOGETHER),
            (descending, shorten) in any::<(bool, bool)>(),
        ) {
            let border = |(key, position)| Border { key, position };
            let mut borders: Vec<Border> = keys.into_iter().map(border).collect();
            borders.sort_by(|a, b| compare(ASCENDING, &a.key, a.position, b));
            if shorten {
                let shorter = shortened(&borders);
                let pairs = shorter.iter().zip(&borders);
                for (number, (short, long)) in pairs.enumerate() {
                    prop_assert!(compare(ASCENDING, &short.key, short.position, long).is_le());
                    let before = number.checked_sub(1).map(|before| &borders[before]);
                    let is_behind = |before: &Border| {
                        compare(ASCENDING, &short.key, short.position, before).is_ge()
                    };
                    prop_assert!(before.is_none_or(is_behind));
                }
                borders = shorter;
            }
            let buckets = Buckets::new(LineShape { descending }, &borders);
            let leadings: Vec<u128> = lines.iter().map(|(key, _)| leading(key, key.len())).collect();
            let near = buckets.near(leadings[..].try_into().unwrap());
            for (i, (key, at)) in lines.iter().enumerate() {
                let behind = |border: &&Border| compare(ASCENDING, key, *at, border).is_ge();
                let behind = borders.iter().filter(behind).count();
                let want = if descending { borders.len() - behind } else { behind };
                prop_assert_eq!(buckets.settle(near[i], leadings[i], key, *at), want);
                prop_assert_eq!(buckets.of(key, *at), want);
                prop_assert!(key.len() >= buckets.shared(want));
            }
        }
    }
}

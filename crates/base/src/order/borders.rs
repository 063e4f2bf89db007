//! Borders: cut points as whole keys, for records whose keys go on beyond ten bytes.
//!
//! A border is a key and a position, like an entry, and parts equal keys like one. Runs are cut into buckets by
//! them, and what is merged together is a range of buckets.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::CutPoints;
use crate::record::shape::Shape;

/// Where one bucket ends and the next begins: the latter holds this key at this position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Border {
    /// The key, or as much of its beginning as is kept.
    pub key: Vec<u8>,
    /// The position in the job's address space.
    pub position: u64,
}

/// Bytes of a key that a border keeps: what is cut off makes another key, as good a border as any.
pub const KEY_BYTES_MAX: usize = 1024;

/// Cuts a sample of borders (any order) at even ranks, for `buckets` buckets.
///
/// ```
/// use gristmill_base::order::borders::{Border, borders_from_sample};
/// use gristmill_base::record::shape::LineShape;
/// let border = |key: &[u8]| Border { key: key.to_vec(), position: 0 };
/// let sample = vec![border(b"pear"), border(b"apple"), border(b"fig"), border(b"quince")];
/// let cuts = borders_from_sample(LineShape { descending: false }, sample, 2);
/// assert_eq!(cuts, [border(b"pear")]);
/// ```
pub fn borders_from_sample<S: Shape>(
    shape: S,
    mut sample: Vec<Border>,
    buckets: usize,
) -> Vec<Border> {
    sample.sort_by(|a, b| compare(shape, &a.key, a.position, b));
    let cut = |i: usize| {
        let rank = i as u128 * sample.len() as u128 / buckets as u128;
        sample.get(rank as usize).cloned()
    };
    (1..buckets).filter_map(cut).collect()
}

/// The order of a key at a position against a border.
///
/// ```
/// use gristmill_base::order::borders::{Border, compare};
/// use gristmill_base::record::shape::LineShape;
/// let border = Border { key: b"fig".to_vec(), position: 100 };
/// let lines = LineShape { descending: false };
/// assert!(compare(lines, b"fig", 99, &border).is_lt());
/// assert!(compare(lines, b"figs", 0, &border).is_gt());
/// ```
pub fn compare<S: Shape>(shape: S, key: &[u8], position: u64, border: &Border) -> Ordering {
    shape
        .compare_keys(key, &border.key)
        .then(position.cmp(&border.position))
}

impl CutPoints {
    /// The cut points of the buckets with these numbers (where each begins), as borders.
    pub fn borders(&self, buckets: impl Iterator<Item = usize>) -> Vec<Border> {
        let border = |bucket| {
            let (first, _) = self.range_of(bucket);
            first.map(|entry| Border {
                key: entry.key().to_vec(),
                position: entry.position(),
            })
        };
        buckets.filter_map(border).collect()
    }
}

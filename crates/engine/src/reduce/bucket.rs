//! Sorted batches: buckets one after another, sorted, as many as fit; in bounded memory.
//!
//! ```text
//!   | bucket 7, sorted | bucket 8, sorted | bucket 9, sorted | room |      up to 16 MB worth of records
//! ```
//!
//! Buckets are cut from a sample, to hold about 32,768 entries. Where the sample missed what the data are like, a
//! bucket can be many times that, up to all of the input. It is then taken in several batches: cut again from its
//! own entries, each batch collected by one more pass over the bucket. The output is the same.

use crate::error::Result;
use crate::order::sort::{Pieces, sort_slices};
use crate::order::{CutPoints, Entry};
use crate::storage::pages::Pages;

/// Entries that an oversized bucket is cut by.
const SAMPLE_ENTRIES: usize = 4096;

/// Takes a batch: its entries, in order.
pub(super) type Take<'a> = &'a mut dyn FnMut(&[Entry]) -> Result<()>;

/// Memory for one batch, reused.
#[derive(Debug, Default)]
pub(super) struct Batch {
    sorted: Pages<Entry>,
    filled: usize,
    pieces: Pieces,
}

impl Batch {
    /// Empties the batch, and gives it room for `entries` entries.
    pub(super) fn begin(&mut self, entries: usize) -> Result<()> {
        if self.sorted.len() < entries {
            self.sorted = Pages::default();
            self.sorted = Pages::zeroed(entries)?;
        }
        self.filled = 0;
        Ok(())
    }

    /// Adds the bucket made of `slices`, handing full batches to `take` as need be.
    pub(super) fn add(&mut self, slices: &[&[Entry]], take: Take<'_>) -> Result<()> {
        let count: usize = slices.iter().map(|slice| slice.len()).sum();
        if self.filled + count > self.sorted.len() {
            self.flush(take)?;
        }
        if count > self.sorted.len() {
            return take_range(slices, &mut self.sorted, (Entry::MIN, None), count, take);
        }
        let sorted = &mut self.sorted[self.filled..self.filled + count];
        sort_slices(slices, sorted, &mut self.pieces);
        self.filled += count;
        Ok(())
    }

    /// Hands on what there is.
    pub(super) fn flush(&mut self, take: Take<'_>) -> Result<()> {
        let filled = std::mem::take(&mut self.filled);
        if filled == 0 {
            Ok(())
        } else {
            take(&self.sorted[..filled])
        }
    }
}

/// Takes the entries from `low` up to `high` (exclusive; `None`: all), of which there are `count`.
fn take_range(
    slices: &[&[Entry]],
    scratch: &mut [Entry],
    (low, high): (Entry, Option<Entry>),
    count: usize,
    take: Take<'_>,
) -> Result<()> {
    let within = |entry: &&Entry| **entry >= low && high.is_none_or(|high| **entry < high);
    let entries = || slices.iter().flat_map(|slice| slice.iter()).filter(within);
    if count <= scratch.len() {
        let sorted = &mut scratch[..count];
        sorted
            .iter_mut()
            .zip(entries())
            .for_each(|(slot, entry)| *slot = *entry);
        sorted.sort_unstable();
        return take(sorted);
    }
    let sample: Vec<Entry> = entries()
        .step_by(count.div_ceil(SAMPLE_ENTRIES))
        .copied()
        .collect();
    let cuts = CutPoints::from_sample(sample, count.div_ceil(scratch.len() / 2));
    let mut counts = vec![0; cuts.buckets()];
    entries().for_each(|entry| counts[cuts.bucket_of(*entry)] += 1);
    for (range, count) in counts.into_iter().enumerate() {
        let (first, last) = cuts.range_of(range);
        let range = (first.map_or(low, |first| first.max(low)), last.or(high));
        if count > 0 {
            take_range(slices, scratch, range, count, take)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Buckets of any size, far over the batch's too, come in order.
        #[test]
        fn batches_come_in_order(
            keys in proptest::collection::vec(0..5_u8, 0..400),
            room in 2_usize..50,
            cut in 0_usize..400,
            border in 0..6_u8,
        ) {
            let entries: Vec<Entry> =
                keys.iter().enumerate().map(|(i, key)| Entry::new(&[*key; 10], i as u64)).collect();
            let (a, b) = entries.split_at(cut.min(entries.len()));
            let part = |slice: &[Entry], low: bool| -> Vec<Entry> {
                slice.iter().filter(|entry| (entry.key()[0] < border) == low).copied().collect()
            };
            let (mut batch, mut out, mut batches) = (Batch::default(), Vec::new(), 0);
            batch.begin(room).unwrap();
            let take: Take<'_> = &mut |run| {
                assert!(run.len() <= room);
                batches += 1;
                out.extend_from_slice(run);
                Ok(())
            };
            for low in [true, false] {
                batch.add(&[&part(a, low), &part(b, low)], take).unwrap();
            }
            batch.flush(take).unwrap();
            prop_assert!(batches >= entries.len() / room);
            let mut want = entries.clone();
            want.sort();
            prop_assert_eq!(out, want);
        }
    }
}

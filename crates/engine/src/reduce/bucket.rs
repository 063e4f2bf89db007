//! One bucket at a time, in bounded memory.
//!
//! Buckets are cut from a sample, to hold about 32,768 entries. Where the sample missed what the data are like, a
//! bucket can be many times that, up to all of the input. It is then taken in several runs: cut again from its
//! own entries, each run collected by one more pass over the bucket. The output is the same.

use crate::error::Result;
use crate::order::sort::{Pieces, sort_slices};
use crate::order::{CutPoints, Entry};
use crate::storage::pages::Pages;

/// Entries that are sorted at once: eight times an even bucket. 4 MB.
const SCRATCH_ENTRIES: usize = 1 << 18;

/// Entries that an oversized bucket is cut by.
const SAMPLE_ENTRIES: usize = 4096;

/// Memory for the sorting of buckets, reused.
#[derive(Debug, Default)]
pub struct BucketScratch {
    sorted: Option<Pages<Entry>>,
    pieces: Pieces,
}

impl BucketScratch {
    /// Memory that a scratch needs.
    pub const BYTES: u64 = (SCRATCH_ENTRIES * size_of::<Entry>()) as u64 + (64 << 10);

    /// Makes sure that the memory is there.
    pub(super) fn prepare(&mut self) -> Result<()> {
        if self.sorted.is_none() {
            self.sorted = Some(Pages::zeroed(SCRATCH_ENTRIES)?);
        }
        Ok(())
    }

    /// Hands the bucket's entries in order to `take`, in one run or several.
    pub(super) fn for_each_run(
        &mut self,
        slices: &[&[Entry]],
        take: &mut dyn FnMut(&[Entry]) -> Result<()>,
    ) -> Result<()> {
        let Some(scratch) = &mut self.sorted else {
            return Ok(());
        };
        let count: usize = slices.iter().map(|slice| slice.len()).sum();
        if count == 0 {
            return Ok(());
        }
        if count <= scratch.len() {
            let sorted = &mut scratch[..count];
            sort_slices(slices, sorted, &mut self.pieces);
            return take(sorted);
        }
        take_range(slices, scratch, (Entry::MIN, None), count, take)
    }
}

/// Takes the entries from `low` up to `high` (exclusive; `None`: all), of which there are `count`.
fn take_range(
    slices: &[&[Entry]],
    scratch: &mut [Entry],
    (low, high): (Entry, Option<Entry>),
    count: usize,
    take: &mut dyn FnMut(&[Entry]) -> Result<()>,
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
        #[test]
        fn an_oversized_bucket_comes_in_order(
            keys in proptest::collection::vec(0..5_u8, 0..400),
            room in 2_usize..50,
            cut in 0_usize..400,
        ) {
            let entries: Vec<Entry> =
                keys.iter().enumerate().map(|(i, key)| Entry::new(&[*key; 10], i as u64)).collect();
            let (a, b) = entries.split_at(cut.min(entries.len()));
            let (mut scratch, mut out, mut runs) = (vec![Entry::MIN; room], Vec::new(), 0);
            take_range(&[a, b], &mut scratch, (Entry::MIN, None), entries.len(), &mut |run| {
                runs += 1;
                out.extend_from_slice(run);
                Ok(())
            }).unwrap();
            prop_assert!(runs >= entries.len() / room);
            let mut want = entries.clone();
            want.sort();
            prop_assert_eq!(out, want);
        }
    }
}

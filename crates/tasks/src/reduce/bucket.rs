//! Sorted batches: buckets one after another, sorted, as many as fit; in bounded memory.
//!
//! ```text
//!   | bucket 7, sorted | bucket 8, sorted | bucket 9, sorted | room |      up to 16 MB worth of records
//! ```
//!
//! Buckets are cut from a sample, to hold about 32,768 entries. One that is too large for a batch, as the sample
//! missed what the data are like, goes its own way ([`super::oversized`]).

use super::Take;
use super::oversized::Oversized;
use gristmill_base::error::Result;
use gristmill_base::order::packed::{Packed, Packing, resolve_ties};
use gristmill_base::order::refine::{KeySource, Refiner};
use gristmill_base::order::sort::{SortScratch, sort_slices};
use gristmill_base::sys::pages::Pages;

/// Memory for one batch, reused.
#[derive(Debug, Default)]
pub(super) struct SortBatch {
    sorted: Pages<Packed>,
    filled: usize,
    scratch: SortScratch,
    refiner: Refiner,
}

impl SortBatch {
    /// Empties the batch, and gives it room for `entries` entries.
    pub(super) fn begin(&mut self, entries: usize) -> Result<()> {
        if self.sorted.len() < entries {
            self.sorted = Pages::default();
            self.sorted = Pages::zeroed(entries)?;
        }
        self.filled = 0;
        Ok(())
    }

    /// Adds bucket `bucket`, made of `slices`, handing full batches to `take` as need be.
    pub(super) fn add(
        &mut self,
        bucket: usize,
        slices: &[&[Packed]],
        packing: &Packing,
        keys: &dyn KeySource,
        take: Take<'_>,
    ) -> Result<()> {
        let count: usize = slices.iter().map(|slice| slice.len()).sum();
        if self.filled + count > self.sorted.len() {
            self.flush(take)?;
        }
        if count > self.sorted.len() {
            let mut oversized = Oversized {
                slices,
                packing,
                keys,
                batch: &mut self.sorted,
                refiner: &mut self.refiner,
            };
            return oversized.take_all(count, take);
        }
        let sorted = &mut self.sorted[self.filled..self.filled + count];
        sort_slices(slices, sorted, &mut self.scratch);
        if !packing.is_exact(bucket) {
            resolve_ties(sorted, packing.position_bits(), keys, &mut self.refiner);
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_base::order::{CutPoints, Entry};
    use proptest::prelude::*;

    struct List(Vec<Vec<u8>>);

    impl KeySource for List {
        fn key_at(&self, position: u64) -> &[u8] {
            &self.0[position as usize]
        }
        fn longest(&self) -> usize {
            self.0.iter().map(Vec::len).max().unwrap_or(0)
        }
    }

    fn first_ten(key: &[u8]) -> [u8; 10] {
        let mut first = [0; 10];
        let len = key.len().min(10);
        first[..len].copy_from_slice(&key[..len]);
        first
    }

    proptest! {
        /// Buckets of any size, far over the batch's too, with keys of any length, come in order.
        #[test]
        fn batches_come_in_order(
            shapes in proptest::collection::vec((0..3_usize, "[ab\0]{0,3}", 0..3_usize), 0..300),
            room in 2_usize..50,
            cut in 0_usize..300,
            address_bits in 10_u32..48,
        ) {
            let keys: Vec<Vec<u8>> = shapes
                .into_iter()
                .map(|(prefix, tail, more)| {
                    let mut key = vec![b'x'; prefix * 7];
                    key.extend_from_slice(tail.as_bytes());
                    key.extend(std::iter::repeat_n(b'y', more * 11));
                    key
                })
                .collect();
            let entries: Vec<Entry> = keys
                .iter()
                .enumerate()
                .map(|(i, key)| Entry::new(&first_ten(key), i as u64))
                .collect();
            // Cut between first-ten-byte keys only: beyond them keys may go on.
            let middle = entries.get(entries.len() / 2).map_or([0; 10], |entry| entry.key());
            let cuts = CutPoints::from_sample(vec![Entry::new(&[0; 10], 0), Entry::new(&middle, 0)], 2);
            let packing = Packing::new(&cuts, 1 << address_bits);
            let list = List(keys.clone());
            let (mut batch, mut out, mut batches) = (SortBatch::default(), Vec::new(), 0);
            batch.begin(room).unwrap();
            let take: Take<'_> = &mut |run| {
                assert!(run.len() <= room);
                batches += 1;
                out.extend(run.iter().map(|packed| packing.position(*packed)));
                Ok(())
            };
            let (a, b) = entries.split_at(cut.min(entries.len()));
            for bucket in 0..2 {
                let slice = |half: &[Entry]| -> Vec<Packed> {
                    let inside = half.iter().filter(|entry| cuts.bucket_of(**entry) == bucket);
                    inside.map(|entry| packing.pack(bucket as u16, *entry)).collect()
                };
                batch.add(bucket, &[&slice(a), &slice(b)], &packing, &list, take).unwrap();
            }
            batch.flush(take).unwrap();
            prop_assert!(batches >= entries.len() / room);
            let mut want: Vec<u64> = (0..keys.len() as u64).collect();
            want.sort_by_key(|at| &keys[*at as usize]);
            prop_assert_eq!(out, want);
        }
    }
}

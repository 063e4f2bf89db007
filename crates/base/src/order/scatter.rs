//! Scatter: entries in input order become entries by bucket, block by block.
//!
//! ```text
//!   records ──extract──▶ packed entries + their buckets + counts      sequential, 1.3 MB
//!                                   │
//!                                   ▼ prefix sums
//!   ScatteredEntries   | block 0: bucket 0 | 1 | 2 | ... | block 1: bucket 0 | 1 | ...
//! ```
//!
//! Counting first costs one pass over 8 bytes per record and buys exact sizes: no chunk lists, no slack. Blocks are
//! of 131,072 entries, so that a block's megabyte stays in a core's own cache while entries are written all over it;
//! larger ones take longer (`cargo bench -- scatter`). Within a block, and from block to block, a bucket's entries
//! stand in input order.
//!
//! Decision: docs/decisions/scatter-by-block.md.

use super::packed::{Packed, Packing};
use super::{Classifier, Entry};
use crate::error::Result;
use crate::record::KEY_BYTES;
use crate::sys::pages::Pages;

/// Entries of a block.
const BLOCK_ENTRIES: usize = 1 << 17;

/// Entries of a block for each bucket, at least: with very many buckets blocks grow, or their indexes would be
/// larger than they are.
const ENTRIES_PER_BUCKET_MIN: usize = 8;

fn block_entries(buckets: usize) -> usize {
    BLOCK_ENTRIES.max(buckets * ENTRIES_PER_BUCKET_MIN)
}

/// Entries by block and bucket: what a map task leaves to the reduce tasks.
#[derive(Debug)]
pub struct ScatteredEntries {
    entries: Pages<Packed>,
    /// Of each block: where it begins, and where in it each bucket begins (and the end).
    blocks: Vec<(usize, Vec<u32>)>,
    len: usize,
}

impl ScatteredEntries {
    /// Room for `records` entries.
    pub fn with_room(records: usize) -> Result<Self> {
        Ok(ScatteredEntries {
            entries: Pages::zeroed(records)?,
            blocks: Vec::new(),
            len: 0,
        })
    }

    /// Bytes of the indexes of `records` entries in `splits` splits.
    pub fn index_bytes(records: u64, splits: u64, buckets: usize) -> u64 {
        let blocks = records / (block_entries(buckets) as u64 / 2) + splits;
        blocks * (buckets as u64 + 1) * size_of::<u32>() as u64
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The entries of `bucket`, in input order: a slice for each block.
    pub fn slices(&self, bucket: usize) -> impl Iterator<Item = &[Packed]> {
        self.blocks.iter().map(move |(first, starts)| {
            &self.entries[first + starts[bucket] as usize..first + starts[bucket + 1] as usize]
        })
    }

    /// How many entries each of the `buckets` buckets has.
    pub fn bucket_counts(&self, buckets: usize) -> Vec<u32> {
        let mut counts = vec![0; buckets];
        for (_, starts) in &self.blocks {
            let sizes = starts.windows(2).map(|pair| pair[1] - pair[0]);
            counts
                .iter_mut()
                .zip(sizes)
                .for_each(|(count, size)| *count += size);
        }
        counts
    }
}

/// Reused memory for the entries of one block: nothing here outlives a task.
#[derive(Debug, Default)]
pub struct EntryStaging {
    entries: Pages<Packed>,
    buckets: Pages<u16>,
    counts: Vec<u32>,
    len: usize,
}

impl EntryStaging {
    /// Memory of a staging for `buckets` buckets.
    pub fn bytes(buckets: usize) -> u64 {
        let entry_bytes = size_of::<Packed>() + size_of::<u16>();
        (block_entries(buckets) * entry_bytes + buckets * size_of::<u32>()) as u64
    }

    /// Empties the staging, for entries in `buckets` buckets.
    pub fn begin(&mut self, buckets: usize) -> Result<()> {
        let room = block_entries(buckets);
        if self.entries.len() < room {
            (self.entries, self.buckets) = (Pages::default(), Pages::default());
            (self.entries, self.buckets) = (Pages::zeroed(room)?, Pages::zeroed(room)?);
        }
        self.counts.clear();
        self.counts.resize(buckets, 0);
        self.len = 0;
        Ok(())
    }

    /// How many more entries there is room for.
    pub fn room(&self) -> usize {
        self.entries.len() - self.len
    }

    /// Stages the records of `data`, the first of which lies at `position`; there is room for them.
    pub fn extract(
        &mut self,
        data: &[u8],
        record_bytes: usize,
        mut position: u64,
        classifier: &Classifier,
        packing: &Packing,
    ) {
        let records = data.chunks_exact(record_bytes);
        let end = self.len + records.len();
        let entries = self.entries[self.len..end].iter_mut();
        let buckets = self.buckets[self.len..end].iter_mut();
        for ((record, entry), bucket) in records.zip(entries).zip(buckets) {
            let Some(key) = record.first_chunk::<KEY_BYTES>() else {
                return;
            };
            let whole = Entry::new(key, position);
            *bucket = classifier.bucket_of(whole);
            *entry = packing.pack(*bucket, whole);
            self.counts[usize::from(*bucket)] += 1;
            position += record_bytes as u64;
        }
        self.len = end;
    }

    /// Appends what is staged to `to` as one block, by bucket, and empties the staging.
    pub fn scatter(&mut self, to: &mut ScatteredEntries) {
        let mut starts = Vec::with_capacity(self.counts.len() + 1);
        let mut next = 0;
        for count in &mut self.counts {
            starts.push(next);
            next += *count;
            *count = next - *count; // from here on: where the bucket's next entry goes
        }
        starts.push(next);
        let out = &mut to.entries[to.len..to.len + self.len];
        for (entry, bucket) in self.entries[..self.len]
            .iter()
            .zip(&self.buckets[..self.len])
        {
            let slot = &mut self.counts[usize::from(*bucket)];
            out[*slot as usize] = *entry;
            *slot += 1;
        }
        to.blocks.push((to.len, starts));
        to.len += self.len;
        self.counts.fill(0);
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::CutPoints;

    /// Every bucket has the entries that the cuts put there, in input order, over several blocks.
    #[test]
    fn buckets_keep_input_order_over_blocks() {
        let entries: Vec<Entry> = (0..200_000_u64)
            .map(|i| {
                Entry::new(
                    &(u128::from(i * 7_919 % 1_009) << 100).to_be_bytes()[..10]
                        .try_into()
                        .unwrap(),
                    i * 10,
                )
            })
            .collect();
        let data: Vec<u8> = entries.iter().flat_map(|entry| entry.key()).collect();
        let cuts = CutPoints::from_sample(entries[..3_000].to_vec(), 50);
        let classifier = Classifier::new(&cuts);
        let packing = Packing::new(&cuts, 1 << 22);
        let (mut staging, mut out) = (
            EntryStaging::default(),
            ScatteredEntries::with_room(entries.len()).unwrap(),
        );
        staging.begin(50).unwrap();
        let mut position = 0;
        for block in data.chunks(10_000) {
            if staging.room() < block.len() / 10 {
                staging.scatter(&mut out);
            }
            staging.extract(block, 10, position, &classifier, &packing);
            position += block.len() as u64;
        }
        staging.scatter(&mut out);
        assert!(out.blocks.len() > 1 && out.len() == entries.len());
        let counts = out.bucket_counts(50);
        for (bucket, count) in counts.into_iter().enumerate() {
            let found: Vec<Packed> = out.slices(bucket).flatten().copied().collect();
            let inside = entries
                .iter()
                .filter(|entry| cuts.bucket_of(**entry) == bucket);
            let want: Vec<Packed> = inside
                .map(|entry| packing.pack(bucket as u16, *entry))
                .collect();
            assert_eq!(found, want);
            assert_eq!(count as usize, want.len());
        }
    }
}

//! Scatter: entries in input order become entries by bucket, in two passes over one split.
//!
//! ```text
//!   records ──extract──▶ staged entries + their buckets + counts      (sequential writes)
//!                                   │
//!                                   ▼ prefix sums
//!                        entries by bucket, each bucket in input order (one stream per bucket)
//! ```
//!
//! Counting first costs one pass over 16 bytes per record and buys exact sizes: no chunk lists, no slack, and
//! a bucket's share of a split is one slice.

use super::{Classifier, Entry};
use crate::error::Result;
use crate::record::KEY_BYTES;
use crate::storage::pages::Pages;

/// Reused memory for the entries of one split: nothing here outlives a task.
#[derive(Debug, Default)]
pub struct Staging {
    entries: Pages<Entry>,
    buckets: Pages<u16>,
    counts: Vec<u32>,
    len: usize,
}

impl Staging {
    /// Bytes of staging for each record.
    pub const BYTES_PER_RECORD: u64 = (size_of::<Entry>() + size_of::<u16>()) as u64;

    /// Empties the staging, for a split of up to `records` records cut into `buckets` buckets.
    pub fn begin(&mut self, records: usize, buckets: usize) -> Result<()> {
        if self.entries.len() < records {
            (self.entries, self.buckets) = (Pages::default(), Pages::default());
            (self.entries, self.buckets) = (Pages::zeroed(records)?, Pages::zeroed(records)?);
        }
        self.counts.clear();
        self.counts.resize(buckets, 0);
        self.len = 0;
        Ok(())
    }

    /// How many entries are staged.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is staged.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Stages the records of `data`, the first of which lies at `position`; there is room for them.
    pub fn extract(
        &mut self,
        data: &[u8],
        record_bytes: usize,
        mut position: u64,
        classifier: &Classifier,
    ) {
        let records = data.chunks_exact(record_bytes);
        let end = self.len + records.len();
        let entries = self.entries[self.len..end].iter_mut();
        let buckets = self.buckets[self.len..end].iter_mut();
        for ((record, entry), bucket) in records.zip(entries).zip(buckets) {
            let Some(key) = record.first_chunk::<KEY_BYTES>() else {
                return;
            };
            *entry = Entry::new(key, position);
            *bucket = classifier.bucket_of(*entry);
            self.counts[usize::from(*bucket)] += 1;
            position += record_bytes as u64;
        }
        self.len = end;
    }

    /// Writes the staged entries to `out` by bucket, and returns where each bucket begins (and the end).
    pub fn scatter(&mut self, out: &mut [Entry]) -> Vec<u32> {
        debug_assert_eq!(out.len(), self.len);
        let mut starts = Vec::with_capacity(self.counts.len() + 1);
        let mut next = 0;
        for count in &mut self.counts {
            starts.push(next);
            next += *count;
            *count = next - *count; // from here on: where the bucket's next entry goes
        }
        starts.push(next);
        for (entry, bucket) in self.entries[..self.len]
            .iter()
            .zip(&self.buckets[..self.len])
        {
            let slot = &mut self.counts[usize::from(*bucket)];
            out[*slot as usize] = *entry;
            *slot += 1;
        }
        starts
    }
}

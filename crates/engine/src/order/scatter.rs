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
use crate::record::KEY_BYTES;

/// Reused memory for the entries of one split: nothing here outlives a task.
#[derive(Debug, Default)]
pub struct Staging {
    entries: Vec<Entry>,
    buckets: Vec<u16>,
    counts: Vec<u32>,
}

impl Staging {
    /// Bytes of staging for each record.
    pub const BYTES_PER_RECORD: u64 = 18;

    /// Empties the staging, for a split of up to `records` records cut into `buckets` buckets.
    pub fn begin(&mut self, records: usize, buckets: usize) {
        self.entries.clear();
        self.entries.reserve_exact(records);
        self.buckets.clear();
        self.buckets.reserve_exact(records);
        self.counts.clear();
        self.counts.resize(buckets, 0);
    }

    /// How many entries are staged.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is staged.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Stages the records of `data`, the first of which lies at `position`.
    pub fn extract(
        &mut self,
        data: &[u8],
        record_bytes: usize,
        position: u64,
        classifier: &Classifier,
    ) {
        let mut position = position;
        for record in data.chunks_exact(record_bytes) {
            let Some(key) = record.first_chunk::<KEY_BYTES>() else {
                break;
            };
            let entry = Entry::new(key, position);
            let bucket = classifier.bucket_of(entry);
            self.counts[usize::from(bucket)] += 1;
            self.entries.push(entry);
            self.buckets.push(bucket);
            position += record_bytes as u64;
        }
    }

    /// Writes the staged entries to `out` by bucket, and returns where each bucket begins (and the end).
    pub fn scatter(&mut self, out: &mut [Entry]) -> Vec<u32> {
        debug_assert_eq!(out.len(), self.entries.len());
        let mut starts = Vec::with_capacity(self.counts.len() + 1);
        let mut next = 0;
        for count in &mut self.counts {
            starts.push(next);
            next += *count;
            *count = next - *count; // from here on: where the bucket's next entry goes
        }
        starts.push(next);
        for (entry, bucket) in self.entries.iter().zip(&self.buckets) {
            let slot = &mut self.counts[usize::from(*bucket)];
            out[*slot as usize] = *entry;
            *slot += 1;
        }
        starts
    }
}

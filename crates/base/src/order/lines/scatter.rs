//! Scatter: lines in input order become lines by bucket, block by block, as `order::scatter` does it with records.

use super::LineEntry;
use crate::budget::{Budget, Reservation};
use crate::error::Result;
use crate::sys::pages::Pages;

/// Lines of a block: its megabyte stays in a core's own cache while it is written all over.
const BLOCK_LINES: usize = 1 << 17;

/// Lines of a block for each bucket, at least: else the indexes of blocks would be larger than they are.
const LINES_PER_BUCKET_MIN: usize = 8;

fn block_lines(buckets: usize) -> usize {
    BLOCK_LINES.max(buckets * LINES_PER_BUCKET_MIN)
}

/// Lines by block and bucket, with the memory that they take of the job's.
#[derive(Debug, Default)]
pub struct ScatteredLines {
    blocks: Vec<ScatteredBlock>,
    sizes: Vec<(u64, u64)>,
}

#[derive(Debug)]
struct ScatteredBlock {
    entries: Pages<u64>,
    /// Where each bucket begins, and the end.
    starts: Vec<u32>,
    _memory: Reservation,
}

impl ScatteredLines {
    /// Bytes and lines of each bucket; newlines count that are put behind last lines.
    pub fn sizes(&self) -> &[(u64, u64)] {
        &self.sizes
    }

    /// For each block the lines of the buckets from `first` to before `end`, with where in them each of these begins.
    pub fn slices(&self, first: usize, end: usize) -> impl Iterator<Item = (&[u32], &[u64])> {
        self.blocks.iter().map(move |block| {
            let starts = &block.starts[first..=end];
            let inside = starts[0] as usize..starts[end - first] as usize;
            (starts, &block.entries[inside])
        })
    }

    /// Memory for so many lines in blocks of `buckets` buckets, of `splits` splits.
    pub fn bytes(lines: u64, splits: u64, buckets: usize) -> u64 {
        let blocks = lines / block_lines(buckets) as u64 + splits;
        let sizes = splits * buckets as u64 * 32; // here, and in the report
        lines * 8 + blocks * (4 * (buckets as u64 + 1) + 4096) + sizes
    }
}

/// Reused memory for the lines of one block: nothing here outlives a task.
#[derive(Debug, Default)]
pub struct LineStaging {
    entries: Pages<u64>,
    buckets: Pages<u16>,
    counts: Vec<u32>,
    bytes: Vec<u64>,
    lines: Vec<u64>,
    len: usize,
}

impl LineStaging {
    /// Memory of a staging for `buckets` buckets.
    pub fn bytes(buckets: usize) -> u64 {
        (block_lines(buckets) * 10 + buckets * 20) as u64
    }

    /// Empties the staging, for lines in `buckets` buckets.
    pub fn begin(&mut self, buckets: usize) -> Result<()> {
        let room = block_lines(buckets);
        if self.entries.len() != room {
            (self.entries, self.buckets) = (Pages::default(), Pages::default());
            (self.entries, self.buckets) = (Pages::zeroed(room)?, Pages::zeroed(room)?);
        }
        self.counts.clear();
        self.counts.resize(buckets, 0);
        for sums in [&mut self.bytes, &mut self.lines] {
            sums.clear();
            sums.resize(buckets, 0);
        }
        self.len = 0;
        Ok(())
    }

    /// How many more lines there is room for.
    #[inline]
    pub fn room(&self) -> usize {
        self.entries.len() - self.len
    }

    /// Stages a line of `bytes` bytes, its newline included; there is room for it.
    #[inline]
    pub fn push(&mut self, bucket: usize, entry: LineEntry, bytes: usize) {
        self.entries[self.len] = entry.0;
        self.buckets[self.len] = bucket as u16;
        self.counts[bucket] += 1;
        self.bytes[bucket] += bytes as u64;
        self.len += 1;
    }

    /// Appends what is staged to `to` as one block, by bucket, and empties the staging.
    pub fn scatter(&mut self, to: &mut ScatteredLines, budget: &Budget) -> Result<()> {
        if self.len == 0 {
            return Ok(());
        }
        let block_bytes = self.len * 8 + self.counts.len() * 4 + 4096;
        let memory = budget.reserve("entries of lines", block_bytes as u64)?;
        let mut entries = Pages::zeroed(self.len)?;
        let mut starts = Vec::with_capacity(self.counts.len() + 1);
        let mut next = 0;
        for (count, lines) in self.counts.iter_mut().zip(&mut self.lines) {
            starts.push(next);
            *lines += u64::from(*count);
            next += *count;
            *count = next - *count; // from here on: where the bucket's next line goes
        }
        starts.push(next);
        let staged = self.entries[..self.len]
            .iter()
            .zip(&self.buckets[..self.len]);
        for (entry, bucket) in staged {
            let slot = &mut self.counts[usize::from(*bucket)];
            entries[*slot as usize] = *entry;
            *slot += 1;
        }
        to.blocks.push(ScatteredBlock {
            entries,
            starts,
            _memory: memory,
        });
        self.counts.fill(0);
        self.len = 0;
        Ok(())
    }

    /// Appends what is left, and notes how much each bucket has.
    pub fn finish(&mut self, to: &mut ScatteredLines, budget: &Budget) -> Result<()> {
        self.scatter(to, budget)?;
        to.sizes = self
            .bytes
            .iter()
            .copied()
            .zip(self.lines.iter().copied())
            .collect();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every bucket has its lines in input order, over several blocks, and knows their bytes.
    #[test]
    fn buckets_keep_input_order_over_blocks() {
        const BUCKETS: usize = 50;
        let lines: Vec<(usize, u64, usize)> = (0..300_000_u64)
            .map(|i| {
                (
                    (i * 7_919 % 1_009) as usize % BUCKETS,
                    i * 10,
                    1 + i as usize % 9,
                )
            })
            .collect();
        let budget = Budget::new(1 << 30);
        let (mut staging, mut out) = (LineStaging::default(), ScatteredLines::default());
        staging.begin(BUCKETS).unwrap();
        for (bucket, position, length) in &lines {
            if staging.room() == 0 {
                staging.scatter(&mut out, &budget).unwrap();
            }
            staging.push(*bucket, LineEntry::new(*position, *length), *length);
        }
        staging.finish(&mut out, &budget).unwrap();
        assert!(out.blocks.len() > 2);
        assert!(budget.used_bytes() <= ScatteredLines::bytes(300_000, 1, BUCKETS));
        for first in [0, 7, BUCKETS - 3] {
            let mut found = vec![Vec::<u64>::new(); 3];
            for (starts, entries) in out.slices(first, first + 3) {
                for (bucket, ends) in starts.windows(2).enumerate() {
                    let inside = ends[0] - starts[0]..ends[1] - starts[0];
                    found[bucket].extend(&entries[inside.start as usize..inside.end as usize]);
                }
            }
            for (bucket, found) in found.into_iter().enumerate() {
                let inside = lines.iter().filter(|line| line.0 == first + bucket);
                let want: Vec<u64> = inside
                    .clone()
                    .map(|line| LineEntry::new(line.1, line.2).0)
                    .collect();
                assert_eq!(found, want);
                let bytes: usize = inside.map(|line| line.2).sum();
                assert_eq!(
                    out.sizes()[first + bucket],
                    (bytes as u64, want.len() as u64)
                );
            }
        }
        drop(out);
        assert_eq!(budget.used_bytes(), 0);
    }

    #[test]
    fn a_block_that_the_budget_has_no_room_for_is_refused() {
        let (mut staging, mut out) = (LineStaging::default(), ScatteredLines::default());
        staging.begin(1).unwrap();
        staging.push(0, LineEntry::new(0, 1), 1);
        let refused = staging.finish(&mut out, &Budget::new(100)).unwrap_err();
        assert_eq!(refused.kind(), crate::Kind::Memory);
    }
}

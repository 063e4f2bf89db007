//! A bucket that is larger than a batch: cut again from its own keys, each range collected by one more pass.
//!
//! ```text
//!   all entries of the bucket ──keys──▶ (ten bytes at some depth, position) ──cuts──▶ range | range | range
//!        ▲            passes: one to count, one for each range                          │ too large still:
//!        └───────────────────────────── cut again, or ten bytes deeper ◀────────────────┘
//! ```
//!
//! Memory is a batch's whatever the data; time is what they cost. Cuts may part equal keys by position only where
//! the ten bytes end the keys: else the order is not decided there.

use super::Take;
use gristmill_base::error::Result;
use gristmill_base::order::packed::{Packed, Packing};
use gristmill_base::order::refine::{KeySource, Refiner, window};
use gristmill_base::order::{CutPoints, Entry};
use gristmill_base::record::KEY_BYTES;

/// Entries that a range is cut by.
const SAMPLE_ENTRIES: usize = 4096;

/// Shows all entries of a range to somebody: a window of each key, and its position. In order of positions.
type Range<'a> = &'a dyn Fn(&mut dyn FnMut(Entry));

/// A bucket, and where its batches are made.
pub(super) struct Oversized<'a> {
    pub(super) slices: &'a [&'a [Packed]],
    pub(super) packing: &'a Packing,
    pub(super) keys: &'a dyn KeySource,
    pub(super) batch: &'a mut [Packed],
    pub(super) refiner: &'a mut Refiner,
}

impl Oversized<'_> {
    /// Takes all `count` entries of the bucket, in batches.
    pub(super) fn take_all(&mut self, count: usize, take: Take<'_>) -> Result<()> {
        let (slices, packing, keys) = (self.slices, self.packing, self.keys);
        let all: Range<'_> = &|see| {
            for packed in slices.iter().flat_map(|slice| slice.iter()) {
                let position = packing.position(*packed);
                see(Entry::new(&window(keys.key_at(position), 0), position));
            }
        };
        self.take_range(all, count, 0, take)
    }

    /// Takes a range, whose windows are at `depth`.
    fn take_range(
        &mut self,
        range: Range<'_>,
        count: usize,
        depth: usize,
        take: Take<'_>,
    ) -> Result<()> {
        if count <= self.batch.len() {
            return self.take_batch(range, count, take);
        }
        let cuts = self.cut(range, count, depth);
        let mut counts = vec![0; cuts.buckets()];
        range(&mut |entry| counts[cuts.bucket_of(entry)] += 1);
        for (number, part) in counts.into_iter().enumerate().filter(|(_, part)| *part > 0) {
            let (low, high) = cuts.range_of(number);
            let inside = |entry: Entry| {
                low.is_none_or(|low| low <= entry) && high.is_none_or(|high| entry < high)
            };
            let within: Range<'_> = &|see| {
                range(&mut |entry| {
                    if inside(entry) {
                        see(entry);
                    }
                });
            };
            match low {
                Some(low) if part == count => self.take_deeper(within, low.key(), depth, take)?,
                _ => self.take_range(within, part, depth, take)?, // no cut is below all that it was taken from
            }
        }
        Ok(())
    }

    /// Cuts by a sample of the range: below a batch each, if the range is as the sample.
    fn cut(&self, range: Range<'_>, count: usize, depth: usize) -> CutPoints {
        let final_bytes = self.keys.longest() <= depth + KEY_BYTES;
        let step = count.div_ceil(SAMPLE_ENTRIES);
        let (mut sample, mut seen) = (Vec::with_capacity(SAMPLE_ENTRIES), 0);
        range(&mut |entry| {
            if seen % step == 0 {
                let position = if final_bytes { entry.position() } else { 0 };
                sample.push(Entry::new(&entry.key(), position));
            }
            seen += 1;
        });
        CutPoints::from_sample(sample, count.div_ceil(self.batch.len() / 2))
    }

    /// Takes a range that no cut divides, for nearly all its windows are `common`. Apart are the keys below and above
    /// it, those that end in it (by length), and those that go on, ten bytes deeper.
    fn take_deeper(
        &mut self,
        range: Range<'_>,
        common: [u8; KEY_BYTES],
        depth: usize,
        take: Take<'_>,
    ) -> Result<()> {
        let (keys, end) = (self.keys, depth + KEY_BYTES);
        let select = |see: &mut dyn FnMut(Entry), wanted: &dyn Fn(Entry) -> bool| {
            range(&mut |entry| {
                if wanted(entry) {
                    see(entry);
                }
            });
        };
        let length = |entry: Entry| keys.key_at(entry.position()).len();
        self.take_if_any(
            &|see| select(see, &|entry| entry.key() < common),
            depth,
            take,
        )?;
        for ended in depth.saturating_sub(KEY_BYTES)..=end {
            let equal: Range<'_> = &|see| {
                select(see, &|entry| {
                    entry.key() == common && length(entry) == ended
                });
            };
            self.take_equal(equal, take)?;
        }
        let deeper: Range<'_> = &|see| {
            select(
                &mut |entry| {
                    let position = entry.position();
                    see(Entry::new(&window(keys.key_at(position), end), position));
                },
                &|entry| entry.key() == common && length(entry) > end,
            );
        };
        self.take_if_any(deeper, end, take)?;
        self.take_if_any(
            &|see| select(see, &|entry| entry.key() > common),
            depth,
            take,
        )
    }

    fn take_if_any(&mut self, range: Range<'_>, depth: usize, take: Take<'_>) -> Result<()> {
        let mut count = 0;
        range(&mut |_| count += 1);
        if count == 0 {
            return Ok(());
        }
        self.take_range(range, count, depth, take)
    }

    /// Takes a range of equal keys: they are in order as they come.
    fn take_equal(&mut self, range: Range<'_>, take: Take<'_>) -> Result<()> {
        let (mut filled, mut outcome) = (0, Ok(()));
        let batch = &mut *self.batch;
        range(&mut |entry| {
            if outcome.is_err() {
                return;
            }
            batch[filled] = entry.position();
            filled += 1;
            if filled == batch.len() {
                outcome = take(batch);
                filled = 0;
            }
        });
        outcome?;
        if filled > 0 {
            take(&batch[..filled])?;
        }
        Ok(())
    }

    /// Sorts and takes a range that fits.
    fn take_batch(&mut self, range: Range<'_>, count: usize, take: Take<'_>) -> Result<()> {
        let mut filled = 0;
        range(&mut |entry| {
            self.batch[filled] = entry.position();
            filled += 1;
        });
        let batch = &mut self.batch[..count];
        self.refiner.sort(self.keys, batch);
        take(batch)
    }
}

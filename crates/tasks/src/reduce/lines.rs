//! Gathers the lines of some buckets from where they lie, sorts each bucket in cache, and hands its lines on in order.
//!
//! ```text
//!   ScatteredLines, block by block   | bucket 7 | bucket 8 | bucket 9 |     entries, in input order
//!                                    │ fetched in the order of places, ahead of their use
//!   text                        | lines of 7 .... | lines of 8 .. | lines of 9 ... |
//!   entries                     | of 7 | of 8 | of 9 |
//!                                    │ bucket by bucket, in cache: sort ─▶ take(line), in order
//! ```
//!
//! A line is fetched from far away once. Several buckets are gathered together, because their lines stand together in each
//! block, whose part of the input is visited from front to back. A bucket that is larger than the memory for it is sorted
//! where its lines lie.
//!
//! Decision: docs/decisions/lines-in-memory.md.

use std::ops::Range;

use gristmill_base::error::{Error, Result};
use gristmill_base::order::Entry;
use gristmill_base::order::lines::sort::{
    LineSortScratch, SLACK_BYTES, TEXT_BYTES_MAX, entry_of, place_of, sort_lines,
};
use gristmill_base::order::lines::{Buckets, LONG_BYTES, LineEntry, ScatteredLines};
use gristmill_base::order::refine::{KeySource, sort_entries_unless};
use gristmill_base::record::shape::{LineShape, Shape};
use gristmill_base::sys::pages::{Pages, prefetch_second};

/// How many lines ahead of the copy the prefetch runs.
const AHEAD: usize = 40;

/// What is gathered together.
#[derive(Debug, Clone, Copy)]
struct GatherLimits {
    /// Bytes of lines.
    text_bytes: usize,
    /// Lines.
    lines: usize,
    /// Lines of one bucket, which are sorted to a memory of their own.
    bucket_lines: usize,
}

const LIMITS: GatherLimits = GatherLimits {
    text_bytes: 15 << 20,
    lines: 1 << 19,
    bucket_lines: 1 << 18,
};
const _: () = assert!(LIMITS.text_bytes <= TEXT_BYTES_MAX);

/// Where lines come from.
#[derive(Debug)]
pub struct LineSource<'a> {
    /// All bytes of input.
    pub arena: &'a [u8],
    /// Where the file ends that holds a position.
    pub ends: &'a FileEnds<'a>,
    /// The lines of all splits, in order of the splits.
    pub splits: &'a [&'a ScatteredLines],
    /// The buckets.
    pub buckets: &'a Buckets<'a>,
    /// What lines are.
    pub shape: LineShape,
}

/// Where each file begins and ends in the input's address space, in order.
#[derive(Debug)]
pub struct FileEnds<'a> {
    /// Where they begin.
    pub starts: &'a [u64],
    /// Their lengths.
    pub bytes: Vec<u64>,
}

impl FileEnds<'_> {
    fn of(&self, position: u64) -> u64 {
        let file = self.starts.partition_point(|start| *start <= position);
        let found = file.checked_sub(1);
        let end = found.and_then(|file| Some(self.starts.get(file)? + self.bytes.get(file)?));
        end.unwrap_or(position)
    }
}

/// What one worker reuses from task to task.
#[derive(Debug)]
pub struct LineScratch {
    limits: GatherLimits,
    text: Pages<u8>,
    entries: Pages<Entry>,
    sorted: Pages<Entry>,
    sort: LineSortScratch,
}

impl Default for LineScratch {
    fn default() -> Self {
        LineScratch {
            limits: LIMITS,
            text: Pages::default(),
            entries: Pages::default(),
            sorted: Pages::default(),
            sort: LineSortScratch::default(),
        }
    }
}

/// Memory of a worker that gathers.
pub const fn line_bytes() -> u64 {
    let entries = (LIMITS.lines + LIMITS.bucket_lines) * size_of::<Entry>();
    (LIMITS.text_bytes + SLACK_BYTES + entries) as u64
}

/// Memory for what a worker's own does not hold: entries of the buckets that are sorted where their lines lie, as many at
/// once as there are workers; and keys of long lines: those that a worker writes and proves, and one that gets a newline; the
/// first and the last of each of `ranges` parts of the output, which proofs keep to the end.
pub fn oversized_bytes(sizes: &[(u64, u64)], longest: u64, workers: usize, ranges: usize) -> u64 {
    let large = sizes.iter().filter(|size| !LIMITS.hold(**size));
    let mut lines: Vec<u64> = large.map(|(_, lines)| *lines).collect();
    lines.sort_unstable();
    let most: u64 = lines.iter().rev().take(workers).sum();
    let keys = if longest > LONG_LINE_BYTES {
        let all: u64 = sizes.iter().map(|(bytes, _)| bytes).sum();
        4 * all.min(longest * workers as u64) + all.min(2 * longest * ranges as u64)
    } else {
        0
    };
    most * size_of::<Entry>() as u64 + keys
}

/// Shorter lines are part of what a worker holds anyhow.
const LONG_LINE_BYTES: u64 = 64 << 10;

impl GatherLimits {
    /// Whether a bucket of so many bytes and lines is gathered.
    fn hold(&self, (bytes, lines): (u64, u64)) -> bool {
        bytes <= self.text_bytes as u64 && lines <= self.bucket_lines as u64
    }
}

/// Hands the lines of `buckets` to `take`, in order, each with its newline. `progress` is told of bytes as they are done,
/// and may stop the task.
pub fn gather_lines(
    source: &LineSource<'_>,
    buckets: Range<usize>,
    scratch: &mut LineScratch,
    progress: &dyn Fn(u64) -> Result<()>,
    mut take: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    scratch.begin()?;
    let mut first = buckets.start;
    while first < buckets.end {
        let (end, bytes) = source.batch(first..buckets.end, scratch.limits);
        if end == first {
            let size = source.size(first);
            source.sort_in_place(first, &|| progress(0), &mut take)?;
            progress(size.0)?;
            first += 1;
            continue;
        }
        source.gather(first..end, scratch)?;
        source.sort_all(first..end, scratch, &mut take)?;
        progress(bytes)?;
        first = end;
    }
    Ok(())
}

impl LineScratch {
    fn begin(&mut self) -> Result<()> {
        if self.text.is_empty() {
            self.text = Pages::zeroed(self.limits.text_bytes + SLACK_BYTES)?;
            self.entries = Pages::zeroed(self.limits.lines)?;
            self.sorted = Pages::zeroed(self.limits.bucket_lines)?;
        }
        Ok(())
    }
}

impl LineSource<'_> {
    /// Bytes and lines of a bucket.
    fn size(&self, bucket: usize) -> (u64, u64) {
        let sizes = self.splits.iter().map(|split| split.sizes()[bucket]);
        sizes.fold((0, 0), |sum, size| (sum.0 + size.0, sum.1 + size.1))
    }

    /// Where the buckets end, from the first of these on, that are gathered together; and their bytes. That is where the
    /// first begins if it is too large.
    fn batch(&self, buckets: Range<usize>, limits: GatherLimits) -> (usize, u64) {
        let (mut bytes, mut lines) = (0, 0);
        for bucket in buckets.clone() {
            let size = self.size(bucket);
            let with = (bytes + size.0, lines + size.1);
            let together = with.0 <= limits.text_bytes as u64 && with.1 <= limits.lines as u64;
            if !together || !limits.hold(size) {
                return (bucket, bytes);
            }
            (bytes, lines) = with;
        }
        (buckets.end, bytes)
    }

    /// Copies the lines of `buckets` together, bucket by bucket, and makes their entries.
    fn gather(&self, buckets: Range<usize>, scratch: &mut LineScratch) -> Result<()> {
        let mut nexts = Vec::with_capacity(buckets.len());
        let (mut at, mut number) = (0, 0);
        for bucket in buckets.clone() {
            nexts.push(BucketCursor {
                at,
                number,
                shared: self.buckets.shared(bucket),
            });
            let (bytes, lines) = self.size(bucket);
            (at, number) = (at + bytes as usize, number + lines as usize);
        }
        for split in self.splits {
            for (starts, entries) in split.slices(buckets.start, buckets.end) {
                let mut seen = 0;
                for (next, ends) in nexts.iter_mut().zip(starts.windows(2)) {
                    let count = (ends[1] - ends[0]) as usize;
                    self.copy(entries, seen..seen + count, next, scratch)?;
                    seen += count;
                }
            }
        }
        Ok(())
    }

    /// Copies some lines of a block behind those of their bucket.
    fn copy(
        &self,
        entries: &[u64],
        lines: Range<usize>,
        next: &mut BucketCursor,
        scratch: &mut LineScratch,
    ) -> Result<()> {
        let LineScratch {
            text, entries: out, ..
        } = scratch;
        for i in lines {
            if let Some(later) = entries.get(i + AHEAD) {
                self.prefetch(LineEntry::of_word(*later));
            }
            let entry = LineEntry::of_word(entries[i]);
            let (from, length) = (entry.position() as usize, entry.length());
            // A last line without a newline is one byte shorter than it is long: what is copied in its place is replaced.
            let end = (from + length).min(self.arena.len());
            let room = text.get_mut(next.at..next.at + length);
            let (Some(room), Some(line)) = (room, self.arena.get(from..end)) else {
                return Err(Error::bug("gather lines", "a bucket is larger than it was"));
            };
            room[..line.len()].copy_from_slice(line);
            if let Some(last) = room.last_mut() {
                *last = b'\n';
            }
            out[next.number] = entry_of(text, next.at, length, next.shared);
            next.at += length;
            next.number += 1;
        }
        Ok(())
    }

    #[inline]
    fn prefetch(&self, entry: LineEntry) {
        let start = self.arena.as_ptr().wrapping_add(entry.position() as usize);
        let last = entry.length().min(MOST_AHEAD_BYTES) - 1;
        prefetch_second(start);
        for within in [64, 128].into_iter().filter(|within| *within < last) {
            prefetch_second(start.wrapping_add(within));
        }
        prefetch_second(start.wrapping_add(last));
    }

    /// Sorts the buckets that were gathered, one after another.
    fn sort_all(
        &self,
        buckets: Range<usize>,
        scratch: &mut LineScratch,
        take: &mut impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let LineScratch {
            text,
            entries,
            sorted,
            sort,
            ..
        } = scratch;
        let (mut number, mut start) = (0, 0);
        for bucket in buckets {
            let (bytes, lines) = self.size(bucket);
            let (bytes, lines) = (bytes as usize, lines as usize);
            // Lines are asked for here and there: better once from front to back.
            for line in text[start..start + bytes].chunks(CACHE_LINE_BYTES) {
                prefetch_second(line.as_ptr());
            }
            start += bytes;
            let (from, out) = (&entries[number..number + lines], &mut sorted[..lines]);
            sort_lines(text, self.buckets.shared(bucket), from, out, sort);
            let mut one = |entry: &Entry| {
                let (start, length) = place_of(*entry);
                take(&text[start..start + length])
            };
            // Equal lines are the same bytes: which of them comes first does not show.
            if self.shape.descending {
                out.iter().rev().try_for_each(&mut one)?;
            } else {
                out.iter().try_for_each(&mut one)?;
            }
            number += lines;
        }
        Ok(())
    }

    /// Sorts a bucket that is too large to be gathered, as long as it may `go_on`. The job has [`oversized_bytes`] for it.
    fn sort_in_place(
        &self,
        bucket: usize,
        go_on: &impl Fn() -> Result<()>,
        take: &mut impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let lines = self.size(bucket).1 as usize;
        let mut entries = Pages::<Entry>::zeroed(lines)?;
        let mut keys = LargeBucket {
            source: self,
            longest: 0,
            long: Vec::new(),
        };
        let mut slots = entries.iter_mut();
        for split in self.splits {
            for (_, found) in split.slices(bucket, bucket + 1) {
                go_on()?;
                for (word, slot) in found.iter().zip(&mut slots) {
                    let entry = LineEntry::of_word(*word);
                    keys.add(entry);
                    *slot = Entry::new(&[0; 10], entry.position());
                }
            }
        }
        keys.long.sort_unstable();
        sort_entries_unless(&keys, &mut entries, go_on)?;
        for (number, entry) in entries.iter().enumerate() {
            if number.is_multiple_of(ASKED_LINES) {
                go_on()?;
            }
            let (start, key) = (entry.position() as usize, keys.key_at(entry.position()));
            if (start + key.len()) as u64 == self.ends.of(entry.position()) {
                take(&[key, b"\n"].concat())?;
            } else {
                take(&self.arena[start..start + key.len() + 1])?;
            }
        }
        Ok(())
    }
}

const CACHE_LINE_BYTES: usize = 64;

/// Lines that a large bucket hands on between two questions whether to go on.
const ASKED_LINES: usize = 256;

/// Cache lines beyond these are left to the processor's own prefetching.
const MOST_AHEAD_BYTES: usize = 256;

/// Where the next line of a bucket goes.
struct BucketCursor {
    /// In the text.
    at: usize,
    /// Among the entries.
    number: usize,
    /// Bytes that the bucket's lines share.
    shared: usize,
}

/// The keys of a bucket that is sorted where its lines lie.
struct LargeBucket<'a> {
    source: &'a LineSource<'a>,
    /// No line had more bytes when it was read, but for those that are long. A file that was cut off since then has no ends
    /// of lines: to look for them would take as long as there are lines and bytes.
    longest: usize,
    /// Where the lines lie whose entries do not say how long they are, in order.
    long: Vec<u64>,
}

impl LargeBucket<'_> {
    fn add(&mut self, line: LineEntry) {
        if line.length() < LONG_BYTES {
            self.longest = self.longest.max(line.length());
        } else {
            self.long.push(line.position());
        }
    }
}

impl KeySource for LargeBucket<'_> {
    fn key_at(&self, position: u64) -> &[u8] {
        let LineSource {
            arena, ends, shape, ..
        } = self.source;
        let is_long = !self.long.is_empty() && self.long.binary_search(&position).is_ok();
        let most = if is_long { usize::MAX } else { self.longest };
        let start = position as usize;
        let end = (ends.of(position) as usize).min(start.saturating_add(most));
        let rest = arena.get(start..end).unwrap_or_default();
        let end = shape.length(rest).map_or(rest.len(), |length| length - 1);
        &rest[..end]
    }

    fn descending(&self) -> bool {
        self.source.shape.descending
    }
}

#[cfg(test)]
mod tests;

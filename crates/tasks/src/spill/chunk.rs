//! A chunk: as many records as a worker's memory holds, with their entries; filled block by block, then sorted.
//!
//! ```text
//!   memory   |records as they were read ......|gap|records of the next piece ...▶   room   ◀... entries|
//! ```
//!
//! Records grow from one end, entries (ten bytes of key and the place in the memory) from the other: nobody has to know
//! beforehand how long records are. How much is read at once follows from the records so far; where they become
//! shorter, what has no room for its entry any more is left for the next chunk.
//!
//! The rule that must hold: what was scanned ends where a record ends, or a record is open that goes on behind it.
//!
//! Decision: docs/decisions/shared-chunk.md.

use super::sorted::{ChunkRecords, SortedChunk};
use gristmill_base::error::Result;
use gristmill_base::order::Entry;
use gristmill_base::order::compact::sort_compact;
use gristmill_base::order::placed::{LocatorLayout, PLACE_BITS, compact_entry};
use gristmill_base::record::shape::{Shape, ShapeKind};
use gristmill_base::record::sum::RecordSum;
use gristmill_base::sys::pages::{Pages, bytes_of, bytes_of_mut, words_of};
use gristmill_storage::BLOCK_BYTES;

const ENTRY_BYTES: usize = size_of::<Entry>();

/// Part of the memory that is left alone rather than read into: each read costs a wait for its first block.
const ROOM_SHARE_MIN: usize = 64;

/// Records of one length are summed so many bytes at a time: they are in the first-level cache since their keys were
/// taken.
const SUM_BYTES: usize = 16 << 10;

/// Memory of a worker that fills chunks, reused from chunk to chunk.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    memory: Pages<Entry>,
    /// How much of the memory may be used, in entries: all of it, unless it was narrowed.
    window: usize,
    filled: ChunkContents,
    /// How many parts as large as this a worker's memory has; 0 where this is all of it.
    parts: usize,
    /// Bytes of records and entries that lay here before, all in all.
    held: usize,
}

/// What a chunk holds.
#[derive(Debug, Default)]
struct ChunkContents {
    /// Entries at the memory's end.
    records: usize,
    /// Where the bytes end that are taken.
    used: usize,
    /// For each piece: where in the memory it begins, and where in the job's address space.
    spans: Vec<(u64, u64)>,
    /// Where each piece but the last ends in the memory.
    ends: Vec<usize>,
    /// Where a record begins that has not ended yet.
    open: Option<usize>,
    /// Records that lie in two blocks, which are looked at when both are there.
    straddling: Vec<(usize, usize)>,
    /// Bytes of whole records.
    bytes: usize,
    longest: usize,
    sum: Option<RecordSum>,
    /// The length of a record to reckon with before there are any.
    typical_bytes: usize,
    places: LocatorLayout,
}

impl Chunk {
    /// Memory for so many bytes of records and entries, empty; records are taken to be as long as those before, or
    /// as `typical_bytes`.
    pub(super) fn reserve<S: Shape>(
        &mut self,
        shape: S,
        bytes: usize,
        typical_bytes: usize,
    ) -> Result<()> {
        let len = (bytes / ENTRY_BYTES).min((1 << PLACE_BITS) / ENTRY_BYTES);
        self.held += self.filled.used + self.filled.records * ENTRY_BYTES;
        if self.memory.len() != len {
            self.memory = Pages::default();
            self.memory = Pages::zeroed(len)?;
            self.held = 0;
        }
        self.window = len;
        let filled = &mut self.filled;
        let seen = filled.bytes.checked_div(filled.records);
        let mut spans = std::mem::take(&mut filled.spans);
        spans.clear();
        *filled = ChunkContents {
            spans,
            sum: Some(RecordSum::new(shape.kind())),
            typical_bytes: seen.unwrap_or(typical_bytes).max(1),
            places: places_of(shape, len * ENTRY_BYTES),
            ..ChunkContents::default()
        };
        Ok(())
    }

    /// Leaves the empty memory `bytes` bytes, or an eighth of what lay in it before, if that is more: what was never touched
    /// costs more to touch than a run more costs to merge.
    pub(super) fn narrow(&mut self, bytes: usize) {
        debug_assert!(self.is_empty());
        self.window = self
            .memory
            .len()
            .min(bytes.max(self.held / 8) / ENTRY_BYTES);
    }

    /// Gives the empty memory all of its bytes again.
    pub(super) fn widen(&mut self) {
        debug_assert!(self.is_empty());
        self.window = self.memory.len();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.filled.records == 0
    }

    /// Bytes of the memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.window * ENTRY_BYTES
    }

    /// Bytes of whole records.
    pub(super) fn bytes(&self) -> u64 {
        self.filled.bytes as u64
    }

    /// Bytes of the longest record.
    pub(super) fn longest(&self) -> u64 {
        self.filled.longest as u64
    }

    /// Where in the memory the bytes end that are taken.
    pub(super) fn used(&self) -> usize {
        self.filled.used
    }

    /// The sum of the CRCs of its records.
    pub(super) fn checksum(&self) -> u128 {
        self.filled.sum.as_ref().map_or(0, RecordSum::value)
    }

    /// Where a record begins that has not ended.
    pub(super) fn open(&self) -> Option<usize> {
        self.filled.open
    }

    /// Begins a piece, whose bytes will lie at `at` and come from `position` of the job's address space.
    pub(super) fn begin_piece(&mut self, at: usize, position: u64) {
        if !self.filled.spans.is_empty() {
            self.filled.ends.push(self.filled.used);
        }
        self.filled.spans.push((at as u64, position));
        self.filled.open = None;
        self.filled.used = at;
    }

    /// How many bytes to read at `at`, so that there is room for them, for the entries of such records as came so
    /// far, and for the end of a last line; 0 where reading is not worth it any more.
    pub(super) fn room<S: Shape>(&self, shape: S, at: usize) -> usize {
        let filled = &self.filled;
        let taken = at + filled.records * ENTRY_BYTES + BLOCK_BYTES;
        let free = self.memory_bytes().saturating_sub(taken);
        let open = filled.open.map_or(0, |start| filled.used - start);
        let seen = (filled.bytes + open) / (filled.records + usize::from(open > 0)).max(1);
        let record = shape.kind().record_bytes().unwrap_or(match filled.records {
            0 => seen.max(filled.typical_bytes),
            _ => seen.max(1),
        });
        let mut room = (free as u128 * record as u128 / (record + ENTRY_BYTES) as u128) as usize;
        if shape.kind().record_bytes().is_none() {
            room = room.min(free / 4 * 3); // should lines become shorter, most of the memory is used all the same
        }
        if self.is_empty() {
            room.max(free.min(BLOCK_BYTES)) // a record that fits at all is read
        } else if room < self.memory_bytes() / ROOM_SHARE_MIN {
            0
        } else {
            room
        }
    }

    /// The memory up to `end`, to be read into, and what scans it meanwhile.
    pub(super) fn split<S: Shape>(&mut self, shape: S, end: usize) -> (&mut [u8], Scanner<'_, S>) {
        let memory = &mut self.memory[..self.window];
        let (low, high) = memory.split_at_mut(end.div_ceil(ENTRY_BYTES));
        let scanner = Scanner {
            shape,
            entries: high,
            filled: &mut self.filled,
        };
        (bytes_of_mut(low), scanner)
    }

    /// Says that bytes are taken up to `used`, and looks at the records that lie in two of their blocks.
    pub(super) fn settle<S: Shape>(&mut self, shape: S, used: usize) {
        let straddling = std::mem::take(&mut self.filled.straddling);
        for (start, end) in straddling {
            let slot = self.window - 1 - self.filled.records;
            let (low, high) = self.memory.split_at_mut(slot);
            let record = &bytes_of(low)[start..end];
            high[0] = entry_of(shape, record, self.filled.places, start);
            self.filled.count(1, record.len(), record.len());
            self.filled.sum(record);
        }
        self.filled.used = used;
    }

    /// Ends a last line that has no newline. False where its entry has no room.
    pub(super) fn end_line<S: Shape>(&mut self, shape: S) -> bool {
        let end = self.filled.used;
        if (end + 1).div_ceil(ENTRY_BYTES) + self.filled.records >= self.window {
            return false;
        }
        let ending = shape.ending();
        let (memory, mut scanner) = self.split(shape, end + 1);
        memory[end] = ending;
        if scanner.scan(&[ending], end) <= end {
            return false;
        }
        self.settle(shape, end + 1);
        true
    }

    /// Appends a record that is made of `parts`; false where it has no room.
    #[inline]
    pub(super) fn append<S: Shape>(&mut self, shape: S, parts: &[&[u8]]) -> bool {
        let start = self.filled.used;
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        let entries = self.filled.records + 1;
        if (start + bytes).div_ceil(ENTRY_BYTES) + entries > self.window {
            return false;
        }
        let slot = self.window - entries;
        let (low, high) = self.memory.split_at_mut(slot);
        let (low, mut end) = (bytes_of_mut(low), start);
        for part in parts {
            copy_short(part, &mut low[end..end + part.len()]);
            end += part.len();
        }
        high[0] = entry_of(shape, &low[start..end], self.filled.places, start);
        self.filled.count(1, bytes, bytes);
        self.filled.sum(&low[start..end]);
        self.filled.used = end;
        true
    }

    /// Is one of so many parts of a worker's memory, and sums no records: the part that they go to does.
    pub(super) fn be_part(&mut self, parts: usize) {
        self.filled.sum = None;
        self.parts = parts;
    }

    /// What a record of `length` bytes asks of the worker's memory, of which half is reckoned with for records.
    pub(super) fn asked_for(&self, length: u64) -> u64 {
        length * (self.parts as u64 / 2).max(1)
    }

    /// Hands the records to `each`, in the order in which they came.
    pub(super) fn in_order<S: Shape>(
        &self,
        shape: S,
        mut each: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let memory = bytes_of(&self.memory[..self.window]);
        let mut left = self.filled.records;
        let ends = self.filled.ends.iter().copied().chain([self.filled.used]);
        for ((start, _), end) in self.filled.spans.iter().zip(ends) {
            let mut rest = memory.get(*start as usize..end).unwrap_or_default();
            while let Some(length) = shape.length(rest).filter(|_| left > 0) {
                let (record, after) = rest.split_at(length);
                each(record)?;
                (rest, left) = (after, left - 1);
            }
        }
        debug_assert_eq!(left, 0);
        Ok(())
    }

    /// How many records there are.
    pub(super) fn records(&self) -> usize {
        self.filled.records
    }

    /// The record with this number in order, after [`sort`](Self::sort).
    pub(super) fn record<S: Shape>(&self, shape: S, number: usize) -> &[u8] {
        let first = self.window - self.filled.records;
        let (records, positions) = self.memory[..self.window].split_at(first);
        let records = ChunkRecords {
            shape,
            memory: bytes_of(records),
            places: self.filled.places,
        };
        let positions = &words_of(positions)[..self.filled.records];
        positions.get(number).map_or(&[], |at| records.at(*at))
    }

    /// The bytes from `start` to where they are taken.
    pub(super) fn rest(&self, start: usize) -> &[u8] {
        &bytes_of(&self.memory)[start..self.filled.used]
    }

    /// Sorts the entries, of which positions stay; returns those with what finds their records.
    pub(super) fn sort<S: Shape>(&mut self, shape: S) -> SortedChunk<'_, S> {
        let first = self.window - self.filled.records;
        let (records, entries) = self.memory[..self.window].split_at_mut(first);
        let records = ChunkRecords {
            shape,
            memory: bytes_of(records),
            places: self.filled.places,
        };
        let positions = sort_compact(entries, &records);
        SortedChunk {
            records,
            positions,
            spans: &self.filled.spans,
        }
    }
}

impl ChunkContents {
    fn count(&mut self, records: usize, bytes: usize, longest: usize) {
        self.records += records;
        self.bytes += bytes;
        self.longest = self.longest.max(longest);
    }

    fn sum(&mut self, records: &[u8]) {
        if let Some(sum) = &mut self.sum {
            sum.update(records);
        }
    }
}

/// Finds the records of blocks as they come, and makes their entries.
pub(super) struct Scanner<'a, S> {
    shape: S,
    /// Free memory, then the entries there are.
    entries: &'a mut [Entry],
    filled: &'a mut ChunkContents,
}

impl<S: Shape> Scanner<'_, S> {
    /// Takes the records of `block`, which follows what was scanned before and lies at `at` in the memory.
    /// Returns where scanning stopped: at its end, or at the first record without room for an entry.
    pub(super) fn scan(&mut self, block: &[u8], at: usize) -> usize {
        let (shape, filled) = (self.shape, &mut *self.filled);
        let free = self.entries.len() - filled.records;
        let mut start = 0;
        if let Some(begun) = filled.open {
            let Some(taken) = shape.rest_length(at - begun, block) else {
                return at + block.len();
            };
            if free == filled.straddling.len() {
                return begun;
            }
            filled.straddling.push((begun, at + taken));
            filled.open = None;
            start = taken;
        }
        // Each that straddles will have an entry too.
        let slots = &mut self.entries[filled.straddling.len()..free];
        let (mut end, mut longest, mut used, mut full) = (start, 0, 0, false);
        let mut summed = start;
        let mut slots = slots.iter_mut().rev();
        let many = shape.kind().record_bytes().is_some();
        while let Some(length) = shape.length(&block[end..]) {
            let Some(slot) = slots.next() else {
                full = true;
                break;
            };
            let record = &block[end..end + length];
            *slot = entry_of(shape, record, filled.places, at + end);
            if !many && let Some(sum) = &mut filled.sum {
                sum.add(record);
            }
            used += 1;
            longest = longest.max(length);
            end += length;
            if many && end - summed >= SUM_BYTES {
                filled.sum(&block[summed..end]);
                summed = end;
            }
        }
        filled.count(used, end - start, longest);
        if many {
            filled.sum(&block[summed..end]);
        }
        if full {
            return at + end;
        }
        filled.open = (end < block.len()).then_some(at + end);
        at + block.len()
    }
}

#[inline]
fn entry_of<S: Shape>(shape: S, record: &[u8], places: LocatorLayout, at: usize) -> Entry {
    let place = places.place(at, record.len());
    compact_entry(shape.key(record), shape.descending(), place)
}

/// How places say where records of a memory lie: with their lengths, where those would have to be searched for.
fn places_of<S: Shape>(shape: S, memory_bytes: usize) -> LocatorLayout {
    match shape.kind() {
        ShapeKind::Lines(_) => LocatorLayout::with_lengths(memory_bytes),
        ShapeKind::Fixed(_) | ShapeKind::Pairs(_) | ShapeKind::Keyed(_) => LocatorLayout::default(),
    }
}

/// Copies what mostly is a few bytes, for which a call costs more than the copy.
#[inline(always)]
fn copy_short(from: &[u8], to: &mut [u8]) {
    if from.len() > 16 {
        to.copy_from_slice(from);
    } else if let (Some(first), Some(last)) = (from.first_chunk::<8>(), from.last_chunk::<8>()) {
        copy_ends(first, last, to);
    } else if let (Some(first), Some(last)) = (from.first_chunk::<4>(), from.last_chunk::<4>()) {
        copy_ends(first, last, to);
    } else if let (Some(first), Some(last)) = (from.first_chunk::<2>(), from.last_chunk::<2>()) {
        copy_ends(first, last, to);
    } else if let (Some(from), Some(to)) = (from.first(), to.first_mut()) {
        *to = *from;
    }
}

/// Copies the first bytes and the last, of which some may be both.
#[inline(always)]
fn copy_ends<const N: usize>(first: &[u8; N], last: &[u8; N], to: &mut [u8]) {
    if let Some(begin) = to.first_chunk_mut() {
        *begin = *first;
    }
    if let Some(end) = to.last_chunk_mut() {
        *end = *last;
    }
}

//! A chunk: as many records as a worker's memory holds, with their entries; filled block by block, then sorted.
//!
//! ```text
//!   arena    |records as they were read ......................|gap|records of the next piece ....| room |
//!   entries  |(ten bytes of key, place in the arena) ........................................| room |
//! ```
//!
//! A record that lies in two blocks is put together in the carry to be looked at; in the arena it is whole anyway.
//! The rule that must hold: what was scanned ends where a record ends.

use crate::error::Result;
use crate::order::Entry;
use crate::order::refine::{Keys, sort_entries, window};
use crate::record::shape::{RecordSum, Shape};
use crate::storage::pages::{Pages, prefetch};

/// Memory of a worker that fills chunks, reused from chunk to chunk.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    pub(super) arena: Pages<u8>,
    entries: Pages<Entry>,
    records: usize,
    /// Where in the arena the bytes end that are taken.
    pub(super) used: usize,
    /// For each piece: where in the arena it begins, and where in the job's address space.
    spans: Vec<(u64, u64)>,
    /// The beginning of a record whose end is in the next block, and its place.
    carry: Vec<u8>,
    carry_at: usize,
    /// Bytes of whole records.
    pub(super) bytes: u64,
    sum: Option<RecordSum>,
}

/// How much of a block is searched first for the end of a record that began in the one before.
const FIRST_PIECE_BYTES: usize = 256;

impl Chunk {
    /// Memory for so many bytes and entries, empty.
    pub(super) fn reserve<S: Shape>(
        &mut self,
        shape: S,
        arena_bytes: usize,
        entries: usize,
    ) -> Result<()> {
        if self.arena.len() != arena_bytes || self.entries.len() != entries {
            (self.arena, self.entries) = (Pages::default(), Pages::default());
            (self.arena, self.entries) = (Pages::zeroed(arena_bytes)?, Pages::zeroed(entries)?);
        }
        (self.records, self.used, self.bytes) = (0, 0, 0);
        self.spans.clear();
        self.carry.clear();
        self.sum = Some(RecordSum::new(shape.kind()));
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Whether no further entry has room.
    pub(super) fn is_full(&self) -> bool {
        self.records == self.entries.len()
    }

    /// The sum of the CRCs of its records.
    pub(super) fn checksum(&self) -> u128 {
        self.sum.as_ref().map_or(0, RecordSum::value)
    }

    /// Begins a piece, whose bytes will lie at `at` and come from `position` of the job's address space.
    pub(super) fn begin_piece(&mut self, at: usize, position: u64) {
        self.spans.push((at as u64, position));
        self.carry.clear();
        self.carry_at = at;
    }

    /// Takes the records of `block`, which follows what was scanned before and lies at `at` in the arena.
    /// Returns where scanning stopped: at its end, or at the first record without room for an entry.
    pub(super) fn scan<S: Shape>(&mut self, shape: S, block: &[u8], at: usize) -> usize {
        let mut start = 0;
        if !self.carry.is_empty() {
            match self.end_carry(shape, block) {
                Some(_) if self.is_full() => return self.carry_at,
                Some(taken) => {
                    let record = std::mem::take(&mut self.carry);
                    self.add(shape, &record, self.carry_at);
                    self.sum(&record);
                    (self.carry, start) = (record, taken);
                    self.carry.clear();
                }
                None => return at + block.len(),
            }
        }
        let mut end = start;
        while let Some(length) = shape.length(&block[end..]) {
            if self.is_full() {
                self.sum(&block[start..end]);
                return at + end;
            }
            self.add(shape, &block[end..end + length], at + end);
            end += length;
        }
        self.sum(&block[start..end]);
        self.carry.extend_from_slice(&block[end..]);
        self.carry_at = at + end;
        at + block.len()
    }

    /// Makes the record in the carry whole with the beginning of `block`; returns how much of it that was. `None`
    /// where the record goes on beyond the block.
    fn end_carry<S: Shape>(&mut self, shape: S, block: &[u8]) -> Option<usize> {
        let (mut taken, mut piece_bytes) = (0, FIRST_PIECE_BYTES);
        while taken < block.len() {
            let searched = self.carry.len();
            let piece_end = block.len().min(taken + piece_bytes);
            self.carry.extend_from_slice(&block[taken..piece_end]);
            if let Some(length) = shape.length_from(&self.carry, searched) {
                self.carry.truncate(length);
                return Some(taken + length - searched);
            }
            taken = piece_end;
            piece_bytes *= 2;
        }
        None
    }

    /// What was scanned of a record that has not ended: its place, and how much of it.
    pub(super) fn unfinished(&self) -> Option<(usize, usize)> {
        (!self.carry.is_empty()).then_some((self.carry_at, self.carry.len()))
    }

    #[inline]
    fn add<S: Shape>(&mut self, shape: S, record: &[u8], at: usize) {
        let mut key = window(shape.key(record), 0);
        if shape.descending() {
            key = key.map(|byte| !byte);
        }
        self.entries[self.records] = Entry::new(&key, at as u64);
        self.records += 1;
        self.bytes += record.len() as u64;
    }

    fn sum(&mut self, records: &[u8]) {
        if let Some(sum) = &mut self.sum {
            sum.update(records);
        }
    }

    /// Sorts the entries, and returns them with what finds their records.
    pub(super) fn sort<S: Shape>(&mut self, shape: S) -> Sorted<'_, S> {
        let entries = &mut self.entries[..self.records];
        entries.sort_unstable();
        let records = Records {
            shape,
            arena: &self.arena,
        };
        if shape.longest_key() > crate::record::KEY_BYTES {
            refine_ties(&records, entries);
        }
        Sorted {
            records,
            entries,
            spans: &self.spans,
        }
    }
}

/// Lets the keys decide where their first ten bytes tie.
fn refine_ties(keys: &dyn Keys, entries: &mut [Entry]) {
    let mut first = 0;
    while first < entries.len() {
        let key = entries[first].key_number();
        let ties = |entry: &&Entry| entry.key_number() == key;
        let len = entries[first..].iter().take_while(ties).count();
        if len > 1 {
            sort_entries(keys, &mut entries[first..first + len]);
        }
        first += len;
    }
}

/// A sorted chunk.
pub(super) struct Sorted<'a, S> {
    pub(super) records: Records<'a, S>,
    pub(super) entries: &'a [Entry],
    spans: &'a [(u64, u64)],
}

impl<S> Sorted<'_, S> {
    /// The position in the job's address space of what lies at `at` in the arena.
    pub(super) fn position_of(&self, at: u64) -> u64 {
        let after = self.spans.partition_point(|(start, _)| *start <= at);
        self.spans[..after]
            .last()
            .map_or(at, |(start, position)| position + (at - start))
    }
}

/// Finds records by their place in the arena.
pub(super) struct Records<'a, S> {
    shape: S,
    arena: &'a [u8],
}

impl<'a, S: Shape> Records<'a, S> {
    pub(super) fn at(&self, position: u64) -> &'a [u8] {
        let rest = &self.arena[position as usize..];
        rest.get(..self.shape.length(rest).unwrap_or(0))
            .unwrap_or_default()
    }
}

impl<S> Records<'_, S> {
    /// Asks for the cache lines of a record of a common length.
    #[inline]
    pub(super) fn prefetch(&self, position: u64) {
        for within in [0, 64, 99] {
            prefetch(self.arena.as_ptr().wrapping_add(position as usize + within));
        }
    }
}

impl<S: Shape> Keys for Records<'_, S> {
    fn key_at(&self, position: u64) -> &[u8] {
        self.shape.key(self.at(position))
    }

    fn descending(&self) -> bool {
        self.shape.descending()
    }

    fn longest(&self) -> usize {
        self.shape.longest_key()
    }
}

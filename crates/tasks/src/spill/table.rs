//! The table: aggregates of the keys seen so far, which is all that is kept of them.
//!
//! ```text
//!   add(key, value) ──▶ index ─▶ slots: | state | state | ...   in the order in which keys came
//!                                keys:  | key | key | ...       ──full, or at the end──▶ PairCollector: key, written state
//! ```
//!
//! Where a job only wants an aggregate of each key, pairs need not be kept, sorted and written one by one: most of them
//! meet their key here. What the table gives to the collector is what a combiner would give, and a reducer merges states.
//!
//! Slots and keys lie one behind the other, and only the index, eight bytes a key, is scattered by hash: a key that is new,
//! as most are in a table that is far larger than a cache, is written where the one before was, growing moves little, and giving
//! all of it away reads memory from its beginning to its end.
//!
//! The rule that must hold: every value added is in exactly one state that was given to the collector.
//!
//! Decision: docs/decisions/aggregate-table.md.

use hashbrown::HashTable;

use super::Progress;
use super::collect::PairCollector;
use gristmill_base::aggregate::{Aggregate, AggregateState};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::value;

/// Keys that there is room for at first.
const FIRST_SLOTS: usize = 1 << 12;

/// A key and what is known of its values.
#[derive(Debug)]
struct KeyState {
    state: AggregateState,
    /// Where the key is among the bytes of keys.
    start: usize,
    bytes: u32,
    partition: u32,
}

impl KeyState {
    #[inline]
    fn key<'a>(&self, keys: &'a [u8]) -> &'a [u8] {
        &keys[self.start..self.start + self.bytes as usize]
    }
}

const SLOT_BYTES: usize = size_of::<KeyState>();

/// Empty slots that are made at once. A slot made where a key is added would be written and read again at once, in pieces of
/// other sizes, for which a processor waits until all it has written before is in the cache, the place of the key before too.
const BLANK_SLOTS: usize = 128;

/// What the index knows of a key: the low half of its hash, and the number of its slot.
#[derive(Debug, Clone, Copy)]
struct IndexEntry {
    low: u32,
    slot: u32,
}

impl IndexEntry {
    /// What the index hashes by: half of the key's own hash, spread over all bits.
    #[inline]
    fn hash(low: u32) -> u64 {
        u64::from(low).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

/// Bytes of a place and what the index keeps beside it, at the least load there can be.
const PLACE_BYTES: usize = 2 * (size_of::<IndexEntry>() + 1);

/// Aggregates by key, in a bounded memory.
#[derive(Debug)]
pub struct AggregateTable {
    aggregate: Aggregate,
    index: HashTable<IndexEntry>,
    /// Those of the keys, then empty ones.
    slots: Vec<KeyState>,
    keys: Vec<u8>,
    /// Bytes that states hold beside the table.
    heap_bytes: usize,
    limit_bytes: usize,
    added: u64,
    given: u64,
    scratch: Vec<u8>,
}

impl AggregateTable {
    /// An empty table that gives what it has to a collector before it takes more than `limit_bytes`.
    ///
    /// ```
    /// use gristmill_base::aggregate::Aggregate;
    /// use gristmill_tasks::spill::table::AggregateTable;
    /// use gristmill_base::value::{hash, write};
    /// let mut table = AggregateTable::new(Aggregate::Sum, 1 << 20);
    /// let mut key = Vec::new();
    /// write::text(&mut key, "word");
    /// for _ in 0..3 {
    ///     table.add_int(hash(&key), &key, 1, 0, |_| Ok(0))?;
    /// }
    /// assert_eq!((table.len(), table.added()), (1, 3));
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    pub fn new(aggregate: Aggregate, limit_bytes: usize) -> Self {
        let first = FIRST_SLOTS.min(limit_bytes / (SLOT_BYTES + PLACE_BYTES));
        AggregateTable {
            aggregate,
            index: HashTable::with_capacity(first),
            slots: Vec::with_capacity(first),
            keys: Vec::new(),
            heap_bytes: 0,
            limit_bytes,
            added: 0,
            given: 0,
            scratch: Vec::new(),
        }
    }

    /// Adds an encoded value at `position` of the input to a key, given with its hash; `partition` gives that of a key
    /// which is new, from its hash.
    #[inline]
    pub fn add(
        &mut self,
        hash: u64,
        key: &[u8],
        value: &[u8],
        position: u64,
        partition: impl FnOnce(u64) -> Result<u32>,
    ) -> Result<()> {
        self.update(hash, key, partition, |aggregate, state| {
            aggregate.add(state, value, position)
        })
    }

    /// The same with an integer that needs no encoding.
    #[inline]
    pub fn add_int(
        &mut self,
        hash: u64,
        key: &[u8],
        value: i64,
        position: u64,
        partition: impl FnOnce(u64) -> Result<u32>,
    ) -> Result<()> {
        self.update(hash, key, partition, |aggregate, state| {
            aggregate.add_int(state, value, position)
        })
    }

    /// Looks for keys with these hashes, so that what is known of them is near when something is added to it. Where
    /// additions wait for memory one after the other, this waits for many places at once: a block of keys
    /// takes half the time with it.
    #[inline]
    pub fn touch(&self, hashes: &[u64]) {
        let mut seen = 0;
        for hash in hashes {
            let low = *hash as u32;
            let found = self
                .index
                .find(IndexEntry::hash(low), |place| place.low == low)
                .and_then(|place| self.slots.get(place.slot as usize))
                .and_then(|slot| self.keys.get(slot.start));
            seen ^= found.copied().unwrap_or_default();
        }
        std::hint::black_box(seen);
    }

    #[inline]
    fn update(
        &mut self,
        hash: u64,
        key: &[u8],
        partition: impl FnOnce(u64) -> Result<u32>,
        add: impl FnOnce(&Aggregate, &mut AggregateState) -> Result<()>,
    ) -> Result<()> {
        debug_assert_eq!(hash, value::hash(key));
        let (low, slots, keys) = (hash as u32, &self.slots, &self.keys);
        let same = |place: &IndexEntry| {
            place.low == low
                && slots
                    .get(place.slot as usize)
                    .is_some_and(|slot| slot.key(keys) == key)
        };
        let number = match self.index.find(IndexEntry::hash(low), same) {
            Some(place) => place.slot as usize,
            None => self.new_slot(hash, key, partition(hash)?)?,
        };
        let slot = &mut self.slots[number];
        let before = slot.state.heap_bytes();
        add(&self.aggregate, &mut slot.state)?;
        self.heap_bytes = (self.heap_bytes + slot.state.heap_bytes()).saturating_sub(before);
        self.added += 1;
        Ok(())
    }

    /// Gives a key a slot.
    #[inline]
    fn new_slot(&mut self, hash: u64, key: &[u8], partition: u32) -> Result<usize> {
        let bytes = stored_length(key.len())?;
        let (low, number) = (hash as u32, self.index.len());
        if number == self.slots.len() {
            let blank = || KeyState {
                state: self.aggregate.empty(),
                start: 0,
                bytes: 0,
                partition: 0,
            };
            self.slots.resize_with(number + BLANK_SLOTS, blank);
        }
        let place = IndexEntry {
            low,
            slot: number as u32, // a table of so many is full
        };
        let again = |place: &IndexEntry| IndexEntry::hash(place.low);
        self.index
            .insert_unique(IndexEntry::hash(low), place, again);
        let slot = &mut self.slots[number];
        slot.start = self.keys.len();
        slot.bytes = bytes;
        slot.partition = partition;
        self.keys.extend_from_slice(key);
        Ok(number)
    }

    /// Whether it has so much that it must be given to a collector before more is added. What grows can hold the
    /// old and the new for a moment: it is full before it would.
    #[inline]
    pub fn is_full(&self) -> bool {
        let used = self.len() == self.slots.len();
        let grows = used && self.slots.len() + BLANK_SLOTS > self.slots.capacity();
        let slots = if grows { 2 } else { 1 } * self.slots.len();
        let places = self.index.capacity() * (PLACE_BYTES / 2);
        let grows = self.index.len() == self.index.capacity();
        let places = if grows { 3 } else { 1 } * places;
        let keys = self.keys.len() + self.keys.capacity();
        let taken = slots * SLOT_BYTES + places + keys + self.heap_bytes;
        (taken > self.limit_bytes || self.len() > u32::MAX as usize) && !self.is_empty()
    }

    /// Keys in it.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Values added, in all.
    pub fn added(&self) -> u64 {
        self.added
    }

    /// States given to collectors, in all.
    pub fn given(&self) -> u64 {
        self.given
    }

    /// Gives all it has to `collector`, and is empty.
    pub fn give(&mut self, collector: &mut PairCollector, progress: Progress<'_>) -> Result<()> {
        let AggregateTable {
            aggregate,
            slots,
            keys,
            scratch,
            ..
        } = self;
        let len = self.index.len();
        self.given += len as u64;
        self.index.clear();
        for slot in slots.drain(..).take(len) {
            scratch.clear();
            aggregate.write(&slot.state, scratch);
            collector.append(slot.partition, slot.key(keys), b"", scratch, progress)?;
        }
        keys.clear();
        self.heap_bytes = 0;
        Ok(())
    }
}

/// A key's length as a slot has it: cut, it would be the key of another group.
fn stored_length(bytes: usize) -> Result<u32> {
    u32::try_from(bytes).map_err(|_long| {
        let message = format!(
            "a key of {bytes} bytes is longer than the longest, {} bytes",
            u32::MAX
        );
        Error::new(Kind::BadInput, "collect what the map gave", message).advise("make shorter keys")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_too_long_is_an_error_and_not_cut() {
        assert_eq!(stored_length(u32::MAX as usize).unwrap(), u32::MAX);
        let error = stored_length(u32::MAX as usize + 1).unwrap_err();
        assert_eq!(error.kind(), Kind::BadInput);
        assert!(error.to_string().contains("4294967296 bytes"), "{error}");
    }
}

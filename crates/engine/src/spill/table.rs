//! The table: aggregates of the keys seen so far, which is all that is kept of them.
//!
//! ```text
//!   add(key, value) ──▶ | key ─▶ partition, State |  ──full, or at the end──▶ Collector: key, written state
//! ```
//!
//! Where a job only wants an aggregate of each key, pairs need not be kept, sorted and written one by one: most of them
//! meet their key here. What the table gives to the collector is what a combiner would give, and a reducer merges states.
//!
//! The rule that must hold: every value added is in exactly one state that was given to the collector.

use hashbrown::HashTable;

use super::Progress;
use super::collect::Collector;
use crate::aggregate::{Aggregate, State};
use crate::error::Result;
use crate::value;

/// Slots that a table begins with.
const FIRST_SLOTS: usize = 1 << 12;

/// A key and what is known of its values.
#[derive(Debug)]
struct Slot {
    state: State,
    /// Where the key is among the bytes of keys.
    start: usize,
    bytes: u32,
    partition: u32,
}

/// Bytes of a slot and what the table keeps beside it, at the least load there can be.
const SLOT_BYTES: usize = 2 * (size_of::<Slot>() + 1);

/// Aggregates by key, in a bounded memory.
#[derive(Debug)]
pub struct Table {
    aggregate: Aggregate,
    slots: HashTable<Slot>,
    keys: Vec<u8>,
    /// Bytes that states hold beside the table.
    heap_bytes: usize,
    limit_bytes: usize,
    added: u64,
    given: u64,
    scratch: Vec<u8>,
}

impl Table {
    /// An empty table that gives what it has to a collector before it takes more than `limit_bytes`.
    ///
    /// ```
    /// use gristmill_engine::aggregate::Aggregate;
    /// use gristmill_engine::spill::table::Table;
    /// use gristmill_engine::value::{hash, write};
    /// let mut table = Table::new(Aggregate::Sum, 1 << 20);
    /// let mut key = Vec::new();
    /// write::text(&mut key, "word");
    /// for _ in 0..3 {
    ///     table.add_int(hash(&key), &key, 1, 0, |_| Ok(0))?;
    /// }
    /// assert_eq!((table.len(), table.added()), (1, 3));
    /// # Ok::<(), gristmill_engine::Error>(())
    /// ```
    pub fn new(aggregate: Aggregate, limit_bytes: usize) -> Self {
        Table {
            aggregate,
            slots: HashTable::with_capacity(FIRST_SLOTS.min(limit_bytes / SLOT_BYTES)),
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
            let look = |slot: &Slot| {
                seen ^= self.keys.get(slot.start).copied().unwrap_or_default();
                false
            };
            let _ = self.slots.find(*hash, look);
        }
        std::hint::black_box(seen);
    }

    #[inline]
    fn update(
        &mut self,
        hash: u64,
        key: &[u8],
        partition: impl FnOnce(u64) -> Result<u32>,
        add: impl FnOnce(&Aggregate, &mut State) -> Result<()>,
    ) -> Result<()> {
        debug_assert_eq!(hash, value::hash(key));
        let keys = &self.keys;
        let same = |slot: &Slot| keys[slot.start..slot.start + slot.bytes as usize] == *key;
        let slot = match self.slots.find_mut(hash, same) {
            Some(slot) => slot,
            None => {
                let slot = Slot {
                    state: self.aggregate.empty(),
                    start: self.keys.len(),
                    bytes: key.len() as u32,
                    partition: partition(hash)?,
                };
                self.keys.extend_from_slice(key);
                let keys = &self.keys;
                let again =
                    |slot: &Slot| value::hash(&keys[slot.start..slot.start + slot.bytes as usize]);
                self.slots.insert_unique(hash, slot, again).into_mut()
            }
        };
        let before = slot.state.heap_bytes();
        add(&self.aggregate, &mut slot.state)?;
        self.heap_bytes = (self.heap_bytes + slot.state.heap_bytes()).saturating_sub(before);
        self.added += 1;
        Ok(())
    }

    /// Whether it has so much that it must be given to a collector before more is added. A table that grows holds the
    /// old and the new for a moment: it is full before it would.
    #[inline]
    pub fn is_full(&self) -> bool {
        let grows = self.slots.len() == self.slots.capacity();
        let slots = if grows { 3 } else { 1 } * self.slots.capacity() * (SLOT_BYTES / 2);
        let keys = self.keys.len() + self.keys.capacity();
        slots + keys + self.heap_bytes > self.limit_bytes && !self.slots.is_empty()
    }

    /// Keys in it.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
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
    pub fn give(&mut self, collector: &mut Collector, progress: Progress<'_>) -> Result<()> {
        let Table {
            aggregate,
            slots,
            keys,
            scratch,
            ..
        } = self;
        self.given += slots.len() as u64;
        for slot in slots.drain() {
            let key = &keys[slot.start..slot.start + slot.bytes as usize];
            scratch.clear();
            aggregate.write(&slot.state, scratch);
            collector.append(slot.partition, key, b"", scratch, progress)?;
        }
        keys.clear();
        self.heap_bytes = 0;
        Ok(())
    }
}

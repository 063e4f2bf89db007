//! Counts: how often each key occurred, for keys that mostly are words.
//!
//! ```text
//!   key ──up to 15 bytes──▶ word of 16 bytes: | key, zeros behind it | length |
//!    │                           │ 64 together, each slot asked for before it is needed
//!    │                           ▼
//!    │                      slots, by hash: | word | count | hash | ...   32 bytes each
//!    └──longer──▶ AggregateTable                            ──full, or at the end──▶ PairCollector: key, written sum
//! ```
//!
//! A short key is compared at once, and lies where its count does: a key that was there before costs one look at memory, and
//! no other memory has to be found first.
//!
//! The rule that must hold: every key added is in exactly one count that was given to the collector.
//!
//! Decision: docs/decisions/short-keys.md.

use std::ops::Range;

use super::Progress;
use super::collect::PairCollector;
use super::table::AggregateTable;
use gristmill_base::aggregate::Aggregate;
use gristmill_base::error::Result;
use gristmill_base::sys::pages::{Pages, prefetch};
use gristmill_base::value;

/// The longest key that a slot holds.
const SHORT_BYTES: usize = size_of::<u128>() - 1;

/// Keys that wait until their slots are near.
const WAITING: usize = 64;

/// A slot: both halves of the word, how often it occurred, its hash. A count of 0 is a free one.
type Slot = [u64; SLOT_WORDS];
const SLOT_WORDS: usize = 4;
const LOW: usize = 0;
const HIGH: usize = 1;
const COUNT: usize = 2;
const HASH: usize = 3;

/// Slots that there are at first: a power of two, with room for keys that wait.
const FIRST_SLOTS: usize = 1 << 12;

/// A short key: its bytes, the first one lowest, and in the highest byte one more than its length: no word is zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Word(u128);

impl Word {
    /// The key that lies in `key` of `text`, which may go on behind it: that makes this fast.
    #[inline]
    fn of(text: &[u8], key: Range<usize>) -> Self {
        let length = key.len();
        debug_assert!(length <= SHORT_BYTES);
        let bytes = match text.get(key.start..).and_then(|rest| rest.first_chunk()) {
            Some(bytes) => u128::from_le_bytes(*bytes),
            None => few(&text[key]),
        };
        let kept = bytes & ((1 << (8 * length)) - 1);
        Word(kept | (length as u128 + 1) << (8 * SHORT_BYTES))
    }

    #[inline]
    fn halves(self) -> [u64; 2] {
        [self.0 as u64, (self.0 >> 64) as u64]
    }

    /// The two halves of a product: a bit of the word changes about half of them.
    #[inline]
    fn hash(self) -> u64 {
        let [low, high] = self.halves();
        let product =
            u128::from(low ^ 0x9E37_79B9_7F4A_7C15) * u128::from(high ^ 0xD6E8_FEB8_6659_FD93);
        product as u64 ^ (product >> 64) as u64
    }
}

/// Fewer bytes than sixteen, with none behind them.
#[cold]
fn few(key: &[u8]) -> u128 {
    let mut bytes = [0; size_of::<u128>()];
    bytes[..key.len()].copy_from_slice(key);
    u128::from_le_bytes(bytes)
}

/// How often each key occurred, in a bounded memory.
pub struct Counts {
    slots: Pages<u64>,
    len: usize,
    waiting: Vec<(Word, u64)>,
    /// Keys that no slot holds.
    long: AggregateTable,
    limit_bytes: usize,
    added: u64,
    given: u64,
    key_bytes: u64,
}

impl Counts {
    /// No counts, which take `limit_bytes` of memory at most.
    ///
    /// ```
    /// use gristmill_tasks::spill::counts::Counts;
    /// let (mut counts, text) = (Counts::new(1 << 20)?, b"to be or not to be");
    /// for word in [0..2, 3..5, 6..8, 9..12, 13..15, 16..18] {
    ///     counts.add(text, word, |_| 0)?;
    /// }
    /// assert_eq!((counts.added(), counts.key_bytes()), (6, 13));
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    pub fn new(limit_bytes: usize) -> Result<Self> {
        let most = limit_bytes / 4 * 3;
        let half = (most / size_of::<Slot>()).next_power_of_two() / 2;
        Ok(Counts {
            slots: Pages::zeroed(SLOT_WORDS * half.clamp(4 * WAITING, FIRST_SLOTS))?,
            len: 0,
            waiting: Vec::with_capacity(WAITING),
            long: AggregateTable::new(Aggregate::Sum, limit_bytes / 4),
            limit_bytes,
            added: 0,
            given: 0,
            key_bytes: 0,
        })
    }

    /// Counts the key that lies in `key` of `text`. Whether it is full: it must be given to a collector before more is added.
    /// `partition` says that of a key.
    #[inline]
    pub fn add(
        &mut self,
        text: &[u8],
        key: Range<usize>,
        partition: impl FnOnce(&[u8]) -> u32,
    ) -> Result<bool> {
        self.added += 1;
        self.key_bytes += key.len() as u64;
        if key.len() > SHORT_BYTES {
            return self.add_long(&text[key], partition);
        }
        let word = Word::of(text, key);
        let hash = word.hash();
        prefetch(self.slots.as_ptr().wrapping_add(self.first_of(hash)).cast());
        self.waiting.push((word, hash));
        if self.waiting.len() < WAITING {
            return Ok(false);
        }
        self.settle()
    }

    #[cold]
    fn add_long(&mut self, key: &[u8], partition: impl FnOnce(&[u8]) -> u32) -> Result<bool> {
        let part = |_| Ok(partition(key));
        self.long.add_int(value::hash(key), key, 1, 0, part)?;
        Ok(self.long.is_full())
    }

    /// Where among the words of memory the slot lies at which a search for this hash begins.
    #[inline]
    fn first_of(&self, hash: u64) -> usize {
        SLOT_WORDS * (hash as usize & (self.capacity() - 1))
    }

    fn capacity(&self) -> usize {
        self.slots.len() / SLOT_WORDS
    }

    /// Adds the keys that wait to their counts. There is room for them; whether there is for as many once more.
    #[inline]
    fn settle(&mut self) -> Result<bool> {
        if !self.has_room(self.waiting.len()) {
            self.grow()?;
        }
        let (slots, _) = self.slots.as_chunks_mut::<SLOT_WORDS>();
        let last = slots.len() - 1;
        for (word, hash) in self.waiting.drain(..) {
            let [low, high] = word.halves();
            let mut at = hash as usize & last;
            loop {
                let slot = &mut slots[at];
                if (slot[LOW], slot[HIGH]) == (low, high) {
                    slot[COUNT] += 1;
                    break;
                }
                if slot[COUNT] == 0 {
                    *slot = [low, high, 1, hash];
                    self.len += 1;
                    break;
                }
                at = (at + 1) & last;
            }
        }
        Ok(!self.has_room(WAITING) && !self.may_grow())
    }

    /// Whether so many keys have room, and three slots in eight stay free.
    fn has_room(&self, keys: usize) -> bool {
        self.len + keys <= self.capacity() / 8 * 5
    }

    /// Whether twice as many slots and those there are have room together.
    fn may_grow(&self) -> bool {
        3 * self.slots.len() * size_of::<u64>() <= self.limit_bytes / 4 * 3
    }

    #[cold]
    fn grow(&mut self) -> Result<()> {
        let mut larger = Pages::zeroed(2 * self.slots.len())?;
        let (to, _) = larger.as_chunks_mut::<SLOT_WORDS>();
        let last = to.len() - 1;
        for slot in self.slots.as_chunks::<SLOT_WORDS>().0 {
            if slot[COUNT] > 0 {
                let mut at = slot[HASH] as usize & last;
                while to[at][COUNT] > 0 {
                    at = (at + 1) & last;
                }
                to[at] = *slot;
            }
        }
        self.slots = larger;
        Ok(())
    }

    /// Keys added, each as often as it was.
    pub fn added(&self) -> u64 {
        self.added
    }

    /// Their bytes.
    pub fn key_bytes(&self) -> u64 {
        self.key_bytes
    }

    /// Counts given to collectors.
    pub fn given(&self) -> u64 {
        self.given + self.long.given()
    }

    /// Gives all counts to `collector`, each to the partition of its key, and is empty.
    pub fn give(
        &mut self,
        collector: &mut PairCollector,
        partition: impl Fn(&[u8]) -> u32,
        progress: Progress<'_>,
    ) -> Result<()> {
        self.settle()?;
        self.given += self.len as u64;
        let mut sum = Vec::new();
        for slot in self.slots.as_chunks_mut::<SLOT_WORDS>().0 {
            let count = std::mem::take(&mut slot[COUNT]);
            if count == 0 {
                continue;
            }
            let word = u128::from(slot[HIGH]) << 64 | u128::from(slot[LOW]);
            let bytes = word.to_le_bytes();
            let key = &bytes[..usize::from(bytes[SHORT_BYTES]) - 1];
            (slot[LOW], slot[HIGH]) = (0, 0);
            let mut state = Aggregate::Sum.empty();
            Aggregate::Sum.add_int(&mut state, count.cast_signed(), 0)?;
            sum.clear();
            Aggregate::Sum.write(&state, &mut sum);
            collector.append(partition(key), key, b"", &sum, progress)?;
        }
        self.len = 0;
        self.long.give(collector, progress)
    }
}

impl std::fmt::Debug for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Counts")
            .field("len", &self.len)
            .field("added", &self.added)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::spill::collect::CollectPlan;
    use gristmill_storage::LocalDisk;
    use gristmill_storage::memory::Memory;

    fn collector() -> PairCollector {
        let store = Arc::new(Memory::with_room_for(1 << 26));
        store.create_directory("/runs".as_ref()).unwrap();
        let plan = CollectPlan {
            partitions: 3,
            chunk_bytes: 1 << 22,
            buffer_bytes: 1 << 16,
            job_id: "a-job".into(),
            places: vec!["/runs".into()],
            compression: Default::default(),
        };
        PairCollector::new(store, plan, "0-0".into(), Default::default()).unwrap()
    }

    fn partition(key: &[u8]) -> u32 {
        key.len() as u32 % 3
    }

    /// What a collector is given: for how many keys, after how many fillings.
    fn counted(keys: &[Vec<u8>], limit: usize) -> (u64, usize) {
        let (mut counts, mut collector) = (Counts::new(limit).unwrap(), collector());
        let text = keys.concat();
        let (mut start, mut filled) = (0, 0);
        for key in keys {
            let full = counts
                .add(&text, start..start + key.len(), partition)
                .unwrap();
            start += key.len();
            if full {
                counts.give(&mut collector, partition, &|_| Ok(())).unwrap();
                filled += 1;
            }
            assert!(counts.slots.len() * 8 <= limit.max(8 << 10));
        }
        counts.give(&mut collector, partition, &|_| Ok(())).unwrap();
        assert_eq!(counts.added(), keys.len() as u64);
        assert_eq!(counts.key_bytes(), text.len() as u64);
        assert_eq!(counts.given(), collector.records());
        (counts.given(), filled)
    }

    proptest! {
        #[test]
        fn each_different_key_is_given_once(
            keys in vec(prop_oneof![
                vec(prop_oneof![Just(0_u8), Just(b'a'), any::<u8>()], 0..3),
                vec(Just(0_u8), 0..40),
                vec(prop_oneof![Just(0_u8), Just(b'b')], 14..18),
            ], 0..400),
        ) {
            let different: BTreeMap<&[u8], usize> = keys.iter().map(|key| (&key[..], 0)).collect();
            prop_assert_eq!(counted(&keys, 1 << 20), (different.len() as u64, 0));
        }
    }

    #[test]
    fn what_has_no_room_is_given_earlier() {
        let keys: Vec<Vec<u8>> = (0..40_000_u32).map(|key| key.to_string().into()).collect();
        assert_eq!(counted(&keys, 8 << 20), (40_000, 0));
        let (given, filled) = counted(&keys, 400 << 10);
        assert_eq!(given, 40_000);
        assert!((4..40).contains(&filled), "{filled}");
        let long: Vec<Vec<u8>> = keys
            .iter()
            .map(|key| [&key[..], &[b'x'; 60]].concat())
            .collect();
        let (given, filled) = counted(&long, 2 << 20);
        assert_eq!(given, 40_000);
        assert!(filled > 2, "{filled}");
    }
}

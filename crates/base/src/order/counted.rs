//! Sorts entries of which many have the same key by counting: only the different keys are compared.
//!
//! ```text
//!   entries    | 16 bytes | 16 bytes | 16 bytes | ...        key and its length | place, as in `compact`
//!   packed     | 8 | 8 | 8 | ...          | free             number of the key  | place
//!   counted    one count for each key; keys sorted ─▶ where the places of each begin
//!   sorted     | free                     | 8 | 8 | 8 | ...  places, those of one key together
//! ```
//!
//! Of words in natural text one in fifty is a new one: a look into a small table and a move, 26 ns an entry, take the place
//! of some twenty comparisons, 43 ns. Of too many different keys nothing is sorted, and the entries are as they were.
//!
//! Decision: docs/decisions/counted-keys.md.

use super::Entry;
use super::placed::{PLACE_BITS, is_longer, place_of};
use super::refine::{KeySource, sort_entries};
use crate::record::KEY_BYTES;
use crate::sys::pages::{words_of, words_of_mut};

/// Different keys at most, as one of so many entries and as a number: their table, of 4 MB at most, mostly stays in a
/// core's own cache.
const ENTRIES_OF_KEY: usize = 16;
const KEYS_MAX: usize = 1 << 16;

/// Entries whose key may take so many looks at most: keys that were made to collide end here.
const LOOKS_MAX: usize = 64;

/// Sorts entries as [`sort_compact`](super::compact::sort_compact) does, which leaves the places in the first half. False
/// where there are too many different keys, or too many alike beyond what an entry holds.
pub(super) fn sort_counted(entries: &mut [Entry], keys: &dyn KeySource) -> bool {
    let Some(heads) = pack(entries) else {
        return false;
    };
    let goes_on = |head: u128| keys.longest() > KEY_BYTES && is_longer(head, keys.descending());
    let mut order: Vec<u32> = (0..).take(heads.keys.len()).collect();
    order.sort_unstable_by_key(|number| heads.keys[*number as usize]);
    let room = entries.len() / 2; // for entries of one key
    if (0..order.len()).any(|number| goes_on(heads.keys[number]) && heads.counts[number] > room) {
        unpack(entries, entries.len(), &heads);
        return false;
    }
    let mut nexts = vec![0; order.len()];
    let mut start = 0;
    for number in &order {
        nexts[*number as usize] = start;
        start += heads.counts[*number as usize];
    }
    let count = entries.len();
    let (first, second) = entries.split_at_mut(room);
    let (odd, sorted) = words_of_mut(second).split_at_mut(count % 2);
    // Entries of chunks lie from the last to the first: so places mostly ascend, which sorting each key's makes sure of.
    for packed in words_of(first).iter().chain(&*odd).rev() {
        let next = &mut nexts[(packed >> PLACE_BITS) as usize];
        sorted[*next] = packed & ((1 << PLACE_BITS) - 1);
        *next += 1;
    }
    let mut rest = sorted;
    for number in order {
        let (places, others) = rest.split_at_mut(heads.counts[number as usize]);
        places.sort_unstable();
        if places.len() > 1 && goes_on(heads.keys[number as usize]) {
            sort_by_keys(places, first, keys);
        }
        rest = others;
    }
    words_of_mut(entries).copy_within(count.., 0);
    true
}

/// Sorts places by their whole keys, with some memory for entries.
fn sort_by_keys(places: &mut [u64], memory: &mut [Entry], keys: &dyn KeySource) {
    let entries = &mut memory[..places.len()];
    for (entry, place) in entries.iter_mut().zip(&*places) {
        *entry = Entry::new(&[0; KEY_BYTES], *place);
        keys.prefetch(*place);
    }
    sort_entries(keys, entries);
    for (place, entry) in places.iter_mut().zip(entries) {
        *place = entry.position();
    }
}

/// What stands above the place in an entry: the key, as far as it goes, and its length.
#[inline]
fn head_of(entry: Entry) -> u128 {
    entry.key_number() << 4 | u128::from(entry.position() >> PLACE_BITS)
}

/// Packs each entry into a word; `None` where there are too many keys, and the entries are as they were.
fn pack(entries: &mut [Entry]) -> Option<DistinctHeads> {
    let mut heads = DistinctHeads::new((entries.len() / ENTRIES_OF_KEY).min(KEYS_MAX));
    for i in 0..entries.len() {
        let entry = entries[i];
        let Some(number) = heads.number_of(head_of(entry)) else {
            unpack(entries, i, &heads);
            return None;
        };
        // Entries behind this one begin further on.
        words_of_mut(entries)[i] = (number as u64) << PLACE_BITS | place_of(entry);
    }
    Some(heads)
}

/// Makes entries of the first `count` words again.
fn unpack(entries: &mut [Entry], count: usize, heads: &DistinctHeads) {
    for i in (0..count).rev() {
        let packed = words_of(entries)[i];
        let head = heads.keys[(packed >> PLACE_BITS) as usize];
        let mut key = [0; KEY_BYTES];
        key.copy_from_slice(&(head >> 4).to_be_bytes()[size_of::<u128>() - KEY_BYTES..]);
        let length = (head & 0xF) as u64;
        let place = packed & ((1 << PLACE_BITS) - 1);
        entries[i] = Entry::new(&key, length << PLACE_BITS | place);
    }
}

/// The different heads, in the order in which they came, how often each came, and an index of them.
struct DistinctHeads {
    keys: Vec<u128>,
    counts: Vec<usize>,
    most: usize,
    /// Numbers of keys, from 1 on, where their hashes say or behind; 0 where there is none.
    index: Vec<u32>,
    shift: u32,
}

impl DistinctHeads {
    fn new(most: usize) -> Self {
        let bits = (2 * most).max(2).next_power_of_two().ilog2();
        DistinctHeads {
            keys: Vec::new(),
            counts: Vec::new(),
            most,
            index: vec![0; 1 << bits],
            shift: u64::BITS - bits,
        }
    }

    /// The number of a head, which is counted.
    #[inline]
    fn number_of(&mut self, head: u128) -> Option<usize> {
        let mixed = (head as u64 ^ ((head >> 64) as u64).rotate_left(32))
            .wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut at = (mixed >> self.shift) as usize;
        for _ in 0..LOOKS_MAX {
            let number = self.index[at] as usize;
            if number == 0 {
                return self.add(head, at);
            }
            if self.keys[number - 1] == head {
                self.counts[number - 1] += 1;
                return Some(number - 1);
            }
            at = (at + 1) & (self.index.len() - 1);
        }
        None
    }

    #[cold]
    fn add(&mut self, head: u128, at: usize) -> Option<usize> {
        if self.keys.len() == self.most {
            return None;
        }
        self.keys.push(head);
        self.counts.push(1);
        self.index[at] = u32::try_from(self.keys.len()).ok()?;
        Some(self.keys.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::compact::tests::{List, entries, stable_sort};
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Words of which some end in one another, and some are alike beyond what an entry holds.
    fn word() -> impl Strategy<Value = Vec<u8>> {
        let short = vec(prop_oneof![Just(0_u8), Just(b'a')], 0..3);
        let long = vec(prop_oneof![Just(0_u8), Just(b'a')], 0..2)
            .prop_map(|end| [&b"ten bytes.."[..], &end].concat());
        prop_oneof![3 => short, 1 => long]
    }

    proptest! {
        /// What is not sorted is as it was.
        #[test]
        fn places_come_as_a_stable_sort_puts_them(
            words in vec(word(), 0..1500),
            descending in any::<bool>(),
            turned in any::<bool>(),
        ) {
            let list = List(words, descending);
            let mut all = entries(&list);
            if turned {
                all.reverse();
            }
            let before = all.clone();
            if sort_counted(&mut all, &list) {
                prop_assert_eq!(&words_of(&all)[..list.0.len()], &stable_sort(&list)[..]);
            } else {
                prop_assert_eq!(all, before);
            }
        }
    }

    #[test]
    fn many_of_few_keys_are_counted_and_others_left() {
        let list = |keys: u64, key: fn(u64) -> Vec<u8>| {
            List(
                (0..100_001_u64).map(|i| key(i * 7919 % keys)).collect(),
                false,
            )
        };
        let number = |i: u64| i.to_string().into_bytes();
        let long = |i: u64| format!("{} ten bytes.{i}", i % 3).into_bytes();
        let lists = [
            list(1000, number),
            list(9, long),
            list(50_000, number),
            list(1, long),
        ];
        let counted = lists.map(|list| {
            let mut all = entries(&list);
            let before = all.clone();
            let done = sort_counted(&mut all, &list);
            assert!(done || all == before);
            assert!(!done || words_of(&all)[..list.0.len()] == stable_sort(&list));
            done
        });
        // Of the last two one has too many keys, one too many entries that only their records tell apart.
        assert_eq!(counted, [true, true, false, false]);
    }
}

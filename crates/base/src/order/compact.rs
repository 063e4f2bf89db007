//! Sorts as many entries as a memory holds, in that memory: eight bytes of each say enough to sort by.
//!
//! ```text
//!   entries    | 16 bytes | 16 bytes | 16 bytes | ...                     key, 10 bytes | position
//!   packed     | 8 | 8 | 8 | ...         | free                           key bits | position, as in `packed`
//!              distribute by leading bits │
//!                            ...         ▼ | bucket | bucket | ...        about 32,768 each
//!              sort each, in cache ◀──────┘
//!   sorted     | positions, in order      |
//! ```
//!
//! Moving entries out of place is what a standard sort cannot do and what makes this fast: no move waits for another.
//! Half of the memory is free, as eight bytes do.
//!
//! Where key bits tie the keys themselves decide, which costs a fetch from far away: so keys that tie often in those
//! bits, as text does, are seen in a sample, and sorted by all sixteen bytes, or counted where whole keys repeat
//! (`counted`). The order is the same. There four bits of the position say how long a key is, if it ends
//! within the entry (`placed`): two such keys that tie are equal, and nothing need be fetched to know.
//!
//! Decision: docs/decisions/eight-byte-sort.md.
//! Decision: docs/decisions/key-length-bits.md.

use super::Entry;
use super::counted::sort_counted;
use super::packed::{Packed, PackedKeyRange, position_bits, resolve_ties};
use super::placed::{LONGER, PLACE_BITS, place_of};
use super::refine::{AHEAD, KeySource, Refiner, sort_longer};
use super::sort::{SortScratch, sort_slices};
use crate::record::KEY_BYTES;
use crate::sys::pages::words_of_mut;

/// Entries of a bucket, on average over even keys: with what they are sorted to, they stay in a core's own cache.
const BUCKET_ENTRIES: usize = 1 << 15;

/// Buckets at most: each is a place that is written to in turn.
const BUCKET_BITS_MAX: u32 = 11;

/// Entries of the sample: their pairs tell ties from one in some ten million pairs on.
const SAMPLE_ENTRIES: usize = 1 << 14;

/// How many entries ahead their keys are asked for where some tie.
const TIES_AHEAD: usize = 2 * AHEAD;

/// Ties in the sample at most: beyond, an entry would have one in about every other case.
const SAMPLE_TIES_MAX: usize = 2;

/// Sorts entries by (key, place), whole keys included; gives their places, which are left of them.
///
/// ```
/// use gristmill_base::order::{compact::sort_compact, placed::compact_entry, refine::KeySource};
/// struct Lines(&'static [u8]);
/// impl KeySource for Lines {
///     fn key_at(&self, position: u64) -> &[u8] {
///         &self.0[position as usize..][..10]
///     }
/// }
/// let lines = Lines(b"keys-no-2 keys-no-1 keys-no-0 ");
/// let mut entries = [0, 10, 20].map(|at| compact_entry(lines.key_at(at), false, at));
/// assert_eq!(sort_compact(&mut entries, &lines), [20, 10, 0]);
/// ```
pub fn sort_compact<'a>(entries: &'a mut [Entry], keys: &dyn KeySource) -> &'a [u64] {
    let count = entries.len();
    if repeat_often(entries) && sort_counted(entries, keys) {
        return &words_of_mut(entries)[..count];
    }
    let packer = Packer::new(entries, keys.spare_bits());
    if packer.tells_apart(entries) {
        let words = words_of_mut(entries);
        packer.sort(words, keys);
        return &words[..count];
    }
    entries.sort_unstable();
    if keys.longest() > KEY_BYTES {
        refine_ties(keys, entries);
    }
    let words = words_of_mut(entries);
    for i in 0..count {
        words[i] = place_of(entry_at(words, i));
    }
    &words[..count]
}

/// Whether keys come more than once each, on average, in a sample.
fn repeat_often(entries: &[Entry]) -> bool {
    let step = (entries.len() / SAMPLE_ENTRIES).max(1);
    let mut sample: Vec<u128> = entries
        .iter()
        .step_by(step)
        .map(|entry| entry.key_number())
        .collect();
    sample.sort_unstable();
    let all = sample.len();
    sample.dedup();
    sample.len() <= all / 2
}

#[inline]
fn entry_at(words: &[u64], number: usize) -> Entry {
    Entry::from_words([words[2 * number], words[2 * number + 1]])
}

/// Lets the keys decide where their first ten bytes tie and they go on behind these. A key lies anywhere in the memory: it
/// is asked for while those before it are dealt with.
fn refine_ties(keys: &dyn KeySource, entries: &mut [Entry]) {
    // What stands above the place: equal only for keys that tie, and are both longer or both of one length.
    let head = |entry: Entry| (entry.key_number(), entry.position() >> PLACE_BITS);
    let longer = if keys.descending() { 0 } else { LONGER };
    let (mut first, mut asked, mut before) = (0, 0, None);
    while first < entries.len() {
        while asked < (first + TIES_AHEAD).min(entries.len()) {
            let here = head(entries[asked]);
            let after = entries.get(asked + 1).map(|entry| head(*entry));
            if here.1 == longer && (Some(here) == before || Some(here) == after) {
                keys.prefetch(place_of(entries[asked]));
            }
            (before, asked) = (Some(here), asked + 1);
        }
        let here = head(entries[first]);
        let ties = |entry: &&Entry| head(**entry) == here;
        let len = entries[first..].iter().take_while(ties).count();
        if len > 1 && here.1 == longer {
            let group = &mut entries[first..first + len];
            for entry in &mut *group {
                *entry = Entry::new(&[0; KEY_BYTES], place_of(*entry));
            }
            sort_longer(keys, group);
        }
        first += len;
        asked = asked.max(first);
    }
}

/// How the entries of one memory are packed.
struct Packer {
    frame: PackedKeyRange,
    position_bits: u32,
    /// Bits of a place that are left out, so that more of the key has room.
    spare_bits: u32,
    /// The highest entry, packed.
    highest: Packed,
}

/// Keys by places that were packed.
struct PackedKeys<'a> {
    keys: &'a dyn KeySource,
    spare_bits: u32,
}

impl KeySource for PackedKeys<'_> {
    fn key_at(&self, position: u64) -> &[u8] {
        self.keys.key_at(position << self.spare_bits)
    }

    fn descending(&self) -> bool {
        self.keys.descending()
    }

    fn longest(&self) -> usize {
        self.keys.longest()
    }

    fn prefetch(&self, position: u64) {
        self.keys.prefetch(position << self.spare_bits);
    }
}

impl Packer {
    fn new(entries: &[Entry], spare_bits: u32) -> Self {
        let (mut low, mut high, mut positions) = (u128::MAX, 0, 0);
        for entry in entries {
            low = low.min(entry.key_number());
            high = high.max(entry.key_number());
            positions |= place_of(*entry);
        }
        let position_bits = position_bits(positions >> spare_bits);
        let mut packer = Packer {
            frame: PackedKeyRange::new(low.min(high), high, u64::BITS - position_bits),
            position_bits,
            spare_bits,
            highest: 0,
        };
        let end = Entry::new(&high_key(high), positions);
        packer.highest = packer.pack(end);
        packer
    }

    #[inline]
    fn pack(&self, entry: Entry) -> Packed {
        (self.frame.bits(entry) << self.position_bits) | place_of(entry) >> self.spare_bits
    }

    /// Whether key bits tie seldom enough, by a sample.
    fn tells_apart(&self, entries: &[Entry]) -> bool {
        let step = (entries.len() / SAMPLE_ENTRIES).max(1);
        let sample = entries.iter().step_by(step);
        let mut bits: Vec<u64> = sample.map(|entry| self.frame.bits(*entry)).collect();
        bits.sort_unstable();
        let ties = bits.windows(2).filter(|pair| pair[0] == pair[1]).count();
        ties <= SAMPLE_TIES_MAX
    }

    /// Sorts the entries of `words`, two each, to positions in its first half.
    fn sort(&self, words: &mut [u64], keys: &dyn KeySource) {
        let count = words.len() / 2;
        let bucket_bits = (count / BUCKET_ENTRIES).max(1).ilog2().min(BUCKET_BITS_MAX);
        let width = u64::BITS - self.highest.leading_zeros();
        let shift = width.saturating_sub(bucket_bits).min(u64::BITS - 1);
        let mut ends = vec![0_usize; (self.highest >> shift) as usize + 1];
        for i in 0..count {
            let packed = self.pack(entry_at(words, i));
            words[i] = packed; // entries behind this one begin further on
            ends[(packed >> shift) as usize] += 1;
        }
        let (packed, buckets) = words.split_at_mut(count);
        distribute(packed, shift, &mut ends, buckets);
        let (mut start, mut scratch) = (0, SortScratch::default());
        for end in ends {
            sort_slices(
                &[&buckets[start..end]],
                &mut packed[start..end],
                &mut scratch,
            );
            start = end;
        }
        let spare_bits = self.spare_bits;
        let packed_keys = PackedKeys { keys, spare_bits };
        let mut refiner = Refiner::default();
        resolve_ties(packed, self.position_bits, &packed_keys, &mut refiner);
        let mask = (1 << self.position_bits) - 1;
        packed
            .iter_mut()
            .for_each(|packed| *packed = (*packed & mask) << spare_bits);
    }
}

/// The ten bytes of a key, from its number.
fn high_key(number: u128) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    key.copy_from_slice(&number.to_be_bytes()[size_of::<u128>() - KEY_BYTES..]);
    key
}

/// Moves every entry to its bucket; what was counted becomes the buckets' ends.
fn distribute(packed: &[Packed], shift: u32, counts: &mut [usize], to: &mut [Packed]) {
    let mut next = 0;
    for count in &mut *counts {
        next += *count;
        *count = next - *count;
    }
    for entry in packed {
        let slot = &mut counts[(entry >> shift) as usize];
        to[*slot] = *entry;
        *slot += 1;
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::order::placed::compact_entry;
    use proptest::prelude::*;

    /// Keys one behind the other; a position is a key's number.
    pub struct List(pub Vec<Vec<u8>>, pub bool);

    impl KeySource for List {
        fn key_at(&self, position: u64) -> &[u8] {
            &self.0[position as usize]
        }
        fn descending(&self) -> bool {
            self.1
        }
    }

    pub fn entries(list: &List) -> Vec<Entry> {
        let keys = list.0.iter().zip(0..);
        keys.map(|(key, at)| compact_entry(key, list.1, at))
            .collect()
    }

    pub fn stable_sort(list: &List) -> Vec<u64> {
        let mut want: Vec<u64> = (0..list.0.len() as u64).collect();
        want.sort_by(|a, b| {
            let order = list.key_at(*a).cmp(list.key_at(*b));
            if list.1 { order.reverse() } else { order }
        });
        want
    }

    fn keys() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let random = proptest::collection::vec(any::<u8>(), 10..14);
        let few = proptest::collection::vec(prop_oneof![Just(0_u8), Just(b'a')], 0..24);
        let alike = (0..4_u8, any::<u8>()).prop_map(|(a, b)| [b"the same.", &[a, b][..]].concat());
        let tail = proptest::collection::vec(prop_oneof![Just(0_u8), Just(b'a')], 0..24);
        let deep = tail.prop_map(|tail| [b"the same beginning", &tail[..]].concat());
        proptest::collection::vec(
            prop_oneof![4 => random, 1 => few, 1 => alike, 2 => deep],
            0..400,
        )
    }

    /// The same keys by places that say their lengths, where they are shorter than eight bytes.
    struct MeasuredKeys<'a>(&'a List);

    impl MeasuredKeys<'_> {
        const BITS: u32 = 3;

        fn place(&self, number: u64) -> u64 {
            let length = self.0.key_at(number).len() as u64;
            number << Self::BITS | if length < 1 << Self::BITS { length } else { 0 }
        }
    }

    impl KeySource for MeasuredKeys<'_> {
        fn key_at(&self, position: u64) -> &[u8] {
            self.0.key_at(position >> Self::BITS)
        }
        fn descending(&self) -> bool {
            self.0.descending()
        }
        fn spare_bits(&self) -> u32 {
            Self::BITS
        }
    }

    proptest! {
        /// Both ways, whichever the sample chooses.
        #[test]
        fn positions_come_as_a_stable_sort_puts_them(keys in keys(), descending in any::<bool>()) {
            let list = List(keys, descending);
            let mut all = entries(&list);
            prop_assert_eq!(sort_compact(&mut all, &list), &stable_sort(&list)[..]);
        }

        /// The way by eight bytes, also of keys that it is not meant for.
        #[test]
        fn packed_entries_come_as_a_stable_sort_puts_them(keys in keys(), descending in any::<bool>()) {
            let list = List(keys, descending);
            let mut all = entries(&list);
            let packer = Packer::new(&all, 0);
            let words = words_of_mut(&mut all);
            packer.sort(words, &list);
            prop_assert_eq!(&words[..list.0.len()], &stable_sort(&list)[..]);
        }

        /// Places that say lengths, which the way by eight bytes leaves out.
        #[test]
        fn measured_entries_come_as_a_stable_sort_puts_them(keys in keys(), descending in any::<bool>(), packed in any::<bool>()) {
            let list = List(keys, descending);
            let measured = MeasuredKeys(&list);
            let numbers = (0..).take(list.0.len());
            let entry = |number: u64| compact_entry(list.key_at(number), descending, measured.place(number));
            let mut all: Vec<Entry> = numbers.map(entry).collect();
            let places = if packed {
                let packer = Packer::new(&all, MeasuredKeys::BITS);
                packer.sort(words_of_mut(&mut all), &measured);
                &words_of_mut(&mut all)[..list.0.len()]
            } else {
                sort_compact(&mut all, &measured)
            };
            let found: Vec<u64> = places.iter().map(|place| place >> MeasuredKeys::BITS).collect();
            prop_assert_eq!(found, stable_sort(&list));
        }
    }

    /// More buckets than one, even keys and uneven ones.
    #[test]
    fn many_entries_come_as_a_stable_sort_puts_them() {
        for spread in [1_u64, 1 << 20] {
            let key = |i: u64| {
                let random = i.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (i << 17);
                (random / spread / (1 + i % 3 * (spread - 1)))
                    .to_be_bytes()
                    .to_vec()
            };
            let list = List((0..300_000).map(key).collect(), false);
            let mut all = entries(&list);
            assert!(sort_compact(&mut all, &list) == stable_sort(&list));
        }
    }
}

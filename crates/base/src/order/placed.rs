//! Compact entries: the first ten bytes of a key, how long the key is, and where its record lies.
//!
//! ```text
//!   entry      | key, 10 bytes, zeros behind its end | 4 bits: 0 to 10, or longer | place, 44 bits |
//!   place      | where the record begins | its length, in bits that no address of the memory needs |
//! ```
//!
//! The length of a line is known when its entry is made. Looking for its end again is a miss of the cache each time.
//!
//! Decision: docs/decisions/key-length-bits.md.

use super::Entry;
use super::refine::window;
use crate::record::KEY_BYTES;

/// Bits of an entry that say where its record lies: 16 TB of memory, beyond which no chunk goes.
pub const PLACE_BITS: u32 = 44;

/// Bits of a length at most: longer lines are few.
const LENGTH_BITS_MAX: u32 = 12;

/// How places say where a record of a memory begins, and how long it is.
///
/// ```
/// use gristmill_base::order::placed::LocatorLayout;
/// let places = LocatorLayout::with_lengths(1 << 20);
/// let place = places.place(70_000, 76);
/// assert_eq!((places.start(place), places.length(place)), (70_000, Some(76)));
/// assert_eq!(places.length(places.place(70_000, 1 << 20)), None);
/// assert!(places.place(70_000, 4_000) < places.place(70_001, 1));
/// let plain = LocatorLayout::default();
/// assert_eq!((plain.place(70_000, 76), plain.length(70_000)), (70_000, None));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LocatorLayout {
    length_bits: u32,
}

impl LocatorLayout {
    /// Places in a memory of so many bytes, with as much of a length as there are bits for.
    pub fn with_lengths(memory_bytes: usize) -> Self {
        let needed = usize::BITS - memory_bytes.leading_zeros();
        let length_bits = PLACE_BITS.saturating_sub(needed).min(LENGTH_BITS_MAX);
        LocatorLayout { length_bits }
    }

    /// The place of a record that begins at `start` and has `length` bytes.
    #[inline]
    pub fn place(self, start: usize, length: usize) -> u64 {
        let known = if length >> self.length_bits == 0 {
            length
        } else {
            0
        };
        (start << self.length_bits | known) as u64
    }

    /// Where the record begins.
    #[inline]
    pub fn start(self, place: u64) -> usize {
        (place >> self.length_bits) as usize
    }

    /// Its length, if the place says it.
    #[inline]
    pub fn length(self, place: u64) -> Option<usize> {
        match place & ((1 << self.length_bits) - 1) {
            0 => None,
            length => Some(length as usize),
        }
    }

    /// Bits of a place that say a length: zeros in place of them are as good.
    pub fn length_bits(self) -> u32 {
        self.length_bits
    }
}

/// The length that stands for a key longer than the entry holds; of the others it is the length itself.
pub(super) const LONGER: u64 = KEY_BYTES as u64 + 1;

/// The entry of a record that lies at `place` and has `key`, as [`sort_compact`](super::compact::sort_compact) takes it.
#[inline]
pub fn compact_entry(key: &[u8], descending: bool, place: u64) -> Entry {
    debug_assert!(place >> PLACE_BITS == 0);
    let (mut first, mut length) = (window(key, 0), (key.len() as u64).min(LONGER));
    if descending {
        // Of two keys that agree as far as the shorter one goes the longer one comes first.
        first = first.map(|byte| !byte);
        length = LONGER - length;
    }
    Entry::new(&first, length << PLACE_BITS | place)
}

/// Where the record of an entry lies.
#[inline]
pub(super) fn place_of(entry: Entry) -> u64 {
    entry.position() & ((1 << PLACE_BITS) - 1)
}

/// Whether a key, with its length in the lowest four bits, is longer than the entry holds.
pub(super) fn is_longer(key_and_length: u128, descending: bool) -> bool {
    let longer = if descending { 0 } else { LONGER };
    key_and_length & 0xF == u128::from(longer)
}

//! An entry stands for a record while it is sorted: ten bytes of key and the record's position.
//!
//! ```text
//!   bit 127                          48 47                  0
//!       | key, 10 bytes, big-endian    | position (locator)  |
//! ```
//!
//! Both halves are one 128-bit integer, so that comparing entries compares keys and, where they tie, input
//! positions: every two entries differ, and any sort of them is stable. The position is the record's place in
//! the job's address space, which is laid out in input order; 48 bits reach 256 TB.

use serde::{Deserialize, Serialize};

use crate::record::{KEY_BYTES, POSITION_BITS, POSITION_LIMIT};
use crate::sys::pages::Plain;

/// Key and position of one record; orders by key, then by position.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Entry(u128);

impl Entry {
    /// The entry that is smaller than every other.
    pub const MIN: Entry = Entry(0);

    /// The entry of a record with `key` at `position`, which is below [`POSITION_LIMIT`].
    ///
    /// ```
    /// use gristmill_base::order::Entry;
    /// let (early, late) = (Entry::new(b"same key!!", 100), Entry::new(b"same key!!", 200));
    /// assert!(early < late && late < Entry::new(b"same key!~", 0));
    /// assert_eq!((late.position(), &late.key()), (200, b"same key!!"));
    /// ```
    #[inline]
    pub fn new(key: &[u8; KEY_BYTES], position: u64) -> Self {
        debug_assert!(position < POSITION_LIMIT);
        let [k0, k1, k2, k3, k4, k5, k6, k7, k8, k9] = *key;
        let high = u64::from_be_bytes([k0, k1, k2, k3, k4, k5, k6, k7]);
        let low = u64::from(u16::from_be_bytes([k8, k9])) << POSITION_BITS;
        Entry((u128::from(high) << 64) | u128::from(low | position))
    }

    /// The entry of a record whose key begins with the first ten of these bytes, the highest first.
    #[inline]
    pub(super) fn of_leading(bytes: u128, position: u64) -> Self {
        debug_assert!(position < POSITION_LIMIT);
        Entry(bytes >> POSITION_BITS << POSITION_BITS | u128::from(position))
    }

    /// An entry from the two words of its memory.
    #[inline]
    pub(super) fn from_words(words: [u64; 2]) -> Self {
        let [low, high] = if cfg!(target_endian = "little") {
            words
        } else {
            [words[1], words[0]]
        };
        Entry((u128::from(high) << 64) | u128::from(low))
    }

    /// The first eight bytes of the key, as an integer of the same order.
    #[inline]
    pub fn key_high(self) -> u64 {
        (self.0 >> 64) as u64
    }

    /// All ten bytes of the key, as an integer of the same order.
    #[inline]
    pub fn key_number(self) -> u128 {
        self.0 >> POSITION_BITS
    }

    /// Where the record lies.
    #[inline]
    pub fn position(self) -> u64 {
        self.0 as u64 & (POSITION_LIMIT - 1)
    }

    /// The ten bytes of key.
    pub fn key(self) -> [u8; KEY_BYTES] {
        let mut key = [0; KEY_BYTES];
        key.copy_from_slice(&self.0.to_be_bytes()[..KEY_BYTES]);
        key
    }
}

// SAFETY: an entry is a plain integer: any bits are one, all zeros included.
unsafe impl Plain for Entry {}

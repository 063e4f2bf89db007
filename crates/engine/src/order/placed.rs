//! Compact entries: the first ten bytes of a key, how long the key is, and where its record lies.
//!
//! ```text
//!   entry      | key, 10 bytes, zeros behind its end | 4 bits: 0 to 10, or longer | place, 44 bits |
//! ```

use super::Entry;
use super::refine::window;
use crate::record::KEY_BYTES;

/// Bits of an entry that say where its record lies: 16 TB of memory, beyond which no chunk goes.
pub const PLACE_BITS: u32 = 44;

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

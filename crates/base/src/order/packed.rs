//! Packed entries: once a record's bucket is known, eight bytes say what is left to say of it.
//!
//! ```text
//!   entry     | key, 10 bytes                       | position, 48 bits |
//!                  │ minus the lowest key of the bucket, leading bits of what differs
//!   packed    | key bits, the rest of 64 | position, as many bits as the job's addresses need |
//! ```
//!
//! All entries of a job are touched for the first time, written, read, sorted: half the bytes is half of all that.
//! A 5 GB sort has 31 bits of key within a bucket of 32,768 entries: about one pair in four
//! buckets ties. Where key bits tie that are not the whole key, the keys themselves decide ([`super::refine`]).
//!
//! Decision: docs/decisions/packed-entries.md.

use super::refine::{KeySource, Refiner};
use super::{CutPoints, Entry};
use crate::record::{KEY_BYTES, POSITION_BITS};

/// An entry within its bucket: leading key bits, then the position. Ascends as far as those bits can tell.
pub type Packed = u64;

/// Which key bits the packed entries of one bucket hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PackedKeyRange {
    /// The lowest key of the bucket, of which `dropped` bits are left out at the end.
    low: u64,
    /// Bits of the 80 that are left out at the end before anything else: 16, or none where the bucket is narrow.
    dropped: u32,
    /// Bits left out after subtracting.
    shift: u32,
}

/// How the entries of each bucket are packed: a function of cut points and of the size of the address space.
///
/// ```
/// use gristmill_base::order::{CutPoints, Entry, packed::Packing};
/// let cuts = CutPoints::from_sample(vec![Entry::new(b"aaaaaaaaaa", 0), Entry::new(b"nnnnnnnnnn", 0)], 2);
/// let packing = Packing::new(&cuts, 1 << 33);
/// let (early, late) = (Entry::new(b"nooooooooo", 700), Entry::new(b"nzzzzzzzzz", 100));
/// assert!(packing.pack(1, early) < packing.pack(1, late));
/// assert_eq!(packing.position(packing.pack(1, early)), 700);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packing {
    position_bits: u32,
    frames: Vec<PackedKeyRange>,
}

impl Packing {
    /// The packing for buckets between `cuts`, of positions below `addresses`.
    pub fn new(cuts: &CutPoints, addresses: u64) -> Self {
        let position_bits = position_bits(addresses);
        let frame = |bucket| {
            let (low, high) = cuts.range_of(bucket);
            PackedKeyRange::new(
                low.map_or(0, Entry::key_number),
                high.map_or(LAST_KEY, Entry::key_number),
                u64::BITS - position_bits,
            )
        };
        Packing {
            position_bits,
            frames: (0..cuts.buckets()).map(frame).collect(),
        }
    }

    /// An entry that lies in `bucket`.
    #[inline]
    pub fn pack(&self, bucket: u16, entry: Entry) -> Packed {
        let bits = self.frames[usize::from(bucket)].bits(entry);
        (bits << self.position_bits) | entry.position()
    }

    /// Where the record lies.
    #[inline]
    pub fn position(&self, packed: Packed) -> u64 {
        packed & ((1 << self.position_bits) - 1)
    }

    /// How many bits of an entry say where the record lies.
    pub fn position_bits(&self) -> u32 {
        self.position_bits
    }

    /// The entry's key bits alone.
    #[inline]
    pub fn bits(&self, packed: Packed) -> u64 {
        packed >> self.position_bits
    }

    /// Whether the key bits of `bucket` are all that its ten-byte keys differ in.
    pub fn is_exact(&self, bucket: usize) -> bool {
        let frame = self.frames[bucket];
        frame.dropped == 0 && frame.shift == 0
    }

    /// Memory of the packing of so many buckets.
    pub fn bytes(buckets: usize) -> u64 {
        (buckets * size_of::<PackedKeyRange>()) as u64
    }
}

/// Bits that tell so many addresses apart.
pub(super) fn position_bits(addresses: u64) -> u32 {
    (u64::BITS - addresses.leading_zeros()).clamp(1, POSITION_BITS)
}

/// Lets the keys decide where the key bits of neighbours tie. Leaves positions where it did.
pub fn resolve_ties(
    sorted: &mut [Packed],
    position_bits: u32,
    keys: &dyn KeySource,
    refiner: &mut Refiner,
) {
    let mut next = 1;
    while next < sorted.len() {
        let first = next - 1;
        next += 1;
        let bits = sorted[first] >> position_bits;
        if sorted[first + 1] >> position_bits != bits {
            continue;
        }
        let ties = |entry: &&Packed| **entry >> position_bits == bits;
        let group_len = sorted[first..].iter().take_while(ties).count();
        let group = &mut sorted[first..first + group_len];
        group
            .iter_mut()
            .for_each(|entry| *entry &= (1 << position_bits) - 1);
        refiner.sort(keys, group);
        next = first + group_len + 1;
    }
}

/// The highest key, as a number.
const LAST_KEY: u128 = (1 << (8 * KEY_BYTES)) - 1;

impl PackedKeyRange {
    /// The frame of keys from `low` to `high`, for `room` bits of key.
    pub(super) fn new(low: u128, high: u128, room: u32) -> Self {
        let width = |dropped: u32| (high >> dropped) - (low >> dropped);
        let dropped = if width(0) > u128::from(u64::MAX) {
            16
        } else {
            0
        };
        let bits = u128::BITS - width(dropped).leading_zeros();
        PackedKeyRange {
            low: (low >> dropped) as u64,
            dropped,
            shift: bits.saturating_sub(room),
        }
    }

    /// The key bits of an entry between those keys.
    #[inline]
    pub(super) fn bits(self, entry: Entry) -> u64 {
        let key = (entry.key_number() >> self.dropped) as u64;
        key.wrapping_sub(self.low) >> self.shift
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn keys() -> impl Strategy<Value = Vec<[u8; 10]>> {
        let byte = prop_oneof![Just(0_u8), Just(255), 0..4_u8, any::<u8>()];
        let tail = proptest::collection::vec(byte, 0..=10);
        let key = tail.prop_map(|tail| {
            let mut key = [b'x'; 10];
            key[10 - tail.len()..].copy_from_slice(&tail);
            key
        });
        proptest::collection::vec(key, 1..100)
    }

    proptest! {
        /// Packed entries never contradict the entries; exact ones and entries agree wholly.
        #[test]
        fn packing_keeps_order(keys in keys(), buckets in 1_usize..20, address_bits in 7_u32..48) {
            let entries: Vec<Entry> =
                keys.iter().enumerate().map(|(i, key)| Entry::new(key, i as u64)).collect();
            let cuts = CutPoints::from_sample(entries.iter().copied().step_by(3).collect(), buckets);
            let packing = Packing::new(&cuts, 1 << address_bits);
            for a in &entries {
                let bucket = cuts.bucket_of(*a);
                let packed = packing.pack(bucket as u16, *a);
                prop_assert_eq!(packing.position(packed), a.position());
                for b in entries.iter().filter(|b| cuts.bucket_of(**b) == bucket) {
                    let other = packing.pack(bucket as u16, *b);
                    if packing.is_exact(bucket) {
                        prop_assert_eq!(packed < other, a < b);
                    } else if a.key() < b.key() {
                        prop_assert!(packing.bits(packed) <= packing.bits(other));
                    }
                }
            }
        }
    }
}

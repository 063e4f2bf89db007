//! The gather: copies the records of a batch from all over the arena into the output buffer.
//!
//! Each record is two or three cache misses, and a walk of the page tables, whose entries miss the cache too when
//! records are visited in the order of their keys. So a batch is visited in the order of their
//! places, roughly, and each record is written to its rank:
//!
//! ```text
//!   batch, in order of keys    rank 0   1   2   3 ...    (a position each)
//!                                 \\ counting sort by the leading bits of the position
//!   visits                     (position, rank) in rough order of positions
//!                                 │ copy
//!   output buffer              record at rank 0 | 1 | 2 | ...
//! ```
//!
//! At 160,000 records a batch, neighbouring visits share lines of the page tables: 65 to 72 ns a record where the
//! order of keys takes 85 to 105, on a virtual machine with two cores at it.
//!
//! Decision: docs/decisions/gather-by-place.md.

use gristmill_base::error::Result;
use gristmill_base::order::packed::{Packed, Packing};
use gristmill_base::record::RECORD_BYTES;
use gristmill_base::sys::pages::{self, Pages};

/// Bits of a visit that hold the rank; the rest holds the position.
const RANK_BITS: u32 = 18;

/// Most records of a batch.
pub(super) const RECORDS_MAX: usize = 1 << RANK_BITS;

/// Groups that positions are divided into: their counters stay in the first-level cache.
const GROUP_BITS: u32 = 12;

/// How many visits ahead the prefetch runs.
const AHEAD: usize = 40;

const CACHE_LINE_BYTES: usize = 64;

/// Memory for the visits of one batch, reused.
#[derive(Debug, Default)]
pub(super) struct Gather {
    visits: Pages<u64>,
    starts: Vec<u32>,
}

impl Gather {
    /// Gives room for batches of `records` records, which are at most [`RECORDS_MAX`].
    pub(super) fn begin(&mut self, records: usize) -> Result<()> {
        debug_assert!(records <= RECORDS_MAX);
        if self.visits.len() < records {
            self.visits = Pages::default();
            self.visits = Pages::zeroed(records)?;
        }
        Ok(())
    }

    /// Fills `out` with the records at the positions of `entries`, in their order.
    pub(super) fn gather(
        &mut self,
        arena: &[u8],
        entries: &[Packed],
        packing: &Packing,
        record_bytes: usize,
        out: &mut [u8],
    ) {
        debug_assert_eq!(out.len(), entries.len() * record_bytes);
        debug_assert!(arena.len() >> (u64::BITS - RANK_BITS) == 0);
        let bits = usize::BITS - arena.len().leading_zeros();
        let shift = bits.saturating_sub(GROUP_BITS);
        self.plan_visits(entries, packing, shift);
        let visits = &self.visits[..entries.len()];
        if record_bytes == RECORD_BYTES {
            copy_fixed::<RECORD_BYTES>(arena, visits, out);
        } else {
            copy_any(arena, visits, record_bytes, out);
        }
    }

    /// A counting sort of the visits by the leading bits of their positions.
    fn plan_visits(&mut self, entries: &[Packed], packing: &Packing, shift: u32) {
        self.starts.clear();
        self.starts.resize(1 << GROUP_BITS, 0);
        for entry in entries {
            self.starts[(packing.position(*entry) >> shift) as usize] += 1;
        }
        let mut next = 0;
        for start in &mut self.starts {
            next += *start;
            *start = next - *start;
        }
        for (rank, entry) in entries.iter().enumerate() {
            let position = packing.position(*entry);
            let slot = &mut self.starts[(position >> shift) as usize];
            self.visits[*slot as usize] = (position << RANK_BITS) | rank as u64;
            *slot += 1;
        }
    }
}

/// Where a visit reads, and the rank it writes to.
#[inline]
fn parts(visit: u64) -> (usize, usize) {
    (
        (visit >> RANK_BITS) as usize,
        visit as usize & (RECORDS_MAX - 1),
    )
}

/// A constant length makes each copy a few register moves.
fn copy_fixed<const BYTES: usize>(arena: &[u8], visits: &[u64], out: &mut [u8]) {
    let (records, _) = out.as_chunks_mut::<BYTES>();
    for (i, visit) in visits.iter().enumerate() {
        if let Some(later) = visits.get(i + AHEAD) {
            let (from, rank) = parts(*later);
            prefetch::<BYTES>(arena.as_ptr().wrapping_add(from));
            prefetch::<BYTES>(records.as_ptr().wrapping_add(rank).cast());
        }
        let (from, rank) = parts(*visit);
        records[rank].copy_from_slice(&arena[from..from + BYTES]);
    }
}

fn copy_any(arena: &[u8], visits: &[u64], record_bytes: usize, out: &mut [u8]) {
    for visit in visits {
        let (from, rank) = parts(*visit);
        let to = rank * record_bytes;
        out[to..to + record_bytes].copy_from_slice(&arena[from..from + record_bytes]);
    }
}

/// Asks for the cache lines of a record: to the second level, where more can be on their way.
#[inline]
fn prefetch<const BYTES: usize>(record: *const u8) {
    for within in [0, CACHE_LINE_BYTES.min(BYTES - 1), BYTES - 1] {
        pages::prefetch_second(record.wrapping_add(within));
    }
}

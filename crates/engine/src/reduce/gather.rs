//! The gather: copies records from all over the arena into one place, in the order of their entries.
//!
//! Each record is a cache miss or two, and a miss of the page tables besides. What hides them is asking early: the
//! records some way ahead are prefetched while this one is copied, so that a core keeps as many misses under way
//! as it can. (`cargo bench --bench kernels`; figures in ARCHITECTURE.md.)

use crate::order::Entry;
use crate::record::RECORD_BYTES;

/// How many records ahead the prefetch runs.
const AHEAD: usize = 24;

const CACHE_LINE_BYTES: usize = 64;

/// Fills `out` with the records of the first entries of `entries`; those behind are only prefetched.
pub(super) fn gather(arena: &[u8], entries: &[Entry], record_bytes: usize, out: &mut [u8]) {
    if record_bytes == RECORD_BYTES {
        gather_fixed::<RECORD_BYTES>(arena, entries, out);
        return;
    }
    for (record, entry) in out.chunks_exact_mut(record_bytes).zip(entries) {
        let from = entry.position() as usize;
        record.copy_from_slice(&arena[from..from + record_bytes]);
    }
}

/// A constant length makes each copy a few register moves.
fn gather_fixed<const BYTES: usize>(arena: &[u8], entries: &[Entry], out: &mut [u8]) {
    let (records, _) = out.as_chunks_mut::<BYTES>();
    for (i, record) in records.iter_mut().enumerate() {
        if let Some(later) = entries.get(i + AHEAD) {
            prefetch::<BYTES>(arena, later.position() as usize);
        }
        let from = entries[i].position() as usize;
        record.copy_from_slice(&arena[from..from + BYTES]);
    }
}

/// Asks for the cache lines of a record.
#[cfg(target_arch = "x86_64")]
#[inline]
fn prefetch<const BYTES: usize>(arena: &[u8], position: usize) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    let from = arena.as_ptr().wrapping_add(position);
    let (middle, last) = (CACHE_LINE_BYTES.min(BYTES - 1), BYTES - 1);
    for within in [0, middle, last] {
        // SAFETY: a prefetch reads nothing and cannot fault, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(within).cast()) };
    }
}

/// Elsewhere the processor's own prefetching has to do.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn prefetch<const BYTES: usize>(_arena: &[u8], _position: usize) {}

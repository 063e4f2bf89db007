//! A sorted chunk: the places of its records in order, and what finds a record by its place.
//!
//! A place says how long a line is, as far as there are bits for it ([`LocatorLayout`]): to find where a line ends is a miss of the
//! cache, and was 18 % of the CPU time of a sort of lines that spills.
//!
//! Decision: docs/decisions/key-length-bits.md.

use gristmill_base::order::placed::LocatorLayout;
use gristmill_base::order::refine::KeySource;
use gristmill_base::record::shape::Shape;
use gristmill_base::sys::pages::prefetch_second;

/// A sorted chunk.
pub(super) struct SortedChunk<'a, S> {
    pub(super) records: ChunkRecords<'a, S>,
    /// Where they lie, in order.
    pub(super) positions: &'a [u64],
    /// For each piece: where in the memory it begins, and where in the job's address space.
    pub(super) spans: &'a [(u64, u64)],
}

impl<S> SortedChunk<'_, S> {
    /// The position in the job's address space of the record at this place.
    pub(super) fn position_of(&self, place: u64) -> u64 {
        let at = self.records.places.start(place) as u64;
        let after = self.spans.partition_point(|(start, _)| *start <= at);
        self.spans[..after]
            .last()
            .map_or(at, |(start, position)| position + (at - start))
    }
}

/// Finds records by their place in the memory.
pub(super) struct ChunkRecords<'a, S> {
    pub(super) shape: S,
    pub(super) memory: &'a [u8],
    pub(super) places: LocatorLayout,
}

impl<'a, S: Shape> ChunkRecords<'a, S> {
    #[inline]
    pub(super) fn at(&self, place: u64) -> &'a [u8] {
        let rest = &self.memory[self.places.start(place)..];
        let length = match self.places.length(place) {
            Some(length) => length,
            None => self.shape.length(rest).unwrap_or(0),
        };
        rest.get(..length).unwrap_or_default()
    }
}

impl<S> ChunkRecords<'_, S> {
    /// Asks for the cache lines of a record of a common length.
    #[inline]
    pub(super) fn prefetch(&self, place: u64) {
        self.prefetch_at(place, [0, 64, 99]);
    }

    #[inline]
    fn prefetch_at<const N: usize>(&self, place: u64, within: [usize; N]) {
        let start = self.places.start(place);
        for within in within {
            prefetch_second(self.memory.as_ptr().wrapping_add(start + within));
        }
    }
}

impl<S: Shape> KeySource for ChunkRecords<'_, S> {
    /// The key of a line of known length is what stands before its last byte, which need not be looked at.
    fn key_at(&self, place: u64) -> &[u8] {
        let record = self.at(place);
        match (self.places.length(place), record.split_last()) {
            (Some(_), Some((_, key))) => key,
            _ => self.shape.key(record),
        }
    }

    fn descending(&self) -> bool {
        self.shape.descending()
    }

    fn longest(&self) -> usize {
        self.shape.longest_key()
    }

    fn spare_bits(&self) -> u32 {
        self.places.length_bits()
    }

    /// The beginning alone: further than that few keys agree.
    fn prefetch(&self, place: u64) {
        self.prefetch_at(place, [0, 32]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_base::order::placed::PLACE_BITS;
    use gristmill_base::record::shape::LineShape;

    /// Lengths that are in a place, and those that have no room there: both find the line.
    #[test]
    fn lines_are_found_by_their_places_with_and_without_lengths() {
        let lengths = [1, 2, 70, 1_000, 4_095, 4_096, 9_000];
        let mut memory = Vec::new();
        let mut starts = Vec::new();
        for length in lengths {
            starts.push(memory.len());
            memory.extend(std::iter::repeat_n(b'x', length - 1));
            memory.push(b'\n');
        }
        let shape = LineShape { descending: false };
        let large = 1 << (PLACE_BITS - 2); // one bit is left, which says a length of one
        for places in [
            LocatorLayout::with_lengths(memory.len()),
            LocatorLayout::with_lengths(large),
            LocatorLayout::default(),
        ] {
            let memory = &memory[..];
            let records = ChunkRecords {
                shape,
                memory,
                places,
            };
            for (start, length) in starts.iter().zip(lengths) {
                let place = places.place(*start, length);
                assert_eq!(records.at(place), &memory[*start..start + length]);
                assert_eq!(records.key_at(place), &memory[*start..start + length - 1]);
                assert_eq!(
                    records
                        .key_at(place >> places.length_bits() << places.length_bits())
                        .len(),
                    length - 1
                );
            }
        }
    }
}

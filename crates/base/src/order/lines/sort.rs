//! Sorts the lines of one bucket, which lie together in memory that a core has in its own cache.
//!
//! ```text
//!   text       | line | line ....... | line | ...        copied there, in input order
//!   entries    | ten bytes of key, behind what all share | start, 24 bits | length, 24 bits | ...
//!       1. distribute by the leading bits that differ     into pieces of a few entries
//!       2. sort each piece
//!       3. what ties in ten bytes: skip what the group shares, and sort by the next ten bytes
//! ```
//!
//! Lines that are the same come in any order: it does not show. Lines of a text share their beginnings with their neighbours: the
//! bytes that its borders say all of a bucket share are left out of the entries.

use std::cmp::Ordering;

use super::leading;
use crate::order::Entry;
use crate::order::sort::insertion_sort;
use crate::record::KEY_BYTES;

/// Bits for a start in the text, and for a length.
const BITS: u32 = 24;

/// The largest start or length that an entry holds.
pub const TEXT_BYTES_MAX: usize = (1 << BITS) - 1;

/// Bytes behind the last line that are read with its key, whatever they are.
pub const SLACK_BYTES: usize = 16;

/// Pieces at most, of one entry on average over even keys: their counters stay in the first-level cache.
const PIECE_BITS_MAX: u32 = 13;

/// Largest piece that insertion sort takes.
const INSERTION_MAX: usize = 20;

/// Reused counters of pieces.
#[derive(Debug, Default)]
pub struct LineSortScratch {
    ends: Vec<u32>,
}

/// The entry of the line that begins at `start` of `text` and has `length` bytes, its newline included. Its first `shared`
/// bytes, which it has, are those of all lines that it is sorted with.
///
/// ```
/// use gristmill_base::order::lines::sort::{SLACK_BYTES, entry_of};
/// let text = [b"the fig\nthe pear\n", &[7; SLACK_BYTES][..]].concat();
/// assert_eq!(&entry_of(&text, 8, 9, 4).key(), b"pear\0\0\0\0\0\0");
/// ```
#[inline]
pub fn entry_of(text: &[u8], start: usize, length: usize, shared: usize) -> Entry {
    let rest = length.saturating_sub(shared + 1);
    let from = text.get(start + shared..).unwrap_or_default();
    Entry::of_leading(leading(from, rest), (start << BITS | length) as u64)
}

/// Where the line of an entry lies in its text: its start, and its bytes.
#[inline]
pub fn place_of(entry: Entry) -> (usize, usize) {
    let place = entry.position() as usize;
    (place >> BITS, place & TEXT_BYTES_MAX)
}

/// The lines of a text, by their places.
struct Text<'a>(&'a [u8]);

impl Text<'_> {
    /// The order of two lines that agree before `depth`, but for zeros behind the end of one.
    fn compare(&self, one: Entry, other: Entry, depth: usize) -> Ordering {
        let rest = |(start, length): (usize, usize)| {
            let rest = self.0.get(start + depth..start + length - 1);
            rest.unwrap_or_default()
        };
        let (here, there) = (place_of(one), place_of(other));
        rest(here).cmp(rest(there)).then(here.1.cmp(&there.1))
    }

    /// How many of `bytes` bytes at two places agree, before the first that do not.
    #[inline]
    fn agreeing(&self, one: usize, other: usize, bytes: usize) -> usize {
        let mut agreed = 0;
        while agreed < bytes {
            let differing = self.word(one + agreed) ^ self.word(other + agreed);
            if differing != 0 {
                return (agreed + differing.trailing_zeros() as usize / 8).min(bytes);
            }
            agreed += size_of::<u64>();
        }
        bytes
    }

    /// Eight bytes, the first one lowest.
    #[inline]
    fn word(&self, at: usize) -> u64 {
        let bytes = self.0.get(at..).and_then(|rest| rest.first_chunk());
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }
}

/// Sorts entries of lines of `text`, which share `shared` bytes, to `out`, which is as long. What they hold there is where
/// the lines lie, in order.
///
/// ```
/// use gristmill_base::order::Entry;
/// use gristmill_base::order::lines::sort::{LineSortScratch, entry_of, place_of, sort_lines};
/// let text = b"pear\nfig\napple\n and what is behind them";
/// let entries = [(0, 5), (5, 4), (9, 6)].map(|(start, length)| entry_of(text, start, length, 0));
/// let mut out = [Entry::MIN; 3];
/// sort_lines(text, 0, &entries, &mut out, &mut LineSortScratch::default());
/// assert_eq!(out.map(place_of), [(9, 6), (5, 4), (0, 5)]);
/// ```
pub fn sort_lines(
    text: &[u8],
    shared: usize,
    entries: &[Entry],
    out: &mut [Entry],
    scratch: &mut LineSortScratch,
) {
    debug_assert_eq!(entries.len(), out.len());
    if entries.len() <= INSERTION_MAX {
        out.copy_from_slice(entries);
        insertion_sort(out);
    } else {
        distribute(entries, out, &mut scratch.ends);
        sort_pieces(out, &scratch.ends);
    }
    settle_ties(&Text(text), shared + KEY_BYTES, out);
}

/// Moves entries to pieces that are in order, and leaves in `ends` where each of them ends.
fn distribute(entries: &[Entry], out: &mut [Entry], ends: &mut Vec<u32>) {
    let (mut low, mut high) = (u64::MAX, 0);
    for entry in entries {
        low = low.min(entry.key_high());
        high = high.max(entry.key_high());
    }
    let piece_bits = entries.len().ilog2().min(PIECE_BITS_MAX);
    let shift = (u64::BITS - (high - low).leading_zeros()).saturating_sub(piece_bits);
    let piece_of = |entry: &Entry| ((entry.key_high() - low) >> shift) as usize;
    ends.clear();
    ends.resize(((high - low) >> shift) as usize + 1, 0);
    for entry in entries {
        ends[piece_of(entry)] += 1;
    }
    let mut next = 0;
    for end in &mut *ends {
        next += *end;
        *end = next - *end;
    }
    for entry in entries {
        let slot = &mut ends[piece_of(entry)];
        out[*slot as usize] = *entry;
        *slot += 1;
    }
}

fn sort_pieces(out: &mut [Entry], ends: &[u32]) {
    let mut start = 0;
    for end in ends {
        let piece = &mut out[start..*end as usize];
        start = *end as usize;
        match piece.len() {
            0..=1 => {}
            2..=INSERTION_MAX => insertion_sort(piece),
            _ => piece.sort_unstable(),
        }
    }
}

/// Lets the lines decide where their entries, which hold ten bytes before `depth`, tie.
fn settle_ties(text: &Text<'_>, depth: usize, entries: &mut [Entry]) {
    let mut first = 0;
    while first + 1 < entries.len() {
        let key = entries[first].key_number();
        if entries[first + 1].key_number() != key {
            first += 1;
            continue;
        }
        let ties = |entry: &&Entry| entry.key_number() == key;
        let end = first + entries[first..].iter().take_while(ties).count();
        settle_group(text, depth, &mut entries[first..end]);
        first = end;
    }
}

/// Sorts lines that agree before `depth`, but for zeros behind the end of some: skips what all of them share from there
/// on, and sorts by ten bytes again. Each round parts a group, so that the rounds within each other are few: of lines
/// that agree ever longer there is no room for many.
fn settle_group(text: &Text<'_>, depth: usize, group: &mut [Entry]) {
    let (mut shortest, mut longest) = (usize::MAX, 0);
    for entry in group.iter() {
        let key_bytes = place_of(*entry).1 - 1;
        (shortest, longest) = (shortest.min(key_bytes), longest.max(key_bytes));
    }
    if shortest < depth {
        group.sort_unstable_by(|one, other| text.compare(*one, *other, depth));
        return;
    }
    let Some((first, others)) = group.split_first() else {
        return;
    };
    let (start, mut shared) = (place_of(*first).0 + depth, shortest - depth);
    for entry in others {
        shared = text.agreeing(start, place_of(*entry).0 + depth, shared);
    }
    let depth = depth + shared;
    if depth == longest {
        return; // the same line, many times
    }
    for entry in &mut *group {
        let (start, length) = place_of(*entry);
        *entry = entry_of(text.0, start, length, depth);
    }
    if group.len() <= INSERTION_MAX {
        insertion_sort(group);
    } else {
        group.sort_unstable();
    }
    settle_ties(text, depth + KEY_BYTES, group);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Against a sort of whole lines.
    fn sorts(shared: &[u8], keys: &[Vec<u8>]) {
        let mut text = Vec::new();
        let mut lines = Vec::new();
        for key in keys {
            let line = [shared, key, b"\n"].concat();
            lines.push((text.len(), line.len()));
            text.extend(line);
        }
        text.extend([0xFF; SLACK_BYTES]);
        let entry =
            |(start, length): &(usize, usize)| entry_of(&text, *start, *length, shared.len());
        let entries: Vec<Entry> = lines.iter().map(entry).collect();
        let mut out = vec![Entry::MIN; entries.len()];
        sort_lines(
            &text,
            shared.len(),
            &entries,
            &mut out,
            &mut LineSortScratch::default(),
        );
        let mut found: Vec<(usize, usize)> = out.into_iter().map(place_of).collect();
        let line = |(start, length): &(usize, usize)| &text[*start..start + length - 1];
        let mut want: Vec<&[u8]> = lines.iter().map(line).collect();
        want.sort_unstable();
        assert!(found.iter().map(line).eq(want));
        found.sort_unstable();
        assert_eq!(found, lines); // each of them once
    }

    /// Keys that tie, end within each other, and differ in zeros alone.
    fn key() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![Just(0_u8), Just(b'a'), Just(b'b'), Just(0xFF)];
        (0..3_usize, vec(byte, 0..5))
            .prop_map(|(long, tail)| [&vec![b'a'; 9 * long], &*tail].concat())
    }

    proptest! {
        #[test]
        fn lines_come_in_order(
            shared in vec(prop_oneof![Just(0_u8), Just(b'a')], 0..30),
            keys in prop_oneof![3 => vec(key(), 0..60), 1 => vec(key(), 300..600)],
        ) {
            sorts(&shared, &keys);
        }

        #[test]
        fn random_lines_come_in_order(
            keys in vec(vec(any::<u8>().prop_filter("no newline", |byte| *byte != b'\n'), 0..14), 0..3_000),
        ) {
            sorts(b"", &keys);
        }
    }

    #[test]
    fn one_line_many_times_is_there_as_often() {
        for count in [2, 20, 21, 5_000] {
            sorts(b"", &vec![b"one line, again and again".to_vec(); count]);
            sorts(b"", &vec![Vec::new(); count]);
        }
    }
}

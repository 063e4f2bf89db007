//! Refine: puts entries in order whose key bits tie, by the keys themselves, ten bytes at a time.
//!
//! ```text
//!   group that ties     key ......................   common prefix skipped, once
//!                                    |next ten bytes|  an entry each, sorted; what ties again goes deeper
//! ```
//!
//! Each round fetches every key once, where a comparison sort would fetch them log n times: a key is a miss of the
//! cache away. A key that ends sorts before all that go on; only equal keys fall back to the position. A few keys, which
//! stay in the cache once they were fetched, are compared as they are.
//!
//! A sort of very many entries can be broken off: it asks after some hundred keys, and after each piece of a large group.
//!
//! Decision: docs/decisions/whole-keys.md.

use std::convert::Infallible;

use super::Entry;
use crate::record::shape::padded;
use crate::record::{KEY_BYTES, POSITION_LIMIT};

/// Finds keys by position.
pub trait KeySource {
    /// The key of the record at `position`: all of it.
    fn key_at(&self, position: u64) -> &[u8];

    /// Whether larger keys come first.
    fn descending(&self) -> bool {
        false
    }

    /// No key is longer than this.
    fn longest(&self) -> usize {
        usize::MAX
    }

    /// So many of the last bits of a position may be zeros as well: it leads to the same key.
    fn spare_bits(&self) -> u32 {
        0
    }

    /// Says that the key of the record at `position` will be asked for soon.
    fn prefetch(&self, _position: u64) {}
}

/// Groups of at most so many are sorted by comparing keys.
const FEW: usize = 16;

/// How many keys ahead of their use they are asked for.
pub(super) const AHEAD: usize = 12;

/// Keys between two questions whether to break off: of the longest lines, 16 MB each, they take half a second.
const ASKED_KEYS: usize = 256;

/// Entries that are sorted without a question: 30 ms. Larger groups are first cut at their medians.
const PIECE_ENTRIES: usize = 1 << 19;

/// Reused memory of a refinement: as many entries as the largest group has.
#[derive(Debug, Default)]
pub struct Refiner {
    entries: Vec<Entry>,
}

impl Refiner {
    /// Memory for groups of so many entries.
    pub fn bytes(entries: usize) -> u64 {
        (entries * size_of::<Entry>()) as u64
    }

    /// Sorts positions by (key, position).
    ///
    /// ```
    /// use gristmill_base::order::refine::{KeySource, Refiner};
    /// struct Lines(Vec<&'static [u8]>);
    /// impl KeySource for Lines {
    ///     fn key_at(&self, position: u64) -> &[u8] {
    ///         self.0[position as usize]
    ///     }
    /// }
    /// let lines = Lines(vec![b"a common prefix, b", b"a common", b"a common prefix, a", b"a common"]);
    /// let mut positions = [0, 1, 2, 3];
    /// Refiner::default().sort(&lines, &mut positions);
    /// assert_eq!(positions, [1, 3, 2, 0]);
    /// ```
    pub fn sort(&mut self, keys: &dyn KeySource, positions: &mut [u64]) {
        self.entries.clear();
        self.entries
            .extend(positions.iter().map(|at| Entry::new(&[0; KEY_BYTES], *at)));
        sort_entries(keys, &mut self.entries);
        for (position, entry) in positions.iter_mut().zip(&self.entries) {
            *position = entry.position();
        }
    }
}

/// Sorts entries by (key, position), whatever key bytes they hold; they hold others afterwards.
///
/// ```
/// use gristmill_base::order::{Entry, refine::{KeySource, sort_entries}};
/// struct Lines(Vec<&'static [u8]>);
/// impl KeySource for Lines {
///     fn key_at(&self, position: u64) -> &[u8] {
///         self.0[position as usize]
///     }
/// }
/// let mut entries = [0, 1].map(|position| Entry::new(b"the same..", position));
/// sort_entries(&Lines(vec![b"the same...", b"the same.."]), &mut entries);
/// assert_eq!(entries.map(Entry::position), [1, 0]);
/// ```
pub fn sort_entries(keys: &dyn KeySource, entries: &mut [Entry]) {
    let Ok(()) = sort_entries_unless(keys, entries, &|| Ok::<(), Infallible>(()));
}

/// The same, unless `go_on` says within the second that the sort is to end: then the entries are in no order.
pub fn sort_entries_unless<E>(
    keys: &dyn KeySource,
    entries: &mut [Entry],
    go_on: &impl Fn() -> Result<(), E>,
) -> Result<(), E> {
    if keys.descending() {
        // Ascending by mirrored positions, then turned round: keys descend, and equal ones ascend by position.
        let mirrored = Mirrored(keys);
        entries.iter_mut().for_each(mirror);
        sort_from(&mirrored, entries, 0, go_on)?;
        entries.iter_mut().for_each(mirror);
        entries.reverse();
        Ok(())
    } else {
        sort_from(keys, entries, 0, go_on)
    }
}

/// The same of keys that agree in the bytes that an entry holds, and go on behind them; the first ones were asked for.
pub(super) fn sort_longer(keys: &dyn KeySource, entries: &mut [Entry]) {
    if keys.descending() {
        let mirrored = Mirrored(keys);
        entries.iter_mut().for_each(mirror);
        sort_behind(&mirrored, entries);
        entries.iter_mut().for_each(mirror);
        entries.reverse();
    } else {
        sort_behind(keys, entries);
    }
}

/// By the next ten bytes, without asking first how many of them all keys share: mostly none. What ties again is sorted as all
/// else is.
fn sort_behind(keys: &dyn KeySource, entries: &mut [Entry]) {
    for i in 0..entries.len() {
        if i >= AHEAD {
            prefetch(keys, entries, i + AHEAD); // the first ones were asked for
        }
        let position = entries[i].position();
        entries[i] = Entry::new(&window(keys.key_at(position), KEY_BYTES), position);
    }
    entries.sort_unstable();
    let mut first = 0;
    while first + 1 < entries.len() {
        let key = entries[first].key_number();
        let ties = |entry: &&Entry| entry.key_number() == key;
        let len = entries[first..].iter().take_while(ties).count();
        if len > 1 {
            let group = &mut entries[first..first + len];
            let Ok(()) = sort_from(keys, group, KEY_BYTES, &|| Ok::<(), Infallible>(()));
        }
        first += len;
    }
}

fn mirror(entry: &mut Entry) {
    *entry = Entry::new(&entry.key(), POSITION_LIMIT - 1 - entry.position());
}

/// Keys by mirrored positions, in ascending order.
struct Mirrored<'a>(&'a dyn KeySource);

impl KeySource for Mirrored<'_> {
    fn key_at(&self, position: u64) -> &[u8] {
        self.0.key_at(POSITION_LIMIT - 1 - position)
    }
}

/// Sorts entries whose keys agree up to `depth`, in groups, each with the depth to which its keys agree. A list rather
/// than recursion: keys may share megabytes.
fn sort_from<E>(
    keys: &dyn KeySource,
    entries: &mut [Entry],
    depth: usize,
    go_on: &impl Fn() -> Result<(), E>,
) -> Result<(), E> {
    if entries.len() <= FEW {
        sort_few(keys, entries, depth);
        return Ok(());
    }
    let mut groups = vec![(0..entries.len(), depth)];
    while let Some((range, depth)) = groups.pop() {
        let start = range.start;
        let group = &mut entries[range];
        if group.len() <= FEW {
            sort_few(keys, group, depth);
            continue;
        }
        let (shared, all_end) = common_prefix(keys, group, depth, go_on)?;
        if all_end {
            // One key, many times.
            sort_in_pieces(group, PIECE_ENTRIES, |entry| entry.position(), go_on)?;
            continue;
        }
        let depth = depth + shared;
        for i in 0..group.len() {
            ask_at(i, go_on)?;
            prefetch(keys, group, i + AHEAD);
            let position = group[i].position();
            group[i] = Entry::new(&window(keys.key_at(position), depth), position);
        }
        sort_in_pieces(group, PIECE_ENTRIES, |entry| *entry, go_on)?;
        let mut first = 0;
        while first < group.len() {
            let key = group[first].key_number();
            let ties = |entry: &&Entry| entry.key_number() == key;
            let len = group[first..].iter().take_while(ties).count();
            if len > 1 {
                let group = &mut group[first..first + len];
                let ended = ended_first(keys, group, depth + KEY_BYTES, go_on)?;
                if len - ended > 1 {
                    groups.push((
                        start + first + ended..start + first + len,
                        depth + KEY_BYTES,
                    ));
                }
            }
            first += len;
        }
    }
    Ok(())
}

/// Asks whether to go on, at the first of some keys.
#[inline]
fn ask_at<E>(number: usize, go_on: &impl Fn() -> Result<(), E>) -> Result<(), E> {
    if number.is_multiple_of(ASKED_KEYS) {
        go_on()?;
    }
    Ok(())
}

/// Sorts entries by what `of` makes of them, at most `most` at once: more, which are rare, are cut at their median, again and
/// again. Where they are in order, that is seen.
fn sort_in_pieces<K: Ord, E>(
    entries: &mut [Entry],
    most: usize,
    of: impl Fn(&Entry) -> K,
    go_on: &impl Fn() -> Result<(), E>,
) -> Result<(), E> {
    if entries.len() <= most {
        entries.sort_unstable_by_key(of);
        return Ok(());
    }
    let mut pieces = vec![entries];
    while let Some(piece) = pieces.pop() {
        go_on()?;
        if piece.len() <= most {
            piece.sort_unstable_by_key(&of);
            continue;
        }
        if piece.is_sorted_by_key(&of) {
            continue;
        }
        let middle = piece.len() / 2;
        let (before, _, behind) = piece.select_nth_unstable_by_key(middle, &of);
        pieces.extend([before, behind]);
    }
    Ok(())
}

/// Sorts a few entries whose keys agree up to `depth`.
fn sort_few(keys: &dyn KeySource, group: &mut [Entry], depth: usize) {
    group.sort_unstable_by(|one, other| {
        let (at, from) = (one.position(), other.position());
        let (one, other) = (keys.key_at(at), keys.key_at(from));
        rest_of(one, depth)
            .cmp(rest_of(other, depth))
            .then(at.cmp(&from))
    });
}

#[inline]
fn prefetch(keys: &dyn KeySource, group: &[Entry], number: usize) {
    if let Some(entry) = group.get(number) {
        keys.prefetch(entry.position());
    }
}

/// Bytes from `depth` on that all keys of the group share, and whether all of them end there.
fn common_prefix<E>(
    keys: &dyn KeySource,
    group: &[Entry],
    depth: usize,
    go_on: &impl Fn() -> Result<(), E>,
) -> Result<(usize, bool), E> {
    let Some((first, rest)) = group.split_first() else {
        return Ok((0, true));
    };
    let first = rest_of(keys.key_at(first.position()), depth);
    let (mut shared, mut longest) = (first.len(), first.len());
    for (i, entry) in rest.iter().enumerate() {
        ask_at(i, go_on)?;
        prefetch(keys, rest, i + AHEAD);
        let other = rest_of(keys.key_at(entry.position()), depth);
        longest = longest.max(other.len());
        shared = shared.min(other.len());
        // A comparison of memory is many times as fast as finding where two differ.
        if first[..shared] != other[..shared] {
            let pairs = first[..shared].iter().zip(other);
            shared = pairs.take_while(|(a, b)| a == b).count();
        }
    }
    Ok((shared, longest == shared))
}

/// Moves keys that end before `depth` to the front, shorter ones first; returns how many.
///
/// The group agrees in the ten bytes before `depth`, so they differ from others in trailing zero bytes at most. Its entries
/// hold afterwards how many of these bytes their keys have, one more where they go on: of equal keys the position decides.
fn ended_first<E>(
    keys: &dyn KeySource,
    group: &mut [Entry],
    depth: usize,
    go_on: &impl Fn() -> Result<(), E>,
) -> Result<usize, E> {
    let mut any_ends = false;
    for (i, entry) in group.iter().enumerate() {
        ask_at(i, go_on)?;
        any_ends = keys.key_at(entry.position()).len() <= depth;
        if any_ends {
            break;
        }
    }
    if !any_ends {
        return Ok(0);
    }
    let before = depth - KEY_BYTES;
    for (i, entry) in group.iter_mut().enumerate() {
        ask_at(i, go_on)?;
        let position = entry.position();
        let length = keys.key_at(position).len();
        let kept = length.saturating_sub(before).min(KEY_BYTES + 1);
        let mut key = [0; KEY_BYTES];
        key[0] = kept as u8;
        *entry = Entry::new(&key, position);
    }
    sort_in_pieces(group, PIECE_ENTRIES, |entry| *entry, go_on)?;
    Ok(group.partition_point(|entry| usize::from(entry.key()[0]) <= KEY_BYTES))
}

fn rest_of(key: &[u8], depth: usize) -> &[u8] {
    key.get(depth..).unwrap_or_default()
}

/// Ten bytes from `depth` on, zeros where the key ends.
///
/// ```
/// use gristmill_base::order::refine::window;
/// assert_eq!(&window(b"abc", 1), b"bc\0\0\0\0\0\0\0\0");
/// ```
#[inline]
pub fn window(key: &[u8], depth: usize) -> [u8; KEY_BYTES] {
    let rest = rest_of(key, depth);
    if let Some(window) = rest.first_chunk() {
        return *window;
    }
    let byte = |at: usize| rest.get(at).copied().unwrap_or(0);
    let [a, b, c, d, e, f, g, h] = padded(rest).to_be_bytes();
    [a, b, c, d, e, f, g, h, byte(8), byte(9)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    struct List(Vec<Vec<u8>>, bool);

    impl KeySource for List {
        fn key_at(&self, position: u64) -> &[u8] {
            &self.0[position as usize]
        }
        fn descending(&self) -> bool {
            self.1
        }
    }

    /// Keys that are asked for are counted.
    struct Counted(List, std::cell::Cell<usize>);

    impl KeySource for Counted {
        fn key_at(&self, position: u64) -> &[u8] {
            self.1.set(self.1.get() + 1);
            self.0.key_at(position)
        }
        fn descending(&self) -> bool {
            self.0.descending()
        }
    }

    #[test]
    fn a_sort_is_broken_off_wherever_it_is() {
        let key = |number: usize| match number % 3 {
            0 => vec![b'x'; 40],
            1 => [vec![b'x'; 25], vec![0; number % 19]].concat(),
            _ => format!("{number:09}").into_bytes(),
        };
        for descending in [false, true] {
            let list = List((0..5_000).map(key).collect(), descending);
            let keys = Counted(list, 0.into());
            let mut answers = 0;
            for allowed in 0.. {
                let mut entries: Vec<Entry> = (0..5_000)
                    .map(|position| Entry::new(&[0; KEY_BYTES], position))
                    .collect();
                let (asked, after) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
                let sorted = sort_entries_unless(&keys, &mut entries, &|| {
                    asked.set(asked.get() + 1);
                    after.set(keys.1.get());
                    if asked.get() > allowed {
                        Err(())
                    } else {
                        Ok(())
                    }
                });
                if sorted.is_ok() {
                    break;
                }
                assert_eq!(
                    keys.1.get(),
                    after.get(),
                    "a key was asked for after the end"
                );
                answers += 1;
            }
            assert!(answers > 5_000 / ASKED_KEYS * 4, "{answers}");
        }
    }

    proptest! {
        #[test]
        fn pieces_come_in_the_order_of_the_whole(
            mut numbers in proptest::collection::vec(0..50_u64, 0..300),
            most in 1..40_usize,
        ) {
            let entry = |number: &u64| Entry::new(&[0; KEY_BYTES], *number);
            let mut entries: Vec<Entry> = numbers.iter().map(entry).collect();
            let go_on = || Ok::<(), Infallible>(());
            let Ok(()) = sort_in_pieces(&mut entries, most, |entry| *entry, &go_on);
            numbers.sort_unstable();
            let found: Vec<u64> = entries.iter().map(|entry| entry.position()).collect();
            prop_assert_eq!(found, numbers);
        }

        /// Keys that share long prefixes, end early, hold zero bytes, repeat.
        #[test]
        fn equals_the_standard_sort(
            shapes in proptest::collection::vec((0..4_usize, 0..30_usize, "[ab\0]{0,14}"), 0..60),
            repeats in 1..40_usize,
            descending: bool,
        ) {
            let keys: Vec<Vec<u8>> = shapes
                .into_iter()
                .flat_map(|shape| std::iter::repeat_n(shape, repeats))
                .map(|(prefix, len, tail)| {
                    let mut key = vec![b'x'; prefix * 9];
                    key.extend(std::iter::repeat_n(0, len % 3));
                    key.extend_from_slice(tail.as_bytes());
                    key
                })
                .collect();
            let mut want: Vec<u64> = (0..keys.len() as u64).collect();
            let mut found = want.clone();
            want.sort_by(|a, b| {
                let order = keys[*a as usize].cmp(&keys[*b as usize]);
                if descending { order.reverse() } else { order }
            });
            Refiner::default().sort(&List(keys, descending), &mut found);
            prop_assert_eq!(found, want);
        }
    }
}

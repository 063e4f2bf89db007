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
//! Decision: docs/decisions/whole-keys.md.

use super::Entry;
use crate::record::shape::padded;
use crate::record::{KEY_BYTES, POSITION_LIMIT};

/// Finds keys by position.
pub trait Keys {
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

    /// Says that the key of the record at `position` will be asked for soon.
    fn prefetch(&self, _position: u64) {}
}

/// Groups of at most so many are sorted by comparing keys.
const FEW: usize = 16;

/// How many keys ahead of their use they are asked for.
const AHEAD: usize = 12;

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
    /// use gristmill_engine::order::refine::{Keys, Refiner};
    /// struct Lines(Vec<&'static [u8]>);
    /// impl Keys for Lines {
    ///     fn key_at(&self, position: u64) -> &[u8] {
    ///         self.0[position as usize]
    ///     }
    /// }
    /// let lines = Lines(vec![b"a common prefix, b", b"a common", b"a common prefix, a", b"a common"]);
    /// let mut positions = [0, 1, 2, 3];
    /// Refiner::default().sort(&lines, &mut positions);
    /// assert_eq!(positions, [1, 3, 2, 0]);
    /// ```
    pub fn sort(&mut self, keys: &dyn Keys, positions: &mut [u64]) {
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
/// use gristmill_engine::order::{Entry, refine::{Keys, sort_entries}};
/// struct Lines(Vec<&'static [u8]>);
/// impl Keys for Lines {
///     fn key_at(&self, position: u64) -> &[u8] {
///         self.0[position as usize]
///     }
/// }
/// let mut entries = [0, 1].map(|position| Entry::new(b"the same..", position));
/// sort_entries(&Lines(vec![b"the same...", b"the same.."]), &mut entries);
/// assert_eq!(entries.map(Entry::position), [1, 0]);
/// ```
pub fn sort_entries(keys: &dyn Keys, entries: &mut [Entry]) {
    if keys.descending() {
        // Ascending by mirrored positions, then turned round: keys descend, and equal ones ascend by position.
        let mirrored = Mirrored(keys);
        entries.iter_mut().for_each(mirror);
        sort_from(&mirrored, entries, 0);
        entries.iter_mut().for_each(mirror);
        entries.reverse();
    } else {
        sort_from(keys, entries, 0);
    }
}

fn mirror(entry: &mut Entry) {
    *entry = Entry::new(&entry.key(), POSITION_LIMIT - 1 - entry.position());
}

/// Keys by mirrored positions, in ascending order.
struct Mirrored<'a>(&'a dyn Keys);

impl Keys for Mirrored<'_> {
    fn key_at(&self, position: u64) -> &[u8] {
        self.0.key_at(POSITION_LIMIT - 1 - position)
    }
}

/// Groups that are left to sort, each with the depth to which its keys agree. A list rather than recursion: keys may
/// share megabytes.
fn sort_from(keys: &dyn Keys, entries: &mut [Entry], depth: usize) {
    if entries.len() <= FEW {
        return sort_few(keys, entries, depth);
    }
    let mut groups = vec![(0..entries.len(), depth)];
    while let Some((range, depth)) = groups.pop() {
        let start = range.start;
        let group = &mut entries[range];
        if group.len() <= FEW {
            sort_few(keys, group, depth);
            continue;
        }
        let (shared, all_end) = common_prefix(keys, group, depth);
        if all_end {
            group.sort_unstable_by_key(|entry| entry.position()); // one key, many times
            continue;
        }
        let depth = depth + shared;
        for i in 0..group.len() {
            prefetch(keys, group, i + AHEAD);
            let position = group[i].position();
            group[i] = Entry::new(&window(keys.key_at(position), depth), position);
        }
        group.sort_unstable();
        let mut first = 0;
        while first < group.len() {
            let key = group[first].key_number();
            let ties = |entry: &&Entry| entry.key_number() == key;
            let len = group[first..].iter().take_while(ties).count();
            if len > 1 {
                let ended = ended_first(keys, &mut group[first..first + len], depth + KEY_BYTES);
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
}

/// Sorts a few entries whose keys agree up to `depth`.
fn sort_few(keys: &dyn Keys, group: &mut [Entry], depth: usize) {
    group.sort_unstable_by(|one, other| {
        let (at, from) = (one.position(), other.position());
        let (one, other) = (keys.key_at(at), keys.key_at(from));
        rest_of(one, depth)
            .cmp(rest_of(other, depth))
            .then(at.cmp(&from))
    });
}

#[inline]
fn prefetch(keys: &dyn Keys, group: &[Entry], number: usize) {
    if let Some(entry) = group.get(number) {
        keys.prefetch(entry.position());
    }
}

/// Bytes from `depth` on that all keys of the group share, and whether all of them end there.
fn common_prefix(keys: &dyn Keys, group: &[Entry], depth: usize) -> (usize, bool) {
    let Some((first, rest)) = group.split_first() else {
        return (0, true);
    };
    let first = rest_of(keys.key_at(first.position()), depth);
    let (mut shared, mut longest) = (first.len(), first.len());
    for (i, entry) in rest.iter().enumerate() {
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
    (shared, longest == shared)
}

/// Moves keys that end before `depth` to the front, shorter ones first; returns how many.
///
/// The group agrees in the ten bytes before `depth`, so they differ from others in trailing zero bytes at most.
fn ended_first(keys: &dyn Keys, group: &mut [Entry], depth: usize) -> usize {
    let length = |entry: &Entry| keys.key_at(entry.position()).len();
    if !group.iter().any(|entry| length(entry) <= depth) {
        return 0;
    }
    group.sort_by_key(|entry| length(entry).min(depth + 1)); // stable: equal keys stay by position
    group.partition_point(|entry| length(entry) <= depth)
}

fn rest_of(key: &[u8], depth: usize) -> &[u8] {
    key.get(depth..).unwrap_or_default()
}

/// Ten bytes from `depth` on, zeros where the key ends.
///
/// ```
/// use gristmill_engine::order::refine::window;
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

    impl Keys for List {
        fn key_at(&self, position: u64) -> &[u8] {
            &self.0[position as usize]
        }
        fn descending(&self) -> bool {
            self.1
        }
    }

    proptest! {
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

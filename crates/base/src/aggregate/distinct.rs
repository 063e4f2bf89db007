//! `distinct`: each value once, in the order in which they came, until they are written in the order of their encodings.
//!
//! ```text
//!   values | value | value | ...      places: where in `values` each begins, by its hash
//! ```
//!
//! A value stands at a place if the bytes there begin with it and go on with anything but FF: that would make its last zero
//! an escaped one, and the value there a longer one. No value begins with FF.

use hashbrown::HashTable;

use super::{check_value, check_whole};
use crate::Result;
use crate::value::{hash, skip, write};

/// The values of a key so far. Few of them are looked through, and have no table.
#[derive(Debug, Clone, Default)]
pub(super) struct Distinct {
    values: Vec<u8>,
    places: Option<Box<HashTable<usize>>>,
}

/// Fewer bytes of values are looked through.
const TABLE_MIN: usize = 128;

/// What is made of the values: the result, Python's object, and what its writer makes of that.
const FINISHED_COPIES: usize = 3;

/// Bytes of a value beside its own: its place among the sorted ones, and the head of Python's object.
const ENTRY_BYTES: usize = size_of::<&[u8]>() + 48;

impl Distinct {
    pub(super) fn heap_bytes(&self) -> usize {
        let table = self.places.as_ref();
        let places = table.map_or(0, |table| size_of_val(&**table) + table.allocation_size());
        self.values.capacity() + places
    }

    pub(super) fn add(&mut self, value: &[u8]) -> Result<()> {
        check_whole(value)?;
        self.insert(value, |_| Ok(()))
    }

    pub(super) fn merge(&mut self, other: &[u8]) -> Result<()> {
        let mut rest = other;
        while !rest.is_empty() {
            let (value, behind) = rest.split_at(skip(rest)?);
            self.insert(value, check_value)?;
            rest = behind;
        }
        Ok(())
    }

    /// Adds a value unless it is there; `check` looks at it only then.
    fn insert(&mut self, value: &[u8], check: impl Fn(&[u8]) -> Result<()>) -> Result<()> {
        let values = &mut self.values;
        if self.places.is_none() && values.len() < TABLE_MIN {
            if entries(values).all(|known| known != value) {
                check(value)?;
                values.extend_from_slice(value);
            }
            return Ok(());
        }
        let table = self.places.get_or_insert_with(|| table_of(values));
        let (hash, here) = (hash(value), values.len());
        let is_there = |place: &usize| stands_at(values, *place, value);
        if table.find(hash, is_there).is_none() {
            check(value)?;
            table.insert_unique(hash, here, |place| hash_at(values, *place));
            values.extend_from_slice(value);
        }
        Ok(())
    }

    /// How many values there are.
    pub(super) fn count(&self) -> u64 {
        match &self.places {
            Some(places) => places.len() as u64,
            None => entries(&self.values).count() as u64,
        }
    }

    /// About as many bytes as there are until the result is written: the values, their order, the result, and what Python and its writer
    /// make of that.
    pub(super) fn finish_bytes(&self) -> usize {
        let places_bytes = self.count() as usize * ENTRY_BYTES;
        self.heap_bytes() + FINISHED_COPIES * self.values.len() + places_bytes
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        for value in self.sorted() {
            out.extend_from_slice(value);
        }
    }

    pub(super) fn finish(&self, out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        write::begin_tuple(out);
        for value in self.sorted() {
            write::element(out, value);
        }
        write::end_tuple(out);
        // The values are one tuple deeper than they were: not all can be.
        skip(out.get(start..).unwrap_or_default()).map(|_| ())
    }

    fn sorted(&self) -> Vec<&[u8]> {
        let mut values: Vec<_> = entries(&self.values).collect();
        values.sort_unstable();
        values
    }
}

/// The values in a buffer, all of which were checked when they came.
fn entries(mut rest: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (value, behind) = rest.split_at(skip(rest).ok()?);
        rest = behind;
        Some(value)
    })
}

/// Whether a value, whole, stands at a place of the buffer.
fn stands_at(values: &[u8], place: usize, value: &[u8]) -> bool {
    let rest = values.get(place..).and_then(|at| at.strip_prefix(value));
    rest.is_some_and(|rest| rest.first() != Some(&0xFF))
}

/// The table of the values that were looked through until now.
fn table_of(values: &[u8]) -> Box<HashTable<usize>> {
    let mut table = Box::new(HashTable::new());
    let mut place = 0;
    for value in entries(values) {
        table.insert_unique(hash(value), place, |place| hash_at(values, *place));
        place += value.len();
    }
    table
}

/// The hash of the value at a place of the buffer.
fn hash_at(values: &[u8], place: usize) -> u64 {
    let at = values.get(place..).unwrap_or_default();
    hash(at.get(..skip(at).unwrap_or(0)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &[u8]) -> Vec<u8> {
        let mut encoded = Vec::new();
        write::text(&mut encoded, std::str::from_utf8(text).unwrap());
        encoded
    }

    fn tuple(elements: &[&[u8]]) -> Vec<u8> {
        let mut encoded = Vec::new();
        write::begin_tuple(&mut encoded);
        elements
            .iter()
            .for_each(|element| write::element(&mut encoded, element));
        write::end_tuple(&mut encoded);
        encoded
    }

    /// A table looks at values whose hashes have seven equal bits in common: one pair in 128, where it is small.
    #[test]
    fn a_value_that_begins_a_longer_one_is_another() {
        const NULL: &[u8] = &[0];
        for number in 0..2000 {
            let key = text(format!("k{number}").as_bytes());
            let longer = [&key[..key.len() - 1], b"\0\xFF\0"].concat();
            let all = [tuple(&[&key, NULL]), tuple(&[&key]), longer, key];
            let mut state = Distinct::default();
            state.add(&text(&[b'a'; TABLE_MIN])).unwrap();
            for value in all.iter().chain(&all) {
                state.add(value).unwrap();
            }
            assert_eq!(state.count(), 1 + all.len() as u64, "{number}");
            let (mut written, mut again) = (Vec::new(), Distinct::default());
            state.write(&mut written);
            again.merge(&written).unwrap();
            again.merge(&written).unwrap();
            assert_eq!(again.count(), state.count(), "{number}");
        }
    }
}

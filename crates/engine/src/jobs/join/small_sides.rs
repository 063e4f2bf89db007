//! A join whose inputs but the left are small: map tasks hold them, and write the rows of the left in its order.
//!
//! ```text
//!   key ──hash──▶ slot ──▶ key, its first row ──▶ next row ──▶ ...        one such table for each input but the left
//! ```

use super::joined_rows::JoinRows;
use super::row::RowRoom;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::value::hash;
use gristmill_tasks::task::{PartFiles, PartMapper, Records, SIDE_BYTES};

/// No key, and no row.
const NONE: u32 = u32::MAX;

/// Slots of a table that has no key yet.
const SLOTS_MIN: usize = 64;

/// Rows by their keys, in the order of their input.
#[derive(Debug)]
struct KeyedRows {
    /// Keys and rows, one behind another.
    bytes: Vec<u8>,
    keys: Vec<HeldKey>,
    rows: Vec<HeldRow>,
    /// The numbers of keys by their hash: as many as a power of two, half of them empty at least.
    slots: Vec<u32>,
}

#[derive(Debug)]
struct HeldKey {
    start: u32,
    end: u32,
    first: u32,
    last: u32,
}

#[derive(Debug)]
struct HeldRow {
    start: u32,
    end: u32,
    next: u32,
}

impl KeyedRows {
    fn new() -> Self {
        KeyedRows {
            bytes: Vec::new(),
            keys: Vec::new(),
            rows: Vec::new(),
            slots: vec![NONE; SLOTS_MIN],
        }
    }

    /// Bytes that it takes, but for what its vectors have room for.
    fn taken(&self) -> usize {
        self.bytes.len()
            + size_of_val(&*self.keys)
            + size_of_val(&*self.rows)
            + size_of_val(&*self.slots)
    }

    /// Where a key is, or where it would be.
    #[inline]
    fn slot_of(&self, key: &[u8]) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = hash(key) as usize & mask;
        while let Some(number) = self.slots.get(slot)
            && *number != NONE
            && self.key(*number) != key
        {
            slot = (slot + 1) & mask;
        }
        slot
    }

    #[inline]
    fn key(&self, number: u32) -> &[u8] {
        let Some(key) = self.keys.get(number as usize) else {
            return &[];
        };
        self.slice(key.start, key.end)
    }

    #[inline]
    fn slice(&self, start: u32, end: u32) -> &[u8] {
        let found = self.bytes.get(start as usize..end as usize);
        found.unwrap_or_default()
    }

    fn append(&mut self, bytes: &[u8]) -> (u32, u32) {
        reserve(&mut self.bytes, bytes.len());
        let start = self.bytes.len() as u32; // all of it is less than SIDE_BYTES
        self.bytes.extend_from_slice(bytes);
        (start, self.bytes.len() as u32)
    }

    fn add(&mut self, key: &[u8], row: &[u8]) {
        let (start, end) = self.append(row);
        let number = self.rows.len() as u32;
        reserve(&mut self.rows, 1);
        let next = NONE;
        self.rows.push(HeldRow { start, end, next });
        let slot = self.slot_of(key);
        let known = self.slots.get(slot).copied().unwrap_or(NONE);
        match self.keys.get_mut(known as usize) {
            Some(known) => {
                if let Some(last) = self.rows.get_mut(known.last as usize) {
                    last.next = number;
                }
                known.last = number;
            }
            None => self.add_key(slot, key, number),
        }
    }

    fn add_key(&mut self, slot: usize, key: &[u8], row: u32) {
        let (start, end) = self.append(key);
        if let Some(place) = self.slots.get_mut(slot) {
            *place = self.keys.len() as u32;
        }
        reserve(&mut self.keys, 1);
        self.keys.push(HeldKey {
            start,
            end,
            first: row,
            last: row,
        });
        if 2 * self.keys.len() > self.slots.len() {
            self.grow();
        }
    }

    fn grow(&mut self) {
        self.slots = vec![NONE; 2 * self.slots.len()];
        for number in 0..self.keys.len() as u32 {
            let slot = self.slot_of(self.key(number));
            if let Some(place) = self.slots.get_mut(slot) {
                *place = number;
            }
        }
    }

    /// The first row of a key.
    #[inline]
    fn first(&self, key: &[u8]) -> u32 {
        let number = self.slots.get(self.slot_of(key)).copied();
        let key = number.and_then(|number| self.keys.get(number as usize));
        key.map_or(NONE, |key| key.first)
    }

    /// A row, and the number of the next one of its key.
    #[inline]
    fn row(&self, number: u32) -> Option<(&[u8], u32)> {
        let row = self.rows.get(number as usize)?;
        Some((self.slice(row.start, row.end), row.next))
    }
}

/// Makes room for more, a quarter at once: a vector that has room for twice of what is in it would waste it.
fn reserve<T>(items: &mut Vec<T>, more: usize) {
    if items.capacity() - items.len() < more {
        items.reserve_exact(more.max(items.len() / 4));
    }
}

/// Joins the rows of the left with those of small inputs.
pub(super) struct SmallSides<'o> {
    join: &'o JoinRows,
    /// The rows of the inputs but the left, the second input's first.
    held: Vec<KeyedRows>,
    room: RowRoom,
    out: SideOutput,
}

/// A row that is written, and what it is made of.
#[derive(Default)]
struct SideOutput {
    key: Vec<u8>,
    row: Vec<u8>,
    /// The first rows of the key, and those that are written next, of each input but the left.
    firsts: Vec<u32>,
    at: Vec<u32>,
}

impl<'o> SmallSides<'o> {
    pub(super) fn new(join: &'o JoinRows) -> Self {
        let others = join.inputs.len().saturating_sub(1);
        SmallSides {
            join,
            held: (0..others).map(|_| KeyedRows::new()).collect(),
            room: RowRoom::default(),
            out: SideOutput::default(),
        }
    }
}

impl PartMapper for SmallSides<'_> {
    fn hold(&mut self, records: &Records<'_>) -> Result<()> {
        let input = self.join.inputs.get(records.input);
        let place = records.input.checked_sub(1);
        let (Some(input), Some(place)) = (input, place) else {
            return Ok(());
        };
        let held = &mut self.held;
        input.each(records, &mut self.room, &mut |key, row| {
            let taken: usize = held.iter().map(KeyedRows::taken).sum();
            let Some(rows) = held.get_mut(place) else {
                return Ok(());
            };
            let more = key.len() + row.len() + size_of::<HeldKey>() + size_of::<HeldRow>();
            let slots = size_of_val(&*rows.slots); // they may double
            if taken + more + slots > SIDE_BYTES {
                return Err(too_large());
            }
            rows.add(key, row);
            Ok(())
        })
    }

    fn records(&mut self, records: &Records<'_>, part: &mut PartFiles) -> Result<()> {
        let Some(input) = self.join.inputs.first() else {
            return Ok(());
        };
        let (join, held, out) = (self.join, &self.held, &mut self.out);
        input.each(records, &mut self.room, &mut |key, row| {
            out.write(join, held, (key, row), part)
        })
    }
}

#[cold]
fn too_large() -> Error {
    let message = "an input is no longer as small as it was when the job was planned";
    Error::new(Kind::InputChanged, "hold an input", message).advise("start the job anew")
}

impl SideOutput {
    /// Writes what becomes of a left row.
    fn write(
        &mut self,
        join: &JoinRows,
        held: &[KeyedRows],
        (key, left): (&[u8], &[u8]),
        part: &mut PartFiles,
    ) -> Result<()> {
        self.firsts.clear();
        self.firsts.extend(held.iter().map(|rows| rows.first(key)));
        let others = self.firsts.iter().map(|first| *first != NONE);
        let has_rows = std::iter::once(true).chain(others);
        if join.wanted.first_input(has_rows) != Some(0) {
            return Ok(());
        }
        if join.selects {
            self.row.clear();
            self.row.extend_from_slice(left);
            join.writer.end_row(&mut self.row);
            return part.record(&self.row);
        }
        self.key.clear();
        join.write_key(key, &mut self.key)?;
        self.at.clone_from(&self.firsts);
        loop {
            let mut row = std::mem::take(&mut self.row);
            row.clear();
            let row_of = |input: usize| self.row_of(join, held, (input, left));
            join.write_row((&self.key, 0), row_of, &mut row)?;
            self.row = row;
            part.record(&self.row)?;
            if !self.advance(held) {
                return Ok(());
            }
        }
    }

    /// The row of an input that is written next, or what stands for one.
    #[inline]
    fn row_of<'r>(
        &self,
        join: &'r JoinRows,
        held: &'r [KeyedRows],
        (input, left): (usize, &'r [u8]),
    ) -> &'r [u8] {
        let Some(place) = input.checked_sub(1) else {
            return left;
        };
        let row = held.get(place).zip(self.at.get(place));
        let row = row.and_then(|(rows, at)| rows.row(*at));
        row.map_or(join.absent(input), |(row, _)| row)
    }

    /// Goes to the next rows; false where all were written.
    #[inline]
    fn advance(&mut self, held: &[KeyedRows]) -> bool {
        for ((at, first), rows) in self.at.iter_mut().zip(&self.firsts).zip(held).rev() {
            let next = rows.row(*at).map_or(NONE, |(_, next)| next);
            if next != NONE {
                *at = next;
                return true;
            }
            *at = *first;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stay_in_the_order_of_their_input() {
        let mut rows = KeyedRows::new();
        for number in 0..1000_u32 {
            let key = number % 300;
            rows.add(&key.to_le_bytes(), &number.to_le_bytes());
        }
        for key in 0..300_u32 {
            let (mut at, mut found) = (rows.first(&key.to_le_bytes()), Vec::new());
            while let Some((row, next)) = rows.row(at) {
                found.push(u32::from_le_bytes(row.try_into().unwrap()));
                at = next;
            }
            let wanted: Vec<u32> = (0..1000).filter(|number| number % 300 == key).collect();
            assert_eq!(found, wanted);
        }
        assert_eq!(rows.first(b"none"), NONE);
        let capacity =
            rows.bytes.capacity() + 16 * rows.keys.capacity() + 12 * rows.rows.capacity();
        assert!(capacity + 4 * rows.slots.len() < rows.taken() * 5 / 4 + 100);
    }
}

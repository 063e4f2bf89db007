//! What a mapper holds back where the first records of each group are wanted: so many of each that may be among them.
//!
//! ```text
//!   kept, of N records    the greatest on top: a record that comes behind it is not wanted
//!   tied                  what is equal to the greatest one, if such records are wanted, too
//!   bound                 that of records which were given away when there was no room
//! ```
//!
//! An order is the code of a record's keys, of which none is the beginning of another one. Equal ones stay in the order of the input.
//!
//! The rule that must hold: a record that is among the first of its group is given away once.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry as TableEntry;

use super::operator::{Combined, Pairs};
use gristmill_base::error::Result;
use gristmill_base::value::hash;

/// What an order begins with, so that nothing in it is taken for a part of the group's key (`MergedGroups`).
const MARK: u8 = 0;

/// Bytes of a position.
const POSITION_BYTES: usize = 8;

/// What a record takes beside its bytes: its entry, in a vector that may be half empty, and what an allocation costs.
const ENTRY_BYTES: usize = 96;

/// What a group takes beside its key and its records: its place in a table that may be half empty, and allocations.
const GROUP_BYTES: usize = 384;

/// How many of the first records of each group are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirstWanted {
    /// So many.
    pub most: usize,
    /// Those that are equal to the last of them, too.
    pub ties: bool,
}

/// A record as it comes.
#[derive(Debug, Clone, Copy)]
pub struct NextRecord<'a> {
    /// The key of its group, encoded.
    pub group: &'a [u8],
    /// The code of its keys.
    pub code: &'a [u8],
    /// Its place in the order of the input.
    pub position: u64,
    /// Its bytes, in two pieces.
    pub record: [&'a [u8]; 2],
}

impl NextRecord<'_> {
    fn bytes(&self) -> usize {
        self.record.iter().map(|piece| piece.len()).sum()
    }
}

/// The first records of each group, in a bounded memory.
#[derive(Debug)]
pub struct FirstRecords {
    wanted: FirstWanted,
    memory: usize,
    held: usize,
    groups: HashTable<FirstOfGroup>,
    seen: Combined,
    /// A pair that is given away at once.
    room: HeldRecord,
}

impl FirstRecords {
    /// No records, in so many bytes.
    pub fn new(wanted: FirstWanted, memory: usize) -> Self {
        FirstRecords {
            wanted,
            memory,
            held: 0,
            groups: HashTable::new(),
            seen: Combined::default(),
            room: HeldRecord::default(),
        }
    }

    /// Takes the next record, if it may be among the first of its group; gives records away where there is no room for more.
    ///
    /// # Errors
    /// Pairs cannot be kept.
    #[inline]
    pub fn add(&mut self, record: NextRecord<'_>, pairs: &mut Pairs<'_>) -> Result<()> {
        self.seen.records += 1;
        self.seen.bytes += (record.group.len() + record.code.len() + record.bytes()) as u64;
        let number = hash(record.group);
        let found = self
            .groups
            .find(number, |group| *group.key == *record.group);
        match found {
            Some(group) if !group.may_take(record.code, self.wanted) => Ok(()),
            _ => self.take(number, &record, pairs),
        }
    }

    fn take(&mut self, number: u64, record: &NextRecord<'_>, pairs: &mut Pairs<'_>) -> Result<()> {
        let needed = HeldRecord::bytes_for(record) + GROUP_BYTES + record.group.len();
        if self.held + needed > self.memory {
            self.give(pairs)?;
        }
        if self.held + needed > self.memory {
            self.room.set(record);
            return pairs.give(record.group, self.room.order(), self.room.record());
        }
        let same = |group: &FirstOfGroup| *group.key == *record.group;
        let group = match self.groups.entry(number, same, |group| hash(&group.key)) {
            TableEntry::Occupied(group) => group.into_mut(),
            TableEntry::Vacant(place) => {
                let group = FirstOfGroup::of(record.group);
                self.held += group.held;
                place.insert(group).into_mut()
            }
        };
        let before = group.held;
        group.take(record, self.wanted);
        self.held = self.held + group.held - before;
        Ok(())
    }

    /// Gives all records away. Of groups that had as many as are wanted the last one is known further on, where there is room.
    fn give(&mut self, pairs: &mut Pairs<'_>) -> Result<()> {
        for group in &mut self.groups {
            group.give(self.wanted, pairs)?;
        }
        self.groups.retain(|group| group.bound.is_some());
        let held: usize = self.groups.iter().map(|group| group.held).sum();
        if held > self.memory / 2 {
            self.groups.clear();
        }
        self.groups.shrink_to_fit(|group| hash(&group.key));
        self.held = self.groups.iter().map(|group| group.held).sum();
        Ok(())
    }

    /// Gives all records away, and says how many were seen.
    ///
    /// # Errors
    /// Pairs cannot be kept.
    pub fn end(&mut self, pairs: &mut Pairs<'_>) -> Result<Combined> {
        self.give(pairs)?;
        Ok(self.seen)
    }
}

/// The first records of a group.
#[derive(Debug)]
struct FirstOfGroup {
    key: Box<[u8]>,
    /// The greatest is on top.
    kept: BinaryHeap<HeldRecord>,
    /// What has the same code as that, and comes behind it.
    tied: Vec<HeldRecord>,
    /// As many as are wanted were given away, of which this was the last.
    bound: Option<HeldRecord>,
    /// Bytes of all of that.
    held: usize,
}

impl FirstOfGroup {
    fn of(key: &[u8]) -> Self {
        FirstOfGroup {
            key: key.into(),
            kept: BinaryHeap::new(),
            tied: Vec::new(),
            bound: None,
            held: GROUP_BYTES + key.len(),
        }
    }

    /// Whether a record that comes after all others may be among the first.
    #[inline]
    fn may_take(&self, code: &[u8], wanted: FirstWanted) -> bool {
        let may = |last: &HeldRecord| match code.cmp(last.code()) {
            Ordering::Less => true,
            Ordering::Equal => wanted.ties,
            Ordering::Greater => false,
        };
        let full = self.kept.len() >= wanted.most;
        let last = self.kept.peek().filter(|_| full);
        self.bound.as_ref().is_none_or(may) && last.is_none_or(may)
    }

    /// Takes a record that may be among the first.
    fn take(&mut self, record: &NextRecord<'_>, wanted: FirstWanted) {
        if self.kept.len() < wanted.most {
            let entry = HeldRecord::of(record);
            self.held += entry.held();
            self.kept.push(entry);
        } else if self.is_last(record.code) {
            let entry = HeldRecord::of(record);
            self.held += entry.held();
            self.tied.push(entry);
        } else if let Some(mut last) = self.kept.peek_mut() {
            if wanted.ties {
                let entry = HeldRecord::of(record);
                self.held += entry.held();
                self.tied.push(std::mem::replace(&mut *last, entry));
            } else {
                self.held -= last.held();
                last.set(record);
                self.held += last.held();
            }
        }
        // What is tied is still equal to the last record, or beyond it.
        if self
            .tied
            .last()
            .is_some_and(|tied| !self.is_last(tied.code()))
        {
            self.held -= self.tied.iter().map(HeldRecord::held).sum::<usize>();
            self.tied.clear();
        }
    }

    /// Whether this is the code of the last record that is kept.
    fn is_last(&self, code: &[u8]) -> bool {
        self.kept.peek().is_some_and(|last| last.code() == code)
    }

    /// Gives its records away, in order.
    fn give(&mut self, wanted: FirstWanted, pairs: &mut Pairs<'_>) -> Result<()> {
        let kept = std::mem::take(&mut self.kept).into_sorted_vec();
        let mut tied = std::mem::take(&mut self.tied);
        tied.sort_unstable();
        for entry in kept.iter().chain(&tied) {
            pairs.give(&self.key, entry.order(), entry.record())?;
        }
        if kept.len() >= wanted.most {
            self.bound = kept.into_iter().next_back().map(HeldRecord::without_record);
        }
        self.held = GROUP_BYTES + self.key.len() + self.bound.as_ref().map_or(0, HeldRecord::held);
        Ok(())
    }
}

/// A record that is held back: its order, its position, its bytes. Entries compare by that.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct HeldRecord {
    bytes: Vec<u8>,
    /// Where the position begins.
    order: usize,
}

impl HeldRecord {
    fn of(record: &NextRecord<'_>) -> Self {
        let mut entry = HeldRecord::default();
        entry.set(record);
        entry
    }

    /// Becomes another record.
    fn set(&mut self, record: &NextRecord<'_>) {
        self.bytes.clear();
        self.bytes
            .reserve_exact(Self::bytes_for(record) - ENTRY_BYTES);
        self.bytes.push(MARK);
        self.bytes.extend_from_slice(record.code);
        self.order = self.bytes.len();
        self.bytes.extend_from_slice(&record.position.to_be_bytes());
        let pieces = record.record.iter();
        pieces.for_each(|piece| self.bytes.extend_from_slice(piece));
    }

    fn without_record(mut self) -> Self {
        self.bytes.truncate(self.order);
        self.bytes.shrink_to_fit();
        self
    }

    /// Bytes that the entry of a record takes.
    fn bytes_for(record: &NextRecord<'_>) -> usize {
        ENTRY_BYTES + 1 + record.code.len() + POSITION_BYTES + record.bytes()
    }

    /// Bytes that it takes.
    fn held(&self) -> usize {
        ENTRY_BYTES + self.bytes.capacity()
    }

    /// What a pair is ordered by.
    fn order(&self) -> &[u8] {
        self.bytes.get(..self.order).unwrap_or_default()
    }

    #[inline]
    fn code(&self) -> &[u8] {
        self.bytes.get(1..self.order).unwrap_or_default()
    }

    fn record(&self) -> &[u8] {
        let begins = self.order + POSITION_BYTES;
        self.bytes.get(begins..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a group keeps of records with such codes, by their positions.
    fn kept(codes: &[u8], wanted: FirstWanted) -> Vec<u64> {
        let mut group = FirstOfGroup::of(b"");
        for (code, position) in codes.chunks(1).zip(0..) {
            if group.may_take(code, wanted) {
                let record = NextRecord {
                    group: b"",
                    code,
                    position,
                    record: [b"record", b"\n"],
                };
                group.take(&record, wanted);
            }
        }
        let held = group.kept.iter().chain(&group.tied).map(HeldRecord::held);
        assert_eq!(group.held, GROUP_BYTES + held.sum::<usize>());
        let mut kept = group.kept.into_sorted_vec();
        group.tied.sort_unstable();
        kept.append(&mut group.tied);
        assert!(kept.iter().all(|entry| entry.record() == b"record\n"));
        let position = |entry: &HeldRecord| {
            let bytes = &entry.bytes[entry.order..][..POSITION_BYTES];
            u64::from_be_bytes(bytes.try_into().unwrap())
        };
        kept.iter().map(position).collect()
    }

    #[test]
    fn a_group_keeps_what_a_stable_sort_begins_with() {
        let mut state = 7u64;
        for length in 0..60usize {
            let codes: Vec<u8> = (0..length)
                .map(|_| {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    (state >> 61) as u8
                })
                .collect();
            let mut sorted: Vec<u64> = (0..length as u64).collect();
            sorted.sort_by_key(|position| codes[*position as usize]);
            for most in [1, 2, 7, 40, 100] {
                let first = &sorted[..most.min(length)];
                assert_eq!(kept(&codes, FirstWanted { most, ties: false }), first);
                let all: Vec<u64> = sorted
                    .iter()
                    .copied()
                    .filter(|at| {
                        let code = |at: u64| codes[at as usize];
                        first.contains(at)
                            || first.len() == most && code(*at) == code(first[most - 1])
                    })
                    .collect();
                assert_eq!(kept(&codes, FirstWanted { most, ties: true }), all);
            }
        }
    }
}

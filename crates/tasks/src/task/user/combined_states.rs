//! What a mapper holds back where values of a key become an aggregate: a state for each key. Where hardly any key comes twice, a
//! state costs more than it saves: values are given away as they are, then.
//!
//! ```text
//!   add ──▶ table, full or at the end ──▶ key, written state
//!      └── hardly any key twice ──▶ key, FF, position, value; of a count key, written state of one          a written state does not begin with FF
//! ```
//!
//! The rule that must hold: every value added is in exactly one state that was given away, or was given away itself.
//!
//! Decision: docs/decisions/aggregate-table.md.

use super::operator::{Combined, Pairs};
use crate::merge::groups::VALUE_MARK;
use crate::spill::table::AggregateTable;
use gristmill_base::aggregate::Aggregate;
use gristmill_base::error::Result;
use gristmill_base::value::{hash, write};

/// Keys in a table when it is seen whether they come again.
const LOOK_KEYS: usize = 1 << 18;

/// They do if there are so many values for a hundred keys.
const VALUES_FOR_100: u64 = 105;

/// States by key, in a bounded memory.
#[derive(Debug)]
pub struct CombinedStates {
    table: AggregateTable,
    /// Whether values are given away as they are.
    passes: bool,
    /// The state of one value, where it is the same for all values: that of a count.
    of_one: Option<Vec<u8>>,
    passed: u64,
    bytes: u64,
    scratch: Vec<u8>,
}

impl CombinedStates {
    /// No states, in so many bytes.
    pub fn new(aggregate: Aggregate, memory: usize) -> Self {
        let of_one = (aggregate == Aggregate::Count).then(|| {
            let mut one = Vec::new();
            write::unsigned(&mut one, 1);
            one
        });
        CombinedStates {
            table: AggregateTable::new(aggregate, memory),
            passes: false,
            of_one,
            passed: 0,
            bytes: 0,
            scratch: Vec::new(),
        }
    }

    /// Adds an encoded value to a key; gives the states away where there is no room for more.
    ///
    /// # Errors
    /// The aggregate does not take the value, or pairs cannot be kept.
    #[inline]
    pub fn add(
        &mut self,
        (key, value): (&[u8], &[u8]),
        position: u64,
        pairs: &mut Pairs<'_>,
    ) -> Result<()> {
        self.add_ordered((key, key.len()), value, position, pairs)
    }

    /// The same where the key is that of a group, of so many bytes, and what orders its values: states are of both.
    ///
    /// # Errors
    /// As of [`Self::add`].
    #[inline]
    pub fn add_ordered(
        &mut self,
        (key, group_bytes): (&[u8], usize),
        value: &[u8],
        position: u64,
        pairs: &mut Pairs<'_>,
    ) -> Result<()> {
        self.bytes += (key.len() + value.len()) as u64;
        let group = key.get(..group_bytes).unwrap_or(key);
        if self.passes {
            return self.pass((key, group), value, position, pairs);
        }
        let partitions = pairs.partitions();
        let part = |_| Ok(Pairs::part_of(group, partitions));
        self.table.add(hash(key), key, value, position, part)?;
        if self.table.is_full() {
            self.table.give(pairs.collector, pairs.progress)?;
        } else if self.table.len() == LOOK_KEYS && self.comes_once() {
            self.passes = true;
            self.table.give(pairs.collector, pairs.progress)?;
        }
        Ok(())
    }

    /// Whether hardly any key came twice so far.
    fn comes_once(&self) -> bool {
        let keys = self.table.given() + self.table.len() as u64;
        self.table.added() * 100 < keys * VALUES_FOR_100
    }

    /// Gives a value away as it is, or the state of it alone where that is shorter.
    fn pass(
        &mut self,
        (key, group): (&[u8], &[u8]),
        value: &[u8],
        position: u64,
        pairs: &mut Pairs<'_>,
    ) -> Result<()> {
        self.passed += 1;
        let part = Pairs::part_of(group, pairs.partitions());
        if let Some(one) = &self.of_one {
            return pairs.give_to(part, key, b"", one);
        }
        self.scratch.clear();
        self.scratch.push(VALUE_MARK);
        self.scratch.extend_from_slice(&position.to_be_bytes());
        self.scratch.extend_from_slice(value);
        pairs.give_to(part, key, b"", &self.scratch)
    }

    /// Gives away all states, and says what went into them.
    ///
    /// # Errors
    /// Pairs cannot be kept.
    pub fn end(&mut self, pairs: &mut Pairs<'_>) -> Result<Combined> {
        self.table.give(pairs.collector, pairs.progress)?;
        Ok(Combined {
            records: self.table.added() + self.passed,
            bytes: self.bytes,
        })
    }
}

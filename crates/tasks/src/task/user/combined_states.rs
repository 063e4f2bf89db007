//! What a mapper holds back where values of a key become an aggregate: a state for each key.
//!
//! The rule that must hold: every value added is in exactly one state that was given away.

use super::operator::{Combined, Pairs};
use crate::spill::table::AggregateTable;
use gristmill_base::aggregate::Aggregate;
use gristmill_base::error::Result;
use gristmill_base::value::hash;

/// States by key, in a bounded memory.
#[derive(Debug)]
pub struct CombinedStates {
    table: AggregateTable,
    bytes: u64,
}

impl CombinedStates {
    /// No states, in so many bytes.
    pub fn new(aggregate: Aggregate, memory: usize) -> Self {
        CombinedStates {
            table: AggregateTable::new(aggregate, memory),
            bytes: 0,
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
        let partitions = pairs.partitions();
        let part = |_| Ok(Pairs::part_of(key, partitions));
        self.table.add(hash(key), key, value, position, part)?;
        self.bytes += (key.len() + value.len()) as u64;
        if self.table.is_full() {
            self.table.give(pairs.collector, pairs.progress)?;
        }
        Ok(())
    }

    /// Gives away all states, and says what went into them.
    ///
    /// # Errors
    /// Pairs cannot be kept.
    pub fn end(&mut self, pairs: &mut Pairs<'_>) -> Result<Combined> {
        self.table.give(pairs.collector, pairs.progress)?;
        Ok(Combined {
            records: self.table.added(),
            bytes: self.bytes,
        })
    }
}

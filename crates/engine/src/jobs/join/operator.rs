//! What `join` does with records: pairs of a key and a row.

use super::joined_rows::JoinRows;
use super::reducer::{JoinReducer, LAST};
use super::row::RowRoom;
use super::small_sides::SmallSides;
use gristmill_base::error::Result;
use gristmill_tasks::task::{Mapper, Operator, Pairs, PartMapper, Records, Reducer};

/// Joins rows.
#[derive(Debug)]
pub(super) struct JoinOperator(pub(super) JoinRows);

impl Operator for JoinOperator {
    fn ordered(&self) -> bool {
        true
    }

    fn header(&self) -> &[u8] {
        &self.0.header
    }

    fn mapper(&self, _memory: usize) -> Result<Box<dyn Mapper + '_>> {
        Ok(Box::new(JoinMapper {
            join: &self.0,
            room: RowRoom::default(),
        }))
    }

    fn part_mapper(&self) -> Result<Box<dyn PartMapper + '_>> {
        Ok(Box::new(SmallSides::new(&self.0)))
    }

    fn reducer(&self, memory: usize) -> Result<Box<dyn Reducer + '_>> {
        Ok(Box::new(JoinReducer::new(&self.0, memory)))
    }
}

struct JoinMapper<'o> {
    join: &'o JoinRows,
    room: RowRoom,
}

impl Mapper for JoinMapper<'_> {
    fn records(&mut self, records: &Records<'_>, pairs: &mut Pairs<'_>) -> Result<()> {
        let Some(input) = self.join.inputs.get(records.input) else {
            return Ok(());
        };
        let order = match records.input {
            0 => LAST,
            number => number as u8,
        };
        input.each(records, &mut self.room, &mut |key, row| {
            pairs.give(key, &[order], row)
        })
    }
}

//! Takes pairs of a table: rows of its columns, encoded without an object of Python for each.

use gristmill_engine::value::block::{BLOCK_ROWS, KeyBlock};
use gristmill_engine::value::columns::{Cell, Column};
use pyo3::prelude::*;

use super::{Emitter, PairSink};
use crate::work::accepted_values::AcceptedValues;
use crate::work::columns::unreadable;

impl Emitter {
    /// Takes the rows of some columns.
    pub(super) fn take_rows(
        &mut self,
        py: Python<'_>,
        rows: usize,
        (keys, values, block): &mut (Column, Column, KeyBlock),
    ) -> PyResult<()> {
        for start in (0..rows).step_by(BLOCK_ROWS) {
            let some = start..rows.min(start + BLOCK_ROWS);
            let filled = block.fill(keys, some.clone(), self.ranked);
            filled.map_err(|why| unreadable(py, why))?;
            if let PairSink::Table(table) = &self.sink {
                table.touch(&block.hashes);
            }
            if values.ints(some.clone(), &mut block.ints) {
                for ((key, hash), int) in block.keys().zip(&block.ints) {
                    self.take_cell(py, key, hash, Cell::Int(*int))?;
                }
            } else {
                for ((key, hash), row) in block.keys().zip(some) {
                    let cell = values.cell(row).map_err(|why| unreadable(py, why))?;
                    self.take_cell(py, key, hash, cell)?;
                }
            }
        }
        Ok(())
    }

    /// Takes an encoded key and a value.
    #[inline(always)]
    fn take_cell(
        &mut self,
        py: Python<'_>,
        key: &[u8],
        hash: u64,
        value: Cell<'_>,
    ) -> PyResult<()> {
        self.begin_pair();
        if let (PairSink::Table(_), Cell::Int(int)) = (&self.sink, value) {
            return self.add(py, None, key, hash, Some(int));
        }
        self.value.clear();
        match self.accepted {
            AcceptedValues::Any => value.write(&mut self.value),
            _ => value.write_key(&mut self.value),
        }
        if let PairSink::Table(_) = self.sink {
            return self.add(py, None, key, hash, None);
        }
        self.key.clear();
        self.key.extend_from_slice(key);
        self.append(py, None, hash)
    }
}

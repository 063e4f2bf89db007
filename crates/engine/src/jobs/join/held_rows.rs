//! The rows of one key that one input has: all in memory, or in blocks on disk, of which one is in memory.
//!
//! ```text
//!   take take take ... │ seal │ first next next ... first next ... │ clear
//! ```
//!
//! Who goes through rows that are on disk writes each of them into the output: no more is read than is written.

use std::ops::Range;

use gristmill_base::error::Result;
use gristmill_tasks::task::{PartFiles, ScratchFile};

/// Bytes that say how long a row is.
const LENGTH_BYTES: usize = 4;

/// Rows, in the order of their input.
pub(super) struct HeldRows {
    /// Rows, each behind its length: all of them, or those of the present block.
    block: Vec<u8>,
    /// Where the present row lies in it.
    row: Range<usize>,
    /// The present block's number, where there is a file.
    number: usize,
    /// The blocks, where they are several.
    file: Option<ScratchFile>,
    rows: u64,
    /// Bytes that a block may have, unless it is one row.
    room: usize,
}

impl HeldRows {
    /// None yet; they may take so many bytes of memory.
    pub(super) fn within(memory: usize) -> Self {
        HeldRows {
            block: Vec::new(),
            row: 0..0,
            number: 0,
            file: None,
            rows: 0,
            room: memory / 2, // a vector that grows has room for twice of what is in it
        }
    }

    pub(super) fn clear(&mut self) {
        self.block.clear();
        self.row = 0..0;
        (self.number, self.rows) = (0, 0);
        self.file = None;
    }

    /// Takes a row. What does not fit in memory goes to a scratch file of the part.
    pub(super) fn take(&mut self, row: &[u8], part: &mut PartFiles) -> Result<()> {
        if self.block.len() + LENGTH_BYTES + row.len() > self.room && !self.block.is_empty() {
            let file = match &mut self.file {
                Some(file) => file,
                None => self.file.insert(part.scratch_file()?),
            };
            file.append(&self.block)?;
            self.block.clear();
        }
        self.block
            .extend_from_slice(&(row.len() as u32).to_ne_bytes());
        self.block.extend_from_slice(row);
        self.rows += 1;
        Ok(())
    }

    /// Counts a row whose bytes nobody asks for.
    pub(super) fn count(&mut self) {
        self.rows += 1;
    }

    /// All rows are taken.
    pub(super) fn seal(&mut self) -> Result<()> {
        if let Some(file) = &mut self.file {
            self.number = file.len();
            file.append(&self.block)?;
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Goes to the first row, if there is one.
    pub(super) fn first(&mut self) -> Result<()> {
        if self.number > 0 {
            self.load(0)?;
        }
        self.row = 0..0;
        self.step();
        Ok(())
    }

    /// Goes to the next row; false behind the last.
    #[inline]
    pub(super) fn next(&mut self) -> Result<bool> {
        Ok(self.step() || (self.file.is_some() && self.load(self.number + 1)? && self.step()))
    }

    /// The present row.
    #[inline]
    pub(super) fn get(&self) -> &[u8] {
        self.block.get(self.row.clone()).unwrap_or_default()
    }

    /// Goes to the next row of the block; false behind the last.
    #[inline]
    fn step(&mut self) -> bool {
        let rest = self.block.get(self.row.end..).unwrap_or_default();
        let Some((length, _)) = rest.split_first_chunk::<LENGTH_BYTES>() else {
            return false;
        };
        let start = self.row.end + LENGTH_BYTES;
        self.row = start..start + u32::from_ne_bytes(*length) as usize;
        true
    }

    /// Reads the block of a number; false where there is none.
    #[cold]
    fn load(&mut self, number: usize) -> Result<bool> {
        let Some(file) = &self.file else {
            return Ok(false);
        };
        if !file.read(number, &mut self.block)? {
            return Ok(false);
        }
        (self.number, self.row) = (number, 0..0);
        Ok(true)
    }
}

//! The encoded keys of some rows, many at once, with their hashes.
//!
//! A table is asked for all keys of a block before values are added to them: so the memory of one is fetched while others
//! are looked for.

use std::ops::Range;

use super::columns::{Column, ColumnError};
use super::{hash, order};
use crate::error::Result;

/// Rows whose keys are encoded, and looked for, before their values are added.
pub const BLOCK_ROWS: usize = 128;

/// Bytes of keys that are looked for before their values are added, where keys are long.
const BLOCK_BYTES: usize = 16 << 10;

/// The encoded keys of some rows, with their hashes; their values, where all are integers.
#[derive(Debug, Default)]
pub struct KeyBlock {
    bytes: Vec<u8>,
    /// Where each key ends in the bytes.
    ends: Vec<usize>,
    /// The hash of each key.
    pub hashes: Vec<u64>,
    /// The values, where all are integers.
    pub ints: Vec<i64>,
}

impl KeyBlock {
    /// Encodes the keys of some rows, as ranked keys where they are ordered by what they are worth.
    ///
    /// # Errors
    /// A key cannot be read.
    pub fn fill<'a>(
        &mut self,
        keys: &'a Column,
        rows: Range<usize>,
        ranked: bool,
    ) -> Result<(), ColumnError<'a>> {
        self.clear();
        for row in rows {
            let start = self.bytes.len();
            keys.write_key(row, &mut self.bytes)?;
            if ranked {
                order::rank(&mut self.bytes, start).map_err(|_not_a_value| ColumnError::Damaged)?;
            }
            self.ends.push(self.bytes.len());
            self.hashes.push(hash(&self.bytes[start..]));
        }
        Ok(())
    }

    /// Adds a key, which `write` appends, and its value; nothing if it fails.
    ///
    /// ```
    /// use gristmill_base::value::{block::KeyBlock, hash, write};
    /// let mut block = KeyBlock::default();
    /// block.push(7, |bytes| Ok::<_, ()>(write::text(bytes, "word"))).expect("it is written");
    /// assert!(block.push(8, |_| Err("no key")).is_err());
    /// assert_eq!(block.keys().collect::<Vec<_>>(), [(&b"\x02word\0"[..], hash(b"\x02word\0"))]);
    /// assert_eq!(block.ints, [7]);
    /// ```
    ///
    /// # Errors
    /// That of `write`.
    #[inline]
    pub fn push<E>(
        &mut self,
        value: i64,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = self.bytes.len();
        if let Err(error) = write(&mut self.bytes) {
            self.bytes.truncate(start);
            return Err(error);
        }
        self.ends.push(self.bytes.len());
        self.hashes.push(hash(&self.bytes[start..]));
        self.ints.push(value);
        Ok(())
    }

    /// Whether it has as many keys as are looked for at once, or many bytes of them.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.hashes.len() >= BLOCK_ROWS || self.bytes.len() >= BLOCK_BYTES
    }

    /// Forgets all keys.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.hashes.clear();
        self.ints.clear();
    }

    /// The keys, one after the other, with their hashes.
    pub fn keys(&self) -> impl Iterator<Item = (&[u8], u64)> {
        let mut start = 0;
        let keys = self.ends.iter().map(move |end| {
            let key = &self.bytes[start..*end];
            start = *end;
            key
        });
        keys.zip(self.hashes.iter().copied())
    }
}

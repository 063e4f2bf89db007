//! Records out of blocks as they come: those that lie in two blocks are put together, all others are handed on where they lie.

use crate::error::Result;

/// Bytes of records on their way.
#[derive(Debug)]
pub(super) struct Feed {
    /// The beginning of a record that goes on in the next block.
    carry: Vec<u8>,
    /// How long it may become.
    longest: usize,
}

/// Says how many bytes of a block belong to the record that has so many bytes before it.
pub(super) type Ends<'e> = &'e mut dyn FnMut(usize, &[u8]) -> Option<usize>;

/// Takes the next record.
pub(super) type Each<'e> = &'e mut dyn FnMut(&[u8]) -> Result<()>;

impl Feed {
    /// For records of at most `longest` bytes.
    pub(super) fn new(longest: usize) -> Self {
        let carry = Vec::new();
        Feed { carry, longest }
    }

    /// Hands on the records that end in `block`. False where one has become longer than it may be.
    pub(super) fn block(&mut self, block: &[u8], ends: Ends<'_>, each: Each<'_>) -> Result<bool> {
        let mut rest = block;
        if !self.carry.is_empty() {
            let Some(taken) = ends(self.carry.len(), rest) else {
                return Ok(self.keep(rest));
            };
            let (end, after) = rest.split_at(taken);
            if !self.keep(end) {
                return Ok(false);
            }
            each(&self.carry)?;
            self.carry.clear();
            rest = after;
        }
        while let Some(length) = ends(0, rest) {
            let (record, after) = rest.split_at(length);
            each(record)?;
            rest = after;
        }
        Ok(self.keep(rest))
    }

    /// What is left when there are no blocks any more.
    pub(super) fn rest(&mut self) -> &mut Vec<u8> {
        &mut self.carry
    }

    fn keep(&mut self, bytes: &[u8]) -> bool {
        self.carry.extend_from_slice(bytes);
        self.carry.len() <= self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::shape::{Lines, Shape};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn records_are_the_same_whatever_the_blocks(text in "[a\n]{0,60}", step in 1_usize..9) {
            let (lines, mut feed, mut found) = (Lines { descending: false }, Feed::new(100), Vec::new());
            for block in text.as_bytes().chunks(step) {
                let mut each = |record: &[u8]| {
                    found.push(record.to_vec());
                    Ok(())
                };
                let mut ends = |begun, more: &[u8]| lines.rest_length(begun, more);
                prop_assert!(feed.block(block, &mut ends, &mut each).unwrap());
            }
            let rest = std::mem::take(feed.rest());
            found.extend(Some(rest).filter(|rest| !rest.is_empty()));
            let all: Vec<_> = text.as_bytes().split_inclusive(|byte| *byte == b'\n').collect();
            prop_assert_eq!(found, all);
        }
    }

    #[test]
    fn a_record_that_is_too_long_stops_it() {
        let (lines, mut feed) = (Lines { descending: false }, Feed::new(5));
        let mut ends = |begun, more: &[u8]| lines.rest_length(begun, more);
        let mut each = |_: &[u8]| Ok(());
        assert!(feed.block(b"abc", &mut ends, &mut each).unwrap());
        assert!(!feed.block(b"def\n", &mut ends, &mut each).unwrap());
    }
}

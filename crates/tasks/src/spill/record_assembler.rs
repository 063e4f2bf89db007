//! Records out of blocks as they come: those that lie in two blocks are put together, all others are handed on where they lie.
//!
//! A record that is too long is read to its end, or to that of the input, and not kept: so its error can say how long it is.

use gristmill_base::error::{Error, JobOption, Kind, Result};

/// No record is as long as this, whatever the memory: lengths have 32 bits.
const LENGTH_MAX: u64 = u32::MAX as u64;

/// Bytes of records on their way.
#[derive(Debug)]
pub struct RecordAssembler {
    /// The beginning of a record that goes on in the next block.
    carry: Vec<u8>,
    /// How long it may become.
    longest: usize,
    /// Bytes so far of a record that has become longer.
    too_long: u64,
}

/// Says how many bytes of a block belong to the record that has so many bytes before it.
pub(crate) type Ends<'e> = &'e mut dyn FnMut(usize, &[u8]) -> Option<usize>;

/// Takes the next record.
pub(crate) type Each<'e> = &'e mut dyn FnMut(&[u8]) -> Result<()>;

impl RecordAssembler {
    /// For records of at most `longest` bytes.
    pub fn new(longest: usize) -> Self {
        RecordAssembler {
            carry: Vec::new(),
            longest,
            too_long: 0,
        }
    }

    /// Hands on the records that end in `block`. Gives the length of one that is longer than it may be, once that is known.
    pub fn block(&mut self, block: &[u8], ends: Ends<'_>, each: Each<'_>) -> Result<Option<u64>> {
        if self.too_long > 0 {
            return Ok(self.count(block, ends));
        }
        let mut rest = block;
        if !self.carry.is_empty() {
            let Some(taken) = ends(self.carry.len(), rest) else {
                self.keep(rest);
                return Ok(None);
            };
            let (end, after) = rest.split_at(taken);
            if !self.keep(end) {
                return Ok(Some(self.too_long));
            }
            each(&self.carry)?;
            self.carry.clear();
            rest = after;
        }
        while let Some(length) = ends(0, rest) {
            let (record, after) = rest.split_at(length);
            if length > self.longest {
                return Ok(Some(length as u64));
            }
            each(record)?;
            rest = after;
        }
        self.keep(rest);
        Ok(None)
    }

    /// What is left when there are no blocks any more; or how long it is, where that is longer than it may be.
    pub fn rest(&mut self) -> std::result::Result<&mut Vec<u8>, u64> {
        match self.too_long {
            0 => Ok(&mut self.carry),
            bytes => Err(bytes),
        }
    }

    /// False where the record is longer than it may be.
    fn keep(&mut self, bytes: &[u8]) -> bool {
        let length = self.carry.len() + bytes.len();
        if length <= self.longest {
            self.carry.extend_from_slice(bytes);
            return true;
        }
        self.too_long = length as u64;
        false
    }

    fn count(&mut self, block: &[u8], ends: Ends<'_>) -> Option<u64> {
        let begun = usize::try_from(self.too_long).unwrap_or(usize::MAX);
        let ended = ends(begun, block);
        self.too_long += ended.unwrap_or(block.len()) as u64;
        let is_known = ended.is_some() || self.too_long > LENGTH_MAX;
        is_known.then_some(self.too_long)
    }
}

/// The error of a line, row or record of so many bytes, where the longest may have `longest`; `memory` makes room for it, and
/// so may fewer workers, where they share it.
pub fn too_long(what: &str, bytes: u64, longest: usize, (memory, is_shared): (u64, bool)) -> Error {
    if bytes > LENGTH_MAX {
        let message = format!("a {what} has more than {LENGTH_MAX} bytes: none may be so long");
        return Error::new(Kind::BadInput, "read the input", message)
            .advise("check that the file is text, and that its lines end");
    }
    let message =
        format!("a {what} has {bytes} bytes, and in this memory the longest has {longest}");
    let error = Error::new(Kind::Memory, "read the input", message);
    let memory = JobOption::Memory.at_least(memory);
    if is_shared {
        let workers = JobOption::Workers.named();
        error.advise_options("give {} or more, or fewer {}", [memory, workers])
    } else {
        error.advise_options("give {} or more", [memory])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_base::record::shape::{LineShape, Shape};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn records_are_the_same_whatever_the_blocks(text in "[a\n]{0,60}", step in 1_usize..9) {
            let (lines, mut feed, mut found) = (LineShape { descending: false }, RecordAssembler::new(100), Vec::new());
            for block in text.as_bytes().chunks(step) {
                let mut each = |record: &[u8]| {
                    found.push(record.to_vec());
                    Ok(())
                };
                let mut ends = |begun, more: &[u8]| lines.rest_length(begun, more);
                prop_assert_eq!(feed.block(block, &mut ends, &mut each).unwrap(), None);
            }
            let rest = std::mem::take(feed.rest().unwrap());
            found.extend(Some(rest).filter(|rest| !rest.is_empty()));
            let all: Vec<_> = text.as_bytes().split_inclusive(|byte| *byte == b'\n').collect();
            prop_assert_eq!(found, all);
        }
    }

    /// Feeds `text` in blocks of `step` bytes; the length of a record that is too long, and how much was kept of it.
    fn overlong(text: &[u8], step: usize) -> (Option<u64>, usize) {
        let (lines, mut feed) = (LineShape { descending: false }, RecordAssembler::new(5));
        let mut ends = |begun, more: &[u8]| lines.rest_length(begun, more);
        let mut each = |_: &[u8]| Ok(());
        for block in text.chunks(step) {
            if let Some(length) = feed.block(block, &mut ends, &mut each).unwrap() {
                return (Some(length), feed.carry.len());
            }
        }
        let rest = feed.rest().err();
        (rest, feed.carry.len())
    }

    #[test]
    fn the_length_of_a_record_that_is_too_long_is_known_and_no_more_of_it_kept() {
        for step in 1..20 {
            let (ended, open) = (b"a\nabcdefghij\nb\n", b"a\nabcdefghij");
            assert_eq!(overlong(ended, step).0, Some(11), "{step}");
            assert_eq!(overlong(open, step).0, Some(10), "{step}");
            assert!(overlong(ended, step).1 <= 5);
            assert_eq!(overlong(b"abcd\nabcd\n", step), (None, 0));
        }
    }

    #[test]
    fn what_no_memory_takes_is_advised_no_memory() {
        let error = too_long("row", LENGTH_MAX + 1, 5, (9, true));
        assert_eq!(error.kind(), Kind::BadInput);
        assert_eq!(too_long("row", 10, 5, (9, true)).kind(), Kind::Memory);
    }
}

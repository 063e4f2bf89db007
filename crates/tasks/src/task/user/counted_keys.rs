//! The operator that counts keys of lines: words, matches of a pattern, whole lines.
//!
//! ```text
//!   lines ──LineKeys──▶ keys ──Counts──▶ key, count ── brought together ──KeySelection──▶ OutputLine
//! ```
//!
//! Keys are bytes as they are, so that parts are in the order of bytes.
//!
//! Decision: docs/decisions/short-keys.md.

use std::io::Write;
use std::ops::Range;

use gristmill_grep::Pattern;

use super::largest::Largest;
use super::operator::{Combined, Mapper, Operator, Pairs, Records, Reducer};
use super::part_writer::PartFiles;
use super::words::{LetterCase, each_token, each_word_of};
use crate::merge::groups::MergedGroups;
use crate::spill::counts::Counts;
use gristmill_base::aggregate::Aggregate;
use gristmill_base::error::{Error, Result};
use gristmill_base::value::{Token, ValueReader};
use gristmill_storage::lines::LineEnd;

/// Counts keys of lines.
#[derive(Debug)]
pub struct CountedKeys {
    /// The keys of lines. The hash of a key, as Hadoop has it, decides its part.
    pub keys: LineKeys,
    /// Which keys are written, and in which order.
    pub selection: KeySelection,
    /// How a key is written.
    pub line: OutputLine,
    /// What ends it.
    pub end: LineEnd,
}

impl Operator for CountedKeys {
    fn combines(&self) -> bool {
        true
    }

    fn mapper(&self, memory: usize) -> Result<Box<dyn Mapper + '_>> {
        let counts = Counts::new(memory)?;
        Ok(Box::new(CountingMapper {
            keys: &self.keys,
            counts,
        }))
    }

    fn reducer(&self, memory: usize) -> Result<Box<dyn Reducer + '_>> {
        Ok(Box::new(CountingReducer {
            operator: self,
            memory,
            largest: Largest::new(self.selection.most, memory),
            result: Vec::new(),
            line: Vec::new(),
        }))
    }
}

struct CountingMapper<'o> {
    keys: &'o LineKeys,
    counts: Counts,
}

impl Mapper for CountingMapper<'_> {
    fn records(&mut self, lines: &Records<'_>, pairs: &mut Pairs<'_>) -> Result<()> {
        let (counts, partitions) = (&mut self.counts, pairs.partitions());
        let part = |key: &[u8]| Pairs::part_of(key, partitions);
        self.keys.each((lines.bytes, lines.end), &mut |text, key| {
            if counts.add(text, key, part)? {
                counts.give(pairs.collector, part, pairs.progress)?;
            }
            Ok(())
        })
    }

    fn end(&mut self, pairs: &mut Pairs<'_>) -> Result<Option<Combined>> {
        let partitions = pairs.partitions();
        let part = |key: &[u8]| Pairs::part_of(key, partitions);
        self.counts.give(pairs.collector, part, pairs.progress)?;
        Ok(Some(Combined {
            records: self.counts.added(),
            bytes: self.counts.key_bytes(),
        }))
    }
}

struct CountingReducer<'o> {
    operator: &'o CountedKeys,
    memory: usize,
    largest: Largest,
    result: Vec<u8>,
    line: Vec<u8>,
}

impl CountingReducer<'_> {
    fn write(&mut self, key: &[u8], number: i64, part: &mut PartFiles) -> Result<()> {
        self.line.clear();
        self.operator.line.write(key, number, &mut self.line);
        self.line.push(self.operator.end.byte());
        part.record(&self.line)
    }
}

impl Reducer for CountingReducer<'_> {
    fn next(&mut self, groups: &mut MergedGroups, part: &mut PartFiles) -> Result<bool> {
        if !groups.next_aggregate(&Aggregate::Sum, self.memory, &mut self.result)? {
            return Ok(false);
        }
        let number = number_of(&self.result)?;
        let selection = self.operator.selection;
        match selection.takes(number) {
            false => {}
            true if selection.largest_first => self.largest.push(groups.key(), number)?,
            true => self.write(groups.key(), number, part)?,
        }
        Ok(true)
    }

    fn end(&mut self, part: &mut PartFiles) -> Result<()> {
        let largest = std::mem::replace(&mut self.largest, Largest::new(None, 0));
        for (key, number) in largest.sorted() {
            self.write(&key, number, part)?;
        }
        Ok(())
    }
}

/// The integer that an aggregate gave.
fn number_of(result: &[u8]) -> Result<i64> {
    match ValueReader::new(result).token()? {
        Some(Token::Int(number)) => Ok(number),
        _ => Err(Error::bug(
            "reduce a key",
            "its aggregate is not a 64-bit integer",
        )),
    }
}

/// The keys of lines.
#[derive(Debug)]
pub enum LineKeys {
    /// Each line is one.
    Lines,
    /// What stands between spaces, tabs, LF, CR and FF.
    Words(LetterCase),
    /// The matches of a pattern, in a case.
    Matches(Pattern, LetterCase),
}

impl LineKeys {
    /// Gives the keys of whole lines: a text and where in it a key lies.
    pub(super) fn each(
        &self,
        (lines, end): (&[u8], LineEnd),
        count: &mut impl FnMut(&[u8], Range<usize>) -> Result<()>,
    ) -> Result<()> {
        match self {
            LineKeys::Lines => {
                let mut each = end.lines_of(lines);
                each.try_for_each(|line| count(line, 0..line.len()))
            }
            LineKeys::Words(case) => each_word_of(lines, *case, count),
            LineKeys::Matches(pattern, case) => each_token(lines, pattern, *case, count),
        }
    }
}

/// Which keys of a part are written, and in which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeySelection {
    /// Only keys whose count is this or more.
    pub least: Option<usize>,
    /// Only keys whose count is this or less.
    pub greatest: Option<usize>,
    /// Largest counts first; else in the order of bytes.
    pub largest_first: bool,
    /// So many at most, where the largest are first.
    pub most: Option<usize>,
}

impl KeySelection {
    /// Whether a key that occurred so often is written.
    pub fn takes(&self, number: i64) -> bool {
        let count = usize::try_from(number).unwrap_or(usize::MAX);
        self.least.is_none_or(|least| count >= least)
            && self.greatest.is_none_or(|greatest| count <= greatest)
    }
}

/// How a key is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputLine {
    /// Alone.
    Key,
    /// Before its count, with a tab between them.
    KeyCount,
    /// Behind its count, with a tab between them.
    CountKey,
    /// Behind its count, as `uniq -c` writes them.
    PaddedCountKey,
}

impl OutputLine {
    /// Appends a key with its count, without an end.
    pub(super) fn write(self, key: &[u8], number: i64, out: &mut Vec<u8>) {
        let written = match self {
            OutputLine::Key | OutputLine::KeyCount => Ok(()),
            OutputLine::CountKey => write!(out, "{number}\t"),
            OutputLine::PaddedCountKey => write!(out, "{number:7} "),
        };
        debug_assert!(written.is_ok(), "memory takes all");
        out.extend_from_slice(key);
        if self == OutputLine::KeyCount {
            let written = write!(out, "\t{number}");
            debug_assert!(written.is_ok(), "memory takes all");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_written_as_they_are_said_to_be() {
        let lines = [
            (OutputLine::Key, "a b"),
            (OutputLine::KeyCount, "a b\t12"),
            (OutputLine::CountKey, "12\ta b"),
            (OutputLine::PaddedCountKey, "     12 a b"),
        ];
        for (line, want) in lines {
            let mut out = Vec::new();
            line.write(b"a b", 12, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), want);
        }
    }

    #[test]
    fn keys_of_lines_are_the_lines() {
        let mut found = Vec::new();
        let mut count = |text: &[u8], key: Range<usize>| {
            found.push(String::from_utf8(text[key].to_vec()).unwrap());
            Ok(())
        };
        let text = b"a\n\nb c\r\nd";
        LineKeys::Lines
            .each((text, LineEnd::Lf), &mut count)
            .unwrap();
        assert_eq!(found, ["a", "", "b c\r", "d"]);
    }
}

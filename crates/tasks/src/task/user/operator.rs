//! What a native job does with lines, as a value: which keys they have, which of those are written, and how.
//!
//! ```text
//!   lines ──LineKeys──▶ keys ── counted, brought together (native.rs) ──▶ key, count ──KeySelection──▶ OutputLine
//! ```
//!
//! A job is one of these; its file in the engine has its options, and makes it of them.

use std::io::Write;
use std::ops::Range;

use gristmill_grep::Pattern;

use super::words::{LetterCase, each_token, each_word_of};
use gristmill_base::error::Result;
use gristmill_storage::lines::lines_of;

/// What a native job does.
#[derive(Debug)]
pub struct Operator {
    /// The keys of lines. The hash of a key, as Hadoop has it, decides its part.
    pub keys: LineKeys,
    /// Which keys are written, and in which order.
    pub selection: KeySelection,
    /// How a key is written.
    pub line: OutputLine,
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
    /// Gives the keys of whole lines, of which LF ends each but perhaps the last: a text and where in it a key lies.
    pub(super) fn each(
        &self,
        lines: &[u8],
        count: &mut impl FnMut(&[u8], Range<usize>) -> Result<()>,
    ) -> Result<()> {
        match self {
            LineKeys::Lines => lines_of(lines).try_for_each(|line| count(line, 0..line.len())),
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
    pub(super) fn takes(&self, number: i64) -> bool {
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
    /// Appends a key with its count.
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
        out.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_written_as_they_are_said_to_be() {
        let lines = [
            (OutputLine::Key, "a b\n"),
            (OutputLine::KeyCount, "a b\t12\n"),
            (OutputLine::CountKey, "12\ta b\n"),
            (OutputLine::PaddedCountKey, "     12 a b\n"),
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
        LineKeys::Lines.each(b"a\n\nb c\r\nd", &mut count).unwrap();
        assert_eq!(found, ["a", "", "b c\r", "d"]);
    }
}

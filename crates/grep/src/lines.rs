//! The lines of a block that are selected. A line ends at a line feed, or at a NUL where the pattern says so.
//!
//! Where a match cannot span lines, the whole block is searched at once, and lines are looked at only around what was
//! found: most of the bytes go by at the speed of the pattern's literals.

use std::ops::Range;

use memchr::{memchr, memchr_iter, memrchr};

use crate::options::Options;
use crate::pattern::{Candidate, Pattern};

/// Hands on each selected line of `block`, which ends with a line, until `each` says false.
pub fn selected(
    pattern: &Pattern,
    options: &Options,
    block: &[u8],
    mut each: impl FnMut(Range<usize>) -> bool,
) {
    let end = pattern.end();
    if !options.invert {
        matching(pattern, options, block, each);
        return;
    }
    let (mut from, mut more) = (0, true);
    matching(pattern, options, block, |line| {
        more = each_line(end, block, from..line.start, &mut each);
        from = line.end;
        more
    });
    if more {
        each_line(end, block, from..block.len(), each);
    }
}

/// Hands on each line that matches, and for which the conditions hold.
fn matching(
    pattern: &Pattern,
    options: &Options,
    block: &[u8],
    mut each: impl FnMut(Range<usize>) -> bool,
) {
    let end = pattern.end();
    let has_conditions = !options.conditions.is_empty();
    let mut each = |line: Range<usize>| {
        has_conditions && !options.hold_for(&block[line.clone()]) || each(line)
    };
    if !pattern.is_in_lines() {
        each_line(end, block, 0..block.len(), |line| {
            !pattern.is_match(&block[line.clone()]) || each(line)
        });
        return;
    }
    let mut at = 0;
    while at < block.len() {
        let (offset, sure) = match pattern.candidate(&block[at..]) {
            None => return,
            Some(Candidate::Sure(offset)) => (at + offset, true),
            Some(Candidate::Maybe(offset)) => (at + offset, false),
        };
        if offset == block.len() && block.ends_with(&[end]) {
            return; // behind the last line is none
        }
        let line = around(end, block, at, offset);
        at = line.end;
        if (sure || pattern.is_match(&block[line.clone()])) && !each(line) {
            return;
        }
    }
}

/// The line around an offset, which does not begin before `from`.
fn around(end: u8, block: &[u8], from: usize, offset: usize) -> Range<usize> {
    let start = memrchr(end, &block[from..offset]).map_or(from, |at| from + at + 1);
    start..line_end(end, block, offset)
}

/// Where the line around an offset ends, behind the byte that ends it.
pub fn line_end(end: u8, block: &[u8], offset: usize) -> usize {
    memchr(end, &block[offset..]).map_or(block.len(), |at| offset + at + 1)
}

/// Hands on each line of a range that begins and ends with a line; whether it was all.
fn each_line(
    end: u8,
    block: &[u8],
    range: Range<usize>,
    mut each: impl FnMut(Range<usize>) -> bool,
) -> bool {
    let mut at = range.start;
    while at < range.end {
        let to = line_end(end, block, at);
        if !each(at..to) {
            return false;
        }
        at = to;
    }
    true
}

/// How many bytes there are that end lines.
pub fn line_feeds(end: u8, bytes: &[u8]) -> u64 {
    memchr_iter(end, bytes).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Condition;
    use crate::pattern::PatternOptions;

    /// Also of a pattern that is looked for in the whole block, and of one for which each line is asked.
    #[test]
    fn conditions_hold_for_each_line_by_itself() {
        let lines: [&[u8]; 8] = [b"a", b"", b"ab", b"abc", b"b\r", b"\xffab", b"bca", b"a\r"];
        let block = lines.map(|line| [line, b"\n"].concat()).concat();
        for (crlf, invert) in [(false, false), (false, true), (true, false), (true, true)] {
            let patterns = PatternOptions {
                crlf,
                ..PatternOptions::default()
            };
            let compiled = |text: &str| Pattern::new(&[text], patterns).unwrap();
            let condition = |(text, must_match)| Condition {
                pattern: compiled(text),
                must_match,
            };
            let options = Options {
                conditions: [("b", true), ("c$", false)].map(condition).into(),
                invert,
                ..Options::default()
            };
            let mut found = Vec::new();
            selected(&compiled("a"), &options, &block, |line| {
                found.push(&block[line.start..line.end - 1]);
                true
            });
            let wanted = |line: &&&[u8]| {
                let matches = line.contains(&b'a') && line.contains(&b'b');
                (matches && !line.ends_with(b"c")) != invert
            };
            let wanted: Vec<&[u8]> = lines.iter().filter(wanted).copied().collect();
            assert_eq!(found, wanted, "{crlf} {invert}");
        }
    }

    /// With `crlf` no pattern sees the carriage return at the end of a line.
    #[test]
    fn a_carriage_return_is_no_part_of_a_line() {
        let block = b"a\r\nab\r\n\r\nba\n a\rc\r\na";
        let cases: [(&str, &[&[u8]]); 9] = [
            (r"\r", &[b" a\rc\r\n"]),
            (r"a\s", &[b" a\rc\r\n"]),
            ("a[^b]", &[b" a\rc\r\n"]),
            ("a$", &[b"a\r\n", b"ba\n", b"a"]),
            ("^$", &[b"\r\n"]),
            ("^.?$", &[b"a\r\n", b"\r\n", b"a"]),
            ("a.c$", &[b" a\rc\r\n"]),
            ("b$", &[b"ab\r\n"]),
            ("b", &[b"ab\r\n", b"ba\n"]),
        ];
        for (text, wanted) in cases {
            let options = PatternOptions {
                crlf: true,
                ..PatternOptions::default()
            };
            let pattern = Pattern::new(&[text], options).unwrap();
            let mut found = Vec::new();
            selected(&pattern, &Options::default(), block, |line| {
                found.push(&block[line]);
                true
            });
            assert_eq!(found, wanted, "{text}");
        }
    }
}

//! What a worker finds in a block: the lines or the matches to write, or how many there are.

use std::convert::Infallible;
use std::ops::Range;

use memchr::{memchr, memrchr};

use crate::lines::{line_feeds, selected};
use crate::options::{Options, Show};
use crate::pattern::Pattern;
use crate::utf16::suspected;

/// A file whose first bytes, so many, have a NUL is binary: GNU grep's first buffer.
const BINARY_BYTES: usize = 96 << 10;

/// Of longer lines the places of matches are not kept.
const LONG_LINE_BYTES: usize = 1 << 20;

/// What was found in a block.
#[derive(Debug, Default)]
pub struct BlockMatches {
    /// What to write, in order.
    pub spans: Vec<MatchSpan>,
    /// How many lines are selected; where one is enough, whether there is one.
    pub lines: u64,
    /// Whether the first bytes of the file say that it is binary.
    pub binary: bool,
    /// What the first bytes of the file look like, where they are not UTF-8: a name for `iconv`.
    pub suspected: Option<&'static str>,
    /// Whether a selected line behind the spans has a NUL; where binary files are passed over, any line.
    pub nul: bool,
    /// Where the first line with a NUL begins, where it ends the search of the file.
    pub cut: Option<usize>,
    /// Ends of lines in the block, where they are counted.
    pub line_feeds: u64,
}

/// A line or a match in a block; or several lines, where nothing is between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchSpan {
    /// Its bytes.
    pub range: Range<usize>,
    /// Ends of lines before it, where they are counted.
    pub line_feeds: u64,
    /// It is a long line, and the matches in it are found again when they are written: their places would take many times its
    /// memory.
    pub has_matches: bool,
}

/// Searches a block; `first` is that of its file.
pub fn find(pattern: &Pattern, options: &Options, block: &[u8], first: bool) -> BlockMatches {
    let mut found = BlockMatches {
        binary: first && !options.text && has_nul(&block[..block.len().min(BINARY_BYTES)]),
        ..BlockMatches::default()
    };
    if found.binary && options.skip_binary {
        return found;
    }
    if first && pattern.end() != 0 {
        found.suspected = suspected(block);
    }
    let block = if options.skip_binary && !options.text {
        before_nul(pattern.end(), block, &mut found)
    } else {
        block
    };
    match options.show {
        Show::Count => selected(pattern, options, block, |_| {
            found.lines += 1;
            true
        }),
        Show::Lines | Show::Matches if !found.binary => {
            collect(pattern, options, block, &mut found);
        }
        _ => selected(pattern, options, block, |_| {
            found.lines = 1;
            false
        }),
    }
    found
}

/// The lines before the first that has a NUL.
fn before_nul<'b>(end: u8, block: &'b [u8], found: &mut BlockMatches) -> &'b [u8] {
    let Some(at) = memchr(0, block) else {
        return block;
    };
    let start = memrchr(end, &block[..at]).map_or(0, |at| at + 1);
    (found.nul, found.cut) = (true, Some(start));
    &block[..start]
}

fn has_nul(bytes: &[u8]) -> bool {
    memchr(0, bytes).is_some()
}

/// The lines or the matches of a block, up to the first line that makes the file binary.
fn collect(pattern: &Pattern, options: &Options, block: &[u8], found: &mut BlockMatches) {
    let (counts, joins) = (options.counts_lines(), options.joins_lines());
    let most = options.max.unwrap_or(u64::MAX);
    let (mut counted, mut line_feeds_before) = (0, 0);
    selected(pattern, options, block, |line| {
        if !options.text && has_nul(&block[line.clone()]) {
            found.nul = true;
            return false;
        }
        found.lines += 1;
        if counts {
            line_feeds_before += line_feeds(pattern.end(), &block[counted..line.start]);
            counted = line.start;
        }
        let is_long = line.len() > LONG_LINE_BYTES;
        let has_matches = is_long && !options.finds_lines();
        let mut push = |range: Range<usize>| match found.spans.last_mut() {
            Some(last) if joins && last.range.end == range.start => last.range.end = range.end,
            _ => found.spans.push(MatchSpan {
                range,
                line_feeds: line_feeds_before,
                has_matches,
            }),
        };
        if options.finds_lines() || (is_long && !options.invert) {
            push(line);
        } else if !options.invert {
            let start = line.start;
            let _ = pattern.try_matches(&block[line], |inner| {
                push(start + inner.start..start + inner.end);
                Ok::<_, Infallible>(())
            });
        }
        found.lines < most
    });
    if counts {
        found.line_feeds = line_feeds_before + line_feeds(pattern.end(), &block[counted..]);
    }
}

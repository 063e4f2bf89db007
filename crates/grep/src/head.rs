//! A line with what stands before it: names, numbers, offsets, colours; or the frame of one for programs (`print.rs`).

use crate::find::MatchSpan;
use crate::options::Style;
use crate::out::{OutputBuffer, colour};
use crate::pattern::Pattern;
use crate::trouble::{MemoryUse, TooLarge};
use std::io::{self, Write};
use std::iter;
use std::ops::Range;
use std::sync::Arc;

/// Bytes that the place of a match takes on its way to a program: two numbers here, two objects there.
const MATCH_BYTES: usize = 64;

/// What lies before a block in its file.
#[derive(Debug, Clone, Copy, Default)]
pub struct BlockPosition {
    pub bytes: u64,
    pub line_feeds: u64,
}

/// A line with what stands before it, as it is written.
pub struct Head {
    pub name: Option<Vec<u8>>,
    pub numbers: bool,
    pub offsets: bool,
    pub place: BlockPosition,
    pub style: Style,
    /// Finds the matches in lines where they are told.
    pub marker: Option<Arc<Pattern>>,
    /// Find what is coloured in lines besides.
    pub also_coloured: Arc<[Pattern]>,
    /// Matches are told in lines around selected ones, and not in these.
    pub inverted: bool,
    /// Of a line only the matches are written.
    pub only_matches: bool,
    /// What is found is a match, not a line.
    pub is_match: bool,
    pub line_bytes_max: usize,
}

impl Head {
    /// Where a place in the block is in its file.
    pub fn offset(&self, at: usize) -> u64 {
        self.place.bytes + at as u64
    }

    /// Writes what was found: a line, a match, or the matches in a long line.
    pub fn span<W: Write>(
        &self,
        out: &mut OutputBuffer<W>,
        block: &[u8],
        span: &MatchSpan,
    ) -> io::Result<()> {
        let (line_feeds, start) = (span.line_feeds as i64, span.range.start);
        let found = &block[span.range.clone()];
        match &self.marker {
            Some(pattern) if span.has_matches => pattern.try_matches(found, |range| {
                let place = (line_feeds, (start + range.start) as i64);
                self.line(out, b':', place, &found[range])
            }),
            _ => self.line(out, b':', (line_feeds, start as i64), found),
        }
    }

    /// Writes a line; `mark` is `:`, or `-` of a line that is not selected. Ends of lines and bytes before the line are
    /// counted from the beginning of the block: of lines of the blocks before they are negative.
    pub fn line<W: Write>(
        &self,
        out: &mut OutputBuffer<W>,
        mark: u8,
        (line_feeds, bytes): (i64, i64),
        line: &[u8],
    ) -> io::Result<()> {
        let number = self.place.line_feeds.wrapping_add_signed(line_feeds + 1);
        let offset = self.place.bytes.wrapping_add_signed(bytes);
        if self.style.framed {
            return self.frame(out, mark, (number, offset), line);
        }
        if !self.only_matches {
            return self.written(out, mark, (number, offset), line);
        }
        self.each_match(mark, line, |range| {
            let offset = offset + range.start as u64;
            self.written(out, mark, (number, offset), &line[range])
        })
    }

    /// Writes a line, or a match, with what stands before it.
    fn written<W: Write>(
        &self,
        out: &mut OutputBuffer<W>,
        mark: u8,
        (number, offset): (u64, u64),
        line: &[u8],
    ) -> io::Result<()> {
        if let Some(name) = &self.name {
            out.coloured(colour::NAME, name);
            if self.style.null_names {
                out.buffer.push(0);
            } else {
                out.coloured(colour::MARK, &[mark]);
            }
        }
        for (shown, number) in [(self.numbers, number), (self.offsets, offset)] {
            if shown {
                out.coloured_number(number);
                out.coloured(colour::MARK, &[mark]);
            }
        }
        if out.colour {
            self.coloured(out, mark, line)
        } else {
            out.line(line)
        }
    }

    /// Writes what stands between groups of lines.
    pub fn separate<W: Write>(&self, out: &mut OutputBuffer<W>) -> io::Result<()> {
        match &self.style.separator {
            Some(line) if !self.style.framed => out.separator(line),
            _ => Ok(()),
        }
    }

    /// Writes a line whose matches are coloured.
    fn coloured<W: Write>(
        &self,
        out: &mut OutputBuffer<W>,
        mark: u8,
        line: &[u8],
    ) -> io::Result<()> {
        if self.is_match {
            out.coloured_bytes(colour::MATCH, line)?;
            return out.line(b"");
        }
        let mut at = 0;
        self.each_coloured(mark, line, |range| {
            out.bytes(&line[at..range.start])?;
            at = range.end;
            out.coloured_bytes(colour::MATCH, &line[range])
        })?;
        out.line(&line[at..])
    }

    /// Hands on what is coloured in a line. What overlaps, which matches of several patterns may, is one.
    fn each_coloured(
        &self,
        mark: u8,
        line: &[u8],
        mut each: impl FnMut(Range<usize>) -> io::Result<()>,
    ) -> io::Result<()> {
        let marker = match &self.marker {
            Some(marker) if !self.also_coloured.is_empty() && self.tells_matches(mark) => marker,
            _ => return self.each_match(mark, line, each),
        };
        let patterns = iter::once(&**marker).chain(&*self.also_coloured);
        let mut next: Vec<_> = patterns
            .filter_map(|pattern| Some((pattern.match_from(line, 0)?, pattern)))
            .collect();
        while let Some(first) = next.iter().map(|(range, _)| range.start).min() {
            let mut end = first + 1;
            while let Some(at) = next.iter().position(|(range, _)| range.start < end) {
                let (range, pattern) = next.swap_remove(at);
                end = end.max(range.end);
                next.extend(
                    pattern
                        .match_from(line, range.end)
                        .map(|found| (found, pattern)),
                );
            }
            each(first..end)?;
        }
        Ok(())
    }

    /// Whether the matches in a line are told.
    fn tells_matches(&self, mark: u8) -> bool {
        (mark == b':') != self.inverted
    }

    /// Hands on the matches in a line, where it can have some.
    fn each_match(
        &self,
        mark: u8,
        line: &[u8],
        each: impl FnMut(Range<usize>) -> io::Result<()>,
    ) -> io::Result<()> {
        match &self.marker {
            Some(pattern) if self.tells_matches(mark) => pattern.try_matches(line, each),
            _ => Ok(()),
        }
    }

    /// Writes a line as programs read it.
    fn frame<W: Write>(
        &self,
        out: &mut OutputBuffer<W>,
        mark: u8,
        (number, offset): (u64, u64),
        line: &[u8],
    ) -> io::Result<()> {
        let too_large = |what| TooLarge {
            what,
            offset,
            bytes_max: self.line_bytes_max as u64,
        };
        if line.len() > self.line_bytes_max + 1 {
            return Err(too_large(MemoryUse::Line).into());
        }
        let mut matches = Vec::new();
        self.each_match(mark, line, |range| {
            if matches.len() == self.line_bytes_max / MATCH_BYTES {
                return Err(too_large(MemoryUse::Matches).into());
            }
            matches.push((range.start, range.end));
            Ok(())
        })?;
        out.buffer.push(mark);
        for number in [number, offset, matches.len() as u64] {
            out.number(number);
        }
        for (from, to) in matches {
            out.number(from as u64);
            out.number(to as u64);
        }
        out.framed(line.strip_suffix(&[out.end]).unwrap_or(line));
        out.flush_full()
    }
}

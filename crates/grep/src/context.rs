//! Lines before and after selected ones, across the borders of blocks.
//!
//! ```text
//!   ... | tail: the last lines of the blocks before, not written | block ...
//!                                     at: all before it is written, or passed over
//! ```
//!
//! Between groups of lines that do not touch stands a line `--`, as in GNU grep. A block costs its own bytes, and not those
//! of the tail: a slow stream gives blocks of one line.

use std::io::{self, Write};

use memchr::memrchr;

use crate::find::BlockMatches;
use crate::head::Head;
use crate::lines::line_end;
use crate::out::OutputBuffer;
use crate::trouble::{MemoryUse, TooLarge};

#[derive(Debug)]
pub struct LineContext {
    before: usize,
    after: usize,
    /// The byte that ends lines.
    end: u8,
    /// The most bytes of the tail.
    bytes_max: usize,
    tail: PrecedingLines,
    /// Lines still to be written behind the last selected one.
    after_left: usize,
    /// Lines were passed over since the last that was written.
    skipped: bool,
    /// A line was written, of any file.
    written: bool,
}

impl LineContext {
    pub fn new((before, after): (usize, usize), end: u8, bytes_max: usize) -> Self {
        LineContext {
            before,
            after,
            end,
            bytes_max,
            tail: PrecedingLines::default(),
            after_left: 0,
            skipped: false,
            written: false,
        }
    }

    /// Begins a file.
    pub fn begin(&mut self) {
        self.tail.clear();
        self.after_left = 0;
        self.skipped = true;
    }

    /// Writes a block's lines, `left` selected ones at most; whether nothing more of the file is wanted.
    pub fn block<W: Write>(
        &mut self,
        out: &mut OutputBuffer<W>,
        head: &Head,
        left: u64,
        block: &[u8],
        found: &BlockMatches,
    ) -> io::Result<bool> {
        let mut at = 0;
        let mut line_feeds = 0; // before `at`
        for span in found
            .spans
            .iter()
            .take(usize::try_from(left).unwrap_or(usize::MAX))
        {
            self.write_after(
                out,
                head,
                block,
                &mut (&mut at, &mut line_feeds),
                span.range.start,
            )?;
            self.write_before(out, head, block, at, (span.range.start, span.line_feeds))?;
            let place = (span.line_feeds as i64, span.range.start as i64);
            head.line(out, b':', place, &block[span.range.clone()])?;
            (at, line_feeds) = (span.range.end, span.line_feeds + 1);
            self.after_left = self.after;
            (self.skipped, self.written) = (false, true);
            self.tail.clear();
        }
        if found.nul && found.cut.is_none() {
            return Ok(false);
        }
        let end = found.cut.unwrap_or(block.len());
        self.write_after(out, head, block, &mut (&mut at, &mut line_feeds), end)?;
        if found.cut.is_some() {
            return Ok(false);
        }
        self.keep(&block[at..], head.offset(at))?;
        let is_last = left <= found.spans.len() as u64;
        Ok(is_last && self.after_left == 0)
    }

    /// Writes lines behind the last selected one, from `at` to `end`.
    fn write_after<W: Write>(
        &mut self,
        out: &mut OutputBuffer<W>,
        head: &Head,
        block: &[u8],
        (at, line_feeds): &mut (&mut usize, &mut u64),
        end: usize,
    ) -> io::Result<()> {
        while self.after_left > 0 && **at < end {
            let line = **at..line_end(self.end, block, **at);
            let place = (**line_feeds as i64, line.start as i64);
            **at = line.end;
            **line_feeds += 1;
            self.after_left -= 1;
            head.line(out, b'-', place, &block[line])?;
        }
        Ok(())
    }

    /// Writes lines before the selected one that begins at `start`, behind `line_feeds`: of the tail and of the block from `at` on.
    fn write_before<W: Write>(
        &mut self,
        out: &mut OutputBuffer<W>,
        head: &Head,
        block: &[u8],
        at: usize,
        (start, line_feeds): (usize, u64),
    ) -> io::Result<()> {
        let here = last_lines(self.end, &block[..start], at, self.before);
        let wanted = self.before - here.count;
        let tail = self.tail.bytes();
        let there = match at {
            0 if here.start == 0 => last_lines(self.end, tail, 0, wanted),
            _ => Last {
                start: tail.len(),
                count: 0,
            },
        };
        self.skipped |= here.start > at || (at == 0 && there.start > 0);
        if self.skipped && self.written {
            head.separate(out)?;
        }
        let mut number = line_feeds as i64 - (here.count + there.count) as i64;
        let before_block = tail.len() as i64;
        for (bytes, range, before) in [
            (tail, there.start..tail.len(), before_block),
            (block, here.start..start, 0),
        ] {
            let mut from = range.start;
            while from < range.end {
                let line = from..line_end(self.end, bytes, from);
                let place = (number, from as i64 - before);
                from = line.end;
                number += 1;
                head.line(out, b'-', place, &bytes[line])?;
            }
        }
        Ok(())
    }

    /// Keeps the last lines of what was passed over, which begins at `offset` of the file.
    fn keep(&mut self, rest: &[u8], offset: u64) -> io::Result<()> {
        let last = last_lines(self.end, rest, 0, self.before);
        if last.start > 0 {
            self.tail.clear();
            self.skipped = true;
        }
        self.skipped |= self.tail.shorten(self.end, self.before - last.count);
        let offset = offset + last.start as u64;
        let (what, bytes_max) = (MemoryUse::Before, self.bytes_max as u64);
        let bytes = self.tail.bytes().len() + rest.len() - last.start;
        if bytes > self.bytes_max {
            return Err(TooLarge {
                what,
                offset,
                bytes_max,
            }
            .into());
        }
        self.tail.push(&rest[last.start..], last.count);
        Ok(())
    }
}

/// The last lines before the block that are not written: as many as may be wanted.
#[derive(Debug, Default)]
struct PrecedingLines {
    kept: Vec<u8>,
    /// Where the lines begin in what is kept.
    start: usize,
    lines: usize,
}

impl PrecedingLines {
    fn bytes(&self) -> &[u8] {
        &self.kept[self.start..]
    }

    fn clear(&mut self) {
        self.kept.clear();
        (self.start, self.lines) = (0, 0);
    }

    fn push(&mut self, lines: &[u8], count: usize) {
        self.kept.extend_from_slice(lines);
        self.lines += count;
    }

    /// Leaves `most` lines; whether there were more. What is left is moved when it is the smaller half: each byte once.
    fn shorten(&mut self, end: u8, most: usize) -> bool {
        let is_long = self.lines > most;
        while self.lines > most {
            self.start = line_end(end, &self.kept, self.start);
            self.lines -= 1;
        }
        if self.start > self.kept.len() / 2 {
            self.kept.drain(..self.start);
            self.start = 0;
        }
        is_long
    }
}

/// Where the last lines begin, and how many they are.
struct Last {
    start: usize,
    count: usize,
}

/// The last lines of `bytes`, `most` at most, that begin at `from` or behind it. `bytes` end with a line.
fn last_lines(end: u8, bytes: &[u8], from: usize, most: usize) -> Last {
    let mut last = Last {
        start: bytes.len(),
        count: 0,
    };
    while last.count < most && last.start > from {
        let inner = &bytes[from..last.start - 1];
        last.start = memrchr(end, inner).map_or(from, |at| from + at + 1);
        last.count += 1;
    }
    last
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn kept(context: &LineContext) -> Vec<u8> {
        context.tail.bytes().to_vec()
    }

    #[test]
    fn the_tail_is_the_last_lines_of_what_was_passed_over() {
        for before in 0..5 {
            let mut context = LineContext::new((before, 0), b'\n', 1 << 20);
            let mut lines: Vec<Vec<u8>> = Vec::new();
            for number in 0..200 {
                let count = number % 4;
                let block: Vec<Vec<u8>> = (0..count)
                    .map(|at| format!("{}\n", "x".repeat(number * 7 % 5 + at)).into_bytes())
                    .collect();
                context.keep(&block.concat(), 0).unwrap();
                lines.extend(block);
                let wanted = lines[lines.len().saturating_sub(before)..].concat();
                assert_eq!(kept(&context), wanted, "{before} of {number}");
                assert_eq!(context.skipped, lines.len() > before);
            }
        }
    }

    /// With a tail of half a million lines, 400,000 blocks of a line each would be 10^11 lines to look at.
    #[test]
    fn a_block_of_a_slow_stream_costs_its_own_bytes() {
        let begun = Instant::now();
        let mut context = LineContext::new((200_000, 0), b'\n', 1 << 20 << 10);
        for _ in 0..400_000 {
            context.keep(b"a line\n", 0).unwrap();
            assert!(begun.elapsed() < Duration::from_secs(20), "quadratic");
        }
        assert_eq!(kept(&context).len(), 200_000 * 7);
    }
}

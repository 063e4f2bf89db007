//! Lines before and after selected ones, across the borders of blocks.
//!
//! ```text
//!   ... | tail: the last lines of the blocks before, not written | block ...
//!                                     at: all before it is written, or passed over
//! ```
//!
//! Between groups of lines that do not touch stands a line `--`, as in GNU grep.

use std::io::{self, Write};

use memchr::memrchr;

use crate::find::Found;
use crate::lines::line_end;
use crate::print::{Head, Out};

#[derive(Debug)]
pub struct Context {
    before: usize,
    after: usize,
    /// The last lines before the block that are not written: as many as may be wanted.
    tail: Vec<u8>,
    /// Lines still to be written behind the last selected one.
    after_left: usize,
    /// Lines were passed over since the last that was written.
    skipped: bool,
    /// A line was written, of any file.
    written: bool,
}

impl Context {
    pub fn new((before, after): (usize, usize)) -> Self {
        Context {
            before,
            after,
            tail: Vec::new(),
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
        out: &mut Out<W>,
        head: &Head,
        left: u64,
        block: &[u8],
        found: &Found,
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
            head.write(out, b':', span.line_feeds as i64, span.range.start as i64);
            out.line(&block[span.range.clone()])?;
            (at, line_feeds) = (span.range.end, span.line_feeds + 1);
            self.after_left = self.after;
            (self.skipped, self.written) = (false, true);
            self.tail.clear();
        }
        if found.nul {
            return Ok(false);
        }
        self.write_after(
            out,
            head,
            block,
            &mut (&mut at, &mut line_feeds),
            block.len(),
        )?;
        self.keep(&block[at..]);
        let is_last = left <= found.spans.len() as u64;
        Ok(is_last && self.after_left == 0)
    }

    /// Writes lines behind the last selected one, from `at` to `end`.
    fn write_after<W: Write>(
        &mut self,
        out: &mut Out<W>,
        head: &Head,
        block: &[u8],
        (at, line_feeds): &mut (&mut usize, &mut u64),
        end: usize,
    ) -> io::Result<()> {
        while self.after_left > 0 && **at < end {
            let line = **at..line_end(block, **at);
            head.write(out, b'-', **line_feeds as i64, line.start as i64);
            **at = line.end;
            **line_feeds += 1;
            self.after_left -= 1;
            out.line(&block[line])?;
        }
        Ok(())
    }

    /// Writes lines before the selected one that begins at `start`, behind `line_feeds`: of the tail and of the block from `at` on.
    fn write_before<W: Write>(
        &mut self,
        out: &mut Out<W>,
        head: &Head,
        block: &[u8],
        at: usize,
        (start, line_feeds): (usize, u64),
    ) -> io::Result<()> {
        let here = last_lines(&block[..start], at, self.before);
        let wanted = self.before - here.count;
        let there = match at {
            0 if here.start == 0 => last_lines(&self.tail, 0, wanted),
            _ => Last {
                start: self.tail.len(),
                count: 0,
            },
        };
        self.skipped |= here.start > at || (at == 0 && there.start > 0);
        if self.skipped && self.written {
            out.line(b"--")?;
        }
        let mut number = line_feeds as i64 - (here.count + there.count) as i64;
        let before_block = self.tail.len() as i64;
        for (bytes, range, before) in [
            (&self.tail[..], there.start..self.tail.len(), before_block),
            (block, here.start..start, 0),
        ] {
            let mut from = range.start;
            while from < range.end {
                let line = from..line_end(bytes, from);
                head.write(out, b'-', number, from as i64 - before);
                from = line.end;
                number += 1;
                out.line(&bytes[line])?;
            }
        }
        Ok(())
    }

    /// Keeps the last lines of what was passed over.
    fn keep(&mut self, rest: &[u8]) {
        let last = last_lines(rest, 0, self.before);
        if last.start > 0 {
            self.tail.clear();
            self.skipped = true;
        }
        self.tail.extend_from_slice(&rest[last.start..]);
        let last = last_lines(&self.tail, 0, self.before);
        if last.start > 0 {
            self.tail.drain(..last.start);
            self.skipped = true;
        }
    }
}

/// Where the last lines begin, and how many they are.
struct Last {
    start: usize,
    count: usize,
}

/// The last lines of `bytes`, `most` at most, that begin at `from` or behind it. `bytes` end with a line.
fn last_lines(bytes: &[u8], from: usize, most: usize) -> Last {
    let mut last = Last {
        start: bytes.len(),
        count: 0,
    };
    while last.count < most && last.start > from {
        let inner = &bytes[from..last.start - 1];
        last.start = memrchr(b'\n', inner).map_or(from, |at| from + at + 1);
        last.count += 1;
    }
    last
}

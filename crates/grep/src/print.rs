//! What is written of the blocks, in their order: lines or matches with what stands before them, counts, names.
//!
//! For people it is text as of GNU grep, with its colours. For programs it is framed, each number in eight bytes, the
//! lowest first; behind a length stand so many bytes:
//!
//! ```text
//!   F length name                                           a file begins
//!   : or - number offset matches (from to)... length line   a line of it: selected, or around one; without its end
//!   E lines                                                 it ended, and so many lines were selected
//! ```

use std::io::{self, Write};
use std::mem;
use std::ops::Range;
use std::sync::Arc;

use crate::context::Context;
use crate::find::{Found, Span};
use crate::options::{Options, Show, Style};
use crate::out::{Out, colour};
use crate::pattern::Pattern;
use crate::trouble::{Held, TooLarge, Trouble};

/// Bytes that the place of a match takes on its way to a program: two numbers here, two objects there.
const MATCH_BYTES: usize = 64;

/// What is said of a file, beside its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// It cannot be read: its name, and why.
    Trouble(Vec<u8>, Trouble),
    /// It is binary, and has a selected line.
    Binary(Vec<u8>),
    /// It looks like text in this encoding, and was searched as it is.
    Suspected(Vec<u8>, &'static str),
}

/// What a search came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    /// Files that were searched.
    pub files: u64,
    /// Bytes that were searched.
    pub bytes: u64,
    /// Lines that were selected; where one of a file is enough, the files that have one.
    pub lines: u64,
    /// Files that could not be read.
    pub troubles: u64,
}

/// What is written, and where it stands in its file.
pub struct Printer<W, N> {
    out: Out<W>,
    options: Options,
    /// As in [`Run`](crate::Run).
    line_bytes_max: usize,
    note: N,
    context: Option<Context>,
    /// Finds matches in lines that are written with them.
    marker: Option<Arc<Pattern>>,
    /// The file's name.
    name: Vec<u8>,
    place: Place,
    /// Lines of the file that were selected.
    lines: u64,
    binary: bool,
    /// It could not be read to its end.
    failed: bool,
    /// Nothing more of the file is wanted.
    done: bool,
    pub summary: Summary,
}

/// What lies before a block in its file.
#[derive(Debug, Clone, Copy, Default)]
pub struct Place {
    pub bytes: u64,
    pub line_feeds: u64,
}

/// What follows a block that was written.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// The next block.
    Block,
    /// The next file.
    File,
    /// Nothing.
    End,
}

impl<W: Write, N: FnMut(Note)> Printer<W, N> {
    pub fn new(
        out: W,
        pattern: &Pattern,
        options: Options,
        line_bytes_max: usize,
        note: N,
    ) -> Self {
        let context = options.context.filter(|_| options.finds_lines());
        let told = options.show == Show::Matches || options.style.colour || options.style.framed;
        Printer {
            out: Out::new(out, pattern.end(), options.style.colour),
            context: context.map(|lines| Context::new(lines, pattern.end(), line_bytes_max)),
            marker: told.then(|| Arc::new(pattern.clone())),
            options,
            line_bytes_max,
            note,
            name: Vec::new(),
            place: Place::default(),
            lines: 0,
            binary: false,
            failed: false,
            done: false,
            summary: Summary::default(),
        }
    }

    /// Begins a file.
    pub fn begin(&mut self, name: Vec<u8>) {
        self.name = name;
        self.place = Place::default();
        self.lines = 0;
        self.binary = false;
        self.failed = false;
        self.done = self.options.max == Some(0);
        if let Some(context) = &mut self.context {
            context.begin();
        }
        if self.options.style.framed {
            self.out.buffer.push(b'F');
            self.out.framed(&self.name);
        }
    }

    /// Says that the file cannot be read on.
    pub fn fail(&mut self, trouble: Trouble) -> io::Result<()> {
        let is_enough = self.done && self.options.max != Some(0); // of no lines none is enough
        if mem::replace(&mut self.failed, true) || is_enough {
            return Ok(());
        }
        self.summary.troubles += 1;
        self.out.flush()?; // what was found before stands before it
        (self.note)(Note::Trouble(self.name.clone(), trouble));
        Ok(())
    }

    /// As [`Self::fail`], with the file's name before what is wrong.
    pub fn fail_as(&mut self, what: &str) -> io::Result<()> {
        let name = String::from_utf8_lossy(&self.name).into_owned();
        self.fail(Trouble::Unread(None, format!("{name}: {what}")))
    }

    /// Writes what was found in the next block of the file.
    pub fn block(&mut self, block: &[u8], found: &Found) -> io::Result<Next> {
        self.summary.bytes += block.len() as u64;
        self.binary |= found.binary;
        if let Some(encoding) = found.suspected {
            self.out.flush()?;
            (self.note)(Note::Suspected(self.name.clone(), encoding));
        }
        if !self.done {
            self.found(block, found)?;
        }
        self.place.bytes += block.len() as u64;
        self.place.line_feeds += found.line_feeds;
        Ok(match () {
            () if self.done && self.lines > 0 && self.options.show == Show::Quiet => Next::End,
            () if self.done => Next::File,
            () => Next::Block,
        })
    }

    fn found(&mut self, block: &[u8], found: &Found) -> io::Result<()> {
        let writes = matches!(self.options.show, Show::Lines | Show::Matches);
        if self.binary && self.options.skip_binary {
            self.done = true;
            return Ok(());
        }
        if !writes || self.binary {
            self.lines += found.lines;
            let is_binary = writes && (found.lines > 0 || found.nul);
            self.done = self.lines > 0 && self.options.wants_one();
            if self.options.skip_binary {
                self.done |= self.options.max.is_some_and(|max| self.lines >= max);
                if found.nul && !self.done {
                    self.pass_over();
                }
                return Ok(());
            }
            if is_binary {
                self.is_binary()?;
            }
            return Ok(());
        }
        if let Some(mut context) = self.context.take() {
            let max = self.options.max.unwrap_or(u64::MAX);
            let head = Head::of(self);
            let done = context.block(&mut self.out, &head, max - self.lines, block, found);
            self.context = Some(context);
            self.done = done?;
            self.lines = self.lines.saturating_add(found.lines).min(max);
        } else {
            self.spans(block, found)?;
        }
        let is_enough = self.options.max.is_some_and(|max| self.lines >= max);
        match () {
            () if !found.nul || self.done => {}
            () if is_enough => self.done = true,
            () => self.is_binary()?,
        }
        Ok(())
    }

    /// Writes lines, or matches, up to the last that is wanted.
    fn spans(&mut self, block: &[u8], found: &Found) -> io::Result<()> {
        let max = self.options.max.unwrap_or(u64::MAX);
        let (mut left, mut line) = (max - self.lines, None);
        let head = Head::of(self);
        for span in &found.spans {
            if line.is_none_or(|line| line != span.line_feeds) {
                if left == 0 {
                    break;
                }
                left -= 1;
                line = self.options.counts_lines().then_some(span.line_feeds);
            }
            head.span(&mut self.out, block, span)?;
        }
        self.lines = self.lines.saturating_add(found.lines).min(max);
        self.done = self.lines == max;
        Ok(())
    }

    fn is_binary(&mut self) -> io::Result<()> {
        if self.options.skip_binary {
            self.pass_over();
            return Ok(());
        }
        self.done = true;
        self.lines = self.lines.max(1);
        self.out.flush()?;
        (self.note)(Note::Binary(self.name.clone()));
        Ok(())
    }

    /// Passes the file over from here on: as in GNU grep it then counts as one without a selected line.
    fn pass_over(&mut self) {
        self.done = true;
        self.lines = 0;
    }

    /// Ends the file.
    pub fn end(&mut self) -> io::Result<()> {
        self.summary.files += 1;
        let lines = self.lines.min(self.options.max.unwrap_or(u64::MAX));
        self.summary.lines += lines;
        match self.options.show {
            _ if self.failed => {}
            _ if self.options.style.framed => {
                self.out.buffer.push(b'E');
                self.out.number(lines);
            }
            Show::Count => {
                if self.options.names {
                    self.out.coloured(colour::NAME, &self.name);
                    self.behind_name(b':');
                }
                self.out.sentence(lines.to_string().as_bytes())?;
            }
            Show::Names if lines > 0 => self.named(),
            Show::NamesWithout if lines == 0 => self.named(),
            _ => {}
        }
        self.out.flush_full()
    }

    /// Writes the file's name as all that is said of it.
    fn named(&mut self) {
        self.out.coloured(colour::NAME, &self.name);
        let behind = if self.options.style.null_names {
            0
        } else {
            b'\n'
        };
        self.out.buffer.push(behind);
    }

    /// Writes what stands behind a name.
    fn behind_name(&mut self, mark: u8) {
        if self.options.style.null_names {
            self.out.buffer.push(0);
        } else {
            self.out.coloured(colour::MARK, &[mark]);
        }
    }

    /// Hands on all that was written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A line with what stands before it, as it is written.
pub struct Head {
    name: Option<Vec<u8>>,
    numbers: bool,
    offsets: bool,
    place: Place,
    style: Style,
    /// Finds the matches in lines where they are told.
    marker: Option<Arc<Pattern>>,
    /// What is selected has no match, and so what is around it may have some.
    inverted: bool,
    /// Of a line only the matches are written.
    only_matches: bool,
    /// What is found is a match, not a line.
    is_match: bool,
    line_bytes_max: usize,
}

impl Head {
    fn of<W, N>(printer: &Printer<W, N>) -> Self {
        let options = &printer.options;
        Head {
            name: options.names.then(|| printer.name.clone()),
            numbers: options.numbers,
            offsets: options.offsets,
            place: printer.place,
            style: options.style.clone(),
            marker: printer.marker.clone(),
            inverted: options.invert,
            only_matches: options.show == Show::Matches && options.finds_lines(),
            is_match: options.show == Show::Matches,
            line_bytes_max: printer.line_bytes_max,
        }
    }

    /// Where a place in the block is in its file.
    pub fn offset(&self, at: usize) -> u64 {
        self.place.bytes + at as u64
    }

    /// Writes what was found: a line, a match, or the matches in a long line.
    fn span<W: Write>(&self, out: &mut Out<W>, block: &[u8], span: &Span) -> io::Result<()> {
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
        out: &mut Out<W>,
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
        out: &mut Out<W>,
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
    pub fn separate<W: Write>(&self, out: &mut Out<W>) -> io::Result<()> {
        match &self.style.separator {
            Some(line) if !self.style.framed => out.separator(line),
            _ => Ok(()),
        }
    }

    /// Writes a line whose matches are coloured.
    fn coloured<W: Write>(&self, out: &mut Out<W>, mark: u8, line: &[u8]) -> io::Result<()> {
        if self.is_match {
            out.coloured_bytes(colour::MATCH, line)?;
            return out.line(b"");
        }
        let mut at = 0;
        self.each_match(mark, line, |range| {
            out.bytes(&line[at..range.start])?;
            at = range.end;
            out.coloured_bytes(colour::MATCH, &line[range])
        })?;
        out.line(&line[at..])
    }

    /// Hands on the matches in a line, where it can have some.
    fn each_match(
        &self,
        mark: u8,
        line: &[u8],
        each: impl FnMut(Range<usize>) -> io::Result<()>,
    ) -> io::Result<()> {
        match &self.marker {
            Some(pattern) if (mark == b':') != self.inverted => pattern.try_matches(line, each),
            _ => Ok(()),
        }
    }

    /// Writes a line as programs read it.
    fn frame<W: Write>(
        &self,
        out: &mut Out<W>,
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
            return Err(too_large(Held::Line).into());
        }
        let mut matches = Vec::new();
        self.each_match(mark, line, |range| {
            if matches.len() == self.line_bytes_max / MATCH_BYTES {
                return Err(too_large(Held::Matches).into());
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

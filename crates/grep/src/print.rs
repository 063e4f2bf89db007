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

use std::convert::Infallible;
use std::io::{self, Write};
use std::mem;
use std::sync::Arc;

use crate::blocks::Trouble;
use crate::context::Context;
use crate::find::Found;
use crate::pattern::Pattern;

/// What is written of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Show {
    /// Its selected lines.
    #[default]
    Lines,
    /// The matches in them.
    Matches,
    /// How many there are.
    Count,
    /// Its name, if there is one.
    Names,
    /// Its name, if there is none.
    NamesWithout,
    /// Nothing: the first line ends the search.
    Quiet,
}

/// What is selected, and how it is written.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// What is written.
    pub show: Show,
    /// The lines that do not match are selected.
    pub invert: bool,
    /// Numbers of lines stand before them.
    pub numbers: bool,
    /// The offset in its file stands before what is written.
    pub offsets: bool,
    /// Names of files stand before lines and counts.
    pub names: bool,
    /// How many lines before and after a selected one are written, too.
    pub context: Option<(usize, usize)>,
    /// How many lines of a file are selected at most.
    pub max: Option<u64>,
    /// Files with NUL bytes are text, too.
    pub text: bool,
    /// Of binary files no line is selected.
    pub skip_binary: bool,
    /// How it is written.
    pub style: Style,
}

/// How lines and names are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Style {
    /// Matches, names, numbers and what stands between are coloured, as by GNU grep.
    pub colour: bool,
    /// A NUL stands behind names, in place of a colon or a line feed.
    pub null_names: bool,
    /// The line between groups of lines that do not touch.
    pub separator: Option<Vec<u8>>,
    /// It is for programs.
    pub framed: bool,
}

impl Default for Style {
    fn default() -> Self {
        Style {
            colour: false,
            null_names: false,
            separator: Some(b"--".to_vec()),
            framed: false,
        }
    }
}

/// What GNU grep's colours are by default, as codes of a terminal.
mod colour {
    pub const MATCH: &[u8] = b"01;31";
    pub const NAME: &[u8] = b"35";
    pub const NUMBER: &[u8] = b"32";
    pub const MARK: &[u8] = b"36";
}

impl Options {
    /// Whether line feeds are counted.
    pub(crate) fn counts_lines(&self) -> bool {
        self.numbers || (self.max.is_some() && self.show == Show::Matches)
    }

    /// Whether lines are looked for, not the matches in them: those around a line are of lines.
    pub(crate) fn finds_lines(&self) -> bool {
        self.show == Show::Lines || (self.show == Show::Matches && self.context.is_some())
    }

    /// Whether lines that follow each other are written as one.
    pub(crate) fn joins_lines(&self) -> bool {
        let prefixed = self.numbers || self.offsets || self.names;
        let styled = self.style.colour || self.style.framed;
        let prefixed = prefixed || styled;
        self.show == Show::Lines && !prefixed && self.max.is_none() && self.context.is_none()
    }

    /// Whether the first selected line says all of a file.
    fn wants_one(&self) -> bool {
        matches!(self.show, Show::Names | Show::NamesWithout | Show::Quiet)
    }
}

/// What is said of a file, beside its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// It cannot be read: its name, and why.
    Trouble(Vec<u8>, Trouble),
    /// It is binary, and has a selected line.
    Binary(Vec<u8>),
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
    pub fn new(out: W, pattern: &Pattern, options: Options, note: N) -> Self {
        let context = options.context.filter(|_| options.finds_lines());
        let told = options.show == Show::Matches || options.style.colour || options.style.framed;
        let marks = options.finds_lines() && told;
        Printer {
            out: Out {
                sink: out,
                buffer: Vec::new(),
                end: pattern.end(),
                colour: options.style.colour,
            },
            context: context.map(|lines| Context::new(lines, pattern.end())),
            marker: marks.then(|| Arc::new(pattern.clone())),
            options,
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
        if mem::replace(&mut self.failed, true) || self.done {
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
        self.fail(Trouble {
            kind: None,
            message: format!("{name}: {what}"),
        })
    }

    /// Writes what was found in the next block of the file.
    pub fn block(&mut self, block: &[u8], found: &Found) -> io::Result<Next> {
        self.summary.bytes += block.len() as u64;
        self.binary |= found.binary;
        if !self.done {
            self.found(block, found)?;
        }
        self.place.bytes += block.len() as u64;
        self.place.line_feeds += found.line_feeds;
        Ok(match () {
            () if self.done && self.options.show == Show::Quiet => Next::End,
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
            if is_binary {
                self.is_binary()?;
            }
            return Ok(());
        }
        if let Some(mut context) = self.context.take() {
            let max = self.options.max.unwrap_or(u64::MAX);
            let head = Head::of(self);
            self.done = context.block(&mut self.out, &head, max - self.lines, block, found)?;
            self.context = Some(context);
            self.lines = self.lines.saturating_add(found.lines).min(max);
        } else {
            self.spans(block, found)?;
        }
        if found.nul && !self.done {
            self.is_binary()?;
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
            let place = (span.line_feeds as i64, span.range.start as i64);
            head.line(&mut self.out, b':', place, &block[span.range.clone()])?;
        }
        self.lines = self.lines.saturating_add(found.lines).min(max);
        self.done = self.lines == max;
        Ok(())
    }

    fn is_binary(&mut self) -> io::Result<()> {
        self.done = true;
        if self.options.skip_binary {
            return Ok(());
        }
        self.lines = self.lines.max(1);
        self.out.flush()?;
        (self.note)(Note::Binary(self.name.clone()));
        Ok(())
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
        for (from, to) in self.matches(mark, line) {
            self.written(out, mark, (number, offset + from as u64), &line[from..to])?;
        }
        Ok(())
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
            out.coloured(colour::MATCH, line);
            return out.line(b"");
        }
        let mut at = 0;
        for (from, to) in self.matches(mark, line) {
            out.buffer.extend_from_slice(&line[at..from]);
            out.coloured(colour::MATCH, &line[from..to]);
            at = to;
        }
        out.line(&line[at..])
    }

    /// The matches in a line, where it can have some.
    fn matches(&self, mark: u8, line: &[u8]) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        if let Some(pattern) = &self.marker
            && (mark == b':') != self.inverted
        {
            let _ = pattern.try_matches(line, |range| {
                found.push((range.start, range.end));
                Ok::<_, Infallible>(())
            });
        }
        found
    }

    /// Writes a line as programs read it.
    fn frame<W: Write>(
        &self,
        out: &mut Out<W>,
        mark: u8,
        (number, offset): (u64, u64),
        line: &[u8],
    ) -> io::Result<()> {
        let matches = self.matches(mark, line);
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

/// Bytes on their way out.
pub struct Out<W> {
    sink: W,
    pub buffer: Vec<u8>,
    /// The byte that ends lines.
    end: u8,
    /// Whether names and matches are coloured.
    colour: bool,
}

/// Bytes that go out at once, and that are not worth a copy.
const OUT_BYTES: usize = 64 << 10;

impl<W: Write> Out<W> {
    /// Writes lines, the last with its end.
    pub fn line(&mut self, line: &[u8]) -> io::Result<()> {
        if self.buffer.len() + line.len() > OUT_BYTES {
            self.flush()?;
        }
        if line.len() > OUT_BYTES {
            self.sink.write_all(line)?;
        } else {
            self.buffer.extend_from_slice(line);
        }
        if !line.ends_with(&[self.end]) {
            self.buffer.push(self.end);
        }
        Ok(())
    }

    /// Writes a line that is none of the file: it ends at a line feed.
    pub fn sentence(&mut self, line: &[u8]) -> io::Result<()> {
        self.buffer.extend_from_slice(line);
        self.buffer.push(b'\n');
        self.flush_full()
    }

    /// Writes the line between groups of lines.
    pub fn separator(&mut self, line: &[u8]) -> io::Result<()> {
        self.coloured(colour::MARK, line);
        self.sentence(b"")
    }

    /// Hands on what was written, if it is much.
    fn flush_full(&mut self) -> io::Result<()> {
        if self.buffer.len() > OUT_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.sink.write_all(&self.buffer)?;
        self.buffer.clear();
        self.sink.flush()
    }
}

impl<W> Out<W> {
    /// Writes bytes in a colour, where there are colours; each clears the line behind it, as those of GNU grep do.
    fn coloured(&mut self, code: &[u8], bytes: &[u8]) {
        if self.colour {
            for part in [
                b"\x1b[".as_slice(),
                code,
                b"m\x1b[K",
                bytes,
                b"\x1b[m\x1b[K",
            ] {
                self.buffer.extend_from_slice(part);
            }
        } else {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// Writes a number before a line.
    fn coloured_number(&mut self, number: u64) {
        if self.colour {
            self.coloured(colour::NUMBER, number.to_string().as_bytes());
        } else {
            let _ = write!(self.buffer, "{number}"); // memory takes all
        }
    }

    /// Writes a number for a program.
    fn number(&mut self, number: u64) {
        self.buffer.extend_from_slice(&number.to_le_bytes());
    }

    /// Writes bytes for a program.
    fn framed(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.buffer.extend_from_slice(bytes);
    }
}

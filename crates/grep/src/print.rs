//! What is written of the blocks, in their order: lines or matches with what stands before them, counts, names.

use std::io::{self, Write};
use std::mem;

use crate::context::Context;
use crate::find::Found;

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
}

impl Options {
    /// Whether line feeds are counted.
    pub(crate) fn counts_lines(&self) -> bool {
        self.numbers || (self.max.is_some() && self.show == Show::Matches)
    }

    /// Whether lines that follow each other are written as one.
    pub(crate) fn joins_lines(&self) -> bool {
        let prefixed = self.numbers || self.offsets || self.names;
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
    /// It cannot be read: its name, and a message that names it, too.
    Trouble(Vec<u8>, String),
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
    pub fn new(out: W, options: Options, note: N) -> Self {
        let wants_context = options.show == Show::Lines;
        let context = options.context.filter(|_| wants_context);
        Printer {
            out: Out {
                sink: out,
                buffer: Vec::new(),
            },
            context: context.map(Context::new),
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
    }

    /// Says that the file cannot be read on.
    pub fn fail(&mut self, message: String) -> io::Result<()> {
        if mem::replace(&mut self.failed, true) || self.done {
            return Ok(());
        }
        self.summary.troubles += 1;
        self.out.flush()?; // what was found before stands before it
        (self.note)(Note::Trouble(self.name.clone(), message));
        Ok(())
    }

    /// As [`Self::fail`], with the file's name before what is wrong.
    pub fn fail_as(&mut self, what: &str) -> io::Result<()> {
        let name = String::from_utf8_lossy(&self.name).into_owned();
        self.fail(format!("{name}: {what}"))
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
            head.write(
                &mut self.out,
                b':',
                span.line_feeds as i64,
                span.range.start as i64,
            );
            self.out.line(&block[span.range.clone()])?;
        }
        self.lines = self.lines.saturating_add(found.lines).min(max);
        self.done = self.lines == max;
        Ok(())
    }

    fn is_binary(&mut self) -> io::Result<()> {
        self.lines = self.lines.max(1);
        self.done = true;
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
            Show::Count => {
                if self.options.names {
                    self.out.buffer.extend_from_slice(&self.name);
                    self.out.buffer.push(b':');
                }
                self.out.line(lines.to_string().as_bytes())?;
            }
            Show::Names if lines > 0 => self.out.line(&mem::take(&mut self.name))?,
            Show::NamesWithout if lines == 0 => self.out.line(&mem::take(&mut self.name))?,
            _ => {}
        }
        Ok(())
    }

    /// Hands on all that was written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// What stands before a line.
pub struct Head {
    name: Option<Vec<u8>>,
    numbers: bool,
    offsets: bool,
    place: Place,
}

impl Head {
    fn of<W, N>(printer: &Printer<W, N>) -> Self {
        let options = &printer.options;
        Head {
            name: options.names.then(|| printer.name.clone()),
            numbers: options.numbers,
            offsets: options.offsets,
            place: printer.place,
        }
    }

    /// Writes it; `mark` is `:`, or `-` of a line that is not selected. Line feeds and bytes before the line are
    /// counted from the beginning of the block: of lines of the blocks before they are negative.
    pub fn write<W>(&self, out: &mut Out<W>, mark: u8, line_feeds: i64, bytes: i64) {
        if let Some(name) = &self.name {
            out.buffer.extend_from_slice(name);
            out.buffer.push(mark);
        }
        let numbers = [
            (
                self.numbers,
                self.place.line_feeds.wrapping_add_signed(line_feeds + 1),
            ),
            (self.offsets, self.place.bytes.wrapping_add_signed(bytes)),
        ];
        for (_, number) in numbers.into_iter().filter(|(shown, _)| *shown) {
            let _ = write!(out.buffer, "{number}"); // memory takes all
            out.buffer.push(mark);
        }
    }
}

/// Bytes on their way out.
pub struct Out<W> {
    sink: W,
    pub buffer: Vec<u8>,
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
        if !line.ends_with(b"\n") {
            self.buffer.push(b'\n');
        }
        Ok(())
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.sink.write_all(&self.buffer)?;
        self.buffer.clear();
        self.sink.flush()
    }
}

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
use std::sync::Arc;

use crate::context::LineContext;
use crate::find::BlockMatches;
use crate::head::{BlockPosition, Head};
use crate::options::{Options, Show};
use crate::out::{OutputBuffer, colour};
use crate::pattern::Pattern;
use crate::trouble::InputError;

/// What is said of a file, beside its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// It cannot be read: its name, and why.
    Trouble(Vec<u8>, InputError),
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
    out: OutputBuffer<W>,
    options: Options,
    /// As in [`SearchSettings`](crate::SearchSettings).
    line_bytes_max: usize,
    note: N,
    context: Option<LineContext>,
    /// Finds matches in lines that are written with them.
    marker: Option<Arc<Pattern>>,
    also_coloured: Arc<[Pattern]>,
    /// The file's name.
    name: Vec<u8>,
    place: BlockPosition,
    /// Lines of the file that were selected.
    lines: u64,
    binary: bool,
    /// It could not be read to its end.
    failed: bool,
    /// Nothing more of the file is wanted.
    done: bool,
    pub summary: Summary,
}

/// What follows a block that was written.
#[derive(Debug, PartialEq, Eq)]
pub enum NextBlock {
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
            out: OutputBuffer::new(out, pattern.end(), options.style.colour),
            context: context.map(|lines| LineContext::new(lines, pattern.end(), line_bytes_max)),
            marker: told.then(|| Arc::new(pattern.clone())),
            also_coloured: options.also_coloured().into(),
            options,
            line_bytes_max,
            note,
            name: Vec::new(),
            place: BlockPosition::default(),
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
        self.place = BlockPosition::default();
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
    pub fn fail(&mut self, trouble: InputError) -> io::Result<()> {
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
        self.fail(InputError::Unread(None, format!("{name}: {what}")))
    }

    /// Writes what was found in the next block of the file.
    pub fn block(&mut self, block: &[u8], found: &BlockMatches) -> io::Result<NextBlock> {
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
            () if self.done && self.lines > 0 && self.options.show == Show::Quiet => NextBlock::End,
            () if self.done => NextBlock::File,
            () => NextBlock::Block,
        })
    }

    fn found(&mut self, block: &[u8], found: &BlockMatches) -> io::Result<()> {
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
            let head = self.head();
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
    fn spans(&mut self, block: &[u8], found: &BlockMatches) -> io::Result<()> {
        let max = self.options.max.unwrap_or(u64::MAX);
        let (mut left, mut line) = (max - self.lines, None);
        let head = self.head();
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

    /// Lines of this file, as they are written.
    fn head(&self) -> Head {
        let options = &self.options;
        Head {
            name: options.names.then(|| self.name.clone()),
            numbers: options.numbers,
            offsets: options.offsets,
            place: self.place,
            style: options.style.clone(),
            marker: self.marker.clone(),
            also_coloured: Arc::clone(&self.also_coloured),
            inverted: options.invert,
            only_matches: options.show == Show::Matches && options.finds_lines(),
            is_match: options.show == Show::Matches,
            line_bytes_max: self.line_bytes_max,
        }
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

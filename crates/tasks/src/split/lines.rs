//! Lines of a byte range of a file, or of a whole decoded stream: which lines of a file belong to a split.
//!
//! ```text
//!   file    one LF two LF three LF four
//!   splits  |------------|-----------|       a line belongs to the split in which it starts
//!           one    two     three  four       (the second split begins behind the first end of a line whose
//!                  └─ read on past the end    next line can start in it, so "two" is read once, by the first)
//! ```
//!
//! The rule that must hold: whatever the splits of a file are, their lines together are the lines of the whole file,
//! each once, with the same offsets; and the bytes they consume add up to the file's size. (Hadoop's reader
//! gives a line that starts exactly where a split ends to that split, not to the next; the sum is the same.)
//!
//! A split in the middle looks back for a delimiter that overlaps itself (`lines/scan_start.rs`).

use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use memchr::memchr_iter;

use gristmill_base::error::{Error, Kind, Result};
use gristmill_storage::ReadFile;
use gristmill_storage::codec::error_of;
use gristmill_storage::lines::scan_start::scan_start;
use gristmill_storage::lines::{BYTE_ORDER_MARK, Ends, LineEnd, Lines};

pub use gristmill_storage::lines::Terminator;

/// How lines are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineOptions {
    /// What ends a line.
    pub terminator: Terminator,
    /// Bytes that are read at once.
    pub block_bytes: usize,
    /// The longest line, in bytes without its terminator; a longer one is an error.
    pub line_bytes_max: usize,
}

impl LineOptions {
    /// The usual ones, of lines that end so.
    pub fn ended_by(end: LineEnd) -> Self {
        LineOptions {
            terminator: match end {
                LineEnd::Lf => Terminator::Lf { strip_cr: false },
                LineEnd::Nul => Terminator::Nul,
            },
            ..LineOptions::default()
        }
    }
}

impl Default for LineOptions {
    /// LF, blocks of 512 kB, lines up to 64 MB.
    fn default() -> Self {
        LineOptions {
            terminator: Terminator::Lf { strip_cr: false },
            block_bytes: 512 << 10,
            line_bytes_max: 64 << 20,
        }
    }
}

/// A line, and where it starts in its file (or decoded stream).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// The offset of its first byte; 0 for the first line, also where a byte order mark comes before it.
    pub offset: u64,
    /// Its bytes without the terminator, where they lie in the buffer.
    pub bytes: &'a [u8],
}

/// Bytes that are read at first to find where the last line of a split ends; doubled while it is not found.
const BEHIND_BYTES: usize = 4096;

/// Reads lines, one after the other.
#[derive(Debug)]
pub struct LineRecordReader {
    lines: Lines<LineBytes>,
    path: PathBuf,
    line_bytes_max: usize,
    /// Where the next line begins.
    offset: u64,
    /// Bytes of the mark before the first line, until that is read.
    mark_bytes: u64,
    /// Lines that start at or behind this offset belong to somebody else.
    stop: u64,
    consumed: u64,
    given: u64,
    /// Offsets are those of decoded bytes.
    pub(super) is_decoded: bool,
    /// Bytes of a compressed file that were read from the store.
    pub(super) fetched: Arc<AtomicU64>,
}

impl LineRecordReader {
    /// Reads the lines that start in `range` of a plain file of `file_bytes` bytes.
    ///
    /// # Errors
    /// The store's, a delimiter of no bytes, a file that has become shorter.
    ///
    /// ```
    /// use gristmill_storage::{LocalDisk as _, OutputStore as _};
    /// use gristmill_tasks::split::lines::{LineOptions, LineRecordReader};
    /// use gristmill_storage::{Caching, Store, memory::Memory};
    /// let (store, path) = (Memory::with_room_for(100), "/a".as_ref());
    /// store.create(path, 13, Caching::Cached)?.write_at(b"one\ntwo\nthree", 0)?;
    /// let mut lines = Vec::new();
    /// for range in [0..5, 5..13] {
    ///     let file = store.open(path, Caching::Cached)?;
    ///     let mut reader = LineRecordReader::of_range(file, path, 13, range, &LineOptions::default())?;
    ///     while let Some(line) = reader.next_line()? {
    ///         lines.push((line.offset, String::from_utf8_lossy(line.bytes).into_owned()));
    ///     }
    /// }
    /// assert_eq!(lines, [(0, "one".to_owned()), (4, "two".to_owned()), (8, "three".to_owned())]);
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    pub fn of_range(
        file: Box<dyn ReadFile>,
        path: &Path,
        file_bytes: u64,
        range: Range<u64>,
        options: &LineOptions,
    ) -> Result<Self> {
        let stop = range.end.min(file_bytes);
        let ends = Ends::new(&options.terminator)?;
        let from = first_scanned(&ends, &*file, range.start.min(stop))?;
        let origin = LineBytesSource::Range {
            file,
            at: from,
            stop,
            file_bytes,
            behind_bytes: BEHIND_BYTES.min(options.block_bytes.max(1)),
        };
        let mut reader = LineRecordReader::new(origin, path, ends, options, from, stop);
        reader.skip_mark()?;
        if range.start > 0 {
            reader.pass_over_others(range.start)?;
        }
        Ok(reader)
    }

    /// Reads the lines of all that `reader` gives; `path` names it in errors.
    ///
    /// # Errors
    /// The reader's, a delimiter of no bytes.
    ///
    /// ```
    /// use gristmill_tasks::split::lines::{LineOptions, LineRecordReader, Terminator};
    /// let options = LineOptions { terminator: Terminator::Hadoop, ..LineOptions::default() };
    /// let mut reader = LineRecordReader::of_stream(&b"one\r\ntwo\rthree"[..], "in".as_ref(), &options)?;
    /// let mut lengths = Vec::new();
    /// while let Some(line) = reader.next_line()? {
    ///     lengths.push((line.offset, line.bytes.len()));
    /// }
    /// assert_eq!((lengths, reader.consumed()), (vec![(0, 3), (5, 3), (9, 5)], 14));
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    pub fn of_stream(
        reader: impl Read + Send + 'static,
        path: &Path,
        options: &LineOptions,
    ) -> Result<Self> {
        let from = LineBytesSource::Stream(DecodedStream(Box::new(reader)));
        let ends = Ends::new(&options.terminator)?;
        let mut reader = LineRecordReader::new(from, path, ends, options, 0, u64::MAX);
        reader.skip_mark()?;
        Ok(reader)
    }

    fn new(
        from: LineBytesSource,
        path: &Path,
        ends: Ends,
        options: &LineOptions,
        offset: u64,
        stop: u64,
    ) -> Self {
        let path = path.to_owned();
        let source = LineBytes {
            from,
            path: path.clone(),
        };
        let most = options.line_bytes_max;
        LineRecordReader {
            lines: Lines::in_blocks(source, ends, options.block_bytes, most),
            path,
            line_bytes_max: most,
            offset,
            mark_bytes: 0,
            stop,
            consumed: 0,
            given: 0,
            is_decoded: false,
            fetched: Arc::default(),
        }
    }

    /// The next line, or `None` where the next one belongs to somebody else or is not there.
    ///
    /// # Errors
    /// The source's, and a line longer than [`LineOptions::line_bytes_max`].
    pub fn next_line(&mut self) -> Result<Option<Line<'_>>> {
        let offset = self.offset - self.mark_bytes;
        if offset >= self.stop {
            return Ok(None);
        }
        let Some(length) = self.lines.advance()? else {
            return if self.lines.is_over() {
                Ok(None)
            } else {
                Err(self.too_long())
            };
        };
        self.offset += length as u64;
        self.consumed += length as u64;
        self.mark_bytes = 0;
        self.given += 1;
        let bytes = self.lines.line();
        Ok(Some(Line { offset, bytes }))
    }

    /// The next lines that LF ends, or NUL where that ends lines, whole, as they lie in memory: what is at hand, in `most` bytes, and a longer one by itself.
    /// Nothing where the next line belongs to somebody else or is not there.
    ///
    /// # Errors
    /// As of [`next_line`](Self::next_line).
    ///
    /// ```
    /// use gristmill_tasks::split::lines::{LineOptions, LineRecordReader};
    /// let mut reader = LineRecordReader::of_stream(&b"1\n22\n333\n4"[..], "in".as_ref(), &LineOptions::default())?;
    /// let mut found = Vec::new();
    /// while let Some(lines) = reader.next_lines(5)? {
    ///     found.push(lines.to_vec());
    /// }
    /// assert_eq!((found, reader.lines()), (vec![b"1\n22\n".to_vec(), b"333\n".to_vec(), b"4".to_vec()], 4));
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    pub fn next_lines(&mut self, most: u64) -> Result<Option<&[u8]>> {
        // All of these begin in the range, and none is too long; one that ends behind it is read by itself.
        let end = self.lines.last_byte();
        let most = most
            .min(self.stop.saturating_sub(self.offset))
            .min(self.line_bytes_max as u64);
        let many = self.lines.many(most)?;
        if many.is_empty() {
            let line = self.next_line()?.is_some();
            return Ok(line.then(|| self.lines.whole_line()));
        }
        let length = many.len() as u64;
        self.given += memchr_iter(end, many).count() as u64;
        self.offset += length;
        self.consumed += length;
        self.mark_bytes = 0;
        Ok(Some(self.lines.whole_line()))
    }

    /// Where the next line begins; behind a byte order mark.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes of all lines so far, with their terminators (and the mark). The sum over a file's splits is its size.
    pub fn consumed(&self) -> u64 {
        self.consumed
    }

    /// Whether the file is compressed: what is consumed is not counted in its bytes then.
    pub fn is_decoded(&self) -> bool {
        self.is_decoded
    }

    /// Bytes of a compressed file that were read so far, ahead of the lines by a block or two; 0 of any other file.
    pub fn fetched(&self) -> u64 {
        self.fetched.load(Ordering::Relaxed)
    }

    /// Lines given so far.
    pub fn lines(&self) -> u64 {
        self.given
    }

    /// Passes over lines that start before `start`: they belong to others, and may be of any length.
    fn pass_over_others(&mut self, start: u64) -> Result<()> {
        while let Some(passed) = self
            .lines
            .pass_over(self.stop.saturating_sub(self.offset))?
        {
            self.offset += passed;
            if self.offset >= start.min(self.stop) {
                break;
            }
        }
        (self.consumed, self.mark_bytes) = (0, 0);
        Ok(())
    }

    /// Passes over a byte order mark at the beginning of a file.
    fn skip_mark(&mut self) -> Result<()> {
        if self.offset > 0 || self.stop == 0 {
            return Ok(());
        }
        if self.lines.pass_over_mark(BYTE_ORDER_MARK)? {
            self.mark_bytes = BYTE_ORDER_MARK.len() as u64;
            (self.offset, self.consumed) = (self.mark_bytes, self.mark_bytes);
        }
        Ok(())
    }

    fn too_long(&self) -> Error {
        let message = format!("a line is longer than {} bytes", self.line_bytes_max);
        Error::new(Kind::BadInput, "read lines", message)
            .with_path(&self.path)
            .with("offset", self.offset - self.mark_bytes)
            .advise("check that these are lines of text, and cut longer ones, as fold -s does; in a Python job, gm.text(paths, whole=True) makes records of whole files, and gm.fixed(paths, length) records of one length")
    }
}

/// Where bytes come from; the path is for errors.
#[derive(Debug)]
struct LineBytes {
    from: LineBytesSource,
    path: PathBuf,
}

#[derive(Debug)]
enum LineBytesSource {
    Range {
        file: Box<dyn ReadFile>,
        at: u64,
        stop: u64,
        file_bytes: u64,
        behind_bytes: usize,
    },
    Stream(DecodedStream),
}

struct DecodedStream(Box<dyn Read + Send>);

impl std::fmt::Debug for DecodedStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stream")
    }
}

impl gristmill_storage::lines::ByteSource for LineBytes {
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        let path = &self.path;
        match &mut self.from {
            LineBytesSource::Stream(DecodedStream(reader)) => loop {
                match reader.read(out) {
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    read => return read.map_err(|error| error_of(error, path)),
                }
            },
            LineBytesSource::Range {
                file,
                at,
                stop,
                file_bytes,
                behind_bytes,
            } => {
                // Up to the split's end in blocks; behind it only as far as its last line goes.
                let wanted = if *at < *stop {
                    *stop - *at
                } else {
                    let behind = *behind_bytes as u64;
                    *behind_bytes = behind_bytes.saturating_mul(2);
                    behind.min(*file_bytes - *at)
                };
                let wanted = out.len().min(usize::try_from(wanted).unwrap_or(usize::MAX));
                let read = file.read_at(&mut out[..wanted], *at)?;
                *at += read as u64;
                if read < wanted {
                    let message = format!("it ends at {at}; it had {file_bytes} bytes");
                    return Err(Error::new(Kind::InputChanged, "read lines", message)
                        .with_path(path)
                        .advise("let no program write to the input, then run again"));
                }
                Ok(read)
            }
        }
    }
}

/// Where to scan from for the lines that begin at `start` or behind it: the byte before decides whether one begins there.
/// The file's beginning, where a mark may be.
fn first_scanned(ends: &Ends, file: &dyn ReadFile, start: u64) -> Result<u64> {
    let from = match ends {
        Ends::Bytes(delimiter) => scan_start(delimiter, file, start)?,
        Ends::Lf { .. } | Ends::Nul | Ends::Hadoop => start.saturating_sub(1),
    };
    let is_in_mark = from <= BYTE_ORDER_MARK.len() as u64;
    Ok(if is_in_mark { 0 } else { from })
}

#[cfg(test)]
mod tests;

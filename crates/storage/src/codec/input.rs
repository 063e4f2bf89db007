//! Input: compressed bytes in blocks, looked at before they are taken, and counted.
//!
//! All decoders read from here, so that one place knows the offset, the end of the file, and why reading failed:
//! libraries turn a reader's error into one of their own.

use std::io::{self, Read};

/// Compressed bytes held at once.
pub(super) const BUFFER_BYTES: usize = 128 << 10;

/// A reader with a buffer in front, that counts what was taken from it.
pub(super) struct CountedInput {
    reader: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    taken: u64,
    ended: bool,
    /// Somebody wanted bytes behind the end.
    pub(super) starved: bool,
    /// Why the reader failed, until it is asked for.
    pub(super) failed: Option<io::Error>,
}

impl CountedInput {
    pub(super) fn new(reader: Box<dyn Read + Send>) -> Self {
        CountedInput {
            reader,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            taken: 0,
            ended: false,
            starved: false,
            failed: None,
        }
    }

    /// An input of nothing: what stands where another one is on loan.
    pub(super) fn nothing() -> Self {
        CountedInput::new(Box::new(io::empty()))
    }

    /// Bytes taken so far: the offset of the next one.
    pub(super) fn offset(&self) -> u64 {
        self.taken
    }

    /// What is there without waiting for more; at least one byte unless the input is at its end.
    pub(super) fn fill(&mut self) -> io::Result<&[u8]> {
        self.peek(1)
    }

    /// At least `count` bytes (far fewer than the buffer holds), fewer only at the end of the input.
    pub(super) fn peek(&mut self, count: usize) -> io::Result<&[u8]> {
        if self.end - self.start < count && !self.ended {
            if self.buffer.is_empty() {
                self.buffer.resize(BUFFER_BYTES, 0);
            }
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            while self.end < count && !self.ended {
                match self.reader.read(&mut self.buffer[self.end..]) {
                    Ok(0) => self.ended = true,
                    Ok(bytes) => self.end += bytes,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(&self.buffer[self.start..self.end])
    }

    /// Takes `count` of the bytes that were seen.
    pub(super) fn consume(&mut self, count: usize) {
        debug_assert!(count <= self.end - self.start);
        self.start += count;
        self.taken += count as u64;
    }

    /// Takes exactly `count` bytes into `into`, in place of what it held; false where the input ends before.
    /// Memory grows with what is there, not with what `count` says.
    pub(super) fn take_exactly(&mut self, count: usize, into: &mut Vec<u8>) -> io::Result<bool> {
        into.clear();
        while into.len() < count {
            let there = self.fill()?;
            let take = there.len().min(count - into.len());
            if take == 0 {
                return Ok(false);
            }
            into.extend_from_slice(&there[..take]);
            self.consume(take);
        }
        Ok(true)
    }

    /// [`CountedInput::peek`] for use under a library: an error is kept in `failed`, and what the library gets is a copy
    /// without its cause.
    pub(super) fn peek_or_keep(&mut self, count: usize) -> io::Result<&[u8]> {
        if let Err(error) = self.peek(count) {
            let kind = error.kind();
            self.failed = Some(error);
            return Err(kind.into());
        }
        Ok(&self.buffer[self.start..self.end])
    }
}

/// For libraries that want a reader.
impl Read for CountedInput {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let there = self.peek_or_keep(1)?;
        let count = there.len().min(out.len());
        out[..count].copy_from_slice(&there[..count]);
        self.starved |= count == 0 && !out.is_empty();
        self.consume(count);
        Ok(count)
    }
}

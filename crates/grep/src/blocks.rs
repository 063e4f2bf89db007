//! Blocks: files cut at the ends of lines, taken by workers one after the other.
//!
//! ```text
//!   a file read in ranges     |   block 0   |   block 1   |  2  |     a line belongs to the block that it begins in:
//!                             line line lin|e line li|ne line ...     its worker reads on to its end
//!
//!   a stream                  read up to the last line feed; what is behind it begins the next block
//! ```
//!
//! A stream is read by the worker that takes the block, while the others search; a range by its worker alone.

use std::io::{self, Read};
use std::mem;
use std::sync::Arc;

use memchr::{memchr, memrchr};

/// Bytes of a block: what fits the cache of a core beside what the search needs, in few reads.
const BLOCK_BYTES: usize = 1 << 20;

/// Bytes that are read at once of a stream at first, and where a line goes on behind its block: doubled where they are there.
const FURTHER_BYTES: usize = 64 << 10;

/// A file that is read in ranges, by several workers.
pub trait Ranges: Send + Sync {
    /// Reads into all of `buffer` from `offset` on; less only where the file ends.
    ///
    /// # Errors
    /// The file's.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
}

/// An open input.
pub enum Data {
    /// Ranges of so many bytes. What is written behind them later is not searched.
    Ranges(Arc<dyn Ranges>, u64),
    /// Bytes one after the other.
    Stream(Box<dyn Read + Send>),
}

/// An input: its name, as it stands before lines, and what opens it when it is its turn.
pub struct Input {
    /// The name.
    pub name: Vec<u8>,
    /// Opens it; the error is a message.
    pub open: Box<dyn FnOnce() -> Result<Data, String> + Send>,
}

/// A block, as a worker takes it.
pub struct Block {
    /// Its place among all.
    pub sequence: u64,
    /// Which file it is of.
    pub file: u64,
    /// The file's name, with its first block.
    pub name: Option<Vec<u8>>,
    /// Whether it is the file's last.
    pub last: bool,
    /// Where its bytes are.
    pub bytes: Bytes,
}

/// Where a block's bytes are.
pub enum Bytes {
    /// In the buffer that the worker brought.
    Here,
    /// In a file, from this offset to that; the file ends at the third.
    There(Arc<dyn Ranges>, u64, u64, u64),
    /// Nowhere: the file cannot be opened, or read on.
    Failed(String),
}

/// All inputs, as blocks.
pub struct Blocks<I> {
    inputs: I,
    current: Option<Current>,
    sequence: u64,
    file: u64,
}

struct Current {
    name: Option<Vec<u8>>,
    data: Open,
}

enum Open {
    Ranges(Arc<dyn Ranges>, u64, u64),
    /// The stream, what was read of the next block, and how much is asked for at once.
    Stream(Box<dyn Read + Send>, Vec<u8>, usize),
    Failed(String),
}

impl<I: Iterator<Item = Input>> Blocks<I> {
    pub fn new(inputs: I) -> Self {
        Blocks {
            inputs,
            current: None,
            sequence: 0,
            file: 0,
        }
    }

    /// The next block, of a stream with its bytes in `buffer`. Of a file below `enough` no more is wanted.
    pub fn next(&mut self, buffer: &mut Vec<u8>, enough: u64) -> Option<Block> {
        let mut current = match self.current.take() {
            Some(current) => current,
            None => self.open_next()?,
        };
        let (bytes, last) = if self.file < enough && current.name.is_none() {
            buffer.clear();
            (Bytes::Here, true)
        } else {
            current.data.take_block(buffer)
        };
        let block = Block {
            sequence: self.sequence,
            file: self.file,
            name: current.name.take(),
            last,
            bytes,
        };
        self.sequence += 1;
        if last {
            self.file += 1;
        } else {
            self.current = Some(current);
        }
        Some(block)
    }

    fn open_next(&mut self) -> Option<Current> {
        let input = self.inputs.next()?;
        let data = match (input.open)() {
            Ok(Data::Ranges(file, bytes)) => Open::Ranges(file, 0, bytes),
            Ok(Data::Stream(stream)) => Open::Stream(stream, Vec::new(), FURTHER_BYTES),
            Err(message) => Open::Failed(message),
        };
        Some(Current {
            name: Some(input.name),
            data,
        })
    }
}

impl Open {
    /// The next block, and whether it is the last.
    fn take_block(&mut self, buffer: &mut Vec<u8>) -> (Bytes, bool) {
        match self {
            Open::Ranges(file, at, bytes) => {
                let (from, to) = (*at, (*at + BLOCK_BYTES as u64).min(*bytes));
                *at = to;
                (
                    Bytes::There(Arc::clone(file), from, to, *bytes),
                    to == *bytes,
                )
            }
            Open::Stream(stream, ahead, room) => {
                mem::swap(buffer, ahead);
                ahead.clear();
                match fill(stream, buffer, room) {
                    Ok(is_end) => {
                        if !is_end {
                            let cut = memrchr(b'\n', buffer).map_or(0, |at| at + 1);
                            ahead.extend_from_slice(&buffer[cut..]);
                            buffer.truncate(cut);
                        }
                        (Bytes::Here, is_end)
                    }
                    Err(error) => (Bytes::Failed(error.to_string()), true),
                }
            }
            Open::Failed(message) => (Bytes::Failed(mem::take(message)), true),
        }
    }
}

/// Reads until there is a line; whether the stream is at its end. A slow stream gives a line at a time, a fast one blocks.
fn fill(stream: &mut impl Read, buffer: &mut Vec<u8>, room: &mut usize) -> io::Result<bool> {
    loop {
        let length = buffer.len();
        buffer.resize(length + (*room).max(length), 0); // a long line doubles it
        let read = loop {
            match stream.read(&mut buffer[length..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        let count = read.as_ref().map_or(0, |&count| count);
        if length + count == buffer.len() {
            *room = (*room * 2).min(BLOCK_BYTES);
        }
        buffer.truncate(length + count);
        if read? == 0 {
            return Ok(true);
        }
        if memchr(b'\n', &buffer[length..]).is_some() {
            return Ok(false);
        }
    }
}

/// Reads the lines that begin in a range of a file; `buffer` is as long as it ever was, and the lines are the range returned.
pub fn load(
    file: &dyn Ranges,
    (from, to, bytes): (u64, u64, u64),
    buffer: &mut Vec<u8>,
) -> io::Result<std::ops::Range<usize>> {
    let begin = from.saturating_sub(1); // a line begins where a line feed is before it
    let mut length = read_on(file, begin, 0, (to - begin) as usize, buffer)?;
    let start = match from {
        0 => 0,
        _ => memchr(b'\n', &buffer[..length]).map_or(length, |at| at + 1),
    };
    if start == length {
        return Ok(0..0);
    }
    let mut further = FURTHER_BYTES;
    while buffer[length - 1] != b'\n' {
        let at = begin + length as u64;
        let wanted = bytes.saturating_sub(at).min(further as u64) as usize;
        let read = read_on(file, at, length, wanted, buffer)?;
        let end = memchr(b'\n', &buffer[length..length + read]);
        length += end.map_or(read, |at| at + 1);
        if read == 0 {
            break;
        }
        further *= 2;
    }
    Ok(start..length)
}

/// Reads `wanted` bytes at `offset` of a file to `at` in the buffer, which grows if it must.
fn read_on(
    file: &dyn Ranges,
    offset: u64,
    at: usize,
    wanted: usize,
    buffer: &mut Vec<u8>,
) -> io::Result<usize> {
    if wanted == 0 {
        return Ok(0);
    }
    if buffer.len() < at + wanted {
        buffer.resize(at + wanted, 0);
    }
    file.read_at(&mut buffer[at..at + wanted], offset)
}

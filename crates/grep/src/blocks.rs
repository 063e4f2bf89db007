//! Blocks: files cut at the ends of lines, taken by workers one after the other.
//!
//! ```text
//!   a file read in ranges     |   block 0   |   block 1   |  2  |     a line belongs to the block that it begins in:
//!                             line line lin|e line li|ne line ...     its worker reads on to its end
//!
//!   a stream                  read up to the last line feed; what is behind it begins the next block
//! ```
//!
//! A line ends at a line feed, or at a NUL where that was asked for. A stream is read by the worker that takes the block, while the others search; a range by its worker alone.
//!
//! A line that is read to a buffer has a bound ([`LineRoom`]): a longer one is an error, and at any time one buffer alone is long. A
//! file that is mapped is not copied, and its lines have none.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;

use memchr::{memchr, memrchr};

use crate::lines::line_end;
use crate::trouble::{InputError, MemoryUse, TooLarge};
use crate::utf16::Utf16Decoder;

/// Bytes of a block: few reads, and it fits the cache of a core together with the search.
const BLOCK_BYTES: usize = 1 << 20;

/// Bytes of the first read of a stream, and of a line that goes on behind its block; doubled after each full read.
const FURTHER_BYTES: usize = 64 << 10;

/// A longer buffer is filled only when its block is written next, and given back then: one worker has such a buffer.
pub const LONG_BYTES: usize = 8 << 20;

/// How much of a line may be read to a buffer.
pub struct LineRoom<'r> {
    /// The longest line, in bytes without its end.
    pub line_bytes_max: usize,
    /// Waits until the block of this number is written next; false where the search is over.
    pub turn: &'r dyn Fn(u64) -> bool,
}

impl LineRoom<'_> {
    /// Lengthens a buffer behind a line that has `line` bytes so far and begins at `offset`, by `wanted` bytes or as many as it may have;
    /// returns how many. The block has the number `sequence`.
    fn lengthen(
        &self,
        buffer: &mut Vec<u8>,
        (line, offset): (usize, u64),
        wanted: usize,
        sequence: u64,
    ) -> io::Result<usize> {
        let too_large = |bytes_max: usize| TooLarge {
            what: MemoryUse::Line,
            offset,
            bytes_max: bytes_max as u64,
        };
        let left = (self.line_bytes_max + 1).saturating_sub(line); // with its end
        if left == 0 {
            return Err(too_large(self.line_bytes_max).into());
        }
        let more = wanted.min(left).min(LONG_BYTES);
        if buffer.len() + more > LONG_BYTES && !(self.turn)(sequence) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if buffer.try_reserve_exact(more).is_err() {
            return Err(too_large(line).into());
        }
        buffer.resize(buffer.len() + more, 0);
        Ok(more)
    }
}

/// A file that is read in ranges, by several workers.
pub trait RangeSource: Send + Sync {
    /// Reads into all of `buffer` from `offset` on; less only where the file ends.
    ///
    /// # Errors
    /// The file's.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// All of the file, where it lies in memory: then it is not copied.
    fn mapped(&self) -> Option<&[u8]> {
        None
    }

    /// Checks that the memory still is the file's.
    ///
    /// # Errors
    /// The file became shorter.
    fn check(&self) -> io::Result<()> {
        Ok(())
    }
}

/// An open input.
pub enum Data {
    /// Ranges of so many bytes, searched as they are. What is written behind them later is not searched.
    Ranges(Arc<dyn RangeSource>, u64),
    /// Bytes one after the other; UTF-16 with its mark is decoded.
    Stream(Box<dyn Read + Send>),
}

/// An input: its name, as it stands before lines, and what opens it when its turn comes.
pub struct SearchInput {
    /// The name.
    pub name: Vec<u8>,
    /// Opens it.
    pub open: Box<dyn FnOnce() -> Result<Data, InputError> + Send>,
}

/// A block, as a worker takes it.
pub struct InputBlock {
    /// Its place among all.
    pub sequence: u64,
    /// Which file it is of.
    pub file: u64,
    /// The file's name, with its first block.
    pub name: Option<Vec<u8>>,
    /// Whether it is the file's last.
    pub last: bool,
    /// Where its bytes are.
    pub bytes: BlockBytes,
}

/// Where a block's bytes are.
pub enum BlockBytes {
    /// In the buffer that the worker brought.
    Here,
    /// In a file, from this offset to that; the file ends at the third.
    There(Arc<dyn RangeSource>, u64, u64, u64),
    /// Nowhere: the file cannot be opened, or read on.
    Failed(InputError),
}

impl BlockBytes {
    /// The memory that the block lies in: its file's, or the buffer that the worker brought.
    pub fn memory<'b>(&'b self, buffer: &'b [u8]) -> &'b [u8] {
        match self {
            BlockBytes::There(file, ..) => file.mapped().unwrap_or(buffer),
            _ => buffer,
        }
    }
}

/// All inputs, as blocks.
pub struct InputBlocks<I> {
    inputs: I,
    /// The byte that ends lines.
    end: u8,
    current: Option<CurrentInput>,
    sequence: u64,
    file: u64,
}

struct CurrentInput {
    name: Option<Vec<u8>>,
    data: InputData,
}

enum InputData {
    Ranges(Arc<dyn RangeSource>, u64, u64),
    Stream(BlockStream),
    Failed(InputError),
}

/// A stream that is read on.
struct BlockStream {
    bytes: Utf16Decoder,
    /// What was read of the next block, and where that begins.
    ahead: Vec<u8>,
    offset: u64,
    /// How much is asked for at once.
    further: usize,
}

impl<I: Iterator<Item = SearchInput>> InputBlocks<I> {
    pub fn new(inputs: I, end: u8) -> Self {
        InputBlocks {
            inputs,
            end,
            current: None,
            sequence: 0,
            file: 0,
        }
    }

    /// The next block; that of a stream has its bytes in `buffer`. Files before the number `enough` are skipped.
    pub fn next(
        &mut self,
        buffer: &mut Vec<u8>,
        enough: u64,
        room: &LineRoom<'_>,
    ) -> Option<InputBlock> {
        let mut current = match self.current.take() {
            Some(current) => current,
            None => self.open_next()?,
        };
        let (bytes, last) = if self.file < enough && current.name.is_none() {
            buffer.clear();
            (BlockBytes::Here, true)
        } else {
            current
                .data
                .take_block(buffer, self.end, room, self.sequence)
        };
        let block = InputBlock {
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

    fn open_next(&mut self) -> Option<CurrentInput> {
        let input = self.inputs.next()?;
        let data = match (input.open)() {
            Ok(Data::Ranges(file, bytes)) => InputData::Ranges(file, 0, bytes),
            Ok(Data::Stream(stream)) => InputData::Stream(BlockStream {
                bytes: Utf16Decoder::new(stream),
                ahead: Vec::new(),
                offset: 0,
                further: FURTHER_BYTES,
            }),
            Err(trouble) => InputData::Failed(trouble),
        };
        Some(CurrentInput {
            name: Some(input.name),
            data,
        })
    }
}

impl InputData {
    /// The next block, and whether it is the last.
    fn take_block(
        &mut self,
        buffer: &mut Vec<u8>,
        end: u8,
        room: &LineRoom<'_>,
        sequence: u64,
    ) -> (BlockBytes, bool) {
        match self {
            InputData::Ranges(file, at, bytes) => {
                let (from, to) = (*at, (*at + BLOCK_BYTES as u64).min(*bytes));
                *at = to;
                (
                    BlockBytes::There(Arc::clone(file), from, to, *bytes),
                    to == *bytes,
                )
            }
            InputData::Stream(stream) => {
                buffer.clear();
                buffer.append(&mut stream.ahead);
                match stream.fill(buffer, end, room, sequence) {
                    Ok(is_end) => {
                        if !is_end {
                            let cut = memrchr(end, buffer).map_or(0, |at| at + 1);
                            stream.ahead.extend_from_slice(&buffer[cut..]);
                            buffer.truncate(cut);
                        }
                        stream.offset += buffer.len() as u64;
                        (BlockBytes::Here, is_end)
                    }
                    Err(error) => (BlockBytes::Failed(error.into()), true),
                }
            }
            InputData::Failed(trouble) => (BlockBytes::Failed(trouble.clone()), true),
        }
    }
}

impl BlockStream {
    /// Reads until there is a whole line, and returns whether the stream ended. A slow stream gives single lines, a fast one
    /// whole blocks.
    fn fill(
        &mut self,
        buffer: &mut Vec<u8>,
        end: u8,
        room: &LineRoom<'_>,
        sequence: u64,
    ) -> io::Result<bool> {
        loop {
            let length = buffer.len(); // all of one line
            let wanted = self.further.max(length); // a long line doubles it
            room.lengthen(buffer, (length, self.offset), wanted, sequence)?;
            let read = loop {
                match self.bytes.read(&mut buffer[length..]) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    read => break read,
                }
            };
            let count = read.as_ref().map_or(0, |&count| count);
            if length + count == buffer.len() {
                self.further = (self.further * 2).min(BLOCK_BYTES);
            }
            buffer.truncate(length + count);
            if read? == 0 {
                return Ok(true);
            }
            if memchr(end, &buffer[length..]).is_some() {
                return Ok(false);
            }
        }
    }
}

/// The lines that begin in a range of a file, as a range of [`BlockBytes::memory`]: they are read to `buffer`, unless they lie in memory.
pub fn load(
    file: &dyn RangeSource,
    (from, to, bytes): (u64, u64, u64),
    buffer: &mut Vec<u8>,
    end: u8,
    (room, sequence): (&LineRoom<'_>, u64),
) -> io::Result<Range<usize>> {
    match file.mapped() {
        Some(mapped) => Ok(lines_of(mapped, from as usize, to as usize, end)),
        None => read_lines(file, (from, to, bytes), buffer, end, (room, sequence)),
    }
}

/// The lines that begin in a range of a file in memory.
fn lines_of(mapped: &[u8], from: usize, to: usize, end: u8) -> Range<usize> {
    let start = match from {
        0 => 0,
        // A line begins where a line feed is before it.
        _ => memchr(end, &mapped[from - 1..to]).map_or(to, |at| from + at),
    };
    if start >= to {
        0..0
    } else {
        start..line_end(end, mapped, to - 1)
    }
}

/// Reads the lines that begin in a range of a file.
fn read_lines(
    file: &dyn RangeSource,
    (from, to, bytes): (u64, u64, u64),
    buffer: &mut Vec<u8>,
    end: u8,
    (room, sequence): (&LineRoom<'_>, u64),
) -> io::Result<Range<usize>> {
    let begin = from.saturating_sub(1); // a line begins where a line feed is before it
    buffer.resize((to - begin) as usize, 0);
    let mut length = match buffer.len() {
        0 => 0,
        _ => file.read_at(buffer, begin)?,
    };
    buffer.truncate(length);
    let start = match from {
        0 => 0,
        _ => memchr(end, &buffer[..length]).map_or(length, |at| at + 1),
    };
    if start == length {
        return Ok(0..0);
    }
    let last = memrchr(end, &buffer[start..]).map_or(start, |at| start + at + 1);
    let mut further = FURTHER_BYTES;
    while buffer[length - 1] != end {
        let at = begin + length as u64;
        let wanted = bytes.saturating_sub(at).min(further as u64) as usize;
        let line = (length - last, begin + last as u64);
        if room.lengthen(buffer, line, wanted, sequence)? == 0 {
            break;
        }
        let read = file.read_at(&mut buffer[length..], at)?;
        let found = memchr(end, &buffer[length..length + read]);
        length += found.map_or(read, |at| at + 1);
        buffer.truncate(length);
        if read == 0 {
            break;
        }
        further *= 2;
    }
    Ok(start..length)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: LineRoom<'_> = LineRoom {
        line_bytes_max: 100,
        turn: &|_| true,
    };

    struct Memory(Vec<u8>, bool);

    impl RangeSource for Memory {
        fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
            let left = &self.0[(offset as usize).min(self.0.len())..];
            let count = left.len().min(buffer.len());
            buffer[..count].copy_from_slice(&left[..count]);
            Ok(count)
        }

        fn mapped(&self) -> Option<&[u8]> {
            self.1.then_some(&self.0)
        }
    }

    /// However a file is cut, each line is in the block that it begins in, and in no other.
    #[test]
    fn blocks_are_the_lines_that_begin_in_them() {
        let texts: [&[u8]; 6] = [
            b"",
            b"\n",
            b"a\n\nbcd\ne",
            b"abcdefghijkl",
            b"\n\nabcdefgh\n",
            b"ab\nc\n",
        ];
        for (text, is_mapped) in texts
            .into_iter()
            .flat_map(|text| [(text, false), (text, true)])
        {
            let bytes = text.len() as u64;
            let starts: Vec<usize> = (0..text.len())
                .filter(|&at| at == 0 || text[at - 1] == b'\n')
                .collect();
            for (from, to) in
                (0..=bytes).flat_map(|from| (from + 1..=bytes).map(move |to| (from, to)))
            {
                let file =
                    BlockBytes::There(Arc::new(Memory(text.to_vec(), is_mapped)), from, to, bytes);
                let BlockBytes::There(ranges, ..) = &file else {
                    unreachable!()
                };
                let mut buffer = vec![b'x'; 3];
                let found =
                    load(&**ranges, (from, to, bytes), &mut buffer, b'\n', (&ROOM, 0)).unwrap();
                let mine: Vec<&usize> = starts
                    .iter()
                    .filter(|&&at| (from..to).contains(&(at as u64)))
                    .collect();
                let wanted = match (mine.first(), mine.last()) {
                    (Some(&&first), Some(&&last)) => &text[first..line_end(b'\n', text, last)],
                    _ => b"",
                };
                assert_eq!(
                    &file.memory(&buffer)[found],
                    wanted,
                    "{text:?} {from}..{to} {is_mapped}"
                );
            }
        }
    }
}

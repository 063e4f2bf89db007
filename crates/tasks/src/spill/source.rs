//! Where chunks are filled from: ranges of files, or a stream that is read once.
//!
//! Decision: docs/decisions/small-files.md.

use std::collections::VecDeque;
use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::chunk::Chunk;
use super::first_bytes::FirstBytes;
use super::memory_model::MemoryModel;
use gristmill_base::error::{Error, JobOption, Kind, Result};
use gristmill_base::record::shape::Shape;
use gristmill_base::sync::lock;
use gristmill_storage::input::{InputFile, InputRange};
use gristmill_storage::io::direct::ended_early;
use gristmill_storage::io::overlap::TRANSFER_BYTES;
use gristmill_storage::io::read_ahead::read_into;
use gristmill_storage::io::stream::{File, read_some};
use gristmill_storage::stores::Stores;
use gristmill_storage::{BLOCK_BYTES, Caching, ReadFile};

/// Pieces up to this are read at once, through the page cache, and lie next to each other in memory: for a small file
/// a thread that reads ahead, a second descriptor for direct I/O and whole blocks cost more than its bytes.
const SMALL_BYTES: u64 = 64 << 10;

/// Notes bytes as done, and says whether to stop.
pub type Progress<'a> = &'a dyn Fn(u64) -> Result<()>;

/// Ranges of files: what of them is still to be read.
#[derive(Debug)]
pub struct UnreadRanges<'a> {
    store: &'a Stores,
    files: &'a [InputFile],
    /// Where each file begins in the job's address space.
    starts: &'a [u64],
    left: VecDeque<InputRange>,
}

impl<'a> UnreadRanges<'a> {
    /// All of `pieces`.
    pub fn new(
        store: &'a Stores,
        files: &'a [InputFile],
        starts: &'a [u64],
        pieces: &[InputRange],
    ) -> Self {
        let left = pieces.iter().copied().collect();
        UnreadRanges {
            store,
            files,
            starts,
            left,
        }
    }

    /// Fills the chunk as far as it goes. Leaves it empty where nothing is left.
    pub(super) fn fill<S: Shape>(
        &mut self,
        shape: S,
        chunk: &mut Chunk,
        needed: &MemoryModel,
        progress: Progress<'_>,
    ) -> Result<()> {
        while let Some(piece) = self.left.front().copied() {
            let taken = self.read(shape, chunk, piece, progress)?;
            if taken < piece.bytes {
                if taken == 0 && chunk.is_empty() {
                    return Err(self.too_long(shape, chunk, piece, needed, progress));
                }
                if let Some(first) = self.left.front_mut() {
                    (first.offset, first.bytes) = (piece.offset + taken, piece.bytes - taken);
                }
                return Ok(());
            }
            self.left.pop_front();
        }
        Ok(())
    }

    /// Reads as much of a piece as there is room for; returns how much of it was taken, in whole records.
    fn read<S: Shape>(
        &self,
        shape: S,
        chunk: &mut Chunk,
        piece: InputRange,
        progress: Progress<'_>,
    ) -> Result<u64> {
        let place = chunk.used();
        if piece.bytes <= SMALL_BYTES && piece.bytes <= chunk.room(shape, place) as u64 {
            return self.read_small(shape, chunk, piece, place, progress);
        }
        let input = &self.files[piece.file];
        let file = self.store.open_input(input, Caching::Direct)?;
        let path = input.path.as_typed();
        let lead = (piece.offset % BLOCK_BYTES as u64) as usize;
        let place = chunk.used().next_multiple_of(BLOCK_BYTES);
        let whole = lead as u64 + piece.bytes;
        let (mut end, mut stopped) = (lead, None);
        while stopped.is_none() && (end as u64) < whole {
            let start = end / BLOCK_BYTES * BLOCK_BYTES; // other than the end only at first
            let room = chunk.room(shape, place + start);
            let room = room.next_multiple_of(BLOCK_BYTES); // there is a block to spare
            let next = whole.min((start + room) as u64) as usize;
            if next <= end {
                break;
            }
            if end == lead {
                chunk.begin_piece(place + lead, self.starts[piece.file] + piece.offset);
            }
            let from = piece.offset - lead as u64;
            let blocks = ChunkBlocks {
                from,
                place,
                read: start..next,
                first: end,
            };
            stopped = blocks.read(shape, chunk, (&*file, path), progress)?;
            end = next;
        }
        if end as u64 == whole && stopped.is_none() {
            stopped = end_of_input(shape, chunk);
        } else {
            stopped = stopped.or(chunk.open());
        }
        Ok((stopped.map_or(end, |at| at - place) - lead) as u64)
    }

    /// The same of a small piece that has room, behind what is there: one open, one read.
    fn read_small<S: Shape>(
        &self,
        shape: S,
        chunk: &mut Chunk,
        piece: InputRange,
        place: usize,
        progress: Progress<'_>,
    ) -> Result<u64> {
        let input = &self.files[piece.file];
        let file = self.store.open_input(input, Caching::Cached)?;
        let path = input.path.as_typed();
        chunk.begin_piece(place, self.starts[piece.file] + piece.offset);
        let end = place + piece.bytes as usize;
        let (memory, mut scanner) = chunk.split(shape, end);
        let memory = &mut memory[place..end];
        let read = file.read_at(memory, piece.offset)?;
        if read < memory.len() {
            let wanted = piece.offset + piece.bytes;
            return Err(ended_early(path, wanted, piece.offset + read as u64));
        }
        let stop = scanner.scan(memory, place);
        chunk.settle(shape, end);
        progress(piece.bytes)?;
        let stopped = if stop < end {
            Some(stop)
        } else {
            end_of_input(shape, chunk)
        };
        Ok((stopped.unwrap_or(end) - place) as u64)
    }

    /// The error of a record that no chunk holds: how long it is, and the memory that is needed for such.
    fn too_long<S: Shape>(
        &self,
        shape: S,
        chunk: &Chunk,
        piece: InputRange,
        needed: &MemoryModel,
        progress: Progress<'_>,
    ) -> Error {
        let path = &self.files[piece.file].path;
        match self.length_at(shape, piece, progress) {
            Ok(length) => too_long(chunk, length, needed)
                .with_path(path.as_typed())
                .with("offset", piece.offset)
                .with("record bytes", length),
            Err(error) => error,
        }
    }

    /// The length of the record with which a piece begins, which is longer than memory.
    fn length_at<S: Shape>(
        &self,
        shape: S,
        piece: InputRange,
        progress: Progress<'_>,
    ) -> Result<u64> {
        let file = self
            .store
            .open_input(&self.files[piece.file], Caching::Cached)?;
        let mut block = vec![0; TRANSFER_BYTES];
        let mut length = 0;
        while length < piece.bytes {
            progress(0)?;
            let read = file.read_at(&mut block, piece.offset + length)?;
            let more = shape.rest_length(length as usize, &block[..read]);
            if more.is_some() || read == 0 {
                return Ok(length + more.unwrap_or(0) as u64);
            }
            length += read as u64;
        }
        Ok(piece.bytes)
    }
}

/// Blocks of a file on their way into a chunk: offsets count from the block of the file at `from`, which lies at
/// `place` in the memory.
struct ChunkBlocks {
    from: u64,
    place: usize,
    read: Range<usize>,
    /// Where what was asked for begins in the first block.
    first: usize,
}

impl ChunkBlocks {
    /// Reads and scans. Returns where scanning stopped for want of room.
    fn read<S: Shape>(
        &self,
        shape: S,
        chunk: &mut Chunk,
        (file, path): (&dyn ReadFile, &Path),
        progress: Progress<'_>,
    ) -> Result<Option<usize>> {
        let ChunkBlocks { from, place, .. } = *self;
        let Range { start, end } = self.read.clone();
        let (memory, mut scanner) = chunk.split(shape, place + end.next_multiple_of(BLOCK_BYTES));
        let memory = &mut memory[place + start..];
        let (mut read, mut stopped) = (start, None);
        let done = read_into(file, from + start as u64, memory, TRANSFER_BYTES, |block| {
            let wanted = self.first.max(read)..end.min(read + block.len());
            if !wanted.is_empty() {
                let inside = &block[wanted.start - read..wanted.end - read];
                let stop = scanner.scan(inside, place + wanted.start);
                stopped = (stop < place + wanted.end).then_some(stop);
                progress(inside.len() as u64)?;
            }
            read += block.len();
            match stopped {
                Some(_) => Err(Error::cancelled()), // of the reading only: there is no room for more entries
                None => Ok(()),
            }
        });
        if stopped.is_none() {
            done?;
            if read < end {
                let (wanted, found) = (from + end as u64, from + read as u64);
                return Err(ended_early(path, wanted, found));
            }
        }
        chunk.settle(shape, place + end);
        Ok(stopped)
    }
}

/// Ends a last line that has no newline. Returns where the first record begins that was not taken, if one was not.
fn end_of_input<S: Shape>(shape: S, chunk: &mut Chunk) -> Option<usize> {
    let start = chunk.open()?;
    let ended = shape.kind().record_bytes().is_none() && chunk.end_line(shape);
    (!ended).then_some(start)
}

/// `length`: that of the record.
fn too_long(chunk: &Chunk, length: u64, needed: &MemoryModel) -> Error {
    let message = format!(
        "a record is longer than the {} bytes that a worker has for records",
        chunk.memory_bytes()
    );
    let memory = JobOption::Memory.at_least(needed.bytes(chunk.asked_for(length)));
    Error::new(Kind::Memory, "read the input", message).advise_options(
        "give {} or more, or fewer {}",
        [memory, JobOption::Workers.named()],
    )
}

/// A stream that is read once, by several workers in turn: each takes as much as it has memory for.
#[derive(Debug)]
pub struct SharedStream {
    state: Mutex<StreamState>,
}

#[derive(Debug)]
struct StreamState {
    name: String,
    file: File,
    /// What was read and belongs to the next chunk.
    pending: Vec<u8>,
    chunks: u64,
    /// Bytes read so far.
    bytes: u64,
    ended: bool,
    first: FirstBytes,
}

impl SharedStream {
    /// All that is still to come from `file`, which errors call `name`.
    pub fn new(name: String, file: File) -> Self {
        let state = StreamState {
            name,
            file,
            pending: Vec::new(),
            chunks: 0,
            bytes: 0,
            ended: false,
            first: FirstBytes::default(),
        };
        SharedStream {
            state: Mutex::new(state),
        }
    }

    /// What errors call it.
    pub(super) fn name(&self) -> String {
        let state = lock(&self.state);
        state.name.clone()
    }

    /// The same stream, whose first bytes were read, and looked at, already.
    #[must_use]
    pub fn behind(self, first: Vec<u8>) -> Self {
        let mut state = self
            .state
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        state.bytes = first.len() as u64;
        if !first.is_empty() {
            state.first.pass();
        }
        state.pending = first;
        SharedStream {
            state: Mutex::new(state),
        }
    }

    /// Reads what there is, 0 bytes at the end; `None` where nothing came in time.
    pub(super) fn read(&self, memory: &mut [u8]) -> Result<Option<usize>> {
        let mut state = lock(&self.state);
        if state.pending.is_empty() {
            let read = state.read(memory)?;
            state.bytes += read.unwrap_or(0) as u64;
            return Ok(read);
        }
        let bytes = state.pending.len().min(memory.len());
        let first = state.pending.drain(..bytes);
        memory
            .iter_mut()
            .zip(first)
            .for_each(|(to, byte)| *to = byte);
        Ok(Some(bytes))
    }

    /// Fills the chunk as far as it goes; returns its number in the stream. Leaves it empty where nothing is left.
    pub(super) fn fill<S: Shape>(
        &self,
        shape: S,
        chunk: &mut Chunk,
        needed: &MemoryModel,
        progress: Progress<'_>,
    ) -> Result<u64> {
        let mut state = lock(&self.state);
        let number = state.chunks;
        state.chunks += 1;
        chunk.begin_piece(0, 0);
        state.fill(shape, chunk, progress)?;
        let left = state.pending.len() as u64;
        if state.ended
            && left > 0
            && shape
                .kind()
                .record_bytes()
                .is_some_and(|all| left < all as u64)
        {
            let message = format!("it ends {left} bytes into a record");
            return Err(Error::new(Kind::BadInput, "read the input", message)
                .with("file", &state.name)
                .with("offset", state.bytes - left)
                .advise("check that it was written whole, and that it holds such records"));
        }
        if chunk.is_empty() && left > 0 {
            let offset = state.bytes - left;
            let length = state.length(shape, progress)?;
            return Err(too_long(chunk, length, needed)
                .with("file", &state.name)
                .with("offset", offset)
                .with("record bytes", length));
        }
        Ok(number)
    }
}

impl StreamState {
    /// Takes what is pending, then reads on; what the chunk has no room for is pending again.
    fn fill<S: Shape>(
        &mut self,
        shape: S,
        chunk: &mut Chunk,
        progress: Progress<'_>,
    ) -> Result<()> {
        let mut pending = std::mem::take(&mut self.pending);
        let (mut taken, mut stopped) = (0, None);
        while stopped.is_none() && !(self.ended && taken == pending.len()) {
            let from = chunk.used();
            let room = chunk.room(shape, from).min(TRANSFER_BYTES);
            if room == 0 {
                break;
            }
            let (memory, mut scanner) = chunk.split(shape, from + room);
            let memory = &mut memory[from..from + room];
            let bytes = if taken < pending.len() {
                let bytes = memory.len().min(pending.len() - taken);
                memory[..bytes].copy_from_slice(&pending[taken..taken + bytes]);
                taken += bytes;
                bytes
            } else {
                progress(0)?;
                let Some(bytes) = self.read(memory)? else {
                    continue;
                };
                self.ended = bytes == 0;
                self.bytes += bytes as u64;
                progress(bytes as u64)?;
                bytes
            };
            let stop = scanner.scan(&memory[..bytes], from);
            stopped = (stop < from + bytes).then_some(stop);
            chunk.settle(shape, from + bytes);
        }
        pending.drain(..taken);
        let ended = stopped.is_none() && self.ended && pending.is_empty();
        let rest = if ended {
            end_of_input(shape, chunk)
        } else {
            stopped.or(chunk.open())
        };
        if let Some(start) = rest {
            pending.splice(..0, chunk.rest(start).iter().copied());
        }
        self.pending = pending;
        Ok(())
    }

    /// Bytes of the record that is pending, and goes on in the stream; those of the longest one, where it does not end before.
    fn length<S: Shape>(&mut self, shape: S, progress: Progress<'_>) -> Result<u64> {
        let pending = std::mem::take(&mut self.pending);
        if let Some(length) = shape.length(&pending) {
            return Ok(length as u64);
        }
        let mut length = pending.len();
        let mut block = vec![0; TRANSFER_BYTES];
        while length < u32::MAX as usize {
            progress(0)?;
            let Some(read) = self.read(&mut block)? else {
                continue;
            };
            let more = block.get(..read).unwrap_or_default();
            if let Some(rest) = shape.rest_length(length, more) {
                return Ok((length + rest) as u64);
            }
            if read == 0 {
                break;
            }
            length += read;
        }
        Ok(length as u64)
    }

    /// Reads what there is; `None` where nothing came in time.
    fn read(&mut self, memory: &mut [u8]) -> Result<Option<usize>> {
        let failed = |error| Error::from_io("read the input", Path::new(&self.name), &error);
        let read = read_some(&mut self.file, memory).map_err(failed)?;
        let bytes = memory.get(..read.unwrap_or(0)).unwrap_or_default();
        self.first.look(bytes, &self.name)?;
        Ok(read)
    }
}

//! Where chunks are filled from: ranges of files, or a stream that is read once.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::chunk::Chunk;
use crate::error::{Error, Kind, Result};
use crate::record::shape::Shape;
use crate::storage::direct::ended_early;
use crate::storage::input::{InputFile, Piece};
use crate::storage::overlap::{TRANSFER_BYTES, read_into};
use crate::storage::{BLOCK_BYTES, Caching, Store};

/// Notes bytes as done, and says whether to stop.
pub type Progress<'a> = &'a dyn Fn(u64) -> Result<()>;

/// Ranges of files: what of them is still to be read.
#[derive(Debug)]
pub struct Pieces<'a> {
    store: &'a dyn Store,
    files: &'a [InputFile],
    /// Where each file begins in the job's address space.
    starts: &'a [u64],
    left: VecDeque<Piece>,
}

impl<'a> Pieces<'a> {
    /// All of `pieces`.
    pub fn new(
        store: &'a dyn Store,
        files: &'a [InputFile],
        starts: &'a [u64],
        pieces: &[Piece],
    ) -> Self {
        let left = pieces.iter().copied().collect();
        Pieces {
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
        progress: Progress<'_>,
    ) -> Result<()> {
        while let Some(piece) = self.left.front().copied() {
            let taken = self.read(shape, chunk, piece, progress)?;
            if taken < piece.bytes {
                let file = &self.files[piece.file].path;
                if taken == 0 && chunk.is_empty() {
                    return Err(too_long(chunk).with_path(file).with("offset", piece.offset));
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
        piece: Piece,
        progress: Progress<'_>,
    ) -> Result<u64> {
        let lead = (piece.offset % BLOCK_BYTES as u64) as usize;
        let place = chunk.used.next_multiple_of(BLOCK_BYTES);
        let room = chunk.arena.len().saturating_sub(place + BLOCK_BYTES); // a block for the end of a last line
        let end = (lead as u64 + piece.bytes).min(room as u64) as usize;
        if end <= lead || chunk.is_full() {
            return Ok(0);
        }
        let path = &self.files[piece.file].path;
        let file = self.store.open(path, Caching::Direct)?;
        chunk.begin_piece(place + lead, self.starts[piece.file] + piece.offset);
        let mut arena = std::mem::take(&mut chunk.arena);
        let memory = &mut arena[place..place + end.next_multiple_of(BLOCK_BYTES)];
        let (mut read, mut stopped) = (0, None);
        let from = piece.offset - lead as u64;
        let done = read_into(&*file, from, memory, TRANSFER_BYTES, |block| {
            let (first, last) = (lead.saturating_sub(read), block.len().min(end - read));
            let block_end = read + block.len();
            if first < last {
                let stop = chunk.scan(shape, &block[first..last], place + read + first);
                stopped = (stop < place + read + last).then_some(stop);
                progress((last - first) as u64)?;
            }
            read = block_end;
            match stopped {
                Some(_) => Err(Error::cancelled()), // of the reading only: there is no room for more entries
                None => Ok(()),
            }
        });
        chunk.arena = arena;
        if stopped.is_none() {
            done?;
        }
        if stopped.is_none() && read < end {
            let (wanted, found) = (from + end as u64, from + read as u64);
            return Err(ended_early(path, wanted, found));
        }
        chunk.used = place + end;
        let whole = end as u64 == lead as u64 + piece.bytes;
        let stopped = stopped.or_else(|| end_of_input(shape, chunk, whole));
        Ok(stopped.map_or(end, |at| at - place) as u64 - lead as u64)
    }
}

/// Ends a last line that has no newline. Returns where the first record begins that was not taken, if one was not.
fn end_of_input<S: Shape>(shape: S, chunk: &mut Chunk, ended: bool) -> Option<usize> {
    let (start, _) = chunk.unfinished()?;
    if ended && shape.length(b"\n") == Some(1) {
        let end = chunk.used;
        chunk.arena[end] = b'\n';
        chunk.used = end + 1;
        if chunk.scan(shape, b"\n", end) == end + 1 {
            return None;
        }
    }
    Some(start)
}

fn too_long(chunk: &Chunk) -> Error {
    let message = format!(
        "a record is longer than the {} bytes that a worker has for records",
        chunk.arena.len()
    );
    Error::new(Kind::Memory, "read the input", message)
        .advise("give a larger --memory or fewer --workers")
}

/// A stream that is read once, by several workers in turn: each takes as much as it has memory for.
#[derive(Debug)]
pub struct Stream {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    name: String,
    file: File,
    /// What was read and belongs to the next chunk.
    pending: Vec<u8>,
    chunks: u64,
    ended: bool,
}

/// Waits until a stream has something to read, or has ended; false after a while without.
pub fn wait_for(file: &File) -> bool {
    let mut waiting = libc::pollfd {
        fd: file.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one valid descriptor, and the memory of one answer.
    unsafe { libc::poll(&raw mut waiting, 1, WAIT_MS) != 0 }
}

/// How long to wait for a stream before looking whether the job was cancelled.
const WAIT_MS: i32 = 50;

impl Stream {
    /// All that is still to come from `file`, which errors call `name`.
    pub fn new(name: String, file: File) -> Self {
        let state = State {
            name,
            file,
            pending: Vec::new(),
            chunks: 0,
            ended: false,
        };
        Stream {
            state: Mutex::new(state),
        }
    }

    /// Fills the chunk as far as it goes; returns its number in the stream. Leaves it empty where nothing is left.
    pub(super) fn fill<S: Shape>(
        &self,
        shape: S,
        chunk: &mut Chunk,
        progress: Progress<'_>,
    ) -> Result<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let number = state.chunks;
        state.chunks += 1;
        chunk.begin_piece(0, 0);
        let mut arena = std::mem::take(&mut chunk.arena);
        let done = state.fill(shape, chunk, &mut arena, progress);
        chunk.arena = arena;
        done?;
        let rest = match (chunk.is_full(), state.ended) {
            (false, true) => end_of_input(shape, chunk, true),
            _ => chunk.unfinished().map(|(start, _)| start),
        };
        if let Some(start) = rest.filter(|_| state.pending.is_empty()) {
            state.pending = chunk.arena[start..chunk.used].to_vec();
        }
        if state.ended && !state.pending.is_empty() && shape.length(b"\n") != Some(1) {
            let message = format!("it ends {} bytes into a record", state.pending.len());
            return Err(Error::new(Kind::BadInput, "read the input", message)
                .with("file", &state.name)
                .advise("look whether it was written whole, and whether it holds such records"));
        }
        if chunk.is_empty() && !state.pending.is_empty() {
            return Err(too_long(chunk).with("file", &state.name));
        }
        Ok(number)
    }
}

impl State {
    /// Takes what is pending, then reads on. Sets what is pending again where entries have run out.
    fn fill<S: Shape>(
        &mut self,
        shape: S,
        chunk: &mut Chunk,
        arena: &mut [u8],
        progress: Progress<'_>,
    ) -> Result<()> {
        let room = arena.len() - BLOCK_BYTES; // a block for the end of a last line
        let pending = std::mem::take(&mut self.pending);
        let mut filled = pending.len();
        arena[..filled].copy_from_slice(&pending);
        let mut from = 0;
        loop {
            let stop = chunk.scan(shape, &arena[from..filled], from);
            chunk.used = filled;
            if stop < filled {
                self.pending = arena[stop..filled].to_vec();
                return Ok(());
            }
            if filled == room || chunk.is_full() || self.ended {
                return Ok(());
            }
            progress(0)?;
            let end = room.min(filled + TRANSFER_BYTES);
            from = filled;
            match self.read(&mut arena[from..end])? {
                Some(0) => self.ended = true,
                Some(bytes) => filled += bytes,
                None => {}
            }
            progress((filled - from) as u64)?;
        }
    }

    /// Reads what there is; `None` where nothing came in time.
    fn read(&mut self, memory: &mut [u8]) -> Result<Option<usize>> {
        if !wait_for(&self.file) {
            return Ok(None);
        }
        match self.file.read(memory) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(Error::from_io(
                "read the input",
                Path::new(&self.name),
                &error,
            )),
        }
    }
}

//! Writes a run: records come in sorted order, in pieces of any size; CRCs are taken on the way.
//!
//! ```text
//!   room ─▶ caller fills ─▶ advance    |....hashed....|..pending..| room ...
//!                                      buffer of the OverlappedWriter
//! ```
//!
//! Bytes are hashed where they lie in the writer's buffer, some thousand at a time: a CRC over a hundred bytes
//! takes three times as long a byte (record/checksum.rs). The rule that must hold: no byte leaves the buffer before
//! it is hashed.

use std::sync::Arc;

use super::format::{BLOCK_BYTES, HEADER_BYTES, RunHeader, RunIndex};
use crate::error::{Error, Result};
use crate::record::shape::ShapeKind;
use crate::storage::WriteFile;
use crate::storage::overlap::OverlappedWriter;

/// Pending bytes worth hashing: `crc32fast` is at its full speed, and they are still in the first-level cache.
const HASH_BYTES: usize = 4096;

/// A run file being written, over a writer that the caller runs.
pub struct RunWriter<'w> {
    writer: &'w mut OverlappedWriter,
    shape: ShapeKind,
    header_crc: u32,
    data_bytes: u64,
    /// The last bytes of the buffer, not hashed yet.
    pending: usize,
    block: crc32fast::Hasher,
    block_bytes: usize,
    block_crcs: Vec<u32>,
}

impl<'w> RunWriter<'w> {
    /// Begins a run in an empty `file`, created with the length that [`file_bytes`](super::file_bytes) says, or
    /// with 0 where it is not known yet. The writer's buffers have at least 4096 bytes.
    ///
    /// ```
    /// use gristmill_engine::storage::{LocalDisk as _, Output as _};
    /// use std::sync::Arc;
    /// use gristmill_engine::record::shape::{Lines, Shape};
    /// use gristmill_engine::sorted_run::{RunFile, RunHeader, RunWriter};
    /// use gristmill_engine::storage::{Caching, Store, memory::Memory, overlap::OverlappedWriter};
    /// let store = Memory::with_room_for(1 << 20);
    /// let file = Arc::from(store.create("/run-0".as_ref(), 0, Caching::Direct)?);
    /// let shape = Lines { descending: false }.kind();
    /// let header = RunHeader { shape, job_id: "a-job".into(), number: 0 };
    /// OverlappedWriter::run(&mut Vec::new(), 1 << 16, |writer| {
    ///     let mut run = RunWriter::begin(writer, file, &header)?;
    ///     run.append(b"one\n")?;
    ///     run.append(b"two\n")?;
    ///     let sum = [b"one\n", b"two\n"].map(|line| u128::from(crc32fast::hash(line))).iter().sum();
    ///     run.finish(&[(4, 1), (8, 2)], sum)
    /// })?;
    /// let run = RunFile::open(&store, "/run-0".as_ref())?;
    /// assert_eq!(run.segment(1..2)?, (4..8, 1));
    /// # Ok::<(), gristmill_engine::Error>(())
    /// ```
    pub fn begin(
        writer: &'w mut OverlappedWriter,
        file: Arc<dyn WriteFile>,
        header: &RunHeader,
    ) -> Result<Self> {
        let bytes = header.encode()?;
        let (_, header_crc) = RunHeader::decode(&bytes)?; // what cannot be read again is not written
        writer.begin(file, 0)?;
        writer.room(HEADER_BYTES)?[..HEADER_BYTES].copy_from_slice(bytes.as_slice());
        writer.advance(HEADER_BYTES);
        Ok(RunWriter {
            writer,
            shape: header.shape,
            header_crc,
            data_bytes: 0,
            pending: 0,
            block: crc32fast::Hasher::new(),
            block_bytes: 0,
            block_crcs: Vec::new(),
        })
    }

    /// Free memory for at least `bytes` bytes, which are at most the size of a buffer.
    #[inline]
    pub fn room(&mut self, bytes: usize) -> Result<&mut [u8]> {
        if self.pending >= HASH_BYTES || bytes > self.writer.left() {
            self.hash_pending();
        }
        self.writer.room(bytes)
    }

    /// Says that the first `bytes` of the room are filled.
    #[inline]
    pub fn advance(&mut self, bytes: usize) {
        self.writer.advance(bytes);
        self.pending += bytes;
        self.data_bytes += bytes as u64;
    }

    /// Appends a record, of any length.
    #[inline]
    pub fn append(&mut self, record: &[u8]) -> Result<()> {
        if record.len() > HASH_BYTES {
            return self.append_long(record);
        }
        self.room(record.len())?[..record.len()].copy_from_slice(record);
        self.advance(record.len());
        Ok(())
    }

    /// In pieces that any buffer has room for.
    #[cold]
    fn append_long(&mut self, record: &[u8]) -> Result<()> {
        record
            .chunks(HASH_BYTES)
            .try_for_each(|piece| self.append(piece))
    }

    /// The bytes of records so far.
    pub fn data_bytes(&self) -> u64 {
        self.data_bytes
    }

    /// Writes the index: for each bucket the bytes and the records up to its end, and the sum of the records' CRCs.
    /// The last end must be what was written. The file is whole once the writer has written what it was given.
    pub fn finish(mut self, bucket_ends: &[(u64, u64)], checksum: u128) -> Result<RunIndex> {
        self.hash_pending();
        if self.block_bytes > 0 {
            self.end_block();
        }
        let crcs = std::mem::take(&mut self.block_crcs);
        let index = RunIndex::new(self.shape, bucket_ends, crcs, self.data_bytes, checksum)
            .map_err(|message| Error::bug("write a run file", message))?;
        for piece in index.encode_tail(self.header_crc)?.chunks(HASH_BYTES) {
            self.writer.room(piece.len())?[..piece.len()].copy_from_slice(piece);
            self.writer.advance(piece.len());
        }
        Ok(index)
    }

    /// Hashes what was filled since the last time, block by block.
    fn hash_pending(&mut self) {
        while self.pending > 0 {
            let bytes = self.pending.min(BLOCK_BYTES - self.block_bytes);
            self.block
                .update(&self.writer.latest(self.pending)[..bytes]);
            self.pending -= bytes;
            self.block_bytes += bytes;
            if self.block_bytes == BLOCK_BYTES {
                self.end_block();
            }
        }
    }

    fn end_block(&mut self) {
        self.block_crcs
            .push(std::mem::take(&mut self.block).finalize());
        self.block_bytes = 0;
    }
}

//! Writes a run: records come in sorted order, in pieces of any size; CRCs are taken on the way.
//!
//! ```text
//!   room ─▶ caller fills ─▶ advance    |....hashed....|..pending..| room ...
//!                                      buffer of the OverlappedWriter
//! ```
//!
//! Bytes are hashed where they lie in the writer's buffer, some thousand at a time: a CRC over a hundred bytes
//! takes three times as long a byte (record/checksum.rs). Where blocks are compressed, a whole block is looked at at once,
//! and what it becomes takes its place in the buffer: to append a record is the same. The rule that must hold: no byte
//! leaves the buffer before it is hashed, as it lies in the file.

use std::sync::Arc;

use super::compression::{BLOCK_BYTES, BlockEncoder};
use super::format::RunIndex;
use super::header::{HEADER_BYTES, RunHeader};
use crate::WriteFile;
use crate::io::overlap::OverlappedWriter;
use gristmill_base::error::{Error, Result};
use gristmill_base::record::shape::ShapeKind;

/// Pending bytes worth hashing: `crc32fast` is at its full speed, and they are still in the first-level cache.
const HASH_BYTES: usize = 4096;

/// A run file being written, over a writer that the caller runs.
pub struct RunWriter<'w> {
    writer: &'w mut OverlappedWriter,
    file: Arc<dyn WriteFile>,
    shape: ShapeKind,
    header_crc: u32,
    data_bytes: u64,
    /// The last bytes of the buffer, not hashed yet.
    pending: usize,
    /// So many of them are worth hashing, or compressing.
    enough: usize,
    /// What compresses blocks, if they are.
    encoder: Option<BlockEncoder>,
    /// Where each block ends among the stored bytes, if they are compressed.
    stored_ends: Vec<u64>,
    block: crc32fast::Hasher,
    block_bytes: usize,
    block_crcs: Vec<u32>,
}

impl<'w> RunWriter<'w> {
    /// Begins a run in an empty `file`, created with the length that [`file_bytes`](super::file_bytes) says, or
    /// with 0 where it is not known yet; one that is compressed with any length, of which it gives back what it does not
    /// need. The writer's buffers have at least 4096 bytes, those of a compressed run two blocks.
    ///
    /// ```
    /// use gristmill_storage::{LocalDisk as _, OutputStore as _};
    /// use std::sync::Arc;
    /// use gristmill_base::record::shape::{LineShape, Shape};
    /// use gristmill_storage::sorted_run::{RunCompression, RunFile, RunHeader, RunWriter};
    /// use gristmill_storage::{Caching, Store, memory::Memory, io::overlap::OverlappedWriter};
    /// let store = Memory::with_room_for(1 << 20);
    /// let file = Arc::from(store.create("/run-0".as_ref(), 0, Caching::Direct)?);
    /// let shape = LineShape { descending: false }.kind();
    /// let compression = RunCompression::None;
    /// let header = RunHeader { shape, job_id: "a-job".into(), number: 0, compression };
    /// OverlappedWriter::run(&mut Vec::new(), 1 << 16, |writer| {
    ///     let mut run = RunWriter::begin(writer, file, &header)?;
    ///     run.append(b"one\n")?;
    ///     run.append(b"two\n")?;
    ///     let sum = [b"one\n", b"two\n"].map(|line| u128::from(crc32fast::hash(line))).iter().sum();
    ///     run.finish(&[(4, 1), (8, 2)], sum)
    /// })?;
    /// let run = RunFile::open(&store, "/run-0".as_ref())?;
    /// assert_eq!(run.segment(1..2)?, (4..8, 1));
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    pub fn begin(
        writer: &'w mut OverlappedWriter,
        file: Arc<dyn WriteFile>,
        header: &RunHeader,
    ) -> Result<Self> {
        let bytes = header.encode()?;
        let (_, header_crc) = RunHeader::decode(&bytes)?; // what cannot be read again is not written
        let encoder = BlockEncoder::new(header.compression)?;
        writer.begin(Arc::clone(&file), 0)?;
        if encoder.is_some() && writer.left() < 2 * BLOCK_BYTES {
            return Err(Error::bug(
                "write a run file",
                "its writer has no room for two blocks",
            ));
        }
        writer.room(HEADER_BYTES)?[..HEADER_BYTES].copy_from_slice(bytes.as_slice());
        writer.advance(HEADER_BYTES);
        Ok(RunWriter {
            writer,
            file,
            shape: header.shape,
            header_crc,
            data_bytes: 0,
            pending: 0,
            enough: if encoder.is_some() {
                BLOCK_BYTES
            } else {
                HASH_BYTES
            },
            encoder,
            stored_ends: Vec::new(),
            block: crc32fast::Hasher::new(),
            block_bytes: 0,
            block_crcs: Vec::new(),
        })
    }

    /// Free memory for at least `bytes` bytes, which are at most the size of a buffer; of a compressed run at most 4096.
    #[inline]
    pub fn room(&mut self, bytes: usize) -> Result<&mut [u8]> {
        if self.pending >= self.enough || bytes > self.writer.left() {
            self.settle(bytes)?;
        }
        self.writer.room(bytes)
    }

    /// Does what is due before there is room for `bytes` bytes more.
    fn settle(&mut self, bytes: usize) -> Result<()> {
        if self.encoder.is_none() {
            self.hash_pending();
            return Ok(());
        }
        while self.pending >= BLOCK_BYTES {
            self.compress_block(BLOCK_BYTES)?;
        }
        if bytes > self.writer.left() {
            self.writer.send_before(self.pending)?;
        }
        Ok(())
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
        self.end_data()?;
        let blocks = std::mem::take(&mut self.block_crcs);
        let stored = self
            .encoder
            .as_ref()
            .map(|_| std::mem::take(&mut self.stored_ends));
        let index = RunIndex::new(
            self.shape,
            bucket_ends,
            (blocks, stored),
            self.data_bytes,
            checksum,
        )
        .map_err(|message| Error::bug("write a run file", message))?;
        if self.encoder.is_some() {
            self.file.cut(index.file_bytes()?)?;
        }
        for piece in index.encode_tail(self.header_crc)?.chunks(HASH_BYTES) {
            self.writer.room(piece.len())?[..piece.len()].copy_from_slice(piece);
            self.writer.advance(piece.len());
        }
        Ok(index)
    }

    /// The last block, which may be short.
    fn end_data(&mut self) -> Result<()> {
        self.settle(0)?;
        if self.encoder.is_some() && self.pending > 0 {
            self.compress_block(self.pending)?;
        }
        if self.block_bytes > 0 {
            self.end_block();
        }
        Ok(())
    }

    /// Puts what the first `bytes` pending bytes, a block, are compressed to in their place.
    fn compress_block(&mut self, bytes: usize) -> Result<()> {
        let Some(encoder) = &mut self.encoder else {
            return Ok(());
        };
        let block = &self.writer.latest(self.pending)[..bytes];
        let (crc, stored) = match encoder.encode(block)? {
            Some(packed) => {
                self.writer.shorten(self.pending, bytes, packed);
                (crc32fast::hash(packed), packed.len())
            }
            None => (crc32fast::hash(block), bytes),
        };
        let before = self.stored_ends.last().copied().unwrap_or(0);
        self.stored_ends.push(before + stored as u64);
        self.block_crcs.push(crc);
        self.pending -= bytes;
        Ok(())
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

//! An output file that is compressed while it is written.
//!
//! ```text
//!   write_at, in order ──▶ encoder ──▶ blocks ──▶ file
//! ```
//!
//! The file is one member, in the sense of gzip. Its bytes must come in order, from the first on: a compressed stream cannot be
//! written out of order.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use super::decode::{error_of, wrapped};
use super::{Codec, Encoder, encoder};
use crate::WriteFile;
use crate::objects::Upload;
use crate::objects::part_uploader::PartUploader;
use gristmill_base::error::{Error, Result};
use gristmill_base::sync::lock;

/// Compressed bytes in one write to the file.
const BLOCK_BYTES: usize = 1 << 20;

/// A file that compresses what is written to it.
#[derive(Debug)]
pub struct CompressedFile {
    file: Arc<dyn WriteFile>,
    state: Mutex<EncodingState>,
}

#[derive(Debug)]
struct EncodingState {
    /// `None` once the file has ended.
    encoder: Option<Encoder<EncodedBlocks>>,
    /// Uncompressed bytes that were taken so far.
    taken: u64,
}

impl CompressedFile {
    /// Compresses what is written, and writes that to `file`.
    ///
    /// ```
    /// use std::io::Read;
    /// use std::sync::Arc;
    /// use gristmill_storage::codec::{Codec, Coding, open, written::CompressedFile};
    /// use gristmill_storage::{Caching, OutputStore, WriteFile, memory::Memory};
    /// let (store, path) = (Memory::with_room_for(1000), "/a.zst".as_ref());
    /// let file = CompressedFile::new(Arc::from(store.create(path, 0, Caching::Cached)?), Codec::Zstd)?;
    /// file.write_at(b"two ", 0)?;
    /// file.write_at(b"words", 4)?;
    /// file.finish()?;
    /// let mut text = String::new();
    /// open(&store, path, Caching::Cached, Coding::Detect)?.read_to_string(&mut text)?;
    /// assert_eq!(text, "two words");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(file: Arc<dyn WriteFile>, codec: Codec) -> Result<Self> {
        let blocks = EncodedBlocks {
            file: Arc::clone(&file),
            block: Vec::with_capacity(BLOCK_BYTES),
            at: 0,
        };
        let encoder = Some(encoder(codec, blocks, None)?);
        let state = Mutex::new(EncodingState { encoder, taken: 0 });
        Ok(CompressedFile { file, state })
    }
}

impl WriteFile for CompressedFile {
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        let mut state = lock(&self.state);
        if offset != state.taken {
            let message = format!("compressed bytes end at {}, not at {offset}", state.taken);
            return Err(Error::bug("write the output", message));
        }
        state.taken += data.len() as u64;
        let Some(encoder) = &mut state.encoder else {
            return Err(Error::bug("write the output", "the file has ended"));
        };
        let written = encoder.write_all(data);
        written.map_err(|error| error_of(error, "the output".as_ref()))
    }

    fn sync(&self) -> Result<()> {
        self.end()?;
        self.file.sync()
    }

    fn hand_over(&self) -> Result<()> {
        self.file.hand_over()
    }

    fn send_by(&self, sending: &Arc<PartUploader>) {
        self.file.send_by(sending);
    }

    fn finish(&self) -> Result<Option<Upload>> {
        self.end()?;
        self.file.finish()
    }
}

impl CompressedFile {
    /// Ends the compressed stream and writes what is left of it; a second call does nothing.
    fn end(&self) -> Result<()> {
        let mut state = lock(&self.state);
        let Some(encoder) = state.encoder.take() else {
            return Ok(());
        };
        let ended = encoder.finish().and_then(|mut blocks| blocks.send());
        ended.map_err(|error| error_of(error, "the output".as_ref()))
    }
}

/// Collects compressed bytes into blocks, and writes each block to the file.
#[derive(Debug)]
struct EncodedBlocks {
    file: Arc<dyn WriteFile>,
    block: Vec<u8>,
    /// Where in the file the block begins.
    at: u64,
}

impl EncodedBlocks {
    fn send(&mut self) -> io::Result<()> {
        if !self.block.is_empty() {
            let written = self.file.write_at(&self.block, self.at);
            written.map_err(wrapped)?;
            self.at += self.block.len() as u64;
            self.block.clear();
        }
        Ok(())
    }
}

impl Write for EncodedBlocks {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if self.block.len() == BLOCK_BYTES {
            self.send()?;
        }
        let count = data.len().min(BLOCK_BYTES - self.block.len());
        self.block
            .extend_from_slice(data.get(..count).unwrap_or_default());
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

//! A file of a store whose bytes are compressed on their way to it.
//!
//! ```text
//!   write_at, in order ──▶ encoder ──▶ blocks ──▶ file
//! ```
//!
//! A range of the output that goes to a file of its own is one member. Bytes come in order, from the first on: there is no other
//! way to compress them.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use super::decode::{error_of, wrapped};
use super::{Codec, Encoder, encoder};
use crate::error::{Error, Result};
use crate::storage::WriteFile;
use crate::storage::objects::Upload;
use crate::storage::objects::sending::Sending;

/// Compressed bytes that are written at once.
const BLOCK_BYTES: usize = 1 << 20;

/// The file.
#[derive(Debug)]
pub struct CompressedFile {
    file: Arc<dyn WriteFile>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Until the file has ended.
    encoder: Option<Encoder<Blocks>>,
    /// Bytes that were taken.
    taken: u64,
}

impl CompressedFile {
    /// Compresses what is written, and writes that to `file`.
    ///
    /// ```
    /// use std::io::Read;
    /// use std::sync::Arc;
    /// use gristmill_engine::codec::{Codec, Coding, open, written::CompressedFile};
    /// use gristmill_engine::storage::{Caching, Output, WriteFile, memory::Memory};
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
        let blocks = Blocks {
            file: Arc::clone(&file),
            block: Vec::with_capacity(BLOCK_BYTES),
            at: 0,
        };
        let encoder = Some(encoder(codec, blocks, None)?);
        let state = Mutex::new(State { encoder, taken: 0 });
        Ok(CompressedFile { file, state })
    }
}

impl WriteFile for CompressedFile {
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
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

    fn send_by(&self, sending: &Arc<Sending>) {
        self.file.send_by(sending);
    }

    fn finish(&self) -> Result<Option<Upload>> {
        self.end()?;
        self.file.finish()
    }
}

impl CompressedFile {
    /// Writes what is left, and the end of the format, if that was not done.
    fn end(&self) -> Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(encoder) = state.encoder.take() else {
            return Ok(());
        };
        let ended = encoder.finish().and_then(|mut blocks| blocks.send());
        ended.map_err(|error| error_of(error, "the output".as_ref()))
    }
}

/// Compressed bytes on their way.
#[derive(Debug)]
struct Blocks {
    file: Arc<dyn WriteFile>,
    block: Vec<u8>,
    /// Where in the file the block begins.
    at: u64,
}

impl Blocks {
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

impl Write for Blocks {
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

//! The block framing of Hadoop's snappy and lz4 codecs, written:
//!
//! ```text
//!   | decoded bytes, u32 BE | compressed bytes, u32 BE | raw block | ...
//! ```
//!
//! and bytes compressed at once, by any codec.

use std::io::{self, Write};

use gristmill_storage::codec::{Codec, encoder};

/// Decoded bytes of a block: Hadoop's buffer of 256 kB, less what a block that does not compress may grow by.
const BLOCK_BYTES: usize = 200 << 10;

/// Compresses what is written to it.
#[derive(Debug)]
pub struct HadoopBlockEncoder<W> {
    codec: Codec,
    writer: W,
    block: Vec<u8>,
}

impl<W: Write> HadoopBlockEncoder<W> {
    /// An encoder to `writer`; `codec` is snappy or lz4.
    pub fn new(codec: Codec, writer: W) -> Self {
        HadoopBlockEncoder {
            codec,
            writer,
            block: Vec::with_capacity(BLOCK_BYTES),
        }
    }

    fn write_block(&mut self) -> io::Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let compressed = match self.codec {
            Codec::Lz4 => lz4_flex::block::compress(&self.block),
            _ => snap::raw::Encoder::new()
                .compress_vec(&self.block)
                .map_err(io::Error::other)?,
        };
        let number = |len: usize| u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes();
        self.writer.write_all(&number(self.block.len()))?;
        self.writer.write_all(&number(compressed.len()))?;
        self.writer.write_all(&compressed)?;
        self.block.clear();
        Ok(())
    }

    /// Writes what is left; gives the writer back.
    pub fn finish(mut self) -> io::Result<W> {
        self.write_block()?;
        Ok(self.writer)
    }
}

impl<W: Write> Write for HadoopBlockEncoder<W> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let room = (BLOCK_BYTES - self.block.len()).min(data.len());
        self.block
            .extend_from_slice(data.get(..room).unwrap_or_default());
        if self.block.len() == BLOCK_BYTES {
            self.write_block()?;
        }
        Ok(room)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Appends `data`, compressed as one stream.
pub(super) fn compress(codec: Codec, data: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    match codec {
        Codec::Snappy | Codec::Lz4 => {
            let mut blocks = HadoopBlockEncoder::new(codec, &mut *out);
            blocks.write_all(data)?;
            blocks.finish()?;
        }
        _ => {
            let mut encoder = encoder(codec, &mut *out, None).map_err(io::Error::other)?;
            encoder.write_all(data)?;
            encoder.finish()?;
        }
    }
    Ok(())
}

//! Encoders: bytes as a compressed stream of one member.
//!
//! The same data give the same bytes, however they were cut into writes: data are gathered into blocks of one
//! size before a library sees them, `flush` ends no block, and no header holds a time or a name.

use std::io::{self, Write};

use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};

use super::{Codec, SNAPPY};
use gristmill_base::error::{Error, Kind, Result};

/// How much a library gets at once: what snappy puts into one chunk.
const GATHER_BYTES: usize = 64 << 10;

/// A writer that compresses. What it wrote is whole only after [`Encoder::finish`].
pub struct Encoder<W: Write> {
    encoder: EncoderKind<W>,
    gathered: Vec<u8>,
    any: bool,
}

enum EncoderKind<W: Write> {
    Gzip(flate2::write::GzEncoder<W>),
    Deflate(flate2::write::ZlibEncoder<W>),
    Bzip2(bzip2::write::BzEncoder<W>),
    Zstd(Box<zstd::stream::write::Encoder<'static, W>>),
    Lz4(Box<FrameEncoder<W>>),
    Xz(liblzma::write::XzEncoder<W>),
    Snappy(Box<snap::write::FrameEncoder<W>>),
}

/// Compresses into `writer` with a checksum. `level` is one of [`Codec::levels`]; snappy is written in its own framing,
/// lz4 in frames.
///
/// # Errors
/// A level that the codec has not, or no memory.
///
/// ```
/// use std::io::Write;
/// use gristmill_storage::codec::{Codec, encoder};
/// let mut encoder = encoder(Codec::Zstd, Vec::new(), Some(19))?;
/// encoder.write_all(&[7; 100_000])?;
/// assert!(encoder.finish()?.len() < 100);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn encoder<W: Write>(codec: Codec, writer: W, level: Option<i32>) -> Result<Encoder<W>> {
    let (levels, usual) = codec.levels();
    let level = level.unwrap_or(usual);
    if !levels.contains(&level) {
        let (least, most) = levels.into_inner();
        let message = format!("{codec} has no level {level}");
        return Err(Error::new(Kind::BadOption, "compress the output", message)
            .advise(format!("choose one from {least} to {most}, or none")));
    }
    let failed = |error: &io::Error| {
        Error::new(Kind::Memory, "compress the output", error.to_string()).with("codec", codec)
    };
    let encoder = match codec {
        Codec::Gzip => EncoderKind::Gzip(flate2::write::GzEncoder::new(
            writer,
            flate2::Compression::new(level as u32),
        )),
        Codec::Deflate => EncoderKind::Deflate(flate2::write::ZlibEncoder::new(
            writer,
            flate2::Compression::new(level as u32),
        )),
        Codec::Bzip2 => EncoderKind::Bzip2(bzip2::write::BzEncoder::new(
            writer,
            bzip2::Compression::new(level as u32),
        )),
        Codec::Zstd => {
            let mut encoder =
                zstd::stream::write::Encoder::new(writer, level).map_err(|error| failed(&error))?;
            encoder
                .include_checksum(true)
                .map_err(|error| failed(&error))?;
            EncoderKind::Zstd(Box::new(encoder))
        }
        Codec::Lz4 => {
            let frame = FrameInfo::new()
                .block_size(BlockSize::Max1MB)
                .block_mode(BlockMode::Independent)
                .content_checksum(true);
            EncoderKind::Lz4(Box::new(FrameEncoder::with_frame_info(frame, writer)))
        }
        Codec::Xz => {
            let check = liblzma::stream::Check::Crc64;
            let stream = liblzma::stream::Stream::new_easy_encoder(level as u32, check)
                .map_err(|error| failed(&error.into()))?;
            EncoderKind::Xz(liblzma::write::XzEncoder::new_stream(writer, stream))
        }
        Codec::Snappy => EncoderKind::Snappy(Box::new(snap::write::FrameEncoder::new(writer))),
    };
    Ok(Encoder {
        encoder,
        gathered: Vec::with_capacity(GATHER_BYTES),
        any: false,
    })
}

impl<W: Write> Encoder<W> {
    /// Writes what is left, and the end of the format; gives the writer back.
    ///
    /// # Errors
    /// The writer's.
    pub fn finish(mut self) -> io::Result<W> {
        self.forward()?;
        match self.encoder {
            EncoderKind::Gzip(encoder) => encoder.finish(),
            EncoderKind::Deflate(encoder) => encoder.finish(),
            EncoderKind::Bzip2(encoder) => encoder.finish(),
            EncoderKind::Zstd(encoder) => encoder.finish(),
            EncoderKind::Lz4(encoder) => Ok(encoder.finish()?),
            EncoderKind::Xz(encoder) => encoder.finish(),
            EncoderKind::Snappy(mut encoder) => {
                // Of no data the library makes no bytes: with its header the file says what it is.
                if !self.any {
                    encoder.get_mut().write_all(SNAPPY)?;
                }
                encoder
                    .into_inner()
                    .map_err(|error| error.error().kind().into())
            }
        }
    }

    /// Hands over what was gathered.
    fn forward(&mut self) -> io::Result<()> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let data = &self.gathered;
        match &mut self.encoder {
            EncoderKind::Gzip(encoder) => encoder.write_all(data)?,
            EncoderKind::Deflate(encoder) => encoder.write_all(data)?,
            EncoderKind::Bzip2(encoder) => encoder.write_all(data)?,
            EncoderKind::Zstd(encoder) => encoder.write_all(data)?,
            EncoderKind::Lz4(encoder) => encoder.write_all(data)?,
            EncoderKind::Xz(encoder) => encoder.write_all(data)?,
            EncoderKind::Snappy(encoder) => encoder.write_all(data)?,
        }
        self.any = true;
        self.gathered.clear();
        Ok(())
    }
}

impl<W: Write> Write for Encoder<W> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if self.gathered.len() == GATHER_BYTES {
            self.forward()?;
        }
        let count = data.len().min(GATHER_BYTES - self.gathered.len());
        self.gathered.extend_from_slice(&data[..count]);
        Ok(count)
    }

    /// Does nothing: a block ended early would make other bytes of the same data.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<W: Write> std::fmt::Debug for Encoder<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encoder").finish_non_exhaustive()
    }
}

//! The blocks of a run, and their compression: each on its own, so that a merge begins at any bucket and reads ahead.
//!
//! ```text
//!   64 KiB of records ──encode──▶ stored bytes: fewer, or the block as it is where it hardly shrinks
//!   stored bytes, CRC verified ──decode──▶ the 64 KiB
//! ```
//!
//! lz4's block format and zstd's frames, by other people's libraries. A block has a CRC over its stored bytes alone: what
//! the records were is proved by the job, as of any run.

use serde::{Deserialize, Serialize};

use gristmill_base::error::{Error, Result};
use gristmill_base::sys::pages::Pages;

/// Bytes of data that share a CRC: a multiple of a device's block, small enough that a bucket's edges cost little
/// to read, and at four bytes of CRC for each, 1/16384 of the data.
pub const BLOCK_BYTES: usize = 64 << 10;

/// How the blocks of runs are compressed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunCompression {
    /// Not at all.
    #[default]
    None,
    /// lz4: little CPU time.
    Lz4,
    /// zstd: fewer bytes.
    Zstd,
}

/// zstd's fastest level: runs are written once and read once, and the levels above it save few bytes of 64 KiB.
const ZSTD_LEVEL: i32 = 1;

/// A block is stored as it is unless this part of it is saved: to decompress it would cost more than to read it.
const SAVED_SHARE: usize = 16;

/// Stored bytes that are read at once, at most: whole blocks of a device, from one inside the bytes before to one inside
/// those behind.
pub(super) const STAGING_BYTES: usize = 512 << 10;

/// What the libraries hold beside the buffers (a test measures it): lz4 a table to find matches, zstd its tables and
/// windows to compress 64 KiB, and its tables to decompress.
const LZ4_BYTES: usize = 20 << 10;
const ZSTD_BYTES: usize = 1 << 20;

/// What one more reader of compressed blocks holds: stored bytes, and the library's tables to decompress.
pub const DECODER_BYTES: usize = STAGING_BYTES + (256 << 10);

impl RunCompression {
    /// Their names, as options have them.
    pub const NAMES: &'static [&'static str] = &["none", "lz4", "zstd"];

    /// Its name.
    ///
    /// ```
    /// use gristmill_storage::sorted_run::RunCompression;
    /// assert_eq!(RunCompression::Lz4.name(), "lz4");
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            RunCompression::None => "none",
            RunCompression::Lz4 => "lz4",
            RunCompression::Zstd => "zstd",
        }
    }

    /// Memory of a worker that merges compressed runs to one, beside what it needs for runs that are not: stored bytes
    /// that were read, a block that was compressed, one that waits for its end, and the library's own.
    ///
    /// ```
    /// use gristmill_storage::sorted_run::RunCompression;
    /// assert_eq!(RunCompression::None.worker_bytes(), 0);
    /// assert!((600_000..2_000_000).contains(&RunCompression::Zstd.worker_bytes()));
    /// ```
    pub fn worker_bytes(self) -> u64 {
        let library = match self {
            RunCompression::None => return 0,
            RunCompression::Lz4 => LZ4_BYTES,
            RunCompression::Zstd => ZSTD_BYTES,
        };
        (STAGING_BYTES + packed_bytes_max() + BLOCK_BYTES + crate::BLOCK_BYTES + library) as u64
    }
}

/// Room for a block that was compressed, however little it shrinks.
fn packed_bytes_max() -> usize {
    lz4_flex::block::get_maximum_output_size(BLOCK_BYTES)
        .max(zstd::zstd_safe::compress_bound(BLOCK_BYTES))
}

/// Compresses blocks.
pub(super) struct BlockEncoder {
    encoder: BlockCompressor,
    packed: Box<[u8]>,
}

enum BlockCompressor {
    Lz4(lz4_flex::block::CompressTable),
    Zstd(zstd::bulk::Compressor<'static>),
}

impl BlockEncoder {
    /// None where nothing is compressed.
    pub(super) fn new(compression: RunCompression) -> Result<Option<Self>> {
        let encoder = match compression {
            RunCompression::None => return Ok(None),
            RunCompression::Lz4 => BlockCompressor::Lz4(lz4_flex::block::CompressTable::large()),
            RunCompression::Zstd => {
                let made = zstd::bulk::Compressor::new(ZSTD_LEVEL);
                BlockCompressor::Zstd(made.map_err(|error| failed(&error))?)
            }
        };
        let packed = vec![0; packed_bytes_max()].into_boxed_slice();
        Ok(Some(BlockEncoder { encoder, packed }))
    }

    /// The bytes to store in the place of `block`; none where it is stored as it is.
    pub(super) fn encode(&mut self, block: &[u8]) -> Result<Option<&[u8]>> {
        let bytes = match &mut self.encoder {
            BlockCompressor::Lz4(table) => {
                lz4_flex::block::compress_into_with_table(block, &mut self.packed, table)
                    .map_err(|error| failed(&error))
            }
            BlockCompressor::Zstd(compressor) => compressor
                .compress_to_buffer(block, &mut *self.packed)
                .map_err(|error| failed(&error)),
        }?;
        let worth = block.len() - block.len().div_ceil(SAVED_SHARE);
        Ok((bytes <= worth).then(|| &self.packed[..bytes]))
    }
}

/// Nothing that is in a block can make a library fail.
fn failed(error: &dyn std::fmt::Display) -> Error {
    Error::bug("compress a block of a run", error.to_string())
}

/// Reads blocks of runs, compressed or not; reused from read to read. Of runs that are not compressed it holds nothing.
#[derive(Default)]
pub struct BlockDecoder {
    /// Stored bytes, as they were read.
    staging: Pages<u8>,
    zstd: Option<zstd::bulk::Decompressor<'static>>,
}

impl BlockDecoder {
    /// Memory for stored bytes.
    pub(super) fn staging(&mut self) -> Result<&mut [u8]> {
        if self.staging.is_empty() {
            self.staging = Pages::zeroed(STAGING_BYTES)?;
        }
        Ok(&mut self.staging)
    }

    /// Fills `block` with what the bytes at `stored` of the staging memory stand for, or says why they stand for no
    /// such block.
    pub(super) fn decode(
        &mut self,
        compression: RunCompression,
        stored: std::ops::Range<usize>,
        block: &mut [u8],
    ) -> std::result::Result<(), String> {
        let stored = &self.staging[stored];
        if stored.len() == block.len() {
            block.copy_from_slice(stored);
            return Ok(());
        }
        let bytes = match compression {
            RunCompression::None => Err("it is shorter than a block".to_owned()),
            RunCompression::Lz4 => {
                lz4_flex::block::decompress_into(stored, block).map_err(|error| error.to_string())
            }
            RunCompression::Zstd => {
                let made = match self.zstd.take() {
                    Some(decompressor) => Ok(decompressor),
                    None => zstd::bulk::Decompressor::new(),
                };
                let decompressor = made.map_err(|error| error.to_string())?;
                self.zstd
                    .insert(decompressor)
                    .decompress_to_buffer(stored, block)
                    .map_err(|error| error.to_string())
            }
        }?;
        if bytes == block.len() {
            return Ok(());
        }
        Err(format!("it holds {bytes} bytes, not {}", block.len()))
    }
}

impl std::fmt::Debug for BlockDecoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let staging = self.staging.len();
        f.debug_struct("BlockDecoder")
            .field("staging_bytes", &staging)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the plan counts for a library is no less than what it holds.
    #[test]
    fn libraries_hold_what_the_plan_counts() {
        let mut encoder = BlockEncoder::new(RunCompression::Zstd).unwrap().unwrap();
        let block: Vec<u8> = (0..BLOCK_BYTES).map(|at| (at / 7 % 251) as u8).collect();
        let packed = encoder.encode(&block).unwrap().unwrap().to_vec();
        let mut decoder = BlockDecoder::default();
        decoder.staging().unwrap()[..packed.len()].copy_from_slice(&packed);
        let mut back = vec![0; BLOCK_BYTES];
        decoder
            .decode(RunCompression::Zstd, 0..packed.len(), &mut back)
            .unwrap();
        assert!(back == block);
        let BlockCompressor::Zstd(compressor) = &mut encoder.encoder else {
            panic!("not zstd's");
        };
        let compressing = compressor.context_mut().sizeof();
        let decompressing = zstd::zstd_safe::DCtx::create().sizeof();
        assert!(
            compressing + decompressing <= ZSTD_BYTES,
            "{compressing} and {decompressing}"
        );
    }

    #[test]
    fn blocks_that_hardly_shrink_stay_as_they_are() {
        let mut state = 1_u64;
        let noise: Vec<u8> = (0..BLOCK_BYTES)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        for compression in [RunCompression::Lz4, RunCompression::Zstd] {
            let mut encoder = BlockEncoder::new(compression).unwrap().unwrap();
            assert!(encoder.encode(&noise).unwrap().is_none());
            assert!(encoder.encode(b"x").unwrap().is_none());
            assert!(encoder.encode(&[7; BLOCK_BYTES]).unwrap().unwrap().len() < 1000);
        }
    }
}

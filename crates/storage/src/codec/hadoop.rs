//! The block framing of Hadoop's snappy and lz4 codecs (`BlockCompressorStream`):
//!
//! ```text
//!   block:  | decoded length, u32 BE | chunk | chunk | ...     chunks until that many bytes are decoded
//!   chunk:  | compressed length, u32 BE | raw snappy or lz4 block |
//! ```
//!
//! No magic number, no checksum, no end mark. Hadoop's buffer makes chunks of 256 kB at most, unless it was
//! configured larger.

use super::input::CountedInput;
use super::member::{Member, MemberError};

/// The largest decoded chunk that is accepted: 32 times Hadoop's default.
const CHUNK_BYTES: usize = 8 << 20;

/// What snappy or lz4 make of a chunk that does not compress, at most (snappy's bound; lz4's is smaller).
const COMPRESSED_BYTES: usize = 32 + CHUNK_BYTES + CHUNK_BYTES / 6;

/// What decoding holds: a chunk, decoded and compressed; vectors that grow may have room for twice as much.
pub(super) const HELD_BYTES: usize = 2 * (CHUNK_BYTES + COMPRESSED_BYTES);

/// The largest decoded length with which a file may begin: text begins with larger numbers.
const FIRST_BLOCK_BYTES: u32 = 256 << 20;

/// Whether a stream can begin with `first`: two plausible lengths, as far as they are there.
pub(super) fn begins(first: &[u8]) -> bool {
    let number = |at: usize| {
        let bytes = first.get(at..at + 4)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    };
    match (number(0), number(4)) {
        (None, _) => first
            .first()
            .is_some_and(|&high| u32::from(high) << 24 < FIRST_BLOCK_BYTES),
        (Some(0), _) => true,
        (Some(decoded), chunk) => {
            decoded <= FIRST_BLOCK_BYTES
                && chunk.is_none_or(|bytes| (1..=COMPRESSED_BYTES).contains(&(bytes as usize)))
        }
    }
}

/// Decodes a chunk into `out`, as many bytes as `most` at most.
pub(super) type Chunk = fn(data: &[u8], most: usize, out: &mut Vec<u8>) -> Result<(), String>;

/// A raw snappy block, which begins with its decoded length.
pub(super) fn snappy(data: &[u8], most: usize, out: &mut Vec<u8>) -> Result<(), String> {
    let len = snap::raw::decompress_len(data).map_err(|error| error.to_string())?;
    if len > most {
        return Err(format!(
            "a chunk says that it has {len} bytes where {most} can be"
        ));
    }
    out.resize(len, 0);
    match snap::raw::Decoder::new().decompress(data, out) {
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// A raw lz4 block, which says nothing of its decoded length.
pub(super) fn lz4(data: &[u8], most: usize, out: &mut Vec<u8>) -> Result<(), String> {
    out.resize(most, 0);
    match lz4_flex::block::decompress_into(data, out) {
        Ok(len) => {
            out.truncate(len);
            Ok(())
        }
        Err(error) => Err(error.to_string()),
    }
}

/// All of a stream in Hadoop's framing.
pub(super) struct HadoopBlocks {
    chunk: Chunk,
    /// Bytes of the block that are not decoded yet.
    left: usize,
    compressed: Vec<u8>,
    decoded: Vec<u8>,
    /// How many decoded bytes were given.
    given: usize,
}

impl HadoopBlocks {
    pub(super) fn new(chunk: Chunk) -> Self {
        HadoopBlocks {
            chunk,
            left: 0,
            compressed: Vec::new(),
            decoded: Vec::new(),
            given: 0,
        }
    }

    fn next_chunk(&mut self, input: &mut CountedInput) -> Result<(), MemberError> {
        let bytes = number(input)?.ok_or(MemberError::Truncated)? as usize;
        if bytes > COMPRESSED_BYTES {
            let why = format!(
                "a chunk of {bytes} compressed bytes is larger than {COMPRESSED_BYTES}: it is damaged, or was \
                 written with buffers of more than {} MB",
                CHUNK_BYTES >> 20
            );
            let advice =
                "copy it again, or write it anew with smaller buffers or with another codec";
            return Err(MemberError::Refused(why, advice));
        }
        if !input.take_exactly(bytes, &mut self.compressed)? {
            return Err(MemberError::Truncated);
        }
        let most = self.left.min(CHUNK_BYTES);
        self.given = 0;
        self.decoded.clear();
        (self.chunk)(&self.compressed, most, &mut self.decoded).map_err(MemberError::Damaged)?;
        if self.decoded.is_empty() {
            return Err(MemberError::Damaged("a chunk is empty".to_owned()));
        }
        self.left -= self.decoded.len();
        Ok(())
    }
}

impl Member for HadoopBlocks {
    fn read(
        &mut self,
        input: &mut CountedInput,
        out: &mut [u8],
    ) -> Result<Option<usize>, MemberError> {
        if self.given == self.decoded.len() {
            if self.left > 0 {
                self.next_chunk(input)?;
            } else {
                match number(input)? {
                    // An empty block, which Hadoop writes for an empty file, holds nothing and ends nothing.
                    Some(bytes) => self.left = bytes as usize,
                    None => return Ok(None),
                }
                return Ok(Some(0));
            }
        }
        let there = &self.decoded[self.given..];
        let count = there.len().min(out.len());
        out[..count].copy_from_slice(&there[..count]);
        self.given += count;
        Ok(Some(count))
    }
}

/// The next number, or `None` at the end of the input.
fn number(input: &mut CountedInput) -> Result<Option<u32>, MemberError> {
    match *input.peek(4)? {
        [a, b, c, d, ..] => {
            input.consume(4);
            Ok(Some(u32::from_be_bytes([a, b, c, d])))
        }
        [] => Ok(None),
        _ => Err(MemberError::Truncated),
    }
}

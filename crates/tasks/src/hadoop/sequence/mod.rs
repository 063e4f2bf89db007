//! Hadoop's sequence files, version 6: keys and values as bytes, with sync marks that a reader in the middle looks for.
//!
//! ```text
//!   header    "SEQ" 6 | key class | value class | compressed? | in blocks? | codec class, if compressed
//!             | metadata: count i32, pairs of text | sync mark, 16 bytes
//!   record    | bytes of key and value, i32 | bytes of the key, i32 | key | value, compressed by itself or not |
//!   mark      | -1, i32 | sync mark |                   every 100 kB, and before each block
//!   block     | records, vint | lengths of keys | keys | lengths of values | values |    each: bytes as vint, compressed
//! ```
//!
//! Texts have their length before them as a vint. A split has the records behind the sync marks that begin in it; the
//! first one also those behind the header.
//!
//! Format: the documentation of `org.apache.hadoop.io.SequenceFile`.

mod blocks;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use blocks::HadoopBlockEncoder;
pub use reader::SequenceReader;
pub use writer::SequenceWriter;

use gristmill_storage::codec::Codec;

/// Bytes of a sync mark.
const SYNC_BYTES: usize = 16;

/// A mark and the -1 before it.
const ESCAPED_BYTES: u64 = 4 + SYNC_BYTES as u64;

/// What is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Nothing.
    None,
    /// Each value.
    Records(Codec),
    /// Keys and values of many records at once.
    Blocks(Codec),
}

impl Compression {
    fn codec(self) -> Option<Codec> {
        match self {
            Compression::None => None,
            Compression::Records(codec) | Compression::Blocks(codec) => Some(codec),
        }
    }
}

/// The name that Hadoop has for a codec.
fn codec_class(codec: Codec) -> &'static str {
    match codec {
        Codec::Gzip => "org.apache.hadoop.io.compress.GzipCodec",
        Codec::Bzip2 => "org.apache.hadoop.io.compress.BZip2Codec",
        Codec::Zstd => "org.apache.hadoop.io.compress.ZStandardCodec",
        Codec::Lz4 => "org.apache.hadoop.io.compress.Lz4Codec",
        Codec::Snappy => "org.apache.hadoop.io.compress.SnappyCodec",
        Codec::Deflate => "org.apache.hadoop.io.compress.DefaultCodec",
        Codec::Xz => "io.sensesecure.hadoop.xz.XZCodec",
    }
}

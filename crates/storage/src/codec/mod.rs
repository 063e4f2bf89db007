//! Codecs: compressed files as the bytes they stand for.
//!
//! ```text
//!   file ──▶ input ──▶ decode ──▶ bytes          bytes ──▶ encode ──▶ file
//!            blocks,   member after member
//!            offsets   (steps, frames, hadoop)
//! ```
//!
//! The algorithms are other people's libraries. What stands here is what a job needs around them: which codec a file
//! has, members one after the other up to the last byte of the file, memory with a bound, and errors that say at
//! which offset of which file. Whatever is not proved whole is an error: what is cut short, what fails its
//! checksum, what follows the last member. A format that has no checksum cannot prove its bytes (Hadoop's framing of
//! snappy and lz4; zstd and lz4 frames written without one), and one that has no end mark cannot prove its end
//! (both framings of snappy, Hadoop's of lz4: cut between two blocks they look whole).
//!
//! Formats: RFC 1952 (gzip), RFC 1950 (deflate, which is Hadoop's name for zlib's format), RFC 8878 (zstd), the xz
//! file format 1.2, the lz4 frame format 1.6, the snappy framing format of 2013-10-25, and the block
//! framing of Hadoop's `BlockCompressorStream`.

mod decode;
mod encode;
pub mod file;
mod frames;
mod hadoop;
mod input;
mod member;
mod steps;
#[cfg(test)]
mod tests;
pub mod written;

use std::fmt;
use std::ops::RangeInclusive;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub use decode::{Decoder, decoder, error_of};
pub use encode::{Encoder, encoder};
pub use file::{Coding, FileDecoder, open, open_file};

use gristmill_base::error::{Error, Kind, Result};

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Codec {
    /// gzip, one member or several.
    Gzip,
    /// bzip2, one stream or several.
    Bzip2,
    /// Zstandard, one frame or several.
    Zstd,
    /// lz4: its frame format, or the block framing of Hadoop's codec.
    Lz4,
    /// xz, one stream or several.
    Xz,
    /// snappy: its framing format, or the block framing of Hadoop's codec.
    Snappy,
    /// Deflate as Hadoop means it: in zlib's format.
    Deflate,
}

/// How many bytes of a file's beginning [`detect`] wants to see (fewer where the file is shorter).
pub const SNIFF_BYTES: usize = 16;

/// The largest window that is accepted: what `zstd --long=27` writes.
pub(crate) const WINDOW_LOG: u32 = 27;

/// What xz may take: a dictionary of the largest window, and liblzma's own state beside it (some 100 kB).
pub(crate) const XZ_BYTES: usize = (1 << WINDOW_LOG) + (2 << 20);

/// The magic number of each format that has one; deflate's two bytes are checked by [`Codec::begins`].
const GZIP: &[u8] = &[0x1f, 0x8b, 8];
const BZIP2: &[u8] = b"BZh";
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const LZ4: &[u8] = &[0x04, 0x22, 0x4d, 0x18];
const XZ: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];
const SNAPPY: &[u8] = b"\xff\x06\x00\x00sNaPpY";

impl Codec {
    /// All of them.
    pub const ALL: [Codec; 7] = [
        Codec::Gzip,
        Codec::Bzip2,
        Codec::Zstd,
        Codec::Lz4,
        Codec::Xz,
        Codec::Snappy,
        Codec::Deflate,
    ];

    /// The codec's name, as in options and reports.
    ///
    /// ```
    /// assert_eq!(gristmill_storage::codec::Codec::Bzip2.name(), "bzip2");
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            Codec::Gzip => "gzip",
            Codec::Bzip2 => "bzip2",
            Codec::Zstd => "zstd",
            Codec::Lz4 => "lz4",
            Codec::Xz => "xz",
            Codec::Snappy => "snappy",
            Codec::Deflate => "deflate",
        }
    }

    /// The suffixes of the codec's files, the one for new files first.
    ///
    /// ```
    /// assert_eq!(gristmill_storage::codec::Codec::Snappy.suffixes(), [".snappy", ".sz"]);
    /// ```
    pub fn suffixes(self) -> &'static [&'static str] {
        match self {
            Codec::Gzip => &[".gz"],
            Codec::Bzip2 => &[".bz2"],
            Codec::Zstd => &[".zst"],
            Codec::Lz4 => &[".lz4"],
            Codec::Xz => &[".xz"],
            Codec::Snappy => &[".snappy", ".sz"],
            Codec::Deflate => &[".deflate"],
        }
    }

    /// The codec that a file's name speaks of; capitals count as small letters.
    ///
    /// ```
    /// use gristmill_storage::codec::Codec;
    /// assert_eq!(Codec::by_suffix("logs/a.txt.GZ".as_ref()), Some(Codec::Gzip));
    /// assert_eq!(Codec::by_suffix("logs/a.txt".as_ref()), None);
    /// ```
    pub fn by_suffix(path: &Path) -> Option<Codec> {
        let name = path.file_name()?.as_encoded_bytes();
        let ends = |suffix: &&str| {
            let suffix = suffix.as_bytes();
            let end = name.len().checked_sub(suffix.len());
            end.is_some_and(|at| at > 0 && name[at..].eq_ignore_ascii_case(suffix))
        };
        Codec::ALL
            .into_iter()
            .find(|codec| codec.suffixes().iter().any(ends))
    }

    /// The codec whose magic number a file begins with. Deflate and Hadoop's framings have none that is worth the
    /// name: those files are known by their suffix alone.
    ///
    /// ```
    /// use gristmill_storage::codec::Codec;
    /// assert_eq!(Codec::by_magic(&[0x28, 0xb5, 0x2f, 0xfd, 4, 0]), Some(Codec::Zstd));
    /// assert_eq!(Codec::by_magic(b"BZh9 is a word too"), None);
    /// ```
    pub fn by_magic(first: &[u8]) -> Option<Codec> {
        Codec::ALL.into_iter().find(|codec| match codec {
            // Reserved flags are never set.
            Codec::Gzip => {
                first.starts_with(GZIP) && first.get(3).is_some_and(|flags| flags & 0xe0 == 0)
            }
            // Four letters could be text; with the magic number of the first block, or of the end, they are not.
            Codec::Bzip2 => first.len() >= 10 && codec.begins(first),
            Codec::Zstd => first.starts_with(ZSTD),
            Codec::Lz4 => first.starts_with(LZ4),
            Codec::Xz => first.starts_with(XZ),
            Codec::Snappy => first.starts_with(SNAPPY),
            Codec::Deflate => false,
        })
    }

    /// The codec of a Hadoop class name, as in `mapreduce.output.fileoutputformat.compress.codec`.
    ///
    /// ```
    /// use gristmill_storage::codec::Codec;
    /// assert_eq!(Codec::by_hadoop_class("org.apache.hadoop.io.compress.DefaultCodec"), Some(Codec::Deflate));
    /// assert_eq!(Codec::by_hadoop_class("com.hadoop.compression.lzo.LzopCodec"), None);
    /// ```
    pub fn by_hadoop_class(class: &str) -> Option<Codec> {
        match class.strip_prefix("org.apache.hadoop.io.compress.")? {
            "GzipCodec" => Some(Codec::Gzip),
            "BZip2Codec" => Some(Codec::Bzip2),
            "ZStandardCodec" => Some(Codec::Zstd),
            "Lz4Codec" => Some(Codec::Lz4),
            "SnappyCodec" => Some(Codec::Snappy),
            "DefaultCodec" | "DeflateCodec" => Some(Codec::Deflate),
            _ => None,
        }
    }

    /// The levels an [`encoder`] accepts, and the one it takes when it is not told.
    ///
    /// ```
    /// assert_eq!(gristmill_storage::codec::Codec::Gzip.levels(), (0..=9, 6));
    /// ```
    pub fn levels(self) -> (RangeInclusive<i32>, i32) {
        match self {
            Codec::Gzip | Codec::Deflate | Codec::Xz => (0..=9, 6),
            Codec::Bzip2 => (1..=9, 9),
            // Beyond 19 ("ultra") windows grow to the largest that are accepted; negative levels are lz4's trade.
            Codec::Zstd => (1..=22, 3),
            Codec::Lz4 | Codec::Snappy => (1..=1, 1),
        }
    }

    /// Whether data of this codec can begin with `first`, the whole of the data if that is shorter than
    /// [`SNIFF_BYTES`]. Data cut short inside the magic number begin with it.
    pub(crate) fn begins(self, first: &[u8]) -> bool {
        let starts = |magic: &[u8]| match first.len() {
            0 => false,
            len => first[..len.min(magic.len())] == magic[..len.min(magic.len())],
        };
        // zstd and lz4 share frames that decoders skip: 0x184D2A50 to 0x184D2A5F.
        let skippable = || {
            first.first().is_some_and(|low| low & 0xf0 == 0x50)
                && (first.len() == 1 || starts(&[first[0], 0x2a, 0x4d, 0x18]))
        };
        match self {
            Codec::Gzip => starts(GZIP),
            Codec::Bzip2 => {
                let block = first.get(4..first.len().min(10)).unwrap_or(&[]);
                let marks: [&[u8; 6]; 2] =
                    [b"\x31\x41\x59\x26\x53\x59", b"\x17\x72\x45\x38\x50\x90"];
                starts(BZIP2)
                    && first
                        .get(3)
                        .is_none_or(|level| (b'1'..=b'9').contains(level))
                    && marks.iter().any(|mark| mark.starts_with(block))
            }
            Codec::Zstd => starts(ZSTD) || skippable(),
            Codec::Lz4 => starts(LZ4) || skippable(),
            Codec::Xz => starts(XZ),
            Codec::Snappy => starts(SNAPPY),
            // RFC 1950: method 8, a window of at most 32 kB, and a check of 5 bits.
            Codec::Deflate => match *first {
                [] => false,
                [method] => method & 0x8f == 8,
                [method, flags, ..] => {
                    method & 0x8f == 8
                        && (u16::from(method) << 8 | u16::from(flags)).is_multiple_of(31)
                }
            },
        }
    }

    /// What [`Codec::begins`] looks for, for error texts.
    pub(crate) fn expected(self) -> String {
        let framed = |magic| format!("{} or Hadoop's block framing", shown(magic));
        match self {
            Codec::Gzip => shown(GZIP),
            Codec::Bzip2 => format!("{}, a digit from 31 on and a block", shown(BZIP2)),
            Codec::Zstd => shown(ZSTD),
            Codec::Lz4 => framed(LZ4),
            Codec::Xz => shown(XZ),
            Codec::Snappy => framed(SNAPPY),
            Codec::Deflate => "a zlib header such as 78 9c".to_owned(),
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Bytes in hexadecimal, for error texts.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(3 * bytes.len());
    for (i, byte) in bytes.iter().enumerate() {
        text.push_str(if i == 0 { "" } else { " " });
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

/// How a file is compressed, from its name and its first bytes ([`SNIFF_BYTES`], fewer where it is shorter).
///
/// The content decides, since files are renamed: with a known magic number it is compressed whatever its name says.
/// The name decides where a format has no magic number. An empty file is empty, under any name.
///
/// # Errors
/// A name that speaks of a codec over content that is of none.
///
/// ```
/// use gristmill_storage::codec::{Codec, detect};
/// assert_eq!(detect("a.txt".as_ref(), b"some words")?, None);
/// assert_eq!(detect("a.txt".as_ref(), b"\x1f\x8b\x08\x00\0\0\0\0\0\x03")?, Some(Codec::Gzip));
/// assert_eq!(detect("a.bz2".as_ref(), b"\x1f\x8b\x08\x00\0\0\0\0\0\x03")?, Some(Codec::Gzip));
/// assert_eq!(detect("a.gz".as_ref(), b"")?, None);
/// let error = detect("a.gz".as_ref(), b"some words").unwrap_err().to_string();
/// assert!(error.contains("expected 1f 8b 08, found 73 6f 6d 65"), "{error}");
/// # Ok::<(), gristmill_base::Error>(())
/// ```
pub fn detect(path: &Path, first: &[u8]) -> Result<Option<Codec>> {
    let named = Codec::by_suffix(path).filter(|_| !first.is_empty());
    if let Some(codec) = named.filter(|codec| codec.begins(first)) {
        return Ok(Some(codec));
    }
    if let Some(found) = Codec::by_magic(first) {
        return Ok(Some(found));
    }
    match named {
        Some(codec @ (Codec::Lz4 | Codec::Snappy)) if hadoop::begins(first) => Ok(Some(codec)),
        Some(codec) => Err(foreign(codec, first).with_path(path)),
        None => Ok(None),
    }
}

/// The error of data that do not begin as `codec` says.
pub(crate) fn foreign(codec: Codec, first: &[u8]) -> Error {
    let message = format!(
        "it does not begin as {codec} data do: expected {}, found {}",
        codec.expected(),
        shown(&first[..first.len().min(10)])
    );
    Error::new(Kind::BadInput, "decode the input", message).advise(
        "check what the file holds; if it is not compressed, give it a name without that suffix",
    )
}

/// An upper bound of the memory that a [`Decoder`] or [`FileDecoder`] of this codec holds, in bytes, whatever its input
/// says. Data that need more are refused.
///
/// ```
/// use gristmill_storage::codec::{Codec, window_bytes};
/// assert!(window_bytes(Codec::Gzip) < 2 << 20);
/// assert!(window_bytes(Codec::Zstd) >= 128 << 20);
/// ```
pub fn window_bytes(codec: Codec) -> usize {
    let library = match codec {
        // A window of 32 kB, twice, and tables.
        Codec::Gzip | Codec::Deflate => 256 << 10,
        // Four bytes for each of 900,000, and tables.
        Codec::Bzip2 => 4 << 20,
        // The window, two blocks of 128 kB, and tables.
        Codec::Zstd => (1 << WINDOW_LOG) + (1 << 20),
        // Frames: one compressed and two decoded blocks of 4 MB (vectors may double). Hadoop's: see there.
        Codec::Lz4 => hadoop::HELD_BYTES.max(17 << 20),
        Codec::Xz => XZ_BYTES,
        Codec::Snappy => hadoop::HELD_BYTES,
    };
    library + input::BUFFER_BYTES + file::BLOCK_BYTES
}

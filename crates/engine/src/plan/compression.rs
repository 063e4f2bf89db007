//! How an output is compressed, as a user writes it: `none`, `zstd`, `gzip`.

use serde::{Deserialize, Serialize};

use gristmill_storage::codec::Codec;

/// How an output is compressed.
///
/// ```
/// use gristmill_engine::codec::Codec;
/// use gristmill_engine::plan::compression::OutputCompression;
/// let given: OutputCompression = serde_json::from_str("\"zstd\"")?;
/// assert_eq!(given.codec(), Some(Codec::Zstd));
/// assert_eq!(OutputCompression::default().codec(), None);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputCompression {
    /// Not at all.
    #[default]
    None,
    /// As gzip does.
    Gzip,
    /// As zstd does.
    Zstd,
    /// As bzip2 does.
    Bzip2,
    /// As xz does.
    Xz,
    /// As lz4 does, in frames.
    Lz4,
}

impl OutputCompression {
    /// What may be given.
    pub const NAMES: &'static [&'static str] = &["none", "gzip", "zstd", "bzip2", "xz", "lz4"];

    /// What compresses it.
    pub fn codec(self) -> Option<Codec> {
        match self {
            OutputCompression::None => None,
            OutputCompression::Gzip => Some(Codec::Gzip),
            OutputCompression::Zstd => Some(Codec::Zstd),
            OutputCompression::Bzip2 => Some(Codec::Bzip2),
            OutputCompression::Xz => Some(Codec::Xz),
            OutputCompression::Lz4 => Some(Codec::Lz4),
        }
    }
}

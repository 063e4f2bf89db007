//! The words for input that all stages share: a file as the job found it, and a range of one.

use std::ops::Range;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Stat;
use super::location::Location;
use crate::codec::Codec;

/// A file of the input, as it was when the job began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputFile {
    /// Where it is.
    pub path: Location,
    /// What the store knew of it.
    pub stat: Stat,
}

/// A byte range of an input file, to be read by one task.
///
/// Tasks that have the job's list of files name theirs by its number in it: a stage has a million of ranges. Splits that
/// travel without that list, as JSON, have the file with them ([`FileRange`]).
///
/// ```
/// use gristmill_engine::storage::input::FileRange;
/// let json = r#"{"path":"a.txt","file_bytes":9,"codec":null,"start":3,"bytes":6}"#;
/// let range: FileRange = serde_json::from_str(json)?;
/// assert_eq!((range.offset, range.bytes, range.file.bytes), (3, 6, 9));
/// assert_eq!(serde_json::to_string(&range)?, json);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(serialize = "F: InJson", deserialize = "F: InJson"))]
pub struct InputRange<F = usize> {
    /// The file.
    #[serde(flatten)]
    pub file: F,
    /// Where the range begins.
    #[serde(rename = "start")]
    pub offset: u64,
    /// Its length.
    pub bytes: u64,
}

impl<F> InputRange<F> {
    /// The range.
    pub fn range(&self) -> Range<u64> {
        self.offset..self.offset + self.bytes
    }
}

/// A range, with its file.
pub type FileRange = InputRange<SplitFile>;

/// What a reader has to know of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SplitFile {
    /// Where it is.
    pub path: Location,
    /// Its length when the job began.
    #[serde(rename = "file_bytes")]
    pub bytes: u64,
    /// How it is compressed; then the range is all of it.
    pub codec: Option<Codec>,
}

/// Files whose fields stand in JSON beside those of the range.
pub trait InJson: Serialize + DeserializeOwned {}

impl InJson for SplitFile {}

/// A numbered file's range goes to bytes without names of fields.
impl Serialize for InputRange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.file, self.offset, self.bytes).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for InputRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (file, offset, bytes) = Deserialize::deserialize(deserializer)?;
        Ok(InputRange {
            file,
            offset,
            bytes,
        })
    }
}

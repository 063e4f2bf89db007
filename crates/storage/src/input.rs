//! The words for input that all stages share: a file as the job found it, and a range of one.

use std::ops::Range;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::location::Location;
use super::version::FoundVersion;
use super::{Caching, ReadFile, Stat, Store};
use crate::codec::{Codec, Coding};
use gristmill_base::error::Result;

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
/// use gristmill_storage::input::FileRange;
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
    /// Which version of it was found, in a store: no other one is read.
    #[serde(rename = "found", default, skip_serializing_if = "Option::is_none")]
    pub version: Option<FoundVersion>,
}

impl SplitFile {
    /// A file as the job found it.
    ///
    /// ```
    /// use gristmill_storage::input::{InputFile, SplitFile};
    /// use gristmill_storage::{FileKind, Stat};
    /// let stat = Stat { kind: FileKind::File, bytes: 3, modified_ns: 5, identity: (0, 7) };
    /// let far = SplitFile::found(&InputFile { path: "s3://bucket/a".into(), stat }, None);
    /// assert_eq!(far.version.map(|version| version.stat(3)), Some(stat));
    /// assert_eq!(SplitFile::found(&InputFile { path: "/a".into(), stat }, None).version, None);
    /// ```
    pub fn found(file: &InputFile, codec: Option<Codec>) -> Self {
        let is_remote = file.path.is_remote();
        SplitFile {
            path: file.path.clone(),
            bytes: file.stat.bytes,
            codec,
            version: is_remote.then(|| FoundVersion::of(&file.stat)),
        }
    }

    /// Opens it in its store, where it is known by `path`.
    ///
    /// # Errors
    /// The store's; and it is another version by now, where the store can tell.
    pub fn open(&self, store: &dyn Store, caching: Caching) -> Result<Box<dyn ReadFile>> {
        let path = self.path.as_typed();
        match &self.version {
            Some(version) => store.open_found(path, &version.stat(self.bytes), caching),
            None => store.open(path, caching),
        }
    }
}

impl FileRange {
    /// What is known of its compression. Of a far file that is not cut nobody has looked at the first bytes.
    ///
    /// ```
    /// use gristmill_storage::codec::Coding;
    /// use gristmill_storage::input::FileRange;
    /// let far = r#"{"path":"s3://b/a","file_bytes":9,"codec":null,"found":"0.0.1","start":0,"bytes":9}"#;
    /// let mut far: FileRange = serde_json::from_str(far)?;
    /// assert_eq!(far.coding(), Coding::Detect);
    /// far.bytes = 5;
    /// assert_eq!(far.coding(), Coding::Plain);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn coding(&self) -> Coding {
        match self.file.codec {
            _ if self.file.version.is_some() && self.is_whole() => Coding::Detect,
            Some(codec) => Coding::Coded(codec),
            None => Coding::Plain,
        }
    }

    /// Whether it is all of its file.
    pub fn is_whole(&self) -> bool {
        self.range() == (0..self.file.bytes)
    }
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

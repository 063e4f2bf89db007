//! Ranges of output files, as the specs of tasks name them.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A file that several tasks write ranges of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputFile {
    /// Its path in the staging directory.
    #[serde(with = "crate::names")]
    pub path: PathBuf,
    /// Its whole length.
    pub bytes: u64,
}

/// A range of an output file, as a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeSpec {
    /// The file.
    pub file: OutputFile,
    /// Where the range begins.
    pub offset: u64,
    /// The buckets whose records it holds.
    pub buckets: Range<usize>,
}

impl RangeSpec {
    /// The file, its whole length, and where the range begins.
    pub(super) fn place(&self) -> (&Path, u64, u64) {
        (&self.file.path, self.file.bytes, self.offset)
    }
}

//! Ranges of output files, as the specs of tasks name them.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use gristmill_storage::location::Location;

/// A file that several tasks write ranges of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputFile {
    /// Where it is written: in the job's folder, or where it is uploaded to.
    pub path: Location,
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
    pub(super) fn place(&self) -> (&Location, u64, u64) {
        (&self.file.path, self.file.bytes, self.offset)
    }
}

//! Ranges of output files, as the specs of tasks name them.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::merge::output::MergeProof;
use crate::reduce::RangeProof;
use gristmill_base::record::RECORD_BYTES;
use gristmill_storage::location::Location;
use gristmill_storage::objects::Upload;

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

/// What is proved of a range of the output.
pub trait WrittenProof {
    /// Its bytes, its records, and records whose key equals that of the one before.
    fn counts(&self) -> (u64, u64, u64);

    /// The sum of the CRCs of its records.
    fn checksum(&self) -> u128;

    /// What completes its file, where it was uploaded.
    fn upload(&self) -> Option<&Upload>;

    /// The same, to be set.
    fn upload_mut(&mut self) -> &mut Option<Upload>;
}

impl WrittenProof for MergeProof {
    fn counts(&self) -> (u64, u64, u64) {
        (self.bytes, self.records, self.duplicates)
    }

    fn checksum(&self) -> u128 {
        self.checksum
    }

    fn upload(&self) -> Option<&Upload> {
        self.upload.as_ref()
    }

    fn upload_mut(&mut self) -> &mut Option<Upload> {
        &mut self.upload
    }
}

/// Of records of the sort benchmark.
impl WrittenProof for RangeProof {
    fn counts(&self) -> (u64, u64, u64) {
        let records = self.check.records;
        let bytes = records * RECORD_BYTES as u64;
        (bytes, records, self.check.duplicates)
    }

    fn checksum(&self) -> u128 {
        self.checksum
    }

    fn upload(&self) -> Option<&Upload> {
        self.upload.as_ref()
    }

    fn upload_mut(&mut self) -> &mut Option<Upload> {
        &mut self.upload
    }
}

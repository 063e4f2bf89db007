//! The generate task: makes records of the sort benchmark and writes them to a range of a file.

use std::fmt::{self, Write};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::reduce::RangeProof;
use crate::task::input::name_of;
use crate::task::{
    Checkpoint, Counters, Fingerprint, OutputFile, Side, TaskContext, TaskEnvironment, TaskKind,
    WrittenRange,
};
use gristmill_base::error::Result;
use gristmill_base::order::check::OrderCheck;
use gristmill_base::record::RECORD_BYTES;
use gristmill_base::record::checksum::Checksum;
use gristmill_base::record::layout::{RecordGenerator, RecordLayout};
use gristmill_storage::io::overlap::{OverlappedWriter, TRANSFER_BYTES, writer_bytes};
use gristmill_storage::objects::Upload;

/// Which records to make, and where they go.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GenerateSpec {
    /// The file.
    pub file: OutputFile,
    /// Where in the file the first record goes.
    pub offset: u64,
    /// The first record's number.
    pub start: u128,
    /// How many.
    pub records: u64,
    /// How their bytes follow from their numbers.
    pub layout: RecordLayout,
    /// Whether keys share prefixes.
    pub skew: bool,
}

/// Memory of a worker that generates.
pub const GENERATE_WORKER_BYTES: u64 = writer_bytes(TRANSFER_BYTES);

/// Records made at a time: they are summed while they are in the cache.
const BLOCK_RECORDS: u64 = 128;

impl TaskKind for GenerateSpec {
    type Report = RangeProof;

    fn run(&self, (context, attempt, scratch): TaskEnvironment<'_>) -> Result<Self::Report> {
        let _memory = context
            .node
            .budget
            .reserve("output buffers", GENERATE_WORKER_BYTES)?;
        let mut records = RecordGenerator::new(self.layout, self.skew, self.start);
        let mut checksum = Checksum::new(RECORD_BYTES);
        let OutputFile { path, bytes } = &self.file;
        let sending = context.sending(path, *bytes);
        let file = context.create(path, *bytes, sending.as_ref())?;
        OverlappedWriter::run(&mut scratch.buffers, TRANSFER_BYTES, |writer| {
            writer.begin(Arc::clone(&file), self.offset)?;
            let mut left = self.records;
            while left > 0 {
                let now = left.min(BLOCK_RECORDS);
                let bytes = now as usize * RECORD_BYTES;
                let block = &mut writer.room(bytes)?[..bytes];
                records.fill(block);
                checksum.update(block);
                writer.advance(bytes);
                attempt.progress(bytes as u64)?;
                left -= now;
            }
            Ok(())
        })?;
        let check = OrderCheck {
            records: self.records,
            ..OrderCheck::default()
        };
        Ok(RangeProof {
            check,
            checksum: checksum.value(),
            upload: file.finish()?,
        })
    }

    fn input(&self, _context: &TaskContext) -> String {
        let (name, first) = (name_of(&self.file.path), self.start);
        let end = first.saturating_add(u128::from(self.records));
        format!("{name}, records {first} to {end}")
    }

    fn counters(&self, proof: &RangeProof) -> Counters {
        let records = proof.check.records;
        vec![
            ("MAP_OUTPUT_RECORDS", records),
            ("FILE_BYTES_WRITTEN", records * RECORD_BYTES as u64),
        ]
    }

    fn side(&self) -> Option<Side> {
        Some(Side::Map)
    }

    fn checkpoint(&self, proof: &RangeProof) -> Option<Checkpoint> {
        let place = (&self.file.path, self.file.bytes, self.offset);
        WrittenRange::of(place, proof).map(Checkpoint::Generate)
    }

    fn fingerprint(&self, print: &mut Fingerprint) -> fmt::Result {
        print.name(self.file.path.as_typed())?;
        let places = (self.file.bytes, self.offset, self.start, self.records);
        write!(print, "{places:?} {:?} {}", self.layout, self.skew)
    }

    fn uploads(proof: &RangeProof) -> Vec<&Upload> {
        proof.upload.iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::TaskSpec;

    /// A history of an earlier version holds these numbers: jobs that it tells of can be resumed while they stay.
    #[test]
    fn fingerprints_are_what_they_were() {
        let spec = |layout| {
            TaskSpec::Generate(GenerateSpec {
                file: OutputFile {
                    path: "/out/part-m-00000".into(),
                    bytes: 1000,
                },
                offset: 300,
                start: 3,
                records: 7,
                layout,
                skew: false,
            })
        };
        assert_eq!(
            spec(RecordLayout::Hadoop).fingerprint(),
            0x866c_333b_39cf_36db
        );
        assert_eq!(
            spec(RecordLayout::Ascii).fingerprint(),
            0x8761_8655_de87_f283
        );
    }
}

//! The generate task: makes records of the sort benchmark and writes them to a range of a file.

use std::sync::Arc;

use super::{Attempt, OutputFile, Scratch, TaskContext};
use crate::error::Result;
use crate::order::check::OrderCheck;
use crate::record::RECORD_BYTES;
use crate::record::checksum::Checksum;
use crate::record::layout::{Layout, Records};
use crate::reduce::RangeProof;
use crate::storage::Caching;
use crate::storage::overlap::{OverlappedWriter, TRANSFER_BYTES, writer_bytes};

/// Which records to make, and where they go.
#[derive(Debug, Clone, PartialEq)]
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
    pub layout: Layout,
    /// Whether keys share prefixes.
    pub skew: bool,
}

/// Memory of a worker that generates.
pub const GENERATE_WORKER_BYTES: u64 = writer_bytes(TRANSFER_BYTES);

/// Records made at a time: they are summed while they are in the cache.
const BLOCK_RECORDS: u64 = 128;

pub(super) fn run(
    spec: &GenerateSpec,
    context: &TaskContext,
    attempt: &Attempt<'_>,
    scratch: &mut Scratch,
) -> Result<RangeProof> {
    let _memory = context
        .budget
        .reserve("output buffers", GENERATE_WORKER_BYTES)?;
    let mut records = Records::new(spec.layout, spec.skew, spec.start);
    let mut checksum = Checksum::new(RECORD_BYTES);
    OverlappedWriter::run(&mut scratch.buffers, TRANSFER_BYTES, |writer| {
        let file = context
            .store
            .create(&spec.file.path, spec.file.bytes, Caching::Direct)?;
        writer.begin(Arc::from(file), spec.offset)?;
        let mut left = spec.records;
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
        records: spec.records,
        ..OrderCheck::default()
    };
    Ok(RangeProof {
        check,
        checksum: checksum.value(),
    })
}

//! The validate task: checks order and sums CRCs over a range of a file.

use serde::{Deserialize, Serialize};

use crate::task::context::JobShared;
use crate::task::input::{InputPiece, input_pieces, pieces};
use crate::task::{Counters, Side, TaskContext, TaskEnvironment, TaskKind};
use gristmill_base::error::Result;
use gristmill_base::order::check::OrderCheck;
use gristmill_base::record::RECORD_BYTES;
use gristmill_base::record::checksum::Checksum;
use gristmill_storage::input::InputRange;
use gristmill_storage::io::direct::ended_early;
use gristmill_storage::io::overlap::TRANSFER_BYTES;
use gristmill_storage::io::probe::resident_share;
use gristmill_storage::io::read_ahead::{RANGES_AT_ONCE, read_through};
use gristmill_storage::{BLOCK_BYTES, Caching, ReadFile};

/// Which range to check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValidateSpec {
    /// The range: whole records.
    pub piece: InputRange,
}

/// What was found in a range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValidateReport {
    /// The range.
    pub piece: InputRange,
    /// Order, ends and duplicates.
    pub check: OrderCheck,
    /// The sum of the records' CRCs.
    pub checksum: u128,
}

/// Memory of a worker that validates: two buffers.
pub const VALIDATE_WORKER_BYTES: u64 = 2 * BLOCK_TRANSFER as u64;

/// A transfer of whole records and whole device blocks.
const BLOCK_TRANSFER: usize =
    TRANSFER_BYTES / (RECORD_BYTES * BLOCK_BYTES) * (RECORD_BYTES * BLOCK_BYTES);

/// Records that are checked at a time, in the first-level cache.
const BLOCK_RECORDS: usize = 256;

/// The share of a file in the page cache from which on it is read through it.
const MOSTLY: f64 = 0.9;

impl TaskKind for ValidateSpec {
    type Report = ValidateReport;

    fn input_pieces(&self, job: &JobShared) -> Vec<InputPiece> {
        input_pieces(&[self.piece], job)
    }

    fn run(&self, (context, attempt, scratch): TaskEnvironment<'_>) -> Result<Self::Report> {
        let piece = self.piece;
        let input = &context.job.files[piece.file];
        let cached = context.node.store.open_input(input, Caching::Cached)?;
        let file = if is_cached(&*cached, input.stat.bytes) {
            cached
        } else {
            context.node.store.open_input(input, Caching::Direct)?
        };
        // The two buffers in one, and as many of that length as there is memory for.
        let ahead = context.job.ahead_bytes / VALIDATE_WORKER_BYTES;
        let (block, count) = match ahead.min(RANGES_AT_ONCE as u64) as usize {
            ahead if ahead > 0 && file.is_remote() => (2 * BLOCK_TRANSFER, 1 + ahead),
            _ => (BLOCK_TRANSFER, 2),
        };
        let budget = &context.node.budget;
        let _memory = budget.reserve("input buffers", (block * count) as u64)?;
        let mut check = OrderCheck::default();
        let mut checksum = Checksum::new(RECORD_BYTES);
        read_through(
            &*file,
            piece.range(),
            (block, count),
            &mut scratch.buffers,
            |data| {
                for block in data.chunks(BLOCK_RECORDS * RECORD_BYTES) {
                    let whole = block.len() / RECORD_BYTES * RECORD_BYTES;
                    check.update(&block[..whole], RECORD_BYTES);
                    checksum.update(&block[..whole]);
                }
                attempt.progress(data.len() as u64)
            },
        )?;
        let read = check.records * RECORD_BYTES as u64;
        if read != piece.bytes {
            return Err(ended_early(
                input.path.as_typed(),
                piece.offset + piece.bytes,
                piece.offset + read,
            ));
        }
        Ok(ValidateReport {
            piece,
            check,
            checksum: checksum.value(),
        })
    }

    fn input(&self, context: &TaskContext) -> String {
        pieces(&[self.piece], context)
    }

    fn counters(&self, found: &ValidateReport) -> Counters {
        let records = found.check.records;
        vec![
            ("MAP_INPUT_RECORDS", records),
            ("FILE_BYTES_READ", records * RECORD_BYTES as u64),
        ]
    }

    fn side(&self) -> Option<Side> {
        Some(Side::Map)
    }
}

fn is_cached(file: &dyn ReadFile, bytes: u64) -> bool {
    file.descriptor()
        .is_some_and(|descriptor| resident_share(descriptor, bytes) >= MOSTLY)
}

//! Reduce: sorts buckets, gathers their records into the output, and proves what it writes.
//!
//! ```text
//!   entries of a bucket ──sort──▶ batch, in order ──gather──▶ output buffer ──▶ file, direct
//!   (a slice per block)                  ▲                       │
//!                      arena ────────────┘                       └──▶ order check, checksum
//! ```
//!
//! A record is copied once, from where it lies to the buffer it is written from. Order and checksum are taken from
//! that buffer, behind the gather: what is proved is what is written.

mod bucket;
mod gather;
pub mod lines;
mod oversized;

use std::ops::Range;

use serde::{Deserialize, Serialize};

use self::bucket::SortBatch;
use self::gather::Gather;
use gristmill_base::error::{Error, Result};
use gristmill_base::order::check::OrderCheck;
use gristmill_base::order::packed::{Packed, Packing};
use gristmill_base::order::refine::{KeySource, Refiner};
use gristmill_base::order::scatter::ScatteredEntries;
use gristmill_base::record::KEY_BYTES;
use gristmill_base::record::checksum::Checksum;
use gristmill_storage::io::overlap::{OverlappedWriter, writer_bytes};
use gristmill_storage::objects::Upload;

/// Records that are checked and summed at a time: they stay in the first-level cache between the two.
const BLOCK_RECORDS: usize = 128;

/// Takes a batch: the positions of its records, in order (whatever key bits stand before them).
type Take<'a> = &'a mut dyn FnMut(&[Packed]) -> Result<()>;

/// Where records come from.
#[derive(Debug)]
pub struct GatherSource<'a> {
    /// All bytes of input.
    pub arena: &'a [u8],
    /// The entries of all splits, in order of the splits.
    pub entries: &'a [&'a ScatteredEntries],
    /// How those are packed.
    pub packing: &'a Packing,
    /// The record length.
    pub record_bytes: usize,
}

impl KeySource for GatherSource<'_> {
    fn key_at(&self, position: u64) -> &[u8] {
        let record = &self.arena[position as usize..];
        record.get(..KEY_BYTES).unwrap_or(record)
    }

    fn longest(&self) -> usize {
        KEY_BYTES
    }
}

/// What was written to one range.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeProof {
    /// Order, count, ends and duplicates.
    pub check: OrderCheck,
    /// The sum of the CRCs of the range's records.
    pub checksum: u128,
    /// What completes the file, where it was uploaded.
    pub upload: Option<Upload>,
}

/// What one worker reuses from task to task.
#[derive(Debug, Default)]
pub struct ReduceScratch {
    batch: SortBatch,
    gather: Gather,
}

/// Most records of a batch.
pub const BATCH_RECORDS_MAX: usize = gather::RECORDS_MAX;

/// Memory of a worker that reduces, for batches of so many records.
pub fn worker_bytes(batch_records: usize, record_bytes: usize) -> u64 {
    let batch = batch_records * (size_of::<Packed>() + size_of::<u64>());
    batch as u64 + Refiner::bytes(batch_records) + writer_bytes(batch_records * record_bytes)
}

impl ReduceScratch {
    /// Gives room for batches of up to `batch_records` records (at most [`BATCH_RECORDS_MAX`]).
    pub fn begin(&mut self, batch_records: usize) -> Result<()> {
        self.batch.begin(batch_records)?;
        self.gather.begin(batch_records)
    }
}

/// Writes the records of `buckets` to where `writer` stands, in batches. `progress` is told of bytes as they are done, and may
/// stop the task.
pub fn reduce_range(
    source: &GatherSource<'_>,
    buckets: Range<usize>,
    scratch: &mut ReduceScratch,
    writer: &mut OverlappedWriter,
    progress: &dyn Fn(u64) -> Result<()>,
) -> Result<RangeProof> {
    let ReduceScratch { batch, gather } = scratch;
    let mut output = RangeOutput::new(writer, source, gather);
    let take: Take<'_> = &mut |entries| {
        output.append(entries)?;
        progress((entries.len() * source.record_bytes) as u64)
    };
    let mut slices = Vec::new();
    for bucket in buckets {
        slices.clear();
        let splits = source.entries.iter();
        slices.extend(splits.flat_map(|entries| entries.slices(bucket)));
        batch.add(bucket, &slices, source.packing, source, take)?;
    }
    batch.flush(take)?;
    output.proof()
}

/// The output side of a range: gathers, checks, sums.
struct RangeOutput<'a> {
    writer: &'a mut OverlappedWriter,
    source: &'a GatherSource<'a>,
    gather: &'a mut Gather,
    check: OrderCheck,
    checksum: Checksum,
}

impl<'a> RangeOutput<'a> {
    fn new(
        writer: &'a mut OverlappedWriter,
        source: &'a GatherSource<'a>,
        gather: &'a mut Gather,
    ) -> Self {
        let checksum = Checksum::new(source.record_bytes);
        RangeOutput {
            writer,
            source,
            gather,
            check: OrderCheck::default(),
            checksum,
        }
    }

    /// Appends the records of a batch.
    fn append(&mut self, entries: &[Packed]) -> Result<()> {
        let GatherSource {
            arena,
            packing,
            record_bytes,
            ..
        } = *self.source;
        let bytes = entries.len() * record_bytes;
        let out = &mut self.writer.room(bytes)?[..bytes];
        self.gather
            .gather(arena, entries, packing, record_bytes, out);
        for block in out.chunks(BLOCK_RECORDS * record_bytes) {
            self.check.update(block, record_bytes);
            self.checksum.update(block);
        }
        self.writer.advance(bytes);
        Ok(())
    }

    /// What was seen; an error if it is out of order, which nothing but a bug or broken memory can make it.
    fn proof(self) -> Result<RangeProof> {
        if let Some(misorder) = self.check.first_misorders.first() {
            let message = format!("record {} of a range is out of order", misorder.record);
            return Err(Error::new(
                gristmill_base::Kind::Proof,
                "prove the output",
                message,
            ));
        }
        Ok(RangeProof {
            check: self.check,
            checksum: self.checksum.value(),
            upload: None,
        })
    }
}

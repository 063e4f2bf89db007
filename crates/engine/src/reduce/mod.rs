//! Reduce: sorts buckets, gathers their records into the output, and proves what it writes.
//!
//! ```text
//!   entries of a bucket ──sort──▶ entries in order ──gather──▶ output buffer ──▶ file, direct
//!   (a slice per block)                   ▲                       │
//!                      arena ─────────────┘                       └──▶ order check, checksum
//! ```
//!
//! A record is copied once, from where it lies to the buffer it is written from. Order and checksum are taken from
//! that buffer, 12 kB at a time while it is in the first-level cache: what is proved is what is written.

mod bucket;
mod gather;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

pub use bucket::BucketScratch;

use crate::error::{Error, Result};
use crate::order::Entry;
use crate::order::check::OrderCheck;
use crate::order::scatter::Scattered;
use crate::record::checksum::Checksum;
use crate::storage::overlap::{Buffers, OverlappedWriter};
use crate::storage::{Caching, Store};

/// Records that are gathered, checked and summed at a time.
const BLOCK_RECORDS: usize = 128;

/// A range of an output file.
#[derive(Debug)]
pub struct PartRange<'a> {
    /// The file, in the staging directory.
    pub path: &'a Path,
    /// The file's whole length.
    pub file_bytes: u64,
    /// Where the range begins.
    pub offset: u64,
    /// The buckets whose records it holds.
    pub buckets: Range<usize>,
}

/// Where records come from.
#[derive(Debug)]
pub struct Source<'a> {
    /// All bytes of input.
    pub arena: &'a [u8],
    /// The entries of all splits, in order of the splits.
    pub entries: &'a [&'a Scattered],
    /// The record length.
    pub record_bytes: usize,
}

/// What was written to one range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeProof {
    /// Order, count, ends and duplicates.
    pub check: OrderCheck,
    /// The sum of the CRCs of the range's records.
    pub checksum: u128,
}

/// What one worker reuses from task to task.
#[derive(Debug, Default)]
pub struct ReduceScratch {
    bucket: BucketScratch,
    buffers: Buffers,
}

/// Writes the ranges, one after another. `progress` is told of bytes as they are done, and may stop the task.
pub fn reduce_ranges(
    store: &dyn Store,
    source: &Source<'_>,
    ranges: &[PartRange<'_>],
    scratch: &mut ReduceScratch,
    progress: &dyn Fn(u64) -> Result<()>,
) -> Result<Vec<RangeProof>> {
    let ReduceScratch { bucket, buffers } = scratch;
    bucket.prepare()?;
    OverlappedWriter::run(buffers, |writer| {
        let mut proofs = Vec::with_capacity(ranges.len());
        let mut slices = Vec::new();
        for range in ranges {
            let file = store.create(range.path, range.file_bytes, Caching::Direct)?;
            writer.begin(Arc::from(file), range.offset)?;
            let mut output = Output::new(writer, source);
            for number in range.buckets.clone() {
                slices.clear();
                slices.extend(
                    source
                        .entries
                        .iter()
                        .flat_map(|entries| entries.slices(number)),
                );
                bucket.for_each_run(&slices, &mut |entries| {
                    output.append(entries)?;
                    progress((entries.len() * source.record_bytes) as u64)
                })?;
            }
            proofs.push(output.proof()?);
        }
        Ok(proofs)
    })
}

/// The output side of a range: gathers, checks, sums.
struct Output<'a> {
    writer: &'a mut OverlappedWriter,
    arena: &'a [u8],
    record_bytes: usize,
    check: OrderCheck,
    checksum: Checksum,
}

impl<'a> Output<'a> {
    fn new(writer: &'a mut OverlappedWriter, source: &Source<'a>) -> Self {
        let Source {
            arena,
            record_bytes,
            ..
        } = *source;
        let checksum = Checksum::new(record_bytes);
        Output {
            writer,
            arena,
            record_bytes,
            check: OrderCheck::default(),
            checksum,
        }
    }

    /// Appends the records of `entries`, which are in order.
    fn append(&mut self, entries: &[Entry]) -> Result<()> {
        let mut done = 0;
        while done < entries.len() {
            let room = self.writer.room(BLOCK_RECORDS * self.record_bytes)?;
            let records = (room.len() / self.record_bytes).min(entries.len() - done);
            let out = &mut room[..records * self.record_bytes];
            for block in out.chunks_mut(BLOCK_RECORDS * self.record_bytes) {
                let ahead = &entries[done..];
                gather::gather(self.arena, ahead, self.record_bytes, block);
                self.check.update(block, self.record_bytes);
                self.checksum.update(block);
                done += block.len() / self.record_bytes;
            }
            self.writer.advance(records * self.record_bytes);
        }
        Ok(())
    }

    /// What was seen; an error if it is out of order, which nothing but a bug or broken memory can make it.
    fn proof(self) -> Result<RangeProof> {
        if let Some(misorder) = self.check.first_misorders.first() {
            let message = format!("record {} of a range is out of order", misorder.record);
            return Err(Error::new(crate::Kind::Proof, "prove the output", message));
        }
        Ok(RangeProof {
            check: self.check,
            checksum: self.checksum.value(),
        })
    }
}

//! The reduce task: ranges of output files, from the buckets of all map outputs.

use std::fmt::{self, Write};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::reduce::{GatherSource, PartRange, RangeProof, reduce_ranges, worker_bytes};
use crate::task::input;
use crate::task::{
    AttemptId, Checkpoint, Counters, Fingerprint, RangeSpec, Side, TaskContext, TaskEnvironment,
    TaskKind, WrittenRange,
};
use gristmill_base::error::Result;
use gristmill_base::order::CutPoints;
use gristmill_base::order::packed::Packing;
use gristmill_base::order::scatter::ScatteredEntries;
use gristmill_base::record::RECORD_BYTES;
use gristmill_storage::objects::Upload;

/// Which ranges to write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReduceSpec {
    /// The ranges, in order.
    pub ranges: Vec<RangeSpec>,
    /// The map outputs to read: one for each split, in order of the splits.
    #[serde(with = "crate::task::wire::shared")]
    pub inputs: Arc<Vec<AttemptId>>,
    /// The cut points by which they were scattered.
    #[serde(with = "crate::task::wire::shared")]
    pub cuts: Arc<CutPoints>,
    /// The job's record length.
    pub record_bytes: usize,
    /// Most records of a batch: they are gathered together, and written together.
    pub batch_records: usize,
}

impl TaskKind for ReduceSpec {
    type Report = Vec<RangeProof>;

    fn run(&self, (context, attempt, scratch): TaskEnvironment<'_>) -> Result<Self::Report> {
        let memory_bytes = worker_bytes(self.batch_records, self.record_bytes);
        let _memory = context
            .node
            .budget
            .reserve("reduce buffers", memory_bytes)?;
        let memory = context.memory()?;
        let arena = &memory.arena;
        arena.seal()?;
        let outputs = self
            .inputs
            .iter()
            .map(|id| memory.output_of(*id))
            .collect::<Result<Vec<_>>>()?;
        let ranges: Vec<PartRange<'_>> = self
            .ranges
            .iter()
            .map(|range| PartRange {
                path: &range.file.path,
                file_bytes: range.file.bytes,
                offset: range.offset,
                buckets: range.buckets.clone(),
            })
            .collect();
        let entries: Vec<&ScatteredEntries> =
            outputs.iter().map(|output| &output.entries).collect();
        let packing = Packing::new(&self.cuts, arena.addresses());
        let progress = |bytes| attempt.progress(bytes);
        let source = GatherSource {
            arena: arena.sealed()?,
            entries: &entries,
            packing: &packing,
            record_bytes: self.record_bytes,
        };
        let (scratch, batch_records) = (&mut scratch.reduce, self.batch_records);
        let longest = self.ranges.iter().max_by_key(|range| range.file.bytes);
        let sending = longest.and_then(|range| context.sending(&range.file.path, range.file.bytes));
        reduce_ranges(
            (&context.node.store, sending),
            &source,
            &ranges,
            batch_records,
            scratch,
            &progress,
        )
    }

    fn input(&self, _context: &TaskContext) -> String {
        input::ranges(&self.ranges)
    }

    fn counters(&self, proofs: &Vec<RangeProof>) -> Counters {
        let records = proofs.iter().map(|proof| proof.check.records).sum();
        vec![
            ("REDUCE_INPUT_RECORDS", records),
            ("REDUCE_OUTPUT_RECORDS", records),
            ("FILE_BYTES_WRITTEN", records * RECORD_BYTES as u64),
        ]
    }

    fn side(&self) -> Option<Side> {
        Some(Side::Reduce)
    }

    fn stays_here(&self) -> bool {
        true
    }

    fn writes_apart(&self) -> bool {
        false
    }

    fn checkpoint(&self, proofs: &Vec<RangeProof>) -> Option<Checkpoint> {
        let written = |(range, proof): (&RangeSpec, &RangeProof)| {
            let check = &proof.check;
            let bytes = check.records * self.record_bytes as u64;
            let counts = (bytes, check.records, check.duplicates);
            WrittenRange::of(range.place(), counts, proof.checksum)
        };
        let ranges = self.ranges.iter().zip(proofs).map(written);
        ranges.collect::<Option<_>>().map(Checkpoint::Reduce)
    }

    fn fingerprint(&self, print: &mut Fingerprint) -> fmt::Result {
        write!(print, "{} ", self.record_bytes)?;
        print.ranges("reduce", &self.ranges)
    }

    fn uploads(proofs: &Vec<RangeProof>) -> Vec<&Upload> {
        proofs.iter().flat_map(|proof| &proof.upload).collect()
    }
}

//! The reduce task: ranges of output files, from the buckets of all map outputs.

use std::ops::Range;
use std::sync::Arc;

use super::{Attempt, AttemptId, OutputFile, Scratch, TaskContext};
use crate::error::Result;
use crate::order::CutPoints;
use crate::order::packed::Packing;
use crate::order::scatter::Scattered;
use crate::reduce::{PartRange, RangeProof, Source, reduce_ranges, worker_bytes};

/// A range of an output file, as a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeSpec {
    /// The file.
    pub file: OutputFile,
    /// Where the range begins.
    pub offset: u64,
    /// The buckets whose records it holds.
    pub buckets: Range<usize>,
}

/// Which ranges to write.
#[derive(Debug, Clone, PartialEq)]
pub struct ReduceSpec {
    /// The ranges, in order.
    pub ranges: Vec<RangeSpec>,
    /// The map outputs to read: one for each split, in order of the splits.
    pub inputs: Arc<Vec<AttemptId>>,
    /// The cut points by which they were scattered.
    pub cuts: Arc<CutPoints>,
    /// The job's record length.
    pub record_bytes: usize,
    /// Most records of a batch: they are gathered together, and written together.
    pub batch_records: usize,
}

pub(super) fn run(
    spec: &ReduceSpec,
    context: &TaskContext,
    attempt: &Attempt<'_>,
    scratch: &mut Scratch,
) -> Result<Vec<RangeProof>> {
    let memory_bytes = worker_bytes(spec.batch_records, spec.record_bytes);
    let _memory = context.budget.reserve("reduce buffers", memory_bytes)?;
    let arena = context.arena()?;
    arena.seal()?;
    let outputs = spec
        .inputs
        .iter()
        .map(|id| context.output_of(*id))
        .collect::<Result<Vec<_>>>()?;
    let ranges: Vec<PartRange<'_>> = spec
        .ranges
        .iter()
        .map(|range| PartRange {
            path: &range.file.path,
            file_bytes: range.file.bytes,
            offset: range.offset,
            buckets: range.buckets.clone(),
        })
        .collect();
    let entries: Vec<&Scattered> = outputs.iter().map(|output| &output.entries).collect();
    let packing = Packing::new(&spec.cuts, arena.addresses());
    let progress = |bytes| attempt.progress(bytes);
    let source = Source {
        arena: arena.sealed()?,
        entries: &entries,
        packing: &packing,
        record_bytes: spec.record_bytes,
    };
    let (scratch, batch_records) = (&mut scratch.reduce, spec.batch_records);
    reduce_ranges(
        &*context.store,
        &source,
        &ranges,
        batch_records,
        scratch,
        &progress,
    )
}

//! The map task: one split to entries by bucket, kept for the reduce tasks.

use std::sync::Arc;

use super::{Attempt, AttemptId, Scratch, TaskContext};
use crate::error::Result;
use crate::map::{MapInput, map_split};
use crate::order::packed::Packing;
use crate::order::scatter::Staging;
use crate::order::{Classifier, CutPoints};
use crate::storage::input::Piece;

/// Which split to map, and where its buckets are cut.
#[derive(Debug, Clone, PartialEq)]
pub struct MapSpec {
    /// The split.
    pub split: Vec<Piece>,
    /// The job's record length.
    pub record_bytes: usize,
    /// The job's cut points, shared by all its map tasks.
    pub cuts: Arc<CutPoints>,
}

/// What a map task found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapReport {
    /// Under which name the entries are kept.
    pub output: AttemptId,
    /// Bytes consumed.
    pub bytes: u64,
    /// Records read.
    pub records: u64,
    /// The sum of their CRCs.
    pub checksum: u128,
    /// How many of them fell in each bucket.
    pub bucket_counts: Vec<u32>,
}

pub(super) fn run(
    spec: &MapSpec,
    context: &TaskContext,
    attempt: &Attempt<'_>,
    scratch: &mut Scratch,
) -> Result<MapReport> {
    let classifier = Classifier::new(&spec.cuts);
    let arena = context.arena()?;
    let packing = Packing::new(&spec.cuts, arena.addresses());
    let input = MapInput {
        store: &*context.store,
        arena,
        files: &context.files,
        record_bytes: spec.record_bytes,
        classifier: &classifier,
        packing: &packing,
        buckets: spec.cuts.buckets(),
    };
    let _staging = context
        .budget
        .reserve("map staging", Staging::bytes(input.buckets))?;
    let progress = |bytes| attempt.progress(bytes);
    let output = map_split(&input, &spec.split, &mut scratch.staging, &progress)?;
    let report = MapReport {
        output: attempt.id,
        bytes: output.bytes,
        records: output.entries.len() as u64,
        checksum: output.checksum,
        bucket_counts: output.entries.bucket_counts(input.buckets),
    };
    context.keep_output(attempt.id, output);
    Ok(report)
}

//! Records of one length, sorted in memory by entries of their keys: as TeraSort does.

use std::fmt::{self, Write};

use serde::{Deserialize, Serialize};

use super::gather::{GatherPlan, GatherSpec};
use super::scatter::{ScatterPlan, ScatterReport};
use crate::map::{MapInput, map_split};
use crate::reduce::{GatherSource, RangeProof, reduce_range, worker_bytes};
use crate::task::{Checkpoint, Fingerprint, RangeSpec, TaskEnvironment, WrittenRange};
use gristmill_base::error::Result;
use gristmill_base::order::packed::Packing;
use gristmill_base::order::scatter::{EntryStaging, ScatteredEntries};
use gristmill_base::order::{Classifier, CutPoints};
use gristmill_storage::input::InputRange;

/// Where entries of records go that are sorted in memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryPlan {
    /// Where buckets are cut.
    pub cuts: CutPoints,
    /// The job's record length.
    pub record_bytes: usize,
    /// Most records of a batch: they are gathered together, and written together.
    pub batch_records: usize,
}

impl ScatterPlan for EntryPlan {
    type Size = u32;

    fn scatter(
        &self,
        split: &[InputRange],
        (context, attempt, scratch): TaskEnvironment<'_>,
    ) -> Result<ScatterReport<u32>> {
        let memory = context.memory()?;
        let input = MapInput {
            store: &context.node.store,
            arena: &memory.arena,
            files: &context.job.files,
            record_bytes: self.record_bytes,
            classifier: &Classifier::new(&self.cuts),
            packing: &Packing::new(&self.cuts, memory.arena.addresses()),
            buckets: self.cuts.buckets(),
        };
        let staging_bytes = EntryStaging::bytes(input.buckets);
        let _staging = context.node.budget.reserve("map staging", staging_bytes)?;
        let progress = |bytes| attempt.progress(bytes);
        let output = map_split(&input, split, &mut scratch.staging, &progress)?;
        let report = ScatterReport {
            output: attempt.id,
            bytes: output.bytes,
            records: output.entries.len() as u64,
            longest: self.record_bytes as u64,
            checksum: output.checksum,
            sizes: output.entries.bucket_counts(input.buckets),
        };
        memory.keep(attempt.id, output.entries);
        Ok(report)
    }
}

impl GatherPlan for EntryPlan {
    type Proof = RangeProof;

    const CHECKPOINT: fn(Vec<WrittenRange>) -> Checkpoint = Checkpoint::Reduce;

    fn gather(
        &self,
        of: &GatherSpec<Self>,
        (context, attempt, scratch): TaskEnvironment<'_>,
    ) -> Result<Vec<RangeProof>> {
        let (records, record_bytes) = (self.batch_records, self.record_bytes);
        let budget = &context.node.budget;
        let _memory = budget.reserve("reduce buffers", worker_bytes(records, record_bytes))?;
        let memory = context.memory()?;
        let kept = memory.kept::<ScatteredEntries>(&of.inputs)?;
        let source = GatherSource {
            arena: memory.arena.sealed()?,
            entries: &kept.iter().map(|entries| &**entries).collect::<Vec<_>>(),
            packing: &Packing::new(&self.cuts, memory.arena.addresses()),
            record_bytes,
        };
        let progress = |bytes| attempt.progress(bytes);
        let batches = &mut scratch.reduce;
        batches.begin(records)?;
        let buffers = (&mut scratch.buffers, records * record_bytes);
        of.write(context, buffers, |buckets, writer| {
            reduce_range(&source, buckets, batches, writer, &progress)
        })
    }

    fn fingerprint(&self, ranges: &[RangeSpec], print: &mut Fingerprint) -> fmt::Result {
        write!(print, "{} ", self.record_bytes)?;
        print.ranges("reduce", ranges)
    }
}

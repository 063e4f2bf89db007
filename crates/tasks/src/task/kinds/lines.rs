//! Lines, sorted in memory by their places.

use std::fmt::{self, Write};

use serde::{Deserialize, Serialize};

use super::gather::{GatherPlan, GatherSpec};
use super::scatter::{ScatterPlan, ScatterReport};
use crate::map::lines::{LineInput, scatter_lines};
use crate::merge::output::{MergeProof, ProvenWriter};
use crate::reduce::lines::{FileEnds, LineSource, gather_lines, line_bytes};
use crate::task::{Checkpoint, Fingerprint, RangeSpec, TaskEnvironment, WrittenRange};
use gristmill_base::error::Result;
use gristmill_base::order::borders::Border;
use gristmill_base::order::lines::{Buckets, ScatteredLines};
use gristmill_base::record::shape::LineShape;
use gristmill_storage::input::InputRange;
use gristmill_storage::io::overlap::{TRANSFER_BYTES, writer_bytes};

/// Memory of a worker that gathers lines and writes them. The job holds it: once lines are scattered, there is no way back
/// should it be taken.
pub const GATHER_WORKER_BYTES: u64 = line_bytes() + writer_bytes(TRANSFER_BYTES);

/// Where lines go that are sorted in memory: the same for all tasks of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinePlan {
    /// How lines are ordered.
    pub shape: LineShape,
    /// Where buckets are cut, in ascending order.
    pub borders: Vec<Border>,
}

impl ScatterPlan for LinePlan {
    type Size = (u64, u64);

    fn scatter(
        &self,
        split: &[InputRange],
        (context, attempt, scratch): TaskEnvironment<'_>,
    ) -> Result<ScatterReport<Self::Size>> {
        let memory = context.memory()?;
        let input = LineInput {
            store: &context.node.store,
            arena: &memory.arena,
            files: &context.job.files,
            buckets: &Buckets::new(self.shape, &self.borders),
            budget: &context.node.budget,
        };
        let progress = |bytes| attempt.progress(bytes);
        let output = scatter_lines(&input, split, &mut scratch.line_staging, &progress)?;
        let report = ScatterReport {
            output: attempt.id,
            bytes: output.bytes,
            records: output.records,
            longest: output.longest,
            checksum: output.checksum,
            sizes: output.lines.sizes().to_vec(),
        };
        memory.keep(attempt.id, output.lines);
        Ok(report)
    }
}

impl GatherPlan for LinePlan {
    type Proof = MergeProof;

    const CHECKPOINT: fn(Vec<WrittenRange>) -> Checkpoint = Checkpoint::GatherLines;

    fn gather(
        &self,
        of: &GatherSpec<Self>,
        (context, attempt, scratch): TaskEnvironment<'_>,
    ) -> Result<Vec<MergeProof>> {
        let memory = context.memory()?;
        let kept = memory.kept::<ScatteredLines>(&of.inputs)?;
        let files = &context.job.files;
        let source = LineSource {
            arena: memory.arena.sealed()?,
            ends: &FileEnds {
                starts: &context.starts,
                bytes: files.iter().map(|file| file.stat.bytes).collect(),
            },
            splits: &kept.iter().map(|lines| &**lines).collect::<Vec<_>>(),
            buckets: &Buckets::new(self.shape, &self.borders),
            shape: self.shape,
        };
        let progress = |bytes| attempt.progress(bytes);
        let (lines, buffers) = (&mut scratch.lines, &mut scratch.buffers);
        of.write(context, (buffers, TRANSFER_BYTES), |buckets, writer| {
            let mut out = ProvenWriter::new(self.shape, false, writer);
            gather_lines(&source, buckets, lines, &progress, |line| out.append(line))?;
            out.proof()
        })
    }

    fn fingerprint(&self, ranges: &[RangeSpec], print: &mut Fingerprint) -> fmt::Result {
        write!(print, "{:?} {} ", self.shape, self.borders.len())?;
        print.borders(&self.borders)?;
        print.ranges("gather", ranges)
    }
}

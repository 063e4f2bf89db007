//! The task that writes ranges of the output, from the lines that others have scattered in memory.

use std::fmt::{self, Write};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::scatter_lines::LinePlan;
use crate::merge::output::{MergeProof, ProvenWriter};
use crate::reduce::lines::{FileEnds, LineSource, gather_lines, line_bytes};
use crate::task::input;
use crate::task::{
    AttemptId, Checkpoint, Counters, Fingerprint, RangeSpec, Side, TaskContext, TaskEnvironment,
    TaskKind, WrittenRange,
};
use gristmill_base::error::Result;
use gristmill_base::order::lines::Buckets;
use gristmill_storage::io::overlap::{OverlappedWriter, TRANSFER_BYTES, writer_bytes};
use gristmill_storage::objects::Upload;
use gristmill_storage::{Caching, WriteFile};

/// Memory of a worker that gathers lines and writes them. The job holds it: once lines are scattered, there is no way back
/// should it be taken.
pub const GATHER_WORKER_BYTES: u64 = line_bytes() + writer_bytes(TRANSFER_BYTES);

/// Which ranges to write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatherLinesSpec {
    /// The ranges, in order.
    pub ranges: Vec<RangeSpec>,
    /// What was scattered: one for each split, in order of the splits.
    #[serde(with = "crate::task::wire::shared")]
    pub inputs: Arc<Vec<AttemptId>>,
    /// The order and the buckets.
    #[serde(with = "crate::task::wire::shared")]
    pub plan: Arc<LinePlan>,
}

impl TaskKind for GatherLinesSpec {
    type Report = Vec<MergeProof>;

    fn run(&self, (context, attempt, scratch): TaskEnvironment<'_>) -> Result<Self::Report> {
        let memory = context.memory()?;
        memory.arena.seal()?;
        let inputs = self.inputs.iter().map(|id| memory.lines_of(*id));
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        let splits: Vec<_> = inputs.iter().map(|lines| &**lines).collect();
        let files = &context.job.files;
        let source = LineSource {
            arena: memory.arena.sealed()?,
            ends: &FileEnds {
                starts: &context.starts,
                bytes: files.iter().map(|file| file.stat.bytes).collect(),
            },
            splits: &splits,
            buckets: &Buckets::new(self.plan.shape, &self.plan.borders),
            shape: self.plan.shape,
        };
        let progress = |bytes| attempt.progress(bytes);
        let (lines, buffers) = (&mut scratch.lines, &mut scratch.buffers);
        OverlappedWriter::run(buffers, TRANSFER_BYTES, |writer| {
            let mut proofs = Vec::new();
            for range in &self.ranges {
                let (file, store) = (&range.file, &context.node.store);
                let opened = store.create(&file.path, file.bytes, Caching::Direct)?;
                let opened: Arc<dyn WriteFile> = Arc::from(opened);
                writer.begin(Arc::clone(&opened), range.offset)?;
                let mut out = ProvenWriter::new(self.plan.shape, false, writer);
                let buckets = range.buckets.clone();
                gather_lines(&source, buckets, lines, &progress, |line| out.append(line))?;
                proofs.push(out.proof()?);
            }
            Ok(proofs)
        })
    }

    fn input(&self, _context: &TaskContext) -> String {
        input::ranges(&self.ranges)
    }

    fn counters(&self, proofs: &Vec<MergeProof>) -> Counters {
        let sum = |of: fn(&MergeProof) -> u64| proofs.iter().map(of).sum();
        vec![
            ("REDUCE_INPUT_RECORDS", sum(|proof| proof.records)),
            ("REDUCE_OUTPUT_RECORDS", sum(|proof| proof.records)),
            ("FILE_BYTES_WRITTEN", sum(|proof| proof.bytes)),
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

    fn checkpoint(&self, proofs: &Vec<MergeProof>) -> Option<Checkpoint> {
        let written = |(range, proof): (&RangeSpec, &MergeProof)| {
            let counts = (proof.bytes, proof.records, proof.duplicates);
            WrittenRange::of(range.place(), counts, proof.checksum)
        };
        let ranges = self.ranges.iter().zip(proofs).map(written);
        ranges.collect::<Option<_>>().map(Checkpoint::GatherLines)
    }

    fn fingerprint(&self, print: &mut Fingerprint) -> fmt::Result {
        write!(print, "{:?} {} ", self.plan.shape, self.plan.borders.len())?;
        print.borders(&self.plan.borders)?;
        print.ranges("gather", &self.ranges)
    }

    fn uploads(proofs: &Vec<MergeProof>) -> Vec<&Upload> {
        proofs.iter().flat_map(|proof| &proof.upload).collect()
    }
}

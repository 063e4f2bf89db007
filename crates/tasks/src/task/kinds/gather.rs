//! The task that writes ranges of the output, from the buckets that others have scattered in memory.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::merge_target::longest_file;
use super::scatter::ScatterPlan;
use crate::task::input;
use crate::task::{
    AttemptId, Checkpoint, Counters, Fingerprint, OutputFile, RangeSpec, Side, TaskContext,
    TaskEnvironment, TaskKind, WrittenProof, WrittenRange,
};
use gristmill_base::error::Result;
use gristmill_storage::Caps;
use gristmill_storage::io::overlap::{Buffers, OverlappedWriter};
use gristmill_storage::objects::Upload;

/// How what was scattered is gathered to ranges of the output.
pub trait GatherPlan: ScatterPlan {
    /// What was written to a range.
    type Proof: WrittenProof;

    /// What a resumed job knows of ranges.
    const CHECKPOINT: fn(Vec<WrittenRange>) -> Checkpoint;

    /// Writes the ranges of a task.
    ///
    /// # Errors
    /// What was scattered is gone, they cannot be written, or the task was told to stop.
    fn gather(
        &self,
        of: &GatherSpec<Self>,
        environment: TaskEnvironment<'_>,
    ) -> Result<Vec<Self::Proof>>
    where
        Self: Sized;

    /// Feeds all that decides the bytes of these ranges.
    ///
    /// # Errors
    /// None: writing to a fingerprint cannot fail.
    fn fingerprint(&self, ranges: &[RangeSpec], print: &mut Fingerprint) -> fmt::Result;
}

/// Which ranges to write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(bound = "P: GatherPlan")]
pub struct GatherSpec<P> {
    /// The ranges, in order.
    pub ranges: Vec<RangeSpec>,
    /// What was scattered: one for each split, in order of the splits.
    #[serde(with = "crate::task::wire::shared")]
    pub inputs: Arc<Vec<AttemptId>>,
    /// The order and the buckets.
    #[serde(with = "crate::task::wire::shared")]
    pub plan: Arc<P>,
}

impl<P: GatherPlan> TaskKind for GatherSpec<P> {
    type Report = Vec<P::Proof>;

    fn run(&self, (context, attempt, scratch): TaskEnvironment<'_>) -> Result<Self::Report> {
        context.memory()?.arena.seal()?;
        self.plan.gather(self, (context, attempt, scratch))
    }

    fn input(&self, _context: &TaskContext) -> String {
        input::ranges(&self.ranges)
    }

    fn counters(&self, proofs: &Self::Report) -> Counters {
        output_counters(proofs)
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

    fn checkpoint(&self, proofs: &Self::Report) -> Option<Checkpoint> {
        let written = |(range, proof): (&RangeSpec, _)| WrittenRange::of(range.place(), proof);
        let ranges = self.ranges.iter().zip(proofs).map(written);
        ranges.collect::<Option<_>>().map(P::CHECKPOINT)
    }

    fn fingerprint(&self, print: &mut Fingerprint) -> fmt::Result {
        self.plan.fingerprint(&self.ranges, print)
    }

    fn uploads(proofs: &Self::Report) -> Vec<&Upload> {
        proofs.iter().filter_map(P::Proof::upload).collect()
    }
}

impl<P: GatherPlan> GatherSpec<P> {
    /// Writes the ranges one after another, as `gather` has the records of some buckets written.
    pub(super) fn write(
        &self,
        context: &TaskContext,
        (buffers, buffer_bytes): (&mut Buffers, usize),
        mut gather: impl FnMut(Range<usize>, &mut OverlappedWriter) -> Result<P::Proof>,
    ) -> Result<Vec<P::Proof>> {
        let (path, longest) = longest_file(&self.ranges);
        let sending = path.and_then(|path| context.sending(path, longest));
        let mut uploads = Vec::new();
        let mut proofs = OverlappedWriter::run(buffers, buffer_bytes, |writer| {
            let write = |range: &RangeSpec| {
                let OutputFile { path, bytes } = &range.file;
                let file = context.create(path, *bytes, sending.as_ref())?;
                writer.begin(Arc::clone(&file), range.offset)?;
                if context.node.store.caps(path) == Caps::Whole {
                    uploads.push(file);
                }
                gather(range.buckets.clone(), writer)
            };
            self.ranges.iter().map(write).collect::<Result<Vec<_>>>()
        })?;
        for (proof, file) in proofs.iter_mut().zip(uploads) {
            *proof.upload_mut() = file.finish()?;
        }
        Ok(proofs)
    }
}

/// What a task did that wrote these ranges.
pub(super) fn output_counters(proofs: &[impl WrittenProof]) -> Counters {
    let counts = proofs.iter().map(WrittenProof::counts);
    let (bytes, records) = counts.fold((0, 0), |sum, (bytes, records, _)| {
        (sum.0 + bytes, sum.1 + records)
    });
    vec![
        ("REDUCE_INPUT_RECORDS", records),
        ("REDUCE_OUTPUT_RECORDS", records),
        ("FILE_BYTES_WRITTEN", bytes),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{EntryPlan, LinePlan, TaskSpec};
    use gristmill_base::order::CutPoints;
    use gristmill_base::order::borders::Border;
    use gristmill_base::record::shape::LineShape;

    fn gather<P>(plan: P) -> GatherSpec<P> {
        let file = OutputFile {
            path: "/out/part-r-00000".into(),
            bytes: 1000,
        };
        GatherSpec {
            ranges: vec![RangeSpec {
                file,
                offset: 300,
                buckets: 0..4,
            }],
            inputs: Arc::default(),
            plan: Arc::new(plan),
        }
    }

    /// A history of an earlier version holds these numbers: jobs that it tells of can be resumed while they stay.
    #[test]
    fn fingerprints_are_what_they_were() {
        let entries = EntryPlan {
            cuts: CutPoints::from_sample(Vec::new(), 4),
            record_bytes: 100,
            batch_records: 7,
        };
        let entries = TaskSpec::Reduce(gather(entries));
        assert_eq!(entries.fingerprint(), 0x191e_45b5_7c3c_eed1);
        let lines = LinePlan {
            shape: LineShape { descending: false },
            borders: vec![Border {
                key: b"k".to_vec(),
                position: 3,
            }],
        };
        let lines = TaskSpec::GatherLines(gather(lines));
        assert_eq!(lines.fingerprint(), 0xc803_218c_cdcd_2090);
    }
}

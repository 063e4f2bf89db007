//! The merge task: ranges of buckets of all runs to ranges of the output.

use std::fmt::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::gather::output_counters;
use super::merge_target::{MergeTarget, RangeWriter, close, stretch_of};
use crate::merge::output::MergeProof;
use crate::task::input;
use crate::task::opened::OpenedRuns;
use crate::task::{
    Checkpoint, Counters, Fingerprint, MergeRun, RangeSpec, ReleasedSpace, RunPlan, Scratch, Side,
    TaskContext, TaskEnvironment, TaskKind, WrittenRange,
};
use gristmill_base::error::{Error, Result};
use gristmill_base::record::shape::{Shape, ShapeKind};
use gristmill_storage::io::overlap::OverlappedWriter;
use gristmill_storage::objects::Upload;

/// What to merge, and to where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeSpec {
    /// How the runs were made.
    #[serde(with = "crate::task::wire::shared")]
    pub plan: Arc<RunPlan>,
    /// The runs, in input order.
    #[serde(with = "crate::task::wire::shared")]
    pub runs: Arc<Vec<MergeRun>>,
    /// Bytes of each of the two buffers of a run.
    pub source_bytes: usize,
    /// Where the records go.
    pub target: MergeTarget,
}

/// What a merge to the output did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MergeReport {
    /// The proof of each range, or of all.
    pub proofs: Vec<MergeProof>,
    /// Bytes of run files that were merged, by the number of the run in the spec. Nothing reads them again.
    pub spent: Vec<(u32, Range<u64>)>,
    /// Bytes of run files that were read.
    #[serde(default)]
    pub read_bytes: u64,
}

impl TaskKind for MergeSpec {
    type Report = MergeReport;

    fn run(&self, environment: TaskEnvironment<'_>) -> Result<Self::Report> {
        let merged = match self.plan.shape {
            ShapeKind::Fixed(shape) => merge(shape, self, environment),
            ShapeKind::Lines(shape) => merge(shape, self, environment),
            ShapeKind::Pairs(shape) => merge(shape, self, environment),
            ShapeKind::Keyed(shape) => merge(shape, self, environment),
        };
        match self.target {
            // What is written cannot be taken back: another attempt would begin anew.
            MergeTarget::Stream(_) => merged.map_err(Error::final_error),
            _ => merged,
        }
    }

    fn input(&self, _context: &TaskContext) -> String {
        match &self.target {
            MergeTarget::Ranges(of) => input::ranges(of),
            MergeTarget::File(_) | MergeTarget::Stream(_) => input::count(self.runs.len(), "run"),
        }
    }

    fn counters(&self, report: &MergeReport) -> Counters {
        let mut counters = output_counters(&report.proofs);
        counters.insert(2, ("FILE_BYTES_READ", report.read_bytes));
        counters
    }

    fn side(&self) -> Option<Side> {
        Some(Side::Reduce)
    }

    fn segments_read(&self) -> usize {
        self.runs.len()
    }

    fn stays_here(&self) -> bool {
        matches!(self.target, MergeTarget::Stream(_))
    }

    fn writes_apart(&self) -> bool {
        !self.stays_here()
    }

    fn reads(&self) -> &[MergeRun] {
        &self.runs
    }

    fn uses_up(&self) -> bool {
        true
    }

    fn consumed(&self, report: &MergeReport) -> Vec<ReleasedSpace> {
        ReleasedSpace::parts(&self.runs, &report.spent)
    }

    /// Nothing of what went to a stream, or was compressed.
    fn checkpoint(&self, report: &MergeReport) -> Option<Checkpoint> {
        if self.target.codec().is_some() {
            return None;
        }
        let places: Vec<_> = match &self.target {
            MergeTarget::Ranges(ranges) => ranges.iter().map(RangeSpec::place).collect(),
            MergeTarget::File(file) => {
                let file_bytes = report.proofs.iter().map(|proof| proof.bytes).sum();
                vec![(&file.path, file_bytes, 0)]
            }
            MergeTarget::Stream(_) => return None,
        };
        let written = |(place, proof)| WrittenRange::of(place, proof);
        let ranges = places.into_iter().zip(&report.proofs).map(written);
        ranges.collect::<Option<_>>().map(Checkpoint::Merge)
    }

    fn fingerprint(&self, print: &mut Fingerprint) -> fmt::Result {
        match &self.target {
            MergeTarget::Ranges(ranges) => print.ranges("merge", ranges)?,
            MergeTarget::File(file) => {
                print.name(file.path.as_typed())?;
                write!(print, "{:?} {:?} ", file.buckets, file.codec)?;
            }
            MergeTarget::Stream(codec) => write!(print, "stream {codec:?}")?,
        }
        print.plan(&self.plan)
    }

    fn uploads(report: &MergeReport) -> Vec<&Upload> {
        let proofs = report.proofs.iter();
        proofs.flat_map(|proof| &proof.upload).collect()
    }
}

fn merge<S: Shape>(
    shape: S,
    spec: &MergeSpec,
    (context, attempt, scratch): TaskEnvironment<'_>,
) -> Result<MergeReport> {
    let plan = &spec.plan;
    scratch.keep_for_merge();
    let runs = (&spec.runs, &mut scratch.runs);
    let opened = OpenedRuns::keeping(context, plan, runs, spec.source_bytes)?;
    let ranges = spec.target.buckets(0..plan.borders.len() + 1);
    let buckets = stretch_of(&ranges)?;
    let records = ranges.into_iter().map(|range| opened.records(range));
    let records = records.collect::<Result<_>>()?;
    let Scratch { merge, buffers, .. } = scratch;
    let (mut proofs, open) = OverlappedWriter::run(buffers, plan.buffer_bytes, |writer| {
        let of = (shape, plan.unique);
        let mut out = RangeWriter::begin(of, (context, &spec.target), records, writer)?;
        let place = (context, attempt);
        opened.merge(shape, buckets.clone(), merge, place, |record| {
            out.append(record)
        })?;
        out.finish()
    })?;
    close(open, context, &mut proofs)?;
    // All is written: what was read will not be read again, once this report counts. Of an upload nothing can be read before it
    // is completed, and what is compressed is not proved again: a job that is resumed merges again.
    let is_proved = |proof: &MergeProof| proof.upload.is_none() && spec.target.codec().is_none();
    let spent = if proofs.iter().all(is_proved) {
        opened.spent(buckets.clone())?
    } else {
        Vec::new()
    };
    Ok(MergeReport {
        proofs,
        spent,
        read_bytes: opened.disk_bytes(buckets)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spill::MemoryModel;
    use crate::task::{TaskReport, TaskSpec};
    use gristmill_base::record::shape::LineShape;

    /// A report names runs by number, so that it does not repeat their paths; what no run has that number is left out.
    #[test]
    fn a_merge_to_the_output_has_used_up_parts_of_its_runs() {
        let run = |name: &str| MergeRun {
            path: name.into(),
            longest: 0,
        };
        let plan = RunPlan {
            shape: LineShape { descending: false }.kind(),
            unique: false,
            borders: Vec::new(),
            places: Vec::new(),
            buffer_bytes: 0,
            compression: Default::default(),
            needed: MemoryModel::default(),
        };
        let spec = TaskSpec::Merge(MergeSpec {
            plan: Arc::new(plan),
            runs: Arc::new(vec![run("a"), run("b")]),
            source_bytes: 0,
            target: MergeTarget::Stream(None),
        });
        let report = TaskReport::Merge(MergeReport {
            proofs: Vec::new(),
            spent: vec![(1, 4096..8192), (0, 0..4096), (7, 0..4096)],
            read_bytes: 0,
        });
        let part = |run: &str, bytes| ReleasedSpace {
            run: run.into(),
            bytes: Some(bytes),
        };
        let used_up = [part("b", 4096..8192), part("a", 0..4096)];
        assert_eq!(spec.consumed(&report), used_up);
        assert!(spec.uses_up() && !spec.writes_apart());
        assert_eq!(report.discarded_outputs(), []);
    }
}

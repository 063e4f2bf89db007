//! The merge task: ranges of buckets of all runs to ranges of the output.

use std::fmt::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::merge::output::{MergeProof, ProvenWriter};
use crate::task::input;
use crate::task::opened::OpenedRuns;
use crate::task::{
    Checkpoint, Counters, Fingerprint, MergeRun, RangeSpec, ReleasedSpace, RunPlan, Scratch, Side,
    TaskContext, TaskEnvironment, TaskKind, WrittenRange,
};
use gristmill_base::error::{Error, Result};
use gristmill_base::record::shape::{Shape, ShapeKind};
use gristmill_storage::codec::Codec;
use gristmill_storage::codec::written::CompressedFile;
use gristmill_storage::io::overlap::OverlappedWriter;
use gristmill_storage::location::Location;
use gristmill_storage::objects::Upload;
use gristmill_storage::{Caching, WriteFile};

/// Where merged records go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum MergeTarget {
    /// Ranges of output files, whose sizes are known.
    Ranges(Vec<RangeSpec>),
    /// Buckets to a file whose size is known when all is written.
    File(WholeFile),
    /// All buckets to the job's output stream, compressed or not.
    Stream(Option<Codec>),
}

/// A file that one task writes from its beginning to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WholeFile {
    /// Where it is written.
    pub path: Location,
    /// The buckets whose records it holds.
    pub buckets: Range<usize>,
    /// Bytes of all records in them, of which fewer may be written: an upload is cut into parts by them.
    pub bytes_max: u64,
    /// How it is compressed.
    pub codec: Option<Codec>,
}

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
        let sum = |of: fn(&MergeProof) -> u64| report.proofs.iter().map(of).sum();
        vec![
            ("REDUCE_INPUT_RECORDS", sum(|proof| proof.records)),
            ("REDUCE_OUTPUT_RECORDS", sum(|proof| proof.records)),
            ("FILE_BYTES_READ", report.read_bytes),
            ("FILE_BYTES_WRITTEN", sum(|proof| proof.bytes)),
        ]
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
        false
    }

    fn reads(&self) -> &[MergeRun] {
        &self.runs
    }

    fn uses_up(&self) -> bool {
        true
    }

    fn consumed(&self, report: &MergeReport) -> Vec<ReleasedSpace> {
        let part = |(run, bytes): &(u32, Range<u64>)| {
            let run = self.runs.get(*run as usize)?.path.clone();
            let bytes = Some(bytes.clone());
            Some(ReleasedSpace { run, bytes })
        };
        report.spent.iter().filter_map(part).collect()
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
        let written = |(place, proof): (_, &MergeProof)| {
            let counts = (proof.bytes, proof.records, proof.duplicates);
            WrittenRange::of(place, counts, proof.checksum)
        };
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

impl MergeTarget {
    /// How it is compressed.
    fn codec(&self) -> Option<Codec> {
        match self {
            MergeTarget::Ranges(_) => None,
            MergeTarget::File(file) => file.codec,
            MergeTarget::Stream(codec) => *codec,
        }
    }

    /// Its longest file, and how long it may be.
    fn longest_file(&self) -> (Option<&Location>, u64) {
        match self {
            MergeTarget::Ranges(ranges) => {
                let longest = ranges.iter().max_by_key(|range| range.file.bytes);
                longest.map_or((None, 0), |range| {
                    (Some(&range.file.path), range.file.bytes)
                })
            }
            MergeTarget::File(file) => (Some(&file.path), file.bytes_max),
            MergeTarget::Stream(_) => (None, 0),
        }
    }
}

fn compressed(file: Arc<dyn WriteFile>, codec: Option<Codec>) -> Result<Arc<dyn WriteFile>> {
    Ok(match codec {
        Some(codec) => Arc::new(CompressedFile::new(file, codec)?),
        None => file,
    })
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
    let all = 0..plan.borders.len() + 1;
    let targets = match &spec.target {
        MergeTarget::Ranges(ranges) => ranges
            .iter()
            .map(|range| {
                let file = &range.file;
                let file = context
                    .node
                    .store
                    .create(&file.path, file.bytes, Caching::Direct)?;
                Ok((Arc::from(file), range.offset, range.buckets.clone()))
            })
            .collect::<Result<Vec<(Arc<dyn WriteFile>, _, _)>>>()?,
        MergeTarget::File(whole) => {
            let store = &context.node.store;
            // A disk would make it as long as that.
            let is_sent = store.sends_parts(&whole.path);
            let bytes = if is_sent { whole.bytes_max } else { 0 };
            let file = store.create(&whole.path, bytes, Caching::Direct)?;
            let file = compressed(Arc::from(file), whole.codec)?;
            vec![(file, 0, whole.buckets.clone())]
        }
        MergeTarget::Stream(codec) => {
            vec![(compressed(context.sink()?, *codec)?, 0, all)]
        }
    };
    let (path, longest) = spec.target.longest_file();
    let sending = path.and_then(|path| context.sending(path, longest));
    if let Some(sending) = &sending {
        targets.iter().for_each(|(file, ..)| file.send_by(sending));
    }
    let Scratch { merge, buffers, .. } = scratch;
    let mut proofs = OverlappedWriter::run(buffers, plan.buffer_bytes, |writer| {
        let mut proofs = Vec::new();
        for (file, offset, buckets) in &targets {
            writer.begin(Arc::clone(file), *offset)?;
            let mut out = ProvenWriter::new(shape, plan.unique, writer);
            let place = (context, attempt);
            opened.merge(shape, buckets.clone(), merge, place, |record| {
                out.append(record)
            })?;
            proofs.push(out.proof()?);
        }
        Ok(proofs)
    })?;
    // All is written: what was read will not be read again, once this report counts.
    let (mut spent, mut read_bytes) = (Vec::new(), 0);
    for ((file, _, buckets), proof) in targets.iter().zip(&mut proofs) {
        if context.job.durable {
            file.sync()?;
        }
        proof.upload = file.finish()?;
        read_bytes += opened.disk_bytes(buckets.clone())?;
        // Of an upload nothing can be read before it is completed, and what is compressed is not proved again: a job that is
        // resumed merges again.
        if proof.upload.is_none() && spec.target.codec().is_none() {
            opened.spent(buckets.clone(), &mut spent)?;
        }
    }
    Ok(MergeReport {
        proofs,
        spent,
        read_bytes,
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

//! The merge task of runs: neighbouring runs to one longer run, so that few enough are left for the last merge.
//!
//! ```text
//!   all of them   | a a a b b c |  | a b b c c |  ──▶ | a a a a b b b b c c c |      a pass
//!   a slice        . . . | b b | .   . | b b | . .  ──▶ | b b b b |                  a round that has cut the buckets
//! ```
//!
//! Of a slice the space of its blocks is given back; the other slices have tasks of their own.

use std::fmt::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::spill::{BucketSizes, SpilledRun, WrittenSizes, create_run};
use crate::task::checkpoint::{name_of, name_of_run};
use crate::task::input::count;
use crate::task::opened::OpenedRuns;
use crate::task::{
    Checkpoint, Counters, Fingerprint, MergeRun, ReleasedSpace, RunPlan, Scratch, TaskContext,
    TaskEnvironment, TaskKind,
};
use gristmill_base::error::Result;
use gristmill_base::record::shape::{Shape, ShapeKind};
use gristmill_storage::io::overlap::OverlappedWriter;
use gristmill_storage::sorted_run::{
    RunCompression, RunHeader, RunIndex, RunWriter, file_bytes_max,
};

/// Which neighbouring runs become one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeRunsSpec {
    /// How the runs were made.
    #[serde(with = "crate::task::wire::shared")]
    pub plan: Arc<RunPlan>,
    /// The runs, in input order.
    pub runs: Vec<MergeRun>,
    /// Bytes of each of the two buffers of a run.
    pub source_bytes: usize,
    /// The number of the run to make.
    pub number: u64,
    /// The buckets that are merged, where those are not all that the runs hold.
    pub slice: Option<Range<usize>>,
    /// Which node should keep the run, of as many as there are: what belongs together has the same number.
    pub home: Option<u32>,
}

/// What a merge of runs did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeRunsReport {
    /// The run.
    pub run: SpilledRun,
    /// Bytes of run files that nothing reads again, by the number of the run in the spec: of a slice.
    pub spent: Vec<(u32, Range<u64>)>,
}

impl TaskKind for MergeRunsSpec {
    type Report = MergeRunsReport;

    fn run(&self, environment: TaskEnvironment<'_>) -> Result<Self::Report> {
        match self.plan.shape {
            ShapeKind::Fixed(shape) => merge_runs(shape, self, environment),
            ShapeKind::Lines(shape) => merge_runs(shape, self, environment),
            ShapeKind::Pairs(shape) => merge_runs(shape, self, environment),
            ShapeKind::Keyed(shape) => merge_runs(shape, self, environment),
        }
    }

    fn input(&self, _context: &TaskContext) -> String {
        count(self.runs.len(), "run")
    }

    fn counters(&self, report: &MergeRunsReport) -> Counters {
        let run = &report.run;
        vec![
            ("SPILLED_RECORDS", run.records),
            ("FILE_BYTES_READ", run.bytes_read),
            ("FILE_BYTES_WRITTEN", run.disk_bytes()),
        ]
    }

    fn segments_read(&self) -> usize {
        self.runs.len()
    }

    fn reads(&self) -> &[MergeRun] {
        &self.runs
    }

    fn uses_up(&self) -> bool {
        true
    }

    fn consumed(&self, report: &MergeRunsReport) -> Vec<ReleasedSpace> {
        match self.slice {
            Some(_) => ReleasedSpace::parts(&self.runs, &report.spent),
            None => {
                let runs = self.runs.iter();
                runs.map(|run| ReleasedSpace::whole(&run.path)).collect()
            }
        }
    }

    fn home(&self) -> Option<u32> {
        self.home
    }

    fn checkpoint(&self, report: &MergeRunsReport) -> Option<Checkpoint> {
        let of = self.runs.iter().map(|run| name_of(&run.path));
        Some(Checkpoint::MergeRuns {
            run: name_of_run(&report.run, self.plan.shape)?,
            of: of.collect::<Option<_>>()?,
            is_slice: self.slice.is_some(),
        })
    }

    fn fingerprint(&self, print: &mut Fingerprint) -> fmt::Result {
        write!(print, "merge runs {} ", self.number)?;
        if let Some(slice) = &self.slice {
            write!(print, "buckets {slice:?} ")?;
        }
        self.runs.iter().try_for_each(|run| print.name(&run.path))?;
        print.plan(&self.plan)
    }

    fn runs(report: &MergeRunsReport) -> &[SpilledRun] {
        std::slice::from_ref(&report.run)
    }
}

fn merge_runs<S: Shape>(
    shape: S,
    spec: &MergeRunsSpec,
    (context, attempt, scratch): TaskEnvironment<'_>,
) -> Result<MergeRunsReport> {
    let plan = &spec.plan;
    let opened = OpenedRuns::new(context, plan, &spec.runs, spec.source_bytes)?;
    scratch.keep_for_merge();
    let buckets = plan.borders.len() + 1;
    let slice = spec.slice.clone().unwrap_or(0..buckets);
    let ends = ends_of(&opened, slice.clone(), buckets);
    let (bytes, records) = ends.last().copied().unwrap_or_default();
    let bytes_read = opened.disk_bytes(slice.clone())?;
    let (checksum, stored) = match spec.slice {
        None => sums_of(&opened),
        Some(_) => (0, bytes_read), // nobody has summed a slice; the last merge does
    };
    let name = format!("run-{:05}-{}-merged", attempt.id.task, attempt.id.attempt);
    let bytes_of = |compression| bytes_of_run(compression, (bytes, stored), buckets);
    let folders = context.node.run_folders(&plan.places);
    let place = (folders, name.as_str(), plan.compression);
    let (path, file, compression) = create_run(&*context.node.runs, place, bytes_of)?;
    let header = RunHeader {
        shape: plan.shape,
        job_id: context.job.job_id.clone(),
        number: spec.number,
        compression,
    };
    let Scratch { merge, buffers, .. } = scratch;
    let mut sizes = WrittenSizes::default();
    let written = OverlappedWriter::run(buffers, plan.buffer_bytes, |writer| {
        let mut run = RunWriter::begin(writer, Arc::clone(&file), &header)?;
        let place = (context, attempt);
        opened.merge(shape, slice.clone(), merge, place, |record| {
            if shape.is_stripped() {
                sizes.count(shape.written(record), &ends);
            }
            run.append(record)
        })?;
        run.finish(&ends, checksum)
    });
    let written = match written {
        Ok(index) if context.job.durable => file.sync().map(|()| index),
        written => written,
    };
    if written.is_err() {
        let _ = context.node.runs.remove(&path); // the attempt's own error is what counts
    }
    let index = written?;
    let mut run = SpilledRun {
        path,
        longest: spec.runs.iter().map(|run| run.longest).max().unwrap_or(0),
        number: spec.number,
        records,
        bytes,
        stored_bytes: index.stored_bytes(),
        records_read: records,
        bytes_read,
        checksum_read: checksum,
        left_out: Default::default(),
        index_crc: index.crc(),
        buckets: if shape.is_stripped() {
            sizes.buckets(&ends)
        } else {
            BucketSizes::of_run(plan.shape, &index)
        },
    };
    context.node.name_runs(std::slice::from_mut(&mut run));
    Ok(MergeRunsReport {
        run,
        spent: match spec.slice {
            Some(_) => opened.spent(slice)?,
            None => Vec::new(),
        },
    })
}

/// The checksums of runs, and the bytes that are stored of them.
fn sums_of(opened: &OpenedRuns) -> (u128, u64) {
    let indexes = || opened.runs.iter().map(|(run, _)| run.index());
    let checksum = indexes().map(|index| index.checksum).sum();
    (checksum, indexes().map(RunIndex::stored_bytes).sum())
}

/// Where each bucket of the run to make ends, in bytes and records: what the runs have of these buckets.
fn ends_of(opened: &OpenedRuns, slice: Range<usize>, buckets: usize) -> Vec<(u64, u64)> {
    let mut ends = vec![(0, 0); buckets];
    for (run, _) in &opened.runs {
        let of_run = &run.index().ends;
        let end_at = |bucket: usize| of_run.get(bucket).copied().unwrap_or_default();
        let first = slice.start.checked_sub(1).map_or((0, 0), end_at);
        for (bucket, end) in ends.iter_mut().enumerate().skip(slice.start) {
            let (bytes, records) = end_at(bucket.min(slice.end - 1));
            *end = (end.0 + bytes - first.0, end.1 + records - first.1);
        }
    }
    ends
}

/// What to reserve for a run of so many bytes, of which so many were stored. Compressed, about as much as before: blocks that
/// shrink less take more as they are written.
fn bytes_of_run(
    compression: RunCompression,
    (bytes, stored): (u64, u64),
    buckets: usize,
) -> Option<u64> {
    let most = file_bytes_max(compression, bytes, buckets as u64)?;
    Some(match compression {
        RunCompression::None => most,
        _ => most - bytes.saturating_sub(stored),
    })
}

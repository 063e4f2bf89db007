//! The merge task of runs: neighbouring runs to one longer run, so that few enough are left for the last merge.

use std::fmt::{self, Write};
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
use gristmill_storage::sorted_run::{RunCompression, RunHeader, RunWriter, file_bytes_max};

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
}

impl TaskKind for MergeRunsSpec {
    type Report = SpilledRun;

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

    fn counters(&self, run: &SpilledRun) -> Counters {
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

    fn consumed(&self, _run: &SpilledRun) -> Vec<ReleasedSpace> {
        let runs = self.runs.iter();
        runs.map(|run| ReleasedSpace::whole(&run.path)).collect()
    }

    fn checkpoint(&self, run: &SpilledRun) -> Option<Checkpoint> {
        let of = self.runs.iter().map(|run| name_of(&run.path));
        Some(Checkpoint::MergeRuns {
            run: name_of_run(run, self.plan.shape)?,
            of: of.collect::<Option<_>>()?,
        })
    }

    fn fingerprint(&self, print: &mut Fingerprint) -> fmt::Result {
        write!(print, "merge runs {} ", self.number)?;
        self.runs.iter().try_for_each(|run| print.name(&run.path))?;
        print.plan(&self.plan)
    }

    fn runs(run: &SpilledRun) -> &[SpilledRun] {
        std::slice::from_ref(run)
    }
}

fn merge_runs<S: Shape>(
    shape: S,
    spec: &MergeRunsSpec,
    (context, attempt, scratch): TaskEnvironment<'_>,
) -> Result<SpilledRun> {
    let plan = &spec.plan;
    let opened = OpenedRuns::new(context, plan, &spec.runs, spec.source_bytes)?;
    scratch.keep_for_merge();
    let buckets = plan.borders.len() + 1;
    let mut ends = vec![(0, 0); buckets];
    let mut checksum = 0;
    for (run, _) in &opened.runs {
        checksum += run.index().checksum;
        for (end, (bytes, records)) in ends.iter_mut().zip(&run.index().ends) {
            *end = (end.0 + bytes, end.1 + records);
        }
    }
    let (bytes, records) = ends.last().copied().unwrap_or_default();
    let name = format!("run-{:05}-{}-merged", attempt.id.task, attempt.id.attempt);
    let bytes_of = |compression| bytes_of_run(&opened, compression, bytes, buckets);
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
        opened.merge(shape, 0..buckets, merge, place, |record| {
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
        bytes_read: opened.disk_bytes(0..buckets)?,
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
    Ok(run)
}

/// What to reserve for the run. Compressed, about as much as before: blocks that shrink less take more as they are written.
fn bytes_of_run(
    opened: &OpenedRuns,
    compression: RunCompression,
    bytes: u64,
    buckets: usize,
) -> Option<u64> {
    let stored = opened
        .runs
        .iter()
        .map(|(run, _)| run.index().stored_bytes());
    let most = file_bytes_max(compression, bytes, buckets as u64)?;
    Some(match compression {
        RunCompression::None => most,
        _ => most - bytes.saturating_sub(stored.sum()),
    })
}

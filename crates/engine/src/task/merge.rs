//! The merge tasks: ranges of buckets of all runs to ranges of the output; or runs to one longer run.

use std::path::PathBuf;
use std::sync::Arc;

use super::{Attempt, RangeSpec, RunPlan, Scratch, TaskContext};
use crate::error::{Error, Result};
use crate::merge::output::{MergeProof, ProvenWriter};
use crate::merge::{Segment, merge_bytes, merge_segments};
use crate::record::shape::{Shape, ShapeKind};
use crate::run::format::HEADER_BYTES;
use crate::run::{self, RunFile, RunHeader, RunWriter, file_bytes};
use crate::spill::{SpilledRun, create_run};
use crate::storage::overlap::{OverlappedWriter, writer_bytes};
use crate::storage::{Caching, WriteFile};

/// Where merged records go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeTarget {
    /// Ranges of output files, whose sizes are known.
    Ranges(Vec<RangeSpec>),
    /// All buckets to a file whose size is known when all is written.
    File(PathBuf),
    /// All buckets to the job's output stream.
    Stream,
}

/// What to merge, and to where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeSpec {
    /// How the runs were made.
    pub plan: Arc<RunPlan>,
    /// The runs, in input order.
    pub runs: Arc<Vec<PathBuf>>,
    /// Bytes of each of the two buffers of a run.
    pub source_bytes: usize,
    /// Where the records go.
    pub target: MergeTarget,
}

/// Which neighbouring runs become one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeRunsSpec {
    /// How the runs were made.
    pub plan: Arc<RunPlan>,
    /// The runs, in input order.
    pub runs: Vec<PathBuf>,
    /// Bytes of each of the two buffers of a run.
    pub source_bytes: usize,
    /// The number of the run to make.
    pub number: u64,
}

/// How many records go by between two looks at whether to stop.
const STOP_RECORDS: u64 = 1 << 12;

pub(super) fn run(
    spec: &MergeSpec,
    context: &TaskContext,
    attempt: &Attempt<'_>,
    scratch: &mut Scratch,
) -> Result<Vec<MergeProof>> {
    let merged = match spec.plan.shape {
        ShapeKind::Fixed(shape) => merge(shape, spec, context, attempt, scratch),
        ShapeKind::Lines(shape) => merge(shape, spec, context, attempt, scratch),
    };
    match spec.target {
        // What is written cannot be taken back: another attempt would begin anew.
        MergeTarget::Stream => merged.map_err(Error::final_error),
        _ => merged,
    }
}

pub(super) fn run_to_run(
    spec: &MergeRunsSpec,
    context: &TaskContext,
    attempt: &Attempt<'_>,
    scratch: &mut Scratch,
) -> Result<SpilledRun> {
    match spec.plan.shape {
        ShapeKind::Fixed(shape) => merge_runs(shape, spec, context, attempt, scratch),
        ShapeKind::Lines(shape) => merge_runs(shape, spec, context, attempt, scratch),
    }
}

/// Reads the indexes of runs. What they hold is counted in the merge's memory by the plan.
fn open(context: &TaskContext, paths: &[PathBuf]) -> Result<Vec<RunFile>> {
    let open = |path: &PathBuf| RunFile::open(&*context.runs, path);
    paths.iter().map(open).collect()
}

fn segments(runs: &[RunFile], buckets: std::ops::Range<usize>) -> Result<Vec<Segment<'_>>> {
    let segment = |run| {
        let (bytes, records) = RunFile::segment(run, buckets.clone())?;
        Ok(Segment {
            run,
            bytes,
            records,
        })
    };
    runs.iter().map(segment).collect()
}

fn merge<S: Shape>(
    shape: S,
    spec: &MergeSpec,
    context: &TaskContext,
    attempt: &Attempt<'_>,
    scratch: &mut Scratch,
) -> Result<Vec<MergeProof>> {
    let plan = &spec.plan;
    let bytes = merge_bytes(spec.runs.len(), spec.source_bytes) + writer_bytes(plan.buffer_bytes);
    let _memory = context.budget.reserve("merge buffers", bytes)?;
    scratch.keep_for_merge();
    let runs = open(context, &spec.runs)?;
    let all = 0..plan.borders.len() + 1;
    let targets = match &spec.target {
        MergeTarget::Ranges(ranges) => ranges
            .iter()
            .map(|range| {
                let file = &range.file;
                let file = context
                    .store
                    .create(&file.path, file.bytes, Caching::Direct)?;
                Ok((Arc::from(file), range.offset, range.buckets.clone()))
            })
            .collect::<Result<Vec<(Arc<dyn WriteFile>, _, _)>>>()?,
        MergeTarget::File(path) => {
            let file = context.store.create(path, 0, Caching::Direct)?;
            vec![(Arc::from(file), 0, all)]
        }
        MergeTarget::Stream => {
            let sink = context.sink.clone();
            let sink = sink.ok_or_else(|| Error::bug("merge runs", "the job has no stream"))?;
            vec![(sink, 0, all)]
        }
    };
    let Scratch { merge, buffers, .. } = scratch;
    let proofs = OverlappedWriter::run(buffers, plan.buffer_bytes, |writer| {
        let mut proofs = Vec::new();
        for (file, offset, buckets) in &targets {
            writer.begin(Arc::clone(file), *offset)?;
            let segments = segments(&runs, buckets.clone())?;
            let mut out = ProvenWriter::new(shape, plan.unique, writer);
            let mut seen = Seen::default();
            merge_segments(
                shape,
                &segments,
                spec.source_bytes,
                merge,
                &context.budget,
                |record| {
                    seen.record(record, attempt)?;
                    out.append(record)
                },
            )?;
            seen.end(attempt)?;
            proofs.push(out.proof()?);
        }
        Ok(proofs)
    })?;
    // All is written: what was read will not be read again.
    for (_, _, buckets) in &targets {
        for segment in segments(&runs, buckets.clone())? {
            let block = run::BLOCK_BYTES as u64;
            let whole =
                segment.bytes.start.next_multiple_of(block)..segment.bytes.end / block * block;
            if whole.start < whole.end {
                let header = HEADER_BYTES as u64;
                let range = header + whole.start..header + whole.end;
                // Space that is not given back now is given back at the job's end.
                let _ = context.runs.discard(segment.run.path(), range);
            }
        }
    }
    Ok(proofs)
}

fn merge_runs<S: Shape>(
    shape: S,
    spec: &MergeRunsSpec,
    context: &TaskContext,
    attempt: &Attempt<'_>,
    scratch: &mut Scratch,
) -> Result<SpilledRun> {
    let plan = &spec.plan;
    let bytes = merge_bytes(spec.runs.len(), spec.source_bytes) + writer_bytes(plan.buffer_bytes);
    let _memory = context.budget.reserve("merge buffers", bytes)?;
    scratch.keep_for_merge();
    let runs = open(context, &spec.runs)?;
    let buckets = plan.borders.len() + 1;
    let mut ends = vec![(0, 0); buckets];
    let mut checksum = 0;
    for run in &runs {
        checksum += run.index().checksum;
        for (end, (bytes, records)) in ends.iter_mut().zip(&run.index().ends) {
            *end = (end.0 + bytes, end.1 + records);
        }
    }
    let (bytes, records) = ends.last().copied().unwrap_or_default();
    let name = format!("run-{:05}-{}-merged", attempt.id.task, attempt.id.attempt);
    let room = file_bytes(bytes, buckets as u64).unwrap_or(u64::MAX);
    let (path, file) = create_run(&*context.runs, &plan.places, &name, room)?;
    let header = RunHeader {
        shape: plan.shape,
        job_id: context.job_id.clone(),
        number: spec.number,
    };
    let Scratch { merge, buffers, .. } = scratch;
    let written = OverlappedWriter::run(buffers, plan.buffer_bytes, |writer| {
        let mut run = RunWriter::begin(writer, file, &header)?;
        let segments = segments(&runs, 0..buckets)?;
        let mut seen = Seen::default();
        merge_segments(
            shape,
            &segments,
            spec.source_bytes,
            merge,
            &context.budget,
            |record| {
                seen.record(record, attempt)?;
                run.append(record)
            },
        )?;
        seen.end(attempt)?;
        run.finish(&ends, checksum)
    });
    if written.is_err() {
        let _ = context.runs.remove(&path); // the attempt's own error is what counts
    }
    written?;
    Ok(SpilledRun {
        path,
        number: spec.number,
        records,
        bytes,
        records_read: records,
        bytes_read: bytes,
        checksum_read: checksum,
    })
}

/// Records that went by since progress was last told.
#[derive(Default)]
struct Seen {
    records: u64,
    bytes: u64,
}

impl Seen {
    #[inline]
    fn record(&mut self, record: &[u8], attempt: &Attempt<'_>) -> Result<()> {
        self.records += 1;
        self.bytes += record.len() as u64;
        if self.records.is_multiple_of(STOP_RECORDS) {
            self.end(attempt)?;
        }
        Ok(())
    }

    fn end(&mut self, attempt: &Attempt<'_>) -> Result<()> {
        attempt.progress(std::mem::take(&mut self.bytes))
    }
}

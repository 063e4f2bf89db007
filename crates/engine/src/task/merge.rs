//! The merge tasks: ranges of buckets of all runs to ranges of the output; or runs to one longer run.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Attempt, RangeSpec, RunPlan, Scratch, Spent, TaskContext};
use crate::budget::Reservation;
use crate::error::{Error, Result};
use crate::merge::output::{MergeProof, ProvenWriter};
use crate::merge::{Segment, merge_bytes, merge_segments};
use crate::record::shape::{Shape, ShapeKind};
use crate::run::format::HEADER_BYTES;
use crate::run::{self, RunFile, RunHeader, RunWriter, file_bytes};
use crate::spill::{SpilledRun, create_run};
use crate::storage::overlap::{Buffers, OverlappedWriter, writer_bytes};
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

/// A run to be merged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeRun {
    /// Where it is.
    pub path: PathBuf,
    /// Bytes of its longest record.
    pub longest: u64,
}

impl From<SpilledRun> for MergeRun {
    fn from(run: SpilledRun) -> Self {
        MergeRun {
            path: run.path,
            longest: run.longest,
        }
    }
}

/// What to merge, and to where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeSpec {
    /// How the runs were made.
    pub plan: Arc<RunPlan>,
    /// The runs, in input order.
    pub runs: Arc<Vec<MergeRun>>,
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
    pub runs: Vec<MergeRun>,
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
        ShapeKind::Pairs(shape) => merge(shape, spec, context, attempt, scratch),
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
        ShapeKind::Pairs(shape) => merge_runs(shape, spec, context, attempt, scratch),
    }
}

/// Runs, opened, with the memory to merge them; what their indexes take is counted in the plan.
struct Opened {
    runs: Vec<(RunFile, u64)>,
    source_bytes: usize,
    _memory: Reservation,
}

impl Opened {
    fn new(
        context: &TaskContext,
        plan: &RunPlan,
        runs: &[MergeRun],
        source_bytes: usize,
    ) -> Result<Self> {
        let bytes = merge_bytes(runs.len(), source_bytes) + writer_bytes(plan.buffer_bytes);
        let memory = context.budget.reserve("merge buffers", bytes)?;
        let open = |run: &MergeRun| Ok((RunFile::open(&*context.runs, &run.path)?, run.longest));
        Ok(Opened {
            runs: runs.iter().map(open).collect::<Result<_>>()?,
            source_bytes,
            _memory: memory,
        })
    }

    fn segments(&self, buckets: Range<usize>) -> Result<Vec<Segment<'_>>> {
        let mut segments = Vec::with_capacity(self.runs.len());
        for (run, longest) in &self.runs {
            let (bytes, records) = run.segment(buckets.clone())?;
            segments.push(Segment {
                run,
                bytes,
                records,
                longest: *longest,
            });
        }
        Ok(segments)
    }

    /// Hands the records of `buckets` to `emit`, in order, and tells the attempt how far it is.
    fn merge<S: Shape>(
        &self,
        shape: S,
        buckets: Range<usize>,
        scratch: &mut Buffers,
        (context, attempt): (&TaskContext, &Attempt<'_>),
        mut emit: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let segments = self.segments(buckets)?;
        let mut seen = Seen::default();
        let (source_bytes, budget) = (self.source_bytes, &context.budget);
        merge_segments(shape, &segments, source_bytes, scratch, budget, |record| {
            seen.record(record, attempt)?;
            emit(record)
        })?;
        seen.end(attempt)
    }

    /// Whose space can be given back when it is known for good that these buckets have been merged.
    fn spent(&self, buckets: Range<usize>, spent: &mut Vec<Spent>) -> Result<()> {
        let block = run::BLOCK_BYTES as u64;
        for segment in self.segments(buckets)? {
            let Range { start, end } = segment.bytes;
            let whole = start.next_multiple_of(block)..end / block * block;
            if whole.start < whole.end {
                let header = HEADER_BYTES as u64;
                spent.push(Spent {
                    run: segment.run.path().to_owned(),
                    bytes: header + whole.start..header + whole.end,
                });
            }
        }
        Ok(())
    }
}

fn merge<S: Shape>(
    shape: S,
    spec: &MergeSpec,
    context: &TaskContext,
    attempt: &Attempt<'_>,
    scratch: &mut Scratch,
) -> Result<Vec<MergeProof>> {
    let plan = &spec.plan;
    let opened = Opened::new(context, plan, &spec.runs, spec.source_bytes)?;
    scratch.keep_for_merge();
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
    let Scratch {
        merge,
        buffers,
        spent,
        ..
    } = scratch;
    let proofs = OverlappedWriter::run(buffers, plan.buffer_bytes, |writer| {
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
    // All is written: what was read will not be read again, once the job's history says so.
    for (file, _, buckets) in &targets {
        if context.durable {
            file.sync()?;
        }
        opened.spent(buckets.clone(), spent)?;
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
    let opened = Opened::new(context, plan, &spec.runs, spec.source_bytes)?;
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
    let room = file_bytes(bytes, buckets as u64).unwrap_or(u64::MAX);
    let (path, file) = create_run(&*context.runs, &plan.places, &name, room)?;
    let header = RunHeader {
        shape: plan.shape,
        job_id: context.job_id.clone(),
        number: spec.number,
    };
    let Scratch { merge, buffers, .. } = scratch;
    let written = OverlappedWriter::run(buffers, plan.buffer_bytes, |writer| {
        let mut run = RunWriter::begin(writer, Arc::clone(&file), &header)?;
        let place = (context, attempt);
        opened.merge(shape, 0..buckets, merge, place, |record| run.append(record))?;
        run.finish(&ends, checksum)
    });
    // The runs that it was made of go when all of this stage are there.
    let written = match written {
        Ok(index) if context.durable => file.sync().map(|()| index),
        written => written,
    };
    if written.is_err() {
        let _ = context.runs.remove(&path); // the attempt's own error is what counts
    }
    let index = written?;
    Ok(SpilledRun {
        path,
        longest: spec.runs.iter().map(|run| run.longest).max().unwrap_or(0),
        number: spec.number,
        records,
        bytes,
        records_read: records,
        bytes_read: bytes,
        checksum_read: checksum,
        index_crc: index.crc(),
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

//! Runs, opened to be merged by a task.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::attempt::TaskAttempt;
use super::context::TaskContext;
use super::runs::{KeptRuns, MergeRun, RunPlan};
use crate::merge::{Segment, merge_bytes, merge_segments};
use gristmill_base::budget::Reservation;
use gristmill_base::error::Result;
use gristmill_base::record::shape::Shape;
use gristmill_storage::io::overlap::{Buffers, writer_bytes};
use gristmill_storage::sorted_run::RunFile;

/// How many records go by between two looks at whether to stop.
const STOP_RECORDS: u64 = 1 << 12;

/// Runs, opened, with the memory to merge them; what their indexes take is counted in the plan.
pub(super) struct OpenedRuns {
    pub(super) runs: Vec<(Arc<RunFile>, u64)>,
    source_bytes: usize,
    _memory: Reservation,
}

impl OpenedRuns {
    pub(super) fn new(
        context: &TaskContext,
        plan: &RunPlan,
        runs: &[MergeRun],
        source_bytes: usize,
    ) -> Result<Self> {
        OpenedRuns::with(context, plan, (runs, &[]), source_bytes)
    }

    /// The same for runs that many tasks merge: the far ones are kept open.
    pub(super) fn keeping(
        context: &TaskContext,
        plan: &RunPlan,
        (runs, kept): (&Arc<Vec<MergeRun>>, &mut KeptRuns),
        source_bytes: usize,
    ) -> Result<Self> {
        if kept.of.as_ref().is_none_or(|of| !Arc::ptr_eq(of, runs)) {
            *kept = KeptRuns::default();
        }
        let opened = OpenedRuns::with(context, plan, (runs, &kept.remote), source_bytes)?;
        let remote = |(run, _): &(Arc<RunFile>, u64)| run.is_remote().then(|| Arc::clone(run));
        *kept = KeptRuns {
            of: Some(Arc::clone(runs)),
            remote: opened.runs.iter().map(remote).collect(),
        };
        Ok(opened)
    }

    /// Some of the runs may be open already.
    fn with(
        context: &TaskContext,
        plan: &RunPlan,
        (runs, open): (&[MergeRun], &[Option<Arc<RunFile>>]),
        source_bytes: usize,
    ) -> Result<Self> {
        let bytes = merge_bytes(runs.len(), source_bytes) + writer_bytes(plan.buffer_bytes);
        let memory = context.node.budget.reserve("merge buffers", bytes)?;
        let open = |number: usize| open.get(number).and_then(Option::as_ref);
        let numbered = runs.iter().enumerate();
        let closed = numbered.filter(|(number, _)| open(*number).is_none());
        let paths: Vec<&Path> = closed.map(|(_, run)| &*run.path).collect();
        let mut opened = RunFile::open_all(&*context.node.runs, &paths)?.into_iter();
        let mut next = |number| {
            open(number)
                .cloned()
                .or_else(|| opened.next().map(Arc::new))
        };
        let numbered = runs.iter().enumerate();
        let runs = numbered.filter_map(|(number, run)| Some((next(number)?, run.longest)));
        Ok(OpenedRuns {
            runs: runs.collect(),
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

    /// How many records these buckets have.
    pub(super) fn records(&self, buckets: Range<usize>) -> Result<u64> {
        let records = |(run, _): &(Arc<RunFile>, u64)| Ok(run.segment(buckets.clone())?.1);
        self.runs.iter().map(records).sum()
    }

    /// Hands the records of `buckets` to `emit`, in order, and tells the attempt how far it is.
    pub(super) fn merge<S: Shape>(
        &self,
        shape: S,
        buckets: Range<usize>,
        scratch: &mut Buffers,
        (context, attempt): (&TaskContext, &TaskAttempt<'_>),
        mut emit: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let segments = self.segments(buckets)?;
        let mut seen = UnreportedProgress::default();
        let (source_bytes, budget) = (self.source_bytes, &context.node.budget);
        merge_segments(shape, &segments, source_bytes, scratch, budget, |record| {
            seen.record(record, attempt)?;
            emit(record)
        })?;
        seen.end(attempt)
    }

    /// Bytes of files that hold these buckets: those of neighbours add up to those of all.
    pub(super) fn disk_bytes(&self, buckets: Range<usize>) -> Result<u64> {
        let segments = self.segments(buckets)?;
        let stored = segments
            .iter()
            .map(|segment| segment.run.disk_bytes(&segment.bytes));
        Ok(stored.sum())
    }

    /// The blocks that nothing reads again once these buckets have been merged.
    pub(super) fn spent(&self, buckets: Range<usize>) -> Result<Vec<(u32, Range<u64>)>> {
        let segments = (0..).zip(self.segments(buckets)?);
        let blocks =
            segments.map(|(run, segment)| (run, segment.run.blocks_inside(&segment.bytes)));
        Ok(blocks.filter(|(_, whole)| !whole.is_empty()).collect())
    }
}

/// Records that went by since progress was last told.
#[derive(Default)]
struct UnreportedProgress {
    records: u64,
    bytes: u64,
}

impl UnreportedProgress {
    #[inline]
    fn record(&mut self, record: &[u8], attempt: &TaskAttempt<'_>) -> Result<()> {
        self.records += 1;
        self.bytes += record.len() as u64;
        if self.records.is_multiple_of(STOP_RECORDS) {
            self.end(attempt)?;
        }
        Ok(())
    }

    fn end(&mut self, attempt: &TaskAttempt<'_>) -> Result<()> {
        attempt.progress(std::mem::take(&mut self.bytes))
    }
}

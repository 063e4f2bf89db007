//! The task that scatters the lines of one split to buckets, kept in memory for the tasks that gather them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::map::lines::{LineInput, scatter_lines};
use crate::task::input::pieces;
use crate::task::{AttemptId, Counters, Side, TaskContext, TaskEnvironment, TaskKind};
use gristmill_base::error::Result;
use gristmill_base::order::borders::Border;
use gristmill_base::order::lines::Buckets;
use gristmill_base::record::shape::LineShape;
use gristmill_storage::input::InputRange;

/// Where lines go that are sorted in memory: the same for all tasks of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinePlan {
    /// How lines are ordered.
    pub shape: LineShape,
    /// Where buckets are cut, in ascending order.
    pub borders: Vec<Border>,
}

/// Which split to scatter, and where its buckets are cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScatterLinesSpec {
    /// The split.
    pub split: Vec<InputRange>,
    /// The order and the buckets.
    #[serde(with = "crate::task::wire::shared")]
    pub plan: Arc<LinePlan>,
}

/// What such a task found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScatterLinesReport {
    /// Under which name the lines are kept.
    pub output: AttemptId,
    /// Their bytes, newlines included that were missing behind last lines.
    pub bytes: u64,
    /// How many there are.
    pub records: u64,
    /// Bytes of the longest.
    pub longest: u64,
    /// The sum of their CRCs.
    #[serde(with = "gristmill_base::record::checksum::hex")]
    pub checksum: u128,
    /// Bytes and lines of each bucket.
    pub sizes: Vec<(u64, u64)>,
}

impl TaskKind for ScatterLinesSpec {
    type Report = ScatterLinesReport;

    fn run(&self, (context, attempt, scratch): TaskEnvironment<'_>) -> Result<Self::Report> {
        let memory = context.memory()?;
        let buckets = Buckets::new(self.plan.shape, &self.plan.borders);
        let input = LineInput {
            store: &context.node.store,
            arena: &memory.arena,
            files: &context.job.files,
            buckets: &buckets,
            budget: &context.node.budget,
        };
        let progress = |bytes| attempt.progress(bytes);
        let output = scatter_lines(&input, &self.split, &mut scratch.line_staging, &progress)?;
        let report = ScatterLinesReport {
            output: attempt.id,
            bytes: output.bytes,
            records: output.records,
            longest: output.longest,
            checksum: output.checksum,
            sizes: output.lines.sizes().to_vec(),
        };
        memory.keep_lines(attempt.id, output.lines);
        Ok(report)
    }

    fn input(&self, context: &TaskContext) -> String {
        pieces(&self.split, context)
    }

    fn counters(&self, report: &ScatterLinesReport) -> Counters {
        vec![
            ("MAP_INPUT_RECORDS", report.records),
            ("MAP_OUTPUT_RECORDS", report.records),
            ("FILE_BYTES_READ", report.bytes),
        ]
    }

    fn side(&self) -> Option<Side> {
        Some(Side::Map)
    }

    fn stays_here(&self) -> bool {
        true
    }
}

//! The map task of TeraSort in memory: the records of a split become entries by range of keys, kept for the reduce tasks. There is no
//! user code in it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::map::{MapInput, map_split};
use crate::task::input::pieces;
use crate::task::{AttemptId, Counters, Side, TaskContext, TaskEnvironment, TaskKind};
use gristmill_base::error::Result;
use gristmill_base::order::packed::Packing;
use gristmill_base::order::scatter::EntryStaging;
use gristmill_base::order::{Classifier, CutPoints};
use gristmill_storage::input::InputRange;

/// Which split to map, and where its buckets are cut.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MapSpec {
    /// The split.
    pub split: Vec<InputRange>,
    /// The job's record length.
    pub record_bytes: usize,
    /// The job's cut points, shared by all its map tasks.
    #[serde(with = "crate::task::wire::shared")]
    pub cuts: Arc<CutPoints>,
}

/// What a map task found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapReport {
    /// Under which name the entries are kept.
    pub output: AttemptId,
    /// Bytes consumed.
    pub bytes: u64,
    /// Records read.
    pub records: u64,
    /// The sum of the records' CRCs, which does not depend on their order.
    pub checksum: u128,
    /// How many of them fell in each bucket.
    pub bucket_counts: Vec<u32>,
}

impl TaskKind for MapSpec {
    type Report = MapReport;

    fn run(&self, (context, attempt, scratch): TaskEnvironment<'_>) -> Result<Self::Report> {
        let classifier = Classifier::new(&self.cuts);
        let memory = context.memory()?;
        let arena = &memory.arena;
        let packing = Packing::new(&self.cuts, arena.addresses());
        let input = MapInput {
            store: &context.node.store,
            arena,
            files: &context.job.files,
            record_bytes: self.record_bytes,
            classifier: &classifier,
            packing: &packing,
            buckets: self.cuts.buckets(),
        };
        let _staging = context
            .node
            .budget
            .reserve("map staging", EntryStaging::bytes(input.buckets))?;
        let progress = |bytes| attempt.progress(bytes);
        let output = map_split(&input, &self.split, &mut scratch.staging, &progress)?;
        let report = MapReport {
            output: attempt.id,
            bytes: output.bytes,
            records: output.entries.len() as u64,
            checksum: output.checksum,
            bucket_counts: output.entries.bucket_counts(input.buckets),
        };
        memory.keep_output(attempt.id, output);
        Ok(report)
    }

    fn input(&self, context: &TaskContext) -> String {
        pieces(&self.split, context)
    }

    fn counters(&self, report: &MapReport) -> Counters {
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

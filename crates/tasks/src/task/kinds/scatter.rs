//! The task that scatters the records of one split to buckets, kept in memory for the tasks that gather them. There is no user code
//! in it.
//!
//! ```text
//!   split ──scatter──▶ buckets of the split, in memory ──gather──▶ ranges of the output
//! ```
//!
//! What is scattered, its plan says: entries of records of one length (`entries.rs`), or the places of lines (`lines.rs`).

use std::fmt::Debug;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::task::input::pieces;
use crate::task::{AttemptId, Counters, Side, TaskContext, TaskEnvironment, TaskKind};
use gristmill_base::error::Result;
use gristmill_storage::input::InputRange;

/// Where records go that are sorted in memory: the same for all tasks of a job.
pub trait ScatterPlan: Debug + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// What a split has of a bucket.
    type Size;

    /// Scatters a split, and keeps what came of it.
    ///
    /// # Errors
    /// It cannot be read, there is no memory for it, or the task was told to stop.
    fn scatter(
        &self,
        split: &[InputRange],
        environment: TaskEnvironment<'_>,
    ) -> Result<ScatterReport<Self::Size>>;
}

/// Which split to scatter, and where its buckets are cut.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(bound = "P: ScatterPlan")]
pub struct ScatterSpec<P> {
    /// The split.
    pub split: Vec<InputRange>,
    /// The order and the buckets.
    #[serde(with = "crate::task::wire::shared")]
    pub plan: Arc<P>,
}

/// What such a task found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScatterReport<S> {
    /// Under which name it is kept.
    pub output: AttemptId,
    /// Bytes of the records, with the newlines that were missing behind last lines.
    pub bytes: u64,
    /// How many there are.
    pub records: u64,
    /// Bytes of the longest.
    pub longest: u64,
    /// The sum of their CRCs, which does not depend on their order.
    #[serde(with = "gristmill_base::record::checksum::hex")]
    pub checksum: u128,
    /// What each bucket has.
    pub sizes: Vec<S>,
}

impl<P: ScatterPlan> TaskKind for ScatterSpec<P> {
    type Report = ScatterReport<P::Size>;

    fn run(&self, environment: TaskEnvironment<'_>) -> Result<Self::Report> {
        self.plan.scatter(&self.split, environment)
    }

    fn input(&self, context: &TaskContext) -> String {
        pieces(&self.split, context)
    }

    fn counters(&self, report: &Self::Report) -> Counters {
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

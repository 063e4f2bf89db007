//! Sorted runs, as the specs of tasks name them: how they are made, and which are merged.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::order::borders::Border;
use crate::record::shape::ShapeKind;
use crate::spill::{MemoryModel, SpilledRun};

/// How runs are made and merged: the same for all tasks of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPlan {
    /// What the records are.
    pub shape: ShapeKind,
    /// Whether of records with equal keys only the first stays.
    pub unique: bool,
    /// Where runs are cut into buckets.
    pub borders: Vec<Border>,
    /// Where runs may be written, in order.
    #[serde(with = "crate::names")]
    pub places: Vec<PathBuf>,
    /// Bytes of each buffer of a writer.
    pub buffer_bytes: usize,
    /// What memory longer records would need.
    pub needed: MemoryModel,
}

/// A run to be merged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeRun {
    /// Where it is.
    #[serde(with = "crate::names")]
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

/// The error of a task that was told to find pairs in its input.
pub(super) fn not_read() -> Error {
    Error::bug("run a task", "pairs are made by tasks, not found in input")
}

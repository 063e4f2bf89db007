//! Space that a task has used up, and that is given back once the task's report is in the history for good.
//!
//! A task says what it has used up, and gives nothing back itself: only the driver knows whether its report counts.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::context::TaskContext;
use super::runs::MergeRun;

/// Space of a run that no task needs any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleasedSpace {
    /// The run.
    #[serde(with = "gristmill_base::names")]
    pub run: PathBuf,
    /// Bytes of its file; the whole file where there are none.
    pub bytes: Option<Range<u64>>,
}

impl ReleasedSpace {
    /// All of a run.
    pub(super) fn whole(run: &Path) -> Self {
        let run = run.to_owned();
        ReleasedSpace { run, bytes: None }
    }

    /// Bytes of some of these runs, by their numbers.
    pub(super) fn parts(runs: &[MergeRun], spent: &[(u32, Range<u64>)]) -> Vec<Self> {
        let part = |(run, bytes): &(u32, Range<u64>)| {
            let run = runs.get(*run as usize)?.path.clone();
            let bytes = Some(bytes.clone());
            Some(ReleasedSpace { run, bytes })
        };
        spent.iter().filter_map(part).collect()
    }

    /// Gives the space back. Space that cannot be given back now is given back when the job ends.
    pub fn release_space(&self, context: &TaskContext) {
        let _ = match &self.bytes {
            Some(bytes) => context.node.runs.discard(&self.run, bytes.clone()),
            None => context.node.runs.remove(&self.run),
        };
    }
}

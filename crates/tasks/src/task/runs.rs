//! Sorted runs, as the specs of tasks name them: how they are made, where, and which are merged.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::spill::{MemoryModel, SpilledRun};
use gristmill_base::error::Error;
use gristmill_base::order::borders::Border;
use gristmill_base::record::shape::ShapeKind;
use gristmill_storage::run_name::{RunName, is_in_memory};
use gristmill_storage::sorted_run::{RunCompression, RunFile};

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
    #[serde(with = "gristmill_base::names")]
    pub places: Vec<PathBuf>,
    /// Bytes of each buffer of a writer.
    pub buffer_bytes: usize,
    /// How runs are compressed.
    pub compression: RunCompression,
    /// What memory longer records would need.
    pub needed: MemoryModel,
}

/// A run to be merged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeRun {
    /// Where it is.
    #[serde(with = "gristmill_base::names")]
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

/// Far runs that a worker has open from task to task. To open one takes some requests that wait for one another, and their
/// replies wait for the segments of other tasks that fill the link. Such a run is looked for anew with every read; one of this
/// machine is a file, which may by now be another one.
#[derive(Debug, Default)]
pub(super) struct KeptRuns {
    pub(super) of: Option<Arc<Vec<MergeRun>>>,
    /// In the order of the runs; nothing in the place of one of this machine.
    pub(super) remote: Vec<Option<Arc<RunFile>>>,
}

/// Where the tasks of an agent write on its machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFolders {
    /// The agent's number.
    pub agent: u32,
    /// Where runs may be written, in order: in its memory, then in its folders.
    pub runs: Vec<PathBuf>,
    /// The folder of the folders of attempts at user code.
    pub attempts: PathBuf,
}

impl AgentFolders {
    /// Those of them that the processes below the agent have as well: folders.
    pub fn of_processes(&self) -> Vec<PathBuf> {
        let folders = self.runs.iter();
        let folders = folders.filter(|folder| !is_in_memory(folder));
        folders.cloned().collect()
    }

    /// Gives a run that lies in one of the places the name that it has on the cluster.
    ///
    /// ```
    /// use gristmill_tasks::spill::SpilledRun;
    /// use gristmill_tasks::task::AgentFolders;
    /// let runs = vec!["memory:".into(), "/b".into()];
    /// let folders = AgentFolders { agent: 3, runs, attempts: "/b/attempts".into() };
    /// let mut run = SpilledRun { path: "/b/run-00000-0-0000".into(), ..SpilledRun::default() };
    /// folders.name(&mut run);
    /// assert_eq!(run.path.as_os_str(), "agent:3/1/run-00000-0-0000");
    /// ```
    pub fn name(&self, run: &mut SpilledRun) {
        let mut folders = (0..).zip(&self.runs);
        let named = folders.find_map(|(folder, path)| {
            let name = run.path.strip_prefix(path).ok()?.to_str()?;
            Some(RunName::new(self.agent, folder, name))
        });
        if let Some(named) = named {
            run.path = named.path();
        }
    }
}

/// The error of a task that was told to find pairs in its input.
pub(super) fn not_read() -> Error {
    Error::bug("run a task", "pairs are made by tasks, not found in input")
}

//! What agents have found on their nodes of a job whose driver is dead, as the driver that resumes it reads it.
//!
//! ```text
//!   Hello.found   agent:2/1/run-00007-0-0000 ──its header and index, over HTTP──▶ the run that a task made
//! ```
//!
//! A run that is not found has a name all the same, of an agent that there is not: if it is needed after all, the task that made it
//! is known by that name, and done again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::Cluster;
use gristmill_storage::LocalDisk;
use gristmill_storage::agents::{AgentDisk, Agents};
use gristmill_storage::run_name::{MEMORY_FOLDER, RunName};

/// The number of no agent.
pub(super) const NOBODY: u32 = u32::MAX;

/// The runs that were found.
#[derive(Debug)]
pub struct FoundRuns {
    /// The disk below, with the runs of all agents.
    pub disk: AgentDisk,
    places: BTreeMap<String, PathBuf>,
}

impl FoundRuns {
    /// Those that the agents of `cluster` have said, for a job that ends by this flag.
    pub fn of(cluster: &Cluster, disk: &Arc<dyn LocalDisk>, cancel: Arc<AtomicBool>) -> Self {
        let places = (0..).zip(cluster.agents.iter().map(|agent| agent.place.clone()));
        let agents = Agents::of_driver(NOBODY, cluster.token.clone(), places.collect())
            .trusting(cluster.authorities.clone())
            .ended_by(cancel);
        let named = |run: &RunName| (run.name.clone(), run.path());
        let found = cluster.agents.iter().flat_map(|agent| &agent.found);
        FoundRuns {
            disk: AgentDisk::new(Arc::clone(disk), Arc::new(agents)),
            places: found.map(named).collect(),
        }
    }

    /// Where a run of this name is.
    pub fn place_of(&self, name: &Path) -> Option<&Path> {
        self.places.get(name.to_str()?).map(PathBuf::as_path)
    }

    /// What a run is called that was not found.
    ///
    /// ```
    /// use gristmill_engine::runner::cluster::FoundRuns;
    /// let gone = FoundRuns::gone("run-00007-0-0000".as_ref());
    /// assert!(FoundRuns::is_gone(&gone) && !FoundRuns::is_gone("agent:2/0/run-00007-0-0000".as_ref()));
    /// ```
    pub fn gone(name: &Path) -> PathBuf {
        let folder = MEMORY_FOLDER + 1; // what is in memory is never looked for
        RunName::new(NOBODY, folder, name.to_string_lossy()).path()
    }

    /// Whether a run is called so.
    pub fn is_gone(run: &Path) -> bool {
        RunName::of(run).is_some_and(|run| run.agent == NOBODY)
    }
}

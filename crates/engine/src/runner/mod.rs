//! Runners: where tasks run. A runner does what the driver's actions say, and never looks into a task.
//!
//! ```text
//!   running.rs     the loop between the driver and a place where attempts run, which all runners share
//!   slots.rs       the slots of this process as such a place
//!   threads.rs     a slot is a thread of this process
//!   processes.rs   a slot has a worker process, whose side is worker.rs
//!   cluster        the agents of a cluster as such a place
//! ```
//!
//! Adding one costs its file: what a place is (`running::ExecutionBackend`, or `slots::Slot` on this machine), and a [`Runner`] for it.

mod attempts;
pub mod cluster;
mod control;
mod messages;
pub mod nodes;
pub mod phases;
pub mod processes;
mod running;
mod shared;
mod slots;
pub mod threads;
pub mod tree;
pub mod usage;
pub mod worker;

use std::fmt::Debug;
use std::sync::Arc;

use serde::Deserialize;

pub use cluster::{Cluster, ClusterRunner, FoundRuns, On};
pub use control::{Control, StageProgress};
pub use shared::BuildNativeExecutor;

use self::nodes::Nodes;
use self::phases::PhaseClock;
use self::processes::ProcessRunner;
use self::threads::Threads;
use self::usage::PeakMemory;
use crate::driver::Driver;
use crate::history::Recorder;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_storage::location::Location;
use gristmill_tasks::task::TaskContext;
use gristmill_tasks::worker::WorkerCommand;

/// Who hears of a job while it runs.
#[derive(Debug)]
pub struct RunnerHooks<'a, 'c> {
    /// What the outside may know and ask.
    pub control: &'a Control,
    /// What phases take.
    pub clock: &'a mut PhaseClock<'c>,
    /// What memory was used at most.
    pub memory: &'a PeakMemory,
    /// What happens.
    pub recorder: &'a Recorder,
    /// A name of a file of the output, which nodes are to see.
    pub output: Option<Location>,
}

/// The runners that a job may ask for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunnerKind {
    /// Threads of this process.
    #[default]
    Threads,
    /// Worker processes.
    Processes,
}

impl RunnerKind {
    /// Their names, as options have them.
    pub const NAMES: &'static [&'static str] = &["threads", "processes"];

    /// Its name.
    ///
    /// ```
    /// assert_eq!(gristmill_engine::runner::RunnerKind::default().name(), "threads");
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            RunnerKind::Threads => "threads",
            RunnerKind::Processes => "processes",
        }
    }

    /// The runner; `worker` begins a process that runs tasks.
    ///
    /// # Errors
    /// It wants worker processes, and nothing says how they are begun.
    pub fn runner(self, worker: Option<&WorkerCommand>) -> Result<Box<dyn Runner>> {
        match (self, worker) {
            (RunnerKind::Threads, _) => Ok(Box::new(Threads)),
            (RunnerKind::Processes, Some(worker)) => {
                Ok(Box::new(ProcessRunner::new(worker.clone())))
            }
            (RunnerKind::Processes, None) => {
                let message = "this program does not know which Python interpreter it runs in";
                Err(
                    Error::new(Kind::BadOption, "start worker processes", message)
                        .of_option("runner")
                        .advise(
                            "run the job in threads, or from a Python whose sys.executable is set",
                        ),
                )
            }
        }
    }
}

/// Runs the tasks of jobs.
pub trait Runner: Send + Sync + Debug {
    /// Whether tasks see what other tasks leave in the memory of this process: plans ask before they keep anything there.
    fn shares_memory(&self) -> bool;

    /// What `workers` processes of the runner hold before they do anything: part of the budget.
    ///
    /// # Errors
    /// They cannot be started.
    fn held_bytes(&self, workers: usize) -> Result<u64>;

    /// What it has used so far on the nodes of a cluster, and done there.
    fn nodes(&self) -> Option<Arc<Nodes>> {
        None
    }

    /// The most memory that it has had on other machines.
    fn peak_bytes(&self) -> u64 {
        0
    }

    /// Runs the driver's job to its end, with `workers` attempts at once.
    ///
    /// # Errors
    /// The job failed, or was cancelled.
    fn run(
        &self,
        driver: &mut Driver,
        context: &TaskContext,
        workers: usize,
        hooks: RunnerHooks<'_, '_>,
    ) -> Result<()>;
}

//! What a worker process or an agent is told before the first task of a job: what the tasks share, its memory, and the user
//! code.
//!
//! User code has its environment with it. It goes through the pipe to a process of the same user, and nowhere else.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use gristmill_base::budget::Budget;
use gristmill_base::error::{Error, Result};
use gristmill_storage::collected::CollectorAddress;
use gristmill_storage::layered::Layered;
use gristmill_storage::stores::Stores;
use gristmill_tasks::task::wire::Message;
use gristmill_tasks::task::{
    AgentFolders, ExecutorKind, ExecutorSpec, InProcess, JobShared, NodeContext, NodeEnvironment,
    TaskContext, UserTaskExecutor,
};

/// Makes the executor of a job whose code is ours, from the job's options as JSON.
pub type BuildNativeExecutor = fn(&str, Arc<Stores>) -> Result<Arc<dyn UserTaskExecutor>>;

/// What a process has that runs tasks, beside its stores.
#[derive(Debug, Default)]
pub(super) struct Host {
    /// How many tasks run at once.
    pub(super) workers: usize,
    /// Where they write, on a machine of a cluster.
    pub(super) places: Option<AgentFolders>,
    /// The memory that runs may lie in, on a machine of a cluster.
    pub(super) memory: Option<Arc<Layered>>,
    /// What user code finds there.
    pub(super) here: NodeEnvironment,
}

/// What a worker is told of a job.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct JobSetup {
    job: JobShared,
    /// The worker's share of the budget.
    budget_bytes: u64,
    /// What of that is for runs in memory, on a machine of a cluster.
    runs_bytes: u64,
    /// How the executor of user code runs it, where the job has some.
    how: Option<ExecutorKind>,
    /// The user code, as that executor wants it.
    definition: Vec<u8>,
}

impl Message for JobSetup {
    const KIND: [u8; 4] = *b"jobs";
    const NAME: &'static str = "a job";
}

impl JobSetup {
    /// What tasks in a worker need of `context`, with so much memory for each worker.
    ///
    /// # Errors
    /// Its user code can only run in this process.
    pub(super) fn of(context: &TaskContext, budget_bytes: u64) -> Result<Self> {
        let spec = match &context.node.executor {
            None => None,
            Some(executor) => {
                let error = || Error::bug("send a job to a worker", "its executor stays here");
                Some(executor.spec().ok_or_else(error)?)
            }
        };
        let (how, definition) = spec.map_or((None, Vec::new()), |spec| {
            (Some(spec.kind), spec.definition)
        });
        Ok(JobSetup {
            job: context.job.clone(),
            budget_bytes,
            runs_bytes: 0,
            how,
            definition,
        })
    }

    /// The same with more memory, for runs.
    pub(super) fn holding_runs(mut self, bytes: u64) -> Self {
        self.budget_bytes += bytes;
        self.runs_bytes = bytes;
        self
    }

    /// The same, with files of the output sent to who takes them.
    pub(super) fn collected_by(mut self, collector: Option<CollectorAddress>) -> Self {
        if let Some(outputs) = &mut self.job.shared_outputs {
            outputs.collector = collector;
        }
        self
    }

    /// What tasks run with in this process, on files of `store`.
    ///
    /// # Errors
    /// What the executor of user code needs is gone.
    pub(super) fn context(
        self,
        store: &Stores,
        native: BuildNativeExecutor,
        host: &Host,
    ) -> Result<TaskContext> {
        let store = store
            .with_options(&self.job.store_options)
            .with_blocks(self.job.blocks)
            .with_shared_outputs(self.job.shared_outputs.clone());
        let definition = self.definition;
        let executor = match self.how {
            None => None,
            Some(ExecutorKind::Native) => {
                let options = String::from_utf8(definition)
                    .map_err(|error| Error::bug("read a job's options", error.to_string()))?;
                Some(native(&options, Arc::clone(&store))?)
            }
            Some(kind) => {
                let spec = ExecutorSpec { kind, definition };
                Some(spec.build_on(host.workers, Arc::clone(&store), &host.here)?)
            }
        };
        if let Some(memory) = &host.memory {
            memory.set_limit(self.runs_bytes);
        }
        let node = NodeContext::new(store, Budget::new(self.budget_bytes))
            .with_runs_in_memory(self.runs_bytes)?
            .with_executor(executor)
            .with_places(host.places.clone());
        Ok(TaskContext::new(self.job, node, InProcess::Nothing))
    }
}

//! What a job runs with, beside its options.

use std::sync::Arc;

use crate::history::HistoryConfig;
use crate::plan::table::Common;
use crate::runner::{Cluster, ClusterRunner, On, Runner, RunnerKind};
use gristmill_base::budget::ProcessOwner;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_storage::shared::SharedOutputs;
use gristmill_storage::stores::Stores;
use gristmill_tasks::commit::Ownership;
use gristmill_tasks::task::UserTaskExecutor;
use gristmill_tasks::worker::WorkerCommand;

/// What a job runs with, beside its options.
#[derive(Debug, Clone)]
pub struct Environment {
    /// Where its files are.
    pub store: Arc<Stores>,
    /// Its name.
    pub job_id: String,
    /// Where its history goes.
    pub history: HistoryConfig,
    /// Who runs user code, for jobs that have some. Of a resumed job: in the place of what it kept.
    pub work: Option<Arc<dyn UserTaskExecutor>>,
    /// What user functions are run by, such as a Python: a job is resumed only with the same.
    pub interpreter: String,
    /// Whose process this is: what it holds is part of the budget.
    pub process: ProcessOwner,
    /// What begins a process that runs tasks, for jobs that ask for such.
    pub worker: Option<WorkerCommand>,
    /// The agents that tasks run in, for jobs on a cluster.
    pub cluster: Option<Arc<Cluster>>,
}

impl Environment {
    /// The same with the stores that a job's options ask for.
    pub(super) fn for_job(&self, common: &Common) -> Self {
        Environment {
            store: stores_of(&self.store, common),
            ..self.clone()
        }
    }

    /// What a job runs its tasks with, which says whether what is there goes with the job.
    ///
    /// # Errors
    /// What its options ask for is not there, or not to be had together.
    pub(super) fn runner(&self, common: &Common, ownership: &Ownership) -> Result<Box<dyn Runner>> {
        if common.on == On::Local {
            if common.nodes.is_some() {
                let message = "nodes is for jobs on a cluster, and this job runs on this machine";
                return Err(Error::new(Kind::BadOption, "run the job", message)
                    .of_option("nodes")
                    .advise("leave it out, or add --on ray"));
            }
            if common.collect {
                let message = "collect is for jobs on a cluster, and this job runs on this machine";
                return Err(Error::new(Kind::BadOption, "run the job", message)
                    .of_option("collect")
                    .advise("leave it out, or add --on ray"));
            }
            return common.runner.runner(self.worker.as_ref());
        }
        let refused = |message: &str, advice: &str| {
            Error::new(Kind::BadOption, "run the job on the cluster", message)
                .of_option("on")
                .advise(advice)
        };
        if common.runner != RunnerKind::default() {
            return Err(refused(
                "tasks run in the agents of the cluster, and not in worker processes of this machine",
                "leave out --runner",
            ));
        }
        let cluster = self.cluster.as_ref().ok_or_else(|| {
            refused(
                "this command begins no agents there",
                "run the job itself with --on ray",
            )
        })?;
        Ok(Box::new(ClusterRunner::new(
            Arc::clone(cluster),
            ownership.clone(),
        )))
    }

    /// Whether tasks run in processes below this one, whose memory and CPU time count.
    pub(super) fn has_processes(&self, common: &Common) -> bool {
        self.work.is_some() || common.runner == RunnerKind::Processes
    }
}

/// The stores that a job's options ask for.
pub(super) fn stores_of(stores: &Stores, common: &Common) -> Arc<Stores> {
    let with_options = stores.with_options(&common.store_option);
    if common.on == On::Local && stores.shared_outputs().is_none() {
        return with_options;
    }
    let outputs = SharedOutputs {
        collects: common.collect,
        ..SharedOutputs::seen_by_all(!common.no_sync)
    };
    with_options.with_shared_outputs(Some(outputs))
}

//! What a job runs with, beside its options.

use std::sync::Arc;

use crate::budget::Process;
use crate::history::HistoryConfig;
use crate::plan::table::Common;
use crate::runner::RunnerKind;
use crate::storage::stores::Stores;
use crate::task::UserTaskExecutor;
use crate::worker::Command;

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
    pub process: Process,
    /// What begins a process that runs tasks, for jobs that ask for such.
    pub worker: Option<Command>,
}

impl Environment {
    /// The same with the stores that a job's options ask for.
    pub(super) fn for_job(&self, common: &Common) -> Self {
        Environment {
            store: self.store.with_options(&common.store_option),
            ..self.clone()
        }
    }

    /// Whether tasks run in processes below this one, whose memory and CPU time count.
    pub(super) fn has_processes(&self, common: &Common) -> bool {
        self.work.is_some() || common.runner == RunnerKind::Processes
    }
}

//! Makes an executor from its spec: the one place that names all kinds of executors.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::executor::UserTaskExecutor;
use super::executor_spec::{ExecutorKind, ExecutorSpec};
use super::node_environment::NodeEnvironment;
use super::processes::ProcessPoolExecutor;
use super::streaming::StreamingExecutor;
use crate::worker::{ProcessPool, WorkerCommand, WorkerDefinition, WorkerLimits};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_storage::Store;
use gristmill_storage::stores::Stores;

impl ExecutorSpec {
    /// The executor; it runs `workers` tasks at once.
    ///
    /// # Errors
    /// What it needs is gone, or the definition is not one.
    pub fn build(self, workers: usize, store: Arc<Stores>) -> Result<Arc<dyn UserTaskExecutor>> {
        self.build_on(workers, store, &NodeEnvironment::default())
    }

    /// The same on a node of a cluster.
    ///
    /// # Errors
    /// As of [`Self::build`].
    pub fn build_on(
        self,
        workers: usize,
        store: Arc<Stores>,
        here: &NodeEnvironment,
    ) -> Result<Arc<dyn UserTaskExecutor>> {
        match self.kind {
            ExecutorKind::Processes {
                program,
                arguments,
                environment,
                folder,
                scratch,
                timeout,
                memory_bytes,
            } => {
                let command = WorkerCommand {
                    program,
                    arguments,
                    environment,
                    whole_environment: true,
                    folder,
                    scratch,
                };
                let command = here.command(command, &**store.disk())?;
                let needed = [
                    Some(&command.program),
                    command.folder.as_ref(),
                    Some(&command.scratch),
                ];
                for path in needed.into_iter().flatten() {
                    is_there(&**store.disk(), path)?;
                }
                let definition = WorkerDefinition {
                    key: Sha256::digest(&self.definition).into(),
                    bytes: self.definition.into(),
                };
                let limits = WorkerLimits {
                    timeout,
                    memory_bytes,
                    ..WorkerLimits::default()
                };
                ProcessPool::shared().keep(workers);
                Ok(Arc::new(ProcessPoolExecutor::new(
                    command, definition, limits,
                )))
            }
            ExecutorKind::Native => Err(Error::bug("run a job", "its code is not user code")),
            ExecutorKind::Scripts { environment } => {
                let text = String::from_utf8(self.definition)
                    .map_err(|error| Error::bug("read a job's definition", error.to_string()))?;
                let work = StreamingExecutor::new(&text, store)?
                    .inheriting(here.environment(environment))
                    .on(here);
                Ok(Arc::new(work))
            }
        }
    }
}

fn is_there(store: &dyn Store, path: &std::path::Path) -> Result<()> {
    if store.stat(path)?.is_some() {
        return Ok(());
    }
    let message = "a file that the job's functions used is gone";
    Err(Error::new(Kind::NotFound, "resume the job", message)
        .with_path(path)
        .advise("put it back and resume again, or start the job anew"))
}

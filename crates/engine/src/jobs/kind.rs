//! What a kind of job is. Adding one costs its file, which implements [`JobKind`] and [`Described`], and its line in
//! `KINDS` in `registry.rs`.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::steps::{JobOutput, RunningJob, refusal};
use super::tables::InputTable;
use crate::plan::explain::Explanation;
use crate::plan::table::{CommandOptions, CommandSpec};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_storage::location::Location;
use gristmill_storage::stores::Stores;
use gristmill_tasks::task::UserTaskExecutor;

/// What the engine needs to know of a kind of job. The implementor holds the options of one job.
pub(super) trait JobKind: CommandOptions + Debug + Send + Sync {
    /// Runs the job to its end.
    fn run(&self, job: &mut RunningJob<'_>) -> Result<()>;

    /// The command, as reports and histories name it, where that is not the table's name of the kind.
    fn command(&self) -> Option<&'static str> {
        None
    }

    /// What the job would do. A kind that does not say so has nothing to explain.
    fn explain(&self, job: &RunningJob<'_>) -> Result<Explanation> {
        let message = format!("{} has no plan to explain", job.report.command);
        Err(Error::new(Kind::BadOption, "explain the job", message)
            .advise("see gristmill explain --help for jobs that have one"))
    }

    /// Fails with the reason if a killed job cannot be resumed. Where a kind does not say so, it is resumed if it
    /// publishes an output.
    fn resumable(&self) -> Result<()> {
        let why = "jobs of its kind leave nothing to resume from";
        self.output().map_or(Err(refusal(why, "")), |_| Ok(()))
    }

    /// Whether what its code is must have been kept, for another process to resume it.
    fn keeps_code(&self) -> bool {
        false
    }

    /// What runs its tasks, where their code is ours, on these tables: worker processes ask, with the definition that the job gave
    /// them.
    ///
    /// # Errors
    /// The options make no sense.
    fn work(
        &self,
        _store: Arc<Stores>,
        _tables: &[InputTable],
        _definition: &str,
    ) -> Result<Option<Arc<dyn UserTaskExecutor>>> {
        Ok(None)
    }

    /// What it publishes.
    fn output(&self) -> Option<JobOutput<'_>> {
        None
    }

    /// Beside what its job folder lies, if it has one.
    fn staged_beside(&self) -> Option<&Location> {
        self.output().map(JobOutput::path)
    }

    /// What a dead job of this name has left in a store, where no folder of a job has it; removed unless `dry_run`.
    ///
    /// # Errors
    /// The store does not answer, or refuses.
    fn clear_in_store(
        &self,
        _stores: &Stores,
        _job: &str,
        _dry_run: bool,
    ) -> Result<Option<PathBuf>> {
        Ok(None)
    }

    /// Whether what it makes goes to a stream of this process, and not to an output.
    fn writes_stream(&self) -> bool {
        false
    }

    /// The name of the job that it resumes, in the place of running one of its own.
    fn resumes(&self) -> Option<&str> {
        None
    }
}

/// A kind of job whose options can be read.
pub(super) trait Described: JobKind + DeserializeOwned {
    /// Its command, as the table has it.
    const COMMAND: CommandSpec;
}

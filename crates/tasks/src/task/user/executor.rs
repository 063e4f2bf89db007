//! An executor of user code: worker processes with Python functions, scripts, or code of ours.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::executor_spec::ExecutorSpec;
use super::failed::FailedAt;
use super::spec::{UserAttemptSpec, UserTaskFile, UserTaskReport};
use crate::task::attempt::TaskAttempt;
use gristmill_base::error::Result;
use gristmill_storage::net::requests::RequestCounts;

/// An executor of user code.
pub trait UserTaskExecutor: Send + Sync + std::fmt::Debug {
    /// Does one attempt of a task. Blocks until it is over; ends soon after `attempt` is told to stop.
    fn run(&self, spec: &UserAttemptSpec, attempt: &TaskAttempt<'_>) -> Result<UserTaskReport>;

    /// Looks at all files of an output together, which lie in `folder` and are not published: those that lack columns are
    /// written anew. Returns these, with their new lengths. Ends soon after `stop` is set.
    fn give_one_schema(
        &self,
        _folder: &Path,
        _files: &[&UserTaskFile],
        _stop: &AtomicBool,
    ) -> Result<Vec<UserTaskFile>> {
        Ok(Vec::new())
    }

    /// The requests to stores of other processes that it has waited for, since this was asked last.
    fn take_requests(&self) -> RequestCounts {
        RequestCounts::default()
    }

    /// What another process makes the same executor from, if it can.
    fn spec(&self) -> Option<ExecutorSpec> {
        None
    }

    /// Where the last attempt of a task failed, as far as its user code is to blame.
    fn failed_at(&self, _task: u32) -> Option<FailedAt> {
        None
    }
}

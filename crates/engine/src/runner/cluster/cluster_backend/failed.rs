//! What user code failed at on the agents, for `gristmill retry`: noted when an attempt fails, and had from its agent when the
//! job does (`task/user/failed_on_agent.rs`).
//!
//! The rule that must hold: an error names what is kept only if it is there.

use std::sync::Arc;

use super::{ClusterBackend, RemoteFailure};
use gristmill_base::error::{Error, Result};
use gristmill_storage::agents::AgentDisk;
use gristmill_tasks::task::AttemptId;

impl ClusterBackend<'_> {
    /// Notes what an agent has kept of an attempt that failed there, if it has kept anything.
    pub(super) fn note_failed(
        &mut self,
        (id, agent): (AttemptId, u32),
        error: Error,
        kept: Option<String>,
    ) -> Error {
        let spec = self.running.get(&id).map(|launched| &launched.spec);
        let (Some(kept), Some(spec)) = (kept, spec) else {
            self.failed.remove(&id.task);
            return error;
        };
        let spec = Arc::clone(spec);
        let failed = RemoteFailure {
            id,
            agent,
            spec,
            kept,
        };
        self.failed.insert(id.task, failed);
        error.noting(|details| details.retry = Some(id.task))
    }

    /// The error that ends the job, once what it failed at is kept here; or it says why that could not be had.
    pub(in super::super) fn with_failed_kept(&self, mut error: Error) -> Error {
        let task = error.details.retry.take();
        let Some(failed) = task.and_then(|task| self.failed.get(&task)) else {
            return error;
        };
        match self.take_failed(failed) {
            Ok(()) => error.noting(|details| details.retry = task),
            Err(why) => error.with(
                "for `gristmill retry`",
                format!("nothing was kept: {}", why.says()),
            ),
        }
    }

    fn take_failed(&self, failed: &RemoteFailure) -> Result<()> {
        let disk = self.context.node.store.disk();
        let agents = self.links.reader_of(failed.agent);
        let agents = agents.ended_by(self.control.flag());
        let agents = AgentDisk::new(Arc::clone(disk), Arc::new(agents));
        failed
            .spec
            .take_failed(failed.id, (self.context, &agents), &failed.kept)
    }
}

//! An executor of user code: worker processes with Python functions, scripts, or code of ours.

use super::failed::FailedAt;
use super::how::WorkAgain;
use super::spec::{WorkReport, WorkSpec};
use crate::error::Result;
use crate::task::attempt::Attempt;

/// An executor of user code.
pub trait Work: Send + Sync + std::fmt::Debug {
    /// Does one attempt of a task. Blocks until it is over; ends soon after `attempt` is told to stop.
    fn run(&self, spec: &WorkSpec, attempt: &Attempt<'_>) -> Result<WorkReport>;

    /// What another process needs to do the same, if it can.
    fn again(&self) -> Option<WorkAgain> {
        None
    }

    /// Where the last attempt of a task failed, as far as its user code is to blame.
    fn failed_at(&self, _task: u32) -> Option<FailedAt> {
        None
    }
}

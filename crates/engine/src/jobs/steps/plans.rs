//! What plans of all kinds of jobs have in common.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::driver::{Plan, Stage};
use crate::error::{Error, Result};
use crate::task::TaskReport;

/// A plan of one stage, whose reports are kept.
pub(super) struct OneStage {
    pub(super) stage: Option<Stage>,
    pub(super) reports: Arc<Mutex<Vec<TaskReport>>>,
}

impl Plan for OneStage {
    fn next_stage(&mut self, reports: Vec<TaskReport>) -> Result<Option<Stage>> {
        *lock(&self.reports) = reports;
        Ok(self.stage.take())
    }
}

/// What a plan shares with its job. A panic elsewhere leaves it whole enough: the job fails then.
pub(in crate::jobs) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The error of a report that none of a stage's tasks can have given.
pub(in crate::jobs) fn wrong_report() -> Error {
    Error::bug("run the job", "a report of another kind")
}

//! The threads runner: a job's tasks on threads of this process, each with its scratch.
//!
//! Threads cannot be killed, so tasks look at their stop flag as they go. A task that panics has found a bug of ours:
//! its attempt fails and the job ends with a clear error.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::attempts::AttemptOutcome;
use super::slots::{Slot, run_in_slots};
use super::{Runner, RunnerHooks};
use crate::driver::Driver;
use gristmill_base::error::{Error, Result};
use gristmill_tasks::task::{Scratch, TaskAttempt, TaskContext, TaskReport, TaskSpec, run_task};

/// Runs tasks on threads of this process.
#[derive(Debug, Default)]
pub struct Threads;

impl Runner for Threads {
    fn shares_memory(&self) -> bool {
        true
    }

    fn held_bytes(&self, _workers: usize) -> Result<u64> {
        Ok(0)
    }

    fn run(
        &self,
        driver: &mut Driver,
        context: &TaskContext,
        workers: usize,
        hooks: RunnerHooks<'_, '_>,
    ) -> Result<()> {
        let slots = (0..workers).map(|_| Thread::new(context)).collect();
        run_in_slots(driver, context, slots, hooks)
    }
}

/// What a thread has.
pub(super) struct Thread<'a> {
    pub(super) context: &'a TaskContext,
    scratch: Scratch,
}

impl<'a> Thread<'a> {
    pub(super) fn new(context: &'a TaskContext) -> Self {
        let scratch = Scratch::default();
        Thread { context, scratch }
    }

    /// Gives back the memory that the last task left.
    pub(super) fn forget(&mut self) {
        self.scratch = Scratch::default();
    }
}

impl Slot for Thread<'_> {
    fn run(&mut self, spec: &TaskSpec, attempt: &TaskAttempt<'_>) -> AttemptOutcome {
        match run_caught(spec, self.context, attempt, &mut self.scratch) {
            Ok(report) => AttemptOutcome::Done(report),
            Err(error) => {
                self.forget(); // whatever state the attempt left it in
                AttemptOutcome::Failed(error)
            }
        }
    }
}

/// Does a task; a panic is an error.
pub(super) fn run_caught(
    spec: &TaskSpec,
    context: &TaskContext,
    attempt: &TaskAttempt<'_>,
    scratch: &mut Scratch,
) -> Result<TaskReport> {
    let task = AssertUnwindSafe(|| run_task(spec, context, attempt, scratch));
    catch_unwind(task).unwrap_or_else(|panic| Err(from_panic(&*panic)))
}

/// The error of a panic: always a bug of ours.
pub(crate) fn from_panic(panic: &(dyn std::any::Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    Error::bug(
        "run a task",
        text.unwrap_or_else(|| "a task panicked".to_owned()),
    )
}

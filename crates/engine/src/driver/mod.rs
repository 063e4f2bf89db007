//! The driver: a deterministic state machine that brings a job's stages to their end.
//!
//! No clock, no I/O, no threads: events come in with their time, actions go out, and the same events give the same
//! actions. Retries and cancellation live here and nowhere else. The runner does what the actions say.
//!
//! ```text
//!              events                                   actions
//!   Started ─────────▶ ┌───────────────────────┐ ─────▶ BeginStage
//!   Finished, Failed ─▶│ stages ▸ tasks ▸      │ ─────▶ Launch, Abort
//!   Woken ────────────▶│ attempts              │ ─────▶ WakeAt
//!   Cancel ───────────▶└───────────────────────┘ ─────▶ Complete
//! ```
//!
//! The rule that must hold: a stage's reports are those of exactly one attempt for each of its tasks.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::task::{AttemptId, TaskReport, TaskSpec};

/// Tasks that may run at once, for they need nothing of each other.
#[derive(Debug)]
pub struct Stage {
    /// What the stage does, for progress and reports.
    pub name: &'static str,
    /// Bytes that its tasks will note as done, in all.
    pub bytes: u64,
    /// Its tasks.
    pub tasks: Vec<TaskSpec>,
}

/// What a job is, to the driver: stages, each made from the reports of the one before.
pub trait Plan: Send {
    /// The stage after the one that gave `reports` (in order of its tasks; empty at first), or `None` at the end.
    /// A function of its arguments and of what it was called with before.
    fn next_stage(&mut self, reports: Vec<TaskReport>) -> Result<Option<Stage>>;
}

/// What happened.
#[derive(Debug)]
pub enum Event {
    /// The runner is ready, with room for so many attempts at once.
    Started {
        /// How many attempts may run at once.
        slots: usize,
    },
    /// An attempt is through.
    Finished {
        /// Which.
        id: AttemptId,
        /// With what.
        report: TaskReport,
    },
    /// An attempt ended without a result.
    Failed {
        /// Which.
        id: AttemptId,
        /// Why.
        error: Error,
    },
    /// A time that was asked for has come.
    Woken,
    /// The user wants the job to end.
    Cancel,
}

/// What the runner is to do.
#[derive(Debug)]
pub enum Action {
    /// A stage begins.
    BeginStage {
        /// Its name.
        name: &'static str,
        /// Bytes that its tasks will note as done.
        bytes: u64,
        /// How many tasks it has.
        tasks: usize,
    },
    /// Run this attempt.
    Launch {
        /// Which.
        id: AttemptId,
        /// What it is to do.
        spec: Arc<TaskSpec>,
    },
    /// Stop this attempt, which still reports its end.
    Abort {
        /// Which.
        id: AttemptId,
    },
    /// Send `Woken` at this time.
    WakeAt {
        /// Milliseconds on the clock of the events.
        at_ms: u64,
    },
    /// The job is over; nothing of it runs any more.
    Complete {
        /// How it ended.
        outcome: Result<()>,
    },
}

/// How often a task may be tried again, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Tries after the first.
    pub retries: u32,
    /// Wait before the first retry; doubled for each further one.
    pub first_wait_ms: u64,
}

impl Default for RetryPolicy {
    /// Four retries within three quarters of a second: a device's hiccup is over by then, its death is not.
    fn default() -> Self {
        RetryPolicy {
            retries: 4,
            first_wait_ms: 50,
        }
    }
}

#[derive(Debug)]
struct Task {
    spec: Arc<TaskSpec>,
    attempts: u32,
    report: Option<TaskReport>,
}

/// The state of one job.
pub struct Driver {
    plan: Box<dyn Plan>,
    policy: RetryPolicy,
    slots: usize,
    /// The number of the current stage's first task.
    first_task: u32,
    tasks: Vec<Task>,
    ready: VecDeque<usize>,
    /// Tasks that wait for another try, by the time of it.
    waiting: BTreeSet<(u64, usize)>,
    running: BTreeSet<AttemptId>,
    /// Why the job is ending, once it is.
    ending: Option<Error>,
    complete: bool,
    failed_attempts: u64,
}

impl Driver {
    /// A driver for `plan`.
    pub fn new(plan: Box<dyn Plan>, policy: RetryPolicy) -> Self {
        Driver {
            plan,
            policy,
            slots: 0,
            first_task: 0,
            tasks: Vec::new(),
            ready: VecDeque::new(),
            waiting: BTreeSet::new(),
            running: BTreeSet::new(),
            ending: None,
            complete: false,
            failed_attempts: 0,
        }
    }

    /// Attempts that ended without a result.
    pub fn failed_attempts(&self) -> u64 {
        self.failed_attempts
    }

    /// Takes one event that happened at `at_ms`; returns what to do, in order.
    pub fn handle(&mut self, at_ms: u64, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        if self.complete {
            return actions;
        }
        match event {
            Event::Started { slots } => {
                self.slots = slots.max(1);
                self.begin_stage(Vec::new(), &mut actions);
            }
            Event::Finished { id, report } => self.finished(id, report, &mut actions),
            Event::Failed { id, error } => self.failed(at_ms, id, error, &mut actions),
            Event::Woken => {}
            Event::Cancel => self.end(Error::cancelled(), &mut actions),
        }
        self.wake(at_ms);
        self.launch(&mut actions);
        self.complete_if_over(&mut actions);
        actions
    }

    fn begin_stage(&mut self, reports: Vec<TaskReport>, actions: &mut Vec<Action>) {
        self.first_task += self.tasks.len() as u32;
        self.tasks.clear();
        match self.plan.next_stage(reports) {
            Ok(Some(Stage { name, bytes, tasks })) => {
                actions.push(Action::BeginStage {
                    name,
                    bytes,
                    tasks: tasks.len(),
                });
                self.ready = (0..tasks.len()).collect();
                let task = |spec| Task {
                    spec: Arc::new(spec),
                    attempts: 0,
                    report: None,
                };
                self.tasks = tasks.into_iter().map(task).collect();
                if self.tasks.is_empty() {
                    self.begin_stage(Vec::new(), actions);
                }
            }
            Ok(None) => {
                self.complete = true;
                actions.push(Action::Complete { outcome: Ok(()) });
            }
            Err(error) => self.end(error, actions),
        }
    }

    fn finished(&mut self, id: AttemptId, report: TaskReport, actions: &mut Vec<Action>) {
        if !self.running.remove(&id) || self.ending.is_some() {
            return;
        }
        let task = &mut self.tasks[(id.task - self.first_task) as usize];
        task.report = Some(report);
        if self.tasks.iter().all(|task| task.report.is_some()) {
            let reports = self
                .tasks
                .iter_mut()
                .filter_map(|task| task.report.take())
                .collect();
            self.begin_stage(reports, actions);
        }
    }

    fn failed(&mut self, at_ms: u64, id: AttemptId, error: Error, actions: &mut Vec<Action>) {
        if !self.running.remove(&id) {
            return;
        }
        self.failed_attempts += 1;
        if self.ending.is_some() {
            return;
        }
        if !error.retryable() || id.attempt >= self.policy.retries {
            let tries = id.attempt + 1;
            let error = if tries > 1 {
                error.with("tries", tries)
            } else {
                error
            };
            self.end(error, actions);
            return;
        }
        let at_ms = at_ms + (self.policy.first_wait_ms << id.attempt);
        self.waiting
            .insert((at_ms, (id.task - self.first_task) as usize));
        actions.push(Action::WakeAt { at_ms });
    }

    /// Begins the job's end: nothing new is launched, what runs is told to stop.
    fn end(&mut self, error: Error, actions: &mut Vec<Action>) {
        if self.ending.is_none() {
            self.ending = Some(error);
            self.ready.clear();
            self.waiting.clear();
            actions.extend(self.running.iter().map(|id| Action::Abort { id: *id }));
        }
    }

    fn wake(&mut self, at_ms: u64) {
        while let Some(&(due_ms, task)) = self.waiting.first()
            && due_ms <= at_ms
        {
            self.waiting.pop_first();
            self.ready.push_back(task);
        }
    }

    fn launch(&mut self, actions: &mut Vec<Action>) {
        while self.running.len() < self.slots {
            let Some(number) = self.ready.pop_front() else {
                return;
            };
            let task = &mut self.tasks[number];
            let id = AttemptId {
                task: self.first_task + number as u32,
                attempt: task.attempts,
            };
            task.attempts += 1;
            self.running.insert(id);
            actions.push(Action::Launch {
                id,
                spec: task.spec.clone(),
            });
        }
    }

    fn complete_if_over(&mut self, actions: &mut Vec<Action>) {
        if self.running.is_empty()
            && let Some(error) = self.ending.take()
        {
            self.complete = true;
            actions.push(Action::Complete {
                outcome: Err(error),
            });
        }
    }
}

#[cfg(test)]
mod tests;

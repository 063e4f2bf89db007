//! The driver: a deterministic state machine that brings a job's stages to their end.
//!
//! No clock, no I/O, no threads: events come in with their time, actions go out, and the same events give the same
//! actions. Retries and cancellation live here and nowhere else. The runner does what the actions say.
//!
//! ```text
//!              events                                   actions
//!   Started ─────────▶ ┌───────────────────────┐ ─────▶ BeginStage
//!   Finished, Failed ─▶│ stages ▸ tasks ▸      │ ─────▶ Launch, Abort
//!   Lost, OutputLost ─▶│ attempts              │ ─────▶ WakeAt
//!   Woken, Cancel ────▶└───────────────────────┘ ─────▶ Complete
//! ```
//!
//! What a task made may be lost after the task is over, with the worker that kept it: then the task is done again, and
//! tasks of later stages wait for it.
//!
//! A driver may go on with a job that another process began: it is told what that job's history proves done
//! ([`Replay`]), brings its own plan to where that one was, and launches none of these tasks again.
//!
//! The rules that must hold: a stage's reports are those of exactly one attempt for each of its tasks; no task has two
//! attempts at once; nothing of the job runs when it is complete.

mod replay;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

pub use replay::Replay;

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

    /// What stands in the reports for a task that failed for good, where the job is to be done without it.
    fn without(&mut self, _task: &TaskSpec, _error: &Error) -> Option<TaskReport> {
        None
    }
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
    /// An attempt is gone with its worker, or what it needed is gone. It is no fault of the task, and not counted as
    /// a failure.
    Lost {
        /// Which.
        id: AttemptId,
    },
    /// What a task that is over had made is gone.
    OutputLost {
        /// The task's number.
        task: u32,
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
        /// How many of them are known to be over, and will not be launched.
        kept: usize,
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

/// How often a task may be lost before the job gives up: workers that take it along each time are no accident.
const MOST_LOSSES: u32 = 100;

#[derive(Debug)]
struct Task {
    spec: Arc<TaskSpec>,
    attempts: u32,
    failures: u32,
    losses: u32,
    /// Whether it is over, and what it made is there.
    done: bool,
    report: Option<TaskReport>,
}

/// How a job is ending.
#[derive(Debug)]
enum Ending {
    /// With what the plan was to do; only what was done again is still under way.
    Well,
    Badly(Error),
}

/// The state of one job.
pub struct Driver {
    plan: Box<dyn Plan>,
    policy: RetryPolicy,
    slots: usize,
    /// The number of the current stage's first task.
    first_task: usize,
    /// The tasks of all stages so far.
    tasks: Vec<Task>,
    /// Tasks to launch; those of earlier stages first.
    ready: VecDeque<usize>,
    /// Tasks of earlier stages whose outputs are gone, until they are there again.
    lost: BTreeSet<usize>,
    /// Tasks that wait for another try, by the time of it.
    waiting: BTreeSet<(u64, usize)>,
    running: BTreeSet<AttemptId>,
    /// How the job is ending, once it is.
    ending: Option<Ending>,
    complete: bool,
    failed_attempts: u64,
    /// What another process did of this job.
    replay: Replay,
    kept_tasks: u64,
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
            lost: BTreeSet::new(),
            waiting: BTreeSet::new(),
            running: BTreeSet::new(),
            ending: None,
            complete: false,
            failed_attempts: 0,
            replay: Replay::default(),
            kept_tasks: 0,
        }
    }

    /// A driver for `plan`, of which another process did what `replay` says.
    pub fn resume(plan: Box<dyn Plan>, policy: RetryPolicy, replay: Replay) -> Self {
        Driver {
            replay,
            ..Driver::new(plan, policy)
        }
    }

    /// Tasks that were known to be over.
    pub fn kept_tasks(&self) -> u64 {
        self.kept_tasks
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
            Event::Lost { id } => self.lost(id, &mut actions),
            Event::OutputLost { task } => self.output_lost(task as usize),
            Event::Woken => {}
            Event::Cancel => self.end(Ending::Badly(Error::cancelled()), &mut actions),
        }
        self.wake(at_ms);
        self.launch(&mut actions);
        self.complete_if_over(&mut actions);
        actions
    }

    fn begin_stage(&mut self, reports: Vec<TaskReport>, actions: &mut Vec<Action>) {
        self.first_task = self.tasks.len();
        match self.plan.next_stage(reports) {
            Ok(Some(Stage { name, bytes, tasks })) => {
                let count = tasks.len();
                tasks.into_iter().for_each(|spec| self.add_task(spec));
                let begun = self.first_task..self.tasks.len();
                let left: Vec<usize> = begun.filter(|task| !self.tasks[*task].done).collect();
                let kept = count - left.len();
                self.ready.extend(left);
                self.kept_tasks += kept as u64;
                actions.push(Action::BeginStage {
                    name,
                    bytes,
                    tasks: count,
                    kept,
                });
                self.end_stage_if_over(actions);
            }
            Ok(None) => self.end(Ending::Well, actions),
            Err(error) => self.end(Ending::Badly(error), actions),
        }
    }

    /// A task of the stage that begins: over already, if that is known.
    fn add_task(&mut self, spec: TaskSpec) {
        let number = self.tasks.len() as u32;
        let report = self.replay.take(number, &spec);
        self.tasks.push(Task {
            spec: Arc::new(spec),
            attempts: self.replay.first_attempt(number),
            failures: 0,
            losses: 0,
            done: report.is_some(),
            report,
        });
    }

    fn end_stage_if_over(&mut self, actions: &mut Vec<Action>) {
        let stage = &mut self.tasks[self.first_task..];
        if stage.iter().all(|task| task.done) {
            let reports = stage.iter_mut().filter_map(|task| task.report.take());
            let reports = reports.collect();
            self.begin_stage(reports, actions);
        }
    }

    fn finished(&mut self, id: AttemptId, report: TaskReport, actions: &mut Vec<Action>) {
        if !self.running.remove(&id) || self.ending.is_some() {
            return;
        }
        let number = id.task as usize;
        let task = &mut self.tasks[number];
        task.done = true;
        if self.lost.remove(&number) {
            return; // its report was used when it was over for the first time
        }
        task.report = Some(report);
        self.end_stage_if_over(actions);
    }

    fn failed(&mut self, at_ms: u64, id: AttemptId, error: Error, actions: &mut Vec<Action>) {
        if !self.running.remove(&id) {
            return;
        }
        self.failed_attempts += 1;
        if self.ending.is_some() {
            return;
        }
        let task = &mut self.tasks[id.task as usize];
        task.failures += 1;
        let tries = task.failures;
        if !error.retryable() || tries > self.policy.retries {
            let error = if tries > 1 {
                error.with("tries", tries)
            } else {
                error
            };
            self.given_up(id.task as usize, error, actions);
            return;
        }
        let at_ms = at_ms + (self.policy.first_wait_ms << (tries - 1));
        self.waiting.insert((at_ms, id.task as usize));
        actions.push(Action::WakeAt { at_ms });
    }

    /// A task failed for good: the job ends with it, unless the plan can do without.
    fn given_up(&mut self, number: usize, error: Error, actions: &mut Vec<Action>) {
        let task = &mut self.tasks[number];
        // What was made once and is to be made again was used already: nothing can stand for it.
        let made_before = number < self.first_task;
        let without = (!made_before).then(|| self.plan.without(&task.spec, &error));
        match without.flatten() {
            Some(report) => {
                task.done = true;
                task.report = Some(report);
                self.end_stage_if_over(actions);
            }
            None => self.end(Ending::Badly(error), actions),
        }
    }

    fn lost(&mut self, id: AttemptId, actions: &mut Vec<Action>) {
        if !self.running.remove(&id) || self.ending.is_some() {
            return;
        }
        let task = &mut self.tasks[id.task as usize];
        task.losses += 1;
        if task.losses > MOST_LOSSES {
            let message = format!("the workers of {MOST_LOSSES} attempts at a task were lost");
            let error = Error::new(crate::Kind::Io, "run a task", message)
                .with("task", id.task)
                .advise("look why workers end: their memory, their machines");
            self.end(Ending::Badly(error), actions);
            return;
        }
        self.ready.push_front(id.task as usize);
        self.sort_ready();
    }

    fn output_lost(&mut self, number: usize) {
        let Some(task) = self.tasks.get_mut(number).filter(|task| task.done) else {
            return; // it is being done, or will be
        };
        if self.ending.is_some() {
            return;
        }
        task.done = false;
        task.report = None;
        if number < self.first_task {
            self.lost.insert(number);
        }
        self.ready.push_front(number);
        self.sort_ready();
    }

    /// What was lost of earlier stages comes first: the others need it.
    fn sort_ready(&mut self) {
        let first = self.first_task;
        let ready = self.ready.make_contiguous();
        ready.sort_by_key(|number| *number >= first);
    }

    /// Begins the end: what runs is told to stop, nothing is begun any more.
    fn end(&mut self, ending: Ending, actions: &mut Vec<Action>) {
        if self.ending.is_none() {
            self.ending = Some(ending);
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
            self.sort_ready();
        }
    }

    fn launch(&mut self, actions: &mut Vec<Action>) {
        while self.running.len() < self.slots {
            let Some(&number) = self.ready.front() else {
                return;
            };
            if number >= self.first_task && !self.lost.is_empty() {
                return; // it would miss what is being made again
            }
            self.ready.pop_front();
            let task = &mut self.tasks[number];
            let id = AttemptId {
                task: number as u32,
                attempt: task.attempts,
            };
            task.attempts = task.attempts.saturating_add(1);
            self.running.insert(id);
            actions.push(Action::Launch {
                id,
                spec: task.spec.clone(),
            });
        }
    }

    fn complete_if_over(&mut self, actions: &mut Vec<Action>) {
        if self.running.is_empty()
            && let Some(ending) = self.ending.take()
        {
            self.complete = true;
            let outcome = match ending {
                Ending::Well => Ok(()),
                Ending::Badly(error) => Err(error),
            };
            actions.push(Action::Complete { outcome });
        }
    }
}

#[cfg(test)]
mod tests;

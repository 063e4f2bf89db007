//! How attempts end, and what follows: the task is done, tried again, or lost with what was made for it.
//!
//! ```text
//!   runs ──Finished──▶ done: its report counts, other attempts are told to stop, tasks that need it may start
//!    │ └──Failed─────▶ waits, and is tried again; after too many tries the job ends, or goes without it
//!    └────Lost───────▶ is tried again at once: no fault of the task
//!   done ──OutputLost─▶ is done again, and so is what it was made of if that was used up
//! ```
//!
//! Decision: docs/decisions/attempts.md.
//! Decision: docs/decisions/second-attempts.md.

use std::ops::RangeInclusive;

use super::{Action, Driver, Ending, release_space};
use gristmill_base::error::{Error, Kind};
use gristmill_tasks::task::{AttemptId, Side, TaskReport};

/// How often a task may be tried again, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Tries after the first.
    pub retries: u32,
    /// The same for tasks that reduce.
    pub reduce_retries: u32,
    /// Wait before the first retry; doubled for each further one, up to ten seconds.
    pub first_wait_ms: u64,
    /// Whether tasks that map may have a second attempt beside a slow one, and those that reduce: not where an attempt has effects
    /// beside its output.
    pub speculative: bool,
    /// The same of tasks that reduce.
    pub reduce_speculative: bool,
    /// How often the plan may begin again since a task that was done again gave something else.
    pub rounds: u32,
}

/// The longest wait before a retry: with many attempts the last ones come no later than needed.
const WAIT_MAX_MS: u64 = 10_000;

impl RetryPolicy {
    fn retries_of(&self, side: Option<Side>) -> u32 {
        match side {
            Some(Side::Reduce) => self.reduce_retries,
            _ => self.retries,
        }
    }

    fn speculates(&self, side: Option<Side>) -> bool {
        match side {
            Some(Side::Reduce) => self.reduce_speculative,
            _ => self.speculative,
        }
    }

    /// How long a task waits that has failed so often; at least once.
    fn wait_ms(&self, failures: u32) -> u64 {
        let doubled = 1_u64
            .checked_shl(failures.saturating_sub(1))
            .unwrap_or(u64::MAX);
        self.first_wait_ms.saturating_mul(doubled).min(WAIT_MAX_MS)
    }
}

impl Default for RetryPolicy {
    /// Four retries within three quarters of a second: a device's hiccup is over by then, its death is not.
    fn default() -> Self {
        RetryPolicy {
            retries: 4,
            reduce_retries: 4,
            speculative: true,
            reduce_speculative: true,
            first_wait_ms: 50,
            rounds: 0,
        }
    }
}

/// How often a task may be lost before the job gives up: workers that take it along each time are no accident.
const LOSSES_MAX: u32 = 100;

impl Driver {
    pub(super) fn finished(
        &mut self,
        id: AttemptId,
        report: TaskReport,
        actions: &mut Vec<Action>,
    ) {
        let counts = self.awaits(id);
        if self.running.remove(&id).is_some() && !counts {
            self.counts.killed += 1;
        }
        let task = self.tasks.get_mut(id.task as usize);
        let Some(task) = task.filter(|_| counts) else {
            // It came too late, or its worker was taken for dead; told twice, it is still the one that counts.
            let task = self.tasks.get(id.task as usize);
            if task.is_none_or(|task| task.winner != Some(id.attempt)) {
                release_space(report.discarded_outputs(), actions);
            }
            return;
        };
        task.winner = Some(id.attempt);
        if self.ending.is_none() {
            release_space(task.spec.consumed(&report), actions);
        }
        self.done(id.task, report, actions);
    }

    pub(super) fn failed(
        &mut self,
        at_ms: u64,
        id: AttemptId,
        error: Error,
        actions: &mut Vec<Action>,
    ) {
        let Some(stops) = self.running.remove(&id) else {
            return; // it is not ours
        };
        if error.kind() == Kind::Cancelled {
            self.counts.killed += 1;
        } else {
            self.counts.failed += 1;
        }
        if stops || self.ending.is_some() {
            return;
        }
        let task = &mut self.tasks[id.task as usize];
        task.failures += 1;
        let tries = task.failures;
        if self.runs(id.task) {
            return; // the other attempt may succeed: this one's disk may be full, and the other's not
        }
        let task = &self.tasks[id.task as usize];
        if !error.retryable() || tries > self.policy.retries_of(task.spec.side()) {
            let error = if tries > 1 {
                error.with("tries", tries)
            } else {
                error
            };
            self.given_up(id.task, error, actions);
        } else {
            let at_ms = at_ms + self.policy.wait_ms(tries);
            self.waiting.insert((at_ms, id.task));
            actions.push(Action::WakeAt { at_ms });
        }
    }

    /// A task failed for good: the job ends with it, unless the plan can do without.
    fn given_up(&mut self, number: u32, error: Error, actions: &mut Vec<Action>) {
        // What was made once and is to be made again was used already: nothing can stand for it.
        let made_before = number < self.first_open;
        let task = &self.tasks[number as usize];
        let without = (!made_before).then(|| self.plan.without(&task.spec, &error));
        match without.flatten() {
            Some(report) => {
                self.tasks[number as usize].winner = None;
                self.done(number, report, actions);
            }
            None => {
                self.counts
                    .failed_tasks
                    .count(&self.tasks[number as usize].spec);
                self.end(Ending::Badly(error), actions);
            }
        }
    }

    /// The task has its report: nothing more of it runs, and tasks that waited for it may start.
    fn done(&mut self, number: u32, report: TaskReport, actions: &mut Vec<Action>) {
        self.undone.remove(&number);
        self.ready.remove(&number);
        if self.ending.is_some() {
            return;
        }
        for (id, stops) in self.running.range_mut(attempts_of(number)) {
            if !std::mem::replace(stops, true) {
                actions.push(Action::Abort { id: *id });
            }
        }
        self.ready
            .extend(self.blocked.remove(&number).unwrap_or_default());
        if number >= self.first_open {
            self.tasks[number as usize].report = Some(report);
            self.next_stage_if_over(actions);
        } // else its report was used when it was done for the first time
    }

    pub(super) fn lost(&mut self, id: AttemptId, actions: &mut Vec<Action>) {
        let stops = self.running.remove(&id);
        self.counts.killed += u64::from(stops.is_some());
        if stops != Some(false) || self.ending.is_some() {
            return;
        }
        let task = &mut self.tasks[id.task as usize];
        task.losses += 1;
        if task.losses > LOSSES_MAX {
            let message = format!("the workers of {LOSSES_MAX} attempts at a task were lost");
            let error = Error::new(Kind::Io, "run a task", message)
                .with("task", id.task)
                .advise("check why workers end: their memory, their machines");
            self.end(Ending::Badly(error), actions);
        } else if !self.runs(id.task) {
            self.ready.insert(id.task);
        }
    }

    /// What a task made is gone. If it had used up what it was made of, those tasks are done again, too.
    pub(super) fn output_lost(&mut self, number: u32) {
        let mut lost = vec![number];
        while let Some(number) = lost.pop() {
            if self.ending.is_some() || !self.is_done(number) {
                continue; // it is being done, or will be
            }
            self.undone.insert(number);
            self.ready.insert(number);
            let task = &mut self.tasks[number as usize];
            if number >= self.first_open {
                task.report = None;
            }
            if task.spec.uses_up() {
                let needs = self.stages[self.stage_of(number)].needs_of(number);
                lost.extend(needs.iter().cloned().flatten());
            }
        }
    }

    /// A second attempt begins beside a slow one, if it can do so at once: each writes files of its own, neither has effects beside
    /// its output, and nothing else waits for the slot.
    pub(super) fn straggles(&mut self, number: u32) {
        let has_room = self.ready.is_empty() && self.running.len() < self.slots;
        if self.ending.is_some() || self.is_done(number) || !has_room {
            return;
        }
        let spec = &self.tasks[number as usize].spec;
        let may = spec.writes_apart() && self.policy.speculates(spec.side());
        if may
            && self.attempts_at(number) == 1
            && self.second_attempts() < self.second_attempts_max()
        {
            self.ready.insert(number);
            self.counts.speculative += 1;
        }
    }

    /// How many attempts run that are not the only one at their task.
    fn second_attempts(&self) -> usize {
        let going_on = self.running.iter().filter(|(_, stops)| !**stops);
        let tasks = going_on.map(|(id, _)| id.task).collect::<Vec<_>>();
        tasks.windows(2).filter(|pair| pair[0] == pair[1]).count()
    }

    /// How many may run at once: ten, or one for each hundred tasks, or one for each ten that run, as Hadoop has it.
    fn second_attempts_max(&self) -> usize {
        (self.tasks.len() / 100)
            .max(self.running.len() / 10)
            .max(10)
    }

    /// Whether an attempt at a task runs, and was not told to stop.
    pub(super) fn runs(&self, task: u32) -> bool {
        self.attempts_at(task) > 0
    }

    /// How many attempts at a task run, and were not told to stop.
    fn attempts_at(&self, task: u32) -> usize {
        let attempts = self.running.range(attempts_of(task));
        attempts.filter(|(_, stops)| !**stops).count()
    }
}

/// All that attempts at a task may be called.
fn attempts_of(task: u32) -> RangeInclusive<AttemptId> {
    let id = |attempt| AttemptId { task, attempt };
    id(0)..=id(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_bound() {
        let policy = RetryPolicy::default();
        let waits: Vec<u64> = [1, 2, 3, 8, 9, 64, 65, 1000, u32::MAX]
            .map(|n| policy.wait_ms(n))
            .into();
        assert_eq!(
            waits,
            [
                50,
                100,
                200,
                6400,
                WAIT_MAX_MS,
                WAIT_MAX_MS,
                WAIT_MAX_MS,
                WAIT_MAX_MS,
                WAIT_MAX_MS
            ]
        );
    }
}

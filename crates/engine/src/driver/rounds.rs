//! Tasks that give something else when they are done again, as user code may: the plan begins again.
//!
//! ```text
//!   map     0  1  2      2 is lost, and done again: other bytes than those that 3 and 4 have read
//!   reduce  3  4         0, 1 and the new 2 stay; the plan makes 3 and 4 of them anew
//! ```
//!
//! The rule that must hold: nothing is made of two versions of one task. So a task stays only if its output is there and
//! untouched, and all that it needs is as it was, which goes for the new output of the one that differs, too; and it must be
//! the same task when the plan asks for it again. Numbers of attempts go on over all rounds, so that no file and no run has
//! the name of one of an earlier round.
//!
//! Decision: docs/decisions/repeated-map.md.

use std::collections::BTreeSet;
use std::ops::Range;

use super::{Action, Driver, Ending, TaskState};
use gristmill_base::error::{Error, Kind};
use gristmill_tasks::task::{AttemptId, TaskReport, TaskSpec};

/// Which tasks are as they were, by how many of those before each one are.
struct Unchanged(Vec<u32>);

impl Unchanged {
    fn has_all(&self, tasks: &Range<u32>) -> bool {
        // Tasks that there are no more are none of them.
        let before = |task: u32| self.0.get(task as usize).or(self.0.last());
        let before = |task: u32| before(task).copied().unwrap_or_default();
        before(tasks.end) - before(tasks.start) == tasks.end - tasks.start
    }

    fn has(&self, task: u32) -> bool {
        self.has_all(&(task..task + 1))
    }
}

impl Driver {
    /// How often the plan has begun again, as a task that was done again gave something else.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    pub(super) fn may_begin_again(&self) -> bool {
        self.rounds < self.policy.rounds
    }

    /// A task that was done again has given something else: what has read the first output is not to be used.
    pub(super) fn differs(&mut self, id: AttemptId, report: TaskReport, actions: &mut Vec<Action>) {
        if !self.awaits(id) || self.ending.is_some() || !self.was_read(id.task) {
            return self.finished(id, report, actions);
        }
        self.running.remove(&id);
        if self.may_begin_again() && self.plan.restart() {
            self.rounds += 1;
            self.begin_again(id, report, actions);
        } else {
            self.undone.remove(&id.task); // the history has this attempt's success: no other one's counts
            let error = other_output(id.task, self.rounds);
            self.end(Ending::Badly(error), actions);
        }
    }

    /// Whether the plan, or another task, may have read what a task made.
    fn was_read(&self, number: u32) -> bool {
        let stages = self.stages.get(self.stage_of(number)..).unwrap_or_default();
        let readers = stages.iter().filter(|stage| stage.may_need(number));
        let mut readers = readers.flat_map(|stage| stage.numbers());
        number < self.first_open
            || readers.any(|task| {
                let is_needed = self
                    .needs_of(task)
                    .iter()
                    .any(|range| range.contains(&number));
                is_needed && (self.is_done(task) || self.runs(task))
            })
    }

    fn needs_of(&self, task: u32) -> &[Range<u32>] {
        self.stages[self.stage_of(task)].needs_of(task)
    }

    /// Begins the plan again, with what an attempt at one task gave now.
    fn begin_again(&mut self, id: AttemptId, report: TaskReport, actions: &mut Vec<Action>) {
        let unchanged = self.unchanged(id.task);
        let may_go_on = |(id, stops): (&AttemptId, &bool)| {
            let mut needs = self.needs_of(id.task).iter();
            (!stops && needs.all(|range| unchanged.has_all(range))).then_some(*id)
        };
        let going_on = self.running.iter().filter_map(may_go_on).collect();
        let mut needs = self.needs_of(id.task).iter();
        let uses_up = self.tasks[id.task as usize].spec.uses_up();
        let counts = !uses_up && needs.all(|range| unchanged.has_all(range));
        let mut before = std::mem::take(&mut self.tasks);
        self.told_tasks = 0;
        self.preferred.clear();
        let later = std::mem::take(&mut self.before).into_iter();
        before.extend(later.skip(before.len())); // their attempts have numbers, too
        let mut forgotten = Vec::new();
        for (number, task) in (0..).zip(&mut before) {
            if number == id.task && counts {
                task.winner = Some(id.attempt);
                task.report = None;
            } else if !unchanged.has(number) {
                task.report = None;
                forgotten.extend(task.winner.take().map(|_| number));
            }
        }
        if let Some(task) = before.get_mut(id.task as usize).filter(|_| counts) {
            task.report = Some(report);
        }
        self.before = before;
        self.stages.clear();
        self.told_stages = 0;
        self.undone.clear();
        self.ready.clear();
        self.blocked.clear();
        self.waiting.clear();
        self.next_stage(Vec::new(), actions);
        // What the plan does not ask for at once is done again: meanwhile it could be lost, or what it was made of change.
        for (number, task) in (0..).zip(&mut self.before).skip(self.tasks.len()) {
            task.report = None;
            forgotten.extend(task.winner.take().map(|_| number));
        }
        actions.push(Action::Forget { tasks: forgotten });
        self.stop_others(&going_on, actions);
    }

    /// The tasks that stay as they were when another one has changed: they are done, their output is there, none has used
    /// it up, they have used up nothing, and they need only such tasks.
    fn unchanged(&self, changed: u32) -> Unchanged {
        let mut used_up = vec![false; self.tasks.len()];
        for (number, task) in (0..).zip(&self.tasks) {
            if task.winner.is_some() && task.spec.uses_up() {
                let needs = self.needs_of(number).iter().cloned().flatten();
                needs
                    .chain([number])
                    .for_each(|task| used_up[task as usize] = true);
            }
        }
        let mut unchanged = Unchanged(vec![0]);
        let mut count = 0;
        for (number, (task, used_up)) in (0..).zip(self.tasks.iter().zip(used_up)) {
            let is_there = task.winner.is_some() && task.report.is_some() && self.is_done(number);
            let mut needs = self.needs_of(number).iter();
            let stays = number != changed && is_there && !used_up;
            let stays = stays && needs.all(|range| unchanged.has_all(range));
            count += u32::from(stays);
            unchanged.0.push(count);
        }
        unchanged
    }

    /// Stops what runs, but for those attempts that may go on where their tasks are the same now.
    fn stop_others(&mut self, going_on: &BTreeSet<AttemptId>, actions: &mut Vec<Action>) {
        for (id, stops) in self.running.iter_mut().filter(|(_, stops)| !**stops) {
            let [now, then] = [&self.tasks, &self.before].map(|tasks| tasks.get(id.task as usize));
            let is_same = now
                .zip(then)
                .is_some_and(|(now, then)| now.spec == then.spec);
            let goes_on = is_same && going_on.contains(id) && self.undone.contains(&id.task);
            if goes_on {
                self.ready.remove(&id.task);
            } else if self.ending.is_none() {
                *stops = true;
                actions.push(Action::Abort { id: *id });
            }
        }
    }

    /// A task that the round before had, too: with its report where it is the same, and stays.
    pub(super) fn again(&mut self, number: u32, spec: TaskSpec) -> TaskState {
        let before = &mut self.before[number as usize];
        let report = before.report.take().filter(|_| *before.spec == spec);
        TaskState {
            winner: before.winner.filter(|_| report.is_some()),
            failures: before.failures,
            losses: before.losses,
            report,
            ..TaskState::new(spec, before.attempts)
        }
    }
}

/// The error of a task that gives something else when it is done again, where the job cannot begin again, or did so too often.
fn other_output(task: u32, rounds: u32) -> Error {
    let message = match rounds {
        0 => "a task was repeated because its output was lost, and it gave a different output"
            .to_owned(),
        rounds => format!(
            "a task was repeated because its output was lost, and it gave a different output; the tasks that had read the \
             first one have been repeated {rounds} times already"
        ),
    };
    Error::new(Kind::Proof, "repeat a task", message)
        .with("task", task)
        .advise(
            "let the functions of the job depend on their input alone (no random numbers, no clock), or run the job on \
             one machine",
        )
        .final_error()
}

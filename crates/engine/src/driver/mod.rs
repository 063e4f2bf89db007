//! The driver: a deterministic state machine that brings a job's stages to their end.
//!
//! No clock, no I/O, no threads: events come in with their time, actions go out, and the same events give the same
//! actions. Retries, cancellation, second attempts and lost outputs live here and nowhere else. The runner does what
//! the actions say.
//!
//! ```text
//!              events                                   actions
//!   Started ─────────▶ ┌───────────────────────┐ ─────▶ BeginStage
//!   Finished, Failed ─▶│ plan ▸ stages ▸       │ ─────▶ Launch, Abort
//!   Lost, OutputLost ─▶│ tasks ▸ attempts      │ ─────▶ ReleaseSpace, Forget
//!   Differs, Slots ───▶│                       │ ─────▶ WakeAt
//!   Ahead, Straggles ─▶│                       │
//!   Woken, Cancel ────▶└───────────────────────┘ ─────▶ Complete
//! ```
//!
//! A task starts when all tasks that it needs are done ([`Needs`]). Its attempts may run side by side: the first to
//! succeed counts, the others are told to stop, and what they report later is discarded (`attempts.rs`).
//!
//! What a task made may be lost after the task is done, with the worker that kept it: then the task is done again, and
//! tasks that need it wait. If the task had used up what it was made of, those tasks are done again, too. If it then
//! gives something else than others have read, the plan begins again with what can stay of it (`rounds.rs`).
//!
//! A driver may resume a job that another process began: it is told what that job's history proves done ([`Replay`]),
//! brings its own plan to where that one was, and launches none of these tasks again.
//!
//! The rules that must hold: a plan gets the report of exactly one attempt for each of its tasks; no task starts
//! before what it needs is there; nothing is given back before the report of the task that used it up is in the
//! history; nothing of the job runs when it is complete.
//!
//! Decision: docs/decisions/pure-driver.md.

mod attempts;
mod counts;
mod messages;
mod plan;
mod replay;
mod rounds;
mod staged;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

pub use attempts::RetryPolicy;
pub use counts::{AttemptCounts, LaunchCounts};
pub use messages::{Action, DriverEvent};
pub use plan::{Needs, Plan, Stage};
pub use replay::Replay;
pub use staged::{Next, Reports, StagedPlan, TypedStage, stage};

use plan::Begun;

use gristmill_base::error::Error;
use gristmill_tasks::spill::SpilledRun;
use gristmill_tasks::task::{AttemptId, ReleasedSpace, TaskReport, TaskSpec};

#[derive(Debug)]
struct TaskState {
    spec: Arc<TaskSpec>,
    attempts: u32,
    failures: u32,
    losses: u32,
    /// The last attempt that counted.
    winner: Option<u32>,
    /// What the plan has not taken yet; where it may begin again, also what it has taken.
    report: Option<TaskReport>,
}

impl TaskState {
    fn new(spec: TaskSpec, attempts: u32) -> Self {
        TaskState {
            spec: Arc::new(spec),
            attempts,
            failures: 0,
            losses: 0,
            winner: None,
            report: None,
        }
    }
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
    /// How many attempts more than slots may run, until the next stage begins.
    ahead: usize,
    stages: Vec<Begun>,
    /// How many of them the runner was told of.
    told_stages: usize,
    /// The tasks of all stages so far.
    tasks: Vec<TaskState>,
    /// The first task whose report the plan has not taken.
    first_open: u32,
    /// Tasks that are not done, or whose outputs are gone.
    undone: BTreeSet<u32>,
    /// Tasks to launch when there is room; those of earlier stages first, since others wait for them.
    ready: BTreeSet<u32>,
    /// Tasks that are launched before others, if they are ready.
    preferred: VecDeque<u32>,
    /// Whether the runner is told of a stage one turn before its first tasks are launched; and whether that was this turn.
    hears_first: bool,
    has_told: bool,
    /// How many of the tasks the runner was told of.
    told_tasks: usize,
    /// Tasks that wait for another, by that one.
    blocked: BTreeMap<u32, BTreeSet<u32>>,
    /// Tasks that wait for another try, by the time of it.
    waiting: BTreeSet<(u64, u32)>,
    /// What runs, and whether it was told to stop since another attempt was first.
    running: BTreeMap<AttemptId, bool>,
    /// How the job is ending, once it is.
    ending: Option<Ending>,
    complete: bool,
    counts: AttemptCounts,
    /// What another process did of this job.
    replay: Replay,
    kept_tasks: u64,
    /// Runs of kept tasks, of which the runner has not been told.
    kept_runs: Vec<(u32, Vec<SpilledRun>)>,
    /// How often the plan has begun again.
    rounds: u32,
    /// The tasks of the round before, while the plan begins again; those that stay have their reports.
    before: Vec<TaskState>,
}

impl Driver {
    /// A driver for `plan`.
    pub fn new(plan: Box<dyn Plan>, policy: RetryPolicy) -> Self {
        Driver {
            plan,
            policy,
            slots: 0,
            ahead: 0,
            stages: Vec::new(),
            told_stages: 0,
            tasks: Vec::new(),
            first_open: 0,
            undone: BTreeSet::new(),
            ready: BTreeSet::new(),
            preferred: VecDeque::new(),
            hears_first: false,
            has_told: false,
            told_tasks: 0,
            blocked: BTreeMap::new(),
            waiting: BTreeSet::new(),
            running: BTreeMap::new(),
            ending: None,
            complete: false,
            counts: AttemptCounts::default(),
            replay: Replay::default(),
            kept_tasks: 0,
            kept_runs: Vec::new(),
            rounds: 0,
            before: Vec::new(),
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

    /// The runs of those that have been begun with since this was last asked: where they are, without what lies in their buckets.
    pub fn take_kept_runs(&mut self) -> Vec<(u32, Vec<SpilledRun>)> {
        std::mem::take(&mut self.kept_runs)
    }

    /// The tasks that there are since this was last asked, those that are not done: for who looks where their input is.
    pub fn take_added(&mut self) -> Vec<(u32, Arc<TaskSpec>)> {
        let told = self.told_tasks.min(self.tasks.len());
        self.told_tasks = self.tasks.len();
        let added = self.tasks.iter().enumerate().skip(told);
        let added = added.map(|(number, task)| (number as u32, &task.spec));
        let undone = added.filter(|(number, _)| self.undone.contains(number));
        undone
            .map(|(number, spec)| (number, Arc::clone(spec)))
            .collect()
    }

    /// Has these tasks launched before others, as far as they are ready then: who runs them has room where their input is.
    pub fn prefer(&mut self, tasks: Vec<u32>) {
        self.preferred.extend(tasks);
    }

    /// From now on the runner is told of a stage, and no task is launched in that turn: it may prefer some, and wakes the
    /// driver at once.
    pub fn tell_first(&mut self) {
        self.hears_first = true;
    }

    /// What became of the attempts so far.
    pub fn counts(&self) -> AttemptCounts {
        self.counts
    }

    /// Whether a report of this attempt would be the one that counts for its task. A runner that asks before it tells
    /// of the attempt's end records one success of each task, and no other.
    pub fn awaits(&self, id: AttemptId) -> bool {
        self.running.get(&id) == Some(&false) && !self.is_done(id.task)
    }

    /// Takes one event that happened at `at_ms`; returns what to do, in order.
    pub fn handle(&mut self, at_ms: u64, event: DriverEvent) -> Vec<Action> {
        let mut actions = Vec::new();
        if self.complete {
            return actions;
        }
        match event {
            DriverEvent::Started { slots } => {
                self.slots = slots.max(1);
                self.next_stage(Vec::new(), &mut actions);
            }
            DriverEvent::Finished { id, report } => self.finished(id, report, &mut actions),
            DriverEvent::Failed { id, error } => self.failed(at_ms, id, error, &mut actions),
            DriverEvent::Lost { id } => self.lost(id, &mut actions),
            DriverEvent::Differs { id, report } => self.differs(id, report, &mut actions),
            DriverEvent::OutputLost { task } => self.output_lost(task),
            DriverEvent::Straggles { task } => self.straggles(task),
            DriverEvent::Slots { slots } => self.slots = slots.max(1),
            DriverEvent::Ahead { attempts } => self.ahead = attempts,
            DriverEvent::Woken => {}
            DriverEvent::Cancel => self.end(Ending::Badly(Error::cancelled()), &mut actions),
        }
        self.wake(at_ms);
        self.launch(&mut actions);
        self.has_told = false;
        self.complete_if_over(&mut actions);
        actions
    }

    /// Asks the plan how to go on.
    fn next_stage(&mut self, reports: Vec<TaskReport>, actions: &mut Vec<Action>) {
        self.first_open = self.tasks.len() as u32;
        self.tell_stages(self.stages.len(), actions);
        match self.plan.next_stage(reports) {
            Ok(Some(stage)) => self.begin(stage, actions),
            Ok(None) => self.end(Ending::Well, actions),
            Err(error) => self.end(Ending::Badly(error), actions),
        }
    }

    /// Begins a stage, and those that begin with it.
    fn begin(&mut self, stage: Stage, actions: &mut Vec<Action>) {
        let first_stage = self.stages.len();
        let mut spent = Vec::new();
        let mut next = Some(Box::new(stage));
        while let Some(mut stage) = next {
            let begun = Begun::new(&mut stage, self.tasks.len() as u32);
            match begun {
                Ok(begun) => self.stages.push(begun),
                Err(error) => return self.end(Ending::Badly(error), actions),
            }
            for spec in stage.tasks {
                spent.extend(self.add_task(spec));
            }
            next = stage.then;
        }
        self.tell_stages(first_stage + 1, actions);
        release_space(spent, actions);
        self.next_stage_if_over(actions);
    }

    /// A task of the stage that begins: over already, if that is known. Returns what it used up then.
    fn add_task(&mut self, spec: TaskSpec) -> Vec<ReleasedSpace> {
        let number = self.tasks.len() as u32;
        let mut spent = Vec::new();
        let task = if (number as usize) < self.before.len() {
            self.again(number, spec)
        } else {
            let report = self.replay.take(number, &spec);
            spent.extend(report.iter().flat_map(|report| spec.consumed(report)));
            let attempts = self.replay.first_attempt(number);
            TaskState {
                report,
                ..TaskState::new(spec, attempts)
            }
        };
        if task.report.is_none() {
            self.undone.insert(number);
            self.ready.insert(number);
        } else if let Some(stage) = self.stages.last_mut() {
            stage.kept += 1;
            self.kept_tasks += u64::from(self.rounds == 0);
        }
        let made = task.report.as_ref().map_or(&[][..], TaskReport::runs);
        if !made.is_empty() && self.rounds == 0 {
            let runs = made.iter().map(SpilledRun::without_buckets).collect();
            self.kept_runs.push((number, runs));
        }
        self.tasks.push(task);
        spent
    }

    fn next_stage_if_over(&mut self, actions: &mut Vec<Action>) {
        if self.undone.range(self.first_open..).next().is_none() {
            let keeps = self.may_begin_again();
            let open = &mut self.tasks[self.first_open as usize..];
            let reports = open.iter_mut().filter_map(|task| {
                let report = task.report.take();
                if keeps {
                    task.report.clone_from(&report);
                    task.report.iter_mut().for_each(TaskReport::forget_printed);
                }
                report
            });
            let reports = reports.collect();
            self.next_stage(reports, actions);
        }
    }

    /// Tells the runner of the first `count` stages, as far as it does not know of them.
    fn tell_stages(&mut self, count: usize, actions: &mut Vec<Action>) {
        for stage in self.stages.iter().take(count).skip(self.told_stages) {
            actions.push(Action::BeginStage {
                name: stage.name,
                bytes: stage.bytes,
                tasks: stage.tasks,
                kept: stage.kept,
            });
            self.ahead = 0;
            self.has_told = true;
        }
        self.told_stages = self.told_stages.max(count);
    }

    fn is_done(&self, task: u32) -> bool {
        (task as usize) < self.tasks.len() && !self.undone.contains(&task)
    }

    /// The number of a task's stage.
    fn stage_of(&self, task: u32) -> usize {
        let after = self.stages.partition_point(|stage| stage.is_before(task));
        after.saturating_sub(1)
    }

    /// A task that `task` needs, and that is not done. The last one: it is likely to be done last, so that the task
    /// is looked at a few times and not each time that one of a thousand is done.
    fn missing(&self, task: u32) -> Option<u32> {
        let needs = self.stages[self.stage_of(task)].needs_of(task).iter();
        let mut missing = needs.map(|range| self.undone.range(range.clone()).next_back());
        missing.find_map(|task| task.copied())
    }

    fn wake(&mut self, at_ms: u64) {
        while let Some(&(due_ms, task)) = self.waiting.first()
            && due_ms <= at_ms
        {
            self.waiting.pop_first();
            if !self.is_done(task) && !self.runs(task) {
                self.ready.insert(task);
            }
        }
    }

    fn launch(&mut self, actions: &mut Vec<Action>) {
        while self.running.len() < self.slots + self.ahead && !self.holds_back() {
            let Some(number) = self.next_ready() else {
                return;
            };
            if self.is_done(number) {
                continue; // a second attempt was asked for, and had to wait
            }
            if let Some(missing) = self.missing(number) {
                self.blocked.entry(missing).or_default().insert(number);
                continue;
            }
            let stage = self.stage_of(number);
            if stage + 1 != self.told_stages && self.running.len() >= self.slots {
                // Only tasks of the stage that began last are known to be short: of others none waits at an agent.
                self.ready.insert(number);
                return;
            }
            self.tell_stages(stage + 1, actions);
            if self.holds_back() {
                self.ready.insert(number);
                return;
            }
            let task = &mut self.tasks[number as usize];
            let id = AttemptId {
                task: number,
                attempt: task.attempts,
            };
            task.attempts = task.attempts.saturating_add(1);
            self.running.insert(id, false);
            self.counts.launched.count(&task.spec);
            actions.push(Action::Launch {
                id,
                spec: task.spec.clone(),
            });
        }
    }

    /// Whether nothing is launched in this turn.
    fn holds_back(&self) -> bool {
        self.hears_first && self.has_told
    }

    fn next_ready(&mut self) -> Option<u32> {
        while let Some(task) = self.preferred.pop_front() {
            if self.ready.remove(&task) {
                return Some(task);
            }
        }
        self.ready.pop_first()
    }

    /// Begins the end: what runs is told to stop, nothing is begun any more.
    fn end(&mut self, ending: Ending, actions: &mut Vec<Action>) {
        if self.ending.is_none() {
            self.ending = Some(ending);
            self.ready.clear();
            self.blocked.clear();
            self.waiting.clear();
            let going_on = self.running.iter().filter(|(_, stops)| !**stops);
            actions.extend(going_on.map(|(id, _)| Action::Abort { id: *id }));
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

fn release_space(spent: Vec<ReleasedSpace>, actions: &mut Vec<Action>) {
    if !spent.is_empty() {
        actions.push(Action::ReleaseSpace { spent });
    }
}

#[cfg(test)]
mod tests;

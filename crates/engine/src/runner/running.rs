//! The loop between the driver and the place where attempts run: what all runners share.
//!
//! ```text
//!   driver ──Launch, Abort, ReleaseSpace──▶ ExecutionBackend
//!      ▲                                         │
//!      └── events ◀── record_end ◀── BackendEvent┘
//! ```
//!
//! The rules that must hold: that an attempt begins is in the history before it does anything; an attempt's end is in the
//! history before the driver hears of it, and of the attempts at a task one succeeds there; it is there for good before
//! anything is given back.
//!
//! Decision: docs/decisions/space-given-back.md.
//! Decision: docs/decisions/runners.md.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::attempts::{AttemptOutcome, record_begin, record_end};
use super::{RunnerHooks, StageProgress};
use crate::driver::{Action, Driver, DriverEvent};
use crate::history::event;
use gristmill_base::error::Result;
use gristmill_tasks::spill::SpilledRun;
use gristmill_tasks::task::{AttemptId, ReleasedSpace, TaskContext, TaskSpec};

/// How often the loop looks at the cancel flag and at memory when nothing happens.
const TICK: Duration = Duration::from_millis(20);

/// Looks at memory are so far apart at least: one costs more than the end of a short attempt.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Where the attempts of a job run.
pub(super) trait ExecutionBackend {
    /// How many run at once.
    fn slots(&self) -> usize;

    /// Knows the runs of a task that was over when the driver began.
    fn kept(&mut self, _task: u32, _runs: &[SpilledRun]) {}

    /// Knows tasks that will be launched.
    fn planned(&mut self, _tasks: Vec<(u32, Arc<TaskSpec>)>) {}

    /// Tasks that are best launched now, since there is room where their input is.
    fn wishes(&mut self) -> Vec<u32> {
        Vec::new()
    }

    /// How many nodes they run on; 0 on one machine.
    fn nodes(&self) -> usize {
        0
    }

    /// Begins an attempt, at once or when there is room. `begins` is told first on which node; on one machine, of no name.
    fn launch(
        &mut self,
        id: AttemptId,
        spec: Arc<TaskSpec>,
        begins: &mut dyn FnMut(&TaskSpec, &str),
    ) -> Result<()>;

    /// Tells an attempt to stop, which ends all the same.
    fn abort(&mut self, id: AttemptId);

    /// Gives space back, when what was recorded is in the history for good.
    fn release_space(&mut self, spent: Vec<ReleasedSpace>) -> Result<()>;

    /// A stage begins: nobody knows how long its tasks take.
    fn begins_stage(&mut self) {}

    /// What these tasks made is of no use any more, and their numbers may be those of others.
    fn forget(&mut self, _tasks: Vec<u32>) -> Result<()> {
        Ok(())
    }

    /// Waits for what happens next, but not longer than this.
    fn next(&mut self, longest: Duration) -> Option<BackendEvent>;
}

/// What happens in a place.
#[derive(Debug)]
pub(super) enum BackendEvent {
    /// An attempt is over.
    Over(Box<FinishedAttempt>),
    /// What a task that is over had made is gone.
    OutputLost { task: u32 },
    /// A task takes longer than another attempt at it would.
    Straggles { task: u32 },
    /// There is room for so many attempts at once from now on.
    Slots { slots: usize },
    /// So many attempts more may wait beside those that run, until the next stage begins.
    Ahead { attempts: usize },
}

/// An attempt that is over, with the bytes that it noted as done.
#[derive(Debug)]
pub(super) struct FinishedAttempt {
    pub(super) id: AttemptId,
    pub(super) spec: Arc<TaskSpec>,
    pub(super) ended: AttemptOutcome,
    pub(super) bytes: u64,
}

/// Runs the driver's job to its end in this place.
pub(super) fn run_in(
    place: &mut dyn ExecutionBackend,
    driver: &mut Driver,
    context: &TaskContext,
    hooks: RunnerHooks<'_, '_>,
) -> Result<()> {
    let slots = place.slots();
    let mut job = Running {
        driver,
        context,
        place,
        hooks,
        slots,
        running: BTreeSet::new(),
        failures: BTreeMap::new(),
    };
    job.run()
}

/// A job that runs.
struct Running<'a, 'c> {
    driver: &'a mut Driver,
    context: &'a TaskContext,
    place: &'a mut dyn ExecutionBackend,
    hooks: RunnerHooks<'a, 'c>,
    slots: usize,
    /// What runs, or waits for a slot.
    running: BTreeSet<AttemptId>,
    /// What is equal if a task fails again as it did the last time.
    failures: BTreeMap<u32, String>,
}

impl Running<'_, '_> {
    fn run(&mut self) -> Result<()> {
        let began = Instant::now();
        let now_ms = || began.elapsed().as_millis() as u64;
        let slots = self.slots;
        if self.place.nodes() > 0 {
            self.driver.tell_first();
        }
        let mut actions = self.driver.handle(now_ms(), DriverEvent::Started { slots });
        let mut cancelled = false;
        let mut looked: Option<Instant> = None;
        loop {
            let mut wake_ms = None;
            let begins = |action: &Action| matches!(action, Action::BeginStage { .. });
            let begins = actions.iter().any(begins);
            for action in actions {
                match action {
                    Action::WakeAt { at_ms } => wake_ms = Some(at_ms),
                    Action::Complete { outcome } => return outcome,
                    action => self.act(action)?,
                }
            }
            let wake_in_ms = wake_ms.map(|at_ms| at_ms.saturating_sub(now_ms()));
            // Of a stage that begins, the place may prefer tasks before the first is launched.
            let event = (!begins).then(|| self.wait(wake_in_ms)).flatten();
            self.driver.prefer(self.place.wishes());
            if looked.is_none_or(|looked| looked.elapsed() >= LOOK_EVERY) {
                self.hooks.memory.look();
                looked = Some(Instant::now());
            }
            let event = if self.hooks.control.is_cancelled() && !cancelled {
                cancelled = true;
                actions = self.driver.handle(now_ms(), DriverEvent::Cancel);
                if let Some(event) = event {
                    actions.extend(self.driver.handle(now_ms(), event));
                }
                continue;
            } else {
                event.unwrap_or(DriverEvent::Woken)
            };
            actions = self.driver.handle(now_ms(), event);
        }
    }

    /// The next event, or none after a tick.
    fn wait(&mut self, wake_in_ms: Option<u64>) -> Option<DriverEvent> {
        let wait = wake_in_ms.map_or(TICK, |ms| TICK.min(Duration::from_millis(ms)));
        let happened = self.place.next(wait);
        let event = happened.map(|happened| match happened {
            BackendEvent::Over(over) => self.over(*over),
            BackendEvent::OutputLost { task } => DriverEvent::OutputLost { task },
            BackendEvent::Straggles { task } => DriverEvent::Straggles { task },
            BackendEvent::Slots { slots } => {
                self.slots = slots;
                DriverEvent::Slots { slots }
            }
            BackendEvent::Ahead { attempts } => DriverEvent::Ahead { attempts },
        });
        let mut progress = self.hooks.control.progress();
        progress.done_bytes = self.context.done_bytes.load(Ordering::Relaxed);
        (progress.nodes, progress.running) = (self.place.nodes(), self.in_slots());
        self.hooks.control.set_progress(progress);
        event
    }

    /// How many attempts run, and do not wait.
    fn in_slots(&self) -> usize {
        self.running.len().min(self.slots)
    }

    /// Records how an attempt ended.
    fn over(&mut self, mut over: FinishedAttempt) -> DriverEvent {
        self.judge(&mut over);
        self.running.remove(&over.id);
        self.hooks.clock.running(self.in_slots());
        let told = (over.bytes, self.driver.awaits(over.id));
        record_end(
            self.hooks.recorder,
            (over.id, &over.spec),
            &over.ended,
            told,
        );
        over.ended.event(over.id)
    }

    /// A task that fails twice in the same way at the same record is not tried again, wherever its attempts ran.
    fn judge(&mut self, over: &mut FinishedAttempt) {
        if let AttemptOutcome::Failed(error) = &mut over.ended
            && let Some(fingerprint) = error.take_fingerprint()
        {
            let before = self.failures.insert(over.id.task, fingerprint.clone());
            if before == Some(fingerprint) {
                *error = error.clone().final_error();
            }
        }
    }

    fn act(&mut self, action: Action) -> Result<()> {
        match action {
            Action::BeginStage {
                name,
                bytes,
                tasks,
                kept,
            } => self.begin_stage((name, bytes), tasks, kept),
            Action::Launch { id, spec } => return self.launch(id, spec),
            Action::ReleaseSpace { spent } => return self.place.release_space(spent),
            Action::Forget { tasks } => {
                self.failures.clear();
                return self.place.forget(tasks);
            }
            Action::Abort { id } => {
                if self.running.contains(&id) {
                    self.place.abort(id);
                }
            }
            Action::WakeAt { .. } | Action::Complete { .. } => {}
        }
        Ok(())
    }

    fn begin_stage(&mut self, (name, bytes): (&'static str, u64), tasks: usize, kept: usize) {
        for (task, runs) in self.driver.take_kept_runs() {
            self.place.kept(task, &runs);
        }
        if self.place.nodes() > 0 {
            self.place.planned(self.driver.take_added());
        }
        self.place.begins_stage();
        self.hooks.clock.begin(name, tasks, self.place.slots());
        self.hooks.recorder.record(event::Event::PhaseStarted {
            name: name.to_owned(),
            tasks: tasks as u64,
            bytes,
            kept: kept as u64,
        });
        // About: nobody knows how many bytes those that are kept noted.
        let done_bytes = bytes / tasks.max(1) as u64 * kept as u64;
        self.context.done_bytes.store(done_bytes, Ordering::Relaxed);
        let index = self.hooks.control.progress().index + 1;
        self.hooks.control.set_progress(StageProgress {
            name,
            index,
            done_bytes,
            bytes,
            ..StageProgress::default()
        });
    }

    fn launch(&mut self, id: AttemptId, spec: Arc<TaskSpec>) -> Result<()> {
        let phase = self.hooks.control.progress().name;
        self.running.insert(id);
        self.hooks.clock.running(self.in_slots());
        if spec.runs_user_code() {
            self.hooks.clock.runs_user_code();
        }
        let (recorder, context) = (self.hooks.recorder, self.context);
        self.place.launch(id, spec, &mut |spec, node| {
            record_begin(recorder, (id, spec), (phase, node), context);
        })
    }
}

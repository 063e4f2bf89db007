//! The threads runner: a job's tasks on threads of this process.
//!
//! ```text
//!   caller's thread: driver ──Launch──▶ queue ──▶ worker threads, each with its scratch
//!          ▲                                            │
//!          └───────────────── events ◀──────────────────┘
//! ```
//!
//! Threads cannot be killed, so only native tasks run here; they look at their stop flag as they go. A task that
//! panics has found a bug of ours: its attempt fails and the job ends with a clear error.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::usage::{PeakMemory, cpu_seconds};
use crate::driver::{Action, Driver, Event};
use crate::error::{Error, Kind, Result};
use crate::history::Recorder;
use crate::history::event::{self, Outcome};
use crate::task::{Attempt, AttemptId, Kept, Scratch, TaskContext, TaskSpec, run_task};

/// How often the runner looks at the cancel flag and at memory when nothing happens.
const TICK: Duration = Duration::from_millis(20);

/// What the outside may know and ask of a running job.
#[derive(Debug, Default)]
pub struct Control {
    cancel: Arc<AtomicBool>,
    stage: Mutex<StageProgress>,
}

/// How far a stage is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StageProgress {
    /// The stage's name; empty before the first.
    pub name: &'static str,
    /// Stages that are over.
    pub index: usize,
    /// Bytes done.
    pub done_bytes: u64,
    /// Bytes to do.
    pub bytes: u64,
}

impl Control {
    /// Asks the job to end.
    pub fn cancel(&self) {
        self.cancel.store(true, Ordering::Relaxed);
    }

    /// What says whether the job was asked to end, for those who wait elsewhere.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.cancel)
    }

    /// Whether the job was asked to end.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    /// How far the job is.
    pub fn progress(&self) -> StageProgress {
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says what the job is at, between and after stages.
    pub fn set_progress(&self, progress: StageProgress) {
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = progress;
    }
}

/// What a stage took.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Phase {
    /// The stage's name.
    pub name: &'static str,
    /// Its tasks.
    pub tasks: usize,
    /// Seconds from its beginning to its end.
    pub wall_s: f64,
    /// CPU seconds in user code meanwhile.
    pub user_s: f64,
    /// CPU seconds in the kernel meanwhile.
    pub sys_s: f64,
}

/// Times phases one after another.
#[derive(Debug, Default)]
pub struct PhaseClock {
    phases: Vec<Phase>,
    current: Option<(&'static str, usize, Instant, super::usage::CpuSeconds)>,
}

impl PhaseClock {
    /// Ends the phase before, and begins `name`.
    pub fn begin(&mut self, name: &'static str, tasks: usize) {
        self.end();
        self.current = Some((name, tasks, Instant::now(), cpu_seconds()));
    }

    /// Ends the current phase.
    pub fn end(&mut self) {
        if let Some((name, tasks, began, cpu)) = self.current.take() {
            let now = cpu_seconds();
            self.phases.push(Phase {
                name,
                tasks,
                wall_s: began.elapsed().as_secs_f64(),
                user_s: now.user_s - cpu.user_s,
                sys_s: now.sys_s - cpu.sys_s,
            });
        }
    }

    /// The phases that are over.
    pub fn phases(&self) -> &[Phase] {
        &self.phases
    }
}

/// An attempt on its way to a worker.
struct Launch {
    id: AttemptId,
    spec: Arc<TaskSpec>,
    stop: Arc<AtomicBool>,
}

/// Who looks at a job while it runs.
#[derive(Debug)]
pub struct Watch<'a> {
    /// What the outside may know and ask.
    pub control: &'a Control,
    /// What phases take.
    pub clock: &'a mut PhaseClock,
    /// What memory was used at most.
    pub memory: &'a PeakMemory,
    /// What happens.
    pub recorder: &'a Recorder,
}

/// Runs the driver's job to its end on `workers` threads.
pub fn run_job(
    driver: &mut Driver,
    context: &TaskContext,
    workers: usize,
    watch: Watch<'_>,
) -> Result<()> {
    let (launch, launched) = channel();
    let (send_event, events) = channel();
    let launched = Mutex::new(launched);
    let recorder = watch.recorder;
    thread::scope(|scope| {
        for _ in 0..workers {
            let send_event = send_event.clone();
            let launched = &launched;
            scope.spawn(move || work(context, launched, &send_event, recorder));
        }
        let mut runner = Runner {
            driver,
            context,
            watch,
            launch,
            running: BTreeMap::new(),
        };
        runner.run(&events, workers)
    })
}

struct Runner<'a> {
    driver: &'a mut Driver,
    context: &'a TaskContext,
    watch: Watch<'a>,
    launch: Sender<Launch>,
    /// The stop flag of each attempt under way.
    running: BTreeMap<AttemptId, Arc<AtomicBool>>,
}

impl Runner<'_> {
    fn run(&mut self, events: &Receiver<Event>, workers: usize) -> Result<()> {
        let began = Instant::now();
        let now_ms = || began.elapsed().as_millis() as u64;
        let mut actions = self
            .driver
            .handle(now_ms(), Event::Started { slots: workers });
        let mut cancelled = false;
        loop {
            let mut wake_ms = None;
            for action in actions {
                match action {
                    Action::WakeAt { at_ms } => wake_ms = Some(at_ms),
                    Action::Complete { outcome } => return outcome,
                    action => self.act(action)?,
                }
            }
            let event = self.wait(events, wake_ms.map(|at_ms| at_ms.saturating_sub(now_ms())));
            self.watch.memory.look();
            let event = if self.watch.control.is_cancelled() && !cancelled {
                cancelled = true;
                actions = self.driver.handle(now_ms(), Event::Cancel);
                if let Some(event) = event {
                    actions.extend(self.driver.handle(now_ms(), event));
                }
                continue;
            } else {
                event.unwrap_or(Event::Woken)
            };
            actions = self.driver.handle(now_ms(), event);
        }
    }

    /// The next event, or none after a tick.
    fn wait(&mut self, events: &Receiver<Event>, wake_in_ms: Option<u64>) -> Option<Event> {
        let wait = wake_in_ms.map_or(TICK, |ms| TICK.min(Duration::from_millis(ms)));
        let event = events.recv_timeout(wait).ok();
        if let Some(Event::Finished { id, .. } | Event::Failed { id, .. }) = &event {
            self.running.remove(id);
        }
        let mut progress = self.watch.control.progress();
        progress.done_bytes = self.context.done_bytes.load(Ordering::Relaxed);
        self.watch.control.set_progress(progress);
        event
    }

    fn act(&mut self, action: Action) -> Result<()> {
        match action {
            Action::BeginStage {
                name,
                bytes,
                tasks,
                kept,
            } => {
                self.watch.clock.begin(name, tasks);
                self.watch.recorder.record(event::Event::PhaseStarted {
                    name: name.to_owned(),
                    tasks: tasks as u64,
                    bytes,
                    kept: kept as u64,
                });
                // About: nobody knows how many bytes those that are kept noted.
                let done_bytes = bytes / tasks.max(1) as u64 * kept as u64;
                self.context.done_bytes.store(done_bytes, Ordering::Relaxed);
                let index = self.watch.control.progress().index + 1;
                self.watch.control.set_progress(StageProgress {
                    name,
                    index,
                    done_bytes,
                    bytes,
                });
            }
            Action::Launch { id, spec } => {
                let phase = self.watch.control.progress().name.to_owned();
                let (task, attempt) = (id.task, id.attempt);
                let begun = event::Event::AttemptStarted {
                    task,
                    attempt,
                    phase,
                };
                self.watch.recorder.record(begun);
                let stop = Arc::new(AtomicBool::new(false));
                self.running.insert(id, stop.clone());
                let gone = |_| Error::bug("run a task", "the worker threads ended early");
                self.launch.send(Launch { id, spec, stop }).map_err(gone)?;
            }
            Action::Abort { id } => {
                if let Some(stop) = self.running.get(&id) {
                    stop.store(true, Ordering::Relaxed);
                }
            }
            Action::WakeAt { .. } | Action::Complete { .. } => {}
        }
        Ok(())
    }
}

/// A worker: takes attempts until there are no more.
fn work(
    context: &TaskContext,
    launched: &Mutex<Receiver<Launch>>,
    events: &Sender<Event>,
    recorder: &Recorder,
) {
    let mut scratch = Scratch::default();
    loop {
        let next = launched
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .recv();
        let Ok(Launch { id, spec, stop }) = next else {
            return;
        };
        let attempt = Attempt {
            id,
            stop,
            done_bytes: &context.done_bytes,
            own_bytes: AtomicU64::new(0),
        };
        let task = AssertUnwindSafe(|| run_task(&spec, context, &attempt, &mut scratch));
        let event = match catch_unwind(task).unwrap_or_else(|panic| Err(from_panic(&*panic))) {
            Ok(report) => Event::Finished { id, report },
            Err(error) => {
                attempt.take_back();
                scratch = Scratch::default(); // whatever state the attempt left it in
                Event::Failed { id, error }
            }
        };
        record_end(recorder, &spec, &event);
        let gives_up = scratch.has_spent() || matches!(*spec, TaskSpec::MergeRuns(_));
        if context.durable && gives_up {
            recorder.sync();
        }
        scratch.settle(context);
        if events.send(event).is_err() {
            return;
        }
    }
}

/// Records how an attempt ended, what runs it wrote, and what of it outlives this process. The worker does so itself,
/// before anybody acts on it: what another process could not know of must not be given up.
fn record_end(recorder: &Recorder, spec: &TaskSpec, event: &Event) {
    let mut known = None;
    let (id, outcome, error, counters) = match event {
        Event::Finished { id, report } => {
            let counters = report.counters().into_iter();
            let counters = counters.map(|(name, amount)| (name.to_owned(), amount));
            for run in report.runs() {
                recorder.record(event::Event::RunSpilled {
                    task: id.task,
                    path: run.path.display().to_string(),
                    records: run.records,
                    bytes: run.bytes,
                });
            }
            if recorder.is_on() {
                known = Kept::of(spec, report);
            }
            (id, Outcome::Succeeded, None, counters.collect())
        }
        Event::Failed { id, error } => {
            let outcome = match error.kind() {
                Kind::Cancelled => Outcome::Killed,
                _ => Outcome::Failed,
            };
            (id, outcome, Some(error.to_string()), BTreeMap::new())
        }
        _ => return,
    };
    let fingerprint = known
        .as_ref()
        .map(|_| format!("{:016x}", spec.fingerprint()));
    recorder.record(event::Event::AttemptFinished {
        task: id.task,
        attempt: id.attempt,
        outcome,
        error,
        counters,
        fingerprint,
        kept: known,
    });
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

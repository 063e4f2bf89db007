//! What all runners share: the driver's loop, and a queue of attempts for as many slots as run at once.
//!
//! ```text
//!   caller's thread: driver ──Launch, GiveBack──▶ queue ──▶ a thread for each slot ──▶ Slot::run
//!          ▲                                                          │
//!          └──────── events ◀──────── record_end ◀────────────────────┘
//! ```
//!
//! A runner says what a slot is. The rules that must hold: an attempt's end is in the history before the driver hears
//! of it, and of the attempts at a task one succeeds there; it is there for good before anything is given back.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::attempts::{Ended, record_begin, record_end};
use super::{RunnerHooks, StageProgress};
use crate::driver::{Action, Driver, Event};
use crate::error::{Error, Result};
use crate::history::Recorder;
use crate::history::event;
use crate::task::{Attempt, AttemptId, Spent, TaskContext, TaskSpec};

/// How often the loop looks at the cancel flag and at memory when nothing happens.
const TICK: Duration = Duration::from_millis(20);

/// Where one attempt runs at a time.
pub(super) trait Slot: Send {
    /// Runs an attempt to its end, and says how it ended.
    fn run(&mut self, spec: &TaskSpec, attempt: &Attempt<'_>) -> Ended;
}

/// What a slot is to do.
enum Order {
    Run {
        id: AttemptId,
        spec: Arc<TaskSpec>,
        stop: Arc<AtomicBool>,
    },
    GiveBack(Vec<Spent>),
}

/// An attempt that is over, with the bytes that it noted as done.
struct Over {
    id: AttemptId,
    spec: Arc<TaskSpec>,
    ended: Ended,
    bytes: u64,
}

/// Runs the driver's job to its end in these slots.
pub(super) fn run_in_slots<S: Slot>(
    driver: &mut Driver,
    context: &TaskContext,
    slots: Vec<S>,
    hooks: RunnerHooks<'_, '_>,
) -> Result<()> {
    let (order, orders) = channel();
    let (tell, over) = channel();
    let orders = Mutex::new(orders);
    let recorder = hooks.recorder;
    thread::scope(|scope| {
        let count = slots.len();
        for slot in slots {
            let (tell, orders) = (tell.clone(), &orders);
            scope.spawn(move || serve(slot, context, orders, &tell, recorder));
        }
        let mut job = Running {
            driver,
            context,
            slots: count,
            hooks,
            order,
            running: BTreeMap::new(),
            failures: BTreeMap::new(),
        };
        job.run(&over)
    })
}

/// The life of a slot: does what it is told until there is nothing more.
fn serve(
    mut slot: impl Slot,
    context: &TaskContext,
    orders: &Mutex<Receiver<Order>>,
    tell: &Sender<Over>,
    recorder: &Recorder,
) {
    loop {
        let next = orders.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let (id, spec, stop) = match next {
            Ok(Order::Run { id, spec, stop }) => (id, spec, stop),
            Ok(Order::GiveBack(spent)) => {
                if context.job.durable {
                    recorder.sync();
                }
                spent.iter().for_each(|spent| spent.give_back(context));
                continue;
            }
            Err(_) => return,
        };
        let attempt = Attempt {
            id,
            stop,
            done_bytes: &context.done_bytes,
            own_bytes: AtomicU64::new(0),
        };
        let ended = slot.run(&spec, &attempt);
        let bytes = attempt.own_bytes.load(Ordering::Relaxed);
        if !matches!(ended, Ended::Done(_)) {
            attempt.take_back();
        }
        let over = Over {
            id,
            spec,
            ended,
            bytes,
        };
        if tell.send(over).is_err() {
            return;
        }
    }
}

/// A job that runs.
struct Running<'a, 'c> {
    driver: &'a mut Driver,
    context: &'a TaskContext,
    slots: usize,
    hooks: RunnerHooks<'a, 'c>,
    order: Sender<Order>,
    /// The stop flag of each attempt under way.
    running: BTreeMap<AttemptId, Arc<AtomicBool>>,
    /// What is equal if a task fails again as it did the last time.
    failures: BTreeMap<u32, String>,
}

impl Running<'_, '_> {
    fn run(&mut self, over: &Receiver<Over>) -> Result<()> {
        let began = Instant::now();
        let now_ms = || began.elapsed().as_millis() as u64;
        let mut actions = self
            .driver
            .handle(now_ms(), Event::Started { slots: self.slots });
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
            let event = self.wait(over, wake_ms.map(|at_ms| at_ms.saturating_sub(now_ms())));
            self.hooks.memory.look();
            let event = if self.hooks.control.is_cancelled() && !cancelled {
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
    fn wait(&mut self, over: &Receiver<Over>, wake_in_ms: Option<u64>) -> Option<Event> {
        let wait = wake_in_ms.map_or(TICK, |ms| TICK.min(Duration::from_millis(ms)));
        let mut over = over.recv_timeout(wait).ok();
        if let Some(over) = &mut over {
            self.judge(over);
            self.running.remove(&over.id);
            self.hooks.clock.running(self.running.len());
            let told = (over.bytes, self.driver.awaits(over.id));
            record_end(
                self.hooks.recorder,
                (over.id, &over.spec),
                &over.ended,
                told,
            );
        }
        let mut progress = self.hooks.control.progress();
        progress.done_bytes = self.context.done_bytes.load(Ordering::Relaxed);
        self.hooks.control.set_progress(progress);
        over.map(|over| over.ended.event(over.id))
    }

    /// A task that fails twice in the same way at the same record is not tried again, wherever its attempts ran.
    fn judge(&mut self, over: &mut Over) {
        if let Ended::Failed(error) = &mut over.ended
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
            Action::GiveBack { spent } => return self.order(Order::GiveBack(spent)),
            Action::Abort { id } => {
                if let Some(stop) = self.running.get(&id) {
                    stop.store(true, Ordering::Relaxed);
                }
            }
            Action::WakeAt { .. } | Action::Complete { .. } => {}
        }
        Ok(())
    }

    fn begin_stage(&mut self, (name, bytes): (&'static str, u64), tasks: usize, kept: usize) {
        self.hooks.clock.begin(name, tasks, self.slots);
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
        });
    }

    fn launch(&mut self, id: AttemptId, spec: Arc<TaskSpec>) -> Result<()> {
        let phase = self.hooks.control.progress().name;
        record_begin(self.hooks.recorder, (id, &spec), phase, self.context);
        let stop = Arc::new(AtomicBool::new(false));
        self.running.insert(id, stop.clone());
        self.hooks.clock.running(self.running.len());
        if spec.runs_user_code() {
            self.hooks.clock.runs_user_code();
        }
        self.order(Order::Run { id, spec, stop })
    }

    fn order(&self, order: Order) -> Result<()> {
        let gone = |_| Error::bug("run a task", "the slots ended early");
        self.order.send(order).map_err(gone)
    }
}

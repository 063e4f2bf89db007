//! Slots of this process: a queue of attempts for as many threads as run at once.
//!
//! ```text
//!   caller's thread (running.rs) ──orders──▶ queue ──▶ a thread for each slot ──▶ Slot::run
//!          ▲                                                     │
//!          └────────────────── attempts that are over ◀──────────┘
//! ```
//!
//! A runner says what a slot is.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::RunnerHooks;
use super::attempts::AttemptOutcome;
use super::running::{BackendEvent, ExecutionBackend, FinishedAttempt, run_in};
use crate::driver::Driver;
use crate::history::Recorder;
use gristmill_base::error::{Error, Result};
use gristmill_base::sync::lock;
use gristmill_base::sys::threads::begin_in;
use gristmill_tasks::task::{AttemptId, ReleasedSpace, TaskAttempt, TaskContext, TaskSpec};

/// Where one attempt runs at a time.
pub(super) trait Slot: Send {
    /// Runs an attempt to its end, and says how it ended.
    fn run(&mut self, spec: &TaskSpec, attempt: &TaskAttempt<'_>) -> AttemptOutcome;
}

/// What a slot is to do.
enum SlotOrder {
    Run {
        id: AttemptId,
        spec: Arc<TaskSpec>,
        stop: Arc<AtomicBool>,
    },
    ReleaseSpace(Vec<ReleasedSpace>),
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
        // Dropped with this scope, whatever happens: slots wait for orders until then.
        let order = order;
        let mut count = 0;
        for slot in slots {
            let (tell, orders) = (tell.clone(), &orders);
            let serve = move || serve(slot, context, orders, &tell, recorder);
            match begin_in(scope, "slot", serve) {
                Ok(_) => count += 1,
                Err(refused) if count == 0 => return Err(refused),
                Err(_) => break, // fewer of them do it, too
            }
        }
        let mut here = LocalBackend {
            slots: count,
            order,
            over,
            running: BTreeMap::new(),
        };
        run_in(&mut here, driver, context, hooks)
    })
}

/// The life of a slot: does what it is told until there is nothing more.
fn serve(
    mut slot: impl Slot,
    context: &TaskContext,
    orders: &Mutex<Receiver<SlotOrder>>,
    tell: &Sender<FinishedAttempt>,
    recorder: &Recorder,
) {
    loop {
        let next = lock(orders).recv();
        let (id, spec, stop) = match next {
            Ok(SlotOrder::Run { id, spec, stop }) => (id, spec, stop),
            Ok(SlotOrder::ReleaseSpace(spent)) => {
                if context.job.durable {
                    recorder.sync();
                }
                spent.iter().for_each(|spent| spent.release_space(context));
                continue;
            }
            Err(_) => return,
        };
        let attempt = TaskAttempt {
            id,
            stop,
            done_bytes: &context.done_bytes,
            own_bytes: AtomicU64::new(0),
        };
        let ended = slot.run(&spec, &attempt);
        let bytes = attempt.own_bytes.load(Ordering::Relaxed);
        if !matches!(ended, AttemptOutcome::Done(_)) {
            attempt.take_back();
        }
        let over = FinishedAttempt {
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

/// The slots of this process.
struct LocalBackend {
    slots: usize,
    order: Sender<SlotOrder>,
    over: Receiver<FinishedAttempt>,
    /// The stop flag of each attempt under way.
    running: BTreeMap<AttemptId, Arc<AtomicBool>>,
}

impl LocalBackend {
    fn order(&self, order: SlotOrder) -> Result<()> {
        let gone = |_| Error::bug("run a task", "the slots ended early");
        self.order.send(order).map_err(gone)
    }
}

impl ExecutionBackend for LocalBackend {
    fn slots(&self) -> usize {
        self.slots
    }

    fn launch(
        &mut self,
        id: AttemptId,
        spec: Arc<TaskSpec>,
        begins: &mut dyn FnMut(&TaskSpec, &str),
    ) -> Result<()> {
        begins(&spec, "");
        let stop = Arc::new(AtomicBool::new(false));
        self.running.insert(id, Arc::clone(&stop));
        self.order(SlotOrder::Run { id, spec, stop })
    }

    fn abort(&mut self, id: AttemptId) {
        if let Some(stop) = self.running.get(&id) {
            stop.store(true, Ordering::Relaxed);
        }
    }

    fn release_space(&mut self, spent: Vec<ReleasedSpace>) -> Result<()> {
        self.order(SlotOrder::ReleaseSpace(spent))
    }

    fn next(&mut self, longest: Duration) -> Option<BackendEvent> {
        let over = self.over.recv_timeout(longest).ok()?;
        self.running.remove(&over.id);
        Some(BackendEvent::Over(Box::new(over)))
    }
}

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
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::RunnerHooks;
use super::attempts::Ended;
use super::running::{Happened, Over, Place, run_in};
use crate::driver::Driver;
use crate::error::{Error, Result};
use crate::history::Recorder;
use crate::sys::threads::begin_in;
use crate::task::{Attempt, AttemptId, Spent, TaskContext, TaskSpec};

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
        let mut here = Here {
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

/// The slots of this process.
struct Here {
    slots: usize,
    order: Sender<Order>,
    over: Receiver<Over>,
    /// The stop flag of each attempt under way.
    running: BTreeMap<AttemptId, Arc<AtomicBool>>,
}

impl Here {
    fn order(&self, order: Order) -> Result<()> {
        let gone = |_| Error::bug("run a task", "the slots ended early");
        self.order.send(order).map_err(gone)
    }
}

impl Place for Here {
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
        self.order(Order::Run { id, spec, stop })
    }

    fn abort(&mut self, id: AttemptId) {
        if let Some(stop) = self.running.get(&id) {
            stop.store(true, Ordering::Relaxed);
        }
    }

    fn give_back(&mut self, spent: Vec<Spent>) -> Result<()> {
        self.order(Order::GiveBack(spent))
    }

    fn next(&mut self, longest: Duration) -> Option<Happened> {
        let over = self.over.recv_timeout(longest).ok()?;
        self.running.remove(&over.id);
        Some(Happened::Over(Box::new(over)))
    }
}

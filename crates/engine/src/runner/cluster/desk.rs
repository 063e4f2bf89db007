//! What an agent has been told and has to tell: orders come in, slots take tasks, events go out.
//!
//! ```text
//!   server ──Orders──▶ queue ──▶ slots (agent.rs)
//!     ▲                            │
//!     └── Events, kept until they are known to have come ◀┘
//! ```
//!
//! The rules that must hold: an order that is sent twice is done once, and one that fails is done again; an event is kept until
//! the driver asks for those after it; an agent that its driver does not ask any more ends; and nothing that waits for a disk
//! keeps the driver waiting, who would take the agent for lost.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::messages::{AgentUse, AttemptOver, Events, Order, Orders, READS_MAX};
use super::sight::check_sight;
use crate::error::{Error, Result};
use crate::runner::messages::{WorkerUse, reply_bytes};
use crate::runner::shared::{BuildNativeExecutor, Host, Told};
use crate::runner::tree::Tree;
use crate::storage::LocalDisk;
use crate::storage::agents::{Agents, ReadOf};
use crate::storage::requests::RequestCounts;
use crate::storage::stores::Stores;
use crate::sys::machine::machine_cpu;
use crate::sys::memory::{descendants_bytes, resident_bytes};
use crate::task::wire::{self, Receiver};
use crate::task::{AttemptId, TaskContext, TaskReport, TaskSpec};

/// How long a driver that asks is kept waiting when nothing happens.
const NOTHING_NEW: Duration = Duration::from_secs(1);

/// Where slots have so many attempts each that wait, a reply waits for the reports of others: a request for each short task
/// would cost more than the task.
const WAITING_MANY: usize = 16;
const TOGETHER: Duration = Duration::from_millis(1);

/// Reports of so many bytes go in one reply; the rest in the next.
const REPLY_BYTES: usize = 8 << 20;

/// How often an agent looks at what it uses.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// A task to be run, with what it is run by.
pub(super) struct Task {
    pub(super) id: AttemptId,
    pub(super) spec: Result<TaskSpec>,
    pub(super) job: Arc<Result<TaskContext>>,
    pub(super) flags: Arc<Flags>,
}

/// What others see of an attempt.
#[derive(Debug, Default)]
pub(super) struct Flags {
    pub(super) stop: Arc<AtomicBool>,
    pub(super) done_bytes: AtomicU64,
}

struct State {
    /// How many orders were taken.
    orders: u64,
    queue: VecDeque<Task>,
    /// What waits or runs.
    open: BTreeMap<AttemptId, Arc<Flags>>,
    /// What the driver does not know yet, from this number on.
    first: u64,
    over: VecDeque<AttemptOver>,
    job: Arc<Result<TaskContext>>,
    receiver: Receiver,
    counted: RequestCounts,
    /// When the driver was heard of, and whether it was at all.
    heard: (Instant, bool),
    used: (AgentUse, Option<Instant>),
    /// How many parts of the job it has begun with, and how many of them the driver was told of.
    begun: u64,
    told: u64,
    refused: Option<Error>,
    ended: bool,
    runs_stay: bool,
}

/// What the desk works with.
pub(super) struct Equipment {
    pub(super) stores: Arc<Stores>,
    pub(super) disk: Arc<dyn LocalDisk>,
    pub(super) agents: Arc<Agents>,
    pub(super) native: BuildNativeExecutor,
    pub(super) host: Host,
    /// Where this agent's own runs are.
    pub(super) folders: Vec<PathBuf>,
}

/// The desk of an agent.
pub(super) struct Desk {
    pub(super) equipment: Equipment,
    /// Held as long as a batch of orders is carried out.
    batch: Mutex<()>,
    state: Mutex<State>,
    changed: Condvar,
    tree: Tree,
    sent_bytes: AtomicU64,
}

impl Desk {
    pub(super) fn new(equipment: Equipment) -> Self {
        let none = Err(Error::bug("run a task", "the agent was told of no job"));
        Desk {
            batch: Mutex::default(),
            state: Mutex::new(State {
                orders: 0,
                queue: VecDeque::new(),
                open: BTreeMap::new(),
                first: 0,
                over: VecDeque::new(),
                job: Arc::new(none),
                receiver: Receiver::default(),
                counted: RequestCounts::default(),
                heard: (Instant::now(), false),
                used: (AgentUse::default(), None),
                begun: 0,
                told: 0,
                refused: None,
                ended: false,
                runs_stay: false,
            }),
            equipment,
            changed: Condvar::new(),
            tree: Tree::of_job(true),
            sent_bytes: AtomicU64::new(0),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a batch of orders.
    pub(super) fn take(&self, body: &[u8]) -> Result<()> {
        let Orders { first, orders } = wire::from_bytes(body)?;
        let _batch = self.batch.lock().unwrap_or_else(PoisonError::into_inner);
        let known = {
            let mut state = self.state();
            state.hear();
            state.orders.saturating_sub(first) as usize
        };
        let mut new = orders.into_iter().skip(known);
        let done = new.try_for_each(|order| {
            if !matches!(order, Order::Run { .. } | Order::Stop { .. }) {
                self.changed.notify_all(); // it may take a while
            }
            self.act(order)?;
            self.state().orders += 1;
            Ok(())
        });
        self.changed.notify_all();
        done
    }

    fn act(&self, order: Order) -> Result<()> {
        let Equipment { disk, agents, .. } = &self.equipment;
        match order {
            Order::Begin { told, sign } => {
                let context = self.context(&told).and_then(|context| {
                    check_sight(&context, sign.as_ref(), &self.equipment.host.here)?;
                    Ok(context)
                });
                let mut state = self.state();
                state.receiver = Receiver::default();
                state.refused = context.as_ref().err().cloned();
                state.begun += 1;
                state.job = Arc::new(context);
            }
            Order::Agents(others) => agents.change(&**disk, |table| table.agents.extend(others))?,
            Order::Run { id, spec } => {
                let flags = Arc::<Flags>::default();
                let mut state = self.state();
                state.open.insert(id, Arc::clone(&flags));
                let task = Task {
                    id,
                    spec: state.receiver.from_bytes(&spec),
                    job: Arc::clone(&state.job),
                    flags,
                };
                state.queue.push_back(task);
            }
            Order::Stop { id } => {
                if let Some(flags) = self.state().open.get(&id) {
                    flags.stop.store(true, Ordering::Relaxed);
                }
            }
            Order::GiveBack(spent) => {
                let job = Arc::clone(&self.state().job);
                if let Ok(context) = &*job {
                    spent.iter().for_each(|spent| spent.give_back(context));
                }
            }
            Order::Changed { lost, moved } => agents.change(&**disk, |table| {
                table.lost.extend(lost);
                table.moved.extend(moved);
            })?,
            Order::End { runs_stay } => {
                let mut state = self.state();
                state.runs_stay = runs_stay;
                state.end();
            }
        }
        Ok(())
    }

    fn context(&self, told: &[u8]) -> Result<TaskContext> {
        let Equipment {
            stores,
            native,
            host,
            ..
        } = &self.equipment;
        let told: Told = wire::from_bytes(told)?;
        told.context(stores, *native, host)
    }

    /// The next task of a slot; nothing when the job is over.
    pub(super) fn next(&self) -> Option<Task> {
        let state = self.state();
        let idle = |state: &mut State| state.queue.is_empty() && !state.ended;
        let waited = self.changed.wait_while(state, idle);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.ended {
            return None;
        }
        state.queue.pop_front()
    }

    /// Takes in how an attempt ended. One that fails while the agent ends was stopped by that: it is lost with the agent, and
    /// did not fail.
    pub(super) fn over(&self, task: &Task, took: Duration, outcome: Result<TaskReport>) {
        let mut state = self.state();
        state.open.remove(&task.id);
        if state.ended && outcome.is_err() {
            return;
        }
        let peak_bytes = task
            .job
            .as_ref()
            .as_ref()
            .map_or(0, |context| context.node.budget.peak_bytes());
        let counts = self.equipment.stores.requests().counts();
        let requests = counts.since(std::mem::replace(&mut state.counted, counts));
        let used = WorkerUse {
            peak_bytes,
            requests,
        };
        let reply = reply_bytes(used, outcome).or_else(|error| reply_bytes(used, Err(error)));
        state.over.push_back(AttemptOver {
            id: task.id,
            bytes: task.flags.done_bytes.load(Ordering::Relaxed),
            took_us: took.as_micros() as u64,
            reply: reply.map_or_else(|_| Bytes::new(), Bytes::from),
        });
        drop(state);
        self.changed.notify_all();
    }

    /// What the driver does not know that has heard of the first `known` events: as soon as there is any, or after a while.
    pub(super) fn events(&self, known: u64) -> Result<Vec<u8>> {
        let mut state = self.state();
        state.hear();
        while state.first < known && state.over.pop_front().is_some() {
            state.first += 1;
        }
        let quiet = |state: &mut State| state.over.is_empty() && state.begun == state.told;
        let waited = self.changed.wait_timeout_while(state, NOTHING_NEW, quiet);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        if state.queue.len() >= WAITING_MANY * self.equipment.host.workers {
            drop(state);
            sleep(TOGETHER);
            state = self.state();
        }
        state.hear();
        state.told = state.begun;
        let mut bytes = 0;
        let fits = |over: &&AttemptOver| {
            let before = bytes;
            bytes += over.reply.len();
            before < REPLY_BYTES
        };
        let over = state.over.iter().take_while(fits).cloned().collect();
        let done = |(id, flags): (&AttemptId, &Arc<Flags>)| {
            let bytes = flags.done_bytes.load(Ordering::Relaxed);
            (bytes > 0).then_some((*id, bytes))
        };
        let events = Events {
            first: state.first,
            over,
            running: state.open.iter().filter_map(done).collect(),
            used: self.used(&mut state),
            reads: self.reads(),
            begun: state.begun,
            refused: state.refused.clone(),
        };
        drop(state);
        wire::to_bytes(&events)
    }

    fn used(&self, state: &mut State) -> AgentUse {
        let (used, looked) = &mut state.used;
        if looked.is_none_or(|looked| looked.elapsed() >= LOOK_EVERY) {
            let now = self.tree.used();
            *used = AgentUse {
                user_s: now.user_s,
                sys_s: now.sys_s,
                own_s: now.own_s,
                machine: machine_cpu(),
                anonymous_bytes: resident_bytes().0 + descendants_bytes(),
                read_bytes: now.read_bytes,
                write_bytes: now.write_bytes,
                ..AgentUse::default()
            };
            *looked = Some(Instant::now());
        }
        let reads = self.equipment.agents.reads().all();
        let own = self.equipment.agents.own();
        let of_others = || reads.iter().filter(|read| read.agent != own);
        let of_own = reads.iter().filter(|read| read.agent == own);
        AgentUse {
            sent_bytes: self.sent_bytes.load(Ordering::Relaxed),
            own_bytes: of_own.map(|read| read.file_bytes).sum(),
            received_bytes: of_others().map(|read| read.far_bytes).sum(),
            file_bytes: of_others().map(|read| read.file_bytes).sum(),
            ..*used
        }
    }

    /// What was read of the runs of each agent, unless there are too many to say so again and again.
    fn reads(&self) -> Vec<ReadOf> {
        let reads = self.equipment.agents.reads().all();
        if reads.len() <= READS_MAX {
            reads
        } else {
            Vec::new()
        }
    }

    /// Counts bytes of runs that went to another agent.
    pub(super) fn sent(&self, bytes: u64) {
        self.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Where a run of this agent lies, if its name is one.
    pub(super) fn path_of(&self, folder: usize, name: &str) -> Option<PathBuf> {
        let is_run = name.starts_with("run-") && Path::new(name).components().count() == 1;
        let folder = self.equipment.folders.get(folder)?;
        is_run.then(|| folder.join(name))
    }

    /// How long the driver has not been heard of, and whether it was before.
    pub(super) fn silence(&self) -> (Duration, bool) {
        let (heard, before) = self.state().heard;
        (heard.elapsed(), before)
    }

    /// Whether the driver has said that runs stay, or that they do not.
    pub(super) fn runs_stay(&self) -> Option<bool> {
        let state = self.state();
        state.ended.then_some(state.runs_stay)
    }

    /// How many attempts run or wait.
    pub(super) fn open(&self) -> usize {
        self.state().open.len()
    }

    /// Ends all that runs.
    pub(super) fn end(&self) {
        self.state().end();
        self.changed.notify_all();
    }
}

impl State {
    fn hear(&mut self) {
        self.heard = (Instant::now(), true);
    }

    fn end(&mut self) {
        self.ended = true;
        for task in self.queue.drain(..) {
            self.open.remove(&task.id);
        }
        for flags in self.open.values() {
            flags.stop.store(true, Ordering::Relaxed);
        }
    }
}

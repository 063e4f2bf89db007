//! What an agent has been told and has to tell: orders come in, slots take tasks, events go out.
//!
//! ```text
//!   server ──Orders──▶ queue ──▶ slots (agent.rs)
//!     ▲                            │
//!     └── Events, kept until they are known to have come ◀┘
//! ```
//!
//! The rules that must hold: an order that is sent twice is done once; an event is kept until the driver asks for those after
//! it; an agent that its driver does not ask any more ends; and nothing that waits for a disk keeps the driver waiting, who would
//! take the agent for lost. So an order is taken at once: what needs a disk is left to threads (`begin`,
//! `agent_queue/at_disk.rs`), and what goes wrong there is an event.

mod at_disk;
mod chores;
mod reports;
mod usage;

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use bytes::Bytes;

use self::chores::{Chore, Chores};
use self::reports::report_bytes;
use self::usage::UsageMeter;
use super::messages::{AgentOrder, AttemptOver, Events, Launch, Orders};
use super::shared_fs_check::check_shared_files;
use crate::runner::messages::WorkerUse;
use crate::runner::shared::{BuildNativeExecutor, Host, JobSetup};
use gristmill_base::error::{Error, Result};
use gristmill_base::sync::lock;
use gristmill_base::sys::threads::begin;
use gristmill_storage::LocalDisk;
use gristmill_storage::agents::Agents;
use gristmill_storage::net::requests::RequestCounts;
use gristmill_storage::net::waiting::PendingWaits;
use gristmill_storage::objects::Upload;
use gristmill_storage::stores::Stores;
use gristmill_tasks::task::wire::{self, Receiver};
use gristmill_tasks::task::{TaskContext, TaskReport, TaskSpec};

/// How long a driver that asks is kept waiting when nothing happens.
const NOTHING_NEW: Duration = Duration::from_secs(1);

/// Where slots have so many attempts each that wait, a reply waits for the reports of others: a request for each short task
/// would cost more than the task.
const WAITING_MANY: usize = 16;
const TOGETHER: Duration = Duration::from_millis(1);

/// Reports of so many bytes go in one reply; the rest in the next.
const REPLY_BYTES: usize = 8 << 20;

/// A file that is awaited so long is worth a word to the driver.
const LASTS: Duration = Duration::from_secs(1);

/// A task to be run, with what it is run by.
pub(super) struct QueuedTask {
    pub(super) launch: Launch,
    /// How many chores are before it.
    after: u64,
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

struct QueueState {
    /// How many orders were taken.
    orders: u64,
    queue: VecDeque<QueuedTask>,
    /// What waits or runs.
    open: BTreeMap<Launch, Arc<Flags>>,
    /// What the driver does not know yet, from this number on.
    first: u64,
    over: VecDeque<AttemptOver>,
    job: Arc<Result<TaskContext>>,
    receiver: Receiver,
    chores: Chores,
    counted: RequestCounts,
    /// When the driver was heard of, and whether it was at all.
    heard: (Instant, bool),
    /// How many parts of the job it was told of, has begun with, and has said so of.
    told: u64,
    begun: u64,
    said: u64,
    refused: Option<Error>,
    /// Why it cannot do what it is told, and whether it has said so.
    broken: (Option<Error>, bool),
    ended: bool,
    runs_stay: bool,
}

/// What the queue works with.
pub(super) struct AgentResources {
    pub(super) stores: Arc<Stores>,
    pub(super) disk: Arc<dyn LocalDisk>,
    pub(super) agents: Arc<Agents>,
    pub(super) native: BuildNativeExecutor,
    pub(super) host: Host,
    /// Where this agent's own runs are: in its memory, and in its folders.
    pub(super) folders: Vec<PathBuf>,
}

/// An agent's orders and events: orders come in, slots take tasks, events go out.
pub(super) struct AgentQueue {
    pub(super) resources: AgentResources,
    /// Held as long as a batch of orders is carried out.
    batch: Mutex<()>,
    state: Mutex<QueueState>,
    changed: Condvar,
    used: UsageMeter,
    /// Files that may never answer.
    waiting: Arc<PendingWaits>,
}

impl AgentQueue {
    pub(super) fn new(resources: AgentResources) -> Self {
        let none = Err(Error::bug("run a task", "the agent was told of no job"));
        AgentQueue {
            batch: Mutex::default(),
            state: Mutex::new(QueueState {
                orders: 0,
                queue: VecDeque::new(),
                open: BTreeMap::new(),
                first: 0,
                over: VecDeque::new(),
                job: Arc::new(none),
                receiver: Receiver::default(),
                chores: Chores::default(),
                counted: RequestCounts::default(),
                heard: (Instant::now(), false),
                told: 0,
                begun: 0,
                said: 0,
                refused: None,
                broken: (None, false),
                ended: false,
                runs_stay: false,
            }),
            resources,
            changed: Condvar::new(),
            used: UsageMeter::default(),
            waiting: Arc::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        lock(&self.state)
    }

    /// Takes a batch of orders.
    ///
    /// # Errors
    /// They are not orders.
    pub(super) fn take(self: &Arc<Self>, body: &[u8]) -> Result<()> {
        let Orders { first, orders } = wire::from_bytes(body)?;
        let _batch = lock(&self.batch);
        let known = {
            let mut state = self.state();
            state.hear();
            state.orders.saturating_sub(first) as usize
        };
        for order in orders.into_iter().skip(known) {
            self.act(order);
            self.state().orders += 1;
        }
        self.changed.notify_all();
        Ok(())
    }

    fn act(self: &Arc<Self>, order: AgentOrder) {
        let agents = &self.resources.agents;
        match order {
            AgentOrder::Begin { setup, marker } => self.begin(setup, marker),
            AgentOrder::Agents(others) => {
                agents.change(|table| table.agents.extend(others));
                self.state().chores.add(Chore::Show);
            }
            AgentOrder::Run { launch, spec } => {
                let flags = Arc::<Flags>::default();
                let mut state = self.state();
                state.open.insert(launch, Arc::clone(&flags));
                let task = QueuedTask {
                    launch,
                    after: state.chores.added(),
                    spec: state.receiver.from_bytes(&spec),
                    job: Arc::clone(&state.job),
                    flags,
                };
                state.queue.push_back(task);
            }
            AgentOrder::Stop { launch } => {
                if let Some(flags) = self.state().open.get(&launch) {
                    flags.stop.store(true, Ordering::Relaxed);
                }
            }
            AgentOrder::ReleaseSpace(spent) => {
                let mut state = self.state();
                let job = Arc::clone(&state.job);
                state.chores.add(Chore::ReleaseSpace(job, spent));
            }
            AgentOrder::Changed { lost, moved } => {
                agents.change(|table| {
                    table.lost.extend(lost);
                    table.moved.extend(moved);
                });
                self.state().chores.add(Chore::Show);
            }
            AgentOrder::End { runs_stay } => {
                let mut state = self.state();
                state.runs_stay = runs_stay;
                state.end();
            }
        }
    }

    /// Begins with a part of the job, on a thread: a mount that hangs is not to keep the driver waiting.
    fn begin(self: &Arc<Self>, setup: Bytes, marker: Option<Upload>) {
        let number = {
            let mut state = self.state();
            state.receiver = Receiver::default();
            state.refused = None;
            state.told += 1;
            state.told
        };
        let queue = Arc::clone(self);
        let begins = move || {
            let context = queue.context(&setup).and_then(|context| {
                let here = &queue.resources.host.here;
                check_shared_files(&context, marker.as_ref(), here, &queue.waiting)?;
                Ok(context)
            });
            queue.has_begun(number, context);
        };
        if let Err(refused) = begin("begin", begins) {
            self.has_begun(number, Err(refused));
        }
    }

    /// It can begin with a part, or not; if that is still the last one that it was told of.
    fn has_begun(&self, number: u64, context: Result<TaskContext>) {
        let mut state = self.state();
        if state.told == number {
            state.refused = context.as_ref().err().cloned();
            state.begun = number;
            state.job = Arc::new(context);
        }
        drop(state);
        self.changed.notify_all();
    }

    fn context(&self, setup: &[u8]) -> Result<TaskContext> {
        let AgentResources {
            stores,
            native,
            host,
            ..
        } = &self.resources;
        let setup: JobSetup = wire::from_bytes(setup)?;
        setup.context(stores, *native, host)
    }

    /// The next task of a slot; nothing when the job is over.
    pub(super) fn next(&self) -> Option<QueuedTask> {
        let state = self.state();
        let waited = self.changed.wait_while(state, |state| !state.has_work());
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.ended {
            return None;
        }
        state.queue.pop_front()
    }

    /// Takes in how an attempt ended. One that fails while the agent ends was stopped by that: it is lost with the agent, and
    /// did not fail.
    pub(super) fn over(&self, task: &QueuedTask, took: Duration, outcome: Result<TaskReport>) {
        let peak_bytes = task
            .job
            .as_ref()
            .as_ref()
            .map_or(0, |context| context.node.budget.peak_bytes());
        let counts = self.resources.stores.requests().counts();
        let requests = counts.since(std::mem::replace(&mut self.state().counted, counts));
        let used = WorkerUse {
            peak_bytes,
            requests,
        };
        let failed = outcome.is_err();
        let over = AttemptOver {
            launch: task.launch,
            bytes: task.flags.done_bytes.load(Ordering::Relaxed),
            took_us: took.as_micros() as u64,
            reply: report_bytes(used, outcome).into(),
        };
        let mut state = self.state();
        state.open.remove(&task.launch);
        if !(state.ended && failed) {
            state.over.push_back(over);
        }
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
        let waited = self
            .changed
            .wait_timeout_while(state, NOTHING_NEW, |state| !state.has_news());
        let state = waited.unwrap_or_else(PoisonError::into_inner).0;
        let many = state.queue.len() >= WAITING_MANY * self.resources.host.workers;
        drop(state);
        if many {
            sleep(TOGETHER);
        }
        let used = self.used.now(&self.resources.agents); // while nobody waits for it
        let reads = UsageMeter::reads(&self.resources.agents);
        let waits = self.waiting.lasting(LASTS);
        let mut state = self.state();
        state.hear();
        state.said = state.begun;
        state.broken.1 = state.broken.0.is_some();
        let mut bytes = 0;
        let fits = |over: &&AttemptOver| {
            let before = bytes;
            bytes += over.reply.len();
            before < REPLY_BYTES
        };
        let over = state.over.iter().take_while(fits).cloned().collect();
        let done = |(launch, flags): (&Launch, &Arc<Flags>)| {
            let bytes = flags.done_bytes.load(Ordering::Relaxed);
            (bytes > 0).then_some((*launch, bytes))
        };
        let events = Events {
            first: state.first,
            over,
            running: state.open.iter().filter_map(done).collect(),
            used,
            reads,
            begun: state.begun,
            refused: state.refused.clone(),
            broken: state.broken.0.clone(),
            waits,
        };
        drop(state);
        wire::to_bytes(&events)
    }

    /// Counts bytes of runs that went to another agent.
    pub(super) fn sent(&self, bytes: u64) {
        self.used.sent(bytes);
    }

    /// It cannot do what it is told: nothing more begins here, and the attempt is lost with the agent.
    pub(super) fn breaks(&self, task: &QueuedTask, error: Error) {
        let mut state = self.state();
        state.open.remove(&task.launch);
        state.broken.0.get_or_insert(error);
        drop(state);
        self.changed.notify_all();
    }

    /// Where a run of this agent lies, if its name is one.
    pub(super) fn path_of(&self, folder: usize, name: &str) -> Option<PathBuf> {
        let is_run = name.starts_with("run-") && Path::new(name).components().count() == 1;
        let folder = self.resources.folders.get(folder)?;
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

impl QueueState {
    fn hear(&mut self) {
        self.heard = (Instant::now(), true);
    }

    /// Whether a slot has something to do: a task whose chores are done, or to end.
    fn has_work(&self) -> bool {
        let next = self.queue.front().filter(|_| self.broken.0.is_none());
        self.ended || next.is_some_and(|task| task.after <= self.chores.done())
    }

    /// Whether there is something that the driver was not told.
    fn has_news(&self) -> bool {
        !self.over.is_empty()
            || self.begun != self.said
            || self.broken.0.is_some() && !self.broken.1
    }

    fn end(&mut self) {
        self.ended = true;
        for task in self.queue.drain(..) {
            self.open.remove(&task.launch);
        }
        for flags in self.open.values() {
            flags.stop.store(true, Ordering::Relaxed);
        }
    }
}

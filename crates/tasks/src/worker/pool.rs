//! The pool: workers that wait for the next task, whichever job it is of.
//!
//! ```text
//!   lease ──▶ an idle worker of the same command, one that has the definition if there is one
//!        └──▶ or a new one, started by the keeper
//!   prepare ──▶ a new one that nobody waits for: it starts while a job is planned
//!   Leased dropped ──▶ healthy: idle again      not: killed with its group, reaped
//!   the keeper (a thread): starts workers, reaps those that died while idle, ends those idle for too long
//! ```
//!
//! All workers are started by the keeper, because the kernel kills a child when the *thread* that started it ends
//! (PR_SET_PDEATHSIG): the threads of a job end with the job, the keeper only when no worker is left.
//!
//! After a fork of this process its child has a copy of the pool, without the keeper and with workers that are not
//! its children: it leaves them alone. [`ProcessPool::shared`] gives it a pool of its own.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::DefinitionKey;
use super::command::WorkerCommand;
use super::failure::WorkerError;
use super::member::PoolWorker;
use gristmill_base::names::show_path;
use gristmill_base::sync::lock;

/// How long a worker waits for a task before it is ended.
const IDLE: Duration = Duration::from_secs(300);
/// How long a worker may take to end by itself once its stdin ended.
const ENDING: Duration = Duration::from_millis(500);
/// How long after its stderr ended a worker may take to be dead, and how often the keeper looks meanwhile.
const DYING: Duration = Duration::from_secs(1);
const DYING_LOOK: Duration = Duration::from_millis(20);

/// Worker processes, shared by all who run tasks in them.
pub struct ProcessPool {
    pub(super) shared: Arc<PoolShared>,
}

/// What the pool, its leases and its keeper share.
pub(super) struct PoolShared {
    state: Mutex<PoolState>,
    changed: Condvar,
    driver: u32,
    idle_longest: Duration,
}

#[derive(Default)]
struct PoolState {
    /// The last one came back last.
    idle: Vec<Idle>,
    leased: usize,
    workers_max: usize,
    wanted: VecDeque<Wanted>,
    /// Whether the keeper is starting a worker that nobody waits for.
    preparing: bool,
    has_keeper: bool,
    closed: bool,
    /// The stderr of a worker ended: until then the keeper looks often which one dies.
    dying_until: Option<Instant>,
}

struct Idle {
    worker: PoolWorker,
    since: Instant,
}

/// A worker to be started, and who waits for it, if anybody does.
struct Wanted {
    command: WorkerCommand,
    answer: Option<SyncSender<io::Result<PoolWorker>>>,
}

impl ProcessPool {
    /// A pool which keeps `workers_max` workers at most, idle ones and leased ones together (leases beyond that are
    /// granted, but not kept afterwards), each for five minutes after its last task.
    pub fn new(workers_max: usize) -> Self {
        Self::with_idle(workers_max, IDLE)
    }

    /// As [`ProcessPool::new`], for another time.
    pub fn with_idle(workers_max: usize, idle_longest: Duration) -> Self {
        let state = PoolState {
            workers_max,
            ..PoolState::default()
        };
        ProcessPool {
            shared: Arc::new(PoolShared {
                state: Mutex::new(state),
                changed: Condvar::new(),
                driver: std::process::id(),
                idle_longest,
            }),
        }
    }

    /// The pool of this process, which lives as long as it does: workers stay warm from job to job. A fork of this
    /// process gets another. It starts with room for no worker: see [`ProcessPool::keep`].
    pub fn shared() -> &'static Self {
        // Not a mutex: it could be locked, for ever, in a process that was forked off at the wrong moment.
        static SHARED: AtomicPtr<ProcessPool> = AtomicPtr::new(std::ptr::null_mut());
        loop {
            let current = SHARED.load(Ordering::Acquire);
            // SAFETY: null, or made by `Box::leak` below and never freed.
            if let Some(pool) = unsafe { current.as_ref() }
                && pool.shared.driver == std::process::id()
            {
                return pool;
            }
            let made = Box::into_raw(Box::new(ProcessPool::new(0)));
            if SHARED
                .compare_exchange(current, made, Ordering::AcqRel, Ordering::Acquire)
                .is_err()
            {
                // SAFETY: another thread was quicker; nobody else has seen this one.
                drop(unsafe { Box::from_raw(made) });
            }
        }
    }

    /// Says how many workers to keep from now on: those of the job that starts.
    pub fn keep(&self, workers_max: usize) {
        let mut state = self.shared.lock();
        state.workers_max = workers_max;
        let surplus = state.take_surplus();
        drop(state);
        end_all(surplus);
    }

    /// Starts a worker that the first lease will take, unless one of this command waits already. If it cannot be started, the lease
    /// says why.
    pub fn prepare(&self, command: &WorkerCommand) {
        if self.shared.driver != std::process::id() {
            return;
        }
        let mut state = self.shared.lock();
        let idle = |idle: &Idle| idle.worker.command == *command;
        let wanted = |wanted: &Wanted| wanted.command == *command;
        let waits = state.idle.iter().any(idle) || state.wanted.iter().any(wanted);
        if waits || state.preparing || state.closed {
            return;
        }
        state.workers_max = state.workers_max.max(1);
        state.wanted.push_back(Wanted {
            command: command.clone(),
            answer: None,
        });
        let _ = self.shared.start_keeper(&mut state);
        drop(state);
        self.shared.changed.notify_all();
    }

    /// A worker of this command, warm if there is one, until it is given back.
    pub(super) fn take(
        &self,
        command: &WorkerCommand,
        definition: &DefinitionKey,
    ) -> Result<PoolWorker, WorkerError> {
        let not_started = |reason: String| WorkerError::NotStarted {
            program: show_path(&command.program),
            reason,
            stderr: String::new(),
        };
        if self.shared.driver != std::process::id() {
            let reason = "its pool belongs to the process that this one was forked from";
            return Err(not_started(reason.into()));
        }
        let mut state = self.shared.lock();
        let mut dead = Vec::new();
        let warm = state.take_warm(command, definition, &mut dead);
        state.leased += 1;
        let surplus = state.take_surplus();
        if let Some(worker) = warm {
            drop(state);
            end_all(surplus);
            return Ok(worker);
        }
        let (answer, answered) = sync_channel(1);
        state.want(command, answer);
        let kept = self.shared.start_keeper(&mut state);
        drop(state);
        self.shared.changed.notify_all();
        drop(dead);
        end_all(surplus);
        let started = kept.and_then(|()| answered.recv().unwrap_or_else(|_| Err(no_keeper())));
        started.map_err(|error| {
            self.shared.lock().leased -= 1;
            not_started(error.to_string())
        })
    }

    /// Kills and reaps the workers that wait for a task: what they took of the processors then counts as this
    /// process's children's, as shells show it. For the end of a program; a later lease starts another.
    ///
    /// ```
    /// gristmill_tasks::worker::ProcessPool::shared().dismiss();
    /// assert_eq!(gristmill_tasks::worker::ProcessPool::shared().idle(), 0);
    /// ```
    pub fn dismiss(&self) {
        let idle = std::mem::take(&mut self.shared.lock().idle);
        drop(idle);
    }

    /// Workers that wait for a task.
    pub fn idle(&self) -> usize {
        self.shared.lock().idle.len()
    }
}

impl PoolState {
    /// The best idle worker of a command: the last one used that has the definition, or the last one used. Those
    /// found dead go to `dead`, since reaping takes time.
    fn take_warm(
        &mut self,
        command: &WorkerCommand,
        definition: &DefinitionKey,
        dead: &mut Vec<PoolWorker>,
    ) -> Option<PoolWorker> {
        self.take_dead(dead);
        let fits = |idle: &Idle| idle.worker.command == *command;
        let knows = |idle: &Idle| fits(idle) && idle.worker.remembers(definition);
        let at = self.idle.iter().rposition(knows);
        let at = at.or_else(|| self.idle.iter().rposition(fits))?;
        let mut worker = self.idle.remove(at).worker;
        // One that was prepared has had nobody to say hello to.
        worker.started = worker.started.map(|_| Instant::now());
        Some(worker)
    }

    /// Somebody waits for a worker of this command: for one that is to be started anyway, or for another.
    fn want(&mut self, command: &WorkerCommand, answer: SyncSender<io::Result<PoolWorker>>) {
        let answer = Some(answer);
        let fits = |wanted: &&mut Wanted| wanted.answer.is_none() && wanted.command == *command;
        match self.wanted.iter_mut().find(fits) {
            Some(wanted) => wanted.answer = answer,
            None => self.wanted.push_back(Wanted {
                command: command.clone(),
                answer,
            }),
        }
    }

    fn take_dead(&mut self, dead: &mut Vec<PoolWorker>) {
        let is_dead = |idle: &mut Idle| idle.worker.process.death().is_some();
        dead.extend(self.idle.extract_if(.., is_dead).map(|idle| idle.worker));
    }

    fn take_tired(&mut self, idle_longest: Duration) -> Vec<PoolWorker> {
        let is_tired = |idle: &mut Idle| idle.since.elapsed() >= idle_longest;
        let tired = self.idle.extract_if(.., is_tired);
        tired.map(|idle| idle.worker).collect()
    }

    /// When the keeper has to look again, if nobody calls it before.
    fn next_look(&self, idle_longest: Duration) -> Option<Duration> {
        let now = Instant::now();
        let tired = |idle: &Idle| idle_longest.saturating_sub(now - idle.since);
        let tired = self.idle.iter().map(tired).min();
        let dying = self.dying_until.filter(|&until| now < until);
        tired.into_iter().chain(dying.map(|_| DYING_LOOK)).min()
    }

    /// Idle workers beyond what is kept, those first that wait longest.
    fn take_surplus(&mut self) -> Vec<PoolWorker> {
        let surplus = (self.idle.len() + self.leased).saturating_sub(self.workers_max);
        let surplus = surplus.min(self.idle.len());
        self.idle.drain(..surplus).map(|idle| idle.worker).collect()
    }
}

impl PoolShared {
    /// Takes a worker back after its lease; `None`: it is gone.
    pub(super) fn give_back(&self, worker: Option<PoolWorker>) {
        let mut state = self.lock();
        state.leased -= 1;
        let closed = state.closed;
        let mut surplus = Vec::new();
        match worker {
            Some(worker) if closed => surplus.push(worker),
            Some(worker) => {
                let since = Instant::now();
                state.idle.push(Idle { worker, since });
                surplus = state.take_surplus();
            }
            None => {}
        }
        drop(state);
        self.changed.notify_all();
        end_all(surplus);
    }

    fn start_keeper(self: &Arc<Self>, state: &mut PoolState) -> io::Result<()> {
        if state.has_keeper {
            return Ok(());
        }
        let shared = Arc::clone(self);
        std::thread::Builder::new()
            .name("workers".into())
            .spawn(move || shared.keep())?;
        state.has_keeper = true;
        Ok(())
    }

    /// The keeper's life.
    fn keep(self: &Arc<Self>) {
        let mut state = self.lock();
        loop {
            if let Some(wanted) = state.wanted.pop_front() {
                state.preparing = wanted.answer.is_none();
                drop(state);
                let started = self.start(&wanted.command);
                let surplus = match wanted.answer {
                    Some(answer) => {
                        let _ = answer.send(started);
                        Vec::new()
                    }
                    None => self.give(started.ok()),
                };
                end_all(surplus);
                state = self.lock();
                state.preparing = false;
                continue;
            }
            let mut dead = Vec::new();
            state.take_dead(&mut dead);
            let tired = state.take_tired(self.idle_longest);
            if !dead.is_empty() || !tired.is_empty() {
                drop(state);
                drop(dead);
                end_all(tired);
                state = self.lock();
                continue;
            }
            if state.closed && state.leased == 0 {
                return;
            }
            let longest = state.next_look(self.idle_longest);
            state = self.wait(state, longest);
        }
    }

    /// Gives a prepared worker to a lease that has come meanwhile, or lets it wait; returns those that are too many now.
    fn give(&self, prepared: Option<PoolWorker>) -> Vec<PoolWorker> {
        let Some(worker) = prepared else {
            return Vec::new();
        };
        let mut state = self.lock();
        let fits = |wanted: &Wanted| wanted.command == worker.command;
        let waiting = state.wanted.iter().position(fits);
        match waiting.and_then(|at| state.wanted.remove(at)?.answer) {
            Some(answer) => {
                let _ = answer.send(Ok(worker));
            }
            None => state.idle.push(Idle {
                worker,
                since: Instant::now(),
            }),
        }
        state.take_surplus()
    }

    fn wait<'a>(
        &self,
        state: MutexGuard<'a, PoolState>,
        longest: Option<Duration>,
    ) -> MutexGuard<'a, PoolState> {
        match longest {
            None => self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner),
            Some(longest) => {
                let waited = self.changed.wait_timeout(state, longest);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        }
    }

    fn start(self: &Arc<Self>, command: &WorkerCommand) -> io::Result<PoolWorker> {
        let shared = Arc::downgrade(self);
        // The keeper looks which one it is: an idle worker that died is to be reaped.
        PoolWorker::start(command, move || {
            if let Some(shared) = shared.upgrade() {
                shared.lock().dying_until = Some(Instant::now() + DYING);
                shared.changed.notify_all();
            }
        })
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        lock(&self.state)
    }
}

impl Drop for ProcessPool {
    fn drop(&mut self) {
        if self.shared.driver != std::process::id() {
            return;
        }
        let mut state = self.shared.lock();
        state.closed = true;
        let idle = std::mem::take(&mut state.idle);
        drop(state);
        end_all(idle.into_iter().map(|idle| idle.worker).collect());
        // Only now may the keeper end: with it would end, at once, whatever it started.
        self.shared.changed.notify_all();
    }
}

/// Ends workers that have nothing to do: by the end of their stdin, all at once, or by force.
fn end_all(mut workers: Vec<PoolWorker>) {
    for worker in &mut workers {
        worker.process.close_stdin();
    }
    let start = Instant::now();
    for worker in &workers {
        worker.process.wait(ENDING.saturating_sub(start.elapsed()));
    }
}

fn no_keeper() -> io::Error {
    io::Error::other("the thread that starts workers is gone")
}

impl fmt::Debug for ProcessPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.lock();
        f.debug_struct("Processes")
            .field("idle", &state.idle.len())
            .field("leased", &state.leased)
            .field("workers_max", &state.workers_max)
            .finish_non_exhaustive()
    }
}

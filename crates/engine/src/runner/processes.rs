//! The processes runner: each slot has a worker process, which gets specs as bytes and returns reports as bytes.
//!
//! ```text
//!   slot ── what tasks share, once; then a task ──▶ worker process (worker.rs)
//!     ▲ ◀──────────── report, or error ───────────── │
//!     └──── pulse: beats and bytes done, all the while ┘
//! ```
//!
//! A worker that dies, or whose pulse stands still, takes its attempt along: the attempt is lost, the worker is killed
//! with its group, and the next attempt has another one. What a lost worker still says cannot arrive, as its pipe is
//! closed. Tasks with a stream of this process run in this process.
//!
//! Decision: docs/decisions/worker-processes.md.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::attempts::AttemptOutcome;
use super::messages::{reply_of, task_bytes};
use super::shared::JobSetup;
use super::slots::{Slot, run_in_slots};
use super::threads::Thread;
use super::{Runner, RunnerHooks};
use crate::driver::Driver;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_tasks::task::wire::{self, Sender};
use gristmill_tasks::task::{TaskAttempt, TaskContext, TaskSpec};
use gristmill_tasks::worker::{
    self, Leased, WorkerCommand, WorkerDefinition, WorkerError, WorkerLimits,
};

/// How long a worker may show no sign of life. It shows ten a second, from a thread of its own: a machine that is short
/// of memory delays them, one that is alive not by so much.
const SILENCE: Duration = Duration::from_secs(10);

/// How long a worker whose task is stopped has to end by itself, and to end what user code began.
const GRACE: Duration = Duration::from_secs(1);

/// How often workers may be lost in succession, over all slots, before the job gives up: no attempt came to its end in
/// between, so that another one will hardly.
const LOSSES_MAX: u32 = 40;

/// What the heaps of a worker grow by, tables of tasks apart: 0.6 MB was seen.
const GROWTH_BYTES: u64 = 768 << 10;

/// The same of workers that did not even start, which takes a tenth of a second each.
const FAILED_STARTS_MAX: u32 = 10;

/// Runs tasks in processes of a command.
#[derive(Debug)]
pub struct ProcessRunner {
    command: WorkerCommand,
    pool: worker::ProcessPool,
    /// Workers lost since the last attempt that came to its end.
    losses: AtomicU32,
}

impl ProcessRunner {
    /// Runs tasks in processes that `command` begins; each calls [`super::worker::serve`].
    ///
    /// ```
    /// use gristmill_engine::runner::{Runner, processes::ProcessRunner};
    /// use gristmill_engine::worker::WorkerCommand;
    /// let runner = ProcessRunner::new(WorkerCommand::new("/bin/false", "/tmp"));
    /// assert!(!runner.shares_memory());
    /// assert!(runner.held_bytes(2).unwrap_err().to_string().contains("exited with code 1"));
    /// ```
    pub fn new(command: WorkerCommand) -> Self {
        ProcessRunner {
            command,
            pool: worker::ProcessPool::new(1),
            losses: AtomicU32::new(0),
        }
    }

    /// What a worker holds that has nothing to do.
    fn measure(&self) -> Result<u64, WorkerError> {
        self.lease()?.idle_bytes()
    }

    fn lease(&self) -> Result<Leased, WorkerError> {
        self.pool.lease(&self.command, &[0; 32])
    }
}

impl Runner for ProcessRunner {
    fn shares_memory(&self) -> bool {
        false
    }

    /// Measured at one worker, which then waits for the first task; and what its heaps grow by when it works.
    fn held_bytes(&self, workers: usize) -> Result<u64> {
        let mut measured = self.measure();
        for _ in 1..FAILED_STARTS_MAX {
            if measured.is_ok() {
                break;
            }
            measured = self.measure();
        }
        let bytes = measured.map_err(|error| not_started(&error))?;
        Ok((bytes + GROWTH_BYTES) * workers as u64)
    }

    fn run(
        &self,
        driver: &mut Driver,
        context: &TaskContext,
        workers: usize,
        hooks: RunnerHooks<'_, '_>,
    ) -> Result<()> {
        self.pool.keep(workers);
        let budget = &context.node.budget;
        let share = budget.limit_bytes().saturating_sub(budget.used_bytes()) / workers as u64;
        let bytes = wire::to_bytes(&JobSetup::of(context, share)?)?;
        let definition = WorkerDefinition {
            key: Sha256::digest(&bytes).into(),
            bytes: bytes.into(),
        };
        let slot = || ProcessSlot {
            runner: self,
            definition: &definition,
            leased: None,
            sender: Sender::default(),
            here: Thread::new(context),
        };
        let slots = (0..workers).map(|_| slot()).collect();
        run_in_slots(driver, context, slots, hooks)
    }
}

/// A slot with a worker process, once it has run a task.
struct ProcessSlot<'a> {
    runner: &'a ProcessRunner,
    definition: &'a WorkerDefinition,
    leased: Option<Leased>,
    /// What the process has been sent.
    sender: Sender,
    /// For tasks that only this process can run.
    here: Thread<'a>,
}

impl Slot for ProcessSlot<'_> {
    fn run(&mut self, spec: &TaskSpec, attempt: &TaskAttempt<'_>) -> AttemptOutcome {
        if spec.stays_here() {
            // The memory of the slot is this process's now.
            self.leased = None;
            self.runner.pool.dismiss();
            return self.here.run(spec, attempt);
        }
        self.here.forget();
        let task = task_bytes(&mut self.sender, attempt.id, spec);
        let ended = match task {
            Ok(task) => match self.run_there(&task, attempt) {
                Ok(reply) => self.ended(&reply),
                Err(WorkerError::Cancelled) => AttemptOutcome::Failed(Error::cancelled()),
                Err(error) => return self.lost(&error),
            },
            Err(error) => AttemptOutcome::Failed(error),
        };
        self.runner.losses.store(0, Ordering::Relaxed);
        ended
    }
}

impl ProcessSlot<'_> {
    fn run_there(
        &mut self,
        task: &[u8],
        attempt: &TaskAttempt<'_>,
    ) -> Result<Vec<u8>, WorkerError> {
        let worker = match &mut self.leased {
            Some(worker) => worker,
            none => none.insert(self.runner.lease()?),
        };
        let limits = WorkerLimits {
            timeout: Some(SILENCE),
            grace: GRACE,
            ..WorkerLimits::default()
        };
        let mut on_progress = |bytes| {
            let _ = attempt.progress(bytes); // the worker is told of a stop by the flag itself
        };
        worker.run(
            self.definition,
            task,
            limits,
            &attempt.stop,
            &mut on_progress,
        )
    }

    fn ended(&self, reply: &[u8]) -> AttemptOutcome {
        match reply_of(reply) {
            Ok((used, outcome)) => {
                let node = &self.here.context.node;
                node.budget.count_peak_of_other(used.peak_bytes);
                node.store.requests().add(used.requests);
                outcome.map_or_else(AttemptOutcome::Failed, AttemptOutcome::Done)
            }
            Err(error) => AttemptOutcome::Failed(error),
        }
    }

    /// The worker is gone, and with it what it was sent.
    fn lost(&mut self, error: &WorkerError) -> AttemptOutcome {
        self.leased = None;
        self.sender = Sender::default();
        let losses = self.runner.losses.fetch_add(1, Ordering::Relaxed) + 1;
        let never_started = matches!(error, WorkerError::NotStarted { .. });
        let most = if never_started {
            FAILED_STARTS_MAX
        } else {
            LOSSES_MAX
        };
        if losses < most {
            return AttemptOutcome::Lost(error.to_string());
        }
        AttemptOutcome::Failed(if never_started {
            not_started(error)
        } else {
            given_up(error, losses)
        })
    }
}

/// The error of workers that do not start.
fn not_started(error: &WorkerError) -> Error {
    let mut said = Error::new(Kind::Io, "start a worker process", error.to_string()).advise(
        "check that the program starts and that the system lets you have more processes, or run the job in threads",
    );
    if let WorkerError::NotStarted { stderr, .. } = error {
        said = said.detail("stderr", stderr.clone());
    }
    said.final_error()
}

/// The error of a job whose workers do not live.
fn given_up(error: &WorkerError, losses: u32) -> Error {
    let message = format!("{losses} worker processes in a row were lost; of the last one: {error}");
    let mut said = Error::new(Kind::Io, "run a task", message).advise(
        "check what ends the workers: the memory of the machine, its limits, its administrator",
    );
    if let WorkerError::Died { stderr, .. } | WorkerError::Hung { stderr, .. } = error {
        said = said.detail("stderr", stderr.clone());
    }
    said.final_error()
}

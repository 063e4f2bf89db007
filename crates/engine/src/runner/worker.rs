//! The worker's side of the processes runner: runs the tasks that the driver sends, until stdin ends.
//!
//! ```text
//!   stdin ──reader──▶ D  what the job's tasks share ──▶ TaskContext
//!                     T  a task ──▶ run_task ──▶ R ──▶ stdout
//!   heartbeat ──a beat and the bytes done, every BEAT──▶ pulse
//! ```
//!
//! The rule that must hold: the heartbeat does not depend on the task, so that a driver which misses it knows that the
//! process stands still. When stdin ends nobody wants the task any more: it is told to stop.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::messages::{WorkerUse, reply_bytes, task_of};
use super::shared::{BuildNativeExecutor, Host, JobSetup};
use super::threads::run_caught;
use gristmill_base::error::{Error, Result};
use gristmill_base::sync::lock;
use gristmill_base::sys::descriptors::raise_open_files;
use gristmill_base::sys::memory::keep_little_freed;
use gristmill_base::sys::threads::begin;
use gristmill_storage::net::requests::RequestCounts;
use gristmill_storage::stores::Stores;
use gristmill_tasks::task::wire::{self, Receiver};
use gristmill_tasks::task::{Scratch, TaskAttempt, TaskContext};
use gristmill_tasks::worker::channel::{FramePipe, Received, Replies, take_over};
use gristmill_tasks::worker::{DefinitionKey, Heartbeat, ProcessPool, RecordPosition};

/// Between two beats. A driver waits ten seconds for one: a hundred may be late.
const BEAT: Duration = Duration::from_millis(100);

/// Runs tasks for the driver at the other end of stdin and stdout, until that closes stdin. `native` makes the
/// executors of jobs whose code is ours.
///
/// # Errors
/// The driver sent what is not a task, or is gone.
pub fn serve(pulse: i32, store: Arc<Stores>, native: BuildNativeExecutor) -> Result<()> {
    keep_little_freed();
    raise_open_files();
    let progress = Arc::new(Progress::new(Heartbeat::adopt(pulse)?));
    let (frames, replies) = take_over().map_err(|error| broken(&error))?;
    let unwanted = Arc::new(AtomicBool::new(false));
    let (send, received) = sync_channel(1);
    let (theirs, beating) = (Arc::clone(&unwanted), Arc::clone(&progress));
    // Neither is waited for: this process ends with its tasks.
    begin("orders", move || read(frames, &send, &theirs))?;
    begin("beat", move || beating.beat())?;
    let mut server = Server {
        replies,
        store,
        counted: RequestCounts::default(),
        native,
        progress,
        unwanted,
        job: None,
        receiver: Receiver::default(),
        scratch: Scratch::default(),
    };
    let hello = server.replies.hello(crate::VERSION);
    let mut served = hello.map_err(|error| broken(&error));
    for frame in received {
        served = served.and_then(|()| server.take(frame?));
        if served.is_err() {
            break;
        }
    }
    ProcessPool::shared().dismiss();
    served
}

/// Passes frames on until there are no more; then nobody wants what runs.
fn read(mut frames: FramePipe, send: &SyncSender<Result<Received>>, unwanted: &AtomicBool) {
    while let Some(frame) = frames.receive().transpose() {
        let last = frame.is_err();
        let sent = send.send(frame.map_err(|error| broken(&error)));
        if last || sent.is_err() {
            break;
        }
    }
    unwanted.store(true, Ordering::Relaxed);
}

fn broken(error: &io::Error) -> Error {
    Error::bug("talk to the driver", error.to_string())
}

/// What the driver sees of the task that runs.
#[derive(Debug)]
struct Progress {
    pulse: &'static Heartbeat,
    done_bytes: AtomicU64,
    /// Whether a task runs: between tasks the driver sets the pulse to zero, and it stays so.
    runs: Mutex<bool>,
}

impl Progress {
    fn new(pulse: &'static Heartbeat) -> Self {
        Progress {
            pulse,
            done_bytes: AtomicU64::new(0),
            runs: Mutex::new(false),
        }
    }

    fn beat(&self) {
        loop {
            self.pulse.beat();
            self.show(|_| ());
            thread::sleep(BEAT);
        }
    }

    /// Shows the bytes done if a task runs, before `change` says whether one does from now on.
    fn show(&self, change: impl FnOnce(&mut bool)) {
        let mut runs = lock(&self.runs);
        if *runs {
            self.pulse.write(&RecordPosition {
                bytes_done: self.done_bytes.load(Ordering::Relaxed),
                ..RecordPosition::default()
            });
        }
        change(&mut runs);
    }

    /// Shows the bytes that `task` counts while it runs.
    fn of<T>(&self, task: impl FnOnce(&AtomicU64) -> T) -> T {
        self.done_bytes.store(0, Ordering::Relaxed);
        self.show(|runs| *runs = true);
        let result = task(&self.done_bytes);
        self.show(|runs| *runs = false);
        result
    }
}

/// What a worker has.
struct Server {
    replies: Replies,
    store: Arc<Stores>,
    /// The requests that the driver knows of.
    counted: RequestCounts,
    native: BuildNativeExecutor,
    progress: Arc<Progress>,
    /// Set when the driver wants nothing any more.
    unwanted: Arc<AtomicBool>,
    /// The job that tasks are of.
    job: Option<(DefinitionKey, Result<TaskContext>)>,
    /// What tasks share among them, as far as it has come.
    receiver: Receiver,
    scratch: Scratch,
}

impl Server {
    fn take(&mut self, frame: Received) -> Result<()> {
        match frame {
            Received::Definition { key, bytes } => {
                let setup: JobSetup = wire::from_bytes(&bytes)?;
                let host = Host {
                    workers: 1,
                    ..Host::default()
                };
                self.job = Some((key, setup.context(&self.store, self.native, &host)));
                Ok(())
            }
            Received::Task { key, bytes } => self.answer(key, &bytes),
        }
    }

    fn answer(&mut self, key: DefinitionKey, bytes: &[u8]) -> Result<()> {
        let Some((id, spec)) = task_of(bytes) else {
            return Err(Error::bug(
                "run a task",
                "the driver sent what is not a task",
            ));
        };
        let spec = self.receiver.from_bytes(spec)?;
        let (job, scratch) = (self.job.as_ref(), &mut self.scratch);
        let context = match job.filter(|(known, _)| *known == key) {
            Some((_, context)) => context.as_ref().map_err(Error::clone),
            None => Err(Error::bug("run a task", "its job is not known here")),
        };
        let outcome = match &context {
            Ok(context) => self.progress.of(|done_bytes| {
                let attempt = TaskAttempt {
                    id,
                    stop: Arc::clone(&self.unwanted),
                    done_bytes,
                    own_bytes: AtomicU64::new(0),
                };
                run_caught(&spec, context, &attempt, scratch)
            }),
            Err(error) => Err(error.clone()),
        };
        if outcome.is_err() {
            *scratch = Scratch::default(); // whatever state the attempt left it in
        }
        let peak_bytes = context.map_or(0, |context| context.node.budget.peak_bytes());
        let counts = self.store.requests().counts();
        let requests = counts.since(std::mem::replace(&mut self.counted, counts));
        let used = WorkerUse {
            peak_bytes,
            requests,
        };
        let reply = reply_bytes(used, outcome)?;
        self.replies.report(&reply).map_err(|error| broken(&error))
    }
}

//! The lease of a worker of the pool: for one task after another (`attempt.rs`), until it is given back.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::attempt::{WorkerAttempt, broken};
use super::command::WorkerCommand;
use super::failure::WorkerError;
use super::member::PoolWorker;
use super::pool::{PoolShared, ProcessPool};
use super::tail::Log;
use super::{DefinitionKey, TaskPrintout, WorkerDefinition, WorkerLimits};
use gristmill_base::sys::memory::Gauge;
use gristmill_storage::net::requests::RequestCounts;

/// The most that is kept of what an attempt printed, and again of its stderr: some hundred lines.
const PRINTED_BYTES_MAX: usize = 16 << 10;

/// A worker for one task after another, until dropped: then it waits in the pool for the next lease, unless a run
/// ended with an error.
///
/// ```
/// use gristmill_tasks::worker::{WorkerCommand, WorkerDefinition, WorkerLimits, ProcessPool};
/// use std::sync::atomic::AtomicBool;
/// # let script = r#"
/// # import os, struct
/// # def frame(kind, payload): os.write(1, kind + struct.pack("<I", len(payload)) + payload)
/// # def read(n):
/// #     data = b""
/// #     while len(data) < n:
/// #         data += os.read(0, n - len(data)) or exit()
/// #     return data
/// # frame(b"H", b"1")
/// # while True:
/// #     kind, n = struct.unpack("<cI", read(5))
/// #     payload = read(n)
/// #     if kind == b"T": frame(b"R", payload[32:].upper())
/// # "#;
/// let command = WorkerCommand::new("python3", "/tmp").argument("-c").argument(script);
/// let definition = WorkerDefinition { key: [7; 32], bytes: b"functions".as_slice().into() };
/// let pool = ProcessPool::new(2);
/// let mut worker = pool.lease(&command, &definition.key)?;
/// let report =
///     worker.run(&definition, b"{\"a\": 1}", WorkerLimits::default(), &AtomicBool::new(false), &mut |_| ())?;
/// assert_eq!(report, b"{\"A\": 1}");
/// drop(worker);
/// assert_eq!(pool.idle(), 1);
/// # Ok::<(), gristmill_tasks::worker::WorkerError>(())
/// ```
pub struct Leased {
    worker: Option<PoolWorker>,
    shared: Arc<PoolShared>,
    peak_bytes: u64,
    requests: RequestCounts,
}

impl ProcessPool {
    /// A worker of this command, warm if there is one. A new one says hello, or fails to, in its first run.
    pub fn lease(
        &self,
        command: &WorkerCommand,
        definition: &DefinitionKey,
    ) -> Result<Leased, WorkerError> {
        Ok(Leased {
            worker: Some(self.take(command, definition)?),
            shared: Arc::clone(&self.shared),
            peak_bytes: 0,
            requests: RequestCounts::default(),
        })
    }
}

impl Leased {
    /// The worker's process number; `None` once a run ended with an error.
    pub fn id(&self) -> Option<u32> {
        self.worker.as_ref().map(|worker| worker.process.id())
    }

    /// The most anonymous memory that the worker and its children were seen to hold during runs of this lease. 0
    /// where that is not known.
    pub fn peak_bytes(&self) -> u64 {
        self.peak_bytes
    }

    /// The requests to stores that the worker has sent in the last run, also in one that ended with an error.
    pub fn requests(&self) -> RequestCounts {
        self.requests
    }

    /// What the last run has printed and written to stderr, the end of it; nothing after an error, which has it.
    pub fn printed(&self) -> TaskPrintout {
        let Some(worker) = &self.worker else {
            return TaskPrintout::default();
        };
        TaskPrintout {
            stdout: worker.process.printed().last_bytes(PRINTED_BYTES_MAX),
            stderr: worker.process.tail().last_bytes(PRINTED_BYTES_MAX),
        }
    }

    /// Passes on what the worker writes to its stderr, line by line, until the lease ends.
    pub fn log_to(&self, log: Option<Log>) {
        if let Some(worker) = &self.worker {
            worker.process.tail().log_to(log);
        }
    }

    /// Waits until the worker is there, and gives the anonymous memory that it holds with nothing to do. 0 where that is
    /// not known.
    ///
    /// # Errors
    /// It did not start.
    pub fn idle_bytes(&mut self) -> Result<u64, WorkerError> {
        let Some(worker) = &mut self.worker else {
            return Err(broken("it ended in an earlier task"));
        };
        let stop = AtomicBool::new(false);
        let hello =
            WorkerAttempt::new(worker, WorkerLimits::default(), &stop, &mut |_| ()).expect_hello();
        match hello {
            Ok(()) => Ok(Gauge::new(worker.process.id()).own_bytes().unwrap_or(0)),
            Err(error) => {
                self.worker = None;
                Err(error)
            }
        }
    }

    /// Runs a task and gives its report. `on_progress` is told how many bytes of input were done since it was told
    /// last. When `stop` is seen, the worker is killed. After an error it is gone, and every further run fails.
    pub fn run(
        &mut self,
        definition: &WorkerDefinition,
        task_json: &[u8],
        limits: WorkerLimits,
        stop: &AtomicBool,
        on_progress: &mut dyn FnMut(u64),
    ) -> Result<Vec<u8>, WorkerError> {
        let Some(mut worker) = self.worker.take() else {
            return Err(WorkerError::Broken("it ended in an earlier task".into()));
        };
        if worker.started.is_none() {
            worker.process.tail().clear(); // what a new one said is why it did not start, if it did not
            worker.process.printed().clear();
        }
        let mut attempt = WorkerAttempt::new(&mut worker, limits, stop, on_progress);
        let report = attempt.run(definition, task_json);
        self.peak_bytes = self.peak_bytes.max(attempt.peak_bytes);
        self.requests = worker.take_requests();
        if report.is_ok() {
            worker.process.tail().settle();
            worker.process.printed().settle();
            self.worker = Some(worker);
        }
        report
    }
}

impl Drop for Leased {
    fn drop(&mut self) {
        if let Some(worker) = &self.worker {
            worker.process.tail().log_to(None);
        }
        self.shared.give_back(self.worker.take());
    }
}

impl fmt::Debug for Leased {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Leased({:?})", self.id())
    }
}

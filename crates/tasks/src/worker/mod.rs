//! Worker processes: user code runs in them, never in the driver, since only a process can be killed,
//! measured and survived.
//!
//! ```text
//!   driver                                     worker (its own process group)
//!   ProcessPool ─ lease ─▶ Leased::run ── D, T ──▶ stdin        frames (frame.rs)
//!                            ▲  ▲  ▲  ◀─ H, R, F ─ stdout
//!                            │  │  └── Heartbeat ◀── a shared page  where it stands (heartbeat.rs)
//!                            │  └───── OutputTail ◀─ stderr         what it said last (tail.rs)
//!                            └──────── /proc                        what it holds (sys/memory.rs)
//! ```
//!
//! Rules: whatever a worker does (crash, hang, eat memory, write garbage, flood its stderr, leave children), the
//! driver gets a [`WorkerError`] that says what and where, within a look (20 ms) or the given timeout; a worker that
//! did not end its task well is killed with its process group and reaped; none outlives the driver.

mod attempt;
pub mod channel;
mod command;
mod failure;
mod frame;
mod heartbeat;
mod lease;
mod member;
mod pool;
mod process;
mod tail;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use command::WorkerCommand;
pub use failure::{FailureKind, TaskFailure, Where, WorkerError};
pub use heartbeat::{Heartbeat, PULSE_BYTES, RecordPosition};
pub use lease::Leased;
pub use pool::ProcessPool;
pub use process::WorkerProcess;
pub use tail::{Log, OutputTail};

pub use gristmill_base::sys::death::Death;

/// Names a definition: a hash of its bytes, or anything else that no two definitions share.
pub type DefinitionKey = [u8; 32];

/// What the tasks of a job have in common, for the worker alone to understand (pickled functions). A worker gets it
/// once, before its first task of the job.
#[derive(Debug, Clone)]
pub struct WorkerDefinition {
    /// Its name.
    pub key: DefinitionKey,
    /// Its bytes.
    pub bytes: Arc<[u8]>,
}

/// The end of what a task printed: its stdout and its stderr, apart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskPrintout {
    /// What it printed.
    pub stdout: String,
    /// What it wrote to stderr.
    pub stderr: String,
}

impl TaskPrintout {
    /// Whether it said nothing.
    pub fn is_empty(&self) -> bool {
        self.stdout.is_empty() && self.stderr.is_empty()
    }
}

/// When a running worker is given up.
#[derive(Debug, Clone, Copy, Default)]
pub struct WorkerLimits {
    /// The longest time without a change of the pulse.
    pub timeout: Option<Duration>,
    /// The most anonymous memory of the worker and its children together.
    pub memory_bytes: Option<u64>,
    /// How long a worker whose task is stopped has to end by itself, once its stdin has ended.
    pub grace: Duration,
}

//! What happens in a job, as values: one event to a line of JSON.
//!
//! ```text
//!   job_submitted  job_planned  (phase_started (attempt_started run_spilled* attempt_finished)*)*  job_finished
//!                                     ... sample, twice a second ...
//! ```
//!
//! docs/internals/history.md says what each field means. A field is only ever added; what a reader does not know, it
//! leaves alone; an event of a kind that it does not know is [`Event::Unknown`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of the format that this program writes.
pub const VERSION: u32 = 1;

/// An event and when it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timed {
    /// Milliseconds since the job began.
    pub t_ms: u64,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A job began: the first event.
    JobSubmitted {
        /// The version of the format.
        version: u32,
        /// The job's name.
        job_id: String,
        /// Its command.
        command: String,
        /// Its options, as the engine was given them.
        spec: Value,
        /// When, in milliseconds since 1970.
        unix_ms: u64,
        /// The process.
        pid: u32,
        /// The program's version.
        program: String,
    },
    /// It is known how the job will go: what `explain` says, alternatives included.
    JobPlanned {
        /// The plan.
        plan: Value,
    },
    /// A phase began, and the one before ended: a stage of tasks, or a step between stages.
    PhaseStarted {
        /// Its name.
        name: String,
        /// Its tasks; 0 where it has none.
        tasks: u64,
        /// Bytes that they will work on.
        bytes: u64,
    },
    /// An attempt at a task began.
    AttemptStarted {
        /// The task's number in the job.
        task: u32,
        /// 0 for the first try.
        attempt: u32,
        /// The phase it belongs to.
        phase: String,
    },
    /// An attempt ended.
    AttemptFinished {
        /// The task's number in the job.
        task: u32,
        /// 0 for the first try.
        attempt: u32,
        /// How.
        outcome: Outcome,
        /// Why, if it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// What it did, by Hadoop's names.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        counters: BTreeMap<String, u64>,
    },
    /// An attempt that succeeded wrote a run.
    RunSpilled {
        /// The task's number in the job.
        task: u32,
        /// Where.
        path: String,
        /// Records in it.
        records: u64,
        /// Their bytes.
        bytes: u64,
    },
    /// What the job and the machine used so far, and have now.
    Sample(Sample),
    /// The job ended: the last event.
    JobFinished {
        /// How: `succeeded`, `failed`, `cancelled`.
        status: String,
        /// The job's report, as `--json` prints it.
        report: Value,
    },
    /// An event of a later version.
    #[serde(other)]
    Unknown,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// With its report.
    Succeeded,
    /// With an error.
    Failed,
    /// It was told to stop.
    Killed,
}

/// What the job and the machine used so far, and have now. Seconds and bytes are sums since whenever counting began:
/// differences between samples are what counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// CPU seconds of the process in user code.
    pub user_s: f64,
    /// CPU seconds of the process in the kernel.
    pub sys_s: f64,
    /// CPU seconds of the machine: user code, kernel, waiting for devices, taken by the host, idle.
    pub machine: MachineCpu,
    /// The process's anonymous and shared memory now.
    pub anon_bytes: u64,
    /// Its mapped files now.
    pub mapped_bytes: u64,
    /// What is reserved of the budget now.
    pub budget_bytes: u64,
    /// Bytes that the process has had read from devices.
    pub disk_read_bytes: u64,
    /// Bytes that it has had written to them.
    pub disk_write_bytes: u64,
    /// Bytes that the machine received from other machines.
    pub net_rx_bytes: u64,
    /// Bytes that it sent to them.
    pub net_tx_bytes: u64,
    /// Bytes that the phase's tasks have worked on.
    pub done_bytes: u64,
}

/// CPU seconds of all of a machine's processors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineCpu {
    /// In user code.
    pub user_s: f64,
    /// In the kernel.
    pub sys_s: f64,
    /// Idle, with a device at work.
    pub iowait_s: f64,
    /// Taken by the host for other machines.
    pub steal_s: f64,
    /// Idle.
    pub idle_s: f64,
}

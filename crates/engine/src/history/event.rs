//! What happens in a job, as values: one event to a line of JSON.
//!
//! ```text
//!   job_submitted  job_planned  job_began  (phase_started (attempt_started run_spilled* attempt_finished)* phase_finished)*
//!                                     ... sample, twice a second ...    output_publishing  (runs_read)  job_finished
//!   after a kill:  job_resumed  job_planned  job_began ...
//! ```
//!
//! docs/internals/history.md says what each field means. A field is only ever added; what a reader does not know, it
//! leaves alone; an event of a kind that it does not know is [`Event::Unknown`].

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use gristmill_base::sys::machine::MachineCpu;
use gristmill_storage::Stat;
use gristmill_storage::location::Location;
use gristmill_tasks::task::Checkpoint;

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
        /// The directory that relative paths among the options begin in.
        #[serde(
            default,
            skip_serializing_if = "Option::is_none",
            with = "gristmill_base::names"
        )]
        cwd: Option<PathBuf>,
        /// Who asked for it, and where.
        #[serde(flatten)]
        origin: JobOrigin,
    },
    /// What the job goes by, found once and held to by whoever resumes it.
    JobBegan(JobBasis),
    /// Tasks begin to run: the first time in a process, or again, from the first on, because the first way failed.
    TasksBegan {
        /// How often they had begun before in the same process.
        round: u32,
    },
    /// Another process resumes the job.
    JobResumed {
        /// When, in milliseconds since 1970.
        unix_ms: u64,
        /// The process.
        pid: u32,
    },
    /// The output is whole and proved, and is about to get its name.
    OutputPublishing {
        /// The file that will have it, or the directory.
        staged: FileVersion,
        /// The job's report so far.
        report: Value,
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
        /// Tasks that are over already, as another process did them.
        #[serde(default, skip_serializing_if = "is_zero")]
        kept: u64,
    },
    /// A phase ended.
    PhaseFinished {
        /// Its name.
        name: String,
        /// Seconds that it took.
        wall_s: f64,
        /// What was used meanwhile.
        #[serde(flatten)]
        used: PhaseUse,
    },
    /// An attempt at a task began.
    AttemptStarted {
        /// The task's number in the job.
        task: u32,
        /// 0 for the first try.
        attempt: u32,
        /// The phase it belongs to.
        phase: String,
        /// What it works on, in words for people.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        input: String,
        /// The node that it runs on, by the name that it has in this history; empty on one machine.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        node: String,
    },
    /// An attempt ended.
    AttemptFinished {
        /// The task's number in the job.
        task: u32,
        /// 0 for the first try.
        attempt: u32,
        /// How.
        outcome: AttemptStatus,
        /// Why, if it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// Bytes that it has worked on.
        #[serde(default, skip_serializing_if = "is_zero")]
        bytes: u64,
        /// What it did, by Hadoop's names.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        counters: BTreeMap<String, u64>,
        /// What the task was, as a number in hexadecimal, where what it made outlives the process.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fingerprint: Option<String>,
        /// What it made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kept: Option<Box<Checkpoint>>,
    },
    /// An attempt that succeeded wrote a run.
    RunSpilled {
        /// The task's number in the job.
        task: u32,
        /// Where.
        #[serde(with = "gristmill_base::names")]
        path: PathBuf,
        /// Records in it.
        records: u64,
        /// Their bytes.
        bytes: u64,
    },
    /// What the job and the machine used so far, and have now.
    Sample(Sample),
    /// Of a job on a cluster, at its end: which nodes read runs from which.
    RunsRead {
        /// Each pair of nodes of which one read from the other, or from itself.
        read: Vec<NodeRead>,
    },
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

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls")]
fn is_false(value: &bool) -> bool {
    !*value
}

/// Where a job was begun. Secrets have been taken out of it by who says so.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobOrigin {
    /// The command line.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        with = "gristmill_base::names"
    )]
    pub argv: Vec<OsString>,
    /// The machine's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
}

/// What a job goes by.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobBasis {
    /// Tasks at once.
    pub workers: usize,
    /// The budget.
    pub memory_bytes: u64,
    /// What the process held of it when the job was planned.
    #[serde(default)]
    pub held_bytes: u64,
    /// How many runs a merge may have open, where fewer files may be open than merges are planned for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_at_once: Option<usize>,
    /// How many nodes the plan is made for, where it runs on a cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<usize>,
    /// The files that are read, in order.
    pub inputs: Vec<FileVersion>,
    /// The SHA-256 of what the user code of a job is, in hexadecimal, where that is kept beside its output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// What stood at the output; nothing where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputBefore>,
}

/// What stands at an output before a job replaces it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputBefore {
    /// By what it is known again: a file by its numbers, a directory by the job whose proof it has. Nothing where there is
    /// neither.
    pub mark: Option<String>,
}

/// A file, as it is known again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileVersion {
    /// Its name when it was looked at, for people.
    pub path: Location,
    /// Its length.
    pub bytes: u64,
    /// When it was changed, in nanoseconds since 1970: as text, since it has more than 64 bits.
    pub modified_ns: String,
    /// The numbers of its file system and of itself there.
    pub identity: (u64, u64),
}

impl FileVersion {
    /// A file as the store knows it.
    pub fn new(path: impl Into<Location>, stat: &Stat) -> Self {
        FileVersion {
            path: path.into(),
            bytes: stat.bytes,
            modified_ns: stat.modified_ns.to_string(),
            identity: stat.identity,
        }
    }

    /// Whether that input is what `other` stands for, as far as length and time stamp tell: a copy that keeps both is. What
    /// a store says of the version counts, too.
    pub fn is_unchanged(&self, other: &FileVersion) -> bool {
        let is_version = !self.path.is_remote() || self.identity == other.identity;
        (self.bytes, &self.modified_ns) == (other.bytes, &other.modified_ns) && is_version
    }

    /// Whether that file, unchanged, is what `other` stands for. Names do not count: they may be given from elsewhere.
    pub fn is_same(&self, other: &FileVersion) -> bool {
        let key = |known: &FileVersion| (known.bytes, known.identity, known.modified_ns.clone());
        key(self) == key(other)
    }
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptStatus {
    /// With its report.
    Succeeded,
    /// With an error.
    Failed,
    /// It was told to stop.
    Killed,
}

/// What the job and the machine used so far, and have now. Seconds and bytes are sums since whenever counting began:
/// differences between samples are what counts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// CPU seconds in user mode: of the process, and of those below it which run user code.
    pub user_s: f64,
    /// CPU seconds in the kernel, likewise.
    pub sys_s: f64,
    /// Of both together, those of the process alone. Samples that lack it know no others.
    #[serde(default)]
    pub own_s: f64,
    /// CPU seconds of the machine: user code, kernel, waiting for devices, taken by the host, idle.
    pub machine: MachineCpu,
    /// The process's anonymous and shared memory now, with that of the processes below it which run user code.
    pub anon_bytes: u64,
    /// Its mapped files now.
    pub mapped_bytes: u64,
    /// What is reserved of the budget now.
    pub budget_bytes: u64,
    /// Bytes that these processes have had read from devices.
    pub disk_read_bytes: u64,
    /// Bytes that they have had written to them.
    pub disk_write_bytes: u64,
    /// Bytes that the machine received from other machines.
    pub net_rx_bytes: u64,
    /// Bytes that it sent to them.
    pub net_tx_bytes: u64,
    /// Bytes that the phase's tasks have worked on.
    pub done_bytes: u64,
    /// What each node of a cluster has used, where this sample says it; the rest of the sample is of the driver's machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeSample>,
}

/// What the job's agent on a node has used so far, and has now, with the processes below it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeSample {
    /// The name of the node in this history.
    pub node: String,
    /// CPU seconds in user mode.
    pub user_s: f64,
    /// CPU seconds in the kernel.
    pub sys_s: f64,
    /// Of both together, those of the agent alone.
    pub own_s: f64,
    /// CPU seconds of the machine; of several nodes on one machine only the first has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineCpu>,
    /// Anonymous and shared memory now.
    pub anon_bytes: u64,
    /// Bytes read from devices.
    pub disk_read_bytes: u64,
    /// Bytes written to them.
    pub disk_write_bytes: u64,
    /// Bytes of its own runs that it read.
    pub own_bytes: u64,
    /// Bytes of runs that it sent to other nodes.
    pub sent_bytes: u64,
    /// Bytes of runs that other nodes sent to it.
    pub received_bytes: u64,
    /// Bytes of runs of other nodes that it read as files, since it sees their folders.
    pub file_bytes: u64,
    /// Whether it is lost: nothing of this changes any more.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_lost: bool,
}

/// Bytes of runs that a node read from a node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRead {
    /// The node that read.
    pub by: String,
    /// The node that keeps the runs, which may be the same.
    pub kept_by: String,
    /// Over the network.
    pub received_bytes: u64,
    /// As files.
    pub file_bytes: u64,
}

/// What a phase used: CPU seconds, bytes, and how many of its slots were taken. `python/gristmill/history/causes.py` tells
/// from it what held the phase back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseUse {
    /// CPU seconds in user mode: of the process, and of those below it which run user code.
    pub user_s: f64,
    /// CPU seconds in the kernel, likewise.
    pub sys_s: f64,
    /// Of both together, those of the process alone.
    pub own_s: f64,
    /// Bytes that these processes had read from devices.
    pub read_bytes: u64,
    /// Bytes that they had written to them.
    pub write_bytes: u64,
    /// CPU seconds of the machine.
    pub machine: MachineCpu,
    /// Tasks that could run at the same time; 1 for a step that is not a stage of tasks.
    pub slots: usize,
    /// Processors that these could use.
    pub processors: usize,
    /// Seconds of all attempts together.
    pub running_s: f64,
    /// Whether tasks ran user code.
    pub user_code: bool,
}

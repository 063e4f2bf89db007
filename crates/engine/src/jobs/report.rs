//! The report of a job: what it did, used and proved. Its JSON is what `--json` prints.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::runner::phases::Phase;
use gristmill_base::error::{Error, Kind, Result, Spelling};

/// How a job ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It did what it was asked.
    Succeeded,
    /// It did not; the report's error says why.
    #[default]
    Failed,
    /// The user ended it.
    Cancelled,
}

impl Status {
    /// The status as it stands in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Status::Succeeded => "succeeded",
            Status::Failed => "failed",
            Status::Cancelled => "cancelled",
        }
    }
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct JobFailure {
    /// The stable name of the kind of error.
    pub kind: &'static str,
    /// One paragraph for people.
    pub message: String,
    /// File, offset, record and the like, by name.
    pub context: BTreeMap<Cow<'static, str>, String>,
    /// What is too long for the paragraph, such as a traceback.
    pub details: BTreeMap<Cow<'static, str>, String>,
}

/// Everything about a job that is over.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct JobReport {
    /// The job's name.
    pub job_id: String,
    /// Its command.
    pub command: &'static str,
    /// How it ended.
    pub status: Status,
    /// Seconds from beginning to end.
    pub wall_s: f64,
    /// CPU seconds in user mode: of this process, and of all below it that ran while the job did (workers, scripts, and
    /// what they began).
    pub user_s: f64,
    /// CPU seconds in the kernel, likewise.
    pub sys_s: f64,
    /// Peak of the anonymous and shared memory of this process, and of the anonymous memory of those below it (workers,
    /// scripts, and what they began), looked at ten times a second, if the job has user code.
    pub peak_anon_bytes: u64,
    /// Peak of its mapped files.
    pub peak_mapped_bytes: u64,
    /// Peak of what was reserved from the budget.
    pub budget_peak_bytes: u64,
    /// The budget.
    pub memory_bytes: u64,
    /// Tasks at once.
    pub workers: usize,
    /// Bytes read.
    pub input_bytes: u64,
    /// Bytes of output.
    pub output_bytes: u64,
    /// Bytes a second, from beginning to end: of the output, or of the input where that is longer.
    pub bytes_per_s: f64,
    /// Whether the job waited until its output was durable; nothing where it has none.
    pub durable: Option<bool>,
    /// Records of the output (of the input, where there is no output).
    pub records: u64,
    /// Records whose key equals the key before, over the whole output.
    pub duplicate_keys: u64,
    /// The sum of the records' CRC-32s, in hexadecimal.
    pub checksum: String,
    /// Part files.
    pub parts: usize,
    /// The stages, in order.
    pub phases: Vec<Phase>,
    /// Counters by Hadoop's names.
    pub counters: BTreeMap<&'static str, u64>,
    /// The counters of user code: groups, and in them names.
    pub user_counters: BTreeMap<String, BTreeMap<String, i64>>,
    /// Lines of a validator's report.
    pub report: Vec<String>,
    /// Of a sort of tables: the first rows that were left out, at most 20. What is wrong with each, and where it is.
    pub left_out: Vec<String>,
    /// Records or files out of order that a validator found.
    pub misorders: u64,
    /// The folder of the job's history, if one is kept.
    pub history: Option<String>,
    /// What went not as it should, and did no harm to the job.
    pub warnings: Vec<String>,
    /// What the user was told before the job's tasks began.
    pub notices: Vec<String>,
    /// What went wrong, if anything did.
    pub error: Option<JobFailure>,
    /// The same, for programs in Rust.
    #[serde(skip)]
    pub failure: Option<Error>,
}

impl JobReport {
    pub(super) fn new(job_id: &str, command: &'static str) -> Self {
        JobReport {
            job_id: job_id.to_owned(),
            command,
            checksum: "0".to_owned(),
            ..JobReport::default()
        }
    }

    /// Takes over the numbers of a job whose output has its name.
    pub(super) fn fill_from(&mut self, numbers: &Value) {
        let number = |name: &str| numbers.get(name).and_then(Value::as_u64).unwrap_or(0);
        (self.input_bytes, self.output_bytes) = (number("input_bytes"), number("output_bytes"));
        (self.records, self.parts) = (number("records"), number("parts") as usize);
        self.duplicate_keys = number("duplicate_keys");
        if let Some(checksum) = numbers.get("checksum").and_then(Value::as_str) {
            checksum.clone_into(&mut self.checksum);
        }
        if let Some(counters) = numbers.get("user_counters") {
            self.user_counters = BTreeMap::deserialize(counters).unwrap_or_default();
        }
    }

    /// The report of a job that was begun a second time, with what the first time took.
    pub(super) fn after(mut self, first: &JobReport) -> Self {
        self.wall_s += first.wall_s;
        self.user_s += first.user_s;
        self.sys_s += first.sys_s;
        for name in [
            "CPU_MILLISECONDS",
            "DATA_LOCAL_MAPS",
            "DEVICE_BYTES_READ",
            "FAILED_TASK_ATTEMPTS",
            "FAILED_SHUFFLE",
            "KILLED_TASK_ATTEMPTS",
            "LOST_AGENTS",
            "LOST_TASK_ATTEMPTS",
            "LOST_TASK_ATTEMPT_BYTES",
            "LOST_TASK_OUTPUTS",
            "SHUFFLED_MAPS",
            "SHUFFLE_BYTES_OTHER_NODES",
            "SHUFFLE_BYTES_RECEIVED",
            "SHUFFLE_BYTES_SAME_NODE",
            "SPECULATIVE_TASK_ATTEMPTS",
            "STORE_IO_REQUEST",
            "STORE_IO_RETRY",
            "STORE_IO_THROTTLED",
            "TOTAL_LAUNCHED_MAPS",
            "TOTAL_LAUNCHED_REDUCES",
        ] {
            if let Some(amount) = first.counters.get(name) {
                self.count(name, *amount);
            }
        }
        self.peak_anon_bytes = self.peak_anon_bytes.max(first.peak_anon_bytes);
        self.peak_mapped_bytes = self.peak_mapped_bytes.max(first.peak_mapped_bytes);
        self
    }

    /// Adds to a counter.
    pub(super) fn count(&mut self, name: &'static str, amount: u64) {
        *self.counters.entry(name).or_default() += amount;
    }

    /// The same, for those who know options by other names than the command line's.
    #[must_use]
    pub fn spelled(mut self, spelling: Spelling) -> Self {
        if let (Some(error), Some(failure)) = (&mut self.error, &self.failure) {
            error.message = failure.spelled(spelling);
        }
        self
    }

    pub(super) fn finish(&mut self, outcome: Result<()>) {
        self.status = match &outcome {
            Ok(()) => Status::Succeeded,
            Err(error) if error.kind() == Kind::Cancelled => Status::Cancelled,
            Err(_) => Status::Failed,
        };
        if let Err(error) = outcome {
            self.error = Some(failure(&error));
            self.failure = Some(error);
        }
    }
}

fn failure(error: &Error) -> JobFailure {
    JobFailure {
        kind: error.kind().name(),
        message: error.to_string(),
        context: error.context().iter().cloned().collect(),
        details: Vec::from(*error.details.clone()).into_iter().collect(),
    }
}

//! Tasks with people's own code: a split of the input to runs, or a partition of the runs to files.
//!
//! What such a task does is not the engine's: a worker process with Python functions, or a script. The engine says
//! what to read, where to write, and how much memory there is ([`WorkSpec`]); [`Work`] does it and says what came out
//! ([`WorkReport`]). Both are values that travel as JSON.
//!
//! ```text
//!   map      split ──▶ the user's map ──▶ Collector ──▶ runs, cut into partitions   or, without a reduce, files
//!   reduce   a partition of all runs ──▶ Feed ──▶ the user's reduce ──▶ files
//! ```
//!
//! Files lie in a folder of the attempt; those of the attempts that count are moved to the output when all is done.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Attempt, MergeRun, TaskContext, WorkAgain};
use crate::error::{Error, Result};
use crate::spill::SpilledRun;
use crate::spill::collect::CollectPlan;
use crate::storage::{Caching, FileKind, Store};

/// Bytes that are read at once.
const READ_BYTES: usize = 1 << 20;

/// Somebody who runs people's code.
pub trait Work: Send + Sync + std::fmt::Debug {
    /// Does one attempt of a task. Blocks until it is over; ends soon after `attempt` is told to stop.
    fn run(&self, spec: &WorkSpec, attempt: &Attempt<'_>) -> Result<WorkReport>;

    /// What another process needs to do the same, if it can.
    fn again(&self) -> Option<WorkAgain> {
        None
    }
}

/// A part of the input, for one map task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkSplit {
    /// Bytes of input in it.
    pub bytes: u64,
    /// What it is: for whoever reads it.
    pub what: Value,
}

/// Which kind of task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkKind {
    /// Read a split.
    Map {
        /// The split's number.
        number: u32,
        /// Bytes of input in it.
        bytes: u64,
        /// What it is.
        what: Value,
    },
    /// Reduce a partition.
    Reduce {
        /// Its number.
        partition: u32,
        /// All runs, in input order.
        runs: Arc<Vec<MergeRun>>,
        /// Bytes of each of the two buffers of a run.
        source_bytes: usize,
    },
}

/// What to do, and with what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkSpec {
    /// The job.
    pub job_id: String,
    /// The task's number in the job; set with the attempt's.
    pub task: u32,
    /// The attempt's number.
    pub attempt: u32,
    /// How many partitions there are; 0 where the maps' output is the job's.
    pub partitions: u32,
    /// Where runs may be written, in order.
    pub places: Vec<PathBuf>,
    /// Memory for pairs and their entries.
    pub chunk_bytes: usize,
    /// Bytes of each buffer of a writer of runs.
    pub buffer_bytes: usize,
    /// The folder of the attempt's files, which it makes if it has any.
    pub output: PathBuf,
    /// The task.
    pub work: WorkKind,
}

impl WorkSpec {
    /// How this task collects pairs.
    pub fn collect_plan(&self) -> CollectPlan {
        CollectPlan {
            partitions: self.partitions.max(1),
            chunk_bytes: self.chunk_bytes,
            buffer_bytes: self.buffer_bytes,
            job_id: self.job_id.clone(),
            places: self.places.clone(),
        }
    }

    /// The common name of its runs.
    pub fn run_name(&self) -> String {
        format!("{:05}-{}", self.task, self.attempt)
    }
}

/// A file that a task wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkFile {
    /// Its name, in the attempt's folder and in the output.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// Records in it.
    pub records: u64,
    /// The CRC of all of it: taken by who wrote it, or else by whoever had the task done, where the file must be known
    /// again.
    #[serde(skip)]
    pub crc: Option<u32>,
}

/// What came out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkReport {
    /// Runs of pairs.
    pub runs: Vec<SpilledRun>,
    /// The folder that the files are in.
    pub folder: PathBuf,
    /// Files of output.
    pub files: Vec<WorkFile>,
    /// Records of the split, or pairs of the partition.
    pub records_in: u64,
    /// Bytes of the split that were consumed, or of those pairs.
    pub bytes_in: u64,
    /// Pairs that the map put out, or records that were written.
    pub records_out: u64,
    /// Their bytes.
    pub bytes_out: u64,
    /// Groups that were reduced.
    pub groups: u64,
    /// Pairs that were combined.
    pub combine_in: u64,
    /// What they became.
    pub combine_out: u64,
    /// CPU milliseconds in user code, of the processes that did it.
    pub user_ms: u64,
    /// And in the kernel.
    pub sys_ms: u64,
    /// Records that were left out, as the user's code failed at them.
    pub skipped: u64,
    /// Of a reduce, where groups were left out: their pairs, which `records_in` does not count.
    pub skipped_records: u64,
    /// The user's counters: groups, and in them names.
    pub counters: BTreeMap<String, BTreeMap<String, i64>>,
    /// What the user's code last said of itself.
    pub status: String,
}

impl WorkReport {
    /// Records in the runs.
    pub fn run_records(&self) -> u64 {
        self.runs.iter().map(|run| run.records).sum()
    }

    /// By Hadoop's names.
    pub(super) fn counters(&self) -> Vec<(&'static str, u64)> {
        let spilled: u64 = self.run_records();
        let run_bytes: u64 = self.runs.iter().map(|run| run.bytes).sum();
        let file_bytes: u64 = self.files.iter().map(|file| file.bytes).sum();
        let (input, output) = if self.groups > 0 {
            ("REDUCE_INPUT_RECORDS", "REDUCE_OUTPUT_RECORDS")
        } else {
            ("MAP_INPUT_RECORDS", "MAP_OUTPUT_RECORDS")
        };
        vec![
            (input, self.records_in),
            (output, self.records_out),
            ("SPILLED_RECORDS", spilled),
            ("FILE_BYTES_READ", self.bytes_in),
            ("FILE_BYTES_WRITTEN", run_bytes + file_bytes),
        ]
    }
}

pub(super) fn run(
    spec: &WorkSpec,
    context: &TaskContext,
    attempt: &Attempt<'_>,
) -> Result<WorkReport> {
    let work = context.work.as_ref();
    let work = work.ok_or_else(|| Error::bug("run a task", "the job has nobody to work"))?;
    let mut spec = spec.clone();
    (spec.task, spec.attempt) = (attempt.id.task, attempt.id.attempt);
    spec.output = spec.output.join(format!("{}-{}", spec.task, spec.attempt));
    let _memory = context
        .budget
        .reserve("people's code", spec.chunk_bytes as u64)?;
    let mut report = work.run(&spec, attempt)?;
    report.folder = spec.output;
    if context.remembered {
        for file in report.files.iter_mut().filter(|file| file.crc.is_none()) {
            file.crc = crc_of(&*context.store, &report.folder.join(&file.name))?;
        }
    }
    Ok(report)
}

/// The CRC of a file's bytes; of what is no file, none. What was just written through the page cache is still there.
pub fn crc_of(store: &dyn Store, path: &Path) -> Result<Option<u32>> {
    let found = store.stat(path)?.map(|stat| stat.kind);
    if found != Some(FileKind::File) {
        return Ok(None);
    }
    let file = store.open(path, Caching::Cached)?;
    let mut buffer = vec![0; READ_BYTES];
    let (mut hasher, mut offset) = (crc32fast::Hasher::new(), 0);
    loop {
        let read = file.read_at(&mut buffer, offset)?;
        hasher.update(buffer.get(..read).unwrap_or_default());
        offset += read as u64;
        if read < buffer.len() {
            return Ok(Some(hasher.finalize()));
        }
    }
}

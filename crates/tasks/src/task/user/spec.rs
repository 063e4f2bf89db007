//! What an executor of user code is told of an attempt, and what it says.
//!
//! The engine says what to read, where to write, and how much memory there is ([`UserAttemptSpec`]); the executor does
//! it and says what came out ([`UserTaskReport`]). Both travel as JSON to worker processes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::input_ranges::InputRanges;
use super::key_types::Kinds;
use super::split::SplitData;
use crate::merge::feed::{FEED_BYTES, FeedRun, MergedPairs};
use crate::spill::SpilledRun;
use crate::spill::collect::{CollectPlan, partition_bytes};
use crate::task::runs::{AgentFolders, MergeRun};
use crate::worker::TaskPrintout;
use gristmill_base::budget::Budget;
use gristmill_base::error::{Error, Result};
use gristmill_storage::Store;
use gristmill_storage::agents::ReadOf;
use gristmill_storage::objects::Upload;
use gristmill_storage::sorted_run::RunCompression;

/// Which kind of task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UserTaskKind {
    /// Read a split.
    Map {
        /// The split's number.
        number: u32,
        /// Bytes of input in it.
        bytes: u64,
        /// What it is.
        what: SplitData,
    },
    /// Reduce a partition.
    Reduce {
        /// Its number.
        partition: u32,
        /// All runs, in input order.
        #[serde(with = "crate::task::wire::shared")]
        runs: Arc<Vec<MergeRun>>,
        /// Bytes of each of the two buffers of a run.
        source_bytes: usize,
    },
    /// Make other pairs of a partition, which are then reduced.
    Regroup {
        /// Its number.
        partition: u32,
        /// All runs, in input order.
        #[serde(with = "crate::task::wire::shared")]
        runs: Arc<Vec<MergeRun>>,
        /// Bytes of each of the two buffers of a run.
        source_bytes: usize,
        /// The part of the input that each of the new partitions is.
        #[serde(with = "crate::task::wire::shared")]
        ranges: Arc<InputRanges>,
    },
}

impl UserTaskKind {
    /// The partition that it merges, all runs, and the bytes of each buffer of a run; nothing of a map.
    pub fn merged(&self) -> Option<(u32, &Arc<Vec<MergeRun>>, usize)> {
        match self {
            UserTaskKind::Map { .. } => None,
            UserTaskKind::Reduce {
                partition,
                runs,
                source_bytes,
            }
            | UserTaskKind::Regroup {
                partition,
                runs,
                source_bytes,
                ..
            } => Some((*partition, runs, *source_bytes)),
        }
    }
}

/// What an executor is told of an attempt: what to do, and with what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserAttemptSpec {
    /// The job.
    pub job_id: String,
    /// The task's number in the job.
    pub task: u32,
    /// The attempt's number.
    pub attempt: u32,
    /// How many partitions there are; 0 where the maps' output is the job's.
    pub partitions: u32,
    /// Where runs may be written, in order.
    #[serde(with = "gristmill_base::names")]
    pub places: Vec<PathBuf>,
    /// Memory for pairs and their entries.
    pub chunk_bytes: usize,
    /// Bytes of each buffer of a writer of runs.
    pub buffer_bytes: usize,
    /// Memory for what is read ahead of a far input.
    #[serde(default)]
    pub ahead_bytes: u64,
    /// How runs are compressed.
    #[serde(default)]
    pub compression: RunCompression,
    /// The folder of the attempt's files, which it makes if it has any.
    #[serde(with = "gristmill_base::names")]
    pub output: PathBuf,
    /// The task.
    pub work: UserTaskKind,
}

impl UserAttemptSpec {
    /// How this task collects pairs.
    pub fn collect_plan(&self) -> CollectPlan {
        CollectPlan {
            partitions: self.partitions.max(1),
            chunk_bytes: self.chunk_bytes,
            buffer_bytes: self.buffer_bytes,
            job_id: self.job_id.clone(),
            places: self.places.clone(),
            compression: self.compression,
        }
    }

    /// Has it write to the folders of an agent.
    pub(in crate::task) fn write_to(&mut self, places: &AgentFolders) {
        self.places = places.of_processes();
        self.output = places
            .attempts
            .join(self.output.file_name().unwrap_or_default());
    }

    /// The common name of its runs.
    pub fn run_name(&self) -> String {
        format!("{:05}-{}", self.task, self.attempt)
    }
}

/// A file that a task wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserTaskFile {
    /// Its name, in the attempt's folder and in the output.
    #[serde(with = "gristmill_base::names")]
    pub name: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// Records in it.
    pub records: u64,
    /// The CRC of all of it: taken by who wrote it, or else by whoever had the task done, where the file must be known
    /// again.
    #[serde(default)]
    pub crc: Option<u32>,
}

/// The group of a partition that has most pairs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LargestGroup {
    /// How many.
    pub pairs: u64,
    /// Its key, as users would write it.
    pub key: String,
}

/// What came out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UserTaskReport {
    /// Runs of pairs.
    pub runs: Vec<SpilledRun>,
    /// The folder that the files are in.
    #[serde(with = "gristmill_base::names")]
    pub folder: PathBuf,
    /// Files of output.
    pub files: Vec<UserTaskFile>,
    /// Where the output is in an object store: what completes these files.
    pub uploads: Vec<Upload>,
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
    /// The group with most pairs.
    pub largest_group: LargestGroup,
    /// Pairs that were combined.
    pub combine_in: u64,
    /// What they became.
    pub combine_out: u64,
    /// Records that were left out, as the user's code failed at them.
    pub skipped: u64,
    /// Of a reduce, where groups were left out: their pairs, which `records_in` does not count.
    pub skipped_records: u64,
    /// The user's counters: groups, and in them names.
    pub counters: BTreeMap<String, BTreeMap<String, i64>>,
    /// Which types that can be mistaken for each other the keys held: bits of [`super::key_types`] by the place in the key.
    pub kinds: Kinds,
    /// What the user's code last said of itself.
    pub status: String,
    /// What it printed; goes to the job's log.
    pub printed: TaskPrintout,
    /// What its process has read of the runs of agents since it last said so; the agent adds it up. The last field: what
    /// is left out of a sequence is at its end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<ReadOf>,
}

impl UserTaskReport {
    /// Records in the runs.
    pub fn run_records(&self) -> u64 {
        self.runs.iter().map(|run| run.records).sum()
    }
}

/// The pairs of the partition that a task which reduces or regroups has to read.
///
/// # Errors
/// The task is a map, or a run cannot be read.
///
/// ```
/// use std::sync::Arc;
/// use gristmill_storage::memory::Memory;
/// use gristmill_tasks::task::{UserAttemptSpec, feed_of};
/// let spec: UserAttemptSpec = serde_json::from_str(
///     r#"{"job_id": "a-job", "task": 0, "attempt": 0, "partitions": 1, "places": [], "chunk_bytes": 0, "buffer_bytes": 0,
///         "output": "/out", "work": {"reduce": {"partition": 0, "runs": [], "source_bytes": 4096}}}"#,
/// )?;
/// assert!(!feed_of(&spec, Arc::new(Memory::with_room_for(1 << 20))).unwrap().advance().unwrap());
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn feed_of(spec: &UserAttemptSpec, store: Arc<dyn Store>) -> Result<MergedPairs> {
    let Some((partition, runs, source_bytes)) = spec.work.merged() else {
        return Err(Error::bug("reduce", "the task is a map"));
    };
    let feed_run = |run: &MergeRun| FeedRun {
        path: run.path.clone(),
        longest: run.longest,
    };
    MergedPairs::begin(
        store,
        runs.iter().map(feed_run).collect(),
        partition as usize,
        partition_bytes(spec.partitions),
        source_bytes,
        Budget::new(spec.chunk_bytes as u64 + FEED_BYTES),
    )
}

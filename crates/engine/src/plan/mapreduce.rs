//! A job of user code: what it was given, and how its memory is shared.
//!
//! The splits are made by the code that knows the input's format (`split::text`, or the reader of another format); the
//! engine sees how many bytes each has, and hands the rest through.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;

use super::amount::check_count;
use super::spill::MemoryLayout;
use gristmill_base::budget::JobMemory;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_storage::io::window::{SHARE_BYTES_MAX, SHARE_BYTES_MIN};
use gristmill_storage::location::Location;
use gristmill_storage::sorted_run::RunCompression;
use gristmill_tasks::merge::feed::FEED_BYTES;
use gristmill_tasks::task::{InputRanges, UserTaskSplit};

/// Most partitions of a job: each is a file, and a bucket of every run.
pub const PARTITIONS_MAX: usize = 100_000;

/// What a native task has in this process beside the pairs: a block of lines, or of the file that a reduce begins, as it
/// grows.
const BLOCK_BYTES: u64 = 3 << 19;

/// What a task that makes other pairs of groups leaves behind in a worker: measured, 1.4 MB.
const REGROUP_BYTES: u64 = 2 << 20;

/// What a thread that merges runs holds beside its buffers: a job that had planned to its last byte held 0.41 MB more than its
/// budget's reserve, with two workers.
const PASS_BYTES: u64 = 256 << 10;

/// The part of the memory that tasks may have for what they read ahead of far inputs: one in so many.
const AHEAD_SHARE: u64 = 8;

/// The length of a pair to reckon with.
const TYPICAL_PAIR_BYTES: u64 = 64;

/// Who runs the user's code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UserCodeCommand {
    /// Python functions, in worker processes.
    #[default]
    Mapreduce,
    /// Scripts that read and write lines.
    Streaming,
    /// Code of our own, on the threads of the job.
    Native,
}

/// What is made of the files of the tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum OutputForm {
    /// A directory that has them.
    #[default]
    Directory,
    /// The same, where tasks name their files as the records say: so many at most.
    NamedFiles(u64),
    /// One file: they are put together, in the order of their names.
    File,
    /// The same on a stream: this one, or standard output.
    Stream(Option<PathBuf>),
}

impl OutputForm {
    /// Whether the files are put together to one.
    pub(crate) fn is_joined(&self) -> bool {
        matches!(self, OutputForm::File | OutputForm::Stream(_))
    }
}

/// Options of a job of user code, as given.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MapReduceSpec {
    /// What runs it.
    #[serde(default)]
    pub command: UserCodeCommand,
    /// The user's name for it.
    #[serde(default)]
    pub name: String,
    /// What the user gave as input, for people to read.
    #[serde(default)]
    pub inputs: Vec<String>,
    /// The files that must not change while the job runs; the history keeps their state, but not as options.
    #[serde(default)]
    pub files: Vec<Location>,
    /// Other files that must not change while the job runs; a resumed job compares their content.
    #[serde(default)]
    pub side_files: Vec<Location>,
    /// The files that the job's code is in: if the content of one changed, a job that was killed is not resumed.
    #[serde(default)]
    #[serde(with = "gristmill_base::names")]
    pub code: Vec<PathBuf>,
    /// Reason why this job cannot be resumed, if any.
    #[serde(default, rename = "once")]
    pub not_resumable_reason: Option<String>,
    /// Which job of which chain it is, for those who read its history: whoever resumes it goes on with the chain.
    #[serde(default)]
    pub chain: serde_json::Value,
    /// The parts of the input, one for each map task; the history keeps none of them.
    #[serde(default)]
    pub splits: Vec<UserTaskSplit>,
    /// How many partitions are reduced; 0 where the maps' output is the job's.
    pub partitions: u32,
    /// The directory or the file to make; nothing of a stream.
    pub output: Location,
    /// What of them it is. Those of user code are directories.
    #[serde(skip)]
    pub form: OutputForm,
    /// How many bytes each of the tasks' files begins with that one file of all, or a stream, has only at its beginning.
    #[serde(skip)]
    pub header_bytes: u64,
    /// Tries of a task.
    #[serde(default)]
    pub attempts: Option<usize>,
    /// Tries of a task that reduces, where these are others.
    #[serde(default)]
    pub reduce_attempts: Option<usize>,
    /// Whether a slow task may have a second attempt beside the first; by default yes.
    #[serde(default)]
    pub speculative: Option<bool>,
    /// The same of a task that reduces, where that is another answer.
    #[serde(default)]
    pub reduce_speculative: Option<bool>,
    /// Whether the files of the output are looked at together before they are published: those of a table get one schema.
    #[serde(default)]
    pub one_schema: bool,
    /// The parts of the input that the partitions are, where pairs are grouped twice.
    #[serde(skip)]
    pub regroups: Option<Arc<InputRanges>>,
    /// How many rows of tables may be left out, where the code is ours.
    #[serde(skip)]
    pub skip_bad: u64,
    /// Percent of the map tasks that may fail for good without the job failing.
    #[serde(default)]
    pub map_failures_percent: u32,
    /// Percent of the reduce tasks that may.
    #[serde(default)]
    pub reduce_failures_percent: u32,
}

/// The length of files of these lengths, put together: all but the first without a header of so many bytes.
pub fn joined_bytes(mut parts: impl Iterator<Item = u64>, header_bytes: u64) -> u64 {
    let first = parts.next().unwrap_or(0);
    first
        + parts
            .map(|bytes| bytes.saturating_sub(header_bytes))
            .sum::<u64>()
}

impl MapReduceSpec {
    /// The job's command, as reports name it.
    pub fn command(&self) -> &'static str {
        match self.command {
            UserCodeCommand::Mapreduce => "mapreduce",
            UserCodeCommand::Streaming => "streaming",
            UserCodeCommand::Native => "native",
        }
    }

    /// Bytes of all splits.
    pub fn input_bytes(&self) -> u64 {
        self.splits.iter().map(|split| split.bytes).sum()
    }

    /// Fails where a number makes no sense.
    pub fn check(&self) -> Result<()> {
        check_count("attempts", self.attempts, 1000)?;
        check_count("attempts", self.reduce_attempts, 1000)?;
        if self.partitions as usize > PARTITIONS_MAX {
            return Err(Error::new(
                Kind::BadOption,
                "read the options",
                format!(
                    "parts must be at most {PARTITIONS_MAX}, and {} were given",
                    self.partitions
                ),
            ));
        }
        Ok(())
    }

    /// What each of the workers has of so much memory for ranges that it reads ahead, where inputs are far; nothing where
    /// that is too little to be of use.
    pub fn ahead_bytes(&self, budget_bytes: u64, workers: usize) -> u64 {
        if !self.files.iter().any(Location::is_remote) {
            return 0;
        }
        let share = budget_bytes / AHEAD_SHARE / workers as u64;
        match share {
            ..SHARE_BYTES_MIN => 0,
            _ => share.min(SHARE_BYTES_MAX),
        }
    }

    /// Tries of a task that maps, and of one that reduces, after the first: three, as Hadoop's default of four attempts
    /// has it.
    pub fn retries(&self) -> (u32, u32) {
        let after = |attempts: Option<usize>| attempts.map_or(3, |attempts| attempts as u32 - 1);
        let reduces = self.reduce_attempts.or(self.attempts);
        (after(self.attempts), after(reduces))
    }

    /// Whether a slow task that maps may have a second attempt beside the first, and one that reduces.
    pub fn speculative(&self) -> (bool, bool) {
        let maps = self.speculative.unwrap_or(true);
        (maps, self.reduce_speculative.unwrap_or(maps))
    }

    /// What each worker of a native job holds beside its pairs.
    fn native_bytes(&self) -> u64 {
        let regrouping = self.regroups.as_ref().map_or(0, |_| REGROUP_BYTES);
        FEED_BYTES + BLOCK_BYTES + regrouping
    }

    /// How so much memory is shared by tasks, and by passes over their runs. Tasks of Python functions have processes of
    /// their own, where what this process holds takes no room, but what compresses runs does; the passes are done here.
    ///
    /// # Errors
    /// It is too little.
    pub fn memory_layouts(
        &self,
        room: JobMemory,
        workers: usize,
        compression: RunCompression,
    ) -> Result<(MemoryLayout, MemoryLayout)> {
        let of_tasks = match self.command {
            UserCodeCommand::Mapreduce => JobMemory {
                held_bytes: workers as u64 * compression.worker_bytes(),
                ..room
            },
            UserCodeCommand::Streaming => room,
            UserCodeCommand::Native => JobMemory {
                held_bytes: room.held_bytes + workers as u64 * self.native_bytes(),
                ..room
            },
        };
        let ahead_bytes = workers as u64 * self.ahead_bytes(room.budget_bytes, workers);
        let tasks = MemoryLayout::new(of_tasks.less(ahead_bytes), workers, TYPICAL_PAIR_BYTES, 0);
        let of_passes = JobMemory {
            held_bytes: room.held_bytes + workers as u64 * PASS_BYTES,
            ..room
        };
        let passes = MemoryLayout::to_merge(of_passes, workers);
        tasks
            .and_then(|tasks| Ok((tasks, passes?)))
            .map_err(|error| error.during("run the job"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(more: &str) -> MapReduceSpec {
        let text = format!(
            r#"{{"splits": [{{"bytes": 3, "what": null}}, {{"bytes": 4, "what": [1]}}], "partitions": 2, "output": "o"{more}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn what_is_given_is_read_and_checked() {
        let plain = spec("");
        assert_eq!(
            (plain.input_bytes(), plain.retries(), plain.command()),
            (7, (3, 3), "mapreduce")
        );
        assert!(plain.check().is_ok());
        assert_eq!(spec(r#", "attempts": 1"#).retries(), (0, 0));
        let both = spec(r#", "attempts": 3, "reduce_attempts": 1"#);
        assert_eq!(both.retries(), (2, 0));
        assert_eq!(spec(r#", "command": "streaming""#).command(), "streaming");
        for wrong in [r#", "attempts": 0"#, r#", "attempts": 1001"#] {
            assert_eq!(spec(wrong).check().unwrap_err().kind(), Kind::BadOption);
        }
        assert_eq!(plain.ahead_bytes(1 << 30, 2), 0, "inputs are here");
        let remote = spec(r#", "files": ["/a", "s3://b/c"]"#);
        let ahead = [15_000_000, 64_000_000, 1 << 40].map(|budget| remote.ahead_bytes(budget, 2));
        assert_eq!(ahead, [0, 4_000_000, 64_000_000]);
        let none = RunCompression::default();
        let chunk = |spec: &MapReduceSpec| {
            spec.memory_layouts(64_000_000.into(), 2, none)
                .unwrap()
                .0
                .chunk_bytes
        };
        assert!(chunk(&plain) - chunk(&remote) > 3_500_000);
        let many = MapReduceSpec {
            partitions: 100_001,
            ..plain
        };
        assert_eq!(many.check().unwrap_err().kind(), Kind::BadOption);
    }
}

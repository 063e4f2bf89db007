//! A job of people's own code: what it was given, and how its memory is shared.
//!
//! The splits are made by whoever knows the input's format (`split::text`, or the reader of another format); the
//! engine sees how many bytes each has, and hands the rest through.

use std::path::PathBuf;

use serde::Deserialize;

use super::amount::{Bytes, show_bytes};
use super::spill::SpillNumbers;
use crate::error::{Error, Kind, Result};
use crate::plan::options::check_count;
use crate::task::WorkSplit;

/// Most partitions of a job: each is a file, and a bucket of every run.
pub const MOST_PARTITIONS: usize = 100_000;

/// The length of a pair to reckon with.
const TYPICAL_PAIR_BYTES: u64 = 64;

/// Who runs the user's code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Command {
    /// Python functions, in worker processes.
    #[default]
    Mapreduce,
    /// Scripts that read and write lines.
    Streaming,
}

/// Options of a job of people's own code, as given.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MapReduceSpec {
    /// What runs it.
    #[serde(default)]
    pub command: Command,
    /// The user's name for it.
    #[serde(default)]
    pub name: String,
    /// What the user gave as input, for people to read.
    #[serde(default)]
    pub inputs: Vec<String>,
    /// The files that must not change while the job runs; the history keeps their state, but not as options.
    #[serde(default)]
    pub files: Vec<PathBuf>,
    /// The files that the job's code is in: if one changed, a job that was killed is not gone on with.
    #[serde(default)]
    pub code: Vec<PathBuf>,
    /// Why the job could not be gone on with if it were killed, if there is a reason.
    #[serde(default)]
    pub once: Option<String>,
    /// The parts of the input, one for each map task; the history keeps none of them.
    #[serde(default)]
    pub splits: Vec<WorkSplit>,
    /// How many partitions are reduced; 0 where the maps' output is the job's.
    pub partitions: u32,
    /// The directory to make.
    pub output: PathBuf,
    /// Most memory.
    #[serde(default)]
    pub memory: Option<Bytes>,
    /// Tasks at once.
    #[serde(default)]
    pub workers: Option<usize>,
    /// Where runs go; beside the output where empty.
    #[serde(default)]
    pub spill_dir: Vec<PathBuf>,
    /// Replace the output.
    #[serde(default)]
    pub overwrite: bool,
    /// Do not make it durable.
    #[serde(default)]
    pub no_sync: bool,
    /// Tries of a task.
    #[serde(default)]
    pub attempts: Option<usize>,
    /// Percent of the map tasks that may fail for good without the job failing.
    #[serde(default)]
    pub map_failures_percent: u32,
    /// Percent of the reduce tasks that may.
    #[serde(default)]
    pub reduce_failures_percent: u32,
}

impl MapReduceSpec {
    /// The job's command, as reports name it.
    pub fn command(&self) -> &'static str {
        match self.command {
            Command::Mapreduce => "mapreduce",
            Command::Streaming => "streaming",
        }
    }

    /// Bytes of all splits.
    pub fn input_bytes(&self) -> u64 {
        self.splits.iter().map(|split| split.bytes).sum()
    }

    /// Fails where a number makes no sense.
    pub fn check(&self) -> Result<()> {
        check_count("attempts", self.attempts, 1000)?;
        if self.partitions as usize > MOST_PARTITIONS {
            return Err(Error::new(
                Kind::BadOption,
                "read the options",
                format!(
                    "parts must be at most {MOST_PARTITIONS}, and {} were given",
                    self.partitions
                ),
            ));
        }
        Ok(())
    }

    /// Tries of a task after the first: three, as Hadoop's default of four attempts has it.
    pub fn retries(&self) -> u32 {
        self.attempts.map_or(3, |attempts| attempts as u32 - 1)
    }

    /// How so much memory is shared.
    pub fn numbers(&self, memory_bytes: u64, workers: usize) -> Result<SpillNumbers> {
        SpillNumbers::new(memory_bytes, workers, TYPICAL_PAIR_BYTES, 0).map_err(|error| {
            let needed = error.context().iter().find(|(name, _)| *name == "needed");
            let needed =
                needed.map_or_else(String::new, |(_, bytes)| format!(": it needs {bytes}"));
            let message = format!(
                "a memory budget of {} is too small for {workers} workers{needed}",
                show_bytes(memory_bytes)
            );
            Error::new(Kind::Memory, "run the job", message)
                .advise("give it more memory, or fewer workers")
        })
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
            (7, 3, "mapreduce")
        );
        assert!(plain.check().is_ok());
        assert_eq!(spec(r#", "attempts": 1"#).retries(), 0);
        assert_eq!(spec(r#", "command": "streaming""#).command(), "streaming");
        for wrong in [r#", "attempts": 0"#, r#", "attempts": 1001"#] {
            assert_eq!(spec(wrong).check().unwrap_err().kind(), Kind::BadOption);
        }
        let many = MapReduceSpec {
            partitions: 100_001,
            ..plain
        };
        assert_eq!(many.check().unwrap_err().kind(), Kind::BadOption);
    }
}

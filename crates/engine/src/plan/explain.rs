//! What a job will do, in numbers: before it does it, and without doing it.

use serde::Serialize;

use super::shuffle::PlannedShuffle;

use gristmill_storage::io::probe::StoreRates;

/// A stage of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedStage {
    /// Its name, as in reports.
    pub name: &'static str,
    /// Its tasks; runs and ranges may still change how many there are of the later ones.
    pub tasks: u64,
    /// Bytes that it reads; `null` if user code decides.
    pub reads: Option<u64>,
    /// Bytes that it writes, likewise.
    pub writes: Option<u64>,
}

/// Memory that is asked for, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedMemory {
    /// For what.
    pub name: &'static str,
    /// How much, over all workers.
    pub bytes: u64,
}

/// A place that is written to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedDisk {
    /// The directory.
    pub path: String,
    /// What for: output, or runs.
    pub purpose: &'static str,
    /// Bytes that will be needed there at the same time; `null` if it depends on user code, or on how well runs compress.
    pub needs: Option<u64>,
    /// How many of them merge passes add: each writes new runs before it gives back the old ones. Likewise `null`.
    pub passes: Option<u64>,
    /// Bytes that are free there, where the file system says.
    pub free: Option<u64>,
    /// What the user should know of the place, if there is something.
    pub notice: Option<String>,
}

/// A store of others that the job reads from, or writes to.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PlannedStore {
    /// Its scheme, and its bucket or host.
    pub place: String,
    /// What for: input, or output.
    pub purpose: &'static str,
    /// Bytes there and back; `null` if user code decides.
    pub bytes: Option<u64>,
    /// About how many requests this takes; `null` if user code decides.
    pub requests: Option<u64>,
    /// How it answers now, from a short try; `null` for an output, since a try would write there.
    pub tried: Option<StoreRates>,
    /// What it copies of its own files: these bytes are in no other number; `null` where it copies none.
    pub copies: Option<PlannedCopies>,
}

/// Files that a store copies by itself, as long as it knows of them what proves a copy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PlannedCopies {
    /// How many.
    pub files: u64,
    /// Their bytes, which do not come to this machine.
    pub bytes: u64,
    /// Whether it says of a copy that it has the bytes of its source; else version and length are compared.
    pub proved: bool,
}

/// How a job would go.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Explanation {
    /// The command.
    pub command: &'static str,
    /// Where the data are sorted: `memory`, or `runs` on disk.
    pub mode: &'static str,
    /// Why, in a sentence.
    pub reason: String,
    /// Where tasks run: `threads`, `processes`, or `agents` of a cluster.
    pub runner: &'static str,
    /// Nodes of the cluster that tasks run on; 0 if they run on this machine.
    pub nodes: usize,
    /// Tasks at once.
    pub workers: usize,
    /// The budget.
    pub memory_bytes: u64,
    /// Memory by name.
    pub reservations: Vec<PlannedMemory>,
    /// Files of the input.
    pub files: usize,
    /// Their bytes.
    pub input_bytes: u64,
    /// How many of the files are compressed: what these hold is not known.
    pub compressed: usize,
    /// Pipes and devices of the input: their length is not known, so that the plan counts the files' bytes alone.
    pub streams: Vec<String>,
    /// Records, where their length is known.
    pub records: Option<u64>,
    /// Output files; 0 where the data name them.
    pub parts: usize,
    /// Ranges of keys that are sorted or merged on their own; 0 if a hash divides them.
    pub buckets: usize,
    /// Runs that are spilled; `null` if user code, a pipe or a compressed file decides.
    pub runs: Option<u64>,
    /// Runs that can be merged at once.
    pub fan_in: usize,
    /// How they are compressed; stages count their bytes as if they did not shrink.
    pub compress_runs: &'static str,
    /// Passes that merge runs to runs, before the last merge; likewise `null`.
    pub passes: Option<usize>,
    /// The plans of a shuffle by runs that there are, with their cost; none where nothing is shuffled by runs. Of user code,
    /// as if it put out as many bytes as it reads.
    pub shuffles: Vec<PlannedShuffle>,
    /// The stages.
    pub stages: Vec<PlannedStage>,
    /// Disk space.
    pub disks: Vec<PlannedDisk>,
    /// Stores of others.
    pub stores: Vec<PlannedStore>,
}

impl Explanation {
    /// The bytes that are read and written, over all stages, as far as they are known.
    ///
    /// ```
    /// use gristmill_engine::plan::explain::{Explanation, PlannedStage};
    /// let stage = |reads, writes| PlannedStage { name: "spill", tasks: 1, reads: Some(reads), writes: Some(writes) };
    /// let plan = Explanation { stages: vec![stage(5, 5), stage(5, 4)], ..Explanation::default() };
    /// assert_eq!(plan.traffic(), (10, 9));
    /// ```
    pub fn traffic(&self) -> (u64, u64) {
        let sum =
            |bytes: fn(&PlannedStage) -> Option<u64>| self.stages.iter().filter_map(bytes).sum();
        (sum(|stage| stage.reads), sum(|stage| stage.writes))
    }
}

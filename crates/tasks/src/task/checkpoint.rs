//! The checkpoint of a task: its report, as a history holds it for a process that comes after this one.
//!
//! ```text
//!   report ──checkpoint──▶ history ──▶ resumed job: finds runs and files again, verifies ranges ──▶ report
//! ```
//!
//! It is the report itself, less what must not or need not outlive the process. The rule that must hold: paths are
//! names without folders; the resumed job looks for them in its own folders, and nowhere else. Of ranges of the output
//! it holds only sums: their keys are in the output, which is verified before it is trusted (`verify`). A kind of task
//! without a checkpoint is done again.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::ranges::WrittenProof;
use super::user::spec::{UserTaskFile, UserTaskReport};
use crate::spill::{BucketSizes, SpilledRun};
use gristmill_base::record::shape::ShapeKind;
use gristmill_storage::location::Location;
use gristmill_storage::objects::Upload;
use gristmill_storage::run_name::is_in_memory;

/// What a task made that outlives the process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Checkpoint {
    /// Runs that were spilled.
    Spill(Vec<SpilledRun>),
    /// A run, and the names of those that were merged to it.
    MergeRuns {
        /// The run.
        run: SpilledRun,
        /// Its sources.
        #[serde(with = "gristmill_base::names")]
        of: Vec<PathBuf>,
        /// Whether it has a slice of them, so that they are still there, with holes.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_slice: bool,
    },
    /// Ranges of the output, from runs.
    Merge(Vec<WrittenRange>),
    /// Ranges of the output, from memory.
    Reduce(Vec<WrittenRange>),
    /// Ranges of the output, from lines in memory.
    GatherLines(Vec<WrittenRange>),
    /// A range of records that were made.
    Generate(WrittenRange),
    /// Runs and files of user code.
    #[serde(rename = "work")]
    User(UserTaskReport),
    /// The report of a task that uploaded what it wrote, as JSON: of an upload nothing can be read, not even its keys.
    Uploaded(String),
}

/// A range of an output file, and the sums of what was written there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenRange {
    /// The name of the file.
    #[serde(with = "gristmill_base::names")]
    pub file: PathBuf,
    /// The whole length of the file.
    pub file_bytes: u64,
    /// Where the range begins.
    pub offset: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Its records.
    pub records: u64,
    /// Records whose key equals that of the one before: written, or left out.
    pub duplicates: u64,
    /// The sum of the CRCs of its records.
    #[serde(with = "gristmill_base::record::checksum::hex")]
    pub checksum: u128,
}

impl WrittenRange {
    /// What was written at an offset of a file of a whole length.
    pub(super) fn of(
        (path, file_bytes, offset): (&Location, u64, u64),
        proof: &impl WrittenProof,
    ) -> Option<Self> {
        let (bytes, records, duplicates) = proof.counts();
        Some(WrittenRange {
            file: name_of(path.as_typed())?,
            file_bytes,
            offset,
            bytes,
            records,
            duplicates,
            checksum: proof.checksum(),
        })
    }
}

impl Checkpoint {
    /// Whether it says that some of the output was written.
    pub fn has_output(&self) -> bool {
        let is_uploaded = matches!(self, Checkpoint::Uploaded(_));
        is_uploaded || !self.ranges().is_empty() || !self.files().is_empty()
    }

    /// The runs that it made.
    pub fn runs(&self) -> &[SpilledRun] {
        match self {
            Checkpoint::Spill(runs) => runs,
            Checkpoint::MergeRuns { run, .. } => std::slice::from_ref(run),
            Checkpoint::User(report) => &report.runs,
            _ => &[],
        }
    }

    /// The uploads of user code.
    pub fn uploads(&self) -> &[Upload] {
        match self {
            Checkpoint::User(report) => &report.uploads,
            _ => &[],
        }
    }

    /// The runs that went into the one that it made.
    pub fn sources(&self) -> &[PathBuf] {
        match self {
            Checkpoint::MergeRuns { of, .. } => of,
            _ => &[],
        }
    }

    /// Whether it left holes in its sources.
    pub fn is_slice(&self) -> bool {
        matches!(self, Checkpoint::MergeRuns { is_slice: true, .. })
    }

    /// The whole files that it wrote.
    pub fn files(&self) -> &[UserTaskFile] {
        match self {
            Checkpoint::User(report) => &report.files,
            _ => &[],
        }
    }

    /// The ranges of the output that it wrote.
    pub fn ranges(&self) -> &[WrittenRange] {
        match self {
            Checkpoint::Merge(ranges)
            | Checkpoint::Reduce(ranges)
            | Checkpoint::GatherLines(ranges) => ranges,
            Checkpoint::Generate(range) => std::slice::from_ref(range),
            _ => &[],
        }
    }
}

/// The runs of a shape with names for paths; nothing where one could not be known again.
pub(super) fn names_of_runs(runs: &[SpilledRun], shape: ShapeKind) -> Option<Vec<SpilledRun>> {
    runs.iter().map(|run| name_of_run(run, shape)).collect()
}

/// The run with its name for a path; nothing where it is in memory, which goes with the process or with the agent. What lies in each bucket stays where the index of the
/// run does not say it.
pub(super) fn name_of_run(run: &SpilledRun, shape: ShapeKind) -> Option<SpilledRun> {
    let path = name_of(&run.path).filter(|_| !is_in_memory(&run.path))?;
    let buckets = if BucketSizes::are_in_index(shape) {
        BucketSizes::default()
    } else {
        run.buckets.clone()
    };
    Some(SpilledRun {
        path,
        buckets,
        ..run.clone()
    })
}

/// A path's name.
pub(super) fn name_of(path: &Path) -> Option<PathBuf> {
    path.file_name().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Lines of the first histories are read as they were written then, and written in the same words now.
    #[test]
    fn checkpoints_of_format_1_are_read() {
        let run = json!({
            "name": "run-00001-0-0000", "number": 3, "records": 7, "bytes": 700, "longest": 100,
            "records_read": 8, "bytes_read": 800, "checksum_read": "1f9ffe645ec", "index_crc": 5,
        });
        let range = json!({
            "file": "part-r-00000", "file_bytes": 900, "offset": 100, "bytes": 800, "records": 8, "duplicates": 1,
            "checksum": "5b2d1434d",
        });
        let work = json!({
            "folder": "7-0", "runs": [run], "files": [{"name": "part", "bytes": 3, "records": 1, "crc": 9}],
            "records_in": 1, "bytes_in": 2, "records_out": 3, "bytes_out": 4, "groups": 5, "combine_in": 6,
            "combine_out": 7, "skipped": 8, "counters": {"of": {"mine": 1}}, "kinds": {"key": 3},
        });
        for line in [
            json!({"spill": [run]}),
            json!({"merge_runs": {"run": run, "of": ["run-1", "run-2"]}}),
            json!({"merge": [range]}),
            json!({"reduce": [range]}),
            json!({"generate": range}),
            json!({"work": work}),
        ] {
            let read: Checkpoint = serde_json::from_value(line.clone()).unwrap();
            assert!(contains(&json!(read), &line), "{} {line}", json!(read));
        }
    }

    /// Whether all of `part` stands in `whole`, which may have more fields.
    fn contains(whole: &Value, part: &Value) -> bool {
        match (whole, part) {
            (Value::Object(whole), Value::Object(part)) => part
                .iter()
                .all(|(name, value)| whole.get(name).is_some_and(|of| contains(of, value))),
            (Value::Array(whole), Value::Array(part)) => {
                whole.len() == part.len() && whole.iter().zip(part).all(|(a, b)| contains(a, b))
            }
            _ => whole == part,
        }
    }
}

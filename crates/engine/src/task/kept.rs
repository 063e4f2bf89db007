//! What is kept of a task's report, so that a job that is killed need not do the task again.
//!
//! Of files only names are kept, and where in them: the job that goes on finds them in its own folders or not at all.
//! Keys are not kept: they are in the output, which is proved again before it is trusted (`reprove`). A kind of task
//! that is not named here is done again.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{MergeTarget, RangeSpec, TaskReport, TaskSpec, WorkFile, WorkReport};
use crate::error::{Error, Kind, Result};
use crate::record::RECORD_BYTES;
use crate::record::checksum::Hex;
use crate::spill::SpilledRun;
use crate::storage::layered::MEMORY_PLACE;

/// What a task made that outlives the process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kept {
    /// Runs that were spilled.
    Spill(Vec<KeptRun>),
    /// A run, and the names of those that were merged to it.
    MergeRuns {
        /// The run.
        run: KeptRun,
        /// What it was made of.
        of: Vec<String>,
    },
    /// Ranges of the output, from runs.
    Merge(Vec<KeptRange>),
    /// Ranges of the output, from memory.
    Reduce(Vec<KeptRange>),
    /// A range of records that were made.
    Generate(KeptRange),
    /// Runs and files of people's code.
    Work(KeptTask),
}

/// What a task with people's code made and counted. What it used of the machine is not kept: that was another process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KeptTask {
    /// The name of the attempt's folder.
    pub folder: String,
    /// Its runs.
    pub runs: Vec<KeptRun>,
    /// Its files.
    pub files: Vec<KeptFile>,
    /// Records of the split, or pairs of the partition.
    pub records_in: u64,
    /// Their bytes.
    pub bytes_in: u64,
    /// Pairs or records that came out.
    pub records_out: u64,
    /// Their bytes.
    pub bytes_out: u64,
    /// Groups that were reduced.
    pub groups: u64,
    /// Pairs that were combined.
    pub combine_in: u64,
    /// What they became.
    pub combine_out: u64,
    /// Records that were left out.
    pub skipped: u64,
    /// The user's counters.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, BTreeMap<String, i64>>,
}

/// A whole file, as it is known again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptFile {
    /// Its name.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// Its records.
    pub records: u64,
    /// The CRC of its bytes.
    pub crc: u32,
}

/// A run, as it is known again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptRun {
    /// The name of its file.
    pub name: String,
    /// Its place among the runs of its task.
    pub number: u64,
    /// Records in it.
    pub records: u64,
    /// Bytes of records in it.
    pub bytes: u64,
    /// Bytes of the longest.
    pub longest: u64,
    /// Records that were read for it.
    pub records_read: u64,
    /// Their bytes.
    pub bytes_read: u64,
    /// The sum of their CRCs, in hexadecimal.
    pub checksum_read: String,
    /// The CRC of its index.
    pub index_crc: u32,
}

/// A range of an output file, and what was written there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptRange {
    /// The name of the file.
    pub file: String,
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
    /// The sum of the CRCs of its records, in hexadecimal.
    pub checksum: String,
}

impl Kept {
    /// What to keep of a report; nothing where the task's output goes with the process.
    pub fn of(spec: &TaskSpec, report: &TaskReport) -> Option<Self> {
        match (spec, report) {
            (_, TaskReport::Spill(runs)) => {
                let runs: Option<Vec<_>> = runs.iter().map(KeptRun::of).collect();
                runs.map(Kept::Spill)
            }
            (TaskSpec::MergeRuns(spec), TaskReport::MergeRuns(run)) => Some(Kept::MergeRuns {
                run: KeptRun::of(run)?,
                of: spec
                    .runs
                    .iter()
                    .map(|run| name_of(&run.path))
                    .collect::<Option<_>>()?,
            }),
            (TaskSpec::Merge(spec), TaskReport::Merge(proofs)) => {
                let kept = |(place, proof): (Place<'_>, &crate::merge::output::MergeProof)| {
                    let counts = (proof.bytes, proof.records, proof.duplicates);
                    place.kept(counts, proof.checksum)
                };
                let places: Vec<Place<'_>> = match &spec.target {
                    MergeTarget::Ranges(ranges) => ranges.iter().map(Place::of).collect(),
                    MergeTarget::File(path) => {
                        let file_bytes = proofs.iter().map(|proof| proof.bytes).sum();
                        vec![Place(path, file_bytes, 0)]
                    }
                    MergeTarget::Stream => return None,
                };
                let ranges = places.into_iter().zip(proofs).map(kept);
                ranges.collect::<Option<_>>().map(Kept::Merge)
            }
            (TaskSpec::Reduce(spec), TaskReport::Reduce(proofs)) => {
                let kept = |(range, proof): (&RangeSpec, &crate::reduce::RangeProof)| {
                    let check = &proof.check;
                    let bytes = check.records * spec.record_bytes as u64;
                    let counts = (bytes, check.records, check.duplicates);
                    Place::of(range).kept(counts, proof.checksum)
                };
                let ranges = spec.ranges.iter().zip(proofs).map(kept);
                ranges.collect::<Option<_>>().map(Kept::Reduce)
            }
            (TaskSpec::Work(_), TaskReport::Work(report)) => KeptTask::of(report).map(Kept::Work),
            (TaskSpec::Generate(spec), TaskReport::Generate(proof)) => {
                let counts = (spec.records * RECORD_BYTES as u64, spec.records, 0);
                let place = Place(&spec.file.path, spec.file.bytes, spec.offset);
                place.kept(counts, proof.checksum).map(Kept::Generate)
            }
            _ => None,
        }
    }

    /// The runs that it made.
    pub fn runs(&self) -> &[KeptRun] {
        match self {
            Kept::Spill(runs) => runs,
            Kept::MergeRuns { run, .. } => std::slice::from_ref(run),
            Kept::Work(task) => &task.runs,
            _ => &[],
        }
    }

    /// The whole files that it wrote.
    pub fn files(&self) -> &[KeptFile] {
        match self {
            Kept::Work(task) => &task.files,
            _ => &[],
        }
    }

    /// The ranges of the output that it wrote.
    pub fn ranges(&self) -> &[KeptRange] {
        match self {
            Kept::Merge(ranges) | Kept::Reduce(ranges) => ranges,
            Kept::Generate(range) => std::slice::from_ref(range),
            _ => &[],
        }
    }
}

impl KeptTask {
    fn of(report: &WorkReport) -> Option<Self> {
        let files = report.files.iter().map(|file| {
            Some(KeptFile {
                name: file.name.clone(),
                bytes: file.bytes,
                records: file.records,
                crc: file.crc?,
            })
        });
        let runs = report.runs.iter().map(KeptRun::of);
        Some(KeptTask {
            folder: name_of(&report.folder)?,
            runs: runs.collect::<Option<_>>()?,
            files: files.collect::<Option<_>>()?,
            records_in: report.records_in,
            bytes_in: report.bytes_in,
            records_out: report.records_out,
            bytes_out: report.bytes_out,
            groups: report.groups,
            combine_in: report.combine_in,
            combine_out: report.combine_out,
            skipped: report.skipped,
            counters: report.counters.clone(),
        })
    }

    /// The task's report, with these runs; its attempt's folder is in `attempts`.
    pub fn report(&self, attempts: &Path, runs: Vec<SpilledRun>) -> WorkReport {
        let file = |file: &KeptFile| WorkFile {
            name: file.name.clone(),
            bytes: file.bytes,
            records: file.records,
            crc: Some(file.crc),
        };
        WorkReport {
            runs,
            folder: attempts.join(&self.folder),
            files: self.files.iter().map(file).collect(),
            records_in: self.records_in,
            bytes_in: self.bytes_in,
            records_out: self.records_out,
            bytes_out: self.bytes_out,
            groups: self.groups,
            combine_in: self.combine_in,
            combine_out: self.combine_out,
            skipped: self.skipped,
            counters: self.counters.clone(),
            ..WorkReport::default()
        }
    }
}

/// A file, its whole length, and an offset in it.
struct Place<'a>(&'a Path, u64, u64);

impl<'a> Place<'a> {
    fn of(range: &'a RangeSpec) -> Self {
        Place(&range.file.path, range.file.bytes, range.offset)
    }

    fn kept(
        &self,
        (bytes, records, duplicates): (u64, u64, u64),
        checksum: u128,
    ) -> Option<KeptRange> {
        Some(KeptRange {
            file: name_of(self.0)?,
            file_bytes: self.1,
            offset: self.2,
            bytes,
            records,
            duplicates,
            checksum: Hex(checksum).to_string(),
        })
    }
}

impl KeptRun {
    fn of(run: &SpilledRun) -> Option<Self> {
        if run.path.starts_with(MEMORY_PLACE) {
            return None;
        }
        Some(KeptRun {
            name: name_of(&run.path)?,
            number: run.number,
            records: run.records,
            bytes: run.bytes,
            longest: run.longest,
            records_read: run.records_read,
            bytes_read: run.bytes_read,
            checksum_read: Hex(run.checksum_read).to_string(),
            index_crc: run.index_crc,
        })
    }

    /// The run as its task reported it, in this folder.
    ///
    /// # Errors
    /// The checksum is no number.
    pub fn in_folder(&self, folder: &Path) -> Result<SpilledRun> {
        Ok(SpilledRun {
            path: folder.join(&self.name),
            number: self.number,
            records: self.records,
            bytes: self.bytes,
            longest: self.longest,
            records_read: self.records_read,
            bytes_read: self.bytes_read,
            checksum_read: checksum(&self.checksum_read)?,
            index_crc: self.index_crc,
        })
    }
}

/// A checksum as it stands in a history.
pub(super) fn checksum(hex: &str) -> Result<u128> {
    u128::from_str_radix(hex, 16).map_err(|error| {
        let message = format!("{hex:?} is no checksum: {error}");
        Error::new(Kind::BadInput, "read a history", message)
    })
}

fn name_of(path: &Path) -> Option<String> {
    path.file_name().and_then(OsStr::to_str).map(str::to_owned)
}

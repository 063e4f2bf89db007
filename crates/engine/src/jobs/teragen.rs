//! `teragen`: makes records of the sort benchmark.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::Job;
use super::resume::Places;
use super::success::OutputProof;
use crate::commit::CommitOptions;
use crate::driver::{Plan, Stage};
use crate::error::{Error, Kind, Result};
use crate::order::check::OrderCheck;
use crate::plan::options::{TeragenSpec, check_count};
use crate::plan::sort::{default_parts, part_name};
use crate::record::RECORD_BYTES;
use crate::record::checksum::Hex;
use crate::record::shape::Shape;
use crate::split::{splits, stride};
use crate::task::{
    GENERATE_WORKER_BYTES, GenerateSpec, OutputFile, TaskContext, TaskReport, TaskSpec,
};

const RECORD: u64 = RECORD_BYTES as u64;

/// Bytes of a task.
const TASK_BYTES: u64 = 64 << 20;

/// Part files at most: as many as five digits number.
const MOST_FILES: usize = 100_000;

pub(super) fn run(job: &mut Job<'_>, spec: &TeragenSpec) -> Result<()> {
    check_count("files", spec.files, MOST_FILES)?;
    job.check_worker_memory(GENERATE_WORKER_BYTES)?;
    let rows = spec.rows.0;
    let bytes = u64::try_from(rows)
        .ok()
        .and_then(|rows| rows.checked_mul(RECORD));
    let bytes = bytes
        .filter(|bytes| i64::try_from(*bytes).is_ok())
        .ok_or_else(|| {
            Error::new(
                Kind::BadOption,
                "make records",
                format!("{rows} rows are more than a disk holds"),
            )
        })?;
    if rows > 0 && spec.start.0.checked_add(rows - 1).is_none() {
        let message = "row numbers end at 2^128 - 1";
        return Err(Error::new(Kind::BadOption, "make records", message));
    }
    let files = spec
        .files
        .unwrap_or_else(|| default_parts(bytes).min(MOST_FILES));
    let names: Vec<String> = (0..files).map(|file| part_name('m', file)).collect();
    let options = CommitOptions {
        overwrite: spec.overwrite,
        sync: !spec.no_sync,
    };
    let environment = job.environment;
    let store = &*environment.store;
    job.take_inputs(&[], None)?;
    let staging = job.staging(store, &spec.output, (&names, bytes), options)?;
    let places = Places {
        runs: Vec::new(),
        output: staging.staged(),
        names: names.clone(),
        shape: super::terasort::SHAPE.kind(),
        unique: false,
        attempts: None,
    };
    let paths = names.iter().map(|name| staging.path_of(name)).collect();
    let proof = Arc::new(Mutex::new(OutputProof::new(files)));
    let plan = Generate::new(spec, bytes / RECORD, paths, Arc::clone(&proof));
    let context = TaskContext::new(environment.store.clone(), job.budget(), Vec::new(), None);
    job.run_kept(Box::new(plan), &context, &places)?;

    job.begin_phase("commit");
    job.check_cancelled()?;
    let proof = proof.lock().unwrap_or_else(PoisonError::into_inner);
    let mut success = proof.success(&environment.job_id, "teragen", &names, RECORD);
    success.sorted = false;
    let report = &mut job.report;
    (report.records, report.output_bytes, report.parts) = (bytes / RECORD, bytes, files);
    report.checksum = Hex(proof.checksum).to_string();
    report.count("MAP_OUTPUT_RECORDS", bytes / RECORD);
    report.count("FILE_BYTES_WRITTEN", bytes);
    report.count("CHECKSUM", proof.checksum as u64); // TeraGen's counter has 64 bits, and wraps
    job.publishing(&staging.staged())?;
    staging.publish(&names, &success.to_bytes()?)
}

/// One stage: every file in ranges.
struct Generate {
    tasks: Vec<(usize, GenerateSpec)>,
    proof: Arc<Mutex<OutputProof>>,
    begun: bool,
}

impl Generate {
    fn new(
        spec: &TeragenSpec,
        rows: u64,
        paths: Vec<PathBuf>,
        proof: Arc<Mutex<OutputProof>>,
    ) -> Self {
        let files = paths.len() as u128;
        // As Hadoop divides rows over maps: file i ends at row ceil(rows * (i + 1) / files).
        let end_of = |file: u128| (u128::from(rows) * file).div_ceil(files) as u64;
        let mut tasks = Vec::new();
        for (number, path) in paths.into_iter().enumerate() {
            let first = end_of(number as u128);
            let file = OutputFile {
                path,
                bytes: (end_of(number as u128 + 1) - first) * RECORD,
            };
            let task = |offset, bytes| GenerateSpec {
                file: file.clone(),
                offset,
                start: spec.start.0 + u128::from(first + offset / RECORD),
                records: bytes / RECORD,
                layout: spec.layout,
                skew: spec.skew,
            };
            let ranges = splits(&[file.bytes], TASK_BYTES, stride(RECORD)).concat();
            if ranges.is_empty() {
                tasks.push((number, task(0, 0))); // the file is there, if only empty
            }
            tasks.extend(
                ranges
                    .iter()
                    .map(|range| (number, task(range.offset, range.bytes))),
            );
        }
        Generate {
            tasks,
            proof,
            begun: false,
        }
    }
}

impl Plan for Generate {
    fn next_stage(&mut self, reports: Vec<TaskReport>) -> Result<Option<Stage>> {
        if !self.begun {
            self.begun = true;
            let tasks: Vec<TaskSpec> = self
                .tasks
                .iter()
                .map(|(_, spec)| TaskSpec::Generate(spec.clone()))
                .collect();
            let bytes = self
                .tasks
                .iter()
                .map(|(_, spec)| spec.records * RECORD)
                .sum();
            return Ok(Some(Stage {
                name: "generate",
                bytes,
                tasks,
            }));
        }
        let mut proof = self.proof.lock().unwrap_or_else(PoisonError::into_inner);
        for ((file, _), report) in self.tasks.iter().zip(reports) {
            let TaskReport::Generate(mut range) = report else {
                return Err(Error::bug("make records", "a report of another kind"));
            };
            let check = OrderCheck {
                records: range.check.records,
                ..OrderCheck::default()
            };
            range.check = check;
            let part = &mut proof.parts[*file];
            part.check.records += range.check.records;
            part.checksum += range.checksum;
            proof.whole.records += range.check.records;
            proof.checksum += range.checksum;
        }
        Ok(None)
    }
}

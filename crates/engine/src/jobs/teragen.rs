//! `teragen`: makes records of the sort benchmark.

use std::path::PathBuf;

use super::kind::{Described, JobKind};
use super::report::JobReport;
use super::steps::{JobOutput, OutputDirectory, Proven, RunningJob};
use super::success::{OutputProof, success_bytes};
use crate::driver::stage;
use crate::plan::amount::{Rows, check_count, check_split_size};
use crate::plan::sort::{default_parts, part_name};
use crate::plan::table::{CommandSpec, argument, option, options};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::record::RECORD_BYTES;
use gristmill_base::record::checksum::Hex;
use gristmill_base::record::layout::RecordLayout;
use gristmill_base::record::shape::Shape;
use gristmill_storage::Caps;
use gristmill_storage::input::InputRange;
use gristmill_storage::location::Location;
use gristmill_tasks::split::{splits, stride};
use gristmill_tasks::task::{
    GENERATE_WORKER_BYTES, GenerateSpec, InProcess, NodeContext, OutputFile, TaskContext,
};

const RECORD: u64 = RECORD_BYTES as u64;

/// Bytes of a task.
const TASK_BYTES: u64 = 64 << 20;

/// Part files at most: as many as five digits number.
const FILES_MAX: usize = 100_000;

options! {
    /// Options of `teragen`, as given.
    pub(in crate::jobs) struct TeragenSpec {
        rows: Rows = argument("How many records; k, m, b, t stand for 10^3, 10^6, 10^9, 10^12."),
        output: Location = argument("The directory to make."),
        layout: RecordLayout = option(
            "hadoop",
            "Bytes after the key: as Hadoop's TeraGen, as gensort 1.5 (incompressible), or as gensort -a (text).",
        ),
        skew: bool = option("off", "Let keys share prefixes, as gensort -s does."),
        start: Rows = option("0", "The number of the first record."),
        files: Option<usize> = option("one for each 256 MB", "How many part files."),
    }
}

impl Described for TeragenSpec {
    const COMMAND: CommandSpec = CommandSpec {
        name: "teragen",
        function: None,
        help: "Make records of the sort benchmark: 100 bytes each, the first ten the key.",
        details: "",
        example: "gristmill teragen 10m data/",
        python: r#"
>>> import tempfile, gristmill
>>> with tempfile.TemporaryDirectory() as folder:
...     report = gristmill.teragen("1k", f"{folder}/data")
>>> report.records, report.checksum
(1000, '1f9ffe645ec')
"#,
        explained: false,
        own: Self::OPTIONS,
        common: &[
            "memory",
            "workers",
            "runner",
            "on",
            "nodes",
            "collect",
            "split_size",
            "store_option",
            "overwrite",
            "no_sync",
            "replication",
            "block_size",
        ],
    };
}

impl JobKind for TeragenSpec {
    fn output(&self) -> Option<JobOutput<'_>> {
        Some(JobOutput::Directory(&self.output))
    }

    fn run(&self, job: &mut RunningJob<'_>) -> Result<()> {
        check_count("files", self.files, FILES_MAX)?;
        job.check_worker_memory(GENERATE_WORKER_BYTES)?;
        let split_bytes = check_split_size(job.common.split_size)?.unwrap_or(TASK_BYTES);
        let bytes = bytes_of(self)?;
        let files = self
            .files
            .unwrap_or_else(|| default_parts(bytes).min(FILES_MAX));
        let names: Vec<PathBuf> = (0..files).map(|file| part_name('m', file).into()).collect();
        let directory = OutputDirectory {
            path: &self.output,
            names: &names,
            bytes,
            inputs: &[],
            shape: super::terasort::SHAPE.kind(),
            runs: None,
        };
        directory.make(job, |job, committer, places| {
            let store = job.environment.store.clone();
            let task_bytes = match store.caps(&self.output) {
                Caps::Ranges => split_bytes,
                Caps::Whole => u64::MAX / 2, // of a file, all: a target is rounded down, and has a tenth of slop
            };
            let paths = names.iter().map(|name| committer.path_of(name));
            let tasks = tasks(self, bytes / RECORD, task_bytes, paths);
            let specs = tasks.iter().map(|(_, spec)| spec.clone());
            let stage = stage("generate", bytes, specs);
            let node = NodeContext::new(store, job.budget());
            let context = TaskContext::new(job.shared(Vec::new()), node, InProcess::Nothing);
            let reports = job.run_stage(stage, &context, Some(places))?;
            let mut proof = OutputProof::new(files);
            for ((file, _), range) in tasks.iter().zip(reports) {
                let part = &mut proof.parts[*file]; // whose keys have no order
                part.check.records += range.check.records;
                part.checksum += range.checksum;
                proof.whole.records += range.check.records;
                proof.checksum += range.checksum;
                proof.uploads.extend(range.upload);
            }
            job.begin_commit()?;
            fill_report(&mut job.report, bytes, files, &proof);
            let mut success = proof.success(&job.environment.job_id, "teragen", &names, RECORD);
            success.sorted = false;
            Ok(Proven {
                success: success_bytes(&success)?,
                uploads: proof.uploads,
            })
        })
    }
}

/// Bytes of all records.
fn bytes_of(spec: &TeragenSpec) -> Result<u64> {
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
    Ok(bytes)
}

fn fill_report(report: &mut JobReport, bytes: u64, files: usize, proof: &OutputProof) {
    (report.records, report.output_bytes, report.parts) = (bytes / RECORD, bytes, files);
    report.checksum = Hex(proof.checksum).to_string();
    report.count("MAP_OUTPUT_RECORDS", bytes / RECORD);
    report.count("FILE_BYTES_WRITTEN", bytes);
    report.count("CHECKSUM", proof.checksum as u64); // TeraGen's counter has 64 bits, and wraps
}

/// A task for each range of every file, with the file's number.
fn tasks(
    spec: &TeragenSpec,
    rows: u64,
    task_bytes: u64,
    paths: impl ExactSizeIterator<Item = Location>,
) -> Vec<(usize, GenerateSpec)> {
    let files = paths.len() as u128;
    // As Hadoop divides rows over maps: file i ends at row ceil(rows * (i + 1) / files).
    let end_of = |file: u128| (u128::from(rows) * file).div_ceil(files) as u64;
    let mut tasks = Vec::new();
    for (number, path) in paths.enumerate() {
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
        let ranges = splits(&[file.bytes], task_bytes, stride(RECORD)).concat();
        if ranges.is_empty() {
            tasks.push((number, task(0, 0))); // the file is there, if only empty
        }
        let of_range = |range: &InputRange| (number, task(range.offset, range.bytes));
        tasks.extend(ranges.iter().map(of_range));
    }
    tasks
}

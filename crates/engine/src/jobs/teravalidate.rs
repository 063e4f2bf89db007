//! `teravalidate`: checks that the files of a directory are in order, and sums the checksums of their records.
//!
//! Rules and report lines are those of Hadoop's TeraValidate: within a file no key below the key before it; over
//! files, in the order of their names, no first key below the last key before it. Duplicates are counted as valsort
//! does. Other than Hadoop's, the job fails where it finds an error.

use std::os::unix::ffi::OsStrExt;

use super::kind::{Described, JobKind};
use super::steps::RunningJob;
use crate::driver::stage;
use crate::plan::amount::check_split_size;
use crate::plan::table::{CommandSpec, argument, option, options};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::names::show_path;
use gristmill_base::order::check::{KEPT_MISORDERS, Key, Misorder, OrderCheck, key_text};
use gristmill_base::record::RECORD_BYTES;
use gristmill_base::record::checksum::Hex;
use gristmill_storage::input::InputFile;
use gristmill_storage::location::Location;
use gristmill_tasks::split::{check_unchanged, check_whole_records, input_files, splits, stride};
use gristmill_tasks::task::{
    InProcess, JobShared, NodeContext, TaskContext, VALIDATE_WORKER_BYTES, ValidateSpec,
};

const RECORD: u64 = RECORD_BYTES as u64;

/// Bytes of a task.
const TASK_BYTES: u64 = 64 << 20;

options! {
    /// Options of `teravalidate`, as given.
    pub(in crate::jobs) struct TeravalidateSpec {
        input: Location = argument("The directory to check."),
        against: Option<Location> = option(
            "nothing",
            "Check that the records are those of this file or directory, or have this checksum in hexadecimal.",
        ),
    }
}

impl Described for TeravalidateSpec {
    const COMMAND: CommandSpec = CommandSpec {
        name: "teravalidate",
        function: None,
        help: "Check that the files of a directory are in order, and sum the checksums of their records.",
        details: "With --json, the field `report` has the lines that Hadoop's TeraValidate writes. If the check fails, the exit code is 1; in Python it raises ValueError, and `gm.report_of(error)` gives the report.",
        example: "gristmill teravalidate sorted/ --against data/",
        python: r#"
>>> import tempfile, gristmill
>>> with tempfile.TemporaryDirectory() as folder:
...     made = gristmill.teragen("1k", f"{folder}/data")
...     try:
...         gristmill.teravalidate(f"{folder}/data")
...     except ValueError as error:
...         gristmill.report_of(error).misorders
483
"#,
        explained: false,
        own: Self::OPTIONS,
        common: &[
            "memory",
            "workers",
            "runner",
            "on",
            "nodes",
            "split_size",
            "store_option",
        ],
    };
}

impl JobKind for TeravalidateSpec {
    fn run(&self, job: &mut RunningJob<'_>) -> Result<()> {
        job.check_worker_memory(VALIDATE_WORKER_BYTES)?;
        let against = self
            .against
            .as_ref()
            .map(|against| Against::resolve(job, against))
            .transpose()?;
        let files = in_order_of_names(input_files(job.store(), std::slice::from_ref(&self.input))?);
        if files.is_empty() {
            return Err(Error::new(
                Kind::NotFound,
                "find records",
                "the directory holds no part files",
            )
            .with_path(self.input.as_typed())
            .advise("name the directory that a sort has written"));
        }
        let found = check(job, "validate", &files)?;
        let report = &mut job.report;
        report.records = found.records();
        report.input_bytes = found.records() * RECORD;
        report.parts = files.len();
        report.checksum = Hex(found.checksum).to_string();
        report.duplicate_keys = found.duplicates();
        report.count("MAP_INPUT_RECORDS", found.records());
        report.count("FILE_BYTES_READ", found.records() * RECORD);
        let errors = Disorder::of(&files, &found.checks);
        report.misorders = errors.count;
        if found.records() > 0 {
            report
                .report
                .push(format!("checksum\t{}", Hex(found.checksum)));
        }
        report.report.extend(errors.lines);
        if let Some(first) = errors.first {
            return Err(first);
        }
        match against {
            Some(against) => against.compare(job, &found),
            None => Ok(()),
        }
    }
}

/// Hadoop's order of files: that of their names with ":begin" behind them, byte by byte.
fn in_order_of_names(mut files: Vec<InputFile>) -> Vec<InputFile> {
    let key = |of: &Location| [of.name().unwrap_or_default().as_bytes(), b":begin"].concat();
    files.sort_by_key(|file| key(&file.path));
    files
}

fn name_of(location: &Location) -> String {
    location.name().map(show_path).unwrap_or_default()
}

/// What the files hold.
#[derive(Debug)]
struct ValidatedFiles {
    /// Of each file.
    checks: Vec<OrderCheck>,
    checksum: u128,
}

impl ValidatedFiles {
    fn records(&self) -> u64 {
        self.checks.iter().map(|check| check.records).sum()
    }

    /// Keys equal to the one before, within and across files.
    fn duplicates(&self) -> u64 {
        let mut whole = OrderCheck::default();
        self.checks.iter().for_each(|check| whole.join(check));
        whole.duplicates
    }
}

/// Runs the validate tasks over `files`: every file in ranges, whose reports are joined in order.
fn check(
    job: &mut RunningJob<'_>,
    name: &'static str,
    files: &[InputFile],
) -> Result<ValidatedFiles> {
    check_whole_records(files, RECORD_BYTES)?;
    let sizes: Vec<u64> = files.iter().map(|file| file.stat.bytes).collect();
    let split_bytes = check_split_size(job.common.split_size)?.unwrap_or(TASK_BYTES);
    let pieces = splits(&sizes, split_bytes, stride(RECORD)).concat();
    let tasks = pieces.into_iter().map(|piece| ValidateSpec { piece });
    let stage = stage(name, sizes.iter().sum(), tasks);
    let node = NodeContext::new(job.environment.store.clone(), job.budget());
    let shared = JobShared {
        ahead_bytes: job.bytes_beside(VALIDATE_WORKER_BYTES, files),
        ..job.shared(files.to_vec())
    };
    let context = TaskContext::new(shared, node, InProcess::Nothing);
    let reports = job.run_stage(stage, &context, None)?;
    check_unchanged(job.store(), files)?;
    let mut found = ValidatedFiles {
        checks: vec![OrderCheck::default(); files.len()],
        checksum: 0,
    };
    for report in reports {
        found.checks[report.piece.file].join(&report.check);
        found.checksum += report.checksum;
    }
    Ok(found)
}

/// What is out of order.
#[derive(Debug, Default)]
struct Disorder {
    count: u64,
    lines: Vec<String>,
    /// The first of all, in words.
    first: Option<Error>,
}

impl Disorder {
    fn of(files: &[InputFile], checks: &[OrderCheck]) -> Self {
        let mut disorder = Disorder::default();
        for (file, check) in files.iter().zip(checks) {
            let name = name_of(&file.path);
            for misorder in &check.first_misorders {
                disorder.lines.push(misorder_line(&name, misorder));
            }
            let unsaid = check.misorders - check.first_misorders.len() as u64;
            if unsaid > 0 {
                let kept = KEPT_MISORDERS;
                disorder.lines.push(format!(
                    "error\t{unsaid} more misorders in {name} beyond the first {kept}"
                ));
            }
            disorder.count += check.misorders;
            if let Some(first) = check.first_misorders.first() {
                disorder
                    .first
                    .get_or_insert_with(|| misorder_error(&file.path, first));
            }
        }
        disorder.check_borders(files, checks);
        let count = disorder.count;
        disorder.first = disorder
            .first
            .map(|first| first.with("errors in all", count));
        disorder
    }

    /// Hadoop's chain over the ends of files: begin, end, begin, end, each against the one before. Within a file it
    /// sees a last key below the first one; that is said in a line, and was counted as a misorder already.
    fn check_borders(&mut self, files: &[InputFile], checks: &[OrderCheck]) {
        let mut before: Option<(String, Key, bool)> = None;
        for (file, check) in files.iter().zip(checks) {
            let Some((first, last)) = check.ends else {
                continue;
            };
            for (end, key, begins) in [("begin", first, true), ("end", last, false)] {
                let name = format!("{}:{end}", name_of(&file.path));
                if let Some((name_before, key_before, _)) = &before
                    && key < *key_before
                {
                    self.lines
                        .push(border_line(name_before, key_before, &name, &key));
                    if begins {
                        self.count += 1;
                        self.first
                            .get_or_insert_with(|| border_error(&file.path, key_before, &key));
                    }
                }
                before = Some((name, key, begins));
            }
        }
    }
}

fn misorder_line(name: &str, misorder: &Misorder) -> String {
    let (before, after) = (key_text(&misorder.before), key_text(&misorder.after));
    format!("error\tmisorder in {name} between {before} and {after}")
}

fn border_line(name_before: &str, before: &Key, name: &str, key: &Key) -> String {
    format!(
        "error\tbad key partitioning:\n  file {name_before} key {}\n  file {name} key {}",
        key_text(before),
        key_text(key)
    )
}

fn misorder_error(path: &Location, misorder: &Misorder) -> Error {
    let (before, after) = (key_text(&misorder.before), key_text(&misorder.after));
    disorder(format!("the key {after} follows the larger key {before}"))
        .with_path(path.as_typed())
        .with("record", misorder.record)
        .with("offset", misorder.record * RECORD)
}

fn border_error(path: &Location, before: &Key, key: &Key) -> Error {
    let (before, key) = (key_text(before), key_text(key));
    disorder(format!(
        "its first key {key} is below {before}, the last key of the files before it"
    ))
    .with_path(path.as_typed())
    .with("record", 0)
    .with("offset", 0)
}

fn disorder(message: String) -> Error {
    Error::new(Kind::Disorder, "call the files sorted", message)
}

/// What the records must be a permutation of.
enum Against {
    Files(Location, Vec<InputFile>),
    Checksum(u128),
}

impl Against {
    /// A path that exists, or else a checksum.
    fn resolve(job: &RunningJob<'_>, given: &Location) -> Result<Self> {
        if job.store().stat(given)?.is_some() {
            let files = input_files(job.store(), std::slice::from_ref(given))?;
            return Ok(Against::Files(given.clone(), files));
        }
        let text = given.to_string();
        match text.parse::<Hex>() {
            Ok(Hex(checksum)) => Ok(Against::Checksum(checksum)),
            Err(_) => Err(Error::new(
                Kind::NotFound,
                "compare the files",
                format!(
                    "{text:?} is neither a file or directory that exists nor a hexadecimal checksum"
                ),
            )
            .advise(
                "name the input of the sort, or the checksum that teragen or terasort printed",
            )),
        }
    }

    fn compare(&self, job: &mut RunningJob<'_>, found: &ValidatedFiles) -> Result<()> {
        let (same, other) = match self {
            Against::Checksum(checksum) => (
                *checksum == found.checksum,
                format!("the checksum to compare with is {}", Hex(*checksum)),
            ),
            Against::Files(path, files) => {
                let input = check(job, "compare", files)?;
                let (records, checksum) = (input.records(), input.checksum);
                (
                    (records, checksum) == (found.records(), found.checksum),
                    format!(
                        "{} holds {} with checksum {}",
                        path,
                        counted(records),
                        Hex(checksum)
                    ),
                )
            }
        };
        if same {
            return Ok(());
        }
        let message = format!(
            "the files hold {} with checksum {}, and {other}",
            counted(found.records()),
            Hex(found.checksum),
        );
        Err(Error::new(
            Kind::Disorder,
            "call the files a permutation of the input",
            message,
        ))
    }
}

fn counted(records: u64) -> String {
    match records {
        1 => "1 record".to_owned(),
        _ => format!("{records} records"),
    }
}

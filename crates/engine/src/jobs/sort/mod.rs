//! `sort`: lines or records of one length, from files and streams, to one file or a stream.
//!
//! ```text
//!   [sample keys ──borders──▶] spill ──runs, in memory as far as it goes──▶ merge ──proof──▶ commit
//! ```
//!
//! Always by runs: in memory where they fit, on disk where not, in both where nobody knows beforehand. The output is
//! that of `LC_ALL=C sort` with the same options, for any memory and any number of workers.

mod check;
mod input;
mod plan;

use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use self::input::{Input, is_special, standard};
pub(super) use self::plan::Sort;
use self::plan::ranges;
use super::Job;
use super::explain::of_sort;
use super::resume::{FROM_STREAM, Places, TO_STREAM};
use super::runs::{RunOutcome, RunSort, Step, Targets, count_runs, lock};
use crate::commit::{FileStaging, SpillPlaces};
use crate::error::{Error, Kind, Result};
use crate::plan::explain::Explanation;
use crate::plan::format::Format;
use crate::plan::options::SortSpec;
use crate::record::checksum::Hex;
use crate::record::shape::{Fixed, Lines, Shape, ShapeKind};
use crate::spill::Stream;
use crate::split::{check_unchanged, check_whole_records};
use crate::storage::Store;
use crate::storage::layered::{Layered, MEMORY_PLACE};
use crate::storage::local::parent_of;
use crate::storage::stream::Sink;
use crate::task::{MergeTarget, RunPlan, TaskContext};

/// Standard input or output, as a name.
pub(super) const DASH: &str = "-";

pub(super) fn run(job: &mut Job<'_>, spec: &SortSpec) -> Result<()> {
    match shape_of(spec) {
        ShapeKind::Fixed(shape) => run_shape(job, spec, shape),
        ShapeKind::Lines(shape) => run_shape(job, spec, shape),
        ShapeKind::Pairs(_) => Err(no_pairs()),
    }
}

/// What a record is and what its key: without `--stable` all bytes of a record break ties, as in GNU sort.
fn shape_of(spec: &SortSpec) -> ShapeKind {
    let descending = spec.reverse;
    match spec.format {
        Format::Lines => Lines { descending }.kind(),
        Format::Fixed {
            record_bytes,
            key_bytes,
        } => {
            let whole = !(spec.stable || spec.unique);
            Fixed {
                record_bytes,
                key_bytes: if whole { record_bytes } else { key_bytes },
                descending,
            }
            .kind()
        }
    }
}

fn run_shape<S: Shape>(job: &mut Job<'_>, spec: &SortSpec, shape: S) -> Result<()> {
    let store = Arc::clone(&job.environment.store);
    let input = Input::find(&*store, spec)?;
    if let ShapeKind::Fixed(fixed) = shape.kind() {
        check_whole_records(&input.files, fixed.record_bytes)?;
    }
    if spec.check {
        return check::run(job, shape, spec, input);
    }
    let target = spec
        .output
        .as_deref()
        .filter(|path| *path != Path::new(DASH));
    let replaced = target.filter(|path| !is_special(path));
    let gone = match (input.streams.is_empty(), replaced) {
        (true, Some(_)) => None,
        (false, _) => Some(FROM_STREAM),
        (true, None) => Some(TO_STREAM),
    };
    job.take_inputs(&input.files, gone)?;
    let stream = match target {
        Some(target) if !is_special(target) => {
            let staging = job.file_staging(&*store, target, !spec.no_sync)?;
            let sorted = sort(job, spec, shape, input, &Output::File(&staging))?;
            fill_report(job, &sorted);
            job.begin_phase("commit");
            job.check_cancelled()?;
            job.publishing(&staging.path())?;
            return staging.publish();
        }
        Some(target) => open_special(target)?,
        None => standard(std::io::stdout().as_fd(), "standard output")?,
    };
    let sorted = sort(job, spec, shape, input, &Output::Stream(stream))?;
    fill_report(job, &sorted);
    Ok(())
}

/// Sorts with runs in memory where they have room; should a record be too long for what that leaves, without.
fn sort<S: Shape>(
    job: &mut Job<'_>,
    spec: &SortSpec,
    shape: S,
    input: Input,
    output: &Output<'_>,
) -> Result<Sorted> {
    let sort = Sort::new(job, spec, shape, &input, true)?;
    if !sort.fits {
        return sort.run(job, input, output, &mut false);
    }
    let again = Input {
        files: input.files.clone(),
        streams: Vec::new(),
    };
    let mut merging = false;
    match sort.run(job, input, output, &mut merging) {
        Err(error) if error.kind() == Kind::Memory && !merging => {
            Sort::new(job, spec, shape, &again, false)?.run(job, again, output, &mut merging)
        }
        done => done,
    }
}

/// Where the records go.
enum Output<'a> {
    File(&'a FileStaging<'a>),
    Stream(File),
}

impl Output<'_> {
    /// The tasks that write it.
    fn targets(&self, unique: bool, input_bytes: u64) -> Targets {
        let share = (input_bytes / 16).clamp(4 << 20, 128 << 20);
        match self {
            Output::File(staging) => {
                let path = staging.path();
                Box::new(move |sizes| {
                    Ok(if unique {
                        vec![MergeTarget::File(path.clone())]
                    } else {
                        ranges(&path, sizes, share)
                    })
                })
            }
            Output::Stream(_) => Box::new(|_| Ok(vec![MergeTarget::Stream])),
        }
    }

    /// Where runs go that do not fit in memory, where the user has not said.
    fn spill_place(&self) -> Result<PathBuf> {
        match self {
            Output::File(staging) => staging.spill_place(),
            Output::Stream(_) => Ok(PathBuf::from(".")),
        }
    }

    /// Where what is made can be found again.
    fn places(&self, runs: Vec<PathBuf>, shape: ShapeKind, unique: bool) -> Places {
        let (output, names) = match self {
            Output::File(staging) => {
                let path = staging.path();
                let name = path.file_name().unwrap_or_default();
                let names = vec![name.to_string_lossy().into_owned()];
                (parent_of(&path).to_owned(), names)
            }
            Output::Stream(_) => Default::default(),
        };
        Places {
            runs,
            output,
            names,
            shape,
            unique,
            attempts: None,
        }
    }

    fn sink(&self, job: &Job<'_>) -> Result<Option<Arc<Sink>>> {
        let Output::Stream(file) = self else {
            return Ok(None);
        };
        let file = standard(file.as_fd(), "the output")?;
        Ok(Some(Arc::new(Sink::new(file, job.control.flag()))))
    }
}

fn open_special(path: &Path) -> Result<File> {
    let opened = File::options().write(true).open(path);
    opened.map_err(|error| Error::from_io("open the output", path, &error))
}

fn no_pairs() -> Error {
    Error::bug("sort the input", "no format of sort's holds pairs")
}

/// What a sort would do.
pub(super) fn explain_sort(job: &Job<'_>, spec: &SortSpec) -> Result<Explanation> {
    match shape_of(spec) {
        ShapeKind::Fixed(shape) => explain_shape(job, spec, shape),
        ShapeKind::Lines(shape) => explain_shape(job, spec, shape),
        ShapeKind::Pairs(_) => Err(no_pairs()),
    }
}

fn explain_shape<S: Shape>(job: &Job<'_>, spec: &SortSpec, shape: S) -> Result<Explanation> {
    let input = Input::find(job.store(), spec)?;
    let sort = Sort::new(job, spec, shape, &input, true)?;
    let tasks = sort.inputs(job.store(), &input, job.workers)?.len() as u64;
    of_sort(job, &sort, input.files.len(), input.bytes(), tasks)
}

/// What came out.
struct Sorted {
    input_bytes: u64,
    records: u64,
    bytes: u64,
    duplicates: u64,
    checksum: u128,
}

impl<S: Shape> Sort<'_, S> {
    /// Runs the stages; sets `merging` when output may have been written.
    fn run(
        self,
        job: &mut Job<'_>,
        input: Input,
        output: &Output<'_>,
        merging: &mut bool,
    ) -> Result<Sorted> {
        let store = Arc::clone(&job.environment.store);
        let job_id = job.environment.job_id.clone();
        let (_spill, runs) = self.places(job, &*store, output, input.bytes())?;
        let inputs = self.inputs(&*store, &input, job.workers)?;
        let input_bytes = input.bytes();
        let (files, tasks) = (input.files.len(), inputs.len() as u64);
        job.watched
            .planned(|| of_sort(job, &self, files, input_bytes, tasks));
        let run_store: Arc<dyn Store> =
            Arc::new(Layered::new(Arc::clone(&store), self.memory_runs));
        let sample = self.sample(&input);
        let streams = input
            .streams
            .into_iter()
            .map(|(_, name, file)| Stream::new(name, file));
        let mut context = TaskContext::new(Arc::clone(&store), job.budget(), input.files, None);
        context.job_id = job_id;
        context.durable = job.durable(self.spec.no_sync);
        context.streams = streams.collect();
        context.runs = Arc::clone(&run_store);
        context.sink = output.sink(job)?.map(|sink| sink as _);
        let _runs = context.budget.reserve("runs in memory", self.memory_runs)?;
        let outcome = Arc::new(Mutex::new(RunOutcome::default()));
        let run_sort = RunSort {
            store: run_store,
            numbers: self.numbers.clone(),
            input_bytes,
            sample,
            borders: self.borders(),
            run_plan: Arc::new(RunPlan {
                shape: self.shape.kind(),
                unique: self.spec.unique,
                borders: Vec::new(),
                places: runs.clone(),
                buffer_bytes: self.numbers.buffer_bytes,
                needed: self.numbers.needed,
            }),
            inputs,
            targets: output.targets(self.spec.unique, input_bytes),
            outcome: Arc::clone(&outcome),
            step: Step::default(),
        };
        let places = output.places(runs, self.shape.kind(), self.spec.unique);
        let ended = job.run_kept(Box::new(run_sort), &context, &places);
        *merging = lock(&outcome).merging;
        match ended {
            Err(error) if matches!(error.kind(), Kind::Cancelled | Kind::ReaderGone) => {
                return Err(error);
            }
            ended => check_unchanged(&*context.store, &context.files).and(ended)?,
        }
        let outcome = lock(&outcome);
        self.prove(&context, &outcome)?;
        count_runs(job, outcome.bytes_read, &outcome);
        Ok(sorted(&outcome, self.spec.unique))
    }

    /// Where runs may go: memory, then the disks. Whoever holds the first gives what was made there back.
    fn places<'s>(
        &self,
        job: &Job<'_>,
        store: &'s dyn Store,
        output: &Output<'_>,
        input_bytes: u64,
    ) -> Result<(SpillPlaces<'s>, Vec<PathBuf>)> {
        let mut directories = self.spec.spill_dir.clone();
        let mut places = Vec::new();
        if self.memory_runs > 0 {
            places.push(PathBuf::from(MEMORY_PLACE));
        }
        // Should lines be shorter than they seemed and make more runs than memory holds, there is a place for them.
        if directories.is_empty() {
            directories.push(output.spill_place()?);
        }
        let spill = match job.spill_places(store, &directories) {
            Err(_) if self.fits => job.spill_places(store, &[])?,
            begun => begun?,
        };
        places.extend_from_slice(spill.folders());
        if !self.fits {
            job.check_room(store, spill.folders(), input_bytes)?;
        }
        Ok((spill, places))
    }

    /// Every byte consumed, as many records out as in, the same checksum, ranges in order.
    fn prove(&self, context: &TaskContext, outcome: &RunOutcome) -> Result<()> {
        let files: u64 = context.files.iter().map(|file| file.stat.bytes).sum();
        let added = match self.shape.kind() {
            ShapeKind::Fixed(_) | ShapeKind::Pairs(_) => 0,
            ShapeKind::Lines(_) => context.files.len() as u64, // newlines behind last lines
        };
        let exact = context.streams.is_empty();
        if exact && !(files..=files + added).contains(&outcome.bytes_read) {
            let message = format!("{} of {files} bytes were consumed", outcome.bytes_read);
            return Err(Error::new(Kind::Proof, "prove the input", message));
        }
        outcome.check_order(self.shape)?;
        outcome.check(self.spec.unique)
    }
}

fn sorted(outcome: &RunOutcome, unique: bool) -> Sorted {
    let proofs = || outcome.merged.iter().flat_map(|(_, proofs)| proofs);
    let records = proofs().map(|proof| proof.records).sum();
    let duplicates = proofs().map(|proof| proof.duplicates).sum();
    Sorted {
        input_bytes: outcome.bytes_read,
        records,
        bytes: proofs().map(|proof| proof.bytes).sum(),
        duplicates: if unique {
            outcome.records_read - records // also those that no run held any more
        } else {
            duplicates
        },
        checksum: proofs().map(|proof| proof.checksum).sum(),
    }
}

fn fill_report(job: &mut Job<'_>, sorted: &Sorted) {
    let report = &mut job.report;
    report.records = sorted.records;
    (report.input_bytes, report.output_bytes) = (sorted.input_bytes, sorted.bytes);
    report.parts = 1;
    report.duplicate_keys = sorted.duplicates;
    report.checksum = Hex(sorted.checksum).to_string();
    report.count("REDUCE_OUTPUT_RECORDS", sorted.records);
}

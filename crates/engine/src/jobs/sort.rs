//! `sort`: lines or records of one length, from files and streams, to one file or a stream.
//!
//! ```text
//!   [sample keys ──borders──▶] spill ──runs, in memory as far as it goes──▶ merge ──proof──▶ commit
//! ```
//!
//! Always by runs: in memory where they fit, on disk where not, in both where nobody knows beforehand. The output is
//! that of `LC_ALL=C sort` with the same options, for any memory and any number of workers.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::explain::of_sort;
use super::runs::{Borders, RunOutcome, RunSort, Step, Targets, count_runs, lock};
use super::{Job, sort_check};
use crate::commit::{FileStaging, SpillPlaces, check_room};
use crate::driver::Stage;
use crate::error::{Error, Kind, Result};
use crate::order::borders::borders_from_sample;
use crate::plan::explain::Explanation;
use crate::plan::format::Format;
use crate::plan::options::SortSpec;
use crate::plan::spill::SpillNumbers;
use crate::record::checksum::Hex;
use crate::record::shape::{Fixed, Lines, Shape, ShapeKind};
use crate::spill::Stream;
use crate::split::records::at_records;
use crate::split::{check_unchanged, check_whole_records, input_files, splits, stride};
use crate::storage::input::InputFile;
use crate::storage::layered::{Layered, MEMORY_PLACE};
use crate::storage::stream::Sink;
use crate::storage::{Caching, Store};
use crate::task::{
    MergeTarget, OutputFile, RangeSpec, RunPlan, SampleKeysSpec, SpillInput, TaskContext,
    TaskReport, TaskSpec,
};

/// Standard input or output, as a name.
const DASH: &str = "-";

/// Input below which one merge writes the output: cutting it would cost more than it saves.
const LEAST_CUT_BYTES: u64 = 32 << 20;

/// Bytes of a bucket of runs.
const BUCKET_BYTES: u64 = 8 << 20;
const MOST_BUCKETS: u64 = 1024;

/// Keys sampled for each bucket.
const SAMPLES_PER_BUCKET: u64 = 32;

/// Memory of a worker for records, where the runs stay in memory: what is sorted at once should not leave the caches
/// too far behind, and tasks should end together.
const MEMORY_WORKER_BYTES: u64 = 96 << 20;

/// Runs that memory is worth holding: for more input each is longer.
const FEW_RUNS: u64 = 50;

pub(super) fn run(job: &mut Job<'_>, spec: &SortSpec) -> Result<()> {
    match shape_of(spec) {
        ShapeKind::Fixed(shape) => run_shape(job, spec, shape),
        ShapeKind::Lines(shape) => run_shape(job, spec, shape),
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
        return sort_check::run(job, shape, spec, input);
    }
    let target = spec
        .output
        .as_deref()
        .filter(|path| *path != Path::new(DASH));
    let special = target.map(is_special);
    match target.filter(|_| special != Some(true)) {
        Some(target) => {
            let staging =
                FileStaging::begin(&*store, target, &job.environment.job_id, !spec.no_sync)?;
            let sorted = Sort::new(job, spec, shape, &input)?.into_file(job, input, &staging)?;
            job.begin_phase("commit");
            job.check_cancelled()?;
            staging.publish()?;
            fill_report(job, &sorted);
            Ok(())
        }
        None => {
            let sink = match target {
                Some(path) => open_special(path)?,
                None => standard(std::io::stdout().as_fd(), "standard output")?,
            };
            let sorted = Sort::new(job, spec, shape, &input)?.into_stream(job, input, sink)?;
            fill_report(job, &sorted);
            Ok(())
        }
    }
}

/// Whether an output is there and is neither file nor directory: a device or a pipe, which is written, not replaced.
fn is_special(path: &Path) -> bool {
    // Of what a link leads to, and of where it leads to only if something is there.
    std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

fn open_special(path: &Path) -> Result<File> {
    let opened = File::options().write(true).open(path);
    opened.map_err(|error| Error::from_io("open the output", path, &error))
}

/// A standard stream, as a file of our own.
fn standard(stream: std::os::fd::BorrowedFd<'_>, name: &str) -> Result<File> {
    let owned = stream.try_clone_to_owned();
    let failed = |error| Error::from_io("use a stream", Path::new(name), &error);
    owned.map(File::from).map_err(failed)
}

/// The input: files, and streams between them.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) files: Vec<InputFile>,
    /// Each with the number of files before it, and its name.
    pub(super) streams: Vec<(usize, String, File)>,
}

impl Input {
    fn find(store: &dyn Store, spec: &SortSpec) -> Result<Self> {
        let mut input = Input {
            files: Vec::new(),
            streams: Vec::new(),
        };
        let dash = [PathBuf::from(DASH)];
        let names = if spec.inputs.is_empty() {
            &dash[..]
        } else {
            &spec.inputs
        };
        for name in names {
            let place = input.files.len();
            if name == Path::new(DASH) {
                let file = standard(std::io::stdin().as_fd(), "standard input")?;
                input.streams.push((place, "standard input".into(), file));
            } else if is_special(name) {
                let file = File::open(name)
                    .map_err(|error| Error::from_io("open the input", name, &error))?;
                input
                    .streams
                    .push((place, name.display().to_string(), file));
            } else {
                for file in input_files(store, std::slice::from_ref(name))? {
                    input.add(store, file)?;
                }
            }
        }
        Ok(input)
    }

    /// Adds a file, which can be read, or the job ends here. One that says that it is empty and is not (those of
    /// /proc) is a stream.
    fn add(&mut self, store: &dyn Store, file: InputFile) -> Result<()> {
        let opened = store.open(&file.path, Caching::Cached)?;
        if file.stat.bytes == 0 && opened.read_at(&mut [0], 0)? > 0 {
            let stream = File::open(&file.path)
                .map_err(|error| Error::from_io("open the input", &file.path, &error))?;
            let name = file.path.display().to_string();
            self.streams.push((self.files.len(), name, stream));
        } else {
            self.files.push(file);
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.stat.bytes).sum()
    }
}

/// What a sort would do.
pub(super) fn explain_sort(job: &Job<'_>, spec: &SortSpec) -> Result<Explanation> {
    match shape_of(spec) {
        ShapeKind::Fixed(shape) => explain_shape(job, spec, shape),
        ShapeKind::Lines(shape) => explain_shape(job, spec, shape),
    }
}

fn explain_shape<S: Shape>(job: &Job<'_>, spec: &SortSpec, shape: S) -> Result<Explanation> {
    let input = Input::find(job.store(), spec)?;
    let sort = Sort::new(job, spec, shape, &input)?;
    let tasks = sort.inputs(job.store(), &input, job.workers)?.len() as u64;
    of_sort(job, &sort, input.files.len(), input.bytes(), tasks)
}

/// A sort that is planned.
pub(super) struct Sort<'a, S> {
    pub(super) spec: &'a SortSpec,
    shape: S,
    pub(super) numbers: SpillNumbers,
    /// What memory may hold of the runs.
    pub(super) memory_runs: u64,
    /// Whether that is all of them.
    pub(super) fits: bool,
    /// What a spill task reads of files.
    share_bytes: u64,
    pub(super) buckets: usize,
}

/// What came out.
struct Sorted {
    input_bytes: u64,
    records: u64,
    bytes: u64,
    duplicates: u64,
    checksum: u128,
}

impl<'a, S: Shape> Sort<'a, S> {
    fn new(job: &Job<'_>, spec: &'a SortSpec, shape: S, input: &Input) -> Result<Self> {
        let record_bytes = record_bytes(shape, job.store(), input)?;
        let (memory, workers) = (job.memory_bytes, job.workers);
        let known = input.bytes();
        let runs_bytes = known + known / 1000 + (input.files.len() as u64 + 64) * 16_384;
        let plan = |memory| SpillNumbers::new(memory, workers, record_bytes);
        let streams = !input.streams.is_empty();
        // Memory that is reserved and not touched costs nothing: long lines have room, and tasks are small.
        let share_of = |numbers: &SpillNumbers| {
            usable_bytes(numbers.arena_bytes).min(MEMORY_WORKER_BYTES.max(known / FEW_RUNS))
        };
        // A pass would need room for all runs a second time.
        let merged_at_once = |numbers: &SpillNumbers| {
            let tasks = spill_tasks(known, share_of(numbers), workers);
            numbers.passes((tasks + tasks / 8) as usize) == 0
        };
        let (beside, memory_runs) = if streams {
            (memory / 2, memory / 2)
        } else {
            (memory.saturating_sub(runs_bytes), runs_bytes)
        };
        let (numbers, memory_runs) = match plan(beside) {
            Ok(numbers) if streams => (numbers, memory_runs),
            Ok(numbers) if merged_at_once(&numbers) => (numbers.in_memory(), memory_runs),
            _ => (plan(memory)?, 0),
        };
        let fits = memory_runs > 0 && !streams;
        let share_bytes = if fits {
            share_of(&numbers)
        } else {
            usable_bytes(numbers.arena_bytes)
        };
        let cut = known >= LEAST_CUT_BYTES && !streams && !spec.unique && spec.output.is_some();
        let buckets = if cut {
            (known / BUCKET_BYTES).clamp(1, MOST_BUCKETS)
        } else {
            1
        };
        Ok(Sort {
            spec,
            shape,
            numbers,
            memory_runs,
            fits,
            share_bytes,
            buckets: buckets as usize,
        })
    }

    fn into_file(
        self,
        job: &mut Job<'_>,
        input: Input,
        staging: &FileStaging<'_>,
    ) -> Result<Sorted> {
        let (unique, path) = (self.spec.unique, staging.path());
        let share = (input.bytes() / 16).clamp(4 << 20, 128 << 20);
        let targets: Targets = Box::new(move |sizes| {
            Ok(if unique {
                vec![MergeTarget::File(path.clone())]
            } else {
                ranges(&path, sizes, share)
            })
        });
        let default = || staging.spill_place();
        self.run(job, input, targets, None, &default)
    }

    fn into_stream(self, job: &mut Job<'_>, input: Input, sink: File) -> Result<Sorted> {
        let targets: Targets = Box::new(|_| Ok(vec![MergeTarget::Stream]));
        let here = || Ok(PathBuf::from("."));
        self.run(job, input, targets, Some(sink), &here)
    }

    /// Runs the stages; `default_place` is where runs go that do not fit in memory, where the user has not said.
    fn run(
        self,
        job: &mut Job<'_>,
        input: Input,
        targets: Targets,
        sink: Option<File>,
        default_place: &dyn Fn() -> Result<PathBuf>,
    ) -> Result<Sorted> {
        let store = Arc::clone(&job.environment.store);
        let job_id = job.environment.job_id.clone();
        let mut directories = self.spec.spill_dir.clone();
        let mut places = Vec::new();
        if self.memory_runs > 0 {
            places.push(PathBuf::from(MEMORY_PLACE));
        }
        // Should lines be shorter than they seemed and make more runs than memory holds, there is a place for them.
        if directories.is_empty() {
            directories.push(default_place()?);
        }
        let spill = match SpillPlaces::begin(&*store, &directories, &job_id) {
            Err(_) if self.fits => SpillPlaces::begin(&*store, &[], &job_id)?,
            begun => begun?,
        };
        places.extend_from_slice(spill.folders());
        if !self.fits {
            check_room(&*store, spill.folders(), input.bytes())?;
        }
        let inputs = self.inputs(&*store, &input, job.workers)?;
        let input_bytes = input.bytes();
        let run_store: Arc<dyn Store> =
            Arc::new(Layered::new(Arc::clone(&store), self.memory_runs));
        let sample = self.sample(&input);
        let streams = input
            .streams
            .into_iter()
            .map(|(_, name, file)| Stream::new(name, file));
        let mut context = TaskContext::new(Arc::clone(&store), job.budget(), input.files, None);
        context.job_id = job_id;
        context.streams = streams.collect();
        context.runs = Arc::clone(&run_store);
        context.sink = sink.map(|file| Arc::new(Sink::new(file, job.control.flag())) as _);
        let _runs = context.budget.reserve("runs in memory", self.memory_runs)?;
        let outcome = Arc::new(Mutex::new(RunOutcome::default()));
        let run_sort = RunSort {
            store: run_store,
            numbers: self.numbers.clone(),
            input_bytes,
            sample,
            borders: borders_of(self.shape, self.buckets),
            run_plan: Arc::new(RunPlan {
                shape: self.shape.kind(),
                unique: self.spec.unique,
                borders: Vec::new(),
                places,
                buffer_bytes: self.numbers.buffer_bytes,
            }),
            inputs,
            targets,
            outcome: Arc::clone(&outcome),
            step: Step::default(),
        };
        let ended = job.run_plan(Box::new(run_sort), &context);
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

    /// What the spill tasks read: shares of the files, and the streams between them, in input order.
    fn inputs(&self, store: &dyn Store, input: &Input, workers: usize) -> Result<Vec<SpillInput>> {
        let record_bytes = match self.shape.kind() {
            ShapeKind::Fixed(fixed) => fixed.record_bytes as u64,
            ShapeKind::Lines(_) => 1,
        };
        let usable = self.share_bytes;
        let mut inputs = Vec::new();
        let mut first = 0;
        let ends = input.streams.iter().map(|(place, ..)| *place);
        for (stream, end) in ends.chain([input.files.len()]).enumerate() {
            let between = first..end;
            let sizes: Vec<u64> = input
                .files
                .iter()
                .enumerate()
                .map(|(number, file)| {
                    if between.contains(&number) {
                        file.stat.bytes
                    } else {
                        0
                    }
                })
                .collect();
            let bytes: u64 = sizes.iter().sum();
            let tasks = spill_tasks(bytes, usable, workers).max(1);
            let target = bytes.div_ceil(tasks).clamp(1 << 20, usable.max(1 << 20));
            let cut = splits(&sizes, target, stride(record_bytes));
            let cut = at_records(self.shape, store, &input.files, cut)?;
            inputs.extend(cut.into_iter().map(SpillInput::Pieces));
            if stream < input.streams.len() {
                inputs.extend((0..workers).map(|_| SpillInput::Stream(stream)));
            }
            first = end;
        }
        Ok(inputs)
    }

    /// The stage that samples keys at even places, where the output is cut.
    fn sample(&self, input: &Input) -> Option<Stage> {
        if self.buckets == 1 {
            return None;
        }
        let count = self.buckets as u64 * SAMPLES_PER_BUCKET;
        let step = (input.bytes() / count).max(1);
        let (mut places, mut next) = (Vec::new(), 0);
        let mut before = 0;
        for (number, file) in input.files.iter().enumerate() {
            let end = before + file.stat.bytes;
            while next < end {
                places.push((number, next - before));
                next += step;
            }
            before = end;
        }
        let shape = self.shape.kind();
        let task = |places: &[(usize, u64)]| {
            TaskSpec::SampleKeys(SampleKeysSpec {
                places: places.to_vec(),
                shape,
            })
        };
        Some(Stage {
            name: "sample",
            bytes: 0,
            tasks: places.chunks(1024).map(task).collect(),
        })
    }

    /// Every byte consumed, as many records out as in, the same checksum, ranges in order.
    fn prove(&self, context: &TaskContext, outcome: &RunOutcome) -> Result<()> {
        let files: u64 = context.files.iter().map(|file| file.stat.bytes).sum();
        let added = match self.shape.kind() {
            ShapeKind::Fixed(_) => 0,
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

/// What a spill task reads at most, so that it makes one run: splits have slop, and pieces begin at whole blocks.
fn usable_bytes(arena_bytes: usize) -> u64 {
    arena_bytes as u64 / 12 * 10
}

/// How many tasks spill so many bytes, a share each.
fn spill_tasks(bytes: u64, share_bytes: u64, workers: usize) -> u64 {
    bytes
        .div_ceil(share_bytes.max(1))
        .next_multiple_of(workers as u64)
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

/// Merge tasks of ranges of one file, of about `share` bytes each.
fn ranges(path: &Path, sizes: &[(u64, u64)], share: u64) -> Vec<MergeTarget> {
    let file = OutputFile {
        path: path.to_owned(),
        bytes: sizes.iter().map(|(bytes, _)| bytes).sum(),
    };
    let (mut targets, mut start, mut offset, mut bytes) = (Vec::new(), 0, 0, 0);
    for (bucket, size) in sizes.iter().enumerate() {
        bytes += size.0;
        let last = bucket + 1 == sizes.len();
        if bytes >= share || last {
            targets.push(MergeTarget::Ranges(vec![RangeSpec {
                file: file.clone(),
                offset,
                buckets: start..bucket + 1,
            }]));
            (start, offset, bytes) = (bucket + 1, offset + bytes, 0);
        }
    }
    targets
}

fn borders_of<S: Shape>(shape: S, buckets: usize) -> Borders {
    Box::new(move |reports| {
        let mut sample = Vec::new();
        for report in reports {
            match report {
                TaskReport::SampleKeys(keys) => sample.extend(keys),
                _ => return Err(Error::bug("sort the input", "a report of another kind")),
            }
        }
        Ok(borders_from_sample(shape, sample, buckets))
    })
}

/// The length of a typical record: of all where it is fixed, else as in the beginning of the first file.
fn record_bytes<S: Shape>(shape: S, store: &dyn Store, input: &Input) -> Result<u64> {
    const LOOK_BYTES: usize = 64 << 10;
    const UNKNOWN_LINE_BYTES: u64 = 32;
    if let ShapeKind::Fixed(fixed) = shape.kind() {
        return Ok(fixed.record_bytes as u64);
    }
    let Some(file) = input.files.iter().find(|file| file.stat.bytes > 0) else {
        return Ok(UNKNOWN_LINE_BYTES);
    };
    let mut buffer = vec![0; LOOK_BYTES];
    let read = store
        .open(&file.path, Caching::Cached)?
        .read_at(&mut buffer, 0)?;
    let lines = memchr::memchr_iter(b'\n', &buffer[..read]).count();
    Ok((read / lines.max(1)) as u64)
}

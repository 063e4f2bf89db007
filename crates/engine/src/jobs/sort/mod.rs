//! `sort`: lines or records of one length, from files and streams, to one file or a stream.
//!
//! ```text
//!   [sample keys ──borders──▶] spill ──runs, in memory as far as it goes──▶ merge ──proof──▶ commit
//! ```
//!
//! Always by runs: in memory where they fit, on disk where not, in both where it is not known beforehand. The output is
//! that of `LC_ALL=C sort` with the same options, for any memory and any number of workers.

mod check;
mod explain;
mod input;
mod keys;
mod plan;

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use self::input::Input;
use self::keys::SortKeys;
use self::plan::{Sort, ranges};
use super::kind::{Described, JobKind};
use super::passes::Passes;
use super::runs::{RunOutcome, RunSort, Step, Targets, count_runs};
use super::steps::far::far_inputs;
use super::steps::refusal::{FROM_STREAM, TO_STREAM};
use super::steps::{self, Job, OutputLocations, lock, refusal};
use crate::commit::{Committer, Made, SpillDirs};
use crate::error::{Error, Kind, Result};
use crate::plan::explain::Explanation;
use crate::plan::format::Format;
use crate::plan::table::{CommandSpec, argument, option, options};
use crate::record::checksum::Hex;
use crate::record::shape::{Fixed, Lines, Shape, ShapeKind};
use crate::sorted_run::RunCompression;
use crate::spill::Stream;
use crate::split::check_whole_records;
use crate::storage::agents::AGENT_PLACE;
use crate::storage::layered::{Layered, MEMORY_PLACE};
use crate::storage::location::{Location, parent_of};
use crate::storage::objects::Upload;
use crate::storage::stores::Stores;
use crate::storage::stream::{File, Sink, is_special, open_to_write, standard};
use crate::storage::{Caps, LocalDisk};
use crate::task::{InProcess, MergeTarget, Node, TaskContext};

/// Standard input or output, as a name.
pub(super) const DASH: &str = "-";

/// What standard output is called in errors.
const STDOUT: &str = "standard output";

options! {
    /// Options of `sort`, as given.
    pub(in crate::jobs) struct SortSpec {
        inputs: Vec<Location> = argument("Files, or directories whose files are read; - is standard input, which is also read without INPUT.")
            .or("standard input"),
        output: Option<Location> = option(
            "standard output",
            "The file to write; replaced at once if it exists, also if it is an input.",
        ).short("o"),
        format: Format = option(
            "lines",
            "What a record is: lines, fixed:LEN or fixed:LEN:KEYLEN (bytes).",
        ),
        reverse: bool = option("off", "Larger keys first.").short("r"),
        unique: bool = option("off", "Write only the first of records with equal keys.").short("u"),
        stable: bool = option(
            "off",
            "Keep records with equal keys in input order; without it, all their bytes decide.",
        ).short("s"),
        key: Vec<String> = option(
            "the whole line",
            "A key, as F[.C][OPTS][,F[.C][OPTS]]: from field F, character C, to the end of the line or of another field; OPTS \
             are letters of the order below, for this key alone. Repeatable: later keys decide where earlier ones are equal.",
        ).short("k"),
        field_separator: Option<String> = option(
            "a blank, where the one before it is not a blank",
            "The byte between fields; \\0 is NUL.",
        ).short("t"),
        numeric_sort: bool = option("off", "Compare numbers: -1.5, 2, 10.").short("n"),
        general_numeric_sort: bool = option(
            "off",
            "Compare numbers as C reads them: 1e3, 0x10, inf.",
        ).short("g"),
        human_numeric_sort: bool = option("off", "Compare numbers with units: 2K, 1G.").short("h"),
        version_sort: bool = option("off", "Compare names with versions in them: a-1.9, a-1.10.").short("V"),
        month_sort: bool = option("off", "Compare names of months: JAN, Feb, dec.").short("M"),
        ignore_case: bool = option("off", "Take a to z as A to Z.").short("f"),
        dictionary_order: bool = option("off", "Compare letters, digits and blanks only.").short("d"),
        ignore_nonprinting: bool = option("off", "Compare printable ASCII characters only.").short("i"),
        ignore_leading_blanks: bool = option("off", "Skip blanks at the beginning of keys.").short("b"),
        sort: Option<String> = option(
            "text",
            "The order as a word: general-numeric, human-numeric, month, numeric or version.",
        ),
        zero_terminated: bool = option("off", "Lines end with NUL, in the input and in the output.").short("z"),
        merge: bool = option("off", "Accepted, as in GNU sort; the inputs are sorted again.").short("m"),
        check: bool = option(
            "off",
            "Sort nothing: exit with 0 if the input is in order, with 1 if it is not.",
        ).short("c"),
    }
}

impl Described for SortSpec {
    const COMMAND: CommandSpec = CommandSpec {
        name: "sort",
        help: "Sort lines, or records of one length, as LC_ALL=C sort does; files of any size.",
        details: "",
        example: "gristmill sort big.txt -o sorted.txt --memory 4G",
        python: r#"
>>> import tempfile, gristmill
>>> from pathlib import Path
>>> with tempfile.TemporaryDirectory() as folder:
...     path = Path(folder, "words")
...     _ = path.write_text("pear\nfig\napple\nfig\n")
...     report = gristmill.sort(path, output=path, unique=True)
...     path.read_text().split(), report.records, report.duplicate_keys
(['apple', 'fig', 'pear'], 3, 1)
"#,
        explained: true,
        own: Self::OPTIONS,
        common: &[
            "memory",
            "workers",
            "runner",
            "on",
            "nodes",
            "collect",
            "spill_dir",
            "compress_runs",
            "store_option",
            "no_sync",
            "replication",
            "block_size",
        ],
    };
}

impl JobKind for SortSpec {
    fn output(&self) -> Option<steps::Output<'_>> {
        self.output.as_ref().map(steps::Output::File)
    }

    fn resumable(&self) -> Result<()> {
        let dash = |given: &Location| given.as_typed() == Path::new(DASH);
        let from_stream = self.inputs.is_empty() || self.inputs.iter().any(dash);
        let to_stream = self.output.as_ref().is_none_or(dash);
        let (why, advice) = match (self.check, from_stream, to_stream) {
            (true, _, _) => ("it only checked that its input is in order", ""),
            (false, true, _) => (FROM_STREAM, "sort files, which can be read again"),
            (false, false, true) => (TO_STREAM, "name an output"),
            (false, false, false) => return Ok(()),
        };
        Err(refusal(why, advice))
    }

    fn explain(&self, job: &Job<'_>) -> Result<Explanation> {
        match shape_of(self)? {
            ShapeKind::Fixed(shape) => explain_shape(job, self, shape),
            ShapeKind::Lines(shape) => explain_shape(job, self, shape),
            ShapeKind::Keyed(shape) => explain_shape(job, self, shape),
            ShapeKind::Pairs(_) => Err(no_pairs()),
        }
    }

    fn run(&self, job: &mut Job<'_>) -> Result<()> {
        match shape_of(self)? {
            ShapeKind::Fixed(shape) => run_shape(job, self, shape),
            ShapeKind::Lines(shape) => run_shape(job, self, shape),
            ShapeKind::Keyed(shape) => run_shape(job, self, shape),
            ShapeKind::Pairs(_) => Err(no_pairs()),
        }
    }
}

impl SortSpec {
    /// What is written, where that is not standard output.
    fn target(&self) -> Option<&Location> {
        let given = self.output.as_ref();
        given.filter(|given| given.as_typed() != Path::new(DASH))
    }

    /// The stream that is written, where that is neither standard output nor a file.
    fn stream(&self) -> Option<&Path> {
        let path = self.target().and_then(Location::local);
        path.filter(|path| is_special(path))
    }

    /// Whether the output is a file, and not a stream.
    fn writes_file(&self) -> bool {
        self.target().is_some() && self.stream().is_none()
    }
}

/// What a record is and what its key: without `--stable` all bytes of a record break ties, as in GNU sort.
fn shape_of(spec: &SortSpec) -> Result<ShapeKind> {
    let descending = spec.reverse;
    if let Some(keys) = SortKeys::of(spec)? {
        return Ok(keys.shape().kind());
    }
    Ok(match spec.format {
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
    })
}

fn run_shape<S: Shape>(job: &mut Job<'_>, spec: &SortSpec, shape: S) -> Result<()> {
    let store = Arc::clone(&job.environment.store);
    let input = Input::find(&store, spec)?;
    if let ShapeKind::Fixed(fixed) = shape.kind() {
        check_whole_records(&input.files, fixed.record_bytes)?;
    }
    if spec.check {
        return check::run(job, shape, spec, input);
    }
    let writes_file = spec.writes_file();
    let gone = match (input.streams.is_empty(), writes_file) {
        (true, true) => None,
        (false, _) => Some(FROM_STREAM),
        (true, false) => Some(TO_STREAM),
    };
    if let (Some(_), Some(why)) = (job.resumed, gone) {
        return Err(job.refusal(why));
    }
    job.take_inputs(&input.files, None)?;
    let output = match (spec.target(), spec.stream()) {
        (_, Some(path)) => {
            let opened = open_to_write(path, &job.control.flag())?;
            Output::Stream(opened, path.to_owned())
        }
        (Some(target), None) => Output::File(job.committer(steps::Output::File(target), (&[], 0))?),
        (None, None) => {
            let stdout = standard(std::io::stdout().as_fd(), STDOUT, true)?;
            Output::Stream(stdout, STDOUT.into())
        }
    };
    let sorted = sort(job, spec, shape, input, &output)?;
    fill_report(job, &sorted);
    let Output::File(committer) = output else {
        return Ok(());
    };
    job.begin_commit()?;
    let made = Made {
        names: &[],
        uploads: &sorted.uploads,
        success: b"",
    };
    job.publish(committer, &made)
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
    File(Box<dyn Committer + 'a>),
    /// With what it is called.
    Stream(File, PathBuf),
}

impl Output<'_> {
    /// The tasks that write it.
    fn targets(&self, stores: &Stores, unique: bool, input_bytes: u64) -> Targets {
        match self {
            Output::File(committer) => {
                let path = committer.path_of("".as_ref());
                let share = match stores.caps(&path) {
                    Caps::Ranges => (input_bytes / 16).clamp(4 << 20, 128 << 20),
                    Caps::Whole => u64::MAX,
                };
                Box::new(move |sizes| {
                    Ok(if unique {
                        vec![MergeTarget::File(path.clone())]
                    } else {
                        ranges(&path, sizes, share)
                    })
                })
            }
            Output::Stream(..) => Box::new(|_| Ok(vec![MergeTarget::Stream])),
        }
    }

    /// Where runs go that do not fit in memory, where the user has not said.
    fn spill_place(&self) -> Result<PathBuf> {
        match self {
            Output::File(committer) => committer.spill_place(),
            Output::Stream(..) => Ok(PathBuf::from(".")),
        }
    }

    /// Where what is made can be found again.
    fn places(
        &self,
        runs: Vec<PathBuf>,
        (shape, unique): (ShapeKind, bool),
        compression: RunCompression,
    ) -> OutputLocations {
        let (output, names, uploads) = match self {
            Output::File(committer) => {
                let path = committer.staged();
                let names = vec![path.file_name().unwrap_or_default().into()];
                let uploads = vec![committer.path_of("".as_ref())];
                (parent_of(&path).to_owned(), names, uploads)
            }
            Output::Stream(..) => Default::default(),
        };
        OutputLocations {
            runs,
            output,
            names,
            uploads,
            shape,
            unique,
            compression,
            attempts: None,
        }
    }

    fn sink(&self, job: &Job<'_>) -> Result<Option<Arc<Sink>>> {
        let Output::Stream(file, name) = self else {
            return Ok(None);
        };
        let again = file.try_clone();
        let file = again.map_err(|error| Error::from_io("use a stream", name, &error))?;
        let sink = Sink::new(file, name.clone(), job.control.flag());
        Ok(Some(Arc::new(sink)))
    }
}

fn no_pairs() -> Error {
    Error::bug("sort the input", "no format of sort's holds pairs")
}

fn explain_shape<S: Shape>(job: &Job<'_>, spec: &SortSpec, shape: S) -> Result<Explanation> {
    let input = Input::find(job.store(), spec)?;
    let sort = Sort::new(job, spec, shape, &input, true)?;
    let tasks = sort.inputs(job.store(), &input, job.workers)?.len() as u64;
    let files = input.files.len();
    let explained = explain::of_plan(
        job,
        &sort,
        files,
        input.bytes(),
        input.stream_names(),
        tasks,
    )?;
    job.with_stores(explained, &far_inputs(&input.files))
}

/// What came out.
struct Sorted {
    input_bytes: u64,
    records: u64,
    bytes: u64,
    duplicates: u64,
    checksum: u128,
    /// The output, where it was uploaded.
    uploads: Vec<Upload>,
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
        let (spill, runs) = self.places(job, &**store.disk(), output)?;
        if !self.fits {
            job.tell_of_runs(spill.folders());
        }
        let inputs = self.inputs(&store, &input, job.workers)?;
        let (input_bytes, streams) = (input.bytes(), input.stream_names());
        let (files, tasks) = (input.files.len(), inputs.len() as u64);
        job.watched
            .planned(|| explain::of_plan(job, &self, files, input_bytes, streams, tasks));
        let run_store: Arc<dyn LocalDisk> =
            Arc::new(Layered::new(Arc::clone(store.disk()), self.memory_runs));
        let sample = self.sample(&input);
        let streams = input
            .streams
            .into_iter()
            .map(|(_, name, file)| Stream::new(name, file));
        let process = InProcess::Streams {
            inputs: streams.collect(),
            output: output.sink(job)?.map(|sink| sink as _),
        };
        let node = Node::new(Arc::clone(&store), job.budget()).with_runs(run_store);
        let context = TaskContext::new(job.shared(input.files), node, process);
        let _runs = context
            .node
            .budget
            .reserve("runs in memory", self.memory_runs)?;
        let outcome = Arc::new(Mutex::new(RunOutcome::default()));
        let records = (self.shape.kind(), self.spec.unique);
        let places = output.places(runs, records, job.common.compress_runs);
        let run_sort = RunSort {
            keys: self
                .keys
                .as_ref()
                .map(|keys| keys.words.clone())
                .unwrap_or_default(),
            input_bytes,
            sample,
            borders: self.borders(),
            passes: Passes::new(&places, Vec::new(), self.numbers.clone()),
            inputs,
            targets: output.targets(&context.node.store, self.spec.unique, input_bytes),
            outcome: Arc::clone(&outcome),
            step: Step::default(),
        };
        let ended = job.run_kept(Box::new(run_sort), &context, &places);
        *merging = lock(&outcome).merging;
        ended?;
        let outcome = lock(&outcome);
        self.prove(&context, &outcome)?;
        count_runs(job, outcome.bytes_read, &outcome);
        Ok(sorted(&outcome, self.spec.unique))
    }

    /// Where runs may go: memory, then the disks. Dropping the first value gives back what was made there.
    fn places<'s>(
        &self,
        job: &Job<'_>,
        store: &'s dyn LocalDisk,
        output: &Output<'_>,
    ) -> Result<(SpillDirs<'s>, Vec<PathBuf>)> {
        if job.cluster().is_some() {
            return Ok((job.spill_places(store, &[])?, vec![AGENT_PLACE.into()]));
        }
        let mut directories = job.common.spill_dir.clone();
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
            let beside = match output {
                Output::File(committer) => Some(committer.folder()),
                Output::Stream(..) => None,
            };
            job.check_room(store, spill.folders(), (self.grown, beside))?;
        }
        Ok((spill, places))
    }

    /// Every byte consumed, as many records out as in, the same checksum, ranges in order.
    fn prove(&self, context: &TaskContext, outcome: &RunOutcome) -> Result<()> {
        let files: u64 = context.job.files.iter().map(|file| file.stat.bytes).sum();
        let added = match self.shape.kind() {
            ShapeKind::Fixed(_) | ShapeKind::Pairs(_) => 0,
            ShapeKind::Lines(_) | ShapeKind::Keyed(_) => context.job.files.len() as u64, // newlines behind last lines
        };
        let exact = !context.reads_streams();
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
        uploads: proofs().filter_map(|proof| proof.upload.clone()).collect(),
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

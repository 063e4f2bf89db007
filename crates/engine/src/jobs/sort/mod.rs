//! `sort`: lines, rows of tables or records of one length, from files and streams, to a file, parts or a stream.
//!
//! ```text
//!   sample keys ──borders──▶ map ──sizes──▶ reduce ──proof──▶ commit                  lines that fit (lines.rs)
//!   [sample keys ──borders──▶] spill ──runs, in memory as far as it goes──▶ merge ──proof──▶ commit
//! ```
//!
//! Plain lines of files are sorted where they lie. All else goes by runs: in memory where they fit, on disk where not, in
//! both where it is not known beforehand. The output is that of `LC_ALL=C sort` with the same options, for any memory and any number of workers.

mod check;
mod check_table;
mod explain;
mod input;
mod keys;
mod lines;
mod options;
mod output;
mod plan;
mod shares;
mod table;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use self::input::SortInput;
use self::keys::SortKeys;
use self::lines::LineSort;
pub(in crate::jobs) use self::options::SortSpec;
use self::output::{SortOutput, WrittenFile};
use self::plan::Sort;
use super::kind::JobKind;
use super::runs::{RunOutcome, RunSort, count_runs};
use super::shuffle::Shuffle;
use super::steps::refusal::{FROM_STREAM, TO_STREAM};
use super::steps::remote_inputs::remote_inputs;
use super::steps::{self, RunningJob, refusal};
use super::tables::InputTable;
use crate::driver::{StagedPlan, TypedStage};
use crate::plan::disk::RunDisk;
use crate::plan::explain::Explanation;
use crate::plan::format::RecordFormat;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::record::checksum::Hex;
use gristmill_base::record::shape::{Fixed, LineShape, Shape, ShapeKind};
use gristmill_base::sync::lock;
use gristmill_storage::LocalDisk;
use gristmill_storage::codec::Codec;
use gristmill_storage::layered::Layered;
use gristmill_storage::location::{DASH, Location};
use gristmill_storage::objects::Upload;
use gristmill_storage::run_name::{AGENT_PLACE, MEMORY_PLACE};
use gristmill_tasks::commit::SpillDirs;
use gristmill_tasks::spill::{LeftOut, SharedStream};
use gristmill_tasks::split::check_whole_records;
use gristmill_tasks::task::{InProcess, NodeContext, TaskContext, TypedTask};

impl JobKind for SortSpec {
    fn output(&self) -> Option<steps::JobOutput<'_>> {
        let output = self.output.as_ref()?;
        Some(match self.parts {
            Some(_) => steps::JobOutput::Directory(output),
            None => steps::JobOutput::File(output),
        })
    }

    fn writes_stream(&self) -> bool {
        !self.check && !self.writes_file()
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

    fn explain(&self, job: &RunningJob<'_>) -> Result<Explanation> {
        match shape_of(self)? {
            ShapeKind::Fixed(shape) => explain_shape(job, self, shape),
            ShapeKind::Lines(shape) => explain_shape(job, self, shape),
            ShapeKind::Keyed(shape) => explain_shape(job, self, shape),
            ShapeKind::Pairs(_) => Err(no_pairs()),
        }
    }

    fn run(&self, job: &mut RunningJob<'_>) -> Result<()> {
        match shape_of(self)? {
            ShapeKind::Fixed(shape) => run_shape(job, self, shape),
            ShapeKind::Lines(shape) => run_shape(job, self, shape),
            ShapeKind::Keyed(shape) => run_shape(job, self, shape),
            ShapeKind::Pairs(_) => Err(no_pairs()),
        }
    }
}

/// What a record is and what its key: without `--stable` all bytes of a record break ties, as in GNU sort.
fn shape_of(spec: &SortSpec) -> Result<ShapeKind> {
    let descending = spec.reverse;
    if spec.is_table() {
        return Ok(InputTable::shape().kind());
    }
    if let Some(keys) = SortKeys::of(spec)? {
        return Ok(keys.shape().kind());
    }
    Ok(match spec.format {
        RecordFormat::Lines => LineShape { descending }.kind(),
        RecordFormat::Fixed {
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

fn run_shape<S: Shape>(job: &mut RunningJob<'_>, spec: &SortSpec, shape: S) -> Result<()> {
    let input = input_of(job, spec, shape, true)?;
    if let Some(notice) = input.table.as_ref().and_then(InputTable::notice) {
        tell(job, notice);
    }
    if let Some(notice) = plain_notice(spec) {
        tell(job, notice);
    }
    match (spec.check, &input.table) {
        (true, Some(_)) => return check_table::run(job, spec, input),
        (true, None) => return check::run(job, shape, spec, input),
        (false, _) => {}
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
    let output = SortOutput::begin(job, spec, &input)?;
    let sorted = sort(job, spec, shape, input, &output)?;
    fill_report(job, &sorted);
    output.publish(job, &sorted)
}

/// What to say of an output whose name speaks of a compression that was not asked for.
fn plain_notice(spec: &SortSpec) -> Option<String> {
    let writes = spec.writes_file() && spec.parts.is_none() && !spec.check;
    let target = spec
        .target()
        .filter(|_| writes && spec.compress.codec().is_none())?;
    Codec::by_suffix(target.as_typed())?;
    Some(format!(
        "{target} is not compressed, whatever its name says: --compress (in Python compress=) compresses the output"
    ))
}

/// What is read; of a table, with its keys. What explains a job reads no stream.
fn input_of<S: Shape>(
    job: &RunningJob<'_>,
    spec: &SortSpec,
    shape: S,
    runs: bool,
) -> Result<SortInput> {
    spec.check_parts()?;
    let mut input = SortInput::find(job.store(), spec)?;
    input.table = table::find(job, spec, &mut input, runs)?;
    if let ShapeKind::Fixed(fixed) = shape.kind() {
        let plain = input.files.iter().zip(&input.codecs);
        let plain = plain.filter(|(_, codec)| codec.is_none());
        let plain: Vec<_> = plain.map(|(file, _)| file.clone()).collect();
        check_whole_records(&plain, fixed.record_bytes)?;
    }
    if spec.parts.is_some_and(|parts| parts > 1) && !input.streams.is_empty() {
        let message = "parts are cut by a sample of the input, and a stream can be read only once";
        return Err(Error::new(Kind::BadOption, "sort the input", message)
            .advise("sort files, or write one file"));
    }
    Ok(input)
}

/// Sorts where the lines lie, or with runs in memory where they have room; should they turn out to be too many, or a record be
/// too long for what that leaves, without.
fn sort<S: Shape>(
    job: &mut RunningJob<'_>,
    spec: &SortSpec,
    shape: S,
    input: SortInput,
    output: &SortOutput<'_>,
) -> Result<SortOutcome> {
    if let Some(lines) = LineSort::of(job, spec, &input)? {
        let mut writing = false;
        match lines.run(job, &input, output, &mut writing) {
            Err(error) if error.kind() == Kind::Memory && !writing => {}
            done => return done,
        }
    }
    let sort = Sort::new(job, spec, shape, &input, true)?;
    if !sort.fits {
        return sort.run(job, input, output, &mut false);
    }
    let again = input.files_again();
    let mut merging = false;
    match sort.run(job, input, output, &mut merging) {
        Err(error) if error.kind() == Kind::Memory && !merging => {
            Sort::new(job, spec, shape, &again, false)?.run(job, again, output, &mut merging)
        }
        done => done,
    }
}

fn no_pairs() -> Error {
    Error::bug("sort the input", "no format of sort's holds pairs")
}

fn explain_shape<S: Shape>(job: &RunningJob<'_>, spec: &SortSpec, shape: S) -> Result<Explanation> {
    let input = input_of(job, spec, shape, false)?;
    if let Some(lines) = LineSort::of(job, spec, &input)? {
        return lines.explain(job, input.files.len());
    }
    let sort = Sort::new(job, spec, shape, &input, true)?;
    let inputs = sort.about(job, &input)?;
    let tasks = (
        sample_count(sort.sample(&input).as_ref()),
        inputs.len() as u64,
        sort.disk(job, &input, &inputs),
    );
    let files = input.files.len();
    let explained = explain::of_plan(
        job,
        &sort,
        files,
        input.bytes(),
        input.stream_names(),
        tasks,
    )?;
    job.with_stores(explained, &remote_inputs(&input.files))
}

fn sample_count<K: TypedTask>(sample: Option<&TypedStage<K>>) -> u64 {
    sample.map_or(0, |stage| stage.tasks() as u64)
}

/// What came out.
struct SortOutcome {
    input_bytes: u64,
    records: u64,
    bytes: u64,
    duplicates: u64,
    checksum: u128,
    /// The output, where it was uploaded.
    uploads: Vec<Upload>,
    /// Headers in the output, which are no records: the first part has one, or none.
    headers: u64,
    /// The files of the output.
    files: Vec<WrittenFile>,
    /// Whether proofs may show keys: they are bytes of records.
    shows_keys: bool,
}

impl<S: Shape> Sort<'_, S> {
    /// Runs the stages; sets `merging` when output may have been written.
    fn run(
        self,
        job: &mut RunningJob<'_>,
        input: SortInput,
        output: &SortOutput<'_>,
        merging: &mut bool,
    ) -> Result<SortOutcome> {
        let store = Arc::clone(&job.environment.store);
        let inputs = self.inputs(job, &input)?;
        let disk = self.disk(job, &input, &inputs);
        let (spill, runs) = self.places(job, &**store.disk(), output, disk)?;
        if !self.fits {
            job.tell_of_runs(&spill.folders());
        }
        let (input_bytes, streams) = (input.bytes(), input.stream_names());
        let compressed = input.has_compressed();
        let sample = self.sample(&input);
        let tasks = (sample_count(sample.as_ref()), inputs.len() as u64, disk);
        let files = input.files.len();
        job.watched
            .planned(|| explain::of_plan(job, &self, files, input_bytes, streams, tasks));
        let run_store: Arc<dyn LocalDisk> =
            Arc::new(Layered::new(Arc::clone(store.disk()), self.memory_runs));
        let streams = input
            .streams
            .into_iter()
            .map(|stream| SharedStream::new(stream.name, stream.file).behind(stream.begun));
        let process = InProcess::Streams {
            inputs: streams.collect(),
            output: output.sink(job)?.map(|sink| sink as _),
        };
        let node = NodeContext::new(Arc::clone(&store), job.budget()).with_runs(run_store);
        let node = node.with_runs_in_memory(self.memory_runs)?;
        job.note_node_memory(&self.memory_layout);
        let context = TaskContext::new(job.shared(input.files), node, process);
        let outcome = Arc::new(Mutex::new(RunOutcome::default()));
        let records = (self.shape.kind(), self.spec.unique);
        let mut places = output.places(runs, records, job.common.compress_runs);
        places.codes = self.codes(places.names.first());
        let run_sort = RunSort {
            keys: self.key_words(),
            table: self.table.as_ref().map(|table| table.keys.clone()),
            input_bytes,
            shuffle: Shuffle::new(
                job.shuffle(),
                &places,
                Vec::new(),
                self.memory_layout.clone(),
            ),
            merges: self.merges(input_bytes),
            inputs,
            targets: output.targets(&context.node.store, self.spec.unique, input_bytes),
            outcome: Arc::clone(&outcome),
        };
        let borders = self.borders();
        let begin = match sample {
            None => run_sort.begin(borders(Vec::new())),
            Some(sample) => sample.then(move |keys| {
                Ok(run_sort.begin(borders(keys.into_iter().flatten().collect())))
            }),
        };
        let ended = job.run_kept(StagedPlan::new(begin), &context, &places);
        *merging = lock(&outcome).merging;
        ended?;
        let outcome = lock(&outcome);
        self.prove(&context, &outcome, compressed)?;
        count_runs(job, outcome.bytes_read, &outcome);
        let first = self.table.as_ref().map_or("", |table| table.keys.first());
        Self::tell_of_bad_rows(job, &outcome.left_out, first);
        if output.folder().is_some() {
            job.begin_commit()?; // its runs go first, which takes time
        }
        Ok(self.sorted(&outcome))
    }

    /// Where runs may go: memory, then the disks. Dropping the first value gives back what was made there.
    fn places<'s>(
        &self,
        job: &RunningJob<'_>,
        store: &'s dyn LocalDisk,
        output: &SortOutput<'_>,
        disk: RunDisk,
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
        places.extend(spill.folders());
        if !self.fits {
            job.check_room(store, &spill.folders(), (disk, output.folder()))?;
        }
        Ok((spill, places))
    }

    /// How many bytes there are in compressed files, nobody says; that they were read to their ends, decoders prove.
    fn prove(&self, context: &TaskContext, outcome: &RunOutcome, compressed: bool) -> Result<()> {
        let ending = self
            .table
            .as_ref()
            .map_or(1, |table| table.keys.ending.len());
        let exact = !context.reads_streams() && !compressed;
        let order = (self.shape, self.spec.unique);
        prove(order, context, outcome, exact.then_some(ending))
    }

    /// Tells of rows that were left out.
    fn tell_of_bad_rows(job: &mut RunningJob<'_>, left_out: &LeftOut, first: &str) {
        let bad_rows = left_out.bad_rows;
        if bad_rows == 0 {
            return;
        }
        job.report.left_out.clone_from(&left_out.first);
        job.report.count("SKIPPED_RECORDS", bad_rows);
        let rows = if bad_rows == 1 {
            "row was"
        } else {
            "rows were"
        };
        let what = format!("more fields than the {first}, or fewer");
        let mut notice = format!("{bad_rows} {rows} left out: {what}");
        if let Some(first) = left_out.first.first() {
            notice = format!("{notice}; the first: {first}");
        }
        tell(job, notice);
    }

    fn sorted(&self, outcome: &RunOutcome) -> SortOutcome {
        // A header is no record.
        let header = self.table.as_ref().and_then(|table| table.keys.header);
        let headers = u64::from(header.is_some());
        let sorted = sorted(outcome, self.spec.unique);
        SortOutcome {
            records: sorted.records - headers,
            headers,
            shows_keys: !matches!(self.shape.kind(), ShapeKind::Keyed(_)),
            ..sorted
        }
    }
}

/// Every byte consumed, as many records out as in, the same checksum, ranges in order. `ending` are the bytes of a newline
/// that may be added to the end of a file; none where nobody knows how many bytes there are.
fn prove<S: Shape>(
    (shape, unique): (S, bool),
    context: &TaskContext,
    outcome: &RunOutcome,
    ending: Option<usize>,
) -> Result<()> {
    let files: u64 = context.job.files.iter().map(|file| file.stat.bytes).sum();
    let read = outcome.input_bytes();
    if let Some(ending) = ending {
        let added = match shape.kind() {
            ShapeKind::Fixed(_) | ShapeKind::Pairs(_) => 0,
            // Newlines behind last lines.
            ShapeKind::Lines(_) | ShapeKind::Keyed(_) => context.job.files.len() * ending,
        };
        if !(files..=files + added as u64).contains(&read) {
            let message = format!("{read} of {files} bytes were consumed");
            return Err(Error::new(Kind::Proof, "prove the input", message));
        }
    }
    outcome.check_order(shape)?;
    outcome.check(unique)
}

fn sorted(outcome: &RunOutcome, unique: bool) -> SortOutcome {
    let proofs = || outcome.merged.iter().flat_map(|(_, proofs)| proofs);
    let records: u64 = proofs().map(|proof| proof.records).sum();
    let duplicates = proofs().map(|proof| proof.duplicates).sum();
    SortOutcome {
        input_bytes: outcome.input_bytes(),
        records,
        bytes: proofs().map(|proof| proof.bytes).sum(),
        duplicates: if unique {
            outcome.records_read - records // also those that no run held any more
        } else {
            duplicates
        },
        checksum: proofs().map(|proof| proof.checksum).sum(),
        uploads: proofs().filter_map(|proof| proof.upload.clone()).collect(),
        headers: 0,
        files: SortOutcome::files_of(outcome),
        shows_keys: true,
    }
}

/// Tells the user something, at once and in the report.
fn tell(job: &mut RunningJob<'_>, notice: String) {
    job.control.notice(notice.clone());
    job.report.notices.push(notice);
}

fn fill_report(job: &mut RunningJob<'_>, sorted: &SortOutcome) {
    let report = &mut job.report;
    report.records = sorted.records;
    (report.input_bytes, report.output_bytes) = (sorted.input_bytes, sorted.bytes);
    report.parts = 1;
    report.duplicate_keys = sorted.duplicates;
    report.checksum = Hex(sorted.checksum).to_string();
    report.count("REDUCE_OUTPUT_RECORDS", sorted.records);
}

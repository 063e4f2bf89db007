//! Native jobs: an operator over the records of files. How their inputs are split follows from the inputs and the options alone.
//!
//! Decision: docs/decisions/native-operators.md.

use std::fmt::Debug;
use std::sync::Arc;

use gristmill_grep::encoding_of;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::native_inputs::{NativeInputs, names_stream};
use super::native_output::NativeOutput;
use super::side_inputs;
use crate::jobs::kind::JobKind;
use crate::jobs::report::JobReport;
use crate::jobs::steps::refusal::{FROM_STREAM, TO_STREAM};
use crate::jobs::steps::{JobOutput, RunningJob, refusal};
use crate::jobs::tables::{
    InputTable, RecordsAsked, RowsForm, Starts, beginning_of_file, first_line,
};
use crate::plan::amount::check_count;
use crate::plan::explain::Explanation;
use crate::plan::mapreduce::{MapReduceSpec, OutputForm, PARTITIONS_MAX, UserCodeCommand};
use crate::plan::sort::default_parts;
use crate::plan::table::CommandOptions;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::record::table_keys::{TableKeys, TableSource};
use gristmill_storage::input::{FileRange, InputFile};
use gristmill_storage::lines::LineEnd;
use gristmill_storage::location::Location;
use gristmill_storage::stores::Stores;
use gristmill_tasks::split::several_lines::moved;
use gristmill_tasks::split::text::{TextSplit, TextSplits, codec_of, text_splits};
use gristmill_tasks::task::{
    InputRanges, LEFT_OUT, NOT_DECODED, NativeExecutor, NativeSplit, Operator, RecordForm,
    UserTaskExecutor,
};

/// A job of an operator. Its file has its options, and answers this; all else that a kind of job does follows.
pub(in crate::jobs) trait NativeJob: CommandOptions + Debug + Send + Sync {
    /// The files and streams that are read, of each of its inputs; one that names none is standard input.
    fn inputs(&self) -> Vec<&[Location]>;

    /// What is made.
    fn output(&self) -> NativeOutput<'_>;

    /// How many parts it has, if not as many as its input calls for.
    ///
    /// # Errors
    /// Options do not go together.
    fn parts(&self) -> Result<Option<usize>>;

    /// What the records of its inputs are.
    ///
    /// # Errors
    /// Options do not go together.
    fn records(&self) -> Result<RecordsAsked> {
        Ok(RecordsAsked::Lines(LineEnd::Lf))
    }

    /// Whether the [operator](Self::operator) is to know the first line of each input of lines: as the header of a table.
    fn reads_first_lines(&self) -> bool {
        false
    }

    /// Why maps may not hold the inputs but the first, where these are small, and write the output in the order of the first, without a
    /// shuffle; `None`: they do.
    fn shuffles(&self) -> Option<&'static str> {
        Some("")
    }

    /// What is done with the records; the tables are those of its inputs, where they are some.
    ///
    /// # Errors
    /// An option makes no sense.
    fn operator(&self, tables: &[InputTable]) -> Result<Box<dyn Operator>>;
}

/// What another process makes an operator of.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::jobs) struct NativeDefinition {
    /// The job's options.
    pub(in crate::jobs) options: Box<RawValue>,
    pub(in crate::jobs) tables: Vec<InputTable>,
}

impl NativeDefinition {
    /// As it came.
    ///
    /// # Errors
    /// It is none: a defect of Gristmill.
    pub(in crate::jobs) fn read(definition: &str) -> Result<Self> {
        serde_json::from_str(definition)
            .map_err(|error| Error::bug("read a job's definition", error.to_string()))
    }
}

/// How the records of each input are told from each other, where these are the tables.
fn forms_of(native: &impl NativeJob, tables: &[InputTable]) -> Result<Vec<RecordForm>> {
    let of_all = |form| vec![form; native.inputs().len()];
    Ok(match native.records()? {
        RecordsAsked::Lines(end) => of_all(RecordForm::Lines(end)),
        RecordsAsked::Fields(end, separator) => of_all(RecordForm::Fields(end, separator)),
        RecordsAsked::Objects(keys) => keys.into_iter().map(RecordForm::Objects).collect(),
        RecordsAsked::Rows(_) => {
            let keys = tables.iter().map(|table| table.keys.clone());
            keys.map(RecordForm::Rows).collect()
        }
    })
}

/// Fails where the output would lie in an input, before anything is read or made.
fn check_places(native: &impl NativeJob, job: &RunningJob<'_>) -> Result<()> {
    let written = NativeJob::output(native);
    let inputs = native.inputs();
    let mut all = inputs.iter();
    all.try_for_each(|paths| written.check(job.store(), paths))
}

impl<J: NativeJob> JobKind for J {
    fn output(&self) -> Option<JobOutput<'_>> {
        match NativeJob::output(self) {
            NativeOutput::Directory(target) => Some(JobOutput::Directory(target)),
            NativeOutput::NamedFiles(target, _) => Some(JobOutput::NamedFiles(target)),
            NativeOutput::File(target) => Some(JobOutput::File(target)),
            NativeOutput::Stream(_) | NativeOutput::PartsOfStream => None,
        }
    }

    fn writes_stream(&self) -> bool {
        NativeJob::output(self).is_stream()
    }

    fn resumable(&self) -> Result<()> {
        match (names_stream(&self.inputs()), self.writes_stream()) {
            (true, _) => Err(refusal(FROM_STREAM, "name files, which can be read again")),
            (false, true) => Err(refusal(TO_STREAM, "name an output")),
            (false, false) => Ok(()),
        }
    }

    fn work(
        &self,
        store: Arc<Stores>,
        tables: &[InputTable],
        definition: &str,
    ) -> Result<Option<Arc<dyn UserTaskExecutor>>> {
        let work = (self.operator(tables)?, forms_of(self, tables)?);
        let definition = definition.as_bytes().to_vec();
        Ok(Some(Arc::new(NativeExecutor::new(store, work, definition))))
    }

    fn explain(&self, job: &RunningJob<'_>) -> Result<Explanation> {
        check_places(self, job)?;
        let inputs = NativeInputs::look(job, &self.inputs())?;
        let planned = Planned::of(self, job, (&inputs.files, false))?;
        let mut explained = super::explain(job, &planned.spec)?;
        explained.reason.push_str(planned.why);
        Ok(inputs.explain(explained))
    }

    fn run(&self, job: &mut RunningJob<'_>) -> Result<()> {
        check_options(self)?;
        check_places(self, job)?;
        let inputs = NativeInputs::save(job, &self.inputs())?;
        let done = run_on(self, job, &inputs.files);
        inputs.name_in_report(&mut job.report);
        done.map_err(|error| inputs.name_in(error))
    }
}

/// Looks at the options alone.
fn check_options(native: &impl NativeJob) -> Result<()> {
    native.records()?;
    native.operator(&[])?;
    check_count("parts", native.parts()?, PARTITIONS_MAX)
}

/// Runs a job on these files of its inputs.
fn run_on<J: NativeJob>(
    native: &J,
    job: &mut RunningJob<'_>,
    files: &[Vec<InputFile>],
) -> Result<()> {
    let planned = Planned::of(native, job, (files, true))?;
    let forms = forms_of(native, &planned.tables)?;
    let definition = NativeDefinition {
        options: RawValue::from_string(job.asked.options.to_owned())
            .map_err(|error| not_kept(&error))?,
        tables: planned.tables,
    };
    let definition = serde_json::to_vec(&definition).map_err(|error| not_kept(&error))?;
    let store = Arc::clone(&job.environment.store);
    let work = NativeExecutor::new(store, (planned.operator, forms), definition);
    super::run_native(job, planned.spec, Arc::new(work))
}

fn not_kept(error: &serde_json::Error) -> Error {
    Error::bug("keep a job's definition", error.to_string())
}

/// Splits for each worker: when one is late, the others have something left.
const SPLITS_EACH: u64 = 2;
const SPLIT_MIN_BYTES: u64 = 4 << 20;
const SPLIT_MAX_BYTES: u64 = 512 << 20;

/// Where pairs are grouped twice, and ranges of the input put together, each share of a usual part is a partition: so workers have
/// something to do.
const SHARES_OF_PART: u64 = 4;

/// How many partitions there are where nobody asks for parts. Ranges of the input that are put together are the same bytes however
/// many they are.
fn partitions_of(operator: &dyn Operator, form: &OutputForm, input_bytes: u64) -> usize {
    match operator.regroups() && form.is_joined() {
        true => default_parts(input_bytes.saturating_mul(SHARES_OF_PART)).min(PARTITIONS_MAX),
        false => default_parts(input_bytes),
    }
}

/// So many ranges of the input.
fn ranges_of(files: &[Vec<InputFile>], ranges: u32) -> Arc<InputRanges> {
    let files = files.iter().flatten();
    let lengths: Vec<u64> = files.map(|file| file.stat.bytes).collect();
    Arc::new(InputRanges::even(&lengths, ranges))
}

/// Bytes of a split: many, as a key is given once by each split that has it, however often it occurs there.
fn good_split(input_bytes: u64, workers: usize) -> u64 {
    let even = input_bytes / (SPLITS_EACH * workers.max(1) as u64);
    even.clamp(SPLIT_MIN_BYTES, SPLIT_MAX_BYTES)
}

/// A native job that is planned.
struct Planned {
    spec: MapReduceSpec,
    /// The tables that its inputs are.
    tables: Vec<InputTable>,
    operator: Box<dyn Operator>,
    /// Why pairs are shuffled that need not always be; in words, behind others.
    why: &'static str,
}

/// Behind what is said of a job that could do without a shuffle.
const TOO_LARGE: &str =
    "; the inputs but the first are too large for each map to hold them, or the first is empty";

impl Planned {
    /// Looks at the options, then at the inputs; at where rows begin only if the job is to be run.
    fn of(
        native: &impl NativeJob,
        job: &RunningJob<'_>,
        (files, runs): (&[Vec<InputFile>], bool),
    ) -> Result<Self> {
        check_options(native)?;
        let (parts, written) = (native.parts()?, NativeJob::output(native));
        let asked = native.records()?;
        let input_bytes: u64 = files.iter().flatten().map(|file| file.stat.bytes).sum();
        let split = SplitInputs::of(native, job, (&asked, files), runs)?;
        let operator = native.operator(&split.tables)?;
        let why = match native.shuffles() {
            None if split.first.is_empty() => Some(TOO_LARGE),
            None => {
                let forms = forms_of(native, &split.tables)?;
                let are_small = side_inputs::are_small(job, (&*operator, &forms), &split.others)?;
                (!are_small).then_some(TOO_LARGE)
            }
            why => why,
        };
        let tables = split.tables;
        let splits = match why {
            None => side_inputs::splits_with(split.first, &split.others)?,
            Some(_) => side_inputs::user_splits(split.first.into_iter().chain(split.others))?,
        };
        let (output, form) = written.planned();
        let partitions = match (why, parts) {
            (None, _) => 0,
            (Some(_), Some(parts)) => parts,
            (Some(_), None) => partitions_of(&*operator, &form, input_bytes),
        } as u32;
        let regroups = operator.regroups().then(|| ranges_of(files, partitions));
        let spec = MapReduceSpec {
            command: UserCodeCommand::Native,
            splits,
            files: files
                .iter()
                .flatten()
                .map(|file| file.path.clone())
                .collect(),
            partitions,
            regroups,
            output,
            form,
            header_bytes: operator.header().len() as u64,
            skip_bad: tables
                .iter()
                .map(|table| table.keys.skip_bad)
                .max()
                .unwrap_or(0),
            ..MapReduceSpec::default()
        };
        Ok(Planned {
            spec,
            tables,
            operator,
            why: why.unwrap_or_default(),
        })
    }
}

/// The inputs of a job, cut.
struct SplitInputs {
    /// Splits of the first input, and those of the others.
    first: Vec<NativeSplit>,
    others: Vec<NativeSplit>,
    /// What is known of each input before it is read.
    tables: Vec<InputTable>,
}

impl SplitInputs {
    /// Cuts the files of each input; where rows begin only if the job is to be run.
    fn of(
        native: &impl NativeJob,
        job: &RunningJob<'_>,
        (asked, files): (&RecordsAsked, &[Vec<InputFile>]),
        runs: bool,
    ) -> Result<Self> {
        let input_bytes = files.iter().flatten().map(|file| file.stat.bytes).sum();
        let split_bytes = good_split(input_bytes, job.workers);
        let (mut first, mut others, mut tables) = (Vec::new(), Vec::new(), Vec::new());
        let mut numbers = FileNumbers::of(files.iter().flatten());
        for (input, files) in files.iter().enumerate() {
            let mut found = text_splits(job.store(), files, &TextSplits::of_lines(split_bytes))?;
            if let RecordsAsked::Rows(asked) = asked
                && let Some((form, keys)) = asked.get(input)
            {
                let mut table = table_of(job, *form, files)?;
                table.find_columns(keys.clone())?;
                if runs {
                    found = at_rows(job, (files, &table.keys), found)?;
                }
                tables.push(table);
            } else if native.reads_first_lines() {
                tables.push(first_line_of(job, files, asked.line_end())?);
            }
            let splits = if input == 0 { &mut first } else { &mut others };
            splits.extend(found.into_iter().map(|pieces| NativeSplit {
                input,
                files: pieces.iter().map(|piece| numbers.next(piece)).collect(),
                pieces,
                sides: Vec::new(),
            }));
        }
        Ok(SplitInputs {
            first,
            others,
            tables,
        })
    }
}

/// Tells the files of pieces that come in the order of the input: one may be given twice, so that its path does not tell it.
#[derive(Debug)]
struct FileNumbers {
    /// Those of the files that have pieces, which are all but the empty ones.
    rest: std::vec::IntoIter<u32>,
    number: u32,
}

impl FileNumbers {
    fn of<'f>(files: impl Iterator<Item = &'f InputFile>) -> Self {
        let numbered = files.zip(0..);
        let rest = numbered.filter(|(file, _)| file.stat.bytes > 0);
        let rest: Vec<u32> = rest.map(|(_, number)| number).collect();
        FileNumbers {
            rest: rest.into_iter(),
            number: 0,
        }
    }

    /// The number of the file of the next piece, which is another one where the piece begins with it.
    fn next(&mut self, piece: &FileRange) -> u32 {
        if piece.offset == 0 {
            self.number = self.rest.next().unwrap_or(self.number);
        }
        self.number
    }
}

/// Reads the headers of the files of a table.
fn table_of(job: &RunningJob<'_>, form: RowsForm, files: &[InputFile]) -> Result<InputTable> {
    let mut table = InputTable::new(form);
    for (number, file) in files.iter().enumerate() {
        let codec = codec_of(job.store(), file)?;
        let begins = beginning_of_file(job.store(), (file, codec), form)?;
        if let Some(encoding) = encoding_of(&begins.bytes) {
            return Err(not_decoded(file, encoding));
        }
        let header = begins.header();
        table.take(header, TableSource::File(number), &file.path.to_string())?;
    }
    table.keys.header = None; // each part of the output gets its own
    Ok(table)
}

/// Reads the first line of an input of lines.
fn first_line_of(job: &RunningJob<'_>, files: &[InputFile], end: LineEnd) -> Result<InputTable> {
    let (mut header, mut of) = (Vec::new(), String::new());
    if let Some(file) = files.iter().find(|file| file.stat.bytes > 0) {
        of = file.path.to_string();
        header = first_line(job.store(), file, end)?;
    }
    Ok(InputTable::of_first_line(header, of))
}

/// The error of a table that looks like this encoding.
fn not_decoded(file: &InputFile, encoding: &str) -> Error {
    let message = format!("it looks like {encoding}, and tables are read as bytes of UTF-8");
    Error::new(Kind::BadInput, "read the input", message)
        .with("file", file.path.to_string())
        .advise(format!(
            "decode it: iconv -f {encoding} -t UTF-8 < FILE > NEW"
        ))
}

/// Moves the borders of splits to where rows begin, which takes a look at all bytes of the files that are cut.
fn at_rows(
    job: &RunningJob<'_>,
    (files, table): (&[InputFile], &TableKeys),
    splits: Vec<TextSplit>,
) -> Result<Vec<TextSplit>> {
    let (mut found, mut numbers) = (Starts::default(), FileNumbers::of(files.iter()));
    let mut starts = Vec::with_capacity(splits.len());
    for split in &splits {
        for (at, piece) in split.iter().enumerate() {
            let number = numbers.next(piece) as usize;
            if at > 0 {
                continue; // only whole files share a split
            }
            let file = files.get(number);
            let file = file.ok_or_else(|| Error::bug("cut the input", "a split has no file"))?;
            starts.push(found.of(job, (number, file), piece.offset, table)?);
        }
    }
    Ok(moved(splits, starts))
}

/// Files that are told one by one.
const TOLD: usize = 3;

/// Moves what the tasks say of encodings from the counters to the warnings.
pub(super) fn tell_encodings(report: &mut JobReport) {
    let files = report.user_counters.remove(NOT_DECODED).unwrap_or_default();
    for file in files.keys().take(TOLD) {
        let encoding = file.rsplit(' ').next().unwrap_or_default();
        report.warnings.push(format!(
            "{file}, and its bytes are counted as they are. To decode it: iconv -f {encoding} -t UTF-8"
        ));
    }
    if let Some(more @ 1..) = files.len().checked_sub(TOLD) {
        let also = format!("{more} more file(s) look like UTF-16 or UTF-32");
        report.warnings.push(also);
    }
}

/// Rows that the report names, at most.
const NAMED_MAX: usize = 20;

/// Moves what the tasks say of rows that are left out from the counters to the report.
pub(super) fn tell_left_out(report: &mut JobReport, rows: u64) {
    let Some(named) = report.user_counters.remove(LEFT_OUT) else {
        return;
    };
    report.left_out = named.into_keys().take(NAMED_MAX).collect();
    let first = report.left_out.first().map_or("", String::as_str);
    let what = if rows == 1 { "row is" } else { "rows are" };
    report
        .warnings
        .push(format!("{rows} {what} left out. One of them: {first}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_have_two_splits_each_within_bounds() {
        assert_eq!(good_split(1 << 30, 2), 256 << 20);
        assert_eq!(good_split(1 << 20, 2), SPLIT_MIN_BYTES);
        assert_eq!(good_split(1 << 40, 2), SPLIT_MAX_BYTES);
        assert_eq!(good_split(1 << 30, 0), SPLIT_MAX_BYTES);
    }
}

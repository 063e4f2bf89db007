//! The spill task: pieces of the input, or what a stream still has, to sorted run files.

use std::fmt::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use gristmill_gnu_keys::Keys;
use serde::{Deserialize, Serialize};

use crate::spill::in_order::InOrder;
use crate::spill::keyed::{KeyedPlan, spill_keyed};
use crate::spill::rows::{self, First, RowsPlan};
use crate::spill::{SpillPlan, SpillSource, SpilledRun, UnreadRanges, spill_bytes, spill_source};
use crate::task::checkpoint::names_of_runs;
use crate::task::context::JobShared;
use crate::task::input::{self, InputPiece};
use crate::task::runs::not_read;
use crate::task::{
    Checkpoint, Counters, Fingerprint, RunPlan, Side, TaskAttempt, TaskContext, TaskEnvironment,
    TaskKind,
};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::names;
use gristmill_base::record::shape::{Keyed, Shape, ShapeKind};
use gristmill_base::record::table_keys::{TableKeys, TableSource};
use gristmill_storage::codec::Codec;
use gristmill_storage::input::{InputFile, InputRange};

/// What a spill task reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SpillInput {
    /// Ranges of files.
    Ranges(Vec<InputRange>),
    /// What one of the job's streams still has, beside other tasks; of a table, all of it.
    Stream(usize),
    /// All of a compressed file.
    Decoded {
        /// Its number.
        file: usize,
        /// How it is compressed.
        codec: Codec,
    },
}

/// What to spill, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpillSpec {
    /// What to read.
    pub input: SpillInput,
    /// How to write it.
    #[serde(with = "crate::task::wire::shared")]
    pub runs: Arc<RunPlan>,
    /// Bytes of records and entries that are sorted at once.
    pub chunk_bytes: usize,
    /// The length of a record to reckon with before there are any.
    pub typical_bytes: usize,
    /// GNU sort's options for keys; none where lines have none.
    #[serde(default)]
    pub keys: Vec<String>,
    /// How rows are keyed, where the input is a table.
    #[serde(default)]
    pub table: Option<TableKeys>,
}

impl TaskKind for SpillSpec {
    type Report = Vec<SpilledRun>;

    fn run(&self, (context, attempt, scratch): TaskEnvironment<'_>) -> Result<Self::Report> {
        let bytes = spill_bytes(self.chunk_bytes, self.runs.buffer_bytes);
        let _memory = context.node.budget.reserve("records to spill", bytes)?;
        scratch.keep_for_spill();
        let place = (context, attempt, scratch);
        let spilled = match (self.runs.shape, &self.table) {
            (ShapeKind::Fixed(shape), _) => self.spill(shape, place),
            (ShapeKind::Lines(shape), _) => self.spill(shape, place),
            (ShapeKind::Pairs(_), _) => Err(not_read()),
            (ShapeKind::Keyed(shape), None) => self.spill_keyed(shape, place),
            (ShapeKind::Keyed(shape), Some(table)) => self.spill_rows((shape, table), place),
        };
        let mut runs = match &self.input {
            // What this attempt has read is lost with it: another one would go on behind that.
            SpillInput::Stream(_) => spilled.map_err(Error::final_error),
            _ => spilled,
        }?;
        context.node.name_runs(&mut runs);
        Ok(runs)
    }

    fn input(&self, context: &TaskContext) -> String {
        match &self.input {
            SpillInput::Ranges(split) => input::pieces(split, context),
            SpillInput::Stream(_) => "a stream".to_owned(),
            SpillInput::Decoded { file, .. } => input::whole(*file, context),
        }
    }

    fn input_pieces(&self, job: &JobShared) -> Vec<InputPiece> {
        match &self.input {
            SpillInput::Ranges(split) => input::input_pieces(split, job),
            SpillInput::Stream(_) => Vec::new(),
            SpillInput::Decoded { file, .. } => {
                let found = job.files.get(*file);
                found
                    .map(|file| (file.path.clone(), 0..file.stat.bytes))
                    .into_iter()
                    .collect()
            }
        }
    }

    fn counters(&self, runs: &Vec<SpilledRun>) -> Counters {
        let sum = |of: fn(&SpilledRun) -> u64| runs.iter().map(of).sum();
        vec![
            ("MAP_INPUT_RECORDS", sum(|run| run.records_read)),
            ("MAP_OUTPUT_RECORDS", sum(|run| run.records)),
            ("SPILLED_RECORDS", sum(|run| run.records)),
            ("SPILLED_RUNS", runs.len() as u64),
            ("FILE_BYTES_READ", sum(|run| run.bytes_read)),
            ("FILE_BYTES_WRITTEN", sum(SpilledRun::disk_bytes)),
        ]
    }

    fn side(&self) -> Option<Side> {
        Some(Side::Map)
    }

    fn stays_here(&self) -> bool {
        matches!(self.input, SpillInput::Stream(_))
    }

    fn writes_apart(&self) -> bool {
        !self.stays_here()
    }

    fn checkpoint(&self, runs: &Vec<SpilledRun>) -> Option<Checkpoint> {
        names_of_runs(runs, self.runs.shape).map(Checkpoint::Spill)
    }

    fn fingerprint(&self, print: &mut Fingerprint) -> fmt::Result {
        let (input, chunk, typical) = (&self.input, self.chunk_bytes, self.typical_bytes);
        write!(print, "spill {input:?} {chunk} {typical} ")?;
        if !self.keys.is_empty() {
            write!(print, "{:?} ", self.keys)?;
        }
        if let Some(table) = &self.table {
            write!(print, "{table:?} ")?;
        }
        print.plan(&self.runs)
    }

    fn runs(runs: &Vec<SpilledRun>) -> &[SpilledRun] {
        runs
    }
}

impl SpillSpec {
    fn spill<S: Shape>(
        &self,
        shape: S,
        (context, attempt, scratch): TaskEnvironment<'_>,
    ) -> Result<Vec<SpilledRun>> {
        let (plan, source) = (plan_of(shape, self, context), self.source(context)?);
        let (disk, name) = (&*context.node.runs, name_of(attempt));
        let progress = |bytes| attempt.progress(bytes);
        spill_source(&plan, disk, source, &name, &mut scratch.spill, &progress)
    }

    fn spill_keyed(
        &self,
        shape: Keyed,
        (context, attempt, scratch): TaskEnvironment<'_>,
    ) -> Result<Vec<SpilledRun>> {
        let plan = KeyedPlan {
            spill: plan_of(shape, self, context),
            keys: &parse_keys(&self.keys)?,
        };
        let (disk, name) = (&*context.node.runs, name_of(attempt));
        let (source, progress) = (self.source(context)?, |bytes| attempt.progress(bytes));
        spill_keyed(&plan, disk, source, &name, &mut scratch.spill, &progress)
    }

    fn spill_rows(
        &self,
        (shape, table): (Keyed, &TableKeys),
        (context, attempt, scratch): TaskEnvironment<'_>,
    ) -> Result<Vec<SpilledRun>> {
        let plan = RowsPlan {
            spill: plan_of(shape, self, context),
            table,
        };
        let of = |source: TableSource| First::of(table, source);
        let sources = match &self.input {
            SpillInput::Ranges(pieces) => {
                let source = |piece: &InputRange| {
                    let first = match piece.offset {
                        0 => of(TableSource::File(piece.file)),
                        _ => First::Row,
                    };
                    Ok((InOrder::Range(file_of(context, piece.file)?, *piece), first))
                };
                pieces.iter().map(source).collect::<Result<_>>()?
            }
            SpillInput::Stream(number) => {
                let first = of(TableSource::Stream(*number));
                vec![(InOrder::Stream(context.stream(*number)?), first)]
            }
            SpillInput::Decoded { file, codec } => {
                let first = of(TableSource::File(*file));
                vec![(InOrder::Decoded(file_of(context, *file)?, *codec), first)]
            }
        };
        let places = (&*context.node.runs, &*context.node.store);
        let (name, progress) = (name_of(attempt), |bytes| attempt.progress(bytes));
        rows::spill_rows(
            &plan,
            places,
            &sources,
            &name,
            &mut scratch.spill,
            &progress,
        )
    }

    fn source<'a>(&'a self, context: &'a TaskContext) -> Result<SpillSource<'a>> {
        let (store, files) = (&context.node.store, &context.job.files);
        Ok(match &self.input {
            SpillInput::Ranges(pieces) => {
                SpillSource::Ranges(UnreadRanges::new(store, files, &context.starts, pieces))
            }
            SpillInput::Stream(number) => SpillSource::Stream(context.stream(*number)?),
            SpillInput::Decoded { file, codec } => {
                SpillSource::InOrder(InOrder::Decoded(file_of(context, *file)?, *codec), store)
            }
        })
    }
}

fn file_of(context: &TaskContext, number: usize) -> Result<&InputFile> {
    let file = context.job.files.get(number);
    file.ok_or_else(|| Error::bug("run a task", format!("there is no input file {number}")))
}

/// Reads GNU sort's options for keys, whose bytes are spelled as those of names are.
///
/// ```
/// use gristmill_tasks::task::parse_keys;
/// assert!(parse_keys(&["-k2,2n".to_owned()]).is_ok());
/// assert!(parse_keys(&["-k0".to_owned()]).is_err());
/// assert!(parse_keys(&["-t\0ff".to_owned()]).is_ok()); // the byte 0xff
/// ```
pub fn parse_keys(words: &[String]) -> Result<Keys> {
    let wrong = |error: gristmill_gnu_keys::Error| {
        Error::new(Kind::BadOption, "read the options", error.to_string())
    };
    let words = words.iter().map(|word| names::name_of(word.clone()));
    let words: Vec<_> = words.collect();
    Keys::parse(words.iter().map(|word| word.as_bytes())).map_err(wrong)
}

fn plan_of<'a, S: Shape>(
    shape: S,
    spec: &'a SpillSpec,
    context: &'a TaskContext,
) -> SpillPlan<'a, S> {
    SpillPlan {
        shape,
        borders: &spec.runs.borders,
        unique: spec.runs.unique,
        chunk_bytes: spec.chunk_bytes,
        typical_bytes: spec.typical_bytes,
        needed: spec.runs.needed,
        buffer_bytes: spec.runs.buffer_bytes,
        compression: spec.runs.compression,
        job_id: &context.job.job_id,
        places: context.node.run_folders(&spec.runs.places),
    }
}

fn name_of(attempt: &TaskAttempt<'_>) -> String {
    format!("{:05}-{}", attempt.id.task, attempt.id.attempt)
}

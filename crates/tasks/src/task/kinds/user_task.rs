//! Tasks of user code: a split of the input to runs, or a partition of the runs to files.
//!
//! ```text
//!   map      split ──▶ the user's map ──▶ Collector ──▶ runs, cut into partitions   or, without a reduce, files
//!   reduce   a partition of all runs ──▶ Feed ──▶ the user's reduce ──▶ files
//! ```
//!
//! The executor of this machine does them ([`crate::task::UserTaskExecutor`]). Files lie in a folder of the attempt; those of the
//! attempts that count are moved to the output when all is done. Where the output is in an object store, the task sends
//! them there itself, and its report has the uploads.

use std::fmt::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::commit::send_file;
use crate::spill::SpilledRun;
use crate::task::checkpoint::{name_of, names_of_runs};
use crate::task::context::JobShared;
use crate::task::input::{InputPiece, of_files, pieces_of_user_code};
use crate::task::user::executor::UserTaskExecutor;
use crate::task::user::failed_on_agent::keep_on_agent;
use crate::task::user::spec::{UserAttemptSpec, UserTaskKind, UserTaskReport};
use crate::task::{
    AttemptId, Checkpoint, Counters, Fingerprint, MergeRun, Scratch, Side, TaskAttempt,
    TaskContext, TaskEnvironment, TaskKind,
};
use crate::worker::TaskPrintout;
use gristmill_base::error::{Error, Result};
use gristmill_base::record::shape::{PairShape, Shape as _};
use gristmill_storage::Store;
use gristmill_storage::io::crc::crc_of;
use gristmill_storage::location::Location;
use gristmill_storage::objects::Upload;
use gristmill_storage::sorted_run::RunCompression;

/// A task of user code.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserTaskSpec {
    /// What it has in common with the others of its job.
    #[serde(with = "crate::task::wire::shared")]
    pub plan: Arc<UserTaskPlan>,
    /// The task.
    pub work: UserTaskKind,
}

/// How user code is run: the same for all tasks of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserTaskPlan {
    /// How many partitions there are; 0 where the maps' output is the job's.
    pub partitions: u32,
    /// Where runs may be written, in order.
    #[serde(with = "gristmill_base::names")]
    pub places: Vec<PathBuf>,
    /// Memory for pairs and their entries.
    pub chunk_bytes: usize,
    /// Bytes of each buffer of a writer of runs.
    pub buffer_bytes: usize,
    /// Memory for what is read ahead of a far input.
    pub ahead_bytes: u64,
    /// How runs are compressed.
    pub compression: RunCompression,
    /// The folder of the attempts' folders.
    #[serde(with = "gristmill_base::names")]
    pub attempts: PathBuf,
    /// The output, where files are sent to it.
    pub uploads_to: Option<Location>,
    /// Whether the output is one file: then what is sent has its name, and is put together by the job.
    pub is_one_file: bool,
}

impl UserTaskSpec {
    /// What an executor is told of one attempt.
    pub fn attempt(&self, job_id: &str, id: AttemptId) -> UserAttemptSpec {
        let (plan, AttemptId { task, attempt }) = (&*self.plan, id);
        UserAttemptSpec {
            job_id: job_id.to_owned(),
            task,
            attempt,
            partitions: plan.partitions,
            places: plan.places.clone(),
            chunk_bytes: plan.chunk_bytes,
            buffer_bytes: plan.buffer_bytes,
            ahead_bytes: plan.ahead_bytes,
            compression: plan.compression,
            output: plan.attempts.join(format!("{task}-{attempt}")),
            work: self.work.clone(),
        }
    }
}

impl UserTaskSpec {
    /// Keeps, in the driver's process, what an attempt failed at, of which its agent has `kept` this.
    pub(in crate::task) fn take_failed(
        &self,
        id: AttemptId,
        (context, agents): (&TaskContext, &dyn Store),
        kept: &str,
    ) -> Result<()> {
        let executor = context.node.executor.as_ref();
        let executor = executor.and_then(|executor| executor.spec());
        let (Some(failures), Some(executor)) = (&context.job.failures, executor) else {
            return Err(Error::bug("keep a failed task", "the job keeps none"));
        };
        let spec = self.attempt(&context.job.job_id, id);
        let disk = &**context.node.store.disk();
        failures.take((disk, agents), spec, &executor, kept)
    }

    /// Sends the files of a task to where the output is put together, if that is not beside the attempts.
    fn send_files(
        &self,
        report: &mut UserTaskReport,
        (context, attempt): (&TaskContext, &TaskAttempt<'_>),
    ) -> Result<()> {
        let Some(output) = &self.plan.uploads_to else {
            return Ok(());
        };
        let stores = &context.node.store;
        let longest = report.files.iter().map(|file| file.bytes).max();
        let sending = context.sending(output, longest.unwrap_or(0));
        for file in &mut report.files {
            let from = report.folder.join(&file.name);
            let to = match self.plan.is_one_file {
                true => output.clone(),
                false => output.join(&file.name),
            };
            let upload = send_file(
                stores,
                (&Location::from(from.clone()), &to),
                sending.as_ref(),
                &|| attempt.progress(0),
            )?;
            if context.job.checkpoint_outputs {
                file.crc = Some(upload.crc()); // as of a file that stays here
            }
            stores.disk().remove(&from)?;
            report.uploads.push(upload);
        }
        Ok(())
    }
}

/// Keeps what user code failed at, if the job keeps that.
fn keep_failed(
    context: &TaskContext,
    work: &dyn UserTaskExecutor,
    told: &UserAttemptSpec,
    error: Error,
) -> Error {
    let Some(failures) = &context.job.failures else {
        return error;
    };
    let (disk, at) = (context.node.store.disk(), work.failed_at(told.task));
    match &context.node.places {
        Some(places) => keep_on_agent((disk, places), at, told, error),
        None => failures.keep(disk, at.zip(work.spec()), told, error),
    }
}

impl TaskKind for UserTaskSpec {
    type Report = UserTaskReport;

    fn run(&self, (context, attempt, scratch): TaskEnvironment<'_>) -> Result<Self::Report> {
        *scratch = Scratch::default(); // the buffers of merges before: it has a memory of its own
        let work = context.node.executor.as_ref();
        let work = work.ok_or_else(|| Error::bug("run a task", "the job has no executor"))?;
        let mut told = self.attempt(&context.job.job_id, attempt.id);
        if let Some(places) = &context.node.places {
            told.write_to(places);
        }
        let _memory = context
            .node
            .budget
            .reserve("user code", told.chunk_bytes as u64 + told.ahead_bytes)?;
        let _ahead = context.node.store.requests().memory.share(told.ahead_bytes);
        let ran = work.run(&told, attempt);
        context.node.store.requests().add(work.take_requests());
        let mut report = ran.map_err(|error| keep_failed(context, &**work, &told, error))?;
        context.node.name_runs(&mut report.runs);
        report.folder = told.output;
        self.send_files(&mut report, (context, attempt))?;
        if context.job.checkpoint_outputs {
            for file in report.files.iter_mut().filter(|file| file.crc.is_none()) {
                file.crc = crc_of(
                    &**context.node.store.disk(),
                    &report.folder.join(&file.name),
                )?;
            }
        }
        Ok(report)
    }

    fn input(&self, _context: &TaskContext) -> String {
        match &self.work {
            UserTaskKind::Map { number, what, .. } => {
                of_files(&what.value()).unwrap_or_else(|| format!("split {number}"))
            }
            UserTaskKind::Reduce { partition, .. } | UserTaskKind::Regroup { partition, .. } => {
                format!("partition {partition} of {}", self.plan.partitions)
            }
        }
    }

    fn input_pieces(&self, _job: &JobShared) -> Vec<InputPiece> {
        match &self.work {
            UserTaskKind::Map { what, .. } => pieces_of_user_code(what),
            UserTaskKind::Reduce { .. } | UserTaskKind::Regroup { .. } => Vec::new(),
        }
    }

    fn counters(&self, report: &UserTaskReport) -> Counters {
        let run_bytes: u64 = report.runs.iter().map(|run| run.stored_bytes).sum();
        let file_bytes: u64 = report.files.iter().map(|file| file.bytes).sum();
        let (input, output) = match self.work {
            UserTaskKind::Map { .. } => ("MAP_INPUT_RECORDS", "MAP_OUTPUT_RECORDS"),
            UserTaskKind::Regroup { .. } => ("REDUCE_INPUT_RECORDS", "REGROUPED_RECORDS"),
            UserTaskKind::Reduce { .. } => ("REDUCE_INPUT_RECORDS", "REDUCE_OUTPUT_RECORDS"),
        };
        let is_map = self.side() == Some(Side::Map);
        let makes_runs = !matches!(self.work, UserTaskKind::Reduce { .. });
        let mut counters = vec![
            (input, report.records_in),
            (output, report.records_out),
            ("SPILLED_RECORDS", report.run_records()),
            ("FILE_BYTES_WRITTEN", run_bytes + file_bytes),
        ];
        if makes_runs {
            counters.push(("SPILLED_RUNS", report.runs.len() as u64));
        }
        // Of compressed runs a reduce knows the bytes of its pairs, not those of the files.
        if is_map || self.plan.compression == RunCompression::None {
            counters.push(("FILE_BYTES_READ", report.bytes_in));
        }
        counters
    }

    fn side(&self) -> Option<Side> {
        Some(match self.work {
            UserTaskKind::Map { .. } => Side::Map,
            UserTaskKind::Reduce { .. } | UserTaskKind::Regroup { .. } => Side::Reduce,
        })
    }

    fn segments_read(&self) -> usize {
        self.reads().len()
    }

    fn runs_user_code(&self) -> bool {
        true
    }

    fn reads(&self) -> &[MergeRun] {
        self.work.merged().map_or(&[], |(_, runs, _)| runs)
    }

    /// Names for paths; nothing where a file could not be known again. What the task printed and said of itself is in
    /// the job's log.
    fn checkpoint(&self, report: &UserTaskReport) -> Option<Checkpoint> {
        let is_known = report.files.iter().all(|file| file.crc.is_some());
        is_known.then_some(())?;
        Some(Checkpoint::User(UserTaskReport {
            folder: name_of(&report.folder)?,
            runs: names_of_runs(&report.runs, PairShape.kind())?,
            status: String::new(),
            printed: TaskPrintout::default(),
            reads: Vec::new(),
            ..report.clone()
        }))
    }

    /// Of user code nobody knows whether it gives the same twice: a reduce is that of these very runs, whose names have
    /// the attempts in them that made them.
    fn fingerprint(&self, print: &mut Fingerprint) -> fmt::Result {
        let plan = &self.plan;
        write!(print, "work {} {} ", plan.partitions, plan.chunk_bytes)?;
        print.compression(plan.compression)?;
        match &self.work {
            UserTaskKind::Map {
                number,
                bytes,
                what,
            } => write!(print, "map {number} {bytes} {}", what.text()),
            UserTaskKind::Reduce {
                partition, runs, ..
            } => {
                write!(print, "reduce {partition} ")?;
                runs.iter().try_for_each(|run| print.name(&run.path))
            }
            UserTaskKind::Regroup {
                partition, runs, ..
            } => {
                write!(print, "regroup {partition} ")?;
                runs.iter().try_for_each(|run| print.name(&run.path))
            }
        }
    }

    fn uploads(report: &UserTaskReport) -> Vec<&Upload> {
        report.uploads.iter().collect()
    }

    fn runs(report: &UserTaskReport) -> &[SpilledRun] {
        &report.runs
    }

    fn printed(report: &UserTaskReport) -> Option<&TaskPrintout> {
        Some(&report.printed)
    }
}

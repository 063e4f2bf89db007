//! Jobs that map and reduce, by user code or by a native operator: map, and where there is something to reduce, merge and reduce.
//!
//! ```text
//!   map ──runs──▶ [merge runs, in rounds] ──▶ reduce ──files of attempts──▶ promote ──▶ commit
//!    └────files, where nothing is reduced──────────────────────────────────────▲
//! ```
//!
//! Native jobs can have the files put together to one, or to a stream, in the place of a directory (`destination.rs`).
//!
//! A [`UserTaskExecutor`](gristmill_tasks::task::UserTaskExecutor) does the tasks. What this proves is that every split was
//! consumed whole, that every pair which the maps put out (or their combiners made of them) came to a reducer, and
//! that every file is as long as its task said. Only files of the attempts that count are published.

mod contents;
mod definition;
mod destination;
mod explain;
mod failures;
mod idle;
mod inputs;
mod joined;
mod native;
mod native_inputs;
mod native_output;
mod outcome;
mod promote;
mod side_inputs;
mod skew;
mod stages;
mod wrong_option;

use std::path::Path;
use std::sync::{Arc, Mutex};

use serde::Deserialize;

pub use self::definition::FilesOfCode;
use self::definition::JobDefinition;
use self::destination::{Destination, check_form};
pub(super) use self::native::{NativeDefinition, NativeJob};
pub(super) use self::native_output::{NativeOutput, one_if_sorted};
use self::outcome::MapReduceOutcome;
use self::stages::MapReduce;
pub(super) use self::wrong_option::{pattern_of, wrong_option};
use super::kind::{Described, JobKind};
use super::steps::remote_inputs::remote_input_names;
use super::steps::{JobOutput, OutputLocations, RunningJob, refusal, unless_changed};
use crate::driver::RetryPolicy;
use crate::plan::explain::Explanation;
use crate::plan::mapreduce::{MapReduceSpec, UserCodeCommand};
use crate::plan::spill::MemoryLayout;
use crate::plan::table::{CommandOptions, CommandSpec, Common};
use gristmill_base::budget::{Budget, JobMemory};
use gristmill_base::error::{Error, Result};
use gristmill_base::record::shape::{PairShape, Shape};
use gristmill_base::sync::lock;
use gristmill_tasks::task::{
    FailureFolder, InProcess, JobShared, NodeContext, TaskContext, UserTaskExecutor,
};

/// How often what has read a map's output is done again, since the map was lost, and gave something else when it was done
/// again. Machines that are lost more often than that are the trouble, not the functions.
const ROUNDS: u32 = 3;

/// A job of user code. Its options are not in the table: Python's `gm.Job` and Hadoop Streaming's command line give them.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct Mapreduce(MapReduceSpec);

impl Described for Mapreduce {
    const COMMAND: CommandSpec = CommandSpec {
        name: "mapreduce",
        function: None,
        help: "Run user code.",
        details: "",
        example: "",
        python: "",
        explained: true,
        own: &[],
        common: Common::NAMES,
    };
}

impl CommandOptions for Mapreduce {
    fn root(&mut self, directory: &Path) {
        self.0.output = self.0.output.rooted(directory);
        for file in self.0.files.iter_mut().chain(&mut self.0.side_files) {
            *file = file.rooted(directory);
        }
    }
}

impl JobKind for Mapreduce {
    fn command(&self) -> Option<&'static str> {
        Some(self.0.command())
    }

    fn output(&self) -> Option<JobOutput<'_>> {
        Some(JobOutput::Directory(&self.0.output))
    }

    fn resumable(&self) -> Result<()> {
        let reason = self.0.not_resumable_reason.as_deref();
        reason.map_or(Ok(()), |why| Err(refusal(why, "")))
    }

    fn keeps_code(&self) -> bool {
        true
    }

    fn explain(&self, job: &RunningJob<'_>) -> Result<Explanation> {
        explain(job, &self.0)
    }

    fn run(&self, job: &mut RunningJob<'_>) -> Result<()> {
        self.0.check()?;
        run(job, &JobDefinition::of(job, &self.0)?)
    }
}

/// Runs a job whose code is ours: its options alone say what it does.
fn run_native(
    job: &mut RunningJob<'_>,
    spec: MapReduceSpec,
    work: Arc<dyn UserTaskExecutor>,
) -> Result<()> {
    run(job, &JobDefinition::native(spec, work))
}

/// What a job would do.
fn explain(job: &RunningJob<'_>, spec: &MapReduceSpec) -> Result<Explanation> {
    spec.check()?;
    check_form(job, spec)?;
    let memory_layout = memory_layouts_of(job, spec, job.room())?;
    let remote = remote_input_names(job.store(), &spec.files, spec.input_bytes())?;
    job.with_stores(explain::of_plan(job, spec, &memory_layout)?, &remote)
}

fn run(job: &mut RunningJob<'_>, definition: &JobDefinition) -> Result<()> {
    let environment = job.environment;
    let store = &*environment.store;
    let spec = &definition.spec;
    check_form(job, spec)?;
    let files = inputs::files(store, spec, job.resumed.is_some())?;
    let room = job.room_for(&files);
    let memory_layout = memory_layouts_of(job, spec, room)?;
    job.watched
        .planned(|| explain::of_plan(job, spec, &memory_layout));
    let destination = Destination::begin(job, definition, &files)?;
    let folders = destination.folders(job)?;
    if spec.partitions > 0 {
        job.tell_of_runs(&folders.runs);
    }
    let budget = budget(job, spec);
    let node =
        NodeContext::new(environment.store.clone(), budget).with_executor(definition.work.clone());
    let shared = JobShared {
        durable: definition.is_known() && job.durable(),
        checkpoint_outputs: definition.is_known(),
        failures: failures_of(job),
        ..job.shared(files)
    };
    let context = TaskContext::new(shared, node, InProcess::Nothing);
    let outcome = Arc::new(Mutex::new(MapReduceOutcome::default()));
    let attempts = &folders.attempts;
    let places = OutputLocations {
        runs: folders.runs.clone(),
        output: destination.staged(),
        names: Vec::new(),
        uploads: destination.sent_to(job, spec).into_iter().collect(),
        shape: PairShape.kind(),
        unique: false,
        codes: None,
        compression: job.common.compress_runs,
        attempts: Some(attempts.clone()),
    };
    let ahead_bytes = spec.ahead_bytes(room.budget_bytes, job.workers);
    let out = Arc::clone(&outcome);
    let shared_by = (&places, attempts.as_path());
    let plan = MapReduce::new(
        job.shuffle(),
        spec,
        memory_layout,
        ahead_bytes,
        shared_by,
        out,
    )
    .plan();
    let policy = policy_of(job, spec);
    let ended = job.run_kept_with(plan, &context, &places, policy);
    if let Some(failures) = &context.job.failures {
        end_failures(job, failures, ended.as_ref().err());
    }
    let outcome = std::mem::take(&mut *lock(&outcome));
    job.report.user_counters.clone_from(&outcome.counters);
    native::tell_encodings(&mut job.report);
    unless_changed(&context, ended)?;
    outcome.check_bad_rows(spec)?;
    outcome.prove(spec)?;
    outcome.check_files(spec)?;
    native::tell_left_out(&mut job.report, outcome.maps.sum.skipped);
    destination.commit(job, definition, (attempts, outcome))
}

/// How often tasks are tried, and which may have two attempts at once.
fn policy_of(job: &RunningJob<'_>, spec: &MapReduceSpec) -> RetryPolicy {
    let (retries, reduce_retries) = spec.retries();
    let (speculative, reduce_speculative) = spec.speculative();
    RetryPolicy {
        retries,
        reduce_retries,
        speculative,
        reduce_speculative,
        rounds: if job.cluster().is_some() { ROUNDS } else { 0 },
        ..RetryPolicy::default()
    }
}

/// Where the job keeps what its user code fails at, if it keeps anything.
fn failures_of(job: &RunningJob<'_>) -> Option<FailureFolder> {
    let environment = job.environment;
    let jobs = environment.history.jobs.as_ref()?;
    let keeps = job.watched.recorder().is_on() && !environment.history.code_goes;
    keeps.then(|| FailureFolder {
        folder: jobs.join(&environment.job_id).join("failed"),
        host: environment.interpreter.clone(),
    })
}

/// A job that user code has made fail keeps its history, and what it failed at; any other has nothing to try again.
fn end_failures(job: &RunningJob<'_>, failures: &FailureFolder, error: Option<&Error>) {
    let recorder = job.watched.recorder();
    if error.is_some_and(|error| error.details.retry.is_some()) {
        return recorder.keep();
    }
    let store = job.store().disk();
    let _ = store.remove(&failures.folder); // left behind, it is pruned with the history
    if let (None, Some(folder)) = (recorder.folder(), failures.folder.parent()) {
        let _ = store.remove(folder);
    }
}

/// The budget of the tasks: that of the worker processes, where they run in some.
fn budget(job: &RunningJob<'_>, spec: &MapReduceSpec) -> Budget {
    match spec.command {
        UserCodeCommand::Mapreduce => Budget::new(job.memory_bytes),
        UserCodeCommand::Streaming | UserCodeCommand::Native => job.budget(),
    }
}

/// How memory is shared by tasks, and by passes over their runs.
fn memory_layouts_of(
    job: &RunningJob<'_>,
    spec: &MapReduceSpec,
    room: JobMemory,
) -> Result<(MemoryLayout, MemoryLayout)> {
    let (tasks, passes) = spec.memory_layouts(room, job.workers, job.common.compress_runs)?;
    Ok((
        tasks.opening(job.runs_at_once),
        passes.opening(job.runs_at_once),
    ))
}

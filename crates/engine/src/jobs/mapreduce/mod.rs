//! Jobs of people's own code: map, and where there is something to reduce, merge and reduce.
//!
//! ```text
//!   map ──runs──▶ [merge runs, in passes] ──▶ reduce ──files of attempts──▶ promote ──▶ commit
//!    └────files, where nothing is reduced──────────────────────────────────────▲
//! ```
//!
//! What the tasks do is somebody else's ([`Work`](crate::task::Work)); what this proves is that every split was
//! consumed whole, that every pair which the maps put out (or their combiners made of them) came to a reducer, and
//! that every file is as long as its task said. Only files of the attempts that count are published.

mod definition;
mod failures;
mod outcome;
mod promote;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::definition::Definition;
use self::outcome::Outcome;
use self::promote::{check_name, promote};
use super::passes::{self, Next, Pass, longest_of, wrong_report};
use super::resume::Places;
use super::{Job, lies_in};
use crate::commit::{CommitOptions, Staging};
use crate::driver::{Plan, RetryPolicy, Stage};
use crate::error::{Error, Kind, Result};
use crate::plan::explain::{Explanation, PlannedMemory, PlannedStage};
use crate::plan::mapreduce::MapReduceSpec;
use crate::plan::spill::SpillNumbers;
use crate::record::shape::{Pairs, Shape};
use crate::spill::SpilledRun;
use crate::spill::collect::partition_borders;
use crate::split::check_unchanged;
use crate::storage::Store;
use crate::storage::input::InputFile;
use crate::storage::local::not_there;
use crate::task::{
    MergeRun, RunPlan, TaskContext, TaskReport, TaskSpec, WorkKind, WorkReport, WorkSpec,
};

pub(super) fn run(job: &mut Job<'_>, spec: &MapReduceSpec) -> Result<()> {
    spec.check()?;
    let environment = job.environment;
    let store = &*environment.store;
    let definition = Definition::of(job, spec)?;
    let spec = &definition.spec;
    let files = files(store, spec)?;
    let numbers = spec.numbers(job.memory_bytes, job.workers)?;
    job.watched.planned(|| Ok(explained(job, spec, &numbers)));
    let staging = stage(job, store, &definition, &files)?;
    let places = job.spill_places(store, &spec.spill_dir)?;
    let mut folders = places.folders().to_vec();
    if folders.is_empty() {
        folders.push(staging.spill_place()?);
    }
    let mut context = TaskContext::new(environment.store.clone(), job.budget(), files, None);
    context.job_id.clone_from(&environment.job_id);
    context.work.clone_from(&definition.work);
    context.remembered = definition.hash.is_some();
    context.durable = context.remembered && job.durable(spec.no_sync);
    let outcome = Arc::new(Mutex::new(Outcome::default()));
    let attempts = staging.attempts_place()?;
    let places = Places {
        runs: folders.clone(),
        output: staging.staged(),
        names: Vec::new(),
        shape: Pairs.kind(),
        unique: false,
        attempts: Some(attempts.clone()),
    };
    let plan = MapReduce {
        store: environment.store.clone(),
        job_id: environment.job_id.clone(),
        spec: spec.clone(),
        numbers,
        folders,
        attempts: attempts.clone(),
        outcome: Arc::clone(&outcome),
        step: Step::Begin,
    };
    let policy = RetryPolicy {
        retries: spec.retries(),
        ..RetryPolicy::default()
    };
    let ended = job.run_kept_with(Box::new(plan), &context, &places, policy);
    let outcome = std::mem::take(&mut *lock(&outcome));
    job.report.user_counters.clone_from(&outcome.counters);
    match ended {
        Err(error) if error.kind() == Kind::Cancelled => return Err(error),
        ended => check_unchanged(store, &context.files).and(ended)?,
    }
    outcome.prove(spec)?;
    job.begin_phase("commit");
    job.check_cancelled()?;
    let names = promote(store, &staging, &attempts, &outcome)?;
    let success = outcome.success(&environment.job_id, spec)?;
    outcome.fill_report(job, spec);
    job.publishing(&staging.staged())?;
    staging.publish(&names, &success)
}

/// The job's folder, with what the job is: kept before the history says so, and found unchanged before anything is.
fn stage<'s>(
    job: &Job<'_>,
    store: &'s dyn Store,
    definition: &Definition,
    files: &[InputFile],
) -> Result<Staging<'s>> {
    let spec = &definition.spec;
    let options = CommitOptions {
        overwrite: spec.overwrite,
        sync: !spec.no_sync,
    };
    let Some(story) = job.resumed else {
        let staging = job.staging(store, &spec.output, (&[], 0), options)?;
        definition.keep(&staging)?;
        job.take_inputs_of(files, definition.hash.clone(), None)?;
        return Ok(staging);
    };
    job.take_inputs_of(files, definition.hash.clone(), None)?;
    let names = story.files_of_tasks();
    names.iter().try_for_each(|name| check_name(name))?;
    job.staging(store, &spec.output, (&names, 0), options)
}

/// What [`run`] would do.
pub(super) fn explain(job: &Job<'_>, spec: &MapReduceSpec) -> Result<Explanation> {
    spec.check()?;
    let numbers = spec.numbers(job.memory_bytes, job.workers)?;
    Ok(explained(job, spec, &numbers))
}

fn explained(job: &Job<'_>, spec: &MapReduceSpec, numbers: &SpillNumbers) -> Explanation {
    let bytes = spec.input_bytes();
    let stage = |name, tasks: usize, reads, writes| PlannedStage {
        name,
        tasks: tasks as u64,
        reads,
        writes,
    };
    let partitions = spec.partitions as usize;
    let mut stages = vec![stage("map", spec.splits.len(), bytes, 0)];
    if partitions > 0 {
        stages.push(stage("reduce", partitions, 0, 0));
    }
    Explanation {
        command: spec.command(),
        mode: "runs",
        reason: "tasks with people's own code leave their pairs in runs".to_owned(),
        workers: job.workers,
        memory_bytes: job.memory_bytes,
        reservations: vec![PlannedMemory {
            name: "pairs and their entries, in all workers",
            bytes: numbers.chunk_bytes as u64 * job.workers as u64,
        }],
        files: spec.files.len(),
        input_bytes: bytes,
        parts: partitions.max(spec.splits.len() * usize::from(partitions == 0)),
        buckets: partitions,
        fan_in: numbers.fan_in(),
        passes: numbers.passes(spec.splits.len()),
        stages,
        ..Explanation::default()
    }
}

/// The input's files as they are now; none of them is the output.
fn files(store: &dyn Store, spec: &MapReduceSpec) -> Result<Vec<InputFile>> {
    let file = |path: &PathBuf| {
        let stat = store
            .stat(path)?
            .ok_or_else(|| not_there("find the input", path))?;
        if lies_in(path, &spec.output) {
            let message = "the output directory holds an input";
            return Err(Error::new(Kind::BadOption, "write the output", message)
                .with_path(path)
                .advise("name another output"));
        }
        Ok(InputFile {
            path: path.clone(),
            stat,
        })
    };
    spec.files.iter().map(file).collect()
}

/// The stages.
struct MapReduce {
    store: Arc<dyn Store>,
    job_id: String,
    spec: MapReduceSpec,
    numbers: SpillNumbers,
    /// Where runs go.
    folders: Vec<PathBuf>,
    /// Where attempts write files.
    attempts: PathBuf,
    outcome: Arc<Mutex<Outcome>>,
    step: Step,
}

/// Which stage's reports come next.
#[derive(Debug, Default)]
enum Step {
    #[default]
    Begin,
    Map,
    /// Those of this pass.
    Pass(Pass),
    Reduce,
}

impl MapReduce {
    fn task(&self, work: WorkKind) -> TaskSpec {
        TaskSpec::Work(WorkSpec {
            job_id: self.job_id.clone(),
            task: 0,
            attempt: 0,
            partitions: self.spec.partitions,
            places: self.folders.clone(),
            chunk_bytes: self.numbers.chunk_bytes,
            buffer_bytes: self.numbers.buffer_bytes,
            output: self.attempts.clone(),
            work,
        })
    }

    fn map(&mut self) -> Stage {
        self.step = Step::Map;
        let task = |(number, split): (u32, &crate::task::WorkSplit)| {
            self.task(WorkKind::Map {
                number,
                bytes: split.bytes,
                what: split.what.clone(),
            })
        };
        Stage {
            name: "map",
            bytes: self.spec.input_bytes(),
            tasks: (0..).zip(&self.spec.splits).map(task).collect(),
        }
    }

    fn mapped(&mut self, reports: Vec<TaskReport>) -> Result<Option<Stage>> {
        let mut runs = Vec::new();
        {
            let mut outcome = lock(&self.outcome);
            for report in reports {
                let mut report = work_report(report)?;
                let made = std::mem::take(&mut report.runs);
                let records: u64 = made.iter().map(|run| run.records).sum();
                outcome.spilled += records;
                outcome.shuffled += records;
                outcome.spilled_bytes += made.iter().map(|run| run.bytes).sum::<u64>();
                outcome.runs += made.len() as u64;
                outcome.count(&report);
                outcome.maps.add(report);
                runs.extend(made.into_iter().map(MergeRun::from));
            }
        }
        if self.spec.partitions == 0 {
            return Ok(None);
        }
        self.merge(runs)
    }

    /// The next stage: another pass, or the reduce.
    fn merge(&mut self, runs: Vec<MergeRun>) -> Result<Option<Stage>> {
        let pass = match passes::next(runs, &self.numbers)? {
            Next::Last(runs) => return Ok(Some(self.reduce(runs))),
            Next::Pass(pass) => pass,
        };
        let plan = Arc::new(RunPlan {
            shape: Pairs.kind(),
            unique: false,
            borders: partition_borders(self.spec.partitions),
            places: self.folders.clone(),
            buffer_bytes: self.numbers.buffer_bytes,
            needed: self.numbers.needed,
        });
        let bytes = {
            let mut outcome = lock(&self.outcome);
            outcome.passes += 1;
            outcome.spilled_bytes
        };
        let stage = pass.stage(&plan, &self.numbers, bytes);
        self.step = Step::Pass(pass);
        Ok(Some(stage))
    }

    fn passed(&mut self, reports: Vec<TaskReport>, pass: Pass) -> Result<Option<Stage>> {
        let count = |run: &SpilledRun| lock(&self.outcome).spilled += run.records;
        let runs = pass.over(reports, &*self.store, count)?;
        self.merge(runs)
    }

    fn reduce(&mut self, runs: Vec<MergeRun>) -> Stage {
        self.step = Step::Reduce;
        let source_bytes = self.numbers.source_bytes(&longest_of(&runs));
        let runs = Arc::new(runs);
        let task = |partition| {
            self.task(WorkKind::Reduce {
                partition,
                runs: Arc::clone(&runs),
                source_bytes,
            })
        };
        Stage {
            name: "reduce",
            bytes: lock(&self.outcome).spilled_bytes,
            tasks: (0..self.spec.partitions).map(task).collect(),
        }
    }

    fn reduced(&mut self, reports: Vec<TaskReport>) -> Result<()> {
        let mut outcome = lock(&self.outcome);
        for report in reports {
            let report = work_report(report)?;
            outcome.count(&report);
            outcome.reduces.add(report);
        }
        Ok(())
    }
}

impl Plan for MapReduce {
    fn next_stage(&mut self, reports: Vec<TaskReport>) -> Result<Option<Stage>> {
        match std::mem::take(&mut self.step) {
            Step::Begin => Ok(Some(self.map())),
            Step::Map => self.mapped(reports),
            Step::Pass(pass) => self.passed(reports, pass),
            Step::Reduce => self.reduced(reports).map(|()| None),
        }
    }

    fn without(&mut self, task: &TaskSpec, error: &Error) -> Option<TaskReport> {
        let TaskSpec::Work(task) = task else {
            return None;
        };
        let report = lock(&self.outcome)
            .failures
            .without(&self.spec, task, error)?;
        Some(TaskReport::Work(report))
    }
}

fn work_report(report: TaskReport) -> Result<WorkReport> {
    match report {
        TaskReport::Work(report) => Ok(report),
        _ => Err(wrong_report()),
    }
}

/// What `outcome` holds. A panic elsewhere leaves it whole enough: the job fails then.
fn lock(outcome: &Mutex<Outcome>) -> MutexGuard<'_, Outcome> {
    outcome.lock().unwrap_or_else(PoisonError::into_inner)
}

//! `resume`: goes on with a job whose process was killed, from what its history proves done.
//!
//! ```text
//!   history ──lock, read──▶ options, what it went by ──plan anew──▶ stages ─────────────┐
//!           └─tasks that were over ──what they made, looked at or proved again──▶ replay ┴─▶ driver
//! ```
//!
//! The plan is a function of inputs and options, so that the same tasks come out; those whose output is there are
//! not done again. Nothing is believed of paths in a history: of runs and parts only names are kept, which are looked
//! for in the folders that the job's own options and id lead to. Until everything of the dead job is taken over,
//! nothing of it is changed: a job that is refused can be resumed when the reason is gone.

mod find;
mod proof;
mod story;

use std::path::PathBuf;

use serde::Deserialize;

pub(super) use self::story::Story;

use super::watched::Watched;
use super::{Environment, Job, JobReport, run_watched};
use crate::commit::{
    CommitOptions, FileStaging, SUCCESS, SpillPlaces, Staging, check_room, clear_published,
};
use crate::driver::{Driver, Plan, Replay, RetryPolicy};
use crate::error::{Error, Kind, Result};
use crate::history::event::{Began, Event, Known};
use crate::history::{Held, Place, Recorder, hold};
use crate::plan::JobSpec;
use crate::plan::options::ResumeSpec;
use crate::record::shape::ShapeKind;
use crate::runner::threads::Control;
use crate::storage::input::InputFile;
use crate::storage::{Caching, Store};
use crate::task::TaskContext;

/// What resuming is called in errors.
pub(super) const OPERATION: &str = "go on with a job";

/// The largest proof of an output that is read.
const MOST_SUCCESS_BYTES: u64 = 64 << 20;

/// Where a job's own plan puts what its tasks write: nothing else that a history names is looked at.
#[derive(Debug)]
pub(super) struct Places {
    /// The folders of its runs.
    pub(super) runs: Vec<PathBuf>,
    /// The folder of its output files.
    pub(super) output: PathBuf,
    /// Their names.
    pub(super) names: Vec<String>,
    /// What the records are.
    pub(super) shape: ShapeKind,
    /// Whether of records with equal keys only the first stays.
    pub(super) unique: bool,
    /// The folder with a folder for each attempt that writes whole files, in jobs that have such.
    pub(super) attempts: Option<PathBuf>,
}

/// Goes on with the job that `spec` names, among those of the environment's history.
pub(super) fn run(spec: &ResumeSpec, environment: &Environment, control: &Control) -> JobReport {
    match prepare(spec, environment) {
        Ok((job, environment, recorder, mut story)) => {
            let watched = Watched::resumed(recorder, &environment);
            let go_on = |story: &Story| {
                watched.sampled(control, || {
                    run_watched(&job, &environment, control, &watched, Some(story))
                })
            };
            let mut report = go_on(&story);
            if let Some(damage) = report.failure.take_if(|error| error.is_of_own_work()) {
                // Of a damaged run only those who read it learn. It went with the job's folders, as after any failure:
                // nothing is there to go on from, and the input is.
                story.forget_tasks();
                watched.resumes();
                report = go_on(&story).after(&report);
                report
                    .warnings
                    .push(format!("{damage} The job was done anew."));
            }
            watched.finished(report)
        }
        Err(error) => {
            let mut report = JobReport::new(&spec.job_id, "resume");
            report.finish(Err(error));
            report
        }
    }
}

/// The dead job, as its history has it.
fn prepare(
    spec: &ResumeSpec,
    environment: &Environment,
) -> Result<(JobSpec, Environment, Recorder, Story)> {
    let Some(jobs) = &environment.history.jobs else {
        let message = "no history is kept here, and a job is resumed from its history";
        return Err(Error::new(Kind::BadOption, OPERATION, message));
    };
    let folder = find::job(jobs, &spec.job_id)?;
    let held: Held = hold(&folder)?;
    let (spec, options, story) = story::read(&held).map_err(|error| error.with_path(&folder))?;
    let job_id = folder.file_name().unwrap_or_default().to_string_lossy();
    let environment = Environment {
        store: environment.store.clone(),
        job_id: job_id.into_owned(),
        history: Place {
            jobs: Some(jobs.clone()),
            keep_short: true,
            options,
        },
        work: environment.work.clone(),
        host: environment.host.clone(),
    };
    Ok((spec, environment, Recorder::resume(held), story))
}

/// Whether jobs of this kind can be resumed. A kind that says nothing of it cannot.
fn resumable(spec: &JobSpec) -> Result<()> {
    let (why, advice) = match spec {
        JobSpec::Teragen(_) | JobSpec::Terasort(_) => return Ok(()),
        JobSpec::Sort(sort) if sort.check => ("it only looked whether its input is in order", ""),
        JobSpec::Sort(sort) => {
            let dash = |path: &PathBuf| path.as_os_str() == super::sort::DASH;
            let from_stream = sort.inputs.is_empty() || sort.inputs.iter().any(dash);
            let to_stream = sort.output.as_ref().is_none_or(dash);
            match (from_stream, to_stream) {
                (false, false) => return Ok(()),
                (true, _) => (FROM_STREAM, "sort files, which can be read again"),
                (false, true) => (TO_STREAM, "name an output"),
            }
        }
        JobSpec::Mapreduce(spec) => match &spec.once {
            None => return Ok(()),
            Some(why) => (why.as_str(), ""),
        },
        _ => ("jobs of its kind leave nothing to go on from", ""),
    };
    Err(refusal(spec.command(), why, advice))
}

/// Why a job cannot be resumed that read a stream.
pub(super) const FROM_STREAM: &str = "what it read from a pipe is gone";

/// Why one cannot that wrote to one.
pub(super) const TO_STREAM: &str = "what it wrote to a stream cannot be taken back";

/// The error of a job that can only be run again.
pub(super) fn refusal(command: &str, why: &str, advice: &str) -> Error {
    let and = if advice.is_empty() { "" } else { "; " };
    Error::new(Kind::BadInput, OPERATION, why)
        .with("command", command)
        .advise(format!("run it again{and}{advice}"))
}

impl Job<'_> {
    /// Notes what is read; of a job that goes on, checks that it is what it was. `gone` says why there is no going on,
    /// where there is none.
    pub(super) fn take_inputs(&self, files: &[InputFile], gone: Option<&str>) -> Result<()> {
        self.take_inputs_of(files, None, gone)
    }

    /// The same of people's own code, by the hash of what it is.
    pub(super) fn take_inputs_of(
        &self,
        files: &[InputFile],
        definition: Option<String>,
        gone: Option<&str>,
    ) -> Result<()> {
        let known = |file: &InputFile| Known::new(&file.path, &file.stat);
        let began = Began {
            workers: self.workers,
            memory_bytes: self.memory_bytes,
            inputs: files.iter().map(known).collect(),
            definition,
        };
        if let Some(story) = self.resumed {
            if let Some(why) = gone {
                return Err(refusal(self.report.command, why, ""));
            }
            story.check_inputs(&began.inputs)?;
        }
        self.watched.recorder().record(Event::JobBegan(began));
        Ok(())
    }

    /// The job folder of an output directory with files of these names.
    pub(super) fn staging<'s>(
        &self,
        store: &'s dyn Store,
        target: &std::path::Path,
        (names, bytes): (&[String], u64),
        options: CommitOptions,
    ) -> Result<Staging<'s>> {
        let job_id = &self.environment.job_id;
        match self.resumed {
            Some(story) => {
                let output = (names, bytes);
                Staging::adopt(store, target, job_id, output, options, &story.taken)
            }
            None => Staging::begin(store, target, job_id, bytes, options),
        }
    }

    /// The job folder of an output file.
    pub(super) fn file_staging<'s>(
        &self,
        store: &'s dyn Store,
        target: &std::path::Path,
        sync: bool,
    ) -> Result<FileStaging<'s>> {
        let job_id = &self.environment.job_id;
        match self.resumed {
            Some(story) => FileStaging::adopt(store, target, job_id, sync, &story.taken),
            None => FileStaging::begin(store, target, job_id, sync),
        }
    }

    /// The job's folders for runs.
    pub(super) fn spill_places<'s>(
        &self,
        store: &'s dyn Store,
        directories: &[PathBuf],
    ) -> Result<SpillPlaces<'s>> {
        let job_id = &self.environment.job_id;
        match self.resumed {
            Some(story) => SpillPlaces::adopt(store, directories, job_id, &story.taken),
            None => SpillPlaces::begin(store, directories, job_id),
        }
    }

    /// Whether so many bytes of runs have room; of a job that goes on, some are there already, and nobody knows how
    /// many more there will be.
    pub(super) fn check_room(
        &self,
        store: &dyn Store,
        folders: &[PathBuf],
        bytes: u64,
    ) -> Result<()> {
        match self.resumed {
            Some(_) => Ok(()),
            None => check_room(store, folders, bytes),
        }
    }

    /// Whether what is made must be durable before what it was made of goes: there is a history to go on from.
    pub(super) fn durable(&self, no_sync: bool) -> bool {
        !no_sync && self.watched.recorder().is_on()
    }

    /// Lets the driver run `plan`, from what is known of it if the job goes on. What its tasks make can be found
    /// again at these places.
    pub(super) fn run_kept(
        &mut self,
        plan: Box<dyn Plan>,
        context: &TaskContext,
        places: &Places,
    ) -> Result<()> {
        self.run_kept_with(plan, context, places, RetryPolicy::default())
    }

    /// The same with another number of tries.
    pub(super) fn run_kept_with(
        &mut self,
        plan: Box<dyn Plan>,
        context: &TaskContext,
        places: &Places,
        policy: RetryPolicy,
    ) -> Result<()> {
        let round = self.rounds;
        self.rounds += 1;
        let replay = match self.resumed {
            Some(story) => self.replay(story, round, context, places)?,
            None => Replay::default(),
        };
        self.watched.recorder().record(Event::TasksBegan { round });
        self.watched.recorder().take_over();
        let driver = Driver::resume(plan, policy, replay);
        self.run_driver(driver, context)
    }

    /// What is there of what the history proves done; from here on the dead job's folders are this job's.
    fn replay(
        &mut self,
        story: &Story,
        round: u32,
        context: &TaskContext,
        places: &Places,
    ) -> Result<Replay> {
        self.begin_phase("replay");
        let look = proof::Look {
            job_id: &self.environment.job_id,
            context,
            places,
            workers: self.workers,
            control: self.control,
        };
        let (replay, runs) = look.replay(story.round(round))?;
        self.check_cancelled()?;
        story.taken.take_over();
        look.remove_other_runs(&runs);
        look.put_files_back(story.round(round))?;
        Ok(replay)
    }

    /// Notes that the output is about to get its name.
    pub(super) fn publishing(&self, staged: &std::path::Path) -> Result<()> {
        if let Some(stat) = self.store().stat(staged)? {
            self.watched.publishing(staged, &stat, &self.report);
        }
        Ok(())
    }

    /// Whether the job was killed after its output had its name: then what is left of it is cleared away.
    pub(super) fn ends_published(&mut self, spec: &JobSpec) -> Result<bool> {
        let Some((story, staged, numbers)) = self.resumed.and_then(|story| {
            let (staged, numbers) = story.publishing.as_ref()?;
            Some((story, staged, numbers))
        }) else {
            return Ok(false);
        };
        let store = self.store();
        let (output, spill_dir) = match spec {
            JobSpec::Teragen(spec) => (Some(&spec.output), &[][..]),
            JobSpec::Terasort(spec) => (Some(&spec.output), &spec.spill_dir[..]),
            JobSpec::Sort(spec) => (spec.output.as_ref(), &spec.spill_dir[..]),
            JobSpec::Mapreduce(spec) => (Some(&spec.output), &spec.spill_dir[..]),
            _ => (None, &[][..]),
        };
        let Some(output) = output else {
            return Ok(false);
        };
        let published = match spec {
            JobSpec::Sort(_) => {
                let path = store.resolve(output)?;
                let there = store.stat(&path)?;
                there.is_some_and(|stat| staged.is_same(&Known::new(&path, &stat)))
            }
            _ => proof_of(store, output)?.is_some_and(|id| id == self.environment.job_id),
        };
        if !published {
            return Ok(false);
        }
        clear_published(store, output, spill_dir, &self.environment.job_id)?;
        story.taken.take_over();
        self.watched.recorder().take_over();
        self.report.fill_from(numbers);
        Ok(true)
    }
}

/// What is read of a proof, whatever kind of job wrote it.
#[derive(Debug, Deserialize)]
struct Proof {
    job_id: String,
}

/// The job whose proof lies in an output directory.
fn proof_of(store: &dyn Store, output: &std::path::Path) -> Result<Option<String>> {
    let path = output.join(SUCCESS);
    let Some(stat) = store.stat(&path)? else {
        return Ok(None);
    };
    let mut bytes = vec![0; stat.bytes.min(MOST_SUCCESS_BYTES) as usize];
    let read = store.open(&path, Caching::Cached)?.read_at(&mut bytes, 0)?;
    let proof: Option<Proof> = serde_json::from_slice(bytes.get(..read).unwrap_or_default()).ok();
    Ok(proof.map(|proof| proof.job_id))
}

//! The inputs of a job and its tasks: noted and run, or, of a resumed job, compared and run as far as they are not done.

use std::sync::{Arc, Mutex};

use super::job::RunningJob;
use super::job_request::JobOutput;
use super::output_locations::OutputLocations;
use super::proof::OutputVerifier;
use super::refusal::refusal;
use super::replayed::ReplayedHistory;
use crate::driver::{Driver, Next, Replay, RetryPolicy, StagedPlan, TypedStage};
use crate::history::event::{Event, FileVersion, JobBasis};
use crate::plan::files::RUNS_MAX;
use crate::runner::{FoundRuns, RunnerHooks};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::sync::lock;
use gristmill_storage::input::InputFile;
use gristmill_tasks::split::check_unchanged;
use gristmill_tasks::task::{JobShared, TaskContext, TypedTask};

impl RunningJob<'_> {
    /// Notes what is read, and the hash of what the job's own code is; of a resumed job, checks that the inputs are
    /// what they were.
    pub(in crate::jobs) fn take_inputs(
        &self,
        files: &[InputFile],
        definition: Option<String>,
    ) -> Result<()> {
        let known = |file: &InputFile| FileVersion::new(file.path.clone(), &file.stat);
        let began = JobBasis {
            workers: self.workers,
            memory_bytes: self.memory_bytes,
            held_bytes: self.room_for(files).held_bytes,
            runs_at_once: (self.runs_at_once < RUNS_MAX).then_some(self.runs_at_once),
            nodes: self.cluster().map(|_| self.nodes),
            inputs: files.iter().map(known).collect(),
            definition,
            output: self.output_before(),
        };
        if let Some(replayed) = self.resumed {
            replayed.check_inputs(&began.inputs)?;
            replayed.check_output(began.output.as_ref(), self.asked.output)?;
        }
        self.watched.recorder().record(Event::JobBegan(began));
        Ok(())
    }

    /// The error of this job if it can only be run again.
    pub(in crate::jobs) fn refusal(&self, why: &str) -> Error {
        refusal(why, "")
            .with("command", self.report.command)
            .with("job", &self.environment.job_id)
    }

    /// Whether what is made must be durable before what it was made of goes: there is a history to resume from.
    pub(in crate::jobs) fn durable(&self) -> bool {
        !self.common.no_sync && self.watched.recorder().is_on() && self.cluster().is_none()
    }

    /// What the job's tasks share.
    pub(in crate::jobs) fn shared(&self, files: Vec<InputFile>) -> JobShared {
        JobShared {
            job_id: self.environment.job_id.clone(),
            durable: self.durable(),
            parts_bytes: self.parts_bytes(&files),
            blocks: self.common.blocks(),
            store_options: self.common.store_option.clone(),
            shared_outputs: self.store().shared_outputs(),
            files,
            ..JobShared::default()
        }
    }

    /// Runs the tasks of one stage, and gives their reports. What they make, if anything, can be found again at these
    /// places.
    pub(in crate::jobs) fn run_stage<K: TypedTask>(
        &mut self,
        stage: TypedStage<K>,
        context: &TaskContext,
        places: Option<&OutputLocations>,
    ) -> Result<Vec<K::Report>>
    where
        K::Report: Send + 'static,
    {
        let found = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&found);
        let plan = StagedPlan::new(stage.then(move |reports| {
            *lock(&kept) = reports.into_iter().collect();
            Ok(Next::end())
        }));
        match places {
            Some(places) => self.run_kept(plan, context, places)?,
            None => {
                self.run_driver(Driver::new(Box::new(plan), RetryPolicy::default()), context)?;
            }
        }
        Ok(std::mem::take(&mut *lock(&found)))
    }

    /// Lets the driver run `plan`, from what is known of it if the job is resumed. What its tasks make can be found
    /// again at these places. An input that changed meanwhile is the error, rather than what followed from it.
    pub(in crate::jobs) fn run_kept(
        &mut self,
        plan: StagedPlan,
        context: &TaskContext,
        places: &OutputLocations,
    ) -> Result<()> {
        let ended = self.run_kept_with(plan, context, places, RetryPolicy::default());
        unless_changed(context, ended)
    }

    /// The same with another number of tries, and without a look at the input.
    pub(in crate::jobs) fn run_kept_with(
        &mut self,
        plan: StagedPlan,
        context: &TaskContext,
        places: &OutputLocations,
        policy: RetryPolicy,
    ) -> Result<()> {
        let round = self.rounds;
        self.rounds += 1;
        let replay = match self.resumed {
            Some(replayed) => self.replay(replayed, round, context, places)?,
            None => Replay::default(),
        };
        self.watched.recorder().record(Event::TasksBegan { round });
        self.watched.recorder().take_over();
        self.run_driver(Driver::resume(Box::new(plan), policy, replay), context)
    }

    fn run_driver(&mut self, mut driver: Driver, context: &TaskContext) -> Result<()> {
        self.watched.look_at(&context.node.budget);
        self.watched.look_at_nodes(self.runner.nodes());
        self.clock.on_nodes(self.runner.nodes());
        let output = self.asked.output.map(JobOutput::any_file);
        let hooks = RunnerHooks {
            control: self.control,
            clock: &mut self.clock,
            memory: &self.peak,
            recorder: self.watched.recorder(),
            output: output.or_else(|| self.writes_to.clone()),
        };
        let outcome = self.runner.run(&mut driver, context, self.workers, hooks);
        self.clock.end();
        let report = &mut self.report;
        report.budget_peak_bytes = context.node.budget.peak_bytes();
        let counts = driver.counts();
        report.count("FAILED_TASK_ATTEMPTS", counts.failed);
        report.count("KILLED_TASK_ATTEMPTS", counts.killed);
        if counts.speculative > 0 {
            report.count("SPECULATIVE_TASK_ATTEMPTS", counts.speculative);
        }
        report.count("NUM_FAILED_MAPS", counts.failed_tasks.maps);
        report.count("NUM_FAILED_REDUCES", counts.failed_tasks.reduces);
        report.count("TOTAL_LAUNCHED_MAPS", counts.launched.maps);
        report.count("TOTAL_LAUNCHED_REDUCES", counts.launched.reduces);
        if driver.rounds() > 0 {
            report.warnings.push(format!(
                "functions of the job gave something else when they were run again: an output had been lost, and the \
                 tasks that had read it were repeated ({} in all). Functions that use random numbers or the clock do that",
                times(driver.rounds())
            ));
        }
        if self.resumed.is_some() {
            report.count("KEPT_TASKS", driver.kept_tasks());
        }
        if outcome.as_ref().is_err_and(Error::leaves_work) {
            self.ownership.leave();
        }
        outcome
    }

    /// What is there of what the history proves done; from here on the dead job's folders are this job's.
    fn replay(
        &mut self,
        replayed: &ReplayedHistory,
        round: u32,
        context: &TaskContext,
        places: &OutputLocations,
    ) -> Result<Replay> {
        self.begin_phase("replay");
        let disk = self.store().disk();
        let cancel = self.control.flag();
        let found = self.cluster();
        let found = found.map(|cluster| FoundRuns::of(cluster, disk, cancel));
        let look = OutputVerifier {
            job_id: &self.environment.job_id,
            context,
            places,
            workers: self.workers,
            control: self.control,
            found: found.as_ref(),
        };
        let (replay, runs) = look.replay(replayed.round(round))?;
        self.check_cancelled()?;
        self.ownership.take_over();
        look.remove_other_runs(&runs);
        look.put_files_back(replayed.round(round))?;
        Ok(replay)
    }
}

fn times(count: u32) -> String {
    match count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    }
}

/// How the tasks ended; but if the input is not what it was, that, rather than what followed from it.
pub(in crate::jobs) fn unless_changed(context: &TaskContext, ended: Result<()>) -> Result<()> {
    match ended {
        Err(error) if matches!(error.kind(), Kind::Cancelled | Kind::ReaderGone) => Err(error),
        ended => check_input(context).and(ended),
    }
}

fn check_input(context: &TaskContext) -> Result<()> {
    let lost = context
        .in_memory()
        .and_then(|memory| memory.arena.lost_at());
    if let Some((file, offset)) = lost {
        let message = "it became shorter, or its device failed, while the job read it";
        return Err(Error::new(Kind::InputChanged, "read the input", message)
            .with_path(context.job.files[file].path.as_typed())
            .with("offset", offset)
            .advise("let no program write to the input, then run again"));
    }
    check_unchanged(&context.node.store, &context.job.files)
}

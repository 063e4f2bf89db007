//! The stages of a job of user code: map, passes where there are too many runs, reduce.

use std::path::Path;
use std::sync::{Arc, Mutex};

use super::outcome::Outcome;
use crate::driver::{Needs, Plan, Stage};
use crate::error::{Error, Result};
use crate::jobs::passes::{MadeRun, Next, Passes, longest_of, makers};
use crate::jobs::steps::{OutputLocations, lock, wrong_report};
use crate::plan::mapreduce::MapReduceSpec;
use crate::plan::spill::MemoryLayout;
use crate::spill::SpilledRun;
use crate::spill::collect::partition_borders;
use crate::task::{
    TaskReport, TaskSpec, UserTaskKind, UserTaskPlan, UserTaskReport, UserTaskSpec, UserTaskSplit,
};

/// The stages.
pub(super) struct MapReduce {
    spec: MapReduceSpec,
    numbers: MemoryLayout,
    /// What its tasks have in common.
    shared: Arc<UserTaskPlan>,
    passes: Passes,
    outcome: Arc<Mutex<Outcome>>,
    step: Step,
}

/// Which stage's reports come next.
#[derive(Debug, Default)]
enum Step {
    #[default]
    Begin,
    Map,
    Pass,
    Reduce,
}

impl MapReduce {
    /// The stages of a job whose tasks have the first numbers, and whose passes, which are no user code's, the second. Each
    /// task has `ahead_bytes` beside.
    pub(super) fn new(
        spec: &MapReduceSpec,
        (numbers, of_passes): (MemoryLayout, MemoryLayout),
        ahead_bytes: u64,
        (places, attempts): (&OutputLocations, &Path),
        outcome: Arc<Mutex<Outcome>>,
    ) -> Self {
        let shared = UserTaskPlan {
            partitions: spec.partitions,
            places: places.runs.clone(),
            chunk_bytes: numbers.chunk_bytes,
            buffer_bytes: numbers.buffer_bytes,
            ahead_bytes,
            compression: places.compression,
            attempts: attempts.to_owned(),
            uploads_to: places.uploads.first().cloned(),
        };
        MapReduce {
            spec: spec.clone(),
            numbers,
            shared: Arc::new(shared),
            passes: Passes::new(places, partition_borders(spec.partitions), of_passes),
            outcome,
            step: Step::default(),
        }
    }

    fn task(&self, work: UserTaskKind) -> TaskSpec {
        let plan = Arc::clone(&self.shared);
        TaskSpec::User(UserTaskSpec { plan, work })
    }

    fn map(&mut self) -> Stage {
        self.step = Step::Map;
        let task = |(number, split): (u32, &UserTaskSplit)| {
            self.task(UserTaskKind::Map {
                number,
                bytes: split.bytes,
                what: split.what.clone(),
            })
        };
        let tasks = (0..).zip(&self.spec.splits).map(task).collect();
        Stage::new("map", self.spec.input_bytes(), tasks)
    }

    fn mapped(&mut self, reports: Vec<TaskReport>) -> Result<Option<Stage>> {
        let mut runs = Vec::new();
        {
            let mut outcome = lock(&self.outcome);
            for (by, report) in (self.passes.tasks.first..).zip(reports) {
                let mut report = work_report(report)?;
                let made = std::mem::take(&mut report.runs);
                let records: u64 = made.iter().map(|run| run.records).sum();
                outcome.spilled += records;
                outcome.shuffled += records;
                outcome.spilled_bytes += made.iter().map(|run| run.bytes).sum::<u64>();
                outcome.stored_bytes += made.iter().map(|run| run.stored_bytes).sum::<u64>();
                outcome.runs += made.len() as u64;
                outcome.count(&report);
                outcome.maps.add(report);
                runs.extend(made.into_iter().map(|run| MadeRun::new(run, by)));
            }
        }
        if self.spec.partitions == 0 {
            return Ok(None);
        }
        self.merge(runs)
    }

    /// The next stage: another pass, or the reduce.
    fn merge(&mut self, runs: Vec<MadeRun>) -> Result<Option<Stage>> {
        let bytes = lock(&self.outcome).spilled_bytes;
        let stage = match self.passes.next(runs, bytes)? {
            Next::Last(runs) => self.reduce(runs),
            Next::Pass(stage) => {
                lock(&self.outcome).passes += 1;
                self.step = Step::Pass;
                stage
            }
        };
        Ok(Some(stage))
    }

    fn passed(&mut self, reports: Vec<TaskReport>) -> Result<Option<Stage>> {
        let count = |run: &SpilledRun| {
            let mut outcome = lock(&self.outcome);
            outcome.spilled += run.records;
            outcome.passed_bytes += run.stored_bytes;
        };
        let runs = self.passes.over(reports, count)?;
        self.merge(runs)
    }

    fn reduce(&mut self, runs: Vec<MadeRun>) -> Stage {
        self.step = Step::Reduce;
        let source_bytes = self.numbers.source_bytes(&longest_of(&runs));
        let needs = Needs::All(makers(&runs));
        let runs = Arc::new(runs.into_iter().map(|made| made.run).collect());
        let task = |partition| {
            self.task(UserTaskKind::Reduce {
                partition,
                runs: Arc::clone(&runs),
                source_bytes,
            })
        };
        let tasks = (0..self.spec.partitions).map(task).collect();
        let bytes = lock(&self.outcome).spilled_bytes;
        Stage::new("reduce", bytes, tasks).needing(needs)
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
        let stage = match std::mem::take(&mut self.step) {
            Step::Begin => Some(self.map()),
            Step::Map => self.mapped(reports)?,
            Step::Pass => self.passed(reports)?,
            Step::Reduce => self.reduced(reports).map(|()| None)?,
        };
        self.passes.tasks.count(stage.as_ref());
        Ok(stage)
    }

    fn restart(&mut self) -> bool {
        self.step = Step::Begin;
        self.passes.restart();
        *lock(&self.outcome) = Outcome::default();
        true
    }

    fn without(&mut self, task: &TaskSpec, error: &Error) -> Option<TaskReport> {
        let TaskSpec::User(task) = task else {
            return None;
        };
        let report = lock(&self.outcome)
            .failures
            .without(&self.spec, task, error)?;
        Some(TaskReport::User(report))
    }
}

fn work_report(report: TaskReport) -> Result<UserTaskReport> {
    match report {
        TaskReport::User(report) => Ok(report),
        _ => Err(wrong_report()),
    }
}

//! The stages of a job of user code: map, passes where there are too many runs, reduce.

use std::path::Path;
use std::sync::{Arc, Mutex};

use super::outcome::MapReduceOutcome;
use crate::driver::{Needs, Next, Reports, StagedPlan, stage};
use crate::jobs::passes::{MadeRun, Passes, longest_of, makers};
use crate::jobs::steps::OutputLocations;
use crate::plan::mapreduce::MapReduceSpec;
use crate::plan::spill::MemoryLayout;
use gristmill_base::error::Result;
use gristmill_base::sync::lock;
use gristmill_tasks::spill::SpilledRun;
use gristmill_tasks::spill::collect::partition_borders;
use gristmill_tasks::task::{
    TaskReport, TaskSpec, UserTaskKind, UserTaskPlan, UserTaskReport, UserTaskSpec, UserTaskSplit,
};

/// What the stages know.
pub(super) struct MapReduce {
    spec: MapReduceSpec,
    memory_layout: MemoryLayout,
    /// What its tasks have in common.
    shared: Arc<UserTaskPlan>,
    passes: Passes,
    outcome: Arc<Mutex<MapReduceOutcome>>,
}

impl MapReduce {
    /// Of a job whose tasks have the first memory layout, and whose passes, which are no user code's, the second. Each
    /// task has `ahead_bytes` beside.
    pub(super) fn new(
        spec: &MapReduceSpec,
        (memory_layout, of_passes): (MemoryLayout, MemoryLayout),
        ahead_bytes: u64,
        (places, attempts): (&OutputLocations, &Path),
        outcome: Arc<Mutex<MapReduceOutcome>>,
    ) -> Self {
        let shared = UserTaskPlan {
            partitions: spec.partitions,
            places: places.runs.clone(),
            chunk_bytes: memory_layout.chunk_bytes,
            buffer_bytes: memory_layout.buffer_bytes,
            ahead_bytes,
            compression: places.compression,
            attempts: attempts.to_owned(),
            uploads_to: places.uploads.first().cloned(),
            is_one_file: spec.form.is_joined(),
        };
        MapReduce {
            spec: spec.clone(),
            memory_layout,
            shared: Arc::new(shared),
            passes: Passes::new(places, partition_borders(spec.partitions), of_passes),
            outcome,
        }
    }

    /// The plan.
    pub(super) fn plan(self) -> StagedPlan {
        let job = Arc::new(self);
        let of_failed = Arc::clone(&job);
        StagedPlan::restarting(move || Arc::clone(&job).map()).without(move |task, error| {
            let TaskSpec::User(task) = task else {
                return None;
            };
            let mut outcome = lock(&of_failed.outcome);
            let report = outcome.failures.without(&of_failed.spec, task, error)?;
            Some(TaskReport::User(report))
        })
    }

    fn task(&self, work: UserTaskKind) -> UserTaskSpec {
        let plan = Arc::clone(&self.shared);
        UserTaskSpec { plan, work }
    }

    fn map(self: Arc<Self>) -> Next {
        *lock(&self.outcome) = MapReduceOutcome::default();
        let task = |(number, split): (u32, &UserTaskSplit)| {
            self.task(UserTaskKind::Map {
                number,
                bytes: split.bytes,
                what: split.what.clone(),
            })
        };
        let tasks = (0..).zip(&self.spec.splits).map(task);
        let map = stage("map", self.spec.input_bytes(), tasks);
        map.then(|reports| self.mapped(reports))
    }

    fn mapped(self: Arc<Self>, reports: Reports<UserTaskReport>) -> Result<Next> {
        let mut runs = Vec::new();
        let mut outcome = lock(&self.outcome);
        for (by, mut report) in reports.of_tasks() {
            let made = std::mem::take(&mut report.runs);
            outcome.count_runs(&made);
            outcome.count(&report);
            outcome.maps.add(report);
            runs.extend(made.into_iter().map(|run| MadeRun::new(run, by)));
        }
        let bytes = outcome.spilled_bytes;
        drop(outcome);
        if self.spec.partitions == 0 {
            return Ok(Next::end());
        }
        let of_passes = Arc::clone(&self);
        let passed = move |runs: &[SpilledRun]| lock(&of_passes.outcome).count_pass(runs);
        let passes = self.passes.clone();
        passes.merge(
            runs,
            bytes,
            passed,
            move |runs| Ok(self.reduce(runs, bytes)),
        )
    }

    fn reduce(self: Arc<Self>, runs: Vec<MadeRun>, bytes: u64) -> Next {
        let source_bytes = self.memory_layout.source_bytes(&longest_of(&runs));
        let needs = Needs::All(makers(&runs));
        let runs = Arc::new(runs.into_iter().map(|made| made.run).collect());
        let task = |partition| {
            self.task(UserTaskKind::Reduce {
                partition,
                runs: Arc::clone(&runs),
                source_bytes,
            })
        };
        let tasks = (0..self.spec.partitions).map(task);
        let reduce = stage("reduce", bytes, tasks).needing(needs);
        reduce.then(move |reports| {
            let mut outcome = lock(&self.outcome);
            for report in reports {
                outcome.count(&report);
                outcome.reduces.add(report);
            }
            Ok(Next::end())
        })
    }
}

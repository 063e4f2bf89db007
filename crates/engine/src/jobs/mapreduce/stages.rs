//! The stages of a job that maps and reduces: passes come where there are too many runs.
//!
//! ```text
//!   map ──▶ [passes] ──▶ reduce
//!   map ──▶ [passes] ──▶ regroup ──▶ [passes] ──▶ reduce        where pairs are grouped twice
//! ```

use std::path::Path;
use std::sync::{Arc, Mutex};

use super::outcome::{MadeRuns, MapReduceOutcome};
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
    InputRanges, TaskReport, TaskSpec, UserTaskKind, UserTaskPlan, UserTaskReport, UserTaskSpec,
    UserTaskSplit,
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
        let (mut runs, mut made) = (Vec::new(), MadeRuns::default());
        let mut outcome = lock(&self.outcome);
        for (by, mut report) in reports.of_tasks() {
            take_runs(&mut report, by, (&mut runs, &mut made));
            outcome.count(&report);
            outcome.maps.add(report);
        }
        outcome.mapped = made;
        drop(outcome);
        match &self.spec.regroups {
            _ if self.spec.partitions == 0 => Ok(Next::end()),
            Some(ranges) => {
                let ranges = Arc::clone(ranges);
                let passes = self.passes.merging_by_half();
                self.merge(passes, (runs, made.bytes), move |job, runs| {
                    job.regroup(runs, made.bytes, &ranges)
                })
            }
            None => self.reduce_all(runs, made.bytes),
        }
    }

    /// Merges runs, of so many bytes, until `last` can take all that are left.
    fn merge(
        self: Arc<Self>,
        passes: Passes,
        (runs, bytes): (Vec<MadeRun>, u64),
        last: impl FnOnce(Arc<Self>, Vec<MadeRun>) -> Next + Send + 'static,
    ) -> Result<Next> {
        let of_passes = Arc::clone(&self);
        let passed = move |runs: &[SpilledRun]| lock(&of_passes.outcome).count_pass(runs);
        passes.merge(runs, bytes, passed, move |runs| Ok(last(self, runs)))
    }

    /// Makes other pairs of all groups: other runs.
    fn regroup(self: Arc<Self>, runs: Vec<MadeRun>, bytes: u64, ranges: &Arc<InputRanges>) -> Next {
        let half = self.memory_layout.clone().merging_by_half();
        let source_bytes = half.source_bytes(&longest_of(&runs));
        let needs = Needs::All(makers(&runs));
        let runs = Arc::new(runs.into_iter().map(|made| made.run).collect());
        let task = |partition| {
            self.task(UserTaskKind::Regroup {
                partition,
                runs: Arc::clone(&runs),
                source_bytes,
                ranges: Arc::clone(ranges),
            })
        };
        let tasks = (0..self.spec.partitions).map(task);
        let regroup = stage("regroup", bytes, tasks).needing(needs);
        regroup.then(|reports| self.regrouped(reports))
    }

    fn regrouped(self: Arc<Self>, reports: Reports<UserTaskReport>) -> Result<Next> {
        let (mut runs, mut made) = (Vec::new(), MadeRuns::default());
        let mut outcome = lock(&self.outcome);
        for (by, mut report) in reports.of_tasks() {
            take_runs(&mut report, by, (&mut runs, &mut made));
            outcome.regroups.add(report);
        }
        outcome.regrouped = made;
        drop(outcome);
        self.reduce_all(runs, made.bytes)
    }

    fn reduce_all(self: Arc<Self>, runs: Vec<MadeRun>, bytes: u64) -> Result<Next> {
        let passes = self.passes.clone();
        self.merge(passes, (runs, bytes), move |job, runs| {
            job.reduce(runs, bytes)
        })
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

/// Takes the runs that a task made.
fn take_runs(
    report: &mut UserTaskReport,
    by: u32,
    (runs, made): (&mut Vec<MadeRun>, &mut MadeRuns),
) {
    let of_task = std::mem::take(&mut report.runs);
    made.add(&of_task);
    runs.extend(of_task.into_iter().map(|run| MadeRun::new(run, by)));
}

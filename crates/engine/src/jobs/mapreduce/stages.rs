//! The stages of a job that maps and reduces: rounds or passes of the shuffle come in between.
//!
//! ```text
//!   map ──▶ [rounds] ──▶ reduce
//!   map ──▶ [rounds] ──▶ regroup ──▶ [rounds] ──▶ reduce        where pairs are grouped twice
//! ```

use std::path::Path;
use std::sync::{Arc, Mutex};

use super::outcome::{MadeRuns, MapReduceOutcome};
use crate::driver::{Needs, Next, Reports, StagedPlan, stage};
use crate::jobs::shuffle::{MadeRun, Shuffle, Slice, last_tasks};
use crate::jobs::steps::OutputLocations;
use crate::plan::mapreduce::MapReduceSpec;
use crate::plan::shuffle::JobShuffle;
use crate::plan::spill::MemoryLayout;
use gristmill_base::error::Result;
use gristmill_base::sync::lock;
use gristmill_tasks::spill::SpilledRun;
use gristmill_tasks::spill::collect::partition_borders;
use gristmill_tasks::task::{
    InputRanges, MergeRun, TaskReport, TaskSpec, UserTaskKind, UserTaskPlan, UserTaskReport,
    UserTaskSpec, UserTaskSplit,
};

/// What the stages know.
pub(super) struct MapReduce {
    spec: MapReduceSpec,
    memory_layout: MemoryLayout,
    /// What its tasks have in common.
    shared: Arc<UserTaskPlan>,
    shuffle: Shuffle,
    outcome: Arc<Mutex<MapReduceOutcome>>,
}

impl MapReduce {
    /// Of a job whose tasks have the first memory layout, and whose passes, which are no user code's, the second. Each
    /// task has `ahead_bytes` beside.
    pub(super) fn new(
        shuffle: JobShuffle,
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
            shuffle: Shuffle::new(
                shuffle,
                places,
                partition_borders(spec.partitions),
                of_passes,
            ),
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
                let shuffle = self.shuffle.merging_by_half();
                self.merge(shuffle, (runs, made.bytes), move |job, slices| {
                    job.regroup(slices, made.bytes, &ranges)
                })
            }
            None => self.reduce_all(runs, made.bytes),
        }
    }

    /// Merges runs, of so many bytes, until `last` can take all that are left.
    fn merge(
        self: Arc<Self>,
        shuffle: Shuffle,
        (runs, bytes): (Vec<MadeRun>, u64),
        last: impl FnOnce(Arc<Self>, Vec<Slice>) -> Next + Send + 'static,
    ) -> Result<Next> {
        let partitions = self.spec.partitions as usize;
        let rounds = shuffle.rounds(&runs, (bytes, partitions as u64));
        let rounds = rounds.ending((1..=partitions).collect());
        let of_passes = Arc::clone(&self);
        let passed = move |runs: &[SpilledRun]| lock(&of_passes.outcome).count_pass(runs);
        shuffle.merge(runs, (bytes, rounds), passed, move |slices| {
            Ok(last(self, slices))
        })
    }

    /// The tasks of all partitions, each of which reads the runs of its slice, and what they need.
    fn partitions(
        &self,
        slices: Vec<Slice>,
        memory_layout: &MemoryLayout,
        work: impl Fn(u32, &Arc<Vec<MergeRun>>, usize) -> UserTaskKind,
    ) -> (Vec<UserTaskSpec>, Needs) {
        let numbers = (memory_layout, self.spec.partitions as usize);
        last_tasks(slices, numbers, |partition, runs, source_bytes| {
            self.task(work(partition as u32, runs, source_bytes))
        })
    }

    /// Makes other pairs of all groups: other runs.
    fn regroup(self: Arc<Self>, slices: Vec<Slice>, bytes: u64, ranges: &Arc<InputRanges>) -> Next {
        let half = self.memory_layout.clone().merging_by_half();
        let (tasks, needs) = self.partitions(slices, &half, |partition, runs, source_bytes| {
            UserTaskKind::Regroup {
                partition,
                runs: Arc::clone(runs),
                source_bytes,
                ranges: Arc::clone(ranges),
            }
        });
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
        let shuffle = self.shuffle.clone();
        self.merge(shuffle, (runs, bytes), move |job, slices| {
            job.reduce(slices, bytes)
        })
    }

    fn reduce(self: Arc<Self>, slices: Vec<Slice>, bytes: u64) -> Next {
        let (tasks, needs) = self.partitions(
            slices,
            &self.memory_layout,
            |partition, runs, source_bytes| UserTaskKind::Reduce {
                partition,
                runs: Arc::clone(runs),
                source_bytes,
            },
        );
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Plan;
    use crate::plan::shuffle::{ShuffleKind, ShuffleOptions};
    use gristmill_tasks::task::MergeRunsReport;

    fn plan(regroups: bool, options: ShuffleOptions) -> (StagedPlan, Arc<Mutex<MapReduceOutcome>>) {
        let text = r#"{"splits": [{"bytes": 3, "what": null}, {"bytes": 4, "what": null}], "partitions": 2, "output": "o"}"#;
        let spec = MapReduceSpec {
            regroups: regroups.then(|| Arc::new(InputRanges::even(&[7], 2))),
            ..serde_json::from_str(text).unwrap()
        };
        let places = OutputLocations::of_pairs();
        let layout = MemoryLayout::new(20_000_000, 2, 64, 0).unwrap();
        let outcome = Arc::default();
        let places = (&places, Path::new("/attempts"));
        let shuffle = JobShuffle {
            options,
            nodes: 1,
            workers: 2,
        };
        let job = MapReduce::new(
            shuffle,
            &spec,
            (layout.clone(), layout),
            0,
            places,
            Arc::clone(&outcome),
        );
        (job.plan(), outcome)
    }

    /// A task that has read so many pairs, and left them in so many runs.
    fn report(task: u32, records: u64, runs: u64) -> TaskReport {
        let run = |number| SpilledRun {
            path: format!("/runs/{task}-{number}").into(),
            records: records / runs,
            ..SpilledRun::default()
        };
        TaskReport::User(UserTaskReport {
            records_in: records,
            runs: (0..runs).map(run).collect(),
            ..UserTaskReport::default()
        })
    }

    /// The stages of a job whose maps leave so many runs each: their names, tasks, and what these need.
    fn stages(regroups: bool, runs: u64) -> Vec<(&'static str, usize, Needs)> {
        stages_by(regroups, runs, ShuffleOptions::default())
    }

    /// The same by a plan of the shuffle.
    fn stages_by(
        regroups: bool,
        runs: u64,
        options: ShuffleOptions,
    ) -> Vec<(&'static str, usize, Needs)> {
        let (mut plan, outcome) = plan(regroups, options);
        let (mut reports, mut first, mut found) = (Vec::new(), 0, Vec::new());
        while let Some(stage) = plan.next_stage(std::mem::take(&mut reports)).unwrap() {
            let tasks = stage.tasks.len() as u32;
            let of_merge = |task| {
                let run = SpilledRun {
                    path: format!("/runs/{task}-merged").into(),
                    ..SpilledRun::default()
                };
                let spent = Vec::new();
                TaskReport::MergeRuns(MergeRunsReport { run, spent })
            };
            let of_task = |task| match stage.name {
                "map" => report(task, 120, runs),
                "merge runs" => of_merge(task),
                "regroup" => report(task, 120, 1),
                _ => report(task, 120, 0),
            };
            reports = (first..first + tasks).map(of_task).collect();
            first += tasks;
            found.push((stage.name, tasks as usize, stage.needs));
        }
        let outcome = lock(&outcome);
        let sums = (
            outcome.regroups.sum.records_in,
            outcome.reduces.sum.records_in,
        );
        assert_eq!(sums, (if regroups { 240 } else { 0 }, 240));
        found
    }

    #[test]
    fn what_is_regrouped_is_reduced_from_the_runs_that_it_left() {
        let all = |tasks| Needs::All(vec![tasks]);
        let one = [("map", 2, Needs::Earlier), ("reduce", 2, all(0..2))];
        assert_eq!(stages(false, 1), one);
        let [map, _] = one;
        let again = [map, ("regroup", 2, all(0..2)), ("reduce", 2, all(2..4))];
        assert_eq!(stages(true, 1), again);
    }

    #[test]
    fn a_round_merges_each_slice_and_a_reduce_waits_for_its_own() {
        let two_level = ShuffleOptions {
            kind: ShuffleKind::TwoLevel,
            ..ShuffleOptions::default()
        };
        let merges = Needs::Each(vec![vec![0..2]; 2]);
        let reduces = Needs::Each(vec![vec![2..3], vec![3..4]]);
        let expected = [
            ("map", 2, Needs::Earlier),
            ("merge runs", 2, merges),
            ("reduce", 2, reduces),
        ];
        assert_eq!(stages_by(false, 1, two_level), expected);
    }

    #[test]
    fn a_merge_that_leaves_half_of_its_memory_takes_half_as_many_runs() {
        let names = |regroups, runs| -> Vec<&str> {
            let stages = stages(regroups, runs);
            stages.iter().map(|(name, ..)| *name).collect()
        };
        assert_eq!(names(false, 6), ["map", "reduce"]);
        assert_eq!(names(true, 6), ["map", "merge runs", "regroup", "reduce"]);
    }
}

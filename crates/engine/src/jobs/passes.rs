//! Passes: more runs than one merge can take are first merged to fewer, as often as it takes.
//!
//! ```text
//!   runs ──▶ a b | c d | e ──merged by group──▶ ab cd e ──▶ few enough: the last merge
//! ```
//!
//! Neighbours only, so that equal keys stay in input order; a run that is alone in its group stays as it is.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use super::steps::{OutputLocations, wrong_report};
use crate::driver::{Needs, Stage};
use crate::error::Result;
use crate::order::borders::Border;
use crate::plan::spill::MemoryLayout;
use crate::spill::{BucketSizes, SpilledRun};
use crate::task::{MergeRun, MergeRunsSpec, RunPlan, TaskReport, TaskSpec};

/// A run that a task made.
#[derive(Debug)]
pub(super) struct MadeRun {
    pub(super) run: MergeRun,
    pub(super) buckets: BucketSizes,
    /// The task's number.
    pub(super) by: u32,
}

impl MadeRun {
    pub(super) fn new(run: SpilledRun, by: u32) -> Self {
        MadeRun {
            buckets: run.buckets.clone(),
            run: MergeRun::from(run),
            by,
        }
    }
}

/// What comes next for some runs.
#[derive(Debug)]
pub(super) enum Next {
    /// This merges them to fewer first.
    Pass(Stage),
    /// One merge takes all of them.
    Last(Vec<MadeRun>),
}

/// The runs of a plan on their way to its last merge.
pub(super) struct Passes {
    /// What merges of runs have in common.
    pub(super) plan: Arc<RunPlan>,
    pub(super) numbers: MemoryLayout,
    pub(super) tasks: TaskNumbers,
    /// The runs of this pass: each group becomes one run.
    groups: Vec<Vec<MadeRun>>,
}

impl Passes {
    /// Of a plan whose runs go to `places`, and are cut into buckets there.
    pub(super) fn new(
        places: &OutputLocations,
        borders: Vec<Border>,
        numbers: MemoryLayout,
    ) -> Self {
        let plan = RunPlan {
            shape: places.shape,
            unique: places.unique,
            borders,
            places: places.runs.clone(),
            buffer_bytes: numbers.buffer_bytes,
            compression: places.compression,
            needed: numbers.needed,
        };
        Passes {
            plan: Arc::new(plan),
            numbers,
            tasks: TaskNumbers::default(),
            groups: Vec::new(),
        }
    }

    /// Forgets all runs: the plan's tasks begin again.
    pub(super) fn restart(&mut self) {
        self.tasks = TaskNumbers::default();
        self.groups.clear();
    }

    /// What comes next for `runs`, of so many bytes.
    ///
    /// # Errors
    /// Memory does not hold two of them.
    pub(super) fn next(&mut self, runs: Vec<MadeRun>, bytes: u64) -> Result<Next> {
        let groups = self.numbers.groups(&longest_of(&runs))?;
        if groups.is_empty() {
            return Ok(Next::Last(runs));
        }
        let mut rest = runs.into_iter();
        let groups = groups.into_iter();
        let groups = groups.map(|len| rest.by_ref().take(len).collect());
        self.groups = groups.collect();
        let task = |(number, group): (u64, &Vec<MadeRun>)| {
            TaskSpec::MergeRuns(MergeRunsSpec {
                plan: Arc::clone(&self.plan),
                runs: group.iter().map(|made| made.run.clone()).collect(),
                source_bytes: self.numbers.source_bytes(&longest_of(group)),
                number,
            })
        };
        let together = (0..).zip(&self.groups).filter(|(_, group)| group.len() > 1);
        let needs = together.clone().map(|(_, group)| makers(group)).collect();
        let tasks = together.map(task).collect();
        let stage = Stage::new("merge runs", bytes, tasks).needing(Needs::Each(needs));
        Ok(Next::Pass(stage))
    }

    /// The runs after the pass with these reports; each run that was made is shown to `made`.
    ///
    /// # Errors
    /// The reports are those of other tasks.
    pub(super) fn over(
        &mut self,
        reports: Vec<TaskReport>,
        mut made: impl FnMut(&SpilledRun),
    ) -> Result<Vec<MadeRun>> {
        let mut reports = (self.tasks.first..).zip(reports);
        let mut runs = Vec::with_capacity(self.groups.len());
        for mut group in std::mem::take(&mut self.groups) {
            if group.len() < 2 {
                runs.append(&mut group);
                continue;
            }
            let Some((by, TaskReport::MergeRuns(run))) = reports.next() else {
                return Err(wrong_report());
            };
            made(&run);
            runs.push(MadeRun::new(run, by));
        }
        Ok(runs)
    }
}

/// The numbers of a plan's tasks, which the driver counts over all stages.
#[derive(Debug, Default)]
pub(super) struct TaskNumbers {
    /// The first task of the stage whose reports come next.
    pub(super) first: u32,
    next: u32,
}

impl TaskNumbers {
    /// Counts the tasks of the stage that is given out.
    pub(super) fn count(&mut self, stage: Option<&Stage>) {
        self.first = self.next;
        self.next += stage.map_or(0, |stage| stage.tasks.len() as u32);
    }
}

/// The tasks that made some runs.
pub(super) fn makers(runs: &[MadeRun]) -> Vec<Range<u32>> {
    let tasks: BTreeSet<u32> = runs.iter().map(|made| made.by).collect();
    let mut ranges: Vec<Range<u32>> = Vec::new();
    for task in tasks {
        match ranges.last_mut() {
            Some(range) if range.end == task => range.end += 1,
            _ => ranges.push(task..task + 1),
        }
    }
    ranges
}

/// The longest record of each run.
pub(super) fn longest_of(runs: &[MadeRun]) -> Vec<u64> {
    runs.iter().map(|made| made.run.longest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn makers_of_runs_are_ranges_of_tasks() {
        let made = |by| MadeRun {
            run: MergeRun {
                path: "run".into(),
                longest: 0,
            },
            buckets: BucketSizes::default(),
            by,
        };
        let of = |tasks: &[u32]| makers(&tasks.iter().map(|by| made(*by)).collect::<Vec<_>>());
        assert_eq!(of(&[]), [] as [Range<u32>; 0]);
        assert_eq!(of(&[3, 4, 3, 4, 5]), [3..6]); // of a stream, whose tasks took turns
        assert_eq!(of(&[7, 1, 9, 2]), [1..3, 7..8, 9..10]);
    }

    #[test]
    fn tasks_are_numbered_over_stages() {
        let stage = |tasks| {
            let spec = crate::task::SampleSpec {
                stretches: Vec::new(),
                record_bytes: 100,
            };
            Stage::new("stage", 0, vec![TaskSpec::Sample(spec); tasks])
        };
        let mut numbers = TaskNumbers::default();
        let firsts = [3, 0, 2].map(|tasks| {
            numbers.count(Some(&stage(tasks)));
            numbers.first
        });
        assert_eq!(firsts, [0, 3, 3]);
    }
}

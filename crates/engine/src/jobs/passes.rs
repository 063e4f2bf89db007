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

use super::steps::OutputLocations;
use crate::driver::{Needs, Next, stage};
use crate::plan::spill::MemoryLayout;
use gristmill_base::error::Result;
use gristmill_base::order::borders::Border;
use gristmill_tasks::spill::{BucketSizes, SpilledRun};
use gristmill_tasks::task::{MergeRun, MergeRunsSpec, RunPlan};

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

/// How the runs of a plan come to its last merge.
#[derive(Debug, Clone)]
pub(super) struct Passes {
    /// What merges of runs have in common.
    pub(super) plan: Arc<RunPlan>,
    pub(super) memory_layout: MemoryLayout,
}

impl Passes {
    /// Of a plan whose runs go to `places`, and are cut into buckets there.
    pub(super) fn new(
        places: &OutputLocations,
        borders: Vec<Border>,
        memory_layout: MemoryLayout,
    ) -> Self {
        let plan = RunPlan {
            shape: places.shape,
            unique: places.unique,
            borders,
            places: places.runs.clone(),
            buffer_bytes: memory_layout.buffer_bytes,
            compression: places.compression,
            needed: memory_layout.needed,
        };
        Passes {
            plan: Arc::new(plan),
            memory_layout,
        }
    }

    /// The same, where the last merge has half of its memory for its runs.
    pub(super) fn merging_by_half(&self) -> Self {
        Passes {
            plan: Arc::clone(&self.plan),
            memory_layout: self.memory_layout.clone().merging_by_half(),
        }
    }

    /// Merges `runs`, of so many bytes, in passes until one merge takes all that are left: `last` goes on with those. What a
    /// pass makes is shown to `passed`.
    ///
    /// # Errors
    /// Memory does not hold two of them.
    pub(super) fn merge<P, L>(
        self,
        runs: Vec<MadeRun>,
        bytes: u64,
        passed: P,
        last: L,
    ) -> Result<Next>
    where
        P: Fn(&[SpilledRun]) + Send + 'static,
        L: FnOnce(Vec<MadeRun>) -> Result<Next> + Send + 'static,
    {
        let lengths = self.memory_layout.groups(&longest_of(&runs))?;
        if lengths.is_empty() {
            return last(runs);
        }
        let mut rest = runs.into_iter();
        let lengths = lengths.into_iter();
        let groups: Vec<Vec<MadeRun>> = lengths
            .map(|length| rest.by_ref().take(length).collect())
            .collect();
        let together = (0..).zip(&groups).filter(|(_, group)| group.len() > 1);
        let needs = together.clone().map(|(_, group)| makers(group)).collect();
        let task = |(number, group): (u64, &Vec<MadeRun>)| MergeRunsSpec {
            plan: Arc::clone(&self.plan),
            runs: group.iter().map(|made| made.run.clone()).collect(),
            source_bytes: self.memory_layout.source_bytes(&longest_of(group)),
            number,
        };
        let pass = stage("merge runs", bytes, together.map(task)).needing(Needs::Each(needs));
        Ok(pass.then(move |merged| {
            let (makers, merged): (Vec<u32>, Vec<SpilledRun>) = merged.of_tasks().unzip();
            passed(&merged);
            let mut merged = merged.into_iter().zip(makers);
            let mut runs = Vec::with_capacity(groups.len());
            for group in groups {
                match group.len() {
                    0 | 1 => runs.extend(group),
                    _ => runs.extend(merged.next().map(|(run, by)| MadeRun::new(run, by))),
                }
            }
            self.merge(runs, bytes, passed, last)
        }))
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
}

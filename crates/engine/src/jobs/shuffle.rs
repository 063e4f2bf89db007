//! The shuffle: what the map tasks left as runs comes to the last merges, in rounds.
//!
//! ```text
//!   a pass     a b | c d | e     neighbouring runs become one, where one merge cannot take all      ab cd e
//!   a round    low: a b | c d    the same for each slice of the buckets, before there is need       ab cd
//!              high: a b | c d                                                                      ab cd
//!   the last   each task merges all that its slice has left
//! ```
//!
//! Neighbours only, so that equal keys stay in input order; a run that is alone in its group stays as it is. A slice ends
//! where a task of the last merge does: no such task reads two of them. How many rounds there are, and into how many slices
//! they cut, `plan/shuffle.rs` says.
//!
//! Decision: docs/decisions/shuffle-rounds.md.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use super::steps::{OutputLocations, RunningJob};
use crate::driver::{Needs, Next, stage};
use crate::plan::shuffle::{ShuffleOptions, ShuffleSize, round_fan_in};
use crate::plan::spill::MemoryLayout;
use gristmill_base::error::Result;
use gristmill_base::order::borders::Border;
use gristmill_tasks::spill::{BucketSizes, SpilledRun};
use gristmill_tasks::task::{MergeRun, MergeRunsReport, MergeRunsSpec, RunPlan};

/// A run that a task made.
#[derive(Debug, Clone)]
pub(super) struct MadeRun {
    pub(super) run: MergeRun,
    pub(super) buckets: BucketSizes,
    /// The task's number.
    pub(super) by: u32,
    /// The buckets that it holds records of; all where there is nothing.
    slice: Option<Range<usize>>,
}

impl MadeRun {
    pub(super) fn new(run: SpilledRun, by: u32) -> Self {
        MadeRun {
            buckets: run.buckets.clone(),
            run: MergeRun::from(run),
            by,
            slice: None,
        }
    }
}

/// Tasks of the last merge whose records lie in the same runs.
#[derive(Debug, Clone)]
pub(super) struct Slice {
    /// Which tasks, and their buckets; all where there is one slice.
    part: Option<(Range<usize>, Range<usize>)>,
    pub(super) runs: Vec<MadeRun>,
}

impl Slice {
    /// Its tasks, of so many.
    pub(super) fn tasks(&self, all: usize) -> Range<usize> {
        self.part
            .as_ref()
            .map_or(0..all, |(tasks, _)| tasks.clone())
    }

    fn buckets(&self) -> Option<&Range<usize>> {
        self.part.as_ref().map(|(_, buckets)| buckets)
    }
}

/// The rounds of a shuffle.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    /// Into how many slices each coming round cuts a slice.
    fan_outs: VecDeque<u64>,
    /// Where the buckets of each task of the last merge end; nothing where there are no rounds.
    ends: Vec<usize>,
}

impl Rounds {
    /// Whether there are some.
    pub(super) fn are_planned(&self) -> bool {
        !self.fan_outs.is_empty()
    }

    /// The same for a last merge whose tasks' buckets end there.
    pub(super) fn ending(self, ends: Vec<usize>) -> Self {
        Rounds { ends, ..self }
    }
}

/// How the runs of a plan come to its last merge.
#[derive(Debug, Clone)]
pub(super) struct Shuffle {
    /// What merges of runs have in common.
    pub(super) plan: Arc<RunPlan>,
    pub(super) memory_layout: MemoryLayout,
    of_job: JobShuffle,
}

/// What a job says of its shuffle, and where it runs.
#[derive(Debug, Clone)]
pub(super) struct JobShuffle {
    pub(super) options: ShuffleOptions,
    pub(super) nodes: usize,
    pub(super) workers: usize,
}

impl JobShuffle {
    pub(super) fn of(job: &RunningJob<'_>) -> Self {
        JobShuffle {
            options: job.common.shuffle_options(),
            nodes: job.nodes,
            workers: job.workers,
        }
    }

    /// What decides the plan for so many bytes, in so many runs, which so many tasks merge at last.
    pub(super) fn size(
        &self,
        memory_layout: &MemoryLayout,
        (bytes, runs, tasks): (u64, u64, u64),
    ) -> ShuffleSize {
        ShuffleSize {
            bytes,
            runs,
            tasks,
            ..ShuffleSize::of(memory_layout, self.nodes, self.workers)
        }
    }
}

/// Runs on their way to the last merge.
struct ShuffleRound<P, L> {
    slices: Vec<Slice>,
    bytes: u64,
    rounds: Rounds,
    passed: P,
    last: L,
}

impl Shuffle {
    /// Of a job whose runs go to `places`, and are cut into buckets there.
    pub(super) fn new(
        of_job: JobShuffle,
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
        Shuffle {
            plan: Arc::new(plan),
            memory_layout,
            of_job,
        }
    }

    /// The same, where the last merge has half of its memory for its runs.
    pub(super) fn merging_by_half(&self) -> Self {
        Shuffle {
            memory_layout: self.memory_layout.clone().merging_by_half(),
            ..self.clone()
        }
    }

    /// The rounds for runs of so many bytes, which go to about so many tasks.
    pub(super) fn rounds(&self, runs: &[MadeRun], (bytes, tasks): (u64, u64)) -> Rounds {
        let numbers = (bytes, runs.len() as u64, tasks);
        let size = self.of_job.size(&self.memory_layout, numbers);
        let mut fan_outs = VecDeque::from(self.of_job.options.fan_outs(size));
        let _ = fan_outs.pop_back(); // what is left to cut, the last merge cuts
        Rounds {
            fan_outs,
            ends: Vec::new(),
        }
    }

    /// Merges `runs`, of so many bytes, until one merge takes all that are left of each slice: `last` goes on with those. What
    /// a round makes is shown to `passed`.
    ///
    /// # Errors
    /// Memory does not hold two of them.
    pub(super) fn merge<P, L>(
        self,
        runs: Vec<MadeRun>,
        (bytes, rounds): (u64, Rounds),
        passed: P,
        last: L,
    ) -> Result<Next>
    where
        P: Fn(&[SpilledRun]) + Send + 'static,
        L: FnOnce(Vec<Slice>) -> Result<Next> + Send + 'static,
    {
        let all = Slice { part: None, runs };
        self.next(ShuffleRound {
            slices: vec![all],
            bytes,
            rounds,
            passed,
            last,
        })
    }

    /// The next round, or pass, or the last merge.
    fn next<P, L>(self, mut round: ShuffleRound<P, L>) -> Result<Next>
    where
        P: Fn(&[SpilledRun]) + Send + 'static,
        L: FnOnce(Vec<Slice>) -> Result<Next> + Send + 'static,
    {
        let mut groups = Vec::new();
        while groups.iter().all(Vec::is_empty) {
            let Rounds { fan_outs, ends } = &mut round.rounds;
            let left = fan_outs.len() as u32;
            let Some(fan_out) = fan_outs.pop_front() else {
                groups = self.groups_of(&round.slices, None)?;
                break;
            };
            let slices = round.slices.len();
            round.slices = cut(round.slices, fan_out as usize, ends);
            if fan_out > 1 && round.slices.len() == slices {
                continue; // there are no more tasks than slices
            }
            groups = self.groups_of(&round.slices, Some(left + 1))?;
        }
        if groups.iter().all(Vec::is_empty) {
            return (round.last)(round.slices);
        }
        let groups: Vec<Vec<Vec<MadeRun>>> = round
            .slices
            .iter_mut()
            .zip(groups)
            .map(|(slice, lengths)| grouped(std::mem::take(&mut slice.runs), lengths))
            .collect();
        // The tasks of a slice are at home on one node: neighbours among the tasks are on different ones.
        let (mut tasks, mut needs, mut places) = (Vec::new(), Vec::new(), Vec::new());
        let longest = groups.iter().map(Vec::len).max().unwrap_or(0);
        let mut number = 0;
        for at in 0..longest {
            for (of_slice, groups) in groups.iter().enumerate() {
                let Some(group) = groups.get(at) else {
                    continue;
                };
                if group.len() > 1 {
                    let home = (round.slices.len() > 1)
                        .then(|| (of_slice * self.of_job.nodes / round.slices.len()) as u32);
                    let slice = &round.slices[of_slice];
                    tasks.push(self.task(group, slice, (number, home)));
                    needs.push(makers(group));
                    places.push((of_slice, at));
                }
                number += 1;
            }
        }
        let merges = stage("merge runs", round.bytes, tasks).needing(Needs::Each(needs));
        Ok(merges.then(move |merged| {
            let (makers, merged): (Vec<u32>, Vec<MergeRunsReport>) = merged.of_tasks().unzip();
            let merged: Vec<SpilledRun> = merged.into_iter().map(|report| report.run).collect();
            (round.passed)(&merged);
            let mut groups = groups;
            for ((run, by), (slice, at)) in merged.into_iter().zip(makers).zip(places) {
                groups[slice][at] = vec![MadeRun {
                    slice: round.slices[slice].buckets().cloned(),
                    ..MadeRun::new(run, by)
                }];
            }
            for (slice, groups) in round.slices.iter_mut().zip(groups) {
                slice.runs = groups.into_iter().flatten().collect();
            }
            self.next(round)
        }))
    }

    /// How many neighbouring runs of each slice become one: nothing where all can be merged at once and there is no round, of
    /// so many merges, that wants fewer.
    fn groups_of(&self, slices: &[Slice], merges: Option<u32>) -> Result<Vec<Vec<usize>>> {
        let of_slice = |slice: &Slice| {
            let longest = longest_of(&slice.runs);
            let runs = longest.len();
            let Some(merges) = merges else {
                return self.memory_layout.groups(&longest);
            };
            if runs < 2 {
                return Ok(Vec::new());
            }
            let fan_in = round_fan_in(runs as u64, merges) as usize;
            let layout = &self.memory_layout;
            let fewer = layout.clone().opening(fan_in.min(layout.fan_in()));
            let groups = fewer.groups(&longest)?;
            Ok(if groups.is_empty() {
                vec![runs]
            } else {
                groups
            })
        };
        slices.iter().map(of_slice).collect()
    }

    fn task(
        &self,
        group: &[MadeRun],
        slice: &Slice,
        (number, home): (u64, Option<u32>),
    ) -> MergeRunsSpec {
        let buckets = slice.buckets();
        let holds_more = group.iter().any(|made| made.slice.as_ref() != buckets);
        MergeRunsSpec {
            plan: Arc::clone(&self.plan),
            runs: group.iter().map(|made| made.run.clone()).collect(),
            source_bytes: self.memory_layout.source_bytes(&longest_of(group)),
            number,
            slice: buckets.filter(|_| holds_more).cloned(),
            home,
        }
    }
}

/// Runs in groups of these lengths.
fn grouped(runs: Vec<MadeRun>, lengths: Vec<usize>) -> Vec<Vec<MadeRun>> {
    if lengths.is_empty() {
        return runs.into_iter().map(|run| vec![run]).collect();
    }
    let mut rest = runs.into_iter();
    let lengths = lengths.into_iter();
    lengths
        .map(|length| rest.by_ref().take(length).collect())
        .collect()
}

/// Cuts each slice into so many, as even as its tasks are; each has one task at least.
fn cut(slices: Vec<Slice>, fan_out: usize, ends: &[usize]) -> Vec<Slice> {
    let mut finer = Vec::new();
    for slice in slices {
        let Range { start, end } = slice.tasks(ends.len());
        let tasks = end - start;
        let pieces = fan_out.clamp(1, tasks.max(1));
        if pieces == 1 {
            finer.push(slice);
            continue;
        }
        let at = |piece: usize| start + piece * tasks / pieces;
        let bucket = |task: usize| task.checked_sub(1).map_or(0, |before| ends[before]);
        let run = |made: &MadeRun| MadeRun {
            buckets: BucketSizes::default(), // the tasks of the last merge are known
            ..made.clone()
        };
        finer.extend((0..pieces).map(|piece| {
            let tasks = at(piece)..at(piece + 1);
            let buckets = bucket(tasks.start)..bucket(tasks.end);
            Slice {
                part: Some((tasks, buckets)),
                runs: slice.runs.iter().map(run).collect(),
            }
        }));
    }
    finer
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
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    use super::*;
    use crate::driver::{Plan, StagedPlan};
    use crate::plan::shuffle::{FanOuts, ShuffleKind};
    use gristmill_base::record::shape::{PairShape, Shape};
    use gristmill_base::sync::lock;
    use gristmill_storage::sorted_run::RunCompression;
    use gristmill_tasks::task::{TaskReport, TaskSpec};
    use proptest::prelude::*;

    /// What runs hold: bucket and place in the input of each record, in order.
    type Records = Vec<(usize, u32)>;

    fn made(name: String, by: u32) -> MadeRun {
        let run = SpilledRun {
            path: name.into(),
            longest: 100,
            ..SpilledRun::default()
        };
        MadeRun::new(run, by)
    }

    /// What a merge of such runs gives of some buckets: what comes first in the input comes first.
    fn merge(runs: &[MergeRun], all: &BTreeMap<String, Records>, buckets: Range<usize>) -> Records {
        let name = |run: &MergeRun| run.path.to_str().unwrap().to_owned();
        let records = runs.iter().flat_map(|run| &all[&name(run)]);
        let mut merged: Records = records
            .filter(|(bucket, _)| buckets.contains(bucket))
            .copied()
            .collect();
        merged.sort_by_key(|(bucket, _)| *bucket); // stable
        merged
    }

    fn shuffle(of_job: JobShuffle, buckets: usize, fan_in: usize) -> Shuffle {
        let places = OutputLocations {
            runs: vec!["/runs".into()],
            output: "/out".into(),
            names: Vec::new(),
            uploads: Vec::new(),
            shape: PairShape.kind(),
            unique: false,
            codes: None,
            compression: RunCompression::None,
            attempts: None,
        };
        let border = Border {
            key: Vec::new(),
            position: 0,
        };
        let layout = MemoryLayout::new(64 << 20, 2, 100, 100).unwrap();
        Shuffle::new(
            of_job,
            &places,
            vec![border; buckets - 1],
            layout.opening(fan_in),
        )
    }

    proptest! {
        /// Whatever the rounds: each task of the last merge finds all records of its buckets once, in the order of the input.
        #[test]
        fn every_record_comes_to_its_task_once_and_in_order(
            runs in proptest::collection::vec(proptest::collection::vec(0_usize..40, 0..20), 0..30),
            cuts in proptest::collection::btree_set(1_usize..40, 0..12),
            fan_outs in proptest::collection::vec(1_usize..6, 0..5),
            kind in 0_usize..4,
            fan_in in 2_usize..9,
            nodes in 1_usize..4,
        ) {
            let buckets = 40;
            let ends: Vec<usize> = cuts.into_iter().chain([buckets]).collect();
            let kind = [ShuffleKind::Auto, ShuffleKind::Immediate, ShuffleKind::TwoLevel, ShuffleKind::Iterative][kind];
            let options = ShuffleOptions { kind, fan_outs: FanOuts(fan_outs) };
            let shuffle = shuffle(JobShuffle { options, nodes, workers: 2 }, buckets, fan_in);
            let (mut contents, mut given, mut place) = (BTreeMap::new(), Vec::new(), 0);
            let mut wanted = vec![Records::new(); ends.len()];
            for (task, run) in (0_u32..).zip(&runs) {
                let mut records = Records::new();
                let mut sorted = run.clone();
                sorted.sort_unstable();
                for bucket in sorted {
                    records.push((bucket, place));
                    wanted[ends.partition_point(|end| *end <= bucket)].push((bucket, place));
                    place += 1;
                }
                contents.insert(format!("run-{task}"), records);
                given.push(made(format!("run-{task}"), task));
            }
            wanted.iter_mut().for_each(|records| records.sort_by_key(|(bucket, _)| *bucket));
            let rounds = shuffle.rounds(&given, (1 << 30, ends.len() as u64)).ending(ends.clone());
            let found = Arc::new(Mutex::new(Vec::new()));
            let kept = Arc::clone(&found);
            let next = shuffle.merge(given, (1 << 30, rounds), |_| {}, move |slices| {
                *lock(&kept) = slices;
                Ok(Next::end())
            });
            let mut plan = StagedPlan::new(next.unwrap());
            let (mut reports, mut number) = (Vec::new(), 0);
            while let Some(stage) = plan.next_stage(std::mem::take(&mut reports)).unwrap() {
                for task in stage.tasks {
                    let TaskSpec::MergeRuns(task) = task else { unreachable!() };
                    prop_assert!(task.runs.len() <= fan_in.max(2));
                    let name = format!("merged-{number}");
                    number += 1;
                    let slice = task.slice.clone().unwrap_or(0..buckets);
                    contents.insert(name.clone(), merge(&task.runs, &contents, slice));
                    if task.slice.is_none() {
                        for run in &task.runs {
                            contents.remove(run.path.to_str().unwrap()).unwrap(); // used up
                        }
                    }
                    let run = SpilledRun { path: name.into(), longest: 100, ..SpilledRun::default() };
                    reports.push(TaskReport::MergeRuns(MergeRunsReport { run, spent: Vec::new() }));
                }
            }
            let mut tasks = 0;
            for slice in lock(&found).iter() {
                let runs: Vec<MergeRun> = slice.runs.iter().map(|made| made.run.clone()).collect();
                prop_assert!(runs.len() <= fan_in.max(2));
                for task in slice.tasks(ends.len()) {
                    prop_assert_eq!(task, tasks);
                    let start = task.checked_sub(1).map_or(0, |before| ends[before]);
                    prop_assert_eq!(&merge(&runs, &contents, start..ends[task]), &wanted[task]);
                    tasks += 1;
                }
            }
            prop_assert_eq!(tasks, ends.len());
        }
    }

    #[test]
    fn makers_of_runs_are_ranges_of_tasks() {
        let made = |by| MadeRun {
            run: MergeRun {
                path: "run".into(),
                longest: 0,
            },
            buckets: BucketSizes::default(),
            by,
            slice: None,
        };
        let of = |tasks: &[u32]| makers(&tasks.iter().map(|by| made(*by)).collect::<Vec<_>>());
        assert_eq!(of(&[]), [] as [Range<u32>; 0]);
        assert_eq!(of(&[3, 4, 3, 4, 5]), [3..6]); // of a stream, whose tasks took turns
        assert_eq!(of(&[7, 1, 9, 2]), [1..3, 7..8, 9..10]);
    }
}

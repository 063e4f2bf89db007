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

use super::steps::OutputLocations;
use crate::driver::{Needs, Next, stage};
use crate::plan::shuffle::{JobShuffle, round_fan_in};
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
    fn tasks(&self, all: usize) -> Range<usize> {
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

/// Neighbouring runs, each group of which becomes one.
type Groups = Vec<Vec<MadeRun>>;

/// The tasks of a round.
#[derive(Default)]
struct Merges {
    tasks: Vec<MergeRunsSpec>,
    needs: Vec<Vec<Range<u32>>>,
    /// The slice of each, and its group there.
    places: Vec<(usize, usize)>,
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
        let mut fan_outs = VecDeque::from(self.of_job.fan_outs(&self.memory_layout, numbers));
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
        let lengths = self.cut(&mut round.slices, &mut round.rounds)?;
        if lengths.iter().all(Vec::is_empty) {
            return (round.last)(round.slices);
        }
        let slices = round.slices.iter_mut().zip(lengths);
        let mut groups: Vec<Groups> = slices
            .map(|(slice, lengths)| grouped(std::mem::take(&mut slice.runs), lengths))
            .collect();
        let Merges {
            tasks,
            needs,
            places,
        } = self.merges(&round.slices, &groups);
        let merges = stage("merge runs", round.bytes, tasks).needing(Needs::Each(needs));
        Ok(merges.then(move |merged| {
            let (makers, merged): (Vec<u32>, Vec<MergeRunsReport>) = merged.of_tasks().unzip();
            let merged: Vec<SpilledRun> = merged.into_iter().map(|report| report.run).collect();
            (round.passed)(&merged);
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

    /// Cuts the slices for the next round that has something to merge, and says how many neighbouring runs of each become one;
    /// nothing where the last merge comes.
    fn cut(&self, slices: &mut Vec<Slice>, rounds: &mut Rounds) -> Result<Vec<Vec<usize>>> {
        loop {
            let left = rounds.fan_outs.len() as u32;
            let Some(fan_out) = rounds.fan_outs.pop_front() else {
                return self.groups_of(slices, None);
            };
            let before = slices.len();
            *slices = finer(std::mem::take(slices), fan_out as usize, &rounds.ends);
            if fan_out > 1 && slices.len() == before {
                continue; // there are no more tasks than slices
            }
            let lengths = self.groups_of(slices, Some(left + 1))?;
            if !lengths.iter().all(Vec::is_empty) {
                return Ok(lengths);
            }
        }
    }

    /// The tasks of a round. Those of a slice are at home on one node: neighbours among the tasks are on different ones.
    fn merges(&self, slices: &[Slice], groups: &[Groups]) -> Merges {
        let mut merges = Merges::default();
        let longest = groups.iter().map(Vec::len).max().unwrap_or(0);
        let places = (0..longest).flat_map(|at| (0..groups.len()).map(move |slice| (slice, at)));
        let groups = places.filter_map(|(slice, at)| Some((slice, at, groups[slice].get(at)?)));
        for (number, (slice, at, group)) in (0..).zip(groups) {
            if group.len() < 2 {
                continue;
            }
            let home = slice * self.of_job.nodes / slices.len();
            let home = (slices.len() > 1).then_some(home as u32);
            merges
                .tasks
                .push(self.task(group, &slices[slice], (number, home)));
            merges.needs.push(makers(group));
            merges.places.push((slice, at));
        }
        merges
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
fn grouped(runs: Vec<MadeRun>, lengths: Vec<usize>) -> Groups {
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
fn finer(slices: Vec<Slice>, fan_out: usize, ends: &[usize]) -> Vec<Slice> {
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

/// The tasks of the last merge, of which there are so many, and what they need. `task` makes one from its number, the runs of its
/// slice, and the bytes of each of the two buffers of a run.
pub(super) fn last_tasks<K>(
    slices: Vec<Slice>,
    (memory_layout, all): (&MemoryLayout, usize),
    mut task: impl FnMut(usize, &Arc<Vec<MergeRun>>, usize) -> K,
) -> (Vec<K>, Needs) {
    let (mut tasks, mut needs) = (Vec::with_capacity(all), Vec::with_capacity(all));
    for slice in slices {
        let of_slice = slice.tasks(all);
        let source_bytes = memory_layout.source_bytes(&longest_of(&slice.runs));
        needs.extend(vec![makers(&slice.runs); of_slice.len()]);
        let runs = Arc::new(slice.runs.into_iter().map(|made| made.run).collect());
        tasks.extend(of_slice.map(|number| task(number, &runs, source_bytes)));
    }
    (tasks, Needs::each(needs))
}

/// The tasks that made some runs.
fn makers(runs: &[MadeRun]) -> Vec<Range<u32>> {
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
fn longest_of(runs: &[MadeRun]) -> Vec<u64> {
    runs.iter().map(|made| made.run.longest).collect()
}

#[cfg(test)]
mod tests;

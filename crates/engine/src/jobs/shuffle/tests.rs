//! Whatever the rounds of a shuffle: every record comes to its task once, in the order of the input.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::*;
use crate::driver::{Plan, StagedPlan};
use crate::plan::shuffle::{FanOuts, ShuffleKind, ShuffleOptions};
use gristmill_base::sync::lock;
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
    let places = OutputLocations::of_pairs();
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
        let options = ShuffleOptions { kind, rounds: FanOuts(fan_outs) };
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

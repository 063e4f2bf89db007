//! `terasort` and `sort` in less memory than their input needs, against naive sorts, over everything that must not
//! show in the output. Which way a job took is asserted: runs, passes, and what was spilled.
//!
//! ```text
//!   much memory       no run on any store             ─┐
//!   little memory     runs, passes as planned          ├─▶ the same bytes in every part
//!   little, a fault   the same, one attempt more      ─┘
//! ```
//!
//! In the least memory that a job takes, a run is 2 MB at most and four to six are merged at once. Each worker makes
//! at least one, so that several workers need no more than some hundred kB of input for merges in two passes.

use proptest::prelude::*;
use serde_json::json;

use super::oracle::{Shape, shapes};
use super::spill_case::{Case, Wanted, files_of, text};
use super::support::{Numbers, Place};
use super::watched::Watch;

/// What must not show.
#[derive(Debug, Clone, Copy)]
struct Circumstances {
    workers: usize,
    local: bool,
    fault: u64,
}

fn circumstances() -> impl Strategy<Value = Circumstances> {
    (1_usize..8, any::<bool>(), any::<u64>()).prop_map(|(workers, local, fault)| Circumstances {
        workers,
        local,
        fault,
    })
}

/// All ways of running a job give the same.
fn check(case: &Case, circumstances: Circumstances) {
    let Circumstances {
        workers,
        local,
        fault,
    } = circumstances;
    let place = case.place(if local {
        Place::local()
    } else {
        Place::memory()
    });
    let parts = case.run_in_memory(&place, workers % 4 + 1).parts;
    let good = case.run_spilling(&place, &Watch::new(), workers);
    assert!(good.parts == parts);
    assert_eq!(good.counter("FAILED_TASK_ATTEMPTS"), 0);
    let of_tasks = good.calls.iter().filter(|call| call.matters_to_task());
    let of_tasks = of_tasks.count() as u64;
    if of_tasks > 0 {
        let watch = Watch::failing_in_task(fault % of_tasks);
        let tried_again = case.run_spilling(&place, &watch, workers);
        assert!(tried_again.parts == parts);
        assert_eq!(tried_again.counter("FAILED_TASK_ATTEMPTS"), 1);
    }
}

fn lengths(most: usize) -> impl Strategy<Value = Vec<usize>> {
    let length = prop_oneof![1 => Just(0), 1 => 1_usize..5, 3 => 1..most];
    proptest::collection::vec(length, 1..5)
}

fn wanted() -> impl Strategy<Value = Wanted> {
    let lengths = (1_usize..150).prop_flat_map(|record| (Just(record), 1..=record));
    let fixed = prop_oneof![Just(None), lengths.prop_map(Some)];
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (fixed, flags).prop_map(|(fixed, (reverse, unique, stable))| Wanted {
        fixed,
        reverse,
        unique,
        stable,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn terasort_gives_the_same_in_any_memory(
        shape in shapes(),
        lengths in lengths(6_000),
        seed in any::<u64>(),
        partitions in prop_oneof![Just(1), 1_usize..5, Just(40)],
        circumstances in circumstances(),
    ) {
        let case = Case::terasort(files_of(shape, &lengths, seed), partitions);
        check(&case, circumstances);
    }

    #[test]
    fn sort_gives_the_same_in_any_memory(
        wanted in wanted(),
        lengths in lengths(500_000),
        kinds in 2_u64..30,
        seed in any::<u64>(),
        circumstances in circumstances(),
    ) {
        let whole = wanted.fixed.map_or(1, |(record, _)| record);
        let file = |(number, bytes): (u64, &usize)| text(bytes / whole * whole, kinds, seed ^ number);
        let files = (0..).zip(&lengths).map(file).collect();
        check(&Case::sort(files, wanted), circumstances);
    }
}

/// Each of many workers makes a run at least, and few are merged at once.
#[test]
fn runs_of_many_workers_are_merged_in_passes() {
    let place_of = |local| {
        if local {
            Place::local()
        } else {
            Place::memory()
        }
    };
    for (workers, rows, passes, local) in [
        (1, 8_000, 0, false),
        (6, 17_000, 1, true),
        (30, 17_000, 2, false),
    ] {
        let files = files_of(Shape::FewDistinct(500), &[rows, 0, 7, rows / 3], 1);
        let case = Case::terasort(files, 3);
        let place = case.place(place_of(local));
        let ran = case.run_spilling(&place, &Watch::new(), workers);
        assert_eq!(ran.counter("MERGE_PASSES"), passes, "{workers} workers");
        assert!(ran.counter("SPILLED_RUNS") >= workers as u64 * 2 / 3);
        let stages = ran
            .report
            .phases
            .iter()
            .filter(|phase| phase.name == "merge runs");
        assert_eq!(stages.count() as u64, passes);
        assert!(case.run_in_memory(&place, 2).parts == ran.parts);
    }
}

/// Lines that are much shorter than they seem fill a worker's memory with entries, small files leave gaps in it: a
/// task makes many runs, in order.
#[test]
fn a_task_spills_as_often_as_it_must() {
    let by_entries = Case::sort(vec![shorter_than_they_seem(1_600_000)], Wanted::default());
    let place = by_entries.place(Place::memory());
    let parts = by_entries.run_in_memory(&place, 3).parts;
    let ran = by_entries.run_spilling(&place, &Watch::new(), 1);
    let runs = ran.counter("SPILLED_RUNS");
    assert!(runs > ran.tasks("spill") as u64, "{runs}");
    assert!(ran.parts == parts);
}

/// Skewed keys, in memory and in runs: parts are the same, and about even, as equal keys are cut by position.
#[test]
fn skewed_keys_are_cut_by_position() {
    let shapes = [
        Shape::AllEqual(0),
        Shape::AllEqual(0xFF),
        Shape::FewDistinct(2),
        Shape::Sorted,
        Shape::Reversed,
        Shape::SharedPrefix(9),
    ];
    for (seed, shape) in (0..).zip(shapes) {
        let case = Case::terasort(files_of(shape, &[15_000, 0, 3, 5_000], seed), 4);
        let place = case.place(Place::memory());
        let parts = case.run_in_memory(&place, 3).parts;
        for workers in [1, 5] {
            let ran = case.run_spilling(&place, &Watch::new(), workers);
            assert!(ran.parts == parts, "{shape:?}");
            assert!(ran.counter("SPILLED_RUNS") >= workers as u64);
        }
        let even = case.sorted.len() / 4;
        let is_even = |bytes: &Vec<u8>| (even / 10 * 8..even / 10 * 12).contains(&bytes.len());
        assert!(parts.iter().all(|(_, bytes)| is_even(bytes)), "{shape:?}");
    }
}

/// Keys that differ behind their first ten bytes alone, or not at all, in an input so large that several tasks write
/// ranges of the output.
#[test]
fn ranges_of_one_file_are_cut_within_equal_keys() {
    const RECORDS: u64 = 350_000;
    let record = |key: u64, number: u64| {
        let mut record = [b'k'; 100];
        record[20..28].copy_from_slice(&key.to_be_bytes());
        record[50..58].copy_from_slice(&number.to_be_bytes());
        record
    };
    let mut numbers = Numbers(7);
    for (distinct, reverse) in [(1, false), (2, true), (1 << 40, false)] {
        let records = (0..RECORDS).map(|number| record(numbers.below(distinct), number));
        let wanted = Wanted {
            fixed: Some((100, 40)),
            reverse,
            stable: true,
            unique: false,
        };
        let case = Case::sort(vec![records.collect::<Vec<_>>().concat()], wanted);
        let place = case.place(Place::memory());
        let in_memory = case.run_in_memory(&place, 2);
        assert!(in_memory.tasks("merge") >= 4 && in_memory.tasks("sample") > 0);
        let spilled = case.run_spilling(&place, &Watch::new(), 2);
        assert!(spilled.tasks("merge") >= 4 && spilled.counter("MERGE_PASSES") >= 2);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Between the least memory and much, runs are in memory or not: whatever is planned fits the budget.
    #[test]
    fn any_memory_that_is_not_refused_is_enough(
        wanted in wanted(),
        lengths in lengths(900_000),
        kinds in 2_u64..30,
        seed in any::<u64>(),
        workers in 1_usize..5,
        more in 0_u64..24_000_000,
    ) {
        let whole = wanted.fixed.map_or(1, |(record, _)| record);
        let file = |(number, bytes): (u64, &usize)| text(bytes / whole * whole, kinds, seed ^ number);
        let case = Case::sort((0..).zip(&lengths).map(file).collect(), wanted);
        let place = case.place(Place::memory());
        let spec = case.with(workers, json!(case.least_memory(workers) + more));
        let ran = case.run(&place, &Watch::new(), &spec);
        let written = ran.counter("FILE_BYTES_WRITTEN");
        let on_disk = ran.created_runs() > 0;
        prop_assert_eq!(on_disk, written > case.sorted.len() as u64);
    }
}

/// What seemed to fit goes beside the output where it does not: lines so much shorter than they seem that they make
/// many runs.
#[test]
fn runs_that_do_not_stay_in_memory_after_all_go_to_disk() {
    let case = Case::sort(vec![shorter_than_they_seem(4_800_000)], Wanted::default());
    let place = case.place(Place::memory());
    let least = case.least_memory(2) + 4_800_000;
    let run = |more: u64| case.run(&place, &Watch::new(), &case.with(2, json!(least + more)));
    let ran = run(2_500_000);
    assert!(ran.counter("SPILLED_RUNS") > ran.tasks("spill") as u64);
    assert!(0 < ran.created_runs() && (ran.created_runs() as u64) < ran.counter("SPILLED_RUNS"));
    // More memory makes fewer of them: no pass that would need room for all a second time.
    let ran = run(16_000_000);
    assert_eq!(ran.created_runs(), 0);
}

/// Short lines, but for long ones in all places that are looked at beforehand.
fn shorter_than_they_seem(bytes: usize) -> Vec<u8> {
    let stripe = |seed| {
        let long = [[b'm'; 4_999].as_slice(), b"\n"].concat();
        let short = text(bytes / 16 - long.len() - 1, 12, seed);
        [long, short, b"\n".to_vec()].concat()
    };
    (0..16).flat_map(stripe).collect()
}

/// Just more than fits, just what fits, and what fits but would have to be merged in passes: those would need room
/// for all runs a second time.
#[test]
fn runs_stay_in_memory_only_where_they_are_merged_at_once() {
    let wanted = Wanted {
        fixed: Some((100, 10)),
        ..Wanted::default()
    };
    let file = files_of(Shape::Random, &[300_000], 4);
    let case = Case::sort(file, wanted);
    let place = case.place(Place::memory());
    let least = case.least_memory(2);
    let mut on_disk = Vec::new();
    for more in [20, 31, 33, 36, 40, 60] {
        let spec = case.with(2, json!(least + more * 1_000_000));
        let ran = case.run(&place, &Watch::new(), &spec);
        on_disk.push(ran.created_runs() > 0);
        if !on_disk.ends_with(&[true]) {
            assert_eq!(ran.counter("MERGE_PASSES"), 0);
        }
    }
    assert_eq!(on_disk, [true, true, true, true, false, false]);
}

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

use std::sync::Arc;

use gristmill_engine::jobs::{JobReport, Status};
use gristmill_engine::plan::spill::SpillNumbers;
use gristmill_engine::runner::threads::Control;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::oracle::{Shape, shapes};
use super::support::{Numbers, Place, RECORD, Tree, least_memory, naive_sort, records};
use super::watched::{Call, Watch, Watched};

const MUCH: &str = "1G";

/// A job, its input, and what must come out.
#[derive(Debug)]
pub struct Case {
    pub spec: Value,
    pub files: Vec<Vec<u8>>,
    pub sorted: Vec<u8>,
    /// What the job takes for the length of a record.
    pub record_bytes: u64,
    pub records: u64,
}

/// What `sort` is asked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted {
    /// Length of records and keys; lines where none.
    pub fixed: Option<(usize, usize)>,
    pub reverse: bool,
    pub unique: bool,
    pub stable: bool,
}

impl Case {
    pub fn terasort(files: Vec<Vec<u8>>, partitions: usize) -> Self {
        let data = files.concat();
        Case {
            spec: json!({"terasort": {
                "inputs": ["in"], "output": "out", "partitions": partitions, "no_sync": true,
            }}),
            sorted: naive_sort(&data),
            record_bytes: RECORD as u64,
            records: (data.len() / RECORD) as u64,
            files,
        }
    }

    pub fn sort(files: Vec<Vec<u8>>, wanted: Wanted) -> Self {
        let format = match wanted.fixed {
            Some((record, key)) => format!("fixed:{record}:{key}"),
            None => "lines".to_owned(),
        };
        let split = |file: &Vec<u8>| match wanted.fixed {
            Some((record, _)) => file.chunks(record).map(<[u8]>::to_vec).collect(),
            None => lines(file),
        };
        let mut records: Vec<Vec<u8>> = files.iter().flat_map(split).collect();
        let count = records.len() as u64;
        wanted.sort(&mut records);
        Case {
            spec: json!({"sort": {
                "inputs": ["in"], "output": "out", "format": format, "reverse": wanted.reverse,
                "unique": wanted.unique, "stable": wanted.stable, "no_sync": true,
            }}),
            sorted: records.concat(),
            record_bytes: wanted
                .fixed
                .map_or_else(|| typical_line(&files), |(record, _)| record as u64),
            records: count,
            files,
        }
    }

    pub fn place(&self, place: Place) -> Place {
        place.make_directory("in");
        for (number, file) in self.files.iter().enumerate() {
            place.put(&format!("in/{number:05}"), file);
        }
        place
    }

    fn command(&self) -> &str {
        self.spec.as_object().unwrap().keys().next().unwrap()
    }

    pub fn with(&self, workers: usize, memory: Value) -> Value {
        let mut spec = self.spec.clone();
        let options = &mut spec[self.command()];
        (options["workers"], options["memory"]) = (json!(workers), memory);
        spec
    }

    pub fn least_memory(&self, workers: usize) -> u64 {
        least_memory(workers, self.record_bytes)
    }

    /// In the least memory that so many workers need.
    pub fn spilling(&self, workers: usize) -> Value {
        self.with(workers, json!(self.least_memory(workers)))
    }

    /// The parts, whose bytes must be the naive sort's.
    pub fn output(&self, place: &Place) -> Vec<(String, Vec<u8>)> {
        let parts = match self.command() {
            "terasort" => place.parts("out"),
            _ => vec![("out".to_owned(), place.read("out"))],
        };
        let mut rest = &self.sorted[..];
        for (name, bytes) in &parts {
            assert!(
                rest.starts_with(bytes),
                "{name} is not that of a naive sort"
            );
            rest = &rest[bytes.len()..];
        }
        assert!(rest.is_empty(), "{} bytes are missing", rest.len());
        place.store().remove(&place.path("out")).unwrap();
        parts
    }

    /// Runs a job that must succeed; returns its report, its calls and its output. Nothing else may be left.
    pub fn run(&self, place: &Place, watch: &Arc<Watch>, spec: &Value) -> Ran {
        let before = place.tree();
        let store = Watched::over(place.store(), watch);
        let report = place.run_on(store, spec, &Control::default());
        let error = &report.error;
        assert_eq!(report.status, Status::Succeeded, "{spec}: {error:?}");
        assert!(report.budget_peak_bytes <= report.memory_bytes);
        assert!(report.budget_peak_bytes > 0);
        let parts = self.output(place);
        assert!(place.tree() == before, "left: {:?}", names(&place.tree()));
        Ran {
            report,
            calls: watch.calls(),
            parts,
        }
    }

    /// In much memory: no run may be seen on the store.
    pub fn run_in_memory(&self, place: &Place, workers: usize) -> Ran {
        let spec = self.with(workers, json!(MUCH));
        let ran = self.run(place, &Watch::new(), &spec);
        assert!(!ran.calls.iter().any(Call::of_run));
        let written = ran.report.counters["FILE_BYTES_WRITTEN"];
        assert_eq!(written, self.sorted.len() as u64);
        if self.command() == "terasort" {
            assert_eq!(ran.report.counters["SPILLED_RECORDS"], 0);
            assert!(!ran.report.counters.contains_key("SPILLED_RUNS"));
        }
        ran
    }

    /// In the least memory: as many runs on the store as are counted, merged in as many passes as planned.
    pub fn run_spilling(&self, place: &Place, watch: &Arc<Watch>, workers: usize) -> Ran {
        let ran = self.run(place, watch, &self.spilling(workers));
        let [runs, passes, spilled] = ["SPILLED_RUNS", "MERGE_PASSES", "SPILLED_RECORDS"]
            .map(|name| ran.report.counters[name]);
        assert_eq!(runs > 0, self.records > 0);
        let memory = self.least_memory(workers);
        let numbers = SpillNumbers::new(memory, workers, self.record_bytes).unwrap();
        assert_eq!(passes, numbers.passes(runs as usize) as u64, "{runs} runs");
        if self.spec[self.command()]["unique"] != json!(true) {
            assert_eq!(spilled, (passes + 1) * self.records, "{runs} runs");
        }
        if ran.report.counters["FAILED_TASK_ATTEMPTS"] == 0 {
            let merged = merged_runs(&numbers, runs as usize);
            assert_eq!(ran.created_runs(), runs as usize + merged);
        }
        ran
    }
}

/// What came of a job.
pub struct Ran {
    pub report: JobReport,
    pub calls: Vec<Call>,
    pub parts: Vec<(String, Vec<u8>)>,
}

impl Ran {
    pub fn created_runs(&self) -> usize {
        self.calls.iter().filter(|call| call.creates_run()).count()
    }

    pub fn counter(&self, name: &str) -> u64 {
        self.report.counters[name]
    }

    pub fn tasks(&self, stage: &str) -> usize {
        let phases = self.report.phases.iter();
        let of_stage = phases.filter(|phase| phase.name == stage);
        of_stage.map(|phase| phase.tasks).sum()
    }
}

impl Wanted {
    /// The naive sort: as GNU sort's, all bytes decide between equal keys unless it is to be stable.
    fn sort(self, records: &mut Vec<Vec<u8>>) {
        let end = |record: &Vec<u8>| match self.fixed {
            Some((_, key)) if self.stable || self.unique => key,
            Some((record, _)) => record,
            None => record.len() - 1,
        };
        let compare = |a: &Vec<u8>, b: &Vec<u8>| {
            let order = a[..end(a)].cmp(&b[..end(b)]);
            if self.reverse { order.reverse() } else { order }
        };
        records.sort_by(compare);
        if self.unique {
            records.dedup_by(|a, b| compare(a, b).is_eq());
        }
    }
}

fn lines(file: &[u8]) -> Vec<Vec<u8>> {
    let mut lines: Vec<Vec<u8>> = file
        .split_inclusive(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    if let Some(last) = lines.last_mut().filter(|last| !last.ends_with(b"\n")) {
        last.push(b'\n');
    }
    lines
}

/// The mean of the lines in the first 64 kB of the first file that has any.
fn typical_line(files: &[Vec<u8>]) -> u64 {
    let first = files.iter().find(|file| !file.is_empty());
    first.map_or(32, |file| {
        let head = &file[..file.len().min(64 << 10)];
        let lines = head.iter().filter(|byte| **byte == b'\n').count();
        (head.len() / lines.max(1)) as u64
    })
}

fn names(tree: &Tree) -> Vec<String> {
    tree.keys().map(|path| path.display().to_string()).collect()
}

/// Runs that passes make of runs.
fn merged_runs(numbers: &SpillNumbers, runs: usize) -> usize {
    let groups = numbers.groups(runs).len();
    if groups == 0 {
        0
    } else {
        groups + merged_runs(numbers, groups)
    }
}

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

/// Files of so many records each.
pub fn files_of(shape: Shape, lengths: &[usize], seed: u64) -> Vec<Vec<u8>> {
    let keys = shape.keys(lengths.iter().sum(), seed);
    let mut first = 0;
    let cut = |length: &usize| {
        let file = records(&keys[first..first + length], first as u64);
        first += length;
        file
    };
    lengths.iter().map(cut).collect()
}

/// Bytes of few kinds, so that keys tie and end inside each other.
pub fn text(bytes: usize, kinds: u64, seed: u64) -> Vec<u8> {
    const BYTES: &[u8] = b"\na\0b\xffcdefghijklmnopqrstuvwxyz";
    let mut numbers = Numbers(seed);
    let byte = |_| BYTES[numbers.below(kinds) as usize];
    (0..bytes).map(byte).collect()
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
    let files = files_of(Shape::FewDistinct(500), &[18_000, 0, 7, 6_000], 1);
    let case = Case::terasort(files, 3);
    for (workers, passes, local) in [(1, 0, false), (6, 1, true), (30, 2, false)] {
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

/// Lines that are much shorter than the first ones fill a worker's entries before its memory, small files leave gaps
/// in it: a task makes many runs, in order.
#[test]
fn a_task_spills_as_often_as_it_must() {
    let long_lines = [[b'm'; 8191].as_slice(), b"\n"].concat().repeat(8);
    let short_lines = text(60_000, 12, 5);
    let wanted = Wanted::default();
    let by_entries = Case::sort(vec![[long_lines, short_lines].concat()], wanted);
    let small = |number: usize| {
        records(
            &Shape::FewDistinct(9).keys(2, number as u64),
            2 * number as u64,
        )
    };
    let by_gaps = Case::terasort((0..1_500).map(small).collect(), 2);
    for case in [by_entries, by_gaps] {
        let place = case.place(Place::memory());
        let parts = case.run_in_memory(&place, 3).parts;
        let ran = case.run_spilling(&place, &Watch::new(), 1);
        assert!(
            ran.counter("SPILLED_RUNS") > ran.tasks("spill") as u64,
            "{}",
            ran.counter("SPILLED_RUNS")
        );
        assert!(ran.parts == parts);
    }
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

/// What seemed to fit goes beside the output where it does not: first lines so long that later ones make many runs.
#[test]
fn runs_that_do_not_stay_in_memory_after_all_go_to_disk() {
    let long_lines = [[b'm'; 999].as_slice(), b"\n"].concat().repeat(66);
    let case = Case::sort(
        vec![[long_lines, text(3_000_000, 12, 5)].concat()],
        Wanted::default(),
    );
    let place = case.place(Place::memory());
    let ran = case.run(&place, &Watch::new(), &case.with(2, json!(32_000_000)));
    assert!(0 < ran.created_runs() && (ran.created_runs() as u64) < ran.counter("SPILLED_RUNS"));
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

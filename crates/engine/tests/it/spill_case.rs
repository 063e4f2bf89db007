//! Jobs that may spill, each with what a naive sort makes of its input: run in much memory or in the least, looked at
//! on the way, and held against that.

use std::sync::Arc;

use gristmill_engine::jobs::{JobReport, Status};
use gristmill_engine::plan::spill::MemoryLayout;
use gristmill_engine::runner::Control;
use serde_json::{Value, json};

use super::oracle::Shape;
use super::support::{Numbers, Place, RECORD, Tree, least_memory, naive_sort, records};
use super::watched::{Call, Watch, Watched};

const MUCH: &str = "1G";

/// A job, its input, and what must come out.
#[derive(Debug)]
pub struct Case {
    pub spec: Value,
    pub files: Vec<Vec<u8>>,
    pub sorted: Vec<u8>,
    /// The length of every record; 0 where they have none.
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
            record_bytes: wanted.fixed.map_or(0, |(record, _)| record as u64),
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
        let numbers = MemoryLayout::new(memory, workers, 100, self.record_bytes).unwrap();
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

fn names(tree: &Tree) -> Vec<String> {
    tree.keys().map(|path| path.display().to_string()).collect()
}

/// Runs that passes make of runs.
fn merged_runs(numbers: &MemoryLayout, runs: usize) -> usize {
    let groups = numbers.groups(&vec![0; runs]).unwrap();
    if groups.is_empty() {
        return 0;
    }
    let together = groups.iter().filter(|len| **len > 1).count();
    together + merged_runs(numbers, groups.len())
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

//! Jobs of people's own code, with a native word count in the place of the people: results against a naive oracle,
//! for any splits, partitions, memory and workers; tasks that fail; reports that do not add up.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use gristmill_engine::budget::{Budget, ProcessOwner};
use gristmill_engine::jobs::JobSpec;
use gristmill_engine::jobs::{self, JobReport, Status};
use gristmill_engine::merge::feed::{FeedRun, MergedPairs};
use gristmill_engine::runner::Control;
use gristmill_engine::spill::collect::{PairCollector, partition_bytes};
use gristmill_engine::storage::stores::Stores;
use gristmill_engine::storage::{Caching, LocalDisk};
use gristmill_engine::task::{
    ExecutorKind, ExecutorSpec, TaskAttempt, UserAttemptSpec, UserTaskExecutor, UserTaskFile,
    UserTaskKind, UserTaskReport,
};
use gristmill_engine::{Error, Kind, Result};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::Place;

/// Counts words; fails as it is told.
#[derive(Debug)]
pub(crate) struct Words {
    store: Arc<dyn LocalDisk>,
    /// Tasks that fail at their first attempt.
    fail_once: Vec<u32>,
    /// Attempts under way and over.
    begun: AtomicUsize,
    /// Forgets one byte of each split.
    short: bool,
    /// Loses one pair of each partition.
    lossy: bool,
    runs: Mutex<BTreeSet<usize>>,
}

impl Words {
    fn new(place: &Place) -> Self {
        Words::over(place.store())
    }

    /// Of jobs in this store.
    pub(crate) fn over(store: Arc<dyn LocalDisk>) -> Self {
        Words {
            store,
            fail_once: Vec::new(),
            begun: AtomicUsize::new(0),
            short: false,
            lossy: false,
            runs: Mutex::default(),
        }
    }

    fn write(&self, spec: &UserAttemptSpec, name: String, text: &str) -> Result<UserTaskFile> {
        self.store.create_directory(&spec.output)?;
        let path = spec.output.join(&name);
        let bytes = text.len() as u64;
        self.store
            .create(&path, bytes, Caching::Cached)?
            .write_at(text.as_bytes(), 0)?;
        let records = text.lines().count() as u64;
        Ok(UserTaskFile {
            name: name.into(),
            bytes,
            records,
            crc: None,
        })
    }

    fn map(&self, spec: &UserAttemptSpec, number: u32, text: &str) -> Result<UserTaskReport> {
        let mut report = UserTaskReport {
            records_in: 1,
            bytes_in: text.len() as u64 - u64::from(self.short),
            ..UserTaskReport::default()
        };
        if spec.partitions == 0 {
            let name = format!("part-m-{number:05}");
            report
                .files
                .push(self.write(spec, name, &format!("{text}\n"))?);
            return Ok(report);
        }
        let plan = spec.collect_plan();
        let mut collector = PairCollector::new(
            self.store.clone(),
            plan,
            spec.run_name(),
            Default::default(),
        )?;
        for word in text.split_whitespace() {
            let partition = partition_of(word, spec.partitions);
            collector.append(
                partition,
                word.as_bytes(),
                b"",
                &number.to_le_bytes(),
                &|_| Ok(()),
            )?;
        }
        report.records_out = collector.records();
        report.bytes_out = collector.bytes();
        report.runs = collector.finish(&|_| Ok(()))?.0;
        let counters = report.counters.entry("words".into()).or_default();
        counters.insert("seen".into(), report.records_out as i64);
        Ok(report)
    }

    fn reduce(&self, spec: &UserAttemptSpec, partition: u32) -> Result<UserTaskReport> {
        let UserTaskKind::Reduce {
            runs, source_bytes, ..
        } = &spec.work
        else {
            return Err(Error::bug("reduce", "no reduce"));
        };
        self.runs.lock().unwrap().insert(runs.len());
        let feeds = runs.iter().map(|run| FeedRun {
            path: run.path.clone(),
            longest: run.longest,
        });
        let mut feed = MergedPairs::begin(
            self.store.clone(),
            feeds.collect(),
            partition as usize,
            partition_bytes(spec.partitions),
            *source_bytes,
            Budget::new(1 << 30),
        )?;
        let mut counts: Vec<(String, Vec<u32>)> = Vec::new();
        while feed.advance()? {
            let (key, value) = feed.pair();
            let word = String::from_utf8(key.to_vec()).unwrap();
            let split = u32::from_le_bytes(value.try_into().unwrap());
            match counts.last_mut() {
                Some((last, splits)) if *last == word => splits.push(split),
                _ => counts.push((word, vec![split])),
            }
        }
        // Equal keys come in input order.
        assert!(counts.iter().all(|(_, splits)| splits.is_sorted()));
        let lines = counts
            .iter()
            .map(|(word, splits)| format!("{word}\t{}\n", splits.len()));
        let file = self.write(
            spec,
            format!("part-r-{partition:05}"),
            &lines.collect::<String>(),
        )?;
        Ok(UserTaskReport {
            records_in: feed.seen().0 - u64::from(self.lossy),
            bytes_in: feed.seen().1,
            groups: counts.len() as u64,
            records_out: counts.len() as u64,
            files: vec![file],
            ..UserTaskReport::default()
        })
    }
}

fn partition_of(word: &str, partitions: u32) -> u32 {
    word.bytes().map(u32::from).sum::<u32>() % partitions
}

impl UserTaskExecutor for Words {
    /// It is given anew to whoever goes on: what is kept is never looked at.
    fn spec(&self) -> Option<ExecutorSpec> {
        Some(ExecutorSpec {
            kind: ExecutorKind::Scripts {
                environment: BTreeMap::new(),
            },
            definition: b"words".to_vec(),
        })
    }

    fn run(&self, spec: &UserAttemptSpec, attempt: &TaskAttempt<'_>) -> Result<UserTaskReport> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        attempt.progress(0)?;
        let report = match &spec.work {
            UserTaskKind::Map { number, what, .. } => {
                self.map(spec, *number, what.value().as_str().unwrap())
            }
            UserTaskKind::Reduce { partition, .. } => self.reduce(spec, *partition),
            UserTaskKind::Regroup { .. } => Err(Error::bug("regroup", "no job here does")),
        }?;
        if spec.attempt == 0 && self.fail_once.contains(&spec.task) {
            let error = Error::new(Kind::Io, "count words", "as it was told to");
            return Err(error.retryable_error());
        }
        Ok(report)
    }
}

fn run(place: &Place, words: Words, splits: &[&str], more: &Value) -> JobReport {
    let splits: Vec<Value> = splits
        .iter()
        .map(|text| json!({"bytes": text.len(), "what": text}))
        .collect();
    let mut spec = json!({"splits": splits, "partitions": 3, "output": place.path("out"), "memory": "64M", "workers": 2});
    for (name, value) in more.as_object().unwrap() {
        spec[name] = value.clone();
    }
    let environment = jobs::Environment {
        store: Stores::new(place.store()),
        job_id: "job_1".into(),
        history: Default::default(),
        work: Some(Arc::new(words)),
        interpreter: String::new(),
        process: ProcessOwner::Shared,
        worker: None,
        cluster: None,
    };
    let spec = JobSpec::from_json(&json!({"mapreduce": spec}).to_string()).unwrap();
    jobs::run(&spec, &environment, &Control::default())
}

/// What each part must hold.
fn expected(splits: &[&str], partitions: u32) -> Vec<String> {
    let mut counts = vec![BTreeMap::<&str, u64>::new(); partitions as usize];
    for word in splits.iter().flat_map(|split| split.split_whitespace()) {
        *counts[partition_of(word, partitions) as usize]
            .entry(word)
            .or_default() += 1;
    }
    let part = |counts: &BTreeMap<&str, u64>| {
        counts
            .iter()
            .map(|(word, count)| format!("{word}\t{count}\n"))
            .collect()
    };
    counts.iter().map(part).collect()
}

fn parts(place: &Place) -> Vec<String> {
    let parts = place.parts("out").into_iter();
    parts
        .map(|(_, bytes)| String::from_utf8(bytes).unwrap())
        .collect()
}

const SPLITS: [&str; 4] = [
    "to be or not to be",
    "",
    "that is the question",
    "to be sure",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn words_are_counted(
        splits in vec(vec("[a-c]{1,3}|[a-z]{1,40}", 0..40), 0..12),
        partitions in prop_oneof![1_u32..5, Just(300)],
        workers in 1_usize..4,
        memory in prop_oneof![Just("18M"), Just("200M")],
    ) {
        let splits: Vec<String> = splits.iter().map(|words| words.join(" ")).collect();
        let splits: Vec<&str> = splits.iter().map(String::as_str).collect();
        let place = Place::memory();
        let more = json!({"partitions": partitions, "workers": workers, "memory": memory});
        let report = run(&place, Words::new(&place), &splits, &more);
        prop_assert_eq!(report.status, Status::Succeeded, "{:?}", report.error);
        prop_assert_eq!(parts(&place), expected(&splits, partitions));
        let words: u64 = splits.iter().map(|split| split.split_whitespace().count() as u64).sum();
        let counter = |name| report.counters.get(name).copied();
        prop_assert_eq!(counter("MAP_OUTPUT_RECORDS"), Some(words));
        prop_assert_eq!(counter("REDUCE_INPUT_RECORDS"), Some(words));
        prop_assert_eq!(place.tree().len(), partitions as usize + 2); // out, _SUCCESS and the parts, nothing else
    }
}

#[test]
fn on_a_file_system_too_with_attempts_that_fail() {
    let place = Place::local();
    let words = Words {
        fail_once: vec![0, 2, 4, 6],
        ..Words::new(&place)
    };
    let report = run(&place, words, &SPLITS, &json!({}));
    assert_eq!(report.status, Status::Succeeded, "{:?}", report.error);
    assert_eq!(parts(&place), expected(&SPLITS, 3));
    assert_eq!(report.counters["FAILED_TASK_ATTEMPTS"], 4);
    assert_eq!(report.user_counters["words"]["seen"], 13); // once for each attempt that counts
    assert_eq!(place.tree().len(), 5);
}

#[test]
fn without_a_reduce_the_maps_write() {
    let place = Place::memory();
    let report = run(
        &place,
        Words::new(&place),
        &SPLITS,
        &json!({"partitions": 0}),
    );
    assert_eq!(report.status, Status::Succeeded, "{:?}", report.error);
    assert_eq!(parts(&place), SPLITS.map(|text| format!("{text}\n")));
    assert_eq!(report.parts, 4);
}

#[test]
fn many_splits_take_passes() {
    let place = Place::memory();
    let splits: Vec<String> = (0..300).map(|i| format!("a b{} c", i % 7)).collect();
    let splits: Vec<&str> = splits.iter().map(String::as_str).collect();
    let report = run(
        &place,
        Words::new(&place),
        &splits,
        &json!({"memory": "16M", "partitions": 2}),
    );
    assert_eq!(report.status, Status::Succeeded, "{:?}", report.error);
    assert!(report.counters["MERGE_PASSES"] >= 2);
    assert_eq!(parts(&place), expected(&splits, 2));
}

#[test]
fn what_does_not_add_up_is_not_published() {
    for (short, lossy, what) in [
        (true, false, "were consumed"),
        (false, true, "were reduced"),
    ] {
        let place = Place::memory();
        let words = Words {
            short,
            lossy,
            ..Words::new(&place)
        };
        let report = run(&place, words, &SPLITS[2..], &json!({"partitions": 1}));
        let error = report.error.unwrap();
        assert!(
            error.kind == "proof" && error.message.contains(what),
            "{error:?}"
        );
        assert!(place.tree().is_empty());
    }
}

#[test]
fn a_task_that_always_fails_ends_the_job_after_its_attempts() {
    let place = Place::memory();
    let words = Words {
        fail_once: vec![1],
        ..Words::new(&place)
    };
    let report = run(&place, words, &SPLITS, &json!({"attempts": 1}));
    assert_eq!(report.status, Status::Failed);
    assert!(report.error.unwrap().message.contains("as it was told to"));
    assert!(place.tree().is_empty());
}

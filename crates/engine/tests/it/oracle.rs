//! `terasort` against a stable sort of all records, over everything that must not show in the output.

use gristmill_engine::jobs::{JobReport, PartProof, Status, Success};
use gristmill_engine::order::{CutPoints, Entry};
use gristmill_engine::plan::sort::SortPlan;
use gristmill_engine::record::checksum::Hex;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::support::{
    Key, Numbers, Place, RECORD, hex, key_of, naive_checksum, naive_duplicates, naive_sort, records,
};

/// Up to so many records are all sampled, and parts are even to one record.
const ALL_SAMPLED: usize = 1 << 14;

/// Most entries that a reduce task sorts at once: a larger bucket is taken in several batches.
const AT_ONCE_MAX: u64 = 1 << 18;

/// What the keys of an input are like.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    Random,
    AllEqual(u8),
    FewDistinct(u64),
    Sorted,
    Reversed,
    /// All keys begin with so many equal bytes.
    SharedPrefix(usize),
    /// Bytes of 0x00 and 0xFF alone.
    Extremes,
    /// One key in so many is spread over the whole range, all others lie close together.
    Periodic(u64),
}

impl Shape {
    pub fn keys(self, count: usize, seed: u64) -> Vec<Key> {
        let mut numbers = Numbers(seed);
        let mut keys: Vec<Key> = (0..count as u64)
            .map(|i| self.key(i, &mut numbers))
            .collect();
        match self {
            Shape::Sorted => keys.sort_unstable(),
            Shape::Reversed => keys.sort_unstable_by(|a, b| b.cmp(a)),
            _ => {}
        }
        keys
    }

    fn key(self, i: u64, numbers: &mut Numbers) -> Key {
        match self {
            Shape::Random | Shape::Sorted | Shape::Reversed => numbers.key(),
            Shape::AllEqual(byte) => [byte; 10],
            Shape::FewDistinct(distinct) => [numbers.below(distinct) as u8; 10],
            Shape::SharedPrefix(bytes) => {
                let mut key = numbers.key();
                key[..bytes].fill(0xA5);
                key
            }
            Shape::Extremes => numbers
                .key()
                .map(|byte| if byte < 128 { 0x00 } else { 0xFF }),
            Shape::Periodic(period) if i.is_multiple_of(period) => numbers.key(),
            Shape::Periodic(_) => {
                let mut key = *b"\x80 between ";
                key[9] = numbers.next() as u8;
                key
            }
        }
    }
}

pub fn shapes() -> impl Strategy<Value = Shape> {
    prop_oneof![
        Just(Shape::Random),
        prop_oneof![Just(0), Just(0xFF), any::<u8>()].prop_map(Shape::AllEqual),
        (2_u64..5).prop_map(Shape::FewDistinct),
        Just(Shape::Sorted),
        Just(Shape::Reversed),
        (1_usize..10).prop_map(Shape::SharedPrefix),
        Just(Shape::Extremes),
        prop_oneof![Just(32), 2_u64..200].prop_map(Shape::Periodic),
    ]
}

/// Input, options, and the circumstances that must not show.
#[derive(Debug, Clone)]
struct Case {
    shape: Shape,
    seed: u64,
    lengths: Vec<usize>,
    partitions: Option<usize>,
    workers: usize,
    smallest_memory: bool,
    local: bool,
}

fn cases() -> impl Strategy<Value = Case> {
    let length = prop_oneof![Just(0), 1_usize..5, 1_usize..900];
    let partitions = prop_oneof![
        2 => Just(None),
        2 => Just(Some(1)),
        2 => Just(Some(2)),
        2 => Just(Some(7)),
        1 => Just(Some(300)), // so many files take a disk its time
    ];
    let lengths = proptest::collection::vec(length, 1..6);
    let circumstances = (1_usize..=4, any::<bool>(), any::<bool>());
    (shapes(), any::<u64>(), lengths, partitions, circumstances).prop_map(
        |(shape, seed, lengths, partitions, (workers, smallest_memory, local))| Case {
            shape,
            seed,
            lengths,
            partitions,
            workers,
            smallest_memory,
            local,
        },
    )
}

/// The naive answer.
struct Expected {
    sorted: Vec<u8>,
    checksum: u128,
    duplicates: u64,
}

impl Expected {
    fn of(data: &[u8]) -> Self {
        let sorted = naive_sort(data);
        Expected {
            checksum: naive_checksum(data),
            duplicates: naive_duplicates(&sorted),
            sorted,
        }
    }

    fn records(&self) -> usize {
        self.sorted.len() / RECORD
    }
}

/// Writes the files: the first one by itself, the others in a directory with a file that is passed over.
/// Returns what the job is to read, and the records in order of the input.
fn write_input(place: &Place, files: &[Vec<u8>]) -> (Value, Vec<u8>) {
    place.put("z-first", &files[0]);
    place.make_directory("in");
    place.put("in/_SUCCESS", b"no record");
    for (i, file) in files.iter().enumerate().skip(1) {
        place.put(&format!("in/{i:03}"), file);
    }
    (json!(["z-first", "in"]), files.concat())
}

fn files_of(case: &Case) -> Vec<Vec<u8>> {
    let keys = case.shape.keys(case.lengths.iter().sum(), case.seed);
    let mut first = 0;
    let cut = |length: &usize| {
        let file = records(&keys[first..first + length], first as u64);
        first += length;
        file
    };
    case.lengths.iter().map(cut).collect()
}

fn terasort(inputs: &Value, partitions: Option<usize>, workers: usize) -> Value {
    json!({"terasort": {
        "inputs": inputs, "output": "out", "partitions": partitions, "workers": workers, "memory": "4G",
        "no_sync": true,
    }})
}

/// Lets the job be refused, and gives it what the refusal names.
fn with_smallest_memory(place: &Place, spec: &Value) -> Value {
    let with = |memory: Value| {
        let mut spec = spec.clone();
        spec["terasort"]["memory"] = memory;
        spec
    };
    let refused = |spec: &Value| {
        let report = place.run(spec);
        assert_eq!(report.status, Status::Failed, "{spec}");
        let error = report.error.unwrap();
        assert_eq!(error.kind, "memory");
        error
    };
    let before = place.tree();
    let error = refused(&with(json!(0)));
    let needed: u64 = error.details["needed_bytes"].parse().unwrap();
    refused(&with(json!(needed - 1)));
    assert!(place.tree() == before, "a refusal leaves something behind");
    assert_eq!(
        place.run(&with(json!(needed))).status,
        Status::Succeeded,
        "{needed}"
    );
    place.store().remove(&place.path("out")).unwrap();
    let (_, advice) = error.message.split_once("--memory ").unwrap();
    with(json!(advice.split(' ').next().unwrap()))
}

fn check(place: &Place, report: &JobReport, partitions: Option<usize>, expected: &Expected) {
    let parts = place.parts("out");
    let names: Vec<&str> = parts.iter().map(|(name, _)| name.as_str()).collect();
    let planned: Vec<String> = (0..partitions.unwrap_or(1))
        .map(|i| format!("part-r-{i:05}"))
        .collect();
    assert_eq!(names, planned);
    let whole: Vec<u8> = parts.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
    assert!(
        whole == expected.sorted,
        "the output is not the stable sort"
    );
    if expected.records() <= ALL_SAMPLED {
        for (name, bytes) in &parts {
            let even = expected.records() / parts.len();
            let records = bytes.len() / RECORD;
            assert!((even..=even + 1).contains(&records), "{name}: {records}");
        }
    }
    check_success(&place.success("out"), &parts, expected);
    let listed = place.store().list(&place.path("out")).unwrap();
    assert_eq!(listed.len(), parts.len() + 1);

    assert_eq!(report.records, expected.records() as u64);
    assert_eq!(report.checksum, Hex(expected.checksum).to_string());
    assert_eq!(report.duplicate_keys, expected.duplicates);
    assert_eq!(report.parts, parts.len());
    assert_eq!(report.input_bytes, expected.sorted.len() as u64);
    assert_eq!(report.output_bytes, expected.sorted.len() as u64);
    assert_eq!(report.counters["FAILED_TASK_ATTEMPTS"], 0);
    assert_eq!(
        report.counters["REDUCE_INPUT_GROUPS"],
        report.records - expected.duplicates
    );
    assert!(report.budget_peak_bytes <= report.memory_bytes);
}

fn check_success(success: &Success, parts: &[(String, Vec<u8>)], expected: &Expected) {
    let proof = |(name, bytes): &(String, Vec<u8>)| PartProof {
        name: name.clone(),
        bytes: bytes.len() as u64,
        records: (bytes.len() / RECORD) as u64,
        checksum: Hex(naive_checksum(bytes)).to_string(),
        first_key: bytes.chunks(RECORD).next().map(|r| hex(&key_of(r))),
        last_key: bytes.chunks(RECORD).last().map(|r| hex(&key_of(r))),
    };
    let want = Success {
        format: 1,
        gristmill: gristmill_engine::VERSION.to_owned(),
        job_id: "job_1".to_owned(),
        command: "terasort".to_owned(),
        records: expected.records() as u64,
        bytes: expected.sorted.len() as u64,
        checksum: Hex(expected.checksum).to_string(),
        sorted: true,
        duplicate_keys: expected.duplicates,
        parts: parts.iter().map(proof).collect(),
    };
    assert_eq!(*success, want);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn small_inputs_sort_like_the_naive_sort(case in cases()) {
        let files = files_of(&case);
        let place = if case.local { Place::local() } else { Place::memory() };
        let (inputs, data) = write_input(&place, &files);
        let expected = Expected::of(&data);
        let mut spec = terasort(&inputs, case.partitions, case.workers);
        if case.smallest_memory {
            spec = with_smallest_memory(&place, &spec);
        }
        let report = place.succeed(&spec);
        check(&place, &report, case.partitions, &expected);

        // On the other store, with other workers and much memory, the output is the same to the last byte.
        let other = if case.local { Place::memory() } else { Place::local() };
        write_input(&other, &files);
        other.succeed(&terasort(&inputs, case.partitions, case.workers % 4 + 1));
        prop_assert!(other.parts("out") == place.parts("out"));
        prop_assert_eq!(other.read("out/_SUCCESS"), place.read("out/_SUCCESS"));
    }
}

/// Several splits, buckets, reduce tasks and output buffers, for every shape: nothing but the options shows.
#[test]
fn larger_inputs_sort_like_the_naive_sort_whatever_the_circumstances() {
    const RECORDS: usize = 120_000;
    let shapes = [
        Shape::Random,
        Shape::AllEqual(0xFF),
        Shape::FewDistinct(3),
        Shape::Sorted,
        Shape::Reversed,
        Shape::SharedPrefix(9),
        Shape::SharedPrefix(6),
        Shape::Extremes,
        Shape::Periodic(50),
    ];
    for (i, shape) in shapes.into_iter().enumerate() {
        let lengths = [RECORDS / 2, 0, RECORDS / 3, 7, RECORDS / 6, 0].to_vec();
        let case = Case {
            shape,
            seed: i as u64,
            lengths,
            partitions: None,
            workers: 1,
            smallest_memory: false,
            local: false,
        };
        let files = files_of(&case);
        let (memory, local) = (Place::memory(), Place::local());
        let (inputs, data) = write_input(&memory, &files);
        write_input(&local, &files);
        let expected = Expected::of(&data);
        for (j, partitions) in [None, Some(2), Some(7), Some(300)].into_iter().enumerate() {
            let workers = (i + j) % 4 + 1;
            let report = memory.succeed(&terasort(&inputs, partitions, workers));
            check(&memory, &report, partitions, &expected);
            assert!(tasks(&report, "map") > 1 && tasks(&report, "sample") >= 1);
            if partitions.is_none_or(|count| count < 300) {
                check_even(&memory, shape);
            }
            let first = (memory.parts("out"), memory.read("out/_SUCCESS"));
            memory.store().remove(&memory.path("out")).unwrap();

            // Now with other workers and no memory to spare, and one time in three on the disk, where large files
            // are mapped and small ones read.
            let place = if (i + j) % 3 == 0 { &local } else { &memory };
            let spec = terasort(&inputs, partitions, workers % 4 + 1);
            place.succeed(&with_smallest_memory(place, &spec));
            let second = (place.parts("out"), place.read("out/_SUCCESS"));
            assert!(first == second, "{case:?} {partitions:?} {place:?}");
            place.store().remove(&place.path("out")).unwrap();
        }
    }
}

fn tasks(report: &JobReport, stage: &str) -> usize {
    let phase = report.phases.iter().find(|phase| phase.name == stage);
    phase.unwrap().tasks
}

/// One key is cut by input position like any other: parts are about even, unless the keys evade the sample.
fn check_even(place: &Place, shape: Shape) {
    let parts = place.parts("out");
    let even = parts.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() / parts.len();
    if !matches!(shape, Shape::Periodic(_)) {
        for (name, bytes) in &parts {
            let (least, most) = (even / 10 * 8, even / 10 * 12);
            assert!((least..=most).contains(&bytes.len()), "{shape:?} {name}");
        }
    }
}

/// Keys chosen against the sample: all records that it misses fall between two that it sees, so that one bucket
/// holds nearly everything and is taken in several batches.
#[test]
fn keys_that_evade_the_sample_sort_like_the_naive_sort() {
    const RECORDS: u64 = 400_000;
    for (partitions, spread) in [(None, 0_u64), (Some(5), 3), (Some(2), u64::MAX)] {
        let plan = SortPlan::new(RECORD, vec![RECORDS * RECORD as u64], partitions).unwrap();
        let mut numbers = Numbers(RECORDS);
        let mut keys: Vec<Key> = (0..RECORDS)
            .map(|_| {
                let tail = if spread == 0 {
                    0
                } else {
                    numbers.below(spread)
                };
                *[b"\x80\x80".as_slice(), &tail.to_be_bytes()]
                    .concat()
                    .first_chunk()
                    .unwrap()
            })
            .collect();
        let record = RECORD as u64;
        for piece in plan.sample().concat() {
            for i in piece.offset / record..(piece.offset + piece.bytes) / record {
                let mut key = numbers.key();
                key[0] = if i % 2 == 0 { 0x10 } else { 0xF0 };
                keys[i as usize] = key;
            }
        }
        assert!(
            largest_bucket(&plan, &keys) > AT_ONCE_MAX,
            "the sample sees more than planned"
        );

        let place = Place::memory();
        let (inputs, data) = write_input(&place, &[records(&keys, 0)]);
        let expected = Expected::of(&data);
        let mut before = None;
        for workers in [1, 3] {
            let report = place.succeed(&terasort(&inputs, partitions, workers));
            check(&place, &report, partitions, &expected);
            let parts = place.parts("out");
            assert!(before.is_none_or(|before| before == parts));
            before = Some(parts);
            place.store().remove(&place.path("out")).unwrap();
        }
    }
}

/// How many records the plan's own cut points send to one bucket.
fn largest_bucket(plan: &SortPlan, keys: &[Key]) -> u64 {
    let entry = |i: u64| Entry::new(&keys[i as usize], i * RECORD as u64);
    let record = RECORD as u64;
    let sampled = plan.sample().concat();
    let sampled = sampled
        .iter()
        .flat_map(|piece| piece.offset / record..(piece.offset + piece.bytes) / record);
    let cuts = CutPoints::from_sample(sampled.map(entry).collect(), plan.buckets());
    let mut counts = vec![0_u64; cuts.buckets()];
    (0..keys.len() as u64).for_each(|i| counts[cuts.bucket_of(entry(i))] += 1);
    counts.into_iter().max().unwrap()
}

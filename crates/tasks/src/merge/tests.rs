//! A merge of runs against a stable sort of their records, wherever they are; what it makes of damage, faults and little
//! memory.

mod far;

use std::path::Path;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;

use self::far::Elsewhere;
use super::{Segment, carry_bytes, merge_bytes, merge_segments};
use gristmill_base::budget::Budget;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::record::shape::{Fixed, LineShape, PairShape, Shape};
use gristmill_storage::faulty::{Fault, FaultPlan, Faulty};
use gristmill_storage::io::overlap::OverlappedWriter;
use gristmill_storage::local::Local;
use gristmill_storage::memory::Memory;
use gristmill_storage::sorted_run::{BLOCK_BYTES, RunCompression, RunFile, RunHeader, RunWriter};
use gristmill_storage::{Caching, LocalDisk, OutputStore};

const LINES: LineShape = LineShape { descending: false };

type Record = Vec<u8>;

/// Writes one run, a bucket for each record.
fn write(
    store: &dyn LocalDisk,
    number: usize,
    shape: impl Shape,
    records: &[Record],
) -> Result<RunFile> {
    write_to(
        store,
        format!("/run-{number}").as_ref(),
        number,
        shape,
        records,
    )
}

/// Runs of one merge need not be compressed in the same way.
const COMPRESSIONS: [RunCompression; 3] = [
    RunCompression::None,
    RunCompression::Lz4,
    RunCompression::Zstd,
];

fn write_to(
    store: &dyn LocalDisk,
    path: &Path,
    number: usize,
    shape: impl Shape,
    records: &[Record],
) -> Result<RunFile> {
    let file = Arc::from(store.create(path, 0, Caching::Direct)?);
    let header = RunHeader {
        shape: shape.kind(),
        job_id: "job-1".to_owned(),
        number: number as u64,
        compression: COMPRESSIONS[number % 3],
    };
    let mut end = (0, 0);
    let mut ends = vec![end];
    ends.extend(records.iter().map(|record| {
        end = (end.0 + record.len() as u64, end.1 + 1);
        end
    }));
    OverlappedWriter::run(&mut Vec::new(), 192 << 10, |writer| {
        let mut run = RunWriter::begin(writer, file, &header)?;
        records.iter().try_for_each(|record| run.append(record))?;
        run.finish(&ends, 0)
    })?;
    RunFile::open(store, path)
}

/// No record of [`line`] is longer.
const LONGEST: u64 = 2 * BLOCK_BYTES as u64 + 100_000;

/// The segment that holds the records in `range`.
fn segment(run: &RunFile, range: std::ops::Range<usize>) -> Segment<'_> {
    let buckets = match range.start {
        0 => 0..range.end + 1, // bucket 0 is empty
        start => start + 1..range.end + 1,
    };
    let (bytes, records) = run.segment(buckets).unwrap();
    Segment {
        run,
        bytes,
        records,
        longest: LONGEST,
    }
}

fn whole(runs: &[RunFile]) -> Vec<Segment<'_>> {
    runs.iter()
        .map(|run| segment(run, 0..run.buckets() - 1))
        .collect()
}

fn merge(shape: impl Shape, segments: &[Segment<'_>], budget: &Budget) -> Result<Vec<Record>> {
    merge_by(shape, segments, 1, budget)
}

fn merge_by(
    shape: impl Shape,
    segments: &[Segment<'_>],
    buffer_bytes: usize,
    budget: &Budget,
) -> Result<Vec<Record>> {
    let mut merged = Vec::new();
    let take = |record: &[u8]| {
        merged.push(record.to_vec());
        Ok(())
    };
    merge_segments(shape, segments, buffer_bytes, &mut Vec::new(), budget, take)?;
    Ok(merged)
}

/// A line whose key repeats often, of a length that is now and then more than a buffer.
fn line(seed: u32) -> Record {
    let length = match seed % 97 {
        0 => BLOCK_BYTES * 2 + seed as usize % 100_000,
        1..10 => seed as usize % 5000,
        _ => seed as usize % 300,
    };
    let mut line = (seed >> 20).to_string().repeat(length / 4 + 1).into_bytes();
    line.truncate(length);
    line.push(b'\n');
    line
}

fn fixed(seed: u32, record_bytes: usize) -> Record {
    let mut record = (seed >> 18).to_be_bytes().to_vec(); // two bytes that are always alike come first
    record.extend(seed.to_be_bytes());
    record.resize(record_bytes, seed as u8);
    record
}

/// Sorts the records of each run, writes and merges parts of the runs, and compares.
fn equals_the_sort(shape: impl Shape, mut records: Vec<Vec<Record>>, cuts: &[(f64, f64)]) {
    let store = Memory::with_room_for(u64::MAX);
    for run in &mut records {
        run.sort_by(|a, b| shape.compare(a, b));
    }
    let runs: Vec<RunFile> = (0..)
        .zip(&records)
        .map(|(number, run)| write(&store, number, shape, run).unwrap())
        .collect();
    let elsewhere = Elsewhere::of(&store).opened(&runs);
    let mut want = Vec::new();
    let [mut segments, mut apart] = [Vec::new(), Vec::new()];
    for ((run, records), cut) in records.iter().enumerate().zip(cuts) {
        let mut range = [cut.0, cut.1].map(|at| (at * (records.len() + 1) as f64) as usize);
        range.sort_unstable();
        let range = range[0]..range[1];
        want.extend_from_slice(&records[range.clone()]);
        segments.push(segment(&runs[run], range.clone()));
        // Some here, and most on other machines.
        let place = if run % 3 == 1 { &runs } else { &elsewhere };
        apart.push(segment(&place[run], range));
    }
    want.sort_by(|a, b| shape.compare(a, b));
    let budget = Budget::new(16 << 20);
    assert!(merge(shape, &segments, &budget).unwrap() == want);
    for buffer_bytes in [1, 1 << 20] {
        assert!(merge_by(shape, &apart, buffer_bytes, &budget).unwrap() == want);
    }
    assert_eq!(budget.used_bytes(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn lines_come_as_a_stable_sort_puts_them(
        seeds in vec((vec(any::<u32>(), 0..400), (0.0..1.0_f64, 0.0..1.0_f64)), 1..10),
        descending in any::<bool>(),
    ) {
        let (seeds, cuts): (Vec<_>, Vec<_>) = seeds.into_iter().unzip();
        let records = seeds.into_iter().map(|run| run.into_iter().map(line).collect());
        equals_the_sort(LineShape { descending }, records.collect(), &cuts);
    }

    #[test]
    fn fixed_records_come_as_a_stable_sort_puts_them(
        seeds in vec((vec(any::<u32>(), 0..1500), (0.0..1.0_f64, 0.0..1.0_f64)), 1..10),
        key_bytes in 0_usize..9,
        more_bytes in prop_oneof![0_usize..500, Just(2 * BLOCK_BYTES)],
        descending in any::<bool>(),
    ) {
        let record_bytes = 9 + more_bytes;
        let most = (2 << 20) / record_bytes;
        let (seeds, cuts): (Vec<_>, Vec<_>) = seeds.into_iter().unzip();
        let records = seeds
            .into_iter()
            .map(|run| run.into_iter().take(most).map(|seed| fixed(seed, record_bytes)).collect());
        equals_the_sort(Fixed { record_bytes, key_bytes, descending }, records.collect(), &cuts);
    }
}

/// A pair whose key is one of few and whose value tells it from others, now and then as long as a buffer.
fn pair(seed: u32, number: u32) -> Record {
    let key = [
        &b"the same and more"[..8 + seed as usize % 3 * 4],
        &b"kkk"[..seed as usize % 4],
    ]
    .concat();
    let length = match seed % 61 {
        0 => BLOCK_BYTES * 2 - 24 + seed as usize / 61 % 48,
        _ => seed as usize / 61 % 200,
    };
    let mut value = number.to_be_bytes().to_vec();
    value.resize(4 + length, seed as u8);
    let mut record = Vec::new();
    PairShape.write(&key, &value, &mut record);
    record
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Records that repeat their keys, within buffers and across their ends, come in the order of their runs.
    #[test]
    fn few_keys_come_as_a_stable_sort_puts_them(
        runs in vec((vec(any::<u32>(), 0..400), (0.0..1.0_f64, 0.0..1.0_f64)), 1..10),
    ) {
        let (runs, cuts): (Vec<_>, Vec<_>) = runs.into_iter().unzip();
        let mut number = 0;
        let mut record = |seed| {
            number += 1;
            pair(seed, number)
        };
        let records = runs.into_iter().map(|run| run.into_iter().map(&mut record).collect());
        equals_the_sort(PairShape, records.collect(), &cuts);
    }
}

#[test]
fn nothing_merges_to_nothing() {
    let budget = Budget::new(0);
    assert!(merge(LINES, &[], &budget).unwrap().is_empty());
    let store = Memory::with_room_for(u64::MAX);
    let runs = [0, 1, 2].map(|number| write(&store, number, LINES, &[]).unwrap());
    assert!(merge(LINES, &whole(&runs), &budget).unwrap().is_empty());
}

/// Three runs of five buffers each, in lines of 1000 bytes.
fn lines_of_1000(store: &dyn LocalDisk) -> Result<Vec<RunFile>> {
    runs_of_1000(store, [0, 1, 2])
}

/// The same, of these numbers.
fn runs_of_1000(store: &dyn LocalDisk, numbers: [usize; 3]) -> Result<Vec<RunFile>> {
    let record = |i: usize| [vec![b'a' + (i / 16) as u8; 999], vec![b'\n']].concat();
    let records: Vec<Record> = (0..320).map(record).collect();
    let write = |number| write(store, number, LINES, &records);
    numbers.into_iter().map(write).collect()
}

/// From disk, past the page cache where it can be, and with space given back behind the merge.
#[test]
fn runs_of_a_local_disk() {
    let folder = tempfile::tempdir().unwrap();
    let mut want = Vec::new();
    let run = |number: usize| {
        let mut records: Vec<Record> = (0..3000)
            .map(|i| line(i * 40_503 + number as u32))
            .collect();
        records.sort();
        let path = folder.path().join(number.to_string());
        let run = write_to(&Local, &path, number, LINES, &records).unwrap();
        want.append(&mut records);
        run
    };
    let runs: Vec<RunFile> = (0..5).map(run).collect();
    want.sort();
    let budget = Budget::new(8 << 20);
    assert!(merge(LINES, &whole(&runs), &budget).unwrap() == want);
    for run in &runs {
        let half = run.index().data_bytes / 2;
        Local
            .discard(run.path(), run.blocks_inside(&(0..half)))
            .unwrap();
        let again = RunFile::open(&Local, run.path()).unwrap(); // the index is there still
        let (rest, records) = again
            .segment(again.buckets() - 1000..again.buckets())
            .unwrap();
        let rest = Segment {
            run: &again,
            bytes: rest,
            records,
            longest: LONGEST,
        };
        assert!(rest.bytes.start > half + BLOCK_BYTES as u64);
        assert_eq!(merge(LINES, &[rest], &budget).unwrap().len(), 1000);
    }
}

#[test]
fn long_records_are_asked_of_the_budget() {
    let store = Memory::with_room_for(u64::MAX);
    let long = |byte| [vec![byte; 3_000_000], vec![b'\n']].concat();
    let records = [b"a\n".to_vec(), long(b'b'), long(b'c'), b"d\n".to_vec()];
    let runs = [
        write(&store, 0, LINES, &records).unwrap(),
        write(&store, 1, LINES, &records).unwrap(),
    ];
    let segments: Vec<Segment<'_>> = whole(&runs)
        .into_iter()
        .map(|segment| Segment {
            longest: 3_000_001,
            ..segment
        })
        .collect();
    let enough = Budget::new(2 * carry_bytes(3_000_001));
    let merged = merge(LINES, &segments, &enough).unwrap();
    assert_eq!(merged.len(), 8);
    assert!(merged.windows(2).all(|pair| pair[0] <= pair[1]));
    assert!(enough.peak_bytes() >= 2 * 3_000_000);
    assert_eq!(enough.used_bytes(), 0);
    let little = Budget::new(3_000_000);
    let error = merge(LINES, &segments, &little).unwrap_err();
    assert_eq!(error.kind(), Kind::Memory);
    let text = error.to_string();
    assert!(
        text.contains("long records") && text.contains("/run-0"),
        "{text}"
    );
    assert_eq!(little.used_bytes(), 0);
}

#[test]
fn buffers_are_used_again_and_are_what_was_said() {
    let store = Memory::with_room_for(u64::MAX);
    let runs = lines_of_1000(&store).unwrap();
    let mut buffers = Vec::new();
    for buffer_bytes in [1, BLOCK_BYTES, 3 * BLOCK_BYTES + 1] {
        for _ in 0..2 {
            let mut records = 0;
            let count = |_: &[u8]| {
                records += 1;
                Ok(())
            };
            merge_segments(
                LINES,
                &whole(&runs),
                buffer_bytes,
                &mut buffers,
                &Budget::new(0),
                count,
            )
            .unwrap();
            assert_eq!((records, buffers.len()), (960, 6));
            let held: usize = buffers.iter().map(|buffer| buffer.len()).sum();
            assert!(held as u64 <= merge_bytes(3, buffer_bytes));
        }
    }
}

#[test]
fn an_error_of_the_caller_ends_the_merge_at_once() {
    let nothing = FaultPlan {
        fault: Fault::Short,
        from: u64::MAX,
        to: u64::MAX,
    };
    let store = Faulty::new(Memory::with_room_for(u64::MAX), nothing);
    let runs = lines_of_1000(&store).unwrap();
    let before = store.calls();
    let mut seen = 0;
    let error = merge_segments(
        LINES,
        &whole(&runs),
        1,
        &mut Vec::new(),
        &Budget::new(0),
        |_| {
            seen += 1;
            if seen == 5 {
                Err(Error::cancelled())
            } else {
                Ok(())
            }
        },
    )
    .unwrap_err();
    assert_eq!((error.kind(), seen), (Kind::Cancelled, 5));
    // Two buffers a source at most: nothing is read that was not asked for before.
    assert!(store.calls() - before <= 6);
}

#[test]
fn segments_that_are_not_what_the_index_says_are_found() {
    let store = Memory::with_room_for(u64::MAX);
    let runs = lines_of_1000(&store).unwrap();
    let sound = segment(&runs[1], 3..70);
    let cases = [
        Segment {
            records: sound.records + 1,
            ..sound.clone()
        },
        Segment {
            records: sound.records - 1,
            ..sound.clone()
        },
        Segment {
            bytes: sound.bytes.start..sound.bytes.end - 1,
            ..sound.clone()
        },
        Segment {
            bytes: sound.bytes.start..sound.bytes.end + 1,
            ..sound.clone()
        },
        Segment {
            bytes: sound.bytes.start - 1..sound.bytes.end,
            ..sound.clone()
        },
    ];
    for case in cases {
        let error = merge(LINES, &[sound.clone(), case.clone()], &Budget::new(0)).unwrap_err();
        assert_eq!(error.kind(), Kind::Proof, "{case:?}");
        assert!(error.to_string().contains("/run-1"), "{error}");
    }
    let data_bytes = runs[1].index().data_bytes;
    let beyond = Segment {
        bytes: 0..data_bytes + 1,
        ..sound.clone()
    };
    assert_eq!(
        merge(LINES, &[beyond], &Budget::new(0)).unwrap_err().kind(),
        Kind::Bug
    );
    let shape = LineShape { descending: true };
    assert_eq!(
        merge(shape, &[sound], &Budget::new(0)).unwrap_err().kind(),
        Kind::Bug
    );
}

#[test]
fn damage_is_found_before_a_record_of_its_block_is_emitted() {
    let store = Memory::with_room_for(u64::MAX);
    let runs = lines_of_1000(&store).unwrap();
    let path = runs[2].path().to_owned();
    let file = store.create(&path, 0, Caching::Cached).unwrap();
    let block = BLOCK_BYTES as u64;
    let at = runs[2].blocks_inside(&(2 * block..3 * block)).start;
    file.write_at(b"!", at).unwrap();
    let mut good = 0;
    let error = merge_segments(
        LINES,
        &whole(&runs),
        1,
        &mut Vec::new(),
        &Budget::new(0),
        |record| {
            assert!(!record.contains(&b'!'));
            good += 1;
            Ok(())
        },
    )
    .unwrap_err();
    // Record 131 of run 2 reaches into the block; 8 groups of 48 and one of 16 + 16 + 3 come before it.
    assert!((190..=419).contains(&good), "{good}");
    assert!(error.to_string().contains("/run-2, block 2"), "{error}");
}

/// Whatever call fails, and however: an error that names a file, or the right records.
#[test]
fn faults_at_every_call() {
    let work = |store: &Faulty<Memory>| {
        let runs = lines_of_1000(store)?;
        merge(LINES, &whole(&runs), &Budget::new(0))
    };
    let faulty = |fault, from| {
        let plan = FaultPlan {
            fault,
            from,
            to: from + 1,
        };
        Faulty::new(Memory::with_room_for(u64::MAX), plan)
    };
    let sound = faulty(Fault::Short, u64::MAX - 1);
    let want = work(&sound).unwrap();
    for fault in [
        Fault::Code(5),
        Fault::Code(28),
        Fault::Short,
        Fault::BitFlip,
    ] {
        for call in 0..sound.calls() {
            match work(&faulty(fault, call)) {
                Ok(merged) => assert!(merged == want, "{fault:?} at {call}"),
                Err(error) => assert!(error.to_string().contains("file /run-"), "{error}"),
            }
        }
    }
}

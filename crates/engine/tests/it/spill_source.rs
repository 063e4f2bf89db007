//! Spilled runs against a stable sort of what they were read from, in little memory.

use std::path::PathBuf;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;

use gristmill_engine::budget::Budget;
use gristmill_engine::error::{Kind, Result};
use gristmill_engine::merge::{Segment, merge_segments};
use gristmill_engine::record::arena::file_starts;
use gristmill_engine::record::shape::{Fixed, LineShape, Shape};
use gristmill_engine::sorted_run::RunFile;
use gristmill_engine::spill::{
    MemoryModel, SpillPlan, SpillScratch, SpillSource, SpilledRun, UnreadRanges, spill_source,
};
use gristmill_engine::split::input_files;
use gristmill_engine::storage::input::{InputFile, InputRange};
use gristmill_engine::storage::layered::Layered;
use gristmill_engine::storage::location::Location;
use gristmill_engine::storage::memory::Memory;
use gristmill_engine::storage::run_name::MEMORY_PLACE;
use gristmill_engine::storage::stores::Stores;
use gristmill_engine::storage::{BLOCK_BYTES, Caching, LocalDisk, OutputStore, Store};

const LINES: LineShape = LineShape { descending: false };

const NEEDED: MemoryModel = MemoryModel {
    fixed_bytes: 1_000_000,
    worker_fixed_bytes: 0,
    workers: 3,
    half: false,
    buffer_bytes: 16 << 10,
    buffer_share: 32,
};

fn store_with(files: &[Vec<u8>]) -> (Memory, Vec<InputFile>) {
    let store = Memory::with_room_for(1 << 30);
    let put = |(number, bytes): (usize, &Vec<u8>)| {
        let path = PathBuf::from(format!("/in-{number:04}"));
        let file = store.create(&path, bytes.len() as u64, Caching::Cached);
        file.unwrap().write_at(bytes, 0).unwrap();
        path.into()
    };
    let names: Vec<Location> = files.iter().enumerate().map(put).collect();
    let files = input_files(&Stores::new(Arc::new(store.clone())), &names).unwrap();
    (store, files)
}

fn plan<S: Shape>(shape: S, blocks: usize, typical: usize, places: &[PathBuf]) -> SpillPlan<'_, S> {
    SpillPlan {
        shape,
        borders: &[],
        unique: false,
        chunk_bytes: blocks * BLOCK_BYTES,
        typical_bytes: typical,
        needed: NEEDED,
        buffer_bytes: 16 << 10,
        compression: Default::default(),
        job_id: "a-job",
        places,
    }
}

/// Spills all of the files.
fn spill<S: Shape>(
    plan: &SpillPlan<'_, S>,
    (inputs, files): (&Memory, &[InputFile]),
    runs: &dyn LocalDisk,
) -> Result<Vec<SpilledRun>> {
    let sizes: Vec<u64> = files.iter().map(|file| file.stat.bytes).collect();
    let pieces: Vec<InputRange> = (0..)
        .zip(&sizes)
        .map(|(file, bytes)| InputRange {
            file,
            offset: 0,
            bytes: *bytes,
        })
        .collect();
    let starts = file_starts(&sizes);
    let stores = Stores::new(Arc::new(inputs.clone()));
    let pieces = UnreadRanges::new(&stores, files, &starts, &pieces);
    let (source, scratch) = (SpillSource::Ranges(pieces), &mut SpillScratch::default());
    spill_source(plan, runs, source, "0", scratch, &|_| Ok(()))
}

/// What merging the runs, in their order, gives.
fn merged<S: Shape>(shape: S, store: &dyn LocalDisk, runs: &[SpilledRun]) -> Vec<u8> {
    let open = |run: &SpilledRun| RunFile::open(store, &run.path).unwrap();
    let files: Vec<RunFile> = runs.iter().map(open).collect();
    let segment = |(run, spilled): (_, &SpilledRun)| {
        let (bytes, records) = RunFile::segment(run, 0..1).unwrap();
        Segment {
            run,
            bytes,
            records,
            longest: spilled.longest,
        }
    };
    let segments: Vec<Segment<'_>> = files.iter().zip(runs).map(segment).collect();
    let (budget, mut merged) = (Budget::new(1 << 30), Vec::new());
    let mut emit = |record: &[u8]| {
        merged.extend_from_slice(record);
        Ok(())
    };
    merge_segments(
        shape,
        &segments,
        1 << 16,
        &mut Vec::new(),
        &budget,
        &mut emit,
    )
    .unwrap();
    merged
}

/// A stable sort; a last line without an end gets one.
fn naive<S: Shape>(shape: S, files: &[Vec<u8>]) -> Vec<u8> {
    let mut records: Vec<Vec<u8>> = Vec::new();
    for file in files {
        let mut rest = &file[..];
        while let Some(length) = shape.length(rest) {
            records.push(rest[..length].to_vec());
            rest = &rest[length..];
        }
        if !rest.is_empty() {
            records.push([rest, b"\n"].concat());
        }
    }
    records.sort_by(|a, b| shape.compare(a, b));
    records.concat()
}

/// All that must hold of the runs that `files` make in so many blocks, whatever length of records is reckoned with.
fn check<S: Shape>(shape: S, files: &[Vec<u8>], blocks: usize, typical: usize) -> Vec<SpilledRun> {
    let (store, inputs) = store_with(files);
    let places = ["/runs".into()];
    let plan = plan(shape, blocks, typical, &places);
    let runs = spill(&plan, (&store, &inputs), &store).unwrap();
    let want = naive(shape, files);
    assert!(merged(shape, &store, &runs) == want, "{blocks} {typical}");
    let read: u64 = runs.iter().map(|run| run.bytes_read).sum();
    assert_eq!(read, want.len() as u64);
    for (number, run) in (0..).zip(&runs) {
        assert_eq!(run.number, number);
        assert!(run.records > 0 && run.bytes + 16 * run.records <= (blocks * BLOCK_BYTES) as u64);
        let records = merged(shape, &store, std::slice::from_ref(run));
        assert_eq!(run.longest, longest(shape, &records));
    }
    runs
}

fn longest<S: Shape>(shape: S, mut records: &[u8]) -> u64 {
    let mut longest = 0;
    while let Some(length) = shape.length(records) {
        longest = longest.max(length);
        records = &records[length..];
    }
    longest as u64
}

fn line() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0_u8), Just(b'a'), Just(0xFF)];
    let short = vec(byte, 0..14);
    let long = (1_usize..6_000).prop_map(|length| vec![b'a'; length]);
    prop_oneof![9 => short, 1 => long].prop_map(|mut line: Vec<u8>| {
        line.push(b'\n');
        line
    })
}

fn file() -> impl Strategy<Value = Vec<u8>> {
    (vec(line(), 0..60), any::<bool>()).prop_map(|(lines, ended)| {
        let mut file = lines.concat();
        if !ended {
            file.pop();
        }
        file
    })
}

proptest! {
    #[test]
    fn runs_of_lines_hold_all_in_order(
        files in vec(file(), 0..9),
        blocks in 4_usize..12,
        typical in 1_usize..9_000,
        descending in any::<bool>(),
    ) {
        check(LineShape { descending }, &files, blocks, typical);
    }

    #[test]
    fn runs_of_records_hold_all_in_order(
        records in vec(0_usize..300, 0..9),
        record_bytes in 1_usize..200,
        blocks in 4_usize..12,
        typical in 1_usize..400,
    ) {
        let shape = Fixed { record_bytes, key_bytes: record_bytes.min(3), descending: false };
        let byte = |i: usize| (i * i / 7 % 5) as u8;
        let file = |count: &usize| (0..count * record_bytes).map(byte).collect();
        let files: Vec<Vec<u8>> = records.iter().map(file).collect();
        check(shape, &files, blocks, typical);
    }
}

/// The last line's newline has room behind the last block that is filled, wherever the line ends.
#[test]
fn a_last_line_may_end_where_memory_does() {
    let room = 3 * BLOCK_BYTES; // of four blocks
    for bytes in room - 2..=room {
        assert_eq!(
            check(LINES, &[vec![b'x'; bytes]], 4, 100).len(),
            1,
            "{bytes}"
        );
    }
    for bytes in room - 2..=room + 2 {
        let mut file = [vec![b'a'; 499], vec![b'\n']]
            .concat()
            .repeat(bytes / 500 + 1);
        file.truncate(bytes);
        *file.last_mut().unwrap() = b'x';
        check(LINES, &[file], 8, 100);
    }
}

#[test]
fn a_run_ends_where_memory_does() {
    let lines = b"a\n".repeat(1_000);
    let counts = |runs: Vec<SpilledRun>| runs.iter().map(|run| run.records).collect::<Vec<_>>();
    // 2 bytes and an entry of 16 each, and a block is kept for the end of a last line.
    assert_eq!(
        counts(check(LINES, std::slice::from_ref(&lines), 8, 2)),
        [1_000]
    );
    assert!(counts(check(LINES, &vec![lines; 3], 8, 2))[0] > 1_000);
    // Small files lie next to each other.
    let small = vec![b"b\na".to_vec(); 10];
    assert_eq!(counts(check(LINES, &small, 4, 32)), [20]);
    assert!(check(LINES, &[Vec::new(), Vec::new()], 4, 9).is_empty());
}

/// Lines are no longer what they were, over and over: a run is a quarter of memory all the same.
#[test]
fn runs_are_long_whatever_the_lines() {
    let blocks = 256;
    let part = |length: usize| {
        [vec![b'x'; length - 1], vec![b'\n']]
            .concat()
            .repeat((1 << 20) / length)
    };
    let parts: Vec<Vec<u8>> = [1, 5_000, 2, 300, 1, 80, 20_000, 1].map(part).to_vec();
    for typical in [1, 100, 1_000_000] {
        let runs = check(LINES, &[parts.concat()], blocks, typical);
        for run in &runs[..runs.len() - 1] {
            let held = run.bytes_read + 16 * run.records_read;
            assert!(held as usize > blocks * BLOCK_BYTES / 4, "{run:?}");
        }
    }
}

/// Behind records that fit, too: they make a run of their own before the refusal.
#[test]
fn a_record_longer_than_the_arena_is_refused_by_place() {
    for (before, ended) in [
        ("", true),
        ("", false),
        ("short\n", true),
        ("short\n", false),
    ] {
        let mut long = before.as_bytes().to_vec();
        long.extend([b'x'; 4 * BLOCK_BYTES]);
        long.extend(if ended { &b"\n"[..] } else { &[] });
        let (store, inputs) = store_with(&[b"first\n".to_vec(), long]);
        let places = ["/runs".into()];
        let error = spill(&plan(LINES, 4, 100, &places), (&store, &inputs), &store).unwrap_err();
        assert_eq!(error.kind(), Kind::Memory);
        let message = error.to_string();
        let place = format!("file /in-0001, offset {}", before.len());
        assert!(message.contains(&place), "{message}");
        let length = (4 * BLOCK_BYTES + usize::from(ended)) as u64;
        assert!(
            message.contains(&format!("record bytes {length}")),
            "{message}"
        );
        let needed = NEEDED.bytes(length).div_ceil(1_000_000);
        assert!(
            message.contains(&format!("--memory {needed}M ")),
            "{message}"
        );
        assert_eq!(store.paths().len(), 2, "its runs are gone");
    }
}

/// Where only the first of equal records stays, a run's size is known before its place is chosen.
#[test]
fn a_place_never_holds_more_than_it_has_room_for() {
    let file: Vec<u8> = (0..20_000_u32)
        .flat_map(|i| format!("{:05}\n", i * 7 % 10_000).into_bytes())
        .collect();
    let (store, inputs) = store_with(&[file]);
    let places = [PathBuf::from(MEMORY_PLACE), "/disk".into()];
    for (room, in_memory) in [(50_000, false), (80_000, true)] {
        let runs = Layered::new(Arc::new(store.clone()), room);
        let mut plan = plan(LINES, 128, 6, &places);
        plan.unique = true;
        let spilled = spill(&plan, (&store, &inputs), &runs).unwrap();
        let [run] = &spilled[..] else {
            panic!("{spilled:?}")
        };
        assert_eq!(
            (run.records, run.bytes, run.records_read),
            (10_000, 60_000, 20_000)
        );
        assert_eq!(run.path.starts_with(MEMORY_PLACE), in_memory);
        let file_bytes = runs.stat(&run.path).unwrap().unwrap().bytes;
        assert!(!in_memory || file_bytes <= room);
    }
}

//! Spilled runs against a stable sort of what they were read from, in little memory.

use std::path::PathBuf;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;

use gristmill_engine::budget::Budget;
use gristmill_engine::error::{Kind, Result};
use gristmill_engine::merge::{Segment, merge_segments};
use gristmill_engine::record::arena::file_starts;
use gristmill_engine::record::shape::{Fixed, Lines, Shape};
use gristmill_engine::run::RunFile;
use gristmill_engine::spill::{Pieces, SpillPlan, SpillScratch, SpilledRun, spill_pieces};
use gristmill_engine::split::input_files;
use gristmill_engine::storage::input::{InputFile, Piece};
use gristmill_engine::storage::layered::{Layered, MEMORY_PLACE};
use gristmill_engine::storage::memory::Memory;
use gristmill_engine::storage::{BLOCK_BYTES, Caching, Store};

const LINES: Lines = Lines { descending: false };

fn store_with(files: &[Vec<u8>]) -> (Memory, Vec<InputFile>) {
    let store = Memory::with_room_for(1 << 30);
    let put = |(number, bytes): (usize, &Vec<u8>)| {
        let path = PathBuf::from(format!("/in-{number:04}"));
        let file = store.create(&path, bytes.len() as u64, Caching::Cached);
        file.unwrap().write_at(bytes, 0).unwrap();
        path
    };
    let paths: Vec<PathBuf> = files.iter().enumerate().map(put).collect();
    let files = input_files(&store, &paths).unwrap();
    (store, files)
}

fn plan<S: Shape>(shape: S, blocks: usize, entries: usize, places: &[PathBuf]) -> SpillPlan<'_, S> {
    SpillPlan {
        shape,
        borders: &[],
        unique: false,
        arena_bytes: blocks * BLOCK_BYTES,
        entries,
        buffer_bytes: 16 << 10,
        job_id: "a-job",
        places,
    }
}

/// Spills all of the files.
fn spill<S: Shape>(
    plan: &SpillPlan<'_, S>,
    (inputs, files): (&Memory, &[InputFile]),
    runs: &dyn Store,
) -> Result<Vec<SpilledRun>> {
    let sizes: Vec<u64> = files.iter().map(|file| file.stat.bytes).collect();
    let pieces: Vec<Piece> = (0..)
        .zip(&sizes)
        .map(|(file, bytes)| Piece {
            file,
            offset: 0,
            bytes: *bytes,
        })
        .collect();
    let starts = file_starts(&sizes);
    let pieces = Pieces::new(inputs, files, &starts, &pieces);
    spill_pieces(
        plan,
        runs,
        pieces,
        "0",
        &mut SpillScratch::default(),
        &|_| Ok(()),
    )
}

/// What merging the runs, in their order, gives.
fn merged<S: Shape>(shape: S, store: &dyn Store, runs: &[SpilledRun]) -> Vec<u8> {
    let open = |run: &SpilledRun| RunFile::open(store, &run.path).unwrap();
    let files: Vec<RunFile> = runs.iter().map(open).collect();
    let segment = |run| {
        let (bytes, records) = RunFile::segment(run, 0..1).unwrap();
        Segment {
            run,
            bytes,
            records,
        }
    };
    let segments: Vec<Segment<'_>> = files.iter().map(segment).collect();
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

/// All that must hold of the runs that `files` make with an arena of so many blocks.
fn check<S: Shape>(shape: S, files: &[Vec<u8>], blocks: usize, entries: usize) -> Vec<SpilledRun> {
    let (store, inputs) = store_with(files);
    let places = ["/runs".into()];
    let runs = spill(
        &plan(shape, blocks, entries, &places),
        (&store, &inputs),
        &store,
    )
    .unwrap();
    let want = naive(shape, files);
    assert!(merged(shape, &store, &runs) == want, "{blocks} {entries}");
    assert_eq!(
        runs.iter().map(|run| run.bytes_read).sum::<u64>(),
        want.len() as u64
    );
    assert!(
        runs.iter()
            .all(|run| (1..=entries as u64).contains(&run.records))
    );
    assert!(
        runs.iter()
            .zip(0..)
            .all(|(run, number)| run.number == number)
    );
    runs
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
        entries in 1_usize..80,
        descending in any::<bool>(),
    ) {
        check(Lines { descending }, &files, blocks, entries);
    }

    #[test]
    fn runs_of_records_hold_all_in_order(
        records in vec(0_usize..300, 0..9),
        record_bytes in 1_usize..200,
        blocks in 4_usize..12,
        entries in 1_usize..400,
    ) {
        let shape = Fixed { record_bytes, key_bytes: record_bytes.min(3), descending: false };
        let byte = |i: usize| (i * i / 7 % 5) as u8;
        let file = |count: &usize| (0..count * record_bytes).map(byte).collect();
        let files: Vec<Vec<u8>> = records.iter().map(file).collect();
        check(shape, &files, blocks, entries);
    }
}

/// The last line's newline has room behind the last block that is filled, wherever the line ends.
#[test]
fn a_last_line_may_end_where_the_arena_does() {
    let room = 3 * BLOCK_BYTES; // of an arena of four blocks
    for bytes in room - 2..=room + 2 {
        let mut file = b"line\n".repeat(bytes / 5 + 1);
        file.truncate(bytes);
        *file.last_mut().unwrap() = b'x';
        let runs = check(LINES, &[file], 4, 1 << 20);
        assert_eq!(runs.len(), if bytes > room { 2 } else { 1 }, "{bytes}");
    }
}

#[test]
fn a_run_ends_where_entries_do_or_memory_does() {
    let lines = b"a\n".repeat(1_000);
    let counts = |runs: Vec<SpilledRun>| runs.iter().map(|run| run.records).collect::<Vec<_>>();
    assert_eq!(
        counts(check(LINES, std::slice::from_ref(&lines), 8, 300)),
        [300, 300, 300, 100]
    );
    assert_eq!(
        counts(check(LINES, std::slice::from_ref(&lines), 8, 1_000)),
        [1_000]
    );
    // Each small file takes a block, and one is kept for the end of a last line.
    let small = vec![b"b\na".to_vec(); 10];
    assert_eq!(counts(check(LINES, &small, 4, 1_000)), [6, 6, 6, 2]);
    assert_eq!(counts(check(LINES, &vec![lines; 3], 2, 3_000)), [1_000; 3]);
    assert!(check(LINES, &[Vec::new(), Vec::new()], 4, 9).is_empty());
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
        let mut plan = plan(LINES, 64, 50_000, &places);
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

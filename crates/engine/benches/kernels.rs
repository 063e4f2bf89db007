//! The hot loops, each on its own: nanoseconds per record are what to look at (`cargo bench`).
//!
//! `cargo test` runs every one of them once, so that they cannot rot.
#![expect(
    clippy::unwrap_used,
    reason = "a benchmark without memory has nothing to say"
)]

use std::path::PathBuf;
use std::sync::Arc;

use divan::Bencher;
use divan::counter::ItemsCount;
use gristmill_engine::aggregate::Aggregate;
use gristmill_engine::budget::Budget;
use gristmill_engine::merge::{Segment, merge_segments};
use gristmill_engine::order::check::OrderCheck;
use gristmill_engine::order::packed::{Packed, Packing};
use gristmill_engine::order::scatter::{EntryStaging, ScatteredEntries};
use gristmill_engine::order::sort::{SortScratch, sort_slices};
use gristmill_engine::order::{Classifier, CutPoints, Entry};
use gristmill_engine::record::checksum::Checksum;
use gristmill_engine::record::layout::{RecordGenerator, RecordLayout};
use gristmill_engine::record::shape::{Fixed, Shape};
use gristmill_engine::record::{KEY_BYTES, RECORD_BYTES};
use gristmill_engine::sorted_run::{RunFile, RunHeader, RunWriter};
use gristmill_engine::storage::io::overlap::OverlappedWriter;
use gristmill_engine::storage::memory::Memory;
use gristmill_engine::storage::{Caching, OutputStore};
use gristmill_engine::value::{hash, partition, skip, write};

fn main() {
    divan::main();
}

/// Records of a block that fits the first-level cache.
const BLOCK: usize = 128;

/// The records as a merge sees them.
const SHAPE: Fixed = Fixed {
    record_bytes: RECORD_BYTES,
    key_bytes: KEY_BYTES,
    descending: false,
};

fn records(count: usize, skew: bool) -> Vec<u8> {
    let mut data = vec![0; count * RECORD_BYTES];
    RecordGenerator::new(RecordLayout::Hadoop, skew, 0).fill(&mut data);
    data
}

fn entries(count: usize, skew: bool) -> Vec<Entry> {
    let key =
        |record: &[u8; RECORD_BYTES], i| Entry::new(record.first_chunk().unwrap_or(&[0; 10]), i);
    let data = records(count, skew);
    data.as_chunks()
        .0
        .iter()
        .zip(0..)
        .map(|(record, i)| key(record, i * 100))
        .collect()
}

#[divan::bench]
fn generate(bencher: Bencher) {
    let mut data = records(BLOCK, false);
    let mut records = RecordGenerator::new(RecordLayout::Hadoop, false, 0);
    bencher
        .counter(ItemsCount::new(BLOCK))
        .bench_local(|| records.fill(divan::black_box(&mut data)));
}

#[divan::bench]
fn checksum(bencher: Bencher) {
    let data = records(BLOCK, false);
    let mut sum = Checksum::new(RECORD_BYTES);
    bencher
        .counter(ItemsCount::new(BLOCK))
        .bench_local(|| sum.update(divan::black_box(&data)));
}

#[divan::bench]
fn checksum_by_crc32fast(bencher: Bencher) {
    let data = records(BLOCK, false);
    bencher.counter(ItemsCount::new(BLOCK)).bench_local(|| {
        let records = divan::black_box(&data).chunks_exact(RECORD_BYTES);
        records
            .map(|record| u64::from(crc32fast::hash(record)))
            .sum::<u64>()
    });
}

#[divan::bench]
fn order_check(bencher: Bencher) {
    let mut sorted = entries(BLOCK, false);
    sorted.sort();
    let data: Vec<u8> = sorted
        .iter()
        .flat_map(|entry| [entry.key().as_slice(), &[0; 90]].concat())
        .collect();
    bencher.counter(ItemsCount::new(BLOCK)).bench_local(|| {
        let mut check = OrderCheck::default();
        check.update(divan::black_box(&data), RECORD_BYTES);
        check
    });
}

/// A map task's work beside the checksum: entries, buckets, scatter.
#[divan::bench(args = [16, 1540, 16384], sample_count = 20)]
fn scatter(bencher: Bencher, buckets: usize) {
    const COUNT: usize = 1 << 18;
    let data = records(COUNT, false);
    let cuts = CutPoints::from_sample(entries(buckets * 16, false), buckets);
    let classifier = Classifier::new(&cuts);
    let packing = Packing::new(&cuts, 5_000_000_000);
    let mut staging = EntryStaging::default();
    bencher
        .counter(ItemsCount::new(COUNT))
        .with_inputs(|| ScatteredEntries::with_room(COUNT).unwrap())
        .bench_local_values(|mut out| {
            staging.begin(buckets).unwrap();
            let mut position = 0;
            for block in data.chunks(256 * RECORD_BYTES) {
                if staging.room() < 256 {
                    staging.scatter(&mut out);
                }
                staging.extract(block, RECORD_BYTES, position, &classifier, &packing);
                position += block.len() as u64;
            }
            staging.scatter(&mut out);
            out
        });
}

/// One bucket of a 5 GB sort: 32,768 entries that begin alike, in 75 slices.
#[divan::bench(args = [false, true])]
fn sort_bucket(bencher: Bencher, skew: bool) {
    const COUNT: usize = 1 << 15;
    let mut all = entries(COUNT * 64, skew);
    all.sort();
    let mut bucket = all[COUNT * 20..COUNT * 21].to_vec();
    bucket.sort_by_key(|entry| entry.position());
    let ends = CutPoints::from_sample(vec![Entry::MIN, all[COUNT * 20], all[COUNT * 21]], 3);
    let packing = Packing::new(&ends, 5_000_000_000);
    let packed: Vec<Packed> = bucket.iter().map(|entry| packing.pack(1, *entry)).collect();
    let slices: Vec<&[Packed]> = packed.chunks(COUNT / 75).collect();
    let (mut out, mut pieces) = (vec![0; COUNT], SortScratch::default());
    bencher
        .counter(ItemsCount::new(COUNT))
        .bench_local(|| sort_slices(divan::black_box(&slices), &mut out, &mut pieces));
}

/// Runs of a memory store, each of `count` sorted records.
fn runs(runs: usize, count: usize) -> Vec<RunFile> {
    let store = Memory::with_room_for(u64::MAX);
    let mut data = records(runs * count, false);
    let (all, _) = data.as_chunks_mut::<RECORD_BYTES>();
    let write = |(number, records): (usize, &mut [[u8; RECORD_BYTES]])| {
        records.sort_unstable();
        let path = PathBuf::from(format!("/run-{number}"));
        let file = Arc::from(store.create(&path, 0, Caching::Direct).unwrap());
        let header = RunHeader {
            shape: SHAPE.kind(),
            job_id: "bench".to_owned(),
            number: number as u64,
            compression: Default::default(),
        };
        OverlappedWriter::run(&mut Vec::new(), 1 << 20, |writer| {
            let mut run = RunWriter::begin(writer, file, &header)?;
            run.append(records.as_flattened())?;
            run.finish(&[((count * RECORD_BYTES) as u64, count as u64)], 0)
        })
        .unwrap();
        RunFile::open(&store, &path).unwrap()
    };
    all.chunks_mut(count).enumerate().map(write).collect()
}

/// A merge with its thread, into an output buffer that is used over and over: 50 MB of records, buffers of 256 KiB.
#[divan::bench(args = [1, 8, 64], sample_count = 20)]
fn merge(bencher: Bencher, sources: usize) {
    const COUNT: usize = 1 << 19;
    const OUTPUT_BYTES: usize = 40_000 * RECORD_BYTES;
    let runs = runs(sources, COUNT / sources);
    let whole = |run| Segment {
        longest: 100,
        run,
        bytes: 0..run.index().data_bytes,
        records: run.index().records,
    };
    let segments: Vec<Segment<'_>> = runs.iter().map(whole).collect();
    let (mut output, mut buffers) = (vec![0_u8; OUTPUT_BYTES], Vec::new());
    let budget = Budget::new(0);
    bencher.counter(ItemsCount::new(COUNT)).bench_local(|| {
        let mut at = 0;
        merge_segments(
            SHAPE,
            &segments,
            256 << 10,
            &mut buffers,
            &budget,
            |record| {
                if at + record.len() > OUTPUT_BYTES {
                    at = 0;
                }
                output[at..at + record.len()].copy_from_slice(record);
                at += record.len();
                Ok(())
            },
        )
        .unwrap();
    });
}

/// Words of one to twelve letters, as a word count has them.
fn words() -> Vec<String> {
    let letters =
        |i: usize| (0..1 + i * 7 % 12).map(move |j| char::from(b'a' + ((i + j) % 26) as u8));
    (0..BLOCK).map(|i| letters(i).collect()).collect()
}

/// What a word costs before it is shuffled: its key, the key's partition, a one behind it.
#[divan::bench]
fn encode_words(bencher: Bencher) {
    let (words, mut out) = (words(), Vec::new());
    bencher.counter(ItemsCount::new(BLOCK)).bench_local(|| {
        out.clear();
        let mut partitions = 0;
        for word in divan::black_box(&words) {
            let start = out.len();
            write::text(&mut out, word);
            partitions += partition(hash(&out[start..]), 64);
            write::int(&mut out, 1);
        }
        partitions
    });
}

/// And after: its key's end, the one added to a sum.
#[divan::bench]
fn sum_words(bencher: Bencher) {
    let mut records = Vec::new();
    for word in words() {
        write::text(&mut records, &word);
        write::int(&mut records, 1);
    }
    let mut states = vec![Aggregate::Sum.empty(); 16];
    bencher.counter(ItemsCount::new(BLOCK)).bench_local(|| {
        let mut rest = divan::black_box(records.as_slice());
        while !rest.is_empty() {
            let (key, behind) = rest.split_at(skip(rest).unwrap());
            let (value, behind) = behind.split_at(skip(behind).unwrap());
            Aggregate::Sum
                .add(&mut states[key.len()], value, 0)
                .unwrap();
            rest = behind;
        }
    });
}

/// A sum of doubles that no double holds exactly.
#[divan::bench]
fn sum_doubles(bencher: Bencher) {
    let mut values = Vec::new();
    (0..BLOCK).for_each(|i| write::double(&mut values, 0.1 * i as f64));
    let mut state = Aggregate::Sum.empty();
    bencher.counter(ItemsCount::new(BLOCK)).bench_local(|| {
        for value in divan::black_box(&values).chunks(9) {
            Aggregate::Sum.add(&mut state, value, 0).unwrap();
        }
    });
}

#[divan::bench]
fn sort_bucket_by_the_standard_sort(bencher: Bencher) {
    const COUNT: usize = 1 << 15;
    let bucket = entries(COUNT, false);
    bencher.counter(ItemsCount::new(COUNT)).bench_local(|| {
        let mut sorted = divan::black_box(&bucket).clone();
        sorted.sort_unstable();
        sorted
    });
}

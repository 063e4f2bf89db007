//! Collectors, tables and feeds against naive ones: whatever goes in comes out, in order, once.

use std::collections::BTreeMap;
use std::sync::Arc;

use gristmill_engine::Result;
use gristmill_engine::aggregate::Aggregate;
use gristmill_engine::budget::Budget;
use gristmill_engine::merge::feed::{FeedRun, MergedPairs};
use gristmill_engine::sorted_run::RunCompression;
use gristmill_engine::spill::SpilledRun;
use gristmill_engine::spill::collect::{CollectPlan, PairCollector, partition_bytes};
use gristmill_engine::spill::table::AggregateTable;
use gristmill_engine::storage::memory::Memory;
use gristmill_engine::storage::{Caching, LocalDisk, OutputStore, Store};
use gristmill_engine::value::{self, write};
use proptest::collection::vec;
use proptest::prelude::*;

type Pair = (Vec<u8>, Vec<u8>);

fn store() -> Arc<Memory> {
    let store = Memory::with_room_for(1 << 26);
    store.create_directory("/runs".as_ref()).unwrap();
    Arc::new(store)
}

const COMPRESSIONS: [RunCompression; 3] = [
    RunCompression::None,
    RunCompression::Lz4,
    RunCompression::Zstd,
];

fn collector(store: &Arc<Memory>, partitions: u32, chunk_bytes: usize) -> PairCollector {
    let plan = CollectPlan {
        partitions,
        chunk_bytes,
        buffer_bytes: 1 << 17,
        job_id: "a-job".into(),
        places: vec!["/runs".into()],
        compression: COMPRESSIONS[partitions as usize % 3],
    };
    PairCollector::new(store.clone(), plan, "0-0".into(), Default::default()).unwrap()
}

fn feed(store: &Arc<Memory>, runs: &[SpilledRun], partition: u32, partitions: u32) -> MergedPairs {
    let runs = runs.iter().map(|run| FeedRun {
        path: run.path.clone(),
        longest: run.longest,
    });
    let (prefix, partition) = (partition_bytes(partitions), partition as usize);
    let budget = Budget::new(1 << 26);
    MergedPairs::begin(
        store.clone(),
        runs.collect(),
        partition,
        prefix,
        1 << 16,
        budget,
    )
    .unwrap()
}

fn drain(mut feed: MergedPairs) -> Result<Vec<Pair>> {
    let mut pairs = Vec::new();
    while feed.advance()? {
        let (key, value) = feed.pair();
        pairs.push((key.to_vec(), value.to_vec()));
    }
    Ok(pairs)
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let few = vec(prop_oneof![Just(0_u8), Just(1), Just(255)], 0..14);
    prop_oneof![4 => few, 3 => vec(any::<u8>(), 0..40), 1 => vec(any::<u8>(), 4_000..9_000)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    /// Stable by key and order, whatever the bytes, however many runs.
    #[test]
    fn what_is_collected_is_fed_in_order(
        pairs in vec((any::<prop::sample::Index>(), bytes(), prop_oneof![Just(vec![]), vec(any::<u8>(), 1..3)], bytes()), 0..120),
        partitions in prop_oneof![Just(1_u32), 2..5_u32, Just(300), Just(70_000)],
        chunk_bytes in prop_oneof![Just(64_usize << 10), Just(1 << 20)],
    ) {
        let store = store();
        let mut collector = collector(&store, partitions, chunk_bytes);
        let mut expected: BTreeMap<u32, Vec<Pair>> = BTreeMap::new();
        for (partition, key, order, value) in &pairs {
            let partition = partition.index(partitions as usize) as u32;
            collector.append(partition, key, order, value, &|_| Ok(())).unwrap();
            let whole = [&key[..], order].concat();
            expected.entry(partition).or_default().push((whole, value.clone()));
        }
        let (runs, _) = collector.finish(&|_| Ok(())).unwrap();
        prop_assert_eq!(runs.iter().map(|run| run.records).sum::<u64>(), pairs.len() as u64);
        for (partition, mut pairs) in expected {
            pairs.sort_by(|a, b| a.0.cmp(&b.0));
            let fed = drain(feed(&store, &runs, partition, partitions)).unwrap();
            prop_assert_eq!(fed, pairs);
        }
    }

    /// Tables of any size give the states of the sums that a map would have.
    #[test]
    fn a_table_sums_as_a_map_does(
        pairs in vec(("[a-z]{1,2}", -1_000_i64..1_000), 0..3_000),
        partitions in 1_u32..4,
        limit in prop_oneof![Just(1_usize), Just(20_000), Just(1 << 20)],
    ) {
        let store = store();
        let mut collector = collector(&store, partitions, 128 << 10);
        let mut table = AggregateTable::new(Aggregate::Sum, limit);
        let mut expected: BTreeMap<(u32, Vec<u8>), i64> = BTreeMap::new();
        for (position, (word, amount)) in (0..).zip(&pairs) {
            let mut key = Vec::new();
            write::text(&mut key, word);
            let of = |hash| Ok(value::partition(hash, partitions as usize) as u32);
            let partition = of(value::hash(&key)).unwrap();
            let hash = value::hash(&key);
            table.touch(&[hash, 0, u64::MAX]);
            table
                .add_int(hash, &key, *amount, position, of)
                .unwrap();
            *expected.entry((partition, key)).or_default() += amount;
            if table.is_full() {
                table.give(&mut collector, &|_| Ok(())).unwrap();
                prop_assert!(table.is_empty());
            }
        }
        table.give(&mut collector, &|_| Ok(())).unwrap();
        prop_assert_eq!(table.added(), pairs.len() as u64);
        prop_assert!(limit > 1 || table.given() == pairs.len() as u64);
        let (runs, _) = collector.finish(&|_| Ok(())).unwrap();
        let mut found: BTreeMap<(u32, Vec<u8>), i64> = BTreeMap::new();
        for partition in 0..partitions {
            let mut states: BTreeMap<Vec<u8>, gristmill_engine::aggregate::AggregateState> = BTreeMap::new();
            for (key, state) in drain(feed(&store, &runs, partition, partitions)).unwrap() {
                let sum = states.entry(key).or_insert_with(|| Aggregate::Sum.empty());
                Aggregate::Sum.merge(sum, &state).unwrap();
            }
            for (key, state) in states {
                let mut result = Vec::new();
                Aggregate::Sum.finish(&state, &mut result).unwrap();
                let Some(value::Token::Int(sum)) = value::ValueReader::new(&result).token().unwrap() else {
                    panic!("a sum of integers is an integer");
                };
                found.insert((partition, key), sum);
            }
        }
        prop_assert_eq!(found, expected);
    }
}

/// Of so many keys some share the half of their hashes by which the index of a table knows them; and it grows, is given
/// away when it is full, and filled again.
#[test]
fn keys_whose_hashes_are_half_alike_are_keys_of_their_own() {
    const KEYS: i64 = 300_000;
    let store = store();
    let mut collector = collector(&store, 1, 1 << 20);
    let mut table = AggregateTable::new(Aggregate::Max, 20 << 20);
    let (mut halves, mut expected) = (BTreeMap::new(), BTreeMap::new());
    let (mut key, mut value) = (Vec::new(), Vec::new());
    for number in 0..2 * KEYS {
        key.clear();
        write::int(&mut key, number % KEYS);
        value.clear();
        write::int(&mut value, number);
        let hash = value::hash(&key);
        table
            .add(hash, &key, &value, number as u64, |_| Ok(0))
            .unwrap();
        *halves.entry(hash as u32).or_insert(0) += i32::from(number < KEYS);
        expected.insert(key.clone(), value.clone());
        if table.is_full() {
            table.give(&mut collector, &|_| Ok(())).unwrap();
        }
    }
    assert!(halves.values().any(|keys| *keys > 1) && table.given() > 0);
    table.give(&mut collector, &|_| Ok(())).unwrap();
    assert_eq!((table.len(), table.added()), (0, 2 * KEYS as u64));
    let (runs, _) = collector.finish(&|_| Ok(())).unwrap();
    let mut found: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    for (key, state) in drain(feed(&store, &runs, 0, 1)).unwrap() {
        let mut best = found.get(&key).map_or_else(
            || Aggregate::Max.empty(),
            |other| Aggregate::Max.read(other).unwrap(),
        );
        Aggregate::Max.merge(&mut best, &state).unwrap();
        let written = found.entry(key).or_default();
        written.clear();
        Aggregate::Max.write(&best, written);
    }
    assert!(found == expected);
}

#[test]
fn a_collector_that_is_dropped_leaves_nothing() {
    let store = store();
    let mut dropped = collector(&store, 1, 64 << 10);
    for _ in 0..50 {
        dropped
            .append(0, b"key", b"", &[7; 5_000], &|_| Ok(()))
            .unwrap();
    }
    assert!(!store.list("/runs".as_ref()).unwrap().is_empty());
    drop(dropped);
    assert!(store.list("/runs".as_ref()).unwrap().is_empty());
}

#[test]
fn a_pair_that_does_not_fit_is_refused() {
    let store = store();
    let error = collector(&store, 1, 64 << 10).append(0, b"key", b"", &[7; 70_000], &|_| Ok(()));
    assert_eq!(error.unwrap_err().kind(), gristmill_engine::Kind::Memory);
}

/// A run that is damaged is found by whoever is fed from it, and so is one that is gone.
#[test]
fn a_feed_tells_of_a_damaged_run() {
    let store = store();
    let mut collector = collector(&store, 1, 64 << 10);
    for number in 0..1_000_u32 {
        collector
            .append(0, &number.to_be_bytes(), b"", b"value", &|_| Ok(()))
            .unwrap();
    }
    let (runs, _) = collector.finish(&|_| Ok(())).unwrap();
    let file = store.create(&runs[0].path, 0, Caching::Cached).unwrap();
    file.write_at(b"?", 5_000).unwrap();
    let error = drain(feed(&store, &runs, 0, 1)).unwrap_err();
    assert!(error.to_string().contains("damaged"), "{error}");
    store.remove(&runs[0].path).unwrap();
    assert!(drain(feed(&store, &runs, 0, 1)).is_err());
}

#[test]
fn a_feed_can_be_left_before_its_end() {
    let store = store();
    let mut collector = collector(&store, 1, 1 << 20);
    for number in 0..100_000_u32 {
        collector
            .append(0, &number.to_be_bytes(), b"", &[0; 40], &|_| Ok(()))
            .unwrap();
    }
    let (runs, _) = collector.finish(&|_| Ok(())).unwrap();
    assert!(runs.len() > 3);
    let mut begun = feed(&store, &runs, 0, 1);
    assert!(begun.advance().unwrap());
    drop(begun); // and does not hang
}

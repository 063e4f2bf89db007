//! `teravalidate` against a naive walk after Hadoop's rules (FACTS 2), and against damage planted everywhere.

use std::collections::BTreeMap;

use gristmill_engine::jobs::{JobReport, Status};
use gristmill_engine::order::check::key_text;
use gristmill_engine::record::checksum::Hex;
use gristmill_engine::storage::Caching;
use proptest::prelude::*;
use serde_json::json;

use super::support::{
    Key, Numbers, Place, RECORD, key_of, naive_checksum, naive_duplicates, records,
};

/// Report lines, records or files out of order, duplicates.
#[derive(Debug, PartialEq, Eq)]
struct Findings {
    lines: Vec<String>,
    misorders: u64,
    duplicates: u64,
}

/// Hadoop's two steps. Map, for each file: begin, misorders, end, checksum. Reduce: the sum of the checksums, the
/// errors, and the ends of files in text order of "name:begin" and "name:end", each against the one before.
fn naive(files: &BTreeMap<String, Vec<u8>>) -> Findings {
    let (mut errors, mut ends) = (Vec::new(), BTreeMap::new());
    let mut named: Vec<_> = files.iter().filter(|(_, data)| !data.is_empty()).collect();
    named.sort_by_key(|(name, _)| format!("{name}:begin"));
    for (name, data) in &named {
        let keys: Vec<Key> = data.chunks(RECORD).map(key_of).collect();
        for pair in keys.windows(2).filter(|pair| pair[1] < pair[0]) {
            let (before, after) = (key_text(&pair[0]), key_text(&pair[1]));
            errors.push(format!(
                "error\tmisorder in {name} between {before} and {after}"
            ));
        }
        ends.insert(format!("{name}:begin"), keys[0]);
        ends.insert(format!("{name}:end"), *keys.last().unwrap());
    }
    let mut misorders = errors.len() as u64;
    let ends: Vec<(String, Key)> = ends.into_iter().collect();
    for pair in ends.windows(2).filter(|pair| pair[1].1 < pair[0].1) {
        let [(name, key), (next_name, next_key)] = pair else {
            continue;
        };
        let (key, next_key) = (key_text(key), key_text(next_key));
        errors.push(format!(
            "error\tbad key partitioning:\n  file {name} key {key}\n  file {next_name} key {next_key}"
        ));
        // A file whose own end is below its begin was counted where it is out of order.
        misorders += u64::from(next_name.ends_with(":begin"));
    }
    let whole: Vec<u8> = named
        .iter()
        .flat_map(|(_, data)| data.iter().copied())
        .collect();
    let checksum = format!("checksum\t{}", Hex(naive_checksum(&whole)));
    let checksum = (!whole.is_empty()).then_some(checksum);
    Findings {
        lines: checksum.into_iter().chain(errors).collect(),
        misorders,
        duplicates: naive_duplicates(&whole),
    }
}

fn found(report: &JobReport) -> Findings {
    Findings {
        lines: report.report.clone(),
        misorders: report.misorders,
        duplicates: report.duplicate_keys,
    }
}

fn error_kind(report: &JobReport) -> Option<&'static str> {
    report.error.as_ref().map(|error| error.kind)
}

fn put_all(place: &Place, files: &BTreeMap<String, Vec<u8>>) {
    place.make_directory("dir");
    place.put("dir/_SUCCESS", b"no record");
    place.put("dir/.crc", b"none either");
    for (name, data) in files {
        place.put(&format!("dir/{name}"), data);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn finds_what_hadoop_finds(
        files in proptest::collection::btree_map(
            "[a-z][a-zA-Z0-9 .!~=-]{0,3}",
            (any::<bool>(), proptest::collection::vec((0..4_u8, 0..3_u8), 0..6)),
            1..6,
        ),
        workers in 1_usize..4,
    ) {
        let place = Place::memory();
        let file = |(sorted, mut keys): (bool, Vec<(u8, u8)>)| {
            if sorted {
                keys.sort_unstable();
            }
            let key = |(high, low): (u8, u8)| [high, 0xFF, 0, 0, 0, 0, 0, 0, 0, low];
            records(&keys.into_iter().map(key).collect::<Vec<Key>>(), 0)
        };
        let files: BTreeMap<String, Vec<u8>> =
            files.into_iter().map(|(name, keys)| (name, file(keys))).collect();
        put_all(&place, &files);
        let report = place.run(&json!({"teravalidate": {"input": "dir", "workers": workers}}));
        let want = naive(&files);
        prop_assert!(found(&report) == want, "{:?}\n{:?}", found(&report), want);
        prop_assert_eq!(report.parts, files.len());
        let records: usize = files.values().map(|data| data.len() / RECORD).sum();
        prop_assert_eq!(report.records, records as u64);
        let bad = want.misorders > 0;
        prop_assert_eq!(error_kind(&report), bad.then_some("disorder"));
        prop_assert_eq!(report.status == Status::Succeeded, !bad);
    }
}

/// Keys that ascend by one: any two neighbours out of place are one misorder.
fn ascending(count: usize) -> Vec<u8> {
    let key = |i: u64| {
        *[i.to_be_bytes().as_slice(), b"\0\0"]
            .concat()
            .first_chunk()
            .unwrap()
    };
    records(&(0..count as u64).map(key).collect::<Vec<Key>>(), 0)
}

/// Every place where one step of the check ends and the next begins: 256 records are checked at a time, 40,960
/// are read at a time, 670,720 are a task.
#[test]
fn two_records_out_of_place_are_found_wherever_they_are() {
    const RECORDS: usize = 750_000;
    let mut data = ascending(RECORDS);
    let mut numbers = Numbers(7);
    let mut places = vec![
        0, 1, 127, 255, 256, 40_958, 40_959, 40_960, 81_919, 670_718, 670_719, 670_720,
    ];
    places.push(RECORDS - 2);
    places.extend((0..4).map(|_| numbers.below(RECORDS as u64 - 1) as usize));
    let place = Place::memory();
    place.make_directory("dir");
    place.put("dir/part-r-00000", &data);
    let path = place.path("dir/part-r-00000");
    let file = place.store().create(&path, 0, Caching::Cached).unwrap();
    let validate =
        || place.run(&json!({"teravalidate": {"input": "dir", "workers": 2, "memory": "1G"}}));
    assert_eq!(validate().status, Status::Succeeded);
    for at in places {
        let both = at * RECORD..(at + 2) * RECORD;
        data[both.clone()].rotate_left(RECORD);
        file.write_at(&data[both.clone()], both.start as u64)
            .unwrap();
        let report = validate();
        assert_eq!((report.misorders, report.duplicate_keys), (1, 0), "at {at}");
        let error = report.error.unwrap();
        assert_eq!(error.kind, "disorder");
        assert_eq!(error.context["record"], (at + 1).to_string());
        assert_eq!(error.context["offset"], ((at + 1) * RECORD).to_string());
        assert_eq!(error.context["file"], path.display().to_string());
        let [larger, smaller] = [0, 1].map(|i| key_text(&key_of(&data[(at + i) * RECORD..])));
        let line = format!("error\tmisorder in part-r-00000 between {larger} and {smaller}");
        assert!(
            report.report.contains(&line),
            "at {at}: {:?}",
            report.report
        );
        data[both.clone()].rotate_left(RECORD);
        file.write_at(&data[both.clone()], both.start as u64)
            .unwrap();
    }
    assert_eq!(validate().status, Status::Succeeded);
}

/// A sorted output of several parts, and what it was made from.
fn sorted_place() -> Place {
    let place = Place::memory();
    place.succeed(&json!({"teragen": {"rows": "3k", "output": "in", "files": 2}}));
    place.succeed(&json!({"terasort": {"inputs": ["in"], "output": "out", "partitions": 4}}));
    place
}

fn against(place: &Place, against: &str) -> JobReport {
    place.run(&json!({"teravalidate": {"input": "out", "against": against, "workers": 2}}))
}

#[test]
fn parts_in_each_others_place_are_found() {
    for (one, other, misorders) in [(0, 1, 1), (1, 2, 1), (2, 3, 1), (0, 3, 2)] {
        let place = sorted_place();
        let names = [one, other].map(|part| format!("out/part-r-{part:05}"));
        let parts = names.clone().map(|name| place.read(&name));
        for (name, part) in names.iter().zip(parts.iter().rev()) {
            place.store().remove(&place.path(name)).unwrap();
            place.put(name, part);
        }
        let report = against(&place, "in");
        assert_eq!(
            (error_kind(&report), report.misorders),
            (Some("disorder"), misorders)
        );
        let lines = report.report.iter();
        let borders = lines.filter(|line| line.starts_with("error\tbad key partitioning:\n"));
        assert_eq!(borders.count() as u64, misorders, "{:?}", report.report);
    }
}

type Damage = fn(&Place);

/// Harm to the parts that leaves them in order.
const DAMAGES: [(&str, Damage); 6] = [
    ("the last part is missing", |place| {
        place
            .store()
            .remove(&place.path("out/part-r-00003"))
            .unwrap();
    }),
    ("the first part is missing", |place| {
        place
            .store()
            .remove(&place.path("out/part-r-00000"))
            .unwrap();
    }),
    ("the last record is missing", |place| {
        change(place, "out/part-r-00003", |bytes| {
            bytes.truncate(bytes.len() - RECORD);
        });
    }),
    ("the last bit is another", |place| {
        change(place, "out/part-r-00003", |bytes| {
            *bytes.last_mut().unwrap() ^= 1;
        });
    }),
    ("the first bit behind a key is another", |place| {
        change(place, "out/part-r-00000", |bytes| bytes[10] ^= 0x80);
    }),
    (
        "a record is there twice and its neighbour is not",
        |place| {
            change(place, "out/part-r-00001", |bytes| {
                bytes.copy_within(0..RECORD, RECORD);
            });
        },
    ),
];

fn change(place: &Place, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = place.read(name);
    change(&mut bytes);
    place.store().remove(&place.path(name)).unwrap();
    place.put(name, &bytes);
}

#[test]
fn what_is_no_permutation_of_the_input_is_found() {
    for (what, damage) in DAMAGES {
        let place = sorted_place();
        let input: Vec<u8> = place
            .parts("in")
            .into_iter()
            .flat_map(|(_, bytes)| bytes)
            .collect();
        let originals = ["in".to_owned(), Hex(naive_checksum(&input)).to_string()];
        for original in &originals {
            assert_eq!(error_kind(&against(&place, original)), None, "{original}");
        }
        damage(&place);
        let alone = place.run(&json!({"teravalidate": {"input": "out"}}));
        assert_eq!(error_kind(&alone), None, "{what}");
        for original in &originals {
            let report = against(&place, original);
            assert_eq!(error_kind(&report), Some("disorder"), "{what}: {original}");
        }
    }
}

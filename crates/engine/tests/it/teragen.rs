//! `teragen` against records built from the formulas (FACTS 1), digit by digit, and against the sums that gensort
//! and Hadoop print.

use gristmill_engine::jobs::Status;
use gristmill_engine::record::checksum::Hex;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::support::{Place, RECORD, naive_checksum};

const LAYOUTS: [&str; 3] = ["hadoop", "gensort", "ascii"];

/// x <- a x + c, mod 2^128.
const STEP: (u128, u128) = (
    0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645,
    0x4a69_6d47_7261_7952_4950_2020_2020_2001,
);

/// The map that `count` steps are together: half of them twice, and one more where that is odd.
fn steps(count: u128) -> (u128, u128) {
    let then = |(a, c): (u128, u128), (b, d): (u128, u128)| {
        (a.wrapping_mul(b), c.wrapping_mul(b).wrapping_add(d))
    };
    if count == 0 {
        return (1, 0);
    }
    let half = steps(count / 2);
    let even = then(half, half);
    if count.is_multiple_of(2) {
        even
    } else {
        then(even, STEP)
    }
}

/// r(n): the state after n + 1 steps from 0, the first of which leads to c.
fn random(n: u128) -> u128 {
    let (a, c) = steps(n);
    a.wrapping_mul(STEP.1).wrapping_add(c)
}

/// The last `count` digits of `number`, each `times` times.
fn digits(number: u128, count: usize, times: usize) -> String {
    let text = format!("{number:032X}");
    text[32 - count..]
        .chars()
        .map(|digit| digit.to_string().repeat(times))
        .collect()
}

fn hadoop(n: u128) -> Vec<u8> {
    let r = random(n);
    let mut record = r.to_be_bytes()[..10].to_vec();
    record.extend([0x00, 0x11]);
    record.extend(digits(n, 32, 1).bytes());
    record.extend([0x88, 0x99, 0xAA, 0xBB]);
    record.extend(digits(r, 12, 4).bytes());
    record.extend([0xCC, 0xDD, 0xEE, 0xFF]);
    record
}

fn ascii(n: u128) -> Vec<u8> {
    let r = random(n);
    let half =
        |bits: u64, chars: u32| (0..chars).map(move |i| 32 + (bits / 95_u64.pow(i) % 95) as u8);
    let mut record: Vec<u8> = half((r >> 64) as u64, 8).collect();
    record.extend(half(r as u64, 2));
    record.extend(b"  ");
    record.extend(digits(n, 32, 1).bytes());
    record.extend(b"  ");
    record.extend(digits(r, 13, 4).bytes());
    record.extend(b"\r\n");
    record
}

fn gensort(n: u128) -> Vec<u8> {
    let masks = "00000000000000000000 F0E8E4E2E1D8D4D2D1CC CAC9C6C5C3B8B4B2B1AC AAA9A6A5A39C9A999695 \
                 938E8D8B87787472716C 6A696665635C5A595655 534E4D4B473C3A393635 332E2D2B271E1D1B170F \
                 C8C4C2C1989492918CE0 170F332E2D2B271E1D1B";
    let part = |(j, mask): (u128, &str)| {
        let mask = u128::from_str_radix(mask, 16).unwrap();
        let bits = (random(n.wrapping_add(j)) >> 48) ^ mask;
        bits.to_be_bytes()[6..].to_vec()
    };
    (0..).zip(masks.split(' ')).flat_map(part).collect()
}

/// Bit by bit (ascii: character by character), the leading ones from the record whose number is n's bit length.
fn skew(record: &mut [u8], layout: &str, n: u128) {
    let bit_length = u128::from(u128::BITS - n.leading_zeros());
    let choice = (random(n) as u64) >> 32;
    if layout == "ascii" {
        let count = if choice & 7 > 6 { 0 } else { choice & 7 } as usize;
        record[..count].copy_from_slice(&ascii(bit_length)[..count]);
        return;
    }
    let prefix = hadoop(bit_length);
    let count = if choice & 63 > 48 { 0 } else { choice & 63 } as usize;
    for bit in 0..count {
        let mask = 0x80 >> (bit % 8);
        record[bit / 8] = (record[bit / 8] & !mask) | (prefix[bit / 8] & mask);
    }
}

fn naive(layout: &str, skewed: bool, start: u128, rows: u128) -> Vec<u8> {
    let mut data = Vec::new();
    for n in start..start + rows {
        let mut record = match layout {
            "hadoop" => hadoop(n),
            "gensort" => gensort(n),
            _ => ascii(n),
        };
        assert_eq!(record.len(), RECORD);
        if skewed {
            skew(&mut record, layout, n);
        }
        data.append(&mut record);
    }
    data
}

fn teragen(rows: u128, options: Value) -> Value {
    let mut spec =
        json!({"rows": rows.to_string(), "output": "out", "no_sync": true, "memory": "1G"});
    let Value::Object(options) = options else {
        return spec;
    };
    for (name, value) in options {
        spec[name] = value;
    }
    json!({"teragen": spec})
}

/// Row numbers around which digits, bit lengths and word borders change.
fn starts() -> impl Strategy<Value = u128> {
    prop_oneof![
        0_u128..2000,
        (0_u32..127, 0_u128..8)
            .prop_map(|(bits, more)| ((1_u128 << bits) + more).saturating_sub(4)),
        any::<u128>().prop_map(|start| start >> 1),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Records, files (file i ends at row ceil(rows (i + 1) / files)) and proof, for any layout and start.
    #[test]
    fn records_follow_from_their_numbers(
        start in starts(),
        rows in 0_u128..400,
        files in prop_oneof![Just(1_usize), Just(7), 1_usize..40],
        layout in proptest::sample::select(LAYOUTS.as_slice()),
        skewed in any::<bool>(),
        workers in 1_usize..4,
        local in any::<bool>(),
    ) {
        let place = if local { Place::local() } else { Place::memory() };
        let options = json!({
            "start": start.to_string(), "layout": layout, "skew": skewed, "files": files, "workers": workers,
        });
        let report = place.succeed(&teragen(rows, options));
        let want = naive(layout, skewed, start, rows);
        let parts = place.parts("out");
        prop_assert_eq!(parts.len(), files);
        let end = |i: usize| (rows as usize * i).div_ceil(files) * RECORD;
        let success = place.success("out");
        for (i, (name, bytes)) in parts.iter().enumerate() {
            prop_assert_eq!(name, &format!("part-m-{i:05}"));
            prop_assert!(bytes == &want[end(i)..end(i + 1)], "{}", name);
            let proof = &success.parts[i];
            prop_assert_eq!((&proof.name, proof.bytes), (name, bytes.len() as u64));
            prop_assert_eq!(&proof.checksum, &Hex(naive_checksum(bytes)).to_string());
            prop_assert_eq!((&proof.first_key, &proof.last_key), (&None, &None));
        }
        let checksum = naive_checksum(&want);
        prop_assert_eq!(&report.checksum, &Hex(checksum).to_string());
        prop_assert_eq!(report.counters["CHECKSUM"], checksum as u64);
        prop_assert_eq!((report.records, success.records), (rows as u64, rows as u64));
        prop_assert_eq!((success.checksum, success.sorted), (report.checksum, false));
    }
}

#[test]
fn sums_are_those_of_gensort_and_hadoop() {
    let table = [
        ("hadoop", false, "0", "1", "97503e23"),
        ("hadoop", false, "0", "10", "5b2d1434d"),
        ("hadoop", false, "0", "1k", "1f9ffe645ec"),
        ("ascii", false, "0", "1k", "1f5dfb3631a"),
        ("gensort", false, "0", "1k", "1ea6370b955"),
        ("gensort", true, "0", "1", "9ea593a0"),
        ("gensort", true, "0", "10", "5d95519b3"),
        ("gensort", true, "0", "1k", "1e96301166b"),
        ("ascii", true, "0", "10", "46073c01c"),
        ("ascii", true, "0", "1k", "1eef17d1cac"),
        ("gensort", false, "1000000", "10", "54582d61d"),
        ("gensort", false, "1m", "10", "54582d61d"),
    ];
    for (layout, skewed, start, rows, sum) in table {
        for files in [1, 3] {
            let place = Place::memory();
            let report = place.succeed(&json!({"teragen": {
                "rows": rows, "output": "out", "layout": layout, "skew": skewed, "start": start, "files": files,
            }}));
            assert_eq!(report.checksum, sum, "{layout} {skewed} {start} {rows}");
        }
    }
}

/// Beyond a task's 64 MB and a writer's buffers; on disk, where ranges of one file meet inside blocks.
#[test]
fn one_file_holds_what_seven_hold_together() {
    let place = Place::local();
    let rows = 740_000;
    let mut sums = Vec::new();
    for (output, files, workers) in [("one", 1, 2), ("seven", 7, 2)] {
        let options =
            json!({"output": output, "files": files, "workers": workers, "layout": "gensort"});
        let report = place.succeed(&teragen(rows, options));
        sums.push(report.checksum);
        let tasks = report.phases.iter().find(|phase| phase.name == "generate");
        assert_eq!(tasks.unwrap().tasks, if files == 1 { 2 } else { 7 });
    }
    let together = |output| -> Vec<u8> {
        place
            .parts(output)
            .into_iter()
            .flat_map(|(_, bytes)| bytes)
            .collect()
    };
    let one = together("one");
    assert!(one == together("seven"));
    assert_eq!(
        sums,
        [sums[0].clone(), Hex(naive_checksum(&one)).to_string()]
    );
    let last = 739_999;
    assert_eq!(
        one[last * RECORD..],
        naive("gensort", false, last as u128, 1)
    );
}

/// The last row number is 2^128 - 1; what lies beyond is refused, not wrapped.
#[test]
fn rows_beyond_the_last_number_are_refused() {
    let place = Place::memory();
    for (start, rows, works) in [(u128::MAX - 9, 10, true), (u128::MAX - 8, 10, false)] {
        let options = json!({"start": start.to_string()});
        let run = || place.run(&teragen(rows, options));
        let report = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
        let Ok(report) = report else {
            panic!("the job panicked");
        };
        if works {
            assert_eq!(report.status, Status::Succeeded, "{:?}", report.error);
            continue;
        }
        assert_eq!(report.error.unwrap().kind, "bad_option");
    }
}

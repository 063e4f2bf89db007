//! Keys against the installed GNU sort, locale C: the same lines out, for generated options and hostile lines.
//!
//! `GNU_KEYS_SETS=10000 cargo test` draws more sets of options, and GNU_KEYS_SEED others. Where the program is missing, or another sort than GNU's,
//! the tests say so and pass; they fail where CI=true.
//!
//! Not compared: equal NaNs, which 9.1 compares by bytes of memory that nothing has set. And, since versions of GNU sort differ: units R and Q of `-h`
//! (units since 9.2), and NaNs with a payload (later versions compare signs alone; compared where 9.1 is installed). Nor `0x1.0000000000000001p-16446`, a
//! little more than half of the smallest number: glibc 2.36 rounds it to zero, we round it up.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "helpers of tests, which fail with a backtrace, and say what was skipped"
)]

mod lines;

use std::io::Write;
use std::process::{Command, Stdio};

use gristmill_gnu_keys::Keys;
use lines::{Random, file, options};

/// Letters of the order, apart from `-R`.
const LETTERS: &[u8] = b"bdfghiMnrV";

/// What GNU sort writes; `None` where it refuses its options.
fn gnu_sort(options: &[String], input: &[u8]) -> Option<Vec<u8>> {
    let mut child = Command::new("sort")
        .args(options)
        .env("LC_ALL", "C")
        .env_remove("_POSIX2_VERSION")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // A refusal closes the pipe before all is written.
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    output.status.success().then_some(output.stdout)
}

/// The same by codes and a plain comparison of bytes.
fn ours(options: &[String], input: &[u8]) -> Option<Vec<u8>> {
    let keys = Keys::parse(options).ok()?;
    let end = if keys.zero_terminated() { 0 } else { b'\n' };
    let mut lines: Vec<&[u8]> = input.split(|byte| *byte == end).collect();
    if lines.last() == Some(&&b""[..]) {
        lines.pop();
    }
    let mut records: Vec<(Vec<u8>, &[u8])> = lines
        .into_iter()
        .map(|line| {
            let mut record = Vec::new();
            keys.encode(line, &mut record);
            if keys.whole_lines() {
                record.extend_from_slice(line);
            }
            (record, line)
        })
        .collect();
    records.sort_by(|one, other| one.0.cmp(&other.0));
    if keys.unique() {
        records.dedup_by(|one, other| one.0 == other.0);
    }
    Some(
        records
            .iter()
            .flat_map(|(_, line)| line.iter().copied().chain([end]))
            .collect(),
    )
}

fn assert_same(options: &[String], input: &[u8]) {
    let (gnu, ours) = (gnu_sort(options, input), ours(options, input));
    if gnu == ours {
        return;
    }
    let end = if options.iter().any(|word| word == "-z") {
        0
    } else {
        b'\n'
    };
    let shown = |output: Option<Vec<u8>>| match output {
        None => "refused".to_owned(),
        Some(bytes) => {
            let lines = bytes
                .split(|byte| *byte == end)
                .map(|line| format!("  {:.90}", line.escape_ascii().to_string()));
            lines.collect::<Vec<_>>().join("\n")
        }
    };
    panic!(
        "{options:?}\nGNU sort:\n{}\nours:\n{}",
        shown(gnu),
        shown(ours)
    );
}

/// The version of GNU sort that is installed.
fn version() -> Option<String> {
    let output = Command::new("sort").arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines()
        .next()
        .filter(|line| line.contains("GNU coreutils"))
        .map(str::to_owned)
}

fn is_missing() -> bool {
    if version().is_some() {
        return false;
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "these tests need GNU sort, and it is not installed"
    );
    eprintln!("skipped: these tests need GNU sort, and it is not installed");
    true
}

#[test]
fn every_letter_and_every_pair_of_letters() {
    if is_missing() {
        return;
    }
    let mut random = Random(1);
    for one in LETTERS {
        for other in LETTERS {
            let input = file(&mut random, 60, b'\n');
            let pair = String::from_utf8(vec![*one, *other]).unwrap();
            assert_same(&[format!("-{pair}")], &input);
            assert_same(
                &[
                    "-s".into(),
                    format!("-k2{}", &pair[..1]),
                    format!("-k1,1{}", &pair[1..]),
                ],
                &input,
            );
            if one <= other {
                continue;
            }
            assert_same(&["-t,".into(), format!("-k2,2{pair}"), "-u".into()], &input);
        }
    }
}

#[test]
fn sets_of_options_drawn_at_random() {
    if is_missing() {
        return;
    }
    let sets = std::env::var("GNU_KEYS_SETS").map_or(3000, |sets| sets.parse::<u64>().unwrap());
    let first = std::env::var("GNU_KEYS_SEED").map_or(0, |seed| seed.parse().unwrap());
    for seed in first..first + sets {
        let mut random = Random(seed);
        let options = options(&mut random);
        let end = if options.iter().any(|word| word == "-z") {
            0
        } else {
            b'\n'
        };
        let input = file(&mut random, 50, end);
        assert_same(&options, &input);
    }
}

#[test]
fn numbers_that_are_hard_to_read() {
    if is_missing() {
        return;
    }
    let mut random = Random(2);
    let mut input: Vec<u8> = lines::hard_numbers(&mut random).join(&b'\n');
    input.push(b'\n');
    for options in [
        ["-g", "-s"],
        ["-n", "-s"],
        ["-h", "-s"],
        ["-gr", "-u"],
        ["-fh", "-s"],
    ] {
        assert_same(&options.map(str::to_owned), &input);
    }
}

/// Of the exact numbers of tables there is no program to compare with: they may differ only where `-g` says that two are equal.
#[test]
fn exact_numbers_are_finer_than_those_of_g() {
    let [exact, general] = ["N", "g"].map(|letters| {
        let keys = Keys::of_field(letters).unwrap();
        move |line: &[u8]| {
            let mut code = Vec::new();
            keys.encode(line, &mut code);
            code
        }
    });
    let lines = lines::hard_numbers(&mut Random(3));
    let mut codes: Vec<_> = lines
        .iter()
        .map(|line| (exact(line), general(line)))
        .collect();
    codes.sort();
    for pair in codes.windows(2) {
        assert!(pair[0].1 <= pair[1].1, "{pair:?}");
        assert!(
            pair[0].0 == pair[1].0 || !pair[1].0.starts_with(&pair[0].0),
            "{pair:?}"
        );
    }
}

#[test]
fn nans_in_the_order_of_their_bytes() {
    if version().is_none_or(|version| !version.ends_with(" 9.1")) {
        return;
    }
    let nans = "nan(0x100)\n-nan(2)\nnan\nnan(1)\nnan(010)\n-nan\nnan(0xffffffffffffffffff)\nnax\n-inf\n0\n";
    assert_same(&["-g".into(), "-s".into()], nans.as_bytes());
}

#[test]
fn keys_that_are_refused() {
    if is_missing() {
        return;
    }
    for word in [
        "-k0",
        "-k1.0",
        "-k",
        "-kx",
        "-k1,0",
        "-k1,",
        "-k1x",
        "-k1,2x",
        "-k1.",
        "-k1,1.",
        "-k1,1.0",
        "-k1.2,3.4bnr",
        "-t",
        "-tab",
        "-t\\0",
        "-t\\",
        "-k99999999999999999999999",
        "-k1,99999999999999999999999",
        "--sort=n",
        "--sort=x",
        "--sort=",
        "--key=2",
        "--ke=2",
        "--s",
        "--st",
        "--sor=month",
        "-nk2",
        "-k2n,3",
        "-k1,2,3",
        "--unique=1",
        "-k-1",
    ] {
        assert_same(&[word.into()], b"b 2\na 1\nc 3 4\n");
    }
}

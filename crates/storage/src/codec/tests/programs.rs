//! Against the programs of the formats' own makers, where they are installed.

use std::process::{Command, Stdio};

use super::*;

/// What a program makes of `input`, or `None` where there is no such program.
fn piped(program: &str, arguments: &[&str], input: &[u8]) -> Option<Vec<u8>> {
    let started = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(error) => {
            eprintln!("NOT TESTED against {program}, which does not start here: {error}");
            return None;
        }
    };
    let mut stdin = child.stdin.take().unwrap();
    let done = std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input).unwrap());
        child.wait_with_output().unwrap()
    });
    assert!(done.status.success(), "{program} {arguments:?}");
    Some(done.stdout)
}

const PROGRAMS: [(Codec, &str, &[&[&str]]); 5] = [
    (Codec::Gzip, "gzip", &[&["-c"], &["-1c"], &["-9c"]]),
    (Codec::Bzip2, "bzip2", &[&["-c"], &["-1c"]]),
    (
        Codec::Xz,
        "xz",
        &[
            &["-c"],
            &["-9ec"],
            &["-c", "-T2", "--block-size=100KiB"],
            &["-c", "--check=sha256"],
        ],
    ),
    (
        Codec::Zstd,
        "zstd",
        &[
            &["-qc"],
            &["-qc", "-19"],
            &["-qc", "--long=27"],
            &["-qc", "--no-check"],
        ],
    ),
    (
        Codec::Lz4,
        "lz4",
        &[
            &["-qc"],
            &["-qc", "-9"],
            &["-qc", "-BD", "-B4"],
            &["-qc", "-BX", "--no-frame-crc"],
        ],
    ),
];

#[test]
fn programs_and_codecs_understand_each_other() {
    for whole in [data(0, 2, 1), data(1_000_000, 50, 4), data(300_000, 256, 4)] {
        for (codec, program, ways) in PROGRAMS {
            let Some(back) = piped(program, &["-dc"], &packed(codec, &whole)) else {
                continue;
            };
            assert!(back == whole, "{program} decodes ours");
            let mut all = Vec::new();
            for arguments in ways {
                let compressed = piped(program, arguments, &whole).unwrap();
                assert!(
                    unpacked(codec, &compressed).unwrap() == whole,
                    "{program} {arguments:?}"
                );
                all.extend(compressed);
            }
            assert!(
                unpacked(codec, &all).unwrap() == whole.repeat(ways.len()),
                "{program} in a row"
            );
            assert!(piped(program, &["-dc"], &all).unwrap() == unpacked(codec, &all).unwrap());
        }
    }
}

#[test]
fn a_window_of_zstd_beyond_the_bound_is_refused() {
    // Without a size in its header, a frame's window is what the option says.
    let Some(large) = piped("zstd", &["-qc", "--long=28"], b"words") else {
        return;
    };
    let error = unpacked(Codec::Zstd, &large).unwrap_err();
    assert!(error.to_string().contains("--long=27"), "{error}");
}

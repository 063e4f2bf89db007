//! Lines are gathered from buckets in the order of a naive sort.

use super::*;
use gristmill_base::budget::Budget;
use gristmill_base::order::borders::Border;
use gristmill_base::order::lines::LineStaging;
use proptest::collection::vec;
use proptest::prelude::*;

/// Lines that tie, end within each other, are empty, long, or the same.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0_u8), Just(b'a'), Just(b'b'), Just(0xFF)];
    let few = (0..3_usize, vec(byte, 0..5))
        .prop_map(|(long, tail)| [&vec![b'a'; 9 * long], &*tail].concat());
    let long =
        (0..2_usize, 900..1500_usize).prop_map(|(kind, bytes)| vec![b'a' + kind as u8; bytes]);
    prop_oneof![20 => few, 1 => long]
}

/// The lines in their buckets, by splits.
fn scatter(lines: &[(u64, Vec<u8>)], splits: usize, buckets: &Buckets) -> Vec<ScatteredLines> {
    let budget = Budget::new(1 << 30);
    let mut scattered = Vec::new();
    for of_split in lines.chunks(lines.len().div_ceil(splits).max(1)) {
        let (mut staging, mut out) = (LineStaging::default(), ScatteredLines::default());
        staging.begin(buckets.count()).unwrap();
        for (number, (position, key)) in of_split.iter().enumerate() {
            let length = key.len() + 1;
            staging.push(
                buckets.of(key, *position),
                LineEntry::new(*position, length),
                length,
            );
            if number % 50 == 49 {
                staging.scatter(&mut out, &budget).unwrap(); // blocks end anywhere
            }
        }
        staging.finish(&mut out, &budget).unwrap();
        scattered.push(out);
    }
    scattered
}

/// Files of lines, in some splits; buckets cut at some of the lines; memory for few of them at once.
fn check(
    files: &[(Vec<Vec<u8>>, bool)],
    cut_at: &[usize],
    (shape, limits): (LineShape, GatherLimits),
    splits: usize,
) {
    let (mut arena, mut starts, mut bytes, mut lines) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (of_file, ended) in files {
        arena.resize(arena.len().next_multiple_of(64), b'?');
        starts.push(arena.len() as u64);
        for (number, key) in of_file.iter().enumerate() {
            let without = number + 1 == of_file.len() && !ended && !key.is_empty();
            lines.push((arena.len() as u64, key.clone()));
            arena.extend(key);
            arena.extend((!without).then_some(b'\n'));
        }
        bytes.push(arena.len() as u64 - starts[starts.len() - 1]);
    }
    let border = |at: &usize| {
        let (position, key) = lines.get(at % lines.len().max(1))?.clone();
        Some(Border { key, position })
    };
    let mut borders: Vec<Border> = cut_at.iter().filter_map(border).collect();
    let ascending = LineShape { descending: false };
    borders
        .sort_by(|a, b| gristmill_base::order::borders::compare(ascending, &a.key, a.position, b));
    let buckets = Buckets::new(shape, &borders);
    let scattered = scatter(&lines, splits, &buckets);
    let source = LineSource {
        arena: &arena,
        ends: &FileEnds {
            starts: &starts,
            bytes,
        },
        splits: &scattered.iter().collect::<Vec<_>>(),
        buckets: &buckets,
        shape,
    };
    let mut scratch = LineScratch {
        limits,
        ..LineScratch::default()
    };
    let (mut found, middle) = (Vec::new(), buckets.count() / 2);
    for range in [0..middle, middle..buckets.count()] {
        gather_lines(&source, range, &mut scratch, &|_| Ok(()), |line| {
            found.push(line.to_vec());
            Ok(())
        })
        .unwrap();
    }
    let mut want: Vec<Vec<u8>> = lines
        .into_iter()
        .map(|(_, key)| [&key[..], b"\n"].concat())
        .collect();
    want.sort_by(|a, b| shape.compare(a, b));
    assert!(
        found == want,
        "{} lines, {} wanted",
        found.len(),
        want.len()
    );
}

proptest! {
    /// Against a sort of whole lines, whichever way each bucket goes.
    #[test]
    fn lines_come_in_order(
        files in vec((vec(line(), 0..200), any::<bool>()), 0..4),
        cut_at in vec(any::<usize>(), 0..30),
        (descending, splits) in (any::<bool>(), 1..4_usize),
        (text_bytes, more, bucket_lines) in (1..3_000_usize, 0..80_usize, 1..60_usize),
    ) {
        let limits = GatherLimits { text_bytes, lines: bucket_lines + more, bucket_lines };
        check(&files, &cut_at, (LineShape { descending }, limits), splits);
    }
}

#[test]
fn large_buckets_are_asked_for_beforehand() {
    let small = (1 << 20, 1 << 18);
    assert_eq!(oversized_bytes(&[small, (0, 0)], 1000, 2, 3), 0);
    assert_eq!(oversized_bytes(&[small], 1 << 17, 2, 3), (8 + 6) << 17);
    // No more lines than there are: of a long one among few others that says much.
    assert_eq!(oversized_bytes(&[small], 1 << 20, 8, 9), 5 << 20);
    let large = [
        (16 << 20, 5),
        small,
        (1 << 20, (1 << 18) + 1),
        (20 << 20, 1),
    ];
    assert_eq!(oversized_bytes(&large, 1000, 2, 3), ((1 << 18) + 6) * 16);
}

#[test]
fn no_end_of_a_line_is_looked_for_beyond_the_longest_line() {
    let arena = vec![0; 1000]; // of a file that was cut off
    let ends = FileEnds {
        starts: &[0],
        bytes: vec![1000],
    };
    let buckets = Buckets::new(LineShape { descending: false }, &[]);
    let source = LineSource {
        arena: &arena,
        ends: &ends,
        splits: &[],
        buckets: &buckets,
        shape: LineShape { descending: false },
    };
    let longest = 8;
    let keys = LargeBucket {
        source: &source,
        longest,
        long: vec![20],
    };
    assert_eq!(keys.key_at(10).len(), longest);
    assert_eq!(keys.key_at(996).len(), 4, "not beyond the file");
    assert_eq!(keys.key_at(20).len(), 980, "nobody knows how long it is");
}

#[test]
fn a_large_bucket_hears_of_the_end_of_its_job() {
    let text = b"\n".repeat(3_000);
    let lines: Vec<_> = (0..3_000).map(|position| (position, Vec::new())).collect();
    let shape = LineShape { descending: false };
    let buckets = Buckets::new(shape, &[]);
    let scattered = scatter(&lines, 1, &buckets);
    let source = LineSource {
        arena: &text,
        ends: &FileEnds {
            starts: &[0],
            bytes: vec![3_000],
        },
        splits: &scattered.iter().collect::<Vec<_>>(),
        buckets: &buckets,
        shape,
    };
    let mut taken = Vec::new();
    for allowed in 0.. {
        let mut scratch = LineScratch {
            limits: GatherLimits {
                bucket_lines: 2_999,
                ..LIMITS
            },
            ..LineScratch::default()
        };
        let (asked, mut lines) = (std::cell::Cell::new(0), 0);
        let progress = |_| {
            asked.set(asked.get() + 1);
            if asked.get() > allowed {
                Err(Error::cancelled())
            } else {
                Ok(())
            }
        };
        let ended = gather_lines(&source, 0..1, &mut scratch, &progress, |_| {
            lines += 1;
            Ok(())
        });
        taken.push(lines);
        if ended.is_ok() {
            break;
        }
    }
    let asked_before_the_first = taken.iter().filter(|lines| **lines == 0).count();
    assert!(asked_before_the_first > 3_000 / 256, "{taken:?}");
    assert!(
        taken
            .windows(2)
            .all(|pair| pair[1] - pair[0] <= ASKED_LINES),
        "{taken:?}"
    );
    assert_eq!(taken.last(), Some(&3_000));
}

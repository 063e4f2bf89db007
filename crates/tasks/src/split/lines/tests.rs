//! Against a naive reader: all splits together give the lines of the whole, whatever the text and the blocks.

use std::io::{Cursor, Write};

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use gristmill_storage::codec::{Codec, Coding, encoder, open};
use gristmill_storage::memory::Memory;
use gristmill_storage::{Caching, OutputStore, Store};

/// The lines of a text, one byte after the other.
fn naive(text: &[u8], terminator: &Terminator) -> Vec<(u64, Vec<u8>)> {
    let mut lines = Vec::new();
    let mut at = if text.starts_with(BYTE_ORDER_MARK) {
        3
    } else {
        0
    };
    let (mut start, mut line) = (0, Vec::new());
    while at < text.len() {
        let ended = match terminator {
            Terminator::Lf { .. } => usize::from(text[at] == b'\n'),
            Terminator::Nul => usize::from(text[at] == 0),
            Terminator::Hadoop if text[at..].starts_with(b"\r\n") => 2,
            Terminator::Hadoop => usize::from(text[at] == b'\n' || text[at] == b'\r'),
            Terminator::Bytes(bytes) if text[at..].starts_with(bytes) => bytes.len(),
            Terminator::Bytes(_) => 0,
        };
        if ended == 0 {
            line.push(text[at]);
            at += 1;
            continue;
        }
        if *terminator == (Terminator::Lf { strip_cr: true }) && line.last() == Some(&b'\r') {
            line.pop();
        }
        at += ended;
        lines.push((start as u64, std::mem::take(&mut line)));
        start = at;
    }
    if !line.is_empty() {
        lines.push((start as u64, line));
    }
    lines
}

fn all(reader: &mut LineRecordReader) -> Result<Vec<(u64, Vec<u8>)>> {
    let mut lines = Vec::new();
    while let Some(line) = reader.next_line()? {
        lines.push((line.offset, line.bytes.to_vec()));
    }
    assert_eq!(reader.lines(), lines.len() as u64);
    assert!(reader.next_line()?.is_none());
    Ok(lines)
}

fn stored(text: &[u8]) -> Memory {
    let store = Memory::with_room_for(1 << 30);
    let file = store.create("/a".as_ref(), text.len() as u64, Caching::Cached);
    file.unwrap().write_at(text, 0).unwrap();
    store
}

fn of_range(text: &[u8], range: Range<u64>, options: &LineOptions) -> Result<LineRecordReader> {
    let file = stored(text).open("/a".as_ref(), Caching::Cached)?;
    LineRecordReader::of_range(file, "/a".as_ref(), text.len() as u64, range, options)
}

fn terminators() -> impl Strategy<Value = Terminator> {
    prop_oneof![
        Just(Terminator::Lf { strip_cr: false }),
        Just(Terminator::Lf { strip_cr: true }),
        Just(Terminator::Hadoop),
        Just(Terminator::Nul),
        vec(proptest::sample::select(b"a\n\xbf\xef".to_vec()), 1..5).prop_map(Terminator::Bytes),
        Just(Terminator::Bytes(b"aabaa".to_vec())),
    ]
}

/// Texts in which terminators of every kind are frequent, some with a mark, some with long lines.
fn texts() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        8 => vec(proptest::sample::select(b"ab\r\n\n\xbf\0\0".to_vec()), 0..12),
        2 => Just(b"aaaaaaaaaaaaaaa".to_vec()),
        1 => Just(b"aabaabaabaabaa".to_vec()),
        1 => Just(b"\r\n\r\n\r\r\n".to_vec()),
        1 => (0_usize..12_000).prop_map(|bytes| vec![b'x'; bytes]),
    ];
    let mark = prop_oneof![3 => Just(&b""[..]), 1 => Just(BYTE_ORDER_MARK)];
    (mark, vec(piece, 0..30)).prop_map(|(mark, pieces)| [mark, &pieces.concat()].concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn splits_together_give_the_lines_of_the_whole(
        text in texts(),
        terminator in terminators(),
        cuts in vec(any::<proptest::sample::Index>(), 0..12),
        near in 0_usize..6,
        block_bytes in prop_oneof![1_usize..20, 1_usize..5000],
    ) {
        let want = naive(&text, &terminator);
        let options = LineOptions { terminator, block_bytes, ..LineOptions::default() };
        let size = text.len() as u64;
        let mut borders: Vec<u64> = cuts.iter().map(|cut| cut.index(text.len() + 1) as u64).collect();
        borders.extend([0, size, size.min(near as u64)]);
        borders.sort_unstable();
        let (mut lines, mut consumed) = (Vec::new(), 0);
        for pair in borders.windows(2) {
            let mut reader = of_range(&text, pair[0]..pair[1], &options).unwrap();
            for line in all(&mut reader).unwrap() {
                prop_assert!((pair[0]..pair[1]).contains(&line.0));
                lines.push(line);
            }
            consumed += reader.consumed();
        }
        prop_assert_eq!(&lines, &want);
        prop_assert_eq!(consumed, size);

        let stream = |text: &[u8]| {
            LineRecordReader::of_stream(Cursor::new(text.to_vec()), "in".as_ref(), &options).unwrap()
        };
        let mut reader = stream(&text);
        prop_assert_eq!(&all(&mut reader).unwrap(), &want);
        prop_assert_eq!(reader.consumed(), size);
    }

    /// Many lines at once are those one by one, whatever the splits and the blocks.
    #[test]
    fn lines_together_are_those_one_by_one(
        text in texts(),
        end in prop_oneof![Just(b'\n'), Just(0)],
        strip_cr: bool,
        cuts in vec(any::<proptest::sample::Index>(), 0..6),
        block_bytes in prop_oneof![1_usize..20, 1_usize..5000],
        most in 0_u64..200,
    ) {
        let terminator = match end {
            0 => Terminator::Nul,
            _ => Terminator::Lf { strip_cr },
        };
        let options = LineOptions { terminator, block_bytes, ..LineOptions::default() };
        let size = text.len() as u64;
        let mut borders: Vec<u64> = cuts.iter().map(|cut| cut.index(text.len() + 1) as u64).collect();
        borders.extend([0, size]);
        borders.sort_unstable();
        let mut found = Vec::new();
        for pair in borders.windows(2) {
            let mut reader = of_range(&text, pair[0]..pair[1], &options).unwrap();
            while let Some(lines) = reader.next_lines(most).unwrap() {
                let ends = lines.iter().filter(|byte| **byte == end).count();
                prop_assert!(lines.len() as u64 <= most || ends <= 1);
                found.extend_from_slice(lines);
            }
            let mut single = of_range(&text, pair[0]..pair[1], &options).unwrap();
            let lines = all(&mut single).unwrap().len() as u64;
            prop_assert_eq!((reader.lines(), reader.consumed()), (lines, single.consumed()));
        }
        prop_assert_eq!(&found[..], text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&text));
    }

    /// Whether a line is too long does not depend on blocks, and on splits only in who says so.
    #[test]
    fn lines_beyond_the_limit_are_errors(
        text in texts(),
        terminator in terminators(),
        block_bytes in 1_usize..50,
        line_bytes_max in 0_usize..40,
        cut in any::<proptest::sample::Index>(),
    ) {
        let long = naive(&text, &terminator).into_iter().find(|line| line.1.len() > line_bytes_max);
        // Whole lines have their ends: of one that is as long as it may be without its CR, LF alone is looked for.
        let strips_cr = !matches!(terminator, Terminator::Lf { strip_cr: false });
        let options = LineOptions { terminator, block_bytes, line_bytes_max };
        let (size, cut) = (text.len() as u64, cut.index(text.len() + 1) as u64);
        let mut found = None;
        for range in [0..cut, cut..size] {
            let read = of_range(&text, range.clone(), &options).and_then(|mut reader| all(&mut reader));
            let together = of_range(&text, range, &options).and_then(|mut reader| {
                while reader.next_lines(u64::MAX)?.is_some() {}
                Ok(())
            });
            prop_assert!(together.is_err() == read.is_err() || strips_cr);
            if let Err(error) = read {
                found = found.or(Some(error));
            }
        }
        match (found, long) {
            (None, None) => {}
            (Some(error), Some((offset, _))) => {
                prop_assert_eq!(error.kind(), Kind::BadInput);
                let place = format!("(file /a, offset {offset})");
                prop_assert!(error.to_string().contains(&place), "{} {}", error, offset);
            }
            (found, long) => prop_assert!(false, "{found:?} {long:?}"),
        }
    }
}

#[test]
fn lines_of_a_compressed_file_are_those_of_its_text() {
    let text: Vec<u8> = (0..200_000)
        .flat_map(|i| format!("line {i}\n").into_bytes())
        .collect();
    let mut encoder = encoder(Codec::Zstd, Vec::new(), None).unwrap();
    encoder.write_all(&text).unwrap();
    let compressed = encoder.finish().unwrap();
    let read = |compressed: &[u8]| {
        let file = open(
            &stored(compressed),
            "/a".as_ref(),
            Caching::Cached,
            Coding::Detect,
        )?;
        all(&mut LineRecordReader::of_stream(
            file,
            "/a".as_ref(),
            &LineOptions::default(),
        )?)
    };
    assert!(read(&compressed).unwrap() == naive(&text, &Terminator::Lf { strip_cr: false }));
    let error = read(&compressed[..compressed.len() - 9])
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("cut short") && error.contains("file /a"),
        "{error}"
    );
}

#[test]
fn a_line_longer_than_its_split_is_passed_over_without_reading_it() {
    let text = [vec![b'x'; 1_000_000], b"\nend".to_vec()].concat();
    let options = LineOptions {
        block_bytes: 100,
        line_bytes_max: 10,
        ..LineOptions::default()
    };
    let mut reader = of_range(&text, 500..900, &options).unwrap();
    assert_eq!(all(&mut reader).unwrap(), []);
    assert_eq!(reader.consumed(), 0);
    let mut reader = of_range(&text, 999_000..1_000_004, &options).unwrap();
    assert_eq!(all(&mut reader).unwrap(), [(1_000_001, b"end".to_vec())]);
}

#[test]
fn options_and_files_that_cannot_be_are_errors() {
    let options = LineOptions {
        terminator: Terminator::Bytes(Vec::new()),
        ..LineOptions::default()
    };
    assert_eq!(
        of_range(b"a", 0..1, &options).unwrap_err().kind(),
        Kind::BadOption
    );
    let file = stored(b"abc").open("/a".as_ref(), Caching::Cached).unwrap();
    let mut reader =
        LineRecordReader::of_range(file, "/a".as_ref(), 10, 0..10, &LineOptions::default());
    let error = match &mut reader {
        Ok(reader) => all(reader).unwrap_err(),
        Err(error) => error.clone(),
    };
    assert_eq!(error.kind(), Kind::InputChanged);
}

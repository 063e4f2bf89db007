//! Records of several lines: splits that begin where every n-th line of a file does.
//!
//! ```text
//!   lines of a file    0 1 2 3 4 5 6 7 8 9 10 11 12    records of 4 lines begin at 0, 4, 8, 12
//!   cut anywhere      |---------|---|-----------|      5, 2 and 6 lines begin in these
//!   moved             |---------------|---------|      no record begins in the second: it goes to the first
//! ```
//!
//! The rule that must hold: the records of the splits of a file, whatever they are, are those of one split. Where a record
//! begins is known when all lines before it have been counted, so a file that is cut is read twice.

use std::thread::available_parallelism;

use super::lines::LineOptions;
use super::text::{TextSplit, open_lines};
use gristmill_base::error::{Error, Result};
use gristmill_storage::input::FileRange;
use gristmill_storage::io::at_once::at_once;
use gristmill_storage::stores::Stores;

/// Bytes that are read at once to find where a record begins: most begin some lines behind the border.
const LOOK_BYTES: usize = 64 << 10;

/// Moves the borders of splits to where every `lines`-th line of their file begins. A split in which none does is left out.
///
/// # Errors
/// A file that is cut cannot be read, or has a line that is too long.
///
/// ```
/// use gristmill_storage::{LocalDisk as _, OutputStore as _};
/// use gristmill_tasks::split::several_lines::at_every_nth_line;
/// use gristmill_storage::input::{FileRange, SplitFile};
/// use gristmill_storage::{Caching, memory::Memory, stores::Stores};
/// let store = Memory::with_room_for(100);
/// store.create("/a".as_ref(), 12, Caching::Cached)?.write_at(b"0\n1\n2\n3\n4\n5\n", 0)?;
/// let file = SplitFile { path: "/a".into(), bytes: 12, codec: None, version: None };
/// let split = |offset| vec![FileRange { file: file.clone(), offset, bytes: 6 }];
/// let store = Stores::new(std::sync::Arc::new(store));
/// let moved = at_every_nth_line(&store, vec![split(0), split(6)], 2)?;
/// assert_eq!(moved.iter().map(|split| split[0].range()).collect::<Vec<_>>(), [0..8, 8..12]);
/// # Ok::<(), gristmill_base::Error>(())
/// ```
pub fn at_every_nth_line(
    stores: &Stores,
    splits: Vec<TextSplit>,
    lines: u64,
) -> Result<Vec<TextSplit>> {
    let threads = available_parallelism().map_or(1, usize::from);
    // Only whole files share a split: of others, its only piece is counted.
    let pieces: Vec<_> = splits.iter().filter_map(|split| split.first()).collect();
    let counts = at_once(&pieces, threads, |piece| lines_before_next(stores, piece))?;
    let mut before = 0;
    let numbered = pieces.into_iter().zip(counts).map(|(piece, count)| {
        if piece.offset == 0 {
            before = 0;
        }
        before += count;
        (piece, before - count)
    });
    let numbered: Vec<_> = numbered.collect();
    let starts = at_once(&numbered, threads, |(piece, first)| {
        record_start(stores, piece, *first, lines.max(1))
    })?;
    Ok(moved(splits, starts))
}

/// How many lines begin in a piece, if another piece of its file comes behind it.
fn lines_before_next(stores: &Stores, piece: &FileRange) -> Result<u64> {
    if piece.range().end == piece.file.bytes {
        return Ok(0);
    }
    let mut reader = open_lines(stores, piece, &LineOptions::default())?;
    while reader.next_lines(u64::MAX)?.is_some() {
        if stores.requests().stop.is_set() {
            return Err(Error::cancelled());
        }
    }
    Ok(reader.lines())
}

/// Where the first record in `piece` begins, whose first line has the number `first` in its file; without one, where it ends.
fn record_start(stores: &Stores, piece: &FileRange, first: u64, lines: u64) -> Result<u64> {
    if piece.offset == 0 {
        return Ok(0);
    }
    let options = LineOptions {
        block_bytes: LOOK_BYTES,
        ..LineOptions::default()
    };
    let mut reader = open_lines(stores, piece, &options)?;
    for _ in first..first.next_multiple_of(lines) {
        if reader.next_line()?.is_none() {
            break;
        }
    }
    let line = reader.next_line()?;
    Ok(line.map_or(piece.range().end, |line| line.offset))
}

/// The splits, whose first pieces begin at `starts`: what is before goes to the split before.
pub fn moved(splits: Vec<TextSplit>, starts: Vec<u64>) -> Vec<TextSplit> {
    let mut moved: Vec<TextSplit> = Vec::with_capacity(splits.len());
    for (mut split, start) in splits.into_iter().zip(starts) {
        let Some(piece) = split.first_mut() else {
            continue;
        };
        // A row may be longer than a piece: all of that goes to the one before.
        let passed = (start - piece.offset).min(piece.bytes);
        piece.offset += passed;
        piece.bytes -= passed;
        let is_empty = piece.bytes == 0;
        if passed > 0
            && let Some(before) = moved.last_mut().and_then(|split| split.last_mut())
        {
            before.bytes += passed;
        }
        if !is_empty {
            moved.push(split);
        }
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split::input_files;
    use crate::split::text::{TextSplits, text_splits};
    use gristmill_storage::input::SplitFile;
    use gristmill_storage::location::Location;
    use gristmill_storage::memory::Memory;
    use gristmill_storage::{Caching, OutputStore as _};
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;
    use std::sync::Arc;

    fn store_with(files: &[String]) -> (Arc<Stores>, Vec<Location>) {
        let store = Memory::with_room_for(1 << 20);
        let mut names = Vec::new();
        for (number, text) in files.iter().enumerate() {
            let name = format!("/{number}");
            let file = store.create(name.as_ref(), text.len() as u64, Caching::Cached);
            file.unwrap().write_at(text.as_bytes(), 0).unwrap();
            names.push(name.as_str().into());
        }
        (Stores::new(Arc::new(store)), names)
    }

    /// The records of `lines` lines in the splits, with their files and offsets.
    fn records(stores: &Stores, splits: &[TextSplit], lines: u64) -> Vec<(String, u64, Vec<u8>)> {
        let mut found: Vec<(String, u64, Vec<u8>)> = Vec::new();
        for piece in splits.iter().flatten() {
            let mut reader = open_lines(stores, piece, &LineOptions::default()).unwrap();
            while let Some(line) = reader.next_line().unwrap() {
                let bytes = [line.bytes, b"\n"].concat();
                let offset = line.offset;
                match found.last_mut() {
                    Some(last) if !(reader.lines() - 1).is_multiple_of(lines) => {
                        last.2.extend(bytes);
                    }
                    _ => found.push((piece.file.path.to_string(), offset, bytes)),
                }
            }
        }
        found
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40, rng_seed: RngSeed::Fixed(11), ..ProptestConfig::default() })]

        #[test]
        fn records_are_those_of_one_split(
            files in vec("(\u{feff})?([ab\r]{0,4}\n){0,12}[ab]{0,3}", 1..4), lines in 1_u64..6, combine: bool,
        ) {
            let (stores, names) = store_with(&files);
            let inputs = input_files(&stores, &names).unwrap();
            let split = |split_max, cut| {
                let how = TextSplits { split_min: 0, split_max, cut, combine, stride: 1 };
                let splits = text_splits(&stores, &inputs, &how).unwrap();
                at_every_nth_line(&stores, splits, lines).unwrap()
            };
            let whole = records(&stores, &split(u64::MAX, false), lines);
            for split_max in 1..64 {
                let splits = split(split_max, true);
                prop_assert_eq!(&records(&stores, &splits, lines), &whole, "split_max {}", split_max);
                let bytes: u64 = splits.iter().flatten().map(|piece| piece.bytes).sum();
                prop_assert_eq!(bytes, files.iter().map(|file| file.len() as u64).sum::<u64>());
            }
        }
    }

    #[test]
    fn pieces_without_a_beginning_go_to_the_one_before() {
        let file = SplitFile {
            path: "/a".into(),
            bytes: 40,
            codec: None,
            version: None,
        };
        let piece = |offset| FileRange {
            file: file.clone(),
            offset,
            bytes: 10,
        };
        let splits = [0, 10, 20, 30].map(|offset| vec![piece(offset)]);
        for (starts, wanted) in [
            (vec![0, 33, 33, 33], vec![0..33, 33..40]),
            (vec![0, 40, 40, 40], vec![0..40]),
            (vec![0, 12, 30, 30], vec![0..12, 12..30, 30..40]),
        ] {
            let moved = moved(splits.to_vec(), starts);
            let found: Vec<_> = moved.iter().map(|split| split[0].range()).collect();
            assert_eq!(found, wanted);
        }
    }
}

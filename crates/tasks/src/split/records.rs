//! Moves the borders of splits to record boundaries. Files do not say where their records begin, so this reads from a border on
//! until it finds the first record at or behind it.

use std::ops::Range;

use super::Split;
use gristmill_base::error::Result;
use gristmill_base::record::shape::{Shape, ShapeKind};
use gristmill_storage::input::{InputFile, InputRange};
use gristmill_storage::stores::Stores;
use gristmill_storage::{Caching, ReadFile};

/// Bytes of the first read for the end of a record; each further read doubles them, up to 4 MiB.
const LOOK_BYTES: usize = 4096;

/// Where the first record begins at or behind `offset`, or the file's end.
pub fn record_start<S: Shape>(
    shape: S,
    file: &dyn ReadFile,
    file_bytes: u64,
    offset: u64,
) -> Result<u64> {
    if offset == 0 || offset >= file_bytes {
        return Ok(offset.min(file_bytes));
    }
    if let ShapeKind::Fixed(fixed) = shape.kind() {
        return Ok(offset.next_multiple_of(fixed.record_bytes as u64));
    }
    // The byte before `offset` decides whether a record begins right at it.
    let (mut at, mut buffer) = (offset - 1, vec![0; LOOK_BYTES]);
    loop {
        let read = file.read_at(&mut buffer, at)?;
        if let Some(length) = shape.length(&buffer[..read]) {
            return Ok(at + length as u64);
        }
        if read < buffer.len() {
            return Ok(file_bytes);
        }
        at += read as u64;
        let bytes = (2 * buffer.len()).min(4 << 20);
        buffer.resize(bytes, 0);
    }
}

/// Moves the borders of splits to where records begin.
///
/// ```
/// use gristmill_storage::{LocalDisk as _, OutputStore as _};
/// use gristmill_base::record::shape::LineShape;
/// use gristmill_tasks::split::{input_files, records::at_records, splits};
/// use gristmill_storage::{Caching, memory::Memory, stores::Stores};
/// let store = Memory::with_room_for(100);
/// store.create("/a".as_ref(), 12, Caching::Cached)?.write_at(b"one\ntwo\nfour", 0)?;
/// let store = Stores::new(std::sync::Arc::new(store));
/// let files = input_files(&store, &["/a".into()])?;
/// let cut = at_records(LineShape { descending: false }, &store, &files, splits(&[12], 5, 1))?;
/// assert_eq!(cut.iter().map(|split| split[0].bytes).collect::<Vec<_>>(), [8, 4]);
/// # Ok::<(), gristmill_base::Error>(())
/// ```
pub fn at_records<S: Shape>(
    shape: S,
    store: &Stores,
    files: &[InputFile],
    splits: Vec<Split>,
) -> Result<Vec<Split>> {
    // The last search: any offset in this range has the record at its end, so that a long record is searched once.
    let mut found: Option<(usize, Range<u64>)> = None;
    moved(splits, |piece| {
        let input @ InputFile { stat, .. } = &files[piece.file];
        let end = piece.offset + piece.bytes;
        if piece.offset == 0 && end == stat.bytes {
            return Ok((0, end));
        }
        let file = store.open_input(input, Caching::Cached)?;
        let mut find = |offset| match &found {
            Some((of, around))
                if *of == piece.file && (around.start..=around.end).contains(&offset) =>
            {
                Ok(around.end)
            }
            _ => {
                let start = record_start(shape, &*file, stat.bytes, offset)?;
                found = Some((piece.file, offset..start));
                Ok(start)
            }
        };
        Ok((find(piece.offset)?, find(end)?))
    })
}

/// Moves the pieces of splits to where `borders` says that they begin and end. Leaves out what is empty then.
///
/// # Errors
/// Those of `borders`.
pub fn moved(
    splits: Vec<Split>,
    mut borders: impl FnMut(&InputRange) -> Result<(u64, u64)>,
) -> Result<Vec<Split>> {
    let mut cut = Vec::with_capacity(splits.len());
    for split in splits {
        let mut moved = Split::new();
        for piece in split {
            let (start, end) = borders(&piece)?;
            if start < end {
                moved.push(InputRange {
                    file: piece.file,
                    offset: start,
                    bytes: end - start,
                });
            }
        }
        if !moved.is_empty() {
            cut.push(moved);
        }
    }
    Ok(cut)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split::{input_files, splits};
    use gristmill_base::record::shape::{Fixed, LineShape};
    use gristmill_storage::OutputStore as _;
    use gristmill_storage::location::Location;
    use gristmill_storage::memory::Memory;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::sync::Arc;

    const LINES: LineShape = LineShape { descending: false };

    fn store_with(files: &[Vec<u8>]) -> (Arc<Stores>, Vec<InputFile>) {
        let store = Memory::with_room_for(1 << 30);
        let mut names: Vec<Location> = Vec::new();
        for (number, bytes) in files.iter().enumerate() {
            let name = format!("/{number}");
            names.push(name.as_str().into());
            let file = store.create(name.as_ref(), bytes.len() as u64, Caching::Cached);
            file.unwrap().write_at(bytes, 0).unwrap();
        }
        let stores = Stores::new(Arc::new(store));
        let files = input_files(&stores, &names).unwrap();
        (stores, files)
    }

    /// Lines around the lengths that are looked at, with or without an end to the last.
    fn file() -> impl Strategy<Value = Vec<u8>> {
        let length =
            prop_oneof![9 => 0_usize..20, 3 => 4_090_usize..4_100, 1 => 8_000_usize..30_000];
        (vec(length, 0..20), any::<bool>()).prop_map(|(lengths, ended)| {
            let line = |length| [vec![b'x'; length], b"\n".to_vec()].concat();
            let mut file: Vec<u8> = lengths.into_iter().flat_map(line).collect();
            if !ended {
                file.pop();
            }
            file
        })
    }

    proptest! {
        #[test]
        fn a_line_begins_behind_each_newline(file in file()) {
            let (store, _) = store_with(std::slice::from_ref(&file));
            let opened = store.open(&"/0".into(), Caching::Cached).unwrap();
            let bytes = file.len() as u64;
            let mut want = bytes;
            for offset in (0..=file.len()).rev() {
                if offset == 0 || offset < file.len() && file[offset - 1] == b'\n' {
                    want = offset as u64;
                }
                if offset % 37 == 0 || offset + 50 > file.len() || want == offset as u64 {
                    let start = record_start(LINES, &*opened, bytes, offset as u64).unwrap();
                    prop_assert_eq!(start, want, "{}", offset);
                }
            }
        }

        /// Moved splits hold every byte once, in order, and end where lines do.
        #[test]
        fn moved_splits_tile_the_input(files in vec(file(), 1..5), target in 1_u64..20_000) {
            let (store, inputs) = store_with(&files);
            let sizes: Vec<u64> = files.iter().map(|file| file.len() as u64).collect();
            let cut = at_records(LINES, &store, &inputs, splits(&sizes, target, 1)).unwrap();
            prop_assert!(cut.iter().all(|split| !split.is_empty()));
            let mut pieces = cut.concat().into_iter();
            for (number, file) in files.iter().enumerate() {
                let mut at = 0;
                while at < file.len() as u64 {
                    let piece = pieces.next().unwrap();
                    prop_assert_eq!((piece.file, piece.offset), (number, at));
                    at += piece.bytes;
                    prop_assert!(at == file.len() as u64 || file[at as usize - 1] == b'\n');
                }
            }
            prop_assert_eq!(pieces.next(), None);
        }
    }

    #[test]
    fn records_of_one_length_begin_at_its_multiples() {
        let (store, _) = store_with(&[vec![0; 30]]);
        let file = store.open(&"/0".into(), Caching::Cached).unwrap();
        let shape = Fixed {
            record_bytes: 10,
            key_bytes: 1,
            descending: false,
        };
        let start = |offset| record_start(shape, &*file, 30, offset).unwrap();
        assert_eq!(
            [0, 1, 10, 11, 20, 21, 30, 99].map(start),
            [0, 10, 10, 20, 20, 30, 30, 30]
        );
    }
}

//! Finding records in files that do not say where they begin: the first record behind an offset.

use super::Split;
use crate::error::Result;
use crate::record::shape::{Shape, ShapeKind};
use crate::storage::input::{InputFile, Piece};
use crate::storage::{Caching, ReadFile, Store};

/// Bytes that are read at once to find the end of a record; doubled while it is not found.
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
    // The byte before decides whether a record begins right here.
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
/// use gristmill_engine::record::shape::Lines;
/// use gristmill_engine::split::{input_files, records::at_records, splits};
/// use gristmill_engine::storage::{Caching, Store, memory::Memory};
/// let store = Memory::with_room_for(100);
/// store.create("/a".as_ref(), 12, Caching::Cached)?.write_at(b"one\ntwo\nfour", 0)?;
/// let files = input_files(&store, &["/a".into()])?;
/// let cut = at_records(Lines { descending: false }, &store, &files, splits(&[12], 5, 1))?;
/// assert_eq!(cut.iter().map(|split| split[0].bytes).collect::<Vec<_>>(), [8, 4]);
/// # Ok::<(), gristmill_engine::Error>(())
/// ```
pub fn at_records<S: Shape>(
    shape: S,
    store: &dyn Store,
    files: &[InputFile],
    splits: Vec<Split>,
) -> Result<Vec<Split>> {
    let mut cut = Vec::with_capacity(splits.len());
    for split in splits {
        let mut moved = Split::new();
        for piece in split {
            let InputFile { path, stat } = &files[piece.file];
            let end = piece.offset + piece.bytes;
            let whole = piece.offset == 0 && end == stat.bytes;
            let (start, end) = if whole {
                (0, end)
            } else {
                let file = store.open(path, Caching::Cached)?;
                let find = |offset| record_start(shape, &*file, stat.bytes, offset);
                (find(piece.offset)?, find(end)?)
            };
            if start < end {
                moved.push(Piece {
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

//! Splits of inputs that are read from front to back: text, records of one length, whole files; compressed or not.
//!
//! ```text
//!   plain, large         | split | split | split .. |     cut anywhere: a record belongs to where it begins
//!   compressed, or whole |          split           |     one
//!   small                | a | b | c |                    put together, if that is asked for
//! ```
//!
//! Splits are a function of the files' sizes and the options alone. They tile every file: the bytes that their readers
//! consume, all together, are the bytes of the files.

use super::lines::{LineOptions, LineRecordReader};
use super::{asked_at_once, check_length};
use gristmill_base::error::Result;
use gristmill_storage::Caching;
use gristmill_storage::codec::{self, Codec, Coding, SNIFF_BYTES, detect};
use gristmill_storage::input::{FileRange, InputFile, SplitFile};
use gristmill_storage::io::at_once::at_once;
use gristmill_storage::io::window::{BEHIND_BYTES, in_order};
use gristmill_storage::stores::Stores;

/// What one task reads.
pub type TextSplit = Vec<FileRange>;

/// How files are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextSplits {
    /// Splits are at least so long, where the file is.
    pub split_min: u64,
    /// And at most so long.
    pub split_max: u64,
    /// Whether a file may be cut at all.
    pub cut: bool,
    /// Whether small files share a split.
    pub combine: bool,
    /// Splits begin at multiples of this: the length of a record, where all have one.
    pub stride: u64,
}

impl TextSplits {
    /// Of lines: about so many bytes each, small files together.
    pub fn of_lines(bytes: u64) -> Self {
        TextSplits {
            split_min: bytes,
            split_max: bytes,
            cut: true,
            combine: true,
            stride: 1,
        }
    }
}

/// Splits of an input: about so many, each within the bounds below.
const SPLITS_WANTED: u64 = 32;
const SPLIT_MIN_BYTES: u64 = 1 << 20;
const SPLIT_MAX_BYTES: u64 = 64 << 20;

/// What a reader of lines looks at before its range, for a delimiter that lies across.
const BEFORE_BYTES: u64 = 4 << 10;

/// The length of splits of so much input, within what the user allows: `max(min, min(max, good))`.
///
/// ```
/// use gristmill_tasks::split::text::split_bytes;
/// assert_eq!(split_bytes(2 << 20, 0, u64::MAX), 1 << 20);
/// assert_eq!(split_bytes(1 << 30, 0, u64::MAX), 32 << 20);
/// assert_eq!(split_bytes(1 << 40, 0, u64::MAX), 64 << 20);
/// assert_eq!(split_bytes(1 << 40, 0, 1000), 1000);
/// assert_eq!(split_bytes(1 << 20, 1 << 30, 1000), 1 << 30);
/// ```
pub fn split_bytes(input_bytes: u64, split_min: u64, split_max: u64) -> u64 {
    let good = (input_bytes / SPLITS_WANTED).clamp(SPLIT_MIN_BYTES, SPLIT_MAX_BYTES);
    split_min.max(split_max.min(good)).max(1)
}

/// Cuts `files` into splits. Looks at the beginning of each, for how it is compressed; but not of a far file that is not
/// cut: whoever reads it looks ([`FileRange::coding`]).
///
/// # Errors
/// A file that is looked at cannot be read, or is not compressed as its name says.
///
/// ```
/// use gristmill_storage::{LocalDisk as _, OutputStore as _};
/// use gristmill_tasks::split::{input_files, text::{TextSplits, text_splits}};
/// use gristmill_storage::{Caching, memory::Memory, stores::Stores};
/// let store = Memory::with_room_for(1000);
/// for (name, bytes) in [("/a", 25), ("/b", 3), ("/c", 4)] {
///     store.create(name.as_ref(), bytes, Caching::Cached)?.write_at(&vec![b'.'; bytes as usize], 0)?;
/// }
/// let store = Stores::new(std::sync::Arc::new(store));
/// let files = input_files(&store, &["/a".into(), "/b".into(), "/c".into()])?;
/// let how = TextSplits { split_min: 0, split_max: 10, cut: true, combine: true, stride: 1 };
/// let splits = text_splits(&store, &files, &how)?;
/// let bytes = |range: &gristmill_storage::input::FileRange| (range.offset, range.bytes);
/// let shown: Vec<Vec<_>> = splits.iter().map(|split| split.iter().map(bytes).collect()).collect();
/// assert_eq!(shown, [vec![(0, 10)], vec![(10, 10)], vec![(20, 5)], vec![(0, 3), (0, 4)]]);
/// # Ok::<(), gristmill_base::Error>(())
/// ```
pub fn text_splits(
    store: &Stores,
    files: &[InputFile],
    how: &TextSplits,
) -> Result<Vec<TextSplit>> {
    let input_bytes = files.iter().map(|file| file.stat.bytes).sum();
    let target = split_bytes(input_bytes, how.split_min, how.split_max);
    let step = (target / how.stride.max(1)).max(1) * how.stride.max(1);
    let slop = step + step / 10;
    let mut splits = Vec::new();
    let (mut shared, mut shared_bytes) = (TextSplit::new(), 0);
    let most = files.first().map_or(1, |file| asked_at_once(&file.path));
    let is_small = |bytes| how.combine && bytes < step;
    let codecs = at_once(files, most, |file| {
        check_length(store, &file.path, file.stat.bytes)?;
        match file.stat.bytes {
            0 => Ok(None),
            bytes if !how.cut || is_small(bytes) || bytes <= slop => codec_of_whole(store, file),
            _ => codec_of(store, file),
        }
    })?;
    for (file, codec) in files.iter().zip(codecs) {
        let bytes = file.stat.bytes;
        if bytes == 0 {
            continue;
        }
        let piece = |offset, bytes| FileRange {
            file: SplitFile::found(file, codec),
            offset,
            bytes,
        };
        let small = is_small(bytes);
        if !shared.is_empty() && (!small || shared_bytes + bytes > slop) {
            splits.push(std::mem::take(&mut shared));
            shared_bytes = 0;
        }
        if small {
            shared.push(piece(0, bytes));
            shared_bytes += bytes;
        } else if codec.is_some() || !how.cut {
            splits.push(vec![piece(0, bytes)]);
        } else {
            let mut start = 0;
            while start < bytes {
                let left = bytes - start;
                let taken = if left <= slop { left } else { step };
                splits.push(vec![piece(start, taken)]);
                start += taken;
            }
        }
    }
    if !shared.is_empty() {
        splits.push(shared);
    }
    Ok(splits)
}

/// Opens the lines of a piece, of the version that was found, decoded where the file is compressed.
///
/// # Errors
/// The file cannot be read, is not compressed as its name says, or is not what it was.
///
/// ```
/// use gristmill_tasks::split::lines::LineOptions;
/// use gristmill_tasks::split::text::open_lines;
/// use gristmill_storage::input::{FileRange, SplitFile};
/// use gristmill_storage::{Caching, OutputStore, memory::Memory, stores::Stores};
/// let store = Memory::with_room_for(1 << 20);
/// store.create("/text".as_ref(), 4, Caching::Cached)?.write_at(b"a\nb\n", 0)?;
/// let file = SplitFile { path: "/text".into(), bytes: 4, codec: None, version: None };
/// let range = FileRange { file, offset: 2, bytes: 2 };
/// let store = Stores::new(std::sync::Arc::new(store));
/// let mut lines = open_lines(&store, &range, &LineOptions::default())?;
/// assert_eq!(lines.next_line()?.map(|line| (line.bytes, line.offset)), Some((b"b".as_slice(), 2)));
/// # Ok::<(), gristmill_base::Error>(())
/// ```
pub fn open_lines(
    stores: &Stores,
    piece: &FileRange,
    options: &LineOptions,
) -> Result<LineRecordReader> {
    let (store, path) = stores.resolve(&piece.file.path)?;
    let file = piece.file.open(store, Caching::Cached)?;
    match piece.coding() {
        Coding::Plain => {
            let range = piece.range();
            let read = range.start.saturating_sub(BEFORE_BYTES)..range.end + BEHIND_BYTES;
            LineRecordReader::of_range(in_order(file, read), path, piece.file.bytes, range, options)
        }
        coding => {
            let reader = codec::open_file(file, path, coding)?;
            let (is_decoded, fetched) = (reader.codec().is_some(), reader.fetched_counter());
            let mut lines = LineRecordReader::of_stream(reader, path, options)?;
            (lines.is_decoded, lines.fetched) = (is_decoded, fetched);
            Ok(lines)
        }
    }
}

/// How a file is compressed, by its name and its first bytes.
///
/// # Errors
/// It cannot be read, or is not compressed as its name says.
pub fn codec_of(stores: &Stores, file: &InputFile) -> Result<Option<Codec>> {
    let mut first = vec![0; SNIFF_BYTES];
    let opened = stores.open_input(file, Caching::Cached)?;
    let read = opened.read_at(&mut first, 0)?;
    detect(file.path.as_typed(), &first[..read])
}

/// How a file that is not cut is compressed: of a far one, as far as its name says, so that no request is sent for it.
///
/// # Errors
/// As of [`codec_of`].
pub fn codec_of_whole(stores: &Stores, file: &InputFile) -> Result<Option<Codec>> {
    if file.path.is_remote() {
        return Ok(Codec::by_suffix(file.path.as_typed()));
    }
    codec_of(stores, file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split::input_files;
    use std::path::PathBuf;

    use gristmill_storage::OutputStore as _;
    use gristmill_storage::memory::Memory;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn splits_tile_every_file(
            sizes in proptest::collection::vec(0_u64..3000, 0..10),
            split_min in 0_u64..500,
            split_max in 1_u64..5000,
            cut in any::<bool>(),
            combine in any::<bool>(),
            stride in prop_oneof![Just(1_u64), 2_u64..200],
        ) {
            let store = Memory::with_room_for(1 << 20);
            let mut paths = Vec::new();
            for (number, bytes) in sizes.iter().enumerate() {
                let path = PathBuf::from(format!("/{number:02}"));
                let file = store.create(&path, *bytes, Caching::Cached).unwrap();
                file.write_at(&vec![b'.'; *bytes as usize], 0).unwrap();
                paths.push(path);
            }
            let names: Vec<_> = paths.iter().map(|path| path.as_path().into()).collect();
            let store = Stores::new(std::sync::Arc::new(store));
            let files = input_files(&store, &names).unwrap();
            let how = TextSplits { split_min, split_max, cut, combine, stride };
            let splits = text_splits(&store, &files, &how).unwrap();
            let mut next = vec![0; sizes.len()];
            for piece in splits.iter().flatten() {
                let number = paths.iter().position(|path| *path == piece.file.path.as_typed()).unwrap();
                prop_assert_eq!(piece.offset, next[number]);
                prop_assert!(piece.bytes > 0 && piece.offset % stride == 0);
                prop_assert!(cut || piece.bytes == piece.file.bytes);
                next[number] += piece.bytes;
            }
            prop_assert_eq!(next, sizes);
            prop_assert!(splits.iter().all(|split| !split.is_empty() && (combine || split.len() == 1)));
        }
    }
}

//! Splits as Hadoop makes them, so that the parts of a job without a reduce are the same there and here.
//!
//! ```text
//!   FileInputFormat      max(min, min(all bytes / maps, block)), with 10 % slop for the last of a file
//!   NLineInputFormat     n lines each
//!   CombineFileInput     pieces of files up to a maximum; without one, everything is one split
//! ```
//!
//! Tasks are numbered by the size of their splits, the largest first; of equal ones, in input order.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::json;

use gristmill_base::error::Result;
use gristmill_storage::input::{FileRange, InputFile, SplitFile};
use gristmill_storage::io::at_once::at_once;
use gristmill_storage::lines::{Ends, Lines};
use gristmill_storage::local::no_input;
use gristmill_storage::location::Location;
use gristmill_storage::stores::Stores;
use gristmill_storage::version::FoundVersion;
use gristmill_tasks::hadoop::script::input::{FileSource, InputFormat};
use gristmill_tasks::hadoop::value::WritableClass;
use gristmill_tasks::split::text::{codec_of, codec_of_whole};
use gristmill_tasks::split::{asked_at_once, check_length};
use gristmill_tasks::task::{SplitData, UserTaskSplit};

/// What to split, and how.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SplitRequest {
    /// The files, in input order.
    pub files: Vec<Location>,
    /// What listings said of some of them, by their numbers: the others are looked at.
    #[serde(default)]
    pub found: BTreeMap<usize, ListedFile>,
    /// How they are read.
    pub format: InputFormat,
    /// How many splits are hoped for.
    pub maps: u64,
    /// Least bytes of a split.
    pub min_bytes: u64,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Lines of a split.
    #[serde(default)]
    pub lines: Option<u64>,
    /// Small files together: the most bytes of a split, 0 for any number.
    #[serde(default)]
    pub combine: Option<u64>,
}

/// What a listing said of a file: its length, and its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct ListedFile(u64, FoundVersion);

/// The splits of a job.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Splits {
    /// In the order of the tasks.
    pub splits: Vec<UserTaskSplit>,
    /// The classes of the input's keys and values.
    pub classes: (WritableClass, WritableClass),
}

/// A split on its way: its pieces and bytes of input.
#[derive(Default)]
struct SplitBuilder {
    pieces: Vec<FileRange>,
    bytes: u64,
}

/// Cuts the input.
///
/// ```
/// use gristmill_engine::storage::{LocalDisk as _, OutputStore as _};
/// use gristmill_engine::plan::streaming::{SplitRequest, split};
/// use gristmill_engine::storage::{Caching, memory::Memory, stores::Stores};
/// let store = Memory::with_room_for(1000);
/// store.create("/a".as_ref(), 100, Caching::Cached)?;
/// let request: SplitRequest = serde_json::from_str(
///     r#"{"files": ["/a"], "format": {"text": {"delimiter": null}}, "maps": 2, "min_bytes": 1, "block_bytes": 1000}"#,
/// )?;
/// let stores = Stores::new(std::sync::Arc::new(store));
/// assert_eq!(split(&stores, &request)?.splits.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn split(store: &Stores, request: &SplitRequest) -> Result<Splits> {
    let most = request.files.first().map_or(1, asked_at_once);
    let numbered: Vec<_> = request.files.iter().enumerate().collect();
    let found = at_once(&numbered, most, |(number, path)| {
        found(store, request, *number, path)
    })?;
    let size = split_bytes(request, found.iter().map(|file| file.stat.bytes).sum());
    let files = at_once(&found, most, |file| {
        let bytes = file.stat.bytes;
        if bytes == 0 {
            check_length(store, &file.path, bytes)?; // one that ends sooner than it says is read to its end
        }
        let codec = match (bytes, &request.format) {
            (0, _) => None, // a file without a byte holds no record, whatever its name
            (_, InputFormat::Sequence { .. }) => None, // compressed within, if at all
            _ if is_cut(request, bytes, size) => codec_of(store, file)?,
            _ => codec_of_whole(store, file)?,
        };
        Ok(FileRange {
            file: SplitFile::found(file, codec),
            offset: 0,
            bytes,
        })
    })?;
    let mut made = match (request.lines, request.combine) {
        (Some(lines), _) => by_lines(store, &files, lines.max(1))?,
        (_, Some(most)) => combined(&files, most),
        _ => by_size(request, &files),
    };
    made.sort_by_key(|split| {
        std::cmp::Reverse(split.pieces.iter().map(|piece| piece.bytes).sum::<u64>())
    });
    let splits = made.into_iter().map(|split| {
        Ok(UserTaskSplit {
            bytes: split.bytes,
            what: SplitData::of(&json!({ "pieces": split.pieces }))?,
        })
    });
    let splits = splits.collect::<Result<_>>()?;
    let classes = match files.first() {
        Some(first) => request
            .format
            .classes(store.resolve(&first.file.path)?.0, Some(first))?,
        None => request.format.classes(&**store.disk(), None)?,
    };
    Ok(Splits { splits, classes })
}

/// A file as a listing found it, or as it is.
fn found(
    store: &Stores,
    request: &SplitRequest,
    number: usize,
    path: &Location,
) -> Result<InputFile> {
    let listed = request.found.get(&number);
    let stat = match listed {
        Some(ListedFile(bytes, version)) => version.stat(*bytes),
        None => store.stat(path)?.ok_or_else(|| no_input(path.as_typed()))?,
    };
    let path = path.clone();
    Ok(InputFile { path, stat })
}

/// Bytes of a split of files that are cut by their size.
fn split_bytes(request: &SplitRequest, all: u64) -> u64 {
    let goal = all / request.maps.max(1);
    request.min_bytes.max(goal.min(request.block_bytes)).max(1)
}

/// Whether so many bytes are more than one split of `size`: "more than 1.1 times", in whole numbers, as the quotient of
/// two doubles is in Hadoop.
fn is_longer(bytes: u64, size: u64) -> bool {
    bytes as f64 / size as f64 > 1.1
}

/// Whether a plain file of so many bytes is cut, or read to be cut.
fn is_cut(request: &SplitRequest, bytes: u64, size: u64) -> bool {
    match (request.lines, request.combine) {
        (Some(_), _) => true,
        (_, Some(most)) => most > 0 && bytes > most,
        _ => request.format.can_cut() && is_longer(bytes, size),
    }
}

fn by_size(request: &SplitRequest, files: &[FileRange]) -> Vec<SplitBuilder> {
    let size = split_bytes(request, files.iter().map(|whole| whole.bytes).sum());
    let mut made = Vec::new();
    for whole in files {
        let mut start = 0;
        if whole.file.codec.is_none() && request.format.can_cut() {
            while is_longer(whole.bytes - start, size) {
                made.push(of_piece(FileRange {
                    offset: start,
                    bytes: size,
                    ..whole.clone()
                }));
                start += size;
            }
        }
        if whole.bytes > start || whole.bytes == 0 {
            made.push(of_piece(FileRange {
                offset: start,
                bytes: whole.bytes - start,
                ..whole.clone()
            }));
        }
    }
    made
}

fn of_piece(piece: FileRange) -> SplitBuilder {
    SplitBuilder {
        bytes: piece.bytes,
        pieces: vec![piece],
    }
}

/// A split of lines begins one byte before its first, whose end the reader looks for; the first one ends a byte early.
fn by_lines(store: &Stores, files: &[FileRange], lines_each: u64) -> Result<Vec<SplitBuilder>> {
    let mut made = Vec::new();
    for whole in files {
        if whole.file.codec.is_some() {
            made.push(of_piece(whole.clone()));
            continue;
        }
        let (store, _) = store.resolve(&whole.file.path)?;
        let source = FileSource::open(store, whole, 0)?;
        let mut lines = Lines::new(source, Ends::Hadoop);
        let (mut begin, mut length, mut count) = (0, 0, 0);
        let mut add = |begin: u64, length: u64| {
            let (start, stated) = if begin == 0 {
                (0, length - 1)
            } else {
                (begin - 1, length)
            };
            let pieces = vec![FileRange {
                offset: start,
                bytes: stated,
                ..whole.clone()
            }];
            made.push(SplitBuilder {
                pieces,
                bytes: length,
            });
        };
        while let Some(bytes) = lines.advance()? {
            length += bytes as u64;
            count += 1;
            if count == lines_each {
                add(begin, length);
                begin += length;
                (length, count) = (0, 0);
            }
        }
        if count > 0 {
            add(begin, length);
        }
    }
    Ok(made)
}

fn combined(files: &[FileRange], most: u64) -> Vec<SplitBuilder> {
    let mut made = Vec::new();
    let mut present = SplitBuilder::default();
    for whole in files.iter().filter(|whole| whole.bytes > 0) {
        let mut start = 0;
        while start < whole.bytes {
            let left = whole.bytes - start;
            let length = match most {
                0 => left,
                _ if whole.file.codec.is_some() => left,
                most if left > most && left < 2 * most => left / 2,
                most => left.min(most),
            };
            present.pieces.push(FileRange {
                offset: start,
                bytes: length,
                ..whole.clone()
            });
            present.bytes += length;
            start += length;
            if most > 0 && present.bytes >= most {
                made.push(std::mem::take(&mut present));
            }
        }
    }
    if !present.pieces.is_empty() {
        made.push(present);
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_storage::memory::Memory;
    use gristmill_storage::{Caching, OutputStore as _};

    fn pieces(files: &[(&str, &[u8])], more: &str) -> Vec<Vec<(String, u64, u64)>> {
        let store = Memory::with_room_for(1 << 20);
        for (name, content) in files {
            let file = store
                .create(name.as_ref(), content.len() as u64, Caching::Cached)
                .unwrap();
            file.write_at(content, 0).unwrap();
        }
        let names: Vec<_> = files.iter().map(|(name, _)| name).collect();
        let request = format!(
            r#"{{"files": {}, "format": {{"text": {{"delimiter": null}}}}, "min_bytes": 1, "block_bytes": 1000{more}}}"#,
            serde_json::to_string(&names).unwrap()
        );
        let stores = Stores::new(std::sync::Arc::new(store));
        let splits = split(&stores, &serde_json::from_str(&request).unwrap())
            .unwrap()
            .splits;
        let total: u64 = splits.iter().map(|split| split.bytes).sum();
        assert_eq!(
            total,
            files
                .iter()
                .map(|(_, content)| content.len() as u64)
                .sum::<u64>()
        );
        let shown = |what: &serde_json::Value| {
            let pieces: Vec<FileRange> = serde_json::from_value(what["pieces"].clone()).unwrap();
            pieces
                .into_iter()
                .map(|piece| (piece.file.path.to_string(), piece.offset, piece.bytes))
                .collect()
        };
        splits
            .iter()
            .map(|split| shown(&split.what.value()))
            .collect()
    }

    #[test]
    fn sizes_slop_and_order_are_hadoops() {
        let one = |name: &str, start, length| vec![(name.to_owned(), start, length)];
        assert_eq!(
            pieces(&[("/a", &[b'x'; 105])], r#", "maps": 1"#),
            [one("/a", 0, 105)]
        );
        assert_eq!(
            pieces(&[("/a", &[b'x'; 211])], r#", "maps": 2"#),
            [one("/a", 0, 105), one("/a", 105, 106)][..]
                .iter()
                .rev()
                .cloned()
                .collect::<Vec<_>>()
        );
        assert_eq!(
            pieces(
                &[("/a", &[b'x'; 10]), ("/b", &[b'x'; 90]), ("/c", b"")],
                r#", "maps": 2"#
            ),
            [
                one("/b", 0, 50),
                one("/b", 50, 40),
                one("/a", 0, 10),
                one("/c", 0, 0)
            ]
        );
    }

    #[test]
    fn lines_and_small_files() {
        let one = |name: &str, start, length| vec![(name.to_owned(), start, length)];
        let text: &[u8] = b"one\ntwo\nthree\nx";
        assert_eq!(
            pieces(&[("/a", text)], r#", "maps": 2, "lines": 2"#),
            [one("/a", 0, 7), one("/a", 7, 7)]
        );
        let both = vec![("/a".to_owned(), 0, 15), ("/b".to_owned(), 0, 4)];
        assert_eq!(
            pieces(
                &[("/a", text), ("/b", b"end\n")],
                r#", "maps": 2, "combine": 0"#
            ),
            [both]
        );
        let cut = pieces(
            &[("/a", text), ("/b", b"end\n")],
            r#", "maps": 2, "combine": 8"#,
        );
        assert_eq!(cut.len(), 2);
    }
}

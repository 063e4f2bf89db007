//! Rows of CSV: splits that begin where a row does, although a quoted field may hold line feeds.
//!
//! ```text
//!   file     a,"b LF c",d LF e,f LF "g LF h",i LF       a line begins with a row, or within a quoted field:
//!   splits  |--------|---------|------------|           all bytes before it say which
//!   moved   |------------------|------------|
//! ```
//!
//! Every split is scanned twice, beside the others: as if it began between two rows, and as if within a field. What each comes
//! to is known for all of them then, from the first one on. The rules of fields are those of Python's `csv` module, with
//! `strict=True`: a quote opens a field at its beginning and nowhere else; what stands between a field's last quote and the next
//! delimiter, or behind a CR in the middle of a line, is an error, and the next row begins with the next line.
//!
//! The rule that must hold: the rows of the splits of a file, whatever they are, are those of one split.
//!
//! Decision: docs/decisions/csv-rows.md.

use std::ops::Range;
use std::thread::available_parallelism;

use memchr::{memchr, memchr2, memrchr};

use super::lines::LineOptions;
use super::several_lines::moved;
use super::text::{TextSplit, open_lines};
use gristmill_base::error::{Error, Result};
use gristmill_storage::input::FileRange;
use gristmill_storage::io::at_once::at_once;
use gristmill_storage::stores::Stores;

/// The longest row, in bytes, of a file that is cut: half of what a field may have in characters. Behind a longer one its reader
/// may see an error that a scan does not.
const ROW_BYTES_MAX: u64 = 32 << 20;

/// A file is cut that has more than one of so many parts of the input: of others there are enough to share.
const FILES_ENOUGH: u64 = 32;

/// What stands between fields and around them, in ASCII.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CsvDialect {
    /// Between two fields.
    pub delimiter: u8,
    /// Around a field that may hold a delimiter or a line feed.
    pub quote: u8,
}

/// Moves the borders of splits to where rows begin. A split in which none does is left out; a file that is a small share of
/// the input becomes one split, and is not read for it.
///
/// # Errors
/// A file that is cut cannot be read, or has a line that is too long.
///
/// ```
/// use gristmill_storage::{LocalDisk as _, OutputStore as _};
/// use gristmill_tasks::split::csv_rows::{CsvDialect, at_rows};
/// use gristmill_storage::input::{FileRange, SplitFile};
/// use gristmill_storage::{Caching, memory::Memory, stores::Stores};
/// let store = Memory::with_room_for(100);
/// store.create("/a".as_ref(), 12, Caching::Cached)?.write_at(b"1,\"a\nb\"\n2,c\n", 0)?;
/// let file = SplitFile { path: "/a".into(), bytes: 12, codec: None, version: None };
/// let split = |offset| vec![FileRange { file: file.clone(), offset, bytes: 4 }];
/// let store = Stores::new(std::sync::Arc::new(store));
/// let dialect = CsvDialect { delimiter: b',', quote: b'"' };
/// let moved = at_rows(&store, vec![split(0), split(4), split(8)], dialect)?;
/// assert_eq!(moved.iter().map(|split| split[0].range()).collect::<Vec<_>>(), [0..8, 8..12]);
/// # Ok::<(), gristmill_base::Error>(())
/// ```
pub fn at_rows(
    stores: &Stores,
    splits: Vec<TextSplit>,
    dialect: CsvDialect,
) -> Result<Vec<TextSplit>> {
    let threads = available_parallelism().map_or(1, usize::from);
    let input_bytes: u64 = splits.iter().flatten().map(|piece| piece.bytes).sum();
    // Only whole files share a split: of others, its only piece is scanned.
    let pieces: Vec<_> = splits.iter().filter_map(|split| split.first()).collect();
    let scans = at_once(&pieces, threads, |piece| {
        let is_whole = piece.bytes == piece.file.bytes;
        let is_small = piece.file.bytes.saturating_mul(FILES_ENOUGH) <= input_bytes;
        match is_whole || is_small {
            true => Ok(None),
            false => RowScan::both(stores, piece, dialect).map(Some),
        }
    })?;
    let mut file = OpenFile::default();
    let starts = pieces
        .iter()
        .zip(scans)
        .map(|(piece, scans)| file.start_of(piece, scans));
    let starts: Vec<_> = starts.collect();
    Ok(moved(splits, starts))
}

/// What the splits of a file before the next one come to.
#[derive(Debug, Default)]
struct OpenFile {
    /// The next line is within a quoted field.
    quoted: bool,
    /// Where the row began that this field is in.
    row: u64,
    /// No more of it is cut.
    is_whole: bool,
}

impl OpenFile {
    /// Where the first row in `piece` begins; without one, where it ends.
    fn start_of(&mut self, piece: &FileRange, scans: Option<[RowScan; 2]>) -> u64 {
        if piece.offset == 0 {
            *self = OpenFile::default();
        }
        let end = piece.range().end;
        let Some([between, within]) = scans.filter(|_| !self.is_whole) else {
            return if piece.offset == 0 { 0 } else { end };
        };
        let scan = if self.quoted { within } else { between };
        let first = scan.first.filter(|first| *first < end);
        let crosses = first.map_or(0, |first| first - self.row);
        let is_long = self.quoted && crosses > ROW_BYTES_MAX;
        self.is_whole = is_long || scan.longest > ROW_BYTES_MAX;
        self.row = scan.row.unwrap_or(self.row);
        self.quoted = scan.quoted;
        match first {
            _ if piece.offset == 0 => 0,
            Some(first) if !is_long => first,
            _ => end,
        }
    }
}

/// How far a scan of lines has come, from one of two states.
#[derive(Debug)]
struct RowScan {
    dialect: CsvDialect,
    /// What comes next is within a quoted field.
    quoted: bool,
    /// Where the first row begins.
    first: Option<u64>,
    /// Where the row began that was come to last.
    row: Option<u64>,
    /// Where the first line begins, and so what is seen of a row that began before.
    origin: Option<u64>,
    /// The most bytes of a row.
    longest: u64,
}

impl RowScan {
    fn new(dialect: CsvDialect, quoted: bool) -> Self {
        RowScan {
            dialect,
            quoted,
            first: None,
            row: None,
            origin: None,
            longest: 0,
        }
    }

    /// The lines that begin in a piece: as if between two rows, and as if within a field.
    fn both(stores: &Stores, piece: &FileRange, dialect: CsvDialect) -> Result<[RowScan; 2]> {
        let mut scans = [false, true].map(|quoted| RowScan::new(dialect, quoted));
        let mut reader = open_lines(stores, piece, &LineOptions::default())?;
        let is_last = piece.range().end == piece.file.bytes;
        let mut offset = None;
        loop {
            if stores.requests().stop.is_set() {
                return Err(Error::cancelled());
            }
            let begins = offset.unwrap_or_else(|| reader.offset());
            let Some(lines) = reader.next_lines(u64::MAX)? else {
                break;
            };
            scans.iter_mut().for_each(|scan| scan.read(lines, begins));
            offset = Some(begins + lines.len() as u64);
            if is_last && scans.iter().all(|scan| scan.first.is_some()) {
                break; // what comes behind them is in nobody's way
            }
        }
        Ok(scans)
    }

    /// Reads the next whole lines, which begin at `offset`.
    fn read(&mut self, lines: &[u8], offset: u64) {
        let CsvDialect { delimiter, quote } = self.dialect;
        self.origin.get_or_insert(offset);
        if !self.quoted {
            self.begins_row(offset);
        }
        let (mut at, mut is_field_start) = (0, !self.quoted);
        let rest = |at: usize| lines.get(at..).unwrap_or_default();
        let line_end = |at: usize| memchr(b'\n', rest(at)).map_or(lines.len(), |found| at + found);
        while at < lines.len() {
            if self.quoted {
                let Some(found) = memchr(quote, rest(at)) else {
                    return;
                };
                at += found + 1;
                match lines.get(at) {
                    Some(&byte) if byte == quote => at += 1, // one that stands for itself
                    Some(&byte) if byte == delimiter => {
                        (self.quoted, at, is_field_start) = (false, at + 1, true);
                    }
                    Some(b'\r' | b'\n') | None => (self.quoted, is_field_start) = (false, false),
                    Some(_) => (self.quoted, at, is_field_start) = (false, line_end(at), false),
                }
                continue;
            }
            let Some(found) = memchr2(quote, b'\r', rest(at)) else {
                self.passes(lines, at..lines.len(), offset);
                return;
            };
            let special = at + found;
            self.passes(lines, at..special, offset);
            if lines.get(special) == Some(&b'\r') {
                let returns = rest(special).iter().take_while(|byte| **byte == b'\r');
                // A line feed ends the row; anything else is an error, and the row ends with its line.
                (at, is_field_start) = (line_end(special + returns.count()), false);
                continue;
            }
            let before = special.checked_sub(1).and_then(|before| lines.get(before));
            let opens = match before {
                _ if found == 0 => is_field_start,
                before => before.is_some_and(|byte| *byte == delimiter || *byte == b'\n'),
            };
            (self.quoted, at, is_field_start) = (opens, special + 1, false);
        }
    }

    /// Passes over what is in no quoted field: every line feed in it ends a row.
    fn passes(&mut self, lines: &[u8], range: Range<usize>, offset: u64) {
        let behind = |found: usize| offset + (range.start + found + 1) as u64;
        let passed = lines.get(range.clone()).unwrap_or_default();
        if let Some(end) = memchr(b'\n', passed) {
            let began = self.row.or(self.origin).unwrap_or(offset);
            self.longest = self.longest.max(behind(end) - began);
        }
        // Behind the last byte a row begins only if more lines come.
        let inner = match range.end == lines.len() {
            true => passed.split_last().map_or(passed, |(_, inner)| inner),
            false => passed,
        };
        if let (Some(first), Some(last)) = (memchr(b'\n', inner), memrchr(b'\n', inner)) {
            self.begins_row(behind(first));
            self.begins_row(behind(last));
        }
    }

    fn begins_row(&mut self, offset: u64) {
        self.first.get_or_insert(offset);
        self.row = Some(offset);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_base::error::Kind;
    use gristmill_storage::input::SplitFile;
    use gristmill_storage::memory::Memory;
    use gristmill_storage::{Caching, OutputStore as _};
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;
    use std::sync::Arc;

    const DIALECT: CsvDialect = CsvDialect {
        delimiter: b',',
        quote: b'"',
    };

    /// Where rows begin, byte by byte: the states of Python's `csv` module.
    fn naive(text: &[u8]) -> Vec<u64> {
        #[derive(PartialEq)]
        enum At {
            FieldStart,
            Field,
            Quoted,
            Quote,
            Return,
            Wrong,
        }
        let (mut at, mut starts) = (At::FieldStart, vec![0]);
        for (offset, byte) in text.iter().enumerate() {
            at = match (at, byte) {
                (At::Quoted, b'"') => At::Quote,
                (At::Quoted, _) | (At::Quote | At::FieldStart, b'"') => At::Quoted,
                (_, b'\n') => {
                    starts.push(offset as u64 + 1);
                    At::FieldStart
                }
                (At::Wrong, _) => At::Wrong,
                (_, b'\r') => At::Return,
                (At::Return, _) => At::Wrong,
                (_, b',') => At::FieldStart,
                (At::Quote, _) => At::Wrong,
                (At::FieldStart | At::Field, _) => At::Field,
            };
        }
        starts.retain(|start| *start < text.len() as u64);
        starts
    }

    fn file_with(text: &[u8]) -> (Arc<Stores>, SplitFile) {
        let store = Memory::with_room_for(1 << 20);
        let bytes = text.len() as u64;
        let file = store.create("/a".as_ref(), bytes, Caching::Cached);
        file.unwrap().write_at(text, 0).unwrap();
        let file = SplitFile {
            path: "/a".into(),
            bytes,
            codec: None,
            version: None,
        };
        (Stores::new(Arc::new(store)), file)
    }

    /// Where the splits of a file begin that is cut every `step` bytes.
    fn borders(stores: &Stores, file: &SplitFile, step: u64) -> Vec<u64> {
        let cut = (0..file.bytes).step_by(step as usize).map(|offset| {
            let bytes = step.min(file.bytes - offset);
            let file = file.clone();
            vec![FileRange {
                file,
                offset,
                bytes,
            }]
        });
        let moved = at_rows(stores, cut.collect(), DIALECT).unwrap();
        let pieces: Vec<_> = moved.iter().flatten().map(FileRange::range).collect();
        assert!(pieces.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert_eq!(pieces.last().map_or(0, |piece| piece.end), file.bytes);
        pieces.iter().map(|piece| piece.start).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, rng_seed: RngSeed::Fixed(34), ..ProptestConfig::default() })]

        #[test]
        fn splits_begin_where_rows_do(text in "[a,\"\n\r]{1,60}") {
            let (stores, file) = file_with(text.as_bytes());
            let starts = naive(text.as_bytes());
            for step in 1..=file.bytes {
                // In each split that a row begins in, the first one of them begins the split.
                let mut want: Vec<_> = (0..file.bytes)
                    .step_by(step as usize)
                    .filter_map(|at| starts.iter().find(|start| (at..at + step).contains(start)).copied())
                    .collect();
                want.dedup();
                prop_assert_eq!(borders(&stores, &file, step), want, "{} {:?}", step, &text);
            }
        }
    }

    #[test]
    fn a_file_with_a_very_long_row_is_not_cut_behind_it() {
        let long = "x\n".repeat(ROW_BYTES_MAX as usize / 2);
        let text = format!("a\n\"{long}\"\nb\nc\n");
        let store = Memory::with_room_for(64 << 20);
        let file = store.create("/a".as_ref(), text.len() as u64, Caching::Cached);
        file.unwrap().write_at(text.as_bytes(), 0).unwrap();
        let file = SplitFile {
            path: "/a".into(),
            bytes: text.len() as u64,
            codec: None,
            version: None,
        };
        let stores = Stores::new(Arc::new(store));
        assert_eq!(borders(&stores, &file, 8 << 20), [0]);
        assert_eq!(borders(&stores, &file, file.bytes - 2), [0]);
    }

    #[test]
    fn a_small_share_of_the_input_is_not_read() {
        let (stores, file) = file_with(b"a\nb\n");
        let gone = SplitFile {
            path: "/gone".into(),
            ..file.clone()
        };
        let piece = |file: &SplitFile, offset, bytes| {
            let file = file.clone();
            vec![FileRange {
                file,
                offset,
                bytes,
            }]
        };
        let large = SplitFile {
            bytes: 128,
            ..file.clone()
        };
        let cut = vec![
            piece(&gone, 0, 2),
            piece(&gone, 2, 2),
            piece(&large, 0, 128),
        ];
        let moved = at_rows(&stores, cut, DIALECT).unwrap();
        assert_eq!(moved, [piece(&gone, 0, 4), piece(&large, 0, 128)]);
        let cut = vec![piece(&gone, 0, 2), piece(&gone, 2, 2)];
        let error = at_rows(&stores, cut, DIALECT).unwrap_err();
        assert_eq!(error.kind(), Kind::NotFound);
    }
}

//! The task that samples keys of any length: the record at or behind each of some places of the input, and the beginnings of compressed
//! files, as nothing can be read behind them without reading all. So parts of such files that are sorted already are less
//! even than those of others.
//!
//! ```text
//!   places of files ──────────▶ the record that begins there ─┐
//!   beginnings of compressed ─▶ each n-th record ─────────────┴──▶ the beginning of its key, or of its code
//! ```

use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use super::spill::parse_keys;
use crate::spill::keyed::lines_of;
use crate::split::records::record_start;
use crate::task::input::count;
use crate::task::runs::not_read;
use crate::task::{Counters, TaskAttempt, TaskContext, TaskEnvironment, TaskKind};
use gristmill_base::error::Result;
use gristmill_base::order::borders::{Border, KEY_BYTES_MAX};
use gristmill_base::record::shape::{Shape, ShapeKind};
use gristmill_base::record::table_keys::{RowCodes, TableKeys};
use gristmill_base::sync::lock;
use gristmill_storage::codec::{Codec, Coding, open_file};
use gristmill_storage::io::at_once::{SHORT_AT_ONCE, at_once};
use gristmill_storage::{Caching, ReadFile};

/// Where to read keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleKeysSpec {
    /// File and offset of each place, ascending.
    pub places: Vec<(usize, u64)>,
    /// Compressed files, of which the beginnings are read: nothing else of them can be.
    #[serde(default)]
    pub decoded: Vec<(usize, Codec)>,
    /// What the records are.
    pub shape: ShapeKind,
    /// GNU sort's options for keys; none where lines have none.
    #[serde(default)]
    pub keys: Vec<String>,
    /// How rows are keyed, where the input is a table.
    #[serde(default)]
    pub table: Option<TableKeys>,
}

impl TaskKind for SampleKeysSpec {
    type Report = Vec<Border>;

    fn run(&self, (context, attempt, _): TaskEnvironment<'_>) -> Result<Self::Report> {
        let place = (context, attempt);
        let plain = |key: &[u8]| key[..key.len().min(KEY_BYTES_MAX)].to_vec();
        match (self.shape, &self.table) {
            (ShapeKind::Fixed(shape), _) => self.sample(place, &RecordKeys(shape, plain)),
            (ShapeKind::Lines(shape), _) => self.sample(place, &RecordKeys(shape, plain)),
            (ShapeKind::Pairs(_), _) => Err(not_read()),
            (ShapeKind::Keyed(_), Some(table)) => self.sample(place, &RowKeys::new(table)?),
            (ShapeKind::Keyed(keyed), None) => {
                let keys = parse_keys(&self.keys)?;
                let code = |line: &[u8]| {
                    let mut code = Vec::new();
                    keys.encode(line, &mut code);
                    if keyed.whole_lines {
                        code.extend_from_slice(line);
                    }
                    code.truncate(KEY_BYTES_MAX);
                    code
                };
                self.sample(place, &RecordKeys(lines_of(&keys), code))
            }
        }
    }

    fn input(&self, _context: &TaskContext) -> String {
        count(self.places.len() + self.decoded.len(), "place")
    }

    fn counters(&self, keys: &Self::Report) -> Counters {
        vec![("SAMPLED_KEYS", keys.len() as u64)]
    }
}

/// Records of the input, and what is taken of each.
trait SampledRecords: Sync {
    /// Bytes that are looked at from a place on.
    const LOOK_BYTES: usize;

    /// Where to look for the record at or behind a place of a file of so many bytes.
    fn start(&self, file: &dyn ReadFile, file_bytes: u64, place: u64) -> Result<u64>;

    /// What is kept of the key of the record there, if there is one.
    fn key_at(&self, bytes: &[u8]) -> Option<Vec<u8>>;

    /// The length of the record at the beginning of some bytes, the so manieth of its file, and what is kept of its key; no
    /// key where it is not to count.
    fn next(&self, number: usize, rest: &[u8]) -> Option<(usize, Option<Vec<u8>>)>;
}

/// Records or lines of a shape, and what is kept of the key of each.
struct RecordKeys<S, F>(S, F);

impl<S: Shape, F: Fn(&[u8]) -> Vec<u8> + Sync> SampledRecords for RecordKeys<S, F> {
    const LOOK_BYTES: usize = KEY_BYTES_MAX + 1;

    fn start(&self, file: &dyn ReadFile, file_bytes: u64, place: u64) -> Result<u64> {
        record_start(self.0, file, file_bytes, place)
    }

    fn key_at(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let length = self.0.length(bytes).unwrap_or(bytes.len());
        let record = bytes.get(..length).filter(|record| !record.is_empty());
        record.map(|record| self.1(self.0.key(record)))
    }

    fn next(&self, _number: usize, rest: &[u8]) -> Option<(usize, Option<Vec<u8>>)> {
        let length = self.0.length(rest)?;
        Some((length, self.key_at(rest.get(..length)?)))
    }
}

/// Rows, of which the codes are kept.
///
/// Whether a place lies in quotes nobody knows without the whole file before it. So what begins behind a newline and has the
/// fields of the header is taken for a row. Should it be none, parts of the output are less even, and nothing else.
struct RowKeys<'a> {
    table: &'a TableKeys,
    codes: Mutex<RowCodes>,
}

/// Newlines behind a place that may begin a row.
const TRIES: usize = 8;

impl<'a> RowKeys<'a> {
    fn new(table: &'a TableKeys) -> Result<Self> {
        let codes = Mutex::new(RowCodes::new(table)?);
        Ok(RowKeys { table, codes })
    }

    fn code(&self, row: &[u8]) -> Option<Vec<u8>> {
        let mut code = Vec::new();
        lock(&self.codes).encode(row, &mut code).ok()?;
        code.truncate(KEY_BYTES_MAX);
        Some(code)
    }
}

impl SampledRecords for RowKeys<'_> {
    const LOOK_BYTES: usize = 16 << 10;

    fn start(&self, _file: &dyn ReadFile, _file_bytes: u64, place: u64) -> Result<u64> {
        Ok(place)
    }

    fn key_at(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut newlines = memchr::memchr_iter(b'\n', bytes).take(TRIES);
        newlines.find_map(|newline| {
            let rest = bytes.get(newline + 1..)?;
            let length = self.table.row_ends().rest(rest)?;
            self.code(rest.get(..length)?)
        })
    }

    fn next(&self, number: usize, rest: &[u8]) -> Option<(usize, Option<Vec<u8>>)> {
        let mut ends = match number {
            0 => self.table.row_ends_of_file(),
            _ => self.table.row_ends(),
        };
        let length = ends.rest(rest)?;
        let row = rest.get(..length).filter(|_| number > 0); // the first is the header
        Some((length, row.and_then(|row| self.code(row))))
    }
}

/// Decoded bytes that are looked at, of all files together; and of one, at least and at most.
const DECODED_BYTES: usize = 128 << 20;
const DECODED_BYTES_MIN: usize = 64 << 10;
const DECODED_BYTES_MAX: usize = 4 << 20;

/// Keys that are kept of a compressed file, at most: as many as matter for a few hundred parts.
const KEYS_MAX: usize = 4096;

impl SampleKeysSpec {
    /// The keys at all places, and those of beginnings. A far store is asked for many at once.
    fn sample<T: SampledRecords>(
        &self,
        (context, attempt): (&TaskContext, &TaskAttempt<'_>),
        taken: &T,
    ) -> Result<Vec<Border>> {
        let is_remote = |place: &(usize, u64)| context.job.files[place.0].path.is_remote();
        let at = |places: &&[(usize, u64)]| at_places(places, (context, attempt), taken);
        let mut borders = if self.places.iter().any(is_remote) {
            let budget = &context.node.budget;
            let each = T::LOOK_BYTES as u64;
            let (granted, _memory) = budget.reserve_up_to("sampled keys", each, SHORT_AT_ONCE)?;
            let share = self.places.len().div_ceil(granted.max(1)).max(1);
            let shares: Vec<_> = self.places.chunks(share).collect();
            at_once(&shares, granted, at)?.concat()
        } else {
            at(&&*self.places)?
        };
        if matches!(self.shape, ShapeKind::Keyed(_)) {
            // Equal codes stay together wherever they come from: the place of a line is not in its code.
            borders.iter_mut().for_each(|border| border.position = 0);
        }
        for (file, codec) in &self.decoded {
            attempt.progress(0)?;
            let keys = thinned(&beginning(context, *file, *codec)?, taken);
            borders.extend(keys.into_iter().map(|key| Border { key, position: 0 }));
        }
        Ok(borders)
    }
}

fn at_places<T: SampledRecords>(
    places: &[(usize, u64)],
    (context, attempt): (&TaskContext, &TaskAttempt<'_>),
    taken: &T,
) -> Result<Vec<Border>> {
    let mut keys = Vec::with_capacity(places.len());
    let mut buffer = vec![0; T::LOOK_BYTES];
    let mut open: Option<(usize, Box<dyn ReadFile>)> = None;
    // Up to where the record begins that was found last, the same one is found: long ones are searched once.
    let mut found: Option<(usize, u64)> = None;
    for (number, place) in places {
        attempt.progress(0)?;
        let input = &context.job.files[*number];
        let file = match open.take() {
            Some((opened, file)) if opened == *number => file,
            _ => context.node.store.open_input(input, Caching::Cached)?,
        };
        let start = match found {
            Some((of, start)) if of == *number && *place <= start => start,
            _ => taken.start(&*file, input.stat.bytes, *place)?,
        };
        found = Some((*number, start));
        let read = file.read_at(&mut buffer, start)?;
        open = Some((*number, file));
        // There is no key where the place lies in the file's last record.
        keys.extend(taken.key_at(&buffer[..read]).map(|key| Border {
            key,
            position: context.starts[*number] + start,
        }));
    }
    Ok(keys)
}

fn beginning(context: &TaskContext, file: usize, codec: Codec) -> Result<Vec<u8>> {
    let files = &context.job.files;
    let bytes = (DECODED_BYTES / files.len().max(1)).clamp(DECODED_BYTES_MIN, DECODED_BYTES_MAX);
    let input = &files[file];
    let opened = context.node.store.open_input(input, Caching::Cached)?;
    let mut reader = open_file(opened, input.path.as_typed(), Coding::Coded(codec))?;
    let mut beginning = vec![0; bytes];
    let read = reader.fill(&mut beginning)?;
    beginning.truncate(read);
    Ok(beginning)
}

/// The keys of records, evenly thinned where there are many.
fn thinned(bytes: &[u8], taken: &impl SampledRecords) -> Vec<Vec<u8>> {
    let (mut rest, mut found) = (bytes, Vec::new());
    let (mut number, mut step) = (0_usize, 1);
    while let Some((length, key)) = taken.next(number, rest) {
        if number.is_multiple_of(step) {
            found.extend(key);
        }
        if found.len() == KEYS_MAX {
            let mut keep = false;
            found.retain(|_| {
                keep = !keep;
                keep
            });
            step *= 2;
        }
        number += 1;
        rest = rest.get(length..).unwrap_or_default();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_base::record::shape::LineShape;
    use gristmill_base::record::table_keys::ColumnKey;

    #[test]
    fn keys_of_many_records_are_thinned_evenly() {
        let text: Vec<u8> = (0..20_000)
            .flat_map(|i| format!("{i:05}\n").into_bytes())
            .collect();
        let lines = RecordKeys(LineShape { descending: false }, <[u8]>::to_vec);
        let found = thinned(&text, &lines);
        assert!((KEYS_MAX / 2..=KEYS_MAX).contains(&found.len()));
        let middle = String::from_utf8(found[found.len() / 2].clone()).unwrap();
        let middle: u32 = middle.parse().unwrap();
        assert!((9_000..11_000).contains(&middle), "{middle}");
    }

    fn table(keys: Vec<ColumnKey>) -> TableKeys {
        TableKeys {
            delimiter: b',',
            columns: 2,
            keys,
            skip_bad: 0,
            pads: false,
            comment: None,
            ending: "\n".to_owned(),
            header: None,
            no_header: false,
        }
    }

    #[test]
    fn a_row_is_what_has_the_fields_of_the_header() {
        let table = table(vec![ColumnKey {
            column: 0,
            letters: String::new(),
        }]);
        let rows = RowKeys::new(&table).unwrap();
        assert_eq!(rows.key_at(b"of,a\nb\nc,1\nd,2\n").unwrap(), b"c\0");
        assert_eq!(rows.key_at(b"of,a\nc,1"), None);
        assert_eq!(rows.key_at(b"no row here"), None);
    }

    #[test]
    fn of_a_compressed_table_the_header_and_bad_rows_do_not_count() {
        let table = table(Vec::new());
        let rows = RowKeys::new(&table).unwrap();
        let text = b"\xef\xbb\xbf\"a\nb\",c\nd,1\nbad\n";
        assert_eq!(thinned(text, &rows), [b""]);
    }
}

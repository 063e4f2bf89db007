//! `join`: the rows of two inputs that have equal keys, side by side.
//!
//! ```text
//!   right row ──▶ key, 0 │ its other cells ─┐ sorted,    the right rows of a key are held;
//!   left row  ──▶ key, 1 │ its other cells ─┘ merged ──▶ each left row is written with all of them
//! ```
//!
//! Keys are the text of the cells: `1` and `1.0` are two keys, and an empty cell equals an empty cell. A part is in the order of
//! its keys; within a key left rows are in the order of their input, and with each the right rows in that of theirs.
//!
//! The rule that must hold: memory has the right rows of one key at most, and no left row but the present one.

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt;
use std::slice;

use serde::de::{Deserialize, Deserializer};

use super::kind::Described;
use super::mapreduce::{NativeJob, NativeOutput, one_if_sorted, wrong_option};
use super::tables::{FieldsAsked, InputTable, RecordFields, RecordWriter, RecordsAsked};
use crate::plan::table::{CommandSpec, Common, OptionValue, ValueKind, argument, option, options};
use gristmill_base::error::{Error, JobOption, Kind, Result, show_bytes};
use gristmill_base::names::name_of;
use gristmill_base::record::table::{value_of, without_end};
use gristmill_base::value::{Token, ValueReader, ValueWriter};
use gristmill_storage::location::Location;
use gristmill_tasks::merge::groups::MergedGroups;
use gristmill_tasks::task::{Mapper, Operator, Pairs, PartFiles, Records, Reducer};

/// The numbers of the inputs.
const LEFT: usize = 0;
const RIGHT: usize = 1;

/// What orders the pairs of a key: right rows come first, as they are held.
const RIGHT_ORDER: &[u8] = &[0];
const LEFT_ORDER: &[u8] = &[1];

/// Pairs and rows between two looks at whether the task should stop.
const ROWS_A_STEP: usize = 1 << 12;

/// What a name of the right gets behind it that is there already.
const SUFFIX: &[u8] = b"_right";

/// Characters of a cell that an error shows.
const SHOWN_CHARS: usize = 80;

options! {
    /// Options of `join`, as given.
    pub(in crate::jobs) struct JoinSpec {
        left: Location = argument(
            "A file, or a directory whose files are read (not those whose names begin with _ or .); compressed ones, too.",
        ),
        right: Location = argument("The file or directory whose rows are joined to those."),
        output: Option<Location> = option(
            "standard output",
            "The file to write. If it exists, the finished output replaces it in one step, also if it is an input. With --parts: \
             a new directory.",
        ).short("o"),
        by: Vec<String> = option(
            "",
            "The columns that must be equal, with commas between them: id, or LEFT=RIGHT where their names differ; by name, or by number from 1 on. Repeatable.",
        ).short("b"),
        how: JoinKind = option(
            "inner",
            "Which rows are written. inner: pairs of rows with equal keys; left, right, full: also the rows of that side, or of both, that \
             have no match; semi: rows of the left that have a match; anti: those that have none.",
        ),
        empty: Option<String> = option("nothing", "What is written in the cells of a side that has no row."),
        csv: bool = option("off", "The inputs are tables with commas, quotes and a header; so is the output."),
        tsv: bool = option("off", "The same with tabs. With another separator: --csv -t ';'."),
        no_header: bool = option("off", "The tables have no headers: columns have numbers, from 1 on."),
        skip_bad: Option<usize> = option(
            "none",
            "JoinKind many rows of a table may be left out because their number of fields is not that of the header, or of the first row without a header.",
        ),
        field_separator: Option<String> = option(
            "blanks",
            "The byte between fields of lines, or of a table; \\t is a tab, \\0 is NUL.",
        ).short("t"),
        sorted: bool = option(
            "off",
            "The whole output is in the order of the keys, as one task writes it; else, of more than 256 MB of input, each part is.",
        ),
        parts: Option<usize> = option(
            "one file",
            "Write the output as N files, part-r-00000 and so on, in a directory. The hash of a key decides its part.",
        ),
    }
}

/// Which rows are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::jobs) enum JoinKind {
    #[default]
    Inner,
    Left,
    Right,
    Full,
    Semi,
    Anti,
}

impl OptionValue for JoinKind {
    const KIND: ValueKind = ValueKind::Choice(&["inner", "left", "right", "full", "semi", "anti"]);

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        Deserialize::deserialize(deserializer)
    }
}

impl JoinKind {
    /// Whether rows of the left are chosen, and stay as they are.
    fn selects(self) -> bool {
        matches!(self, JoinKind::Semi | JoinKind::Anti)
    }

    /// Whether a left row is written that has no match.
    fn keeps_left(self) -> bool {
        matches!(self, JoinKind::Left | JoinKind::Full | JoinKind::Anti)
    }

    /// Whether a right row is written that has no match.
    fn keeps_right(self) -> bool {
        matches!(self, JoinKind::Right | JoinKind::Full)
    }
}

impl Described for JoinSpec {
    const COMMAND: CommandSpec = CommandSpec {
        name: "join",
        function: None,
        help: "Join two tables, or lines with fields, by columns; neither need be sorted.",
        details: "The columns of the output: those of the key, the others of the left, the others of the right. A name of the right \
                  that is there already gets `_right` behind it. Keys are text: `1` and `1.0` differ, and an empty cell equals an empty cell.",
        example: "gristmill join --csv --by city=name orders.csv cities.csv -o joined.csv",
        python: r#"
>>> import tempfile, gristmill
>>> from pathlib import Path
>>> with tempfile.TemporaryDirectory() as folder:
...     _ = Path(folder, "orders").write_text("city,price\nRome,2\nBern,0.5\nRome,3\n")
...     _ = Path(folder, "cities").write_text("name,country\nRome,IT\nOslo,NO\n")
...     report = gristmill.join(
...         f"{folder}/orders", f"{folder}/cities", output=f"{folder}/out", csv=True, by=["city=name"], how="left"
...     )
...     print(Path(folder, "out").read_text(), end="")
city,price,country
Bern,0.5,
Rome,2,IT
Rome,3,IT
"#,
        explained: true,
        own: Self::OPTIONS,
        common: Common::NAMES,
    };
}

impl JoinSpec {
    fn asked(&self) -> FieldsAsked<'_> {
        FieldsAsked {
            csv: self.csv,
            tsv: self.tsv,
            no_header: self.no_header,
            skip_bad: self.skip_bad,
            separator: self.field_separator.as_deref(),
        }
    }
}

impl NativeJob for JoinSpec {
    fn inputs(&self) -> Vec<&[Location]> {
        vec![slice::from_ref(&self.left), slice::from_ref(&self.right)]
    }

    fn output(&self) -> NativeOutput<'_> {
        NativeOutput::of_options(self.output.as_ref(), self.parts)
    }

    fn parts(&self) -> Result<Option<usize>> {
        one_if_sorted(self.sorted, self.parts)
    }

    fn records(&self) -> Result<RecordsAsked> {
        self.asked().records(2, Vec::new())
    }

    fn operator(&self, tables: &[InputTable]) -> Result<Box<dyn Operator>> {
        let table = |input: usize| self.asked().fields(tables.get(input));
        let (left, right) = (table(LEFT)?, table(RIGHT)?);
        if self.empty.is_some() && !self.csv && !self.tsv {
            return Err(wrong_option(
                "empty",
                "lines have no columns: one without a match has its own fields only",
            )
            .advise("leave it out, or say that the inputs are csv or tsv"));
        }
        let (mut left_key, mut right_key) = (Vec::new(), Vec::new());
        for [left_name, right_name] in names_by(&self.by)? {
            left_key.push(left.column(&left_name)?);
            right_key.push(right.column(&right_name)?);
        }
        let writer = match left.width() {
            0 => right.writer(), // the left is empty, or has lines
            _ => left.writer(),
        };
        let (left, right) = (JoinSide::of(left, left_key), JoinSide::of(right, right_key));
        let empty = name_of(self.empty.clone().unwrap_or_default());
        let absent = |side: &JoinSide| {
            let mut cells = Vec::new();
            (0..side.others()).for_each(|_| writer.behind(empty.as_bytes(), &mut cells));
            cells
        };
        Ok(Box::new(JoinOperator {
            how: self.how,
            header: match self.how.selects() {
                true => header_as_it_is(&left, &writer),
                false => header(&left, &right, &writer),
            },
            absent_left: absent(&left),
            absent_right: absent(&right),
            left,
            right,
            writer,
        }))
    }
}

/// The names that must be equal: `id,city=town` are `id` of both sides, and `city` of the left with `town` of the right.
fn names_by(words: &[String]) -> Result<Vec<[Vec<u8>; 2]>> {
    if words.is_empty() {
        return Err(wrong_option("by", "it must be given"));
    }
    let (mut found, mut room) = (Vec::new(), Vec::new());
    for given in words {
        let name = name_of(given.clone());
        let mut pair = Vec::new();
        for (name, behind) in cut_names(name.as_bytes()) {
            pair.push(value_of(name, &mut room).to_vec());
            if behind != b'=' {
                found.push(pair_of(std::mem::take(&mut pair), given)?);
            }
        }
    }
    Ok(found)
}

/// Names with the byte behind each, a comma or `=`. Quotes around a name hold such a byte in it.
fn cut_names(given: &[u8]) -> Vec<(&[u8], u8)> {
    let (mut names, mut start, mut is_quoted) = (Vec::new(), 0, false);
    for (at, byte) in given.iter().chain(b",").enumerate() {
        match byte {
            b'"' if given.get(start) == Some(byte) => is_quoted = !is_quoted,
            b',' | b'=' if !is_quoted || at == given.len() => {
                names.push((given.get(start..at).unwrap_or_default(), *byte));
                start = at + 1;
            }
            _ => {}
        }
    }
    names
}

/// A name of each side; one alone is that of both.
fn pair_of(mut names: Vec<Vec<u8>>, given: &str) -> Result<[Vec<u8>; 2]> {
    if let [both] = names.as_slice() {
        names.push(both.clone());
    }
    let pair = <[Vec<u8>; 2]>::try_from(names).ok();
    let pair = pair.filter(|names| names.iter().all(|name| !name.is_empty()));
    pair.ok_or_else(|| {
        wrong_option(
            "by",
            &format!("{given:?} does not name a column of each side"),
        )
        .advise("give id, or LEFT=RIGHT; a name that has a comma or = stands in double quotes")
    })
}

/// The header of rows that are put together: no name of the right is there already.
fn header(left: &JoinSide, right: &JoinSide, writer: &RecordWriter) -> Vec<u8> {
    let mut header = Vec::new();
    if !left.fields.has_header() && !right.fields.has_header() {
        return header;
    }
    let keys = left.key.iter().zip(&right.key).map(|(of_left, of_right)| {
        let name = left.fields.name(*of_left);
        name.or_else(|| right.fields.name(*of_right)) // the left is an empty file
    });
    let keys = keys.map(Option::unwrap_or_default);
    let mut names: Vec<Vec<u8>> = keys.chain(left.other_names()).map(<[u8]>::to_vec).collect();
    let mut known: HashSet<Vec<u8>> = names.iter().cloned().collect();
    for name in right.other_names() {
        let mut name = name.to_vec();
        while !known.insert(name.clone()) {
            name.extend_from_slice(SUFFIX);
        }
        names.push(name);
    }
    for (number, name) in names.iter().enumerate() {
        match number {
            0 => writer.first(name, &mut header),
            _ => writer.behind(name, &mut header),
        }
    }
    writer.end_row(&mut header);
    header
}

/// The header of rows of a side that are not changed.
fn header_as_it_is(side: &JoinSide, writer: &RecordWriter) -> Vec<u8> {
    let RecordFields::Table(Some(table)) = &side.fields else {
        return Vec::new();
    };
    if !side.fields.has_header() {
        return Vec::new();
    }
    let header = without_end(&table.header);
    let mut header = header.to_vec();
    writer.end_row(&mut header);
    header
}

/// One of the two inputs.
#[derive(Debug)]
struct JoinSide {
    fields: RecordFields,
    key: Vec<usize>,
}

impl JoinSide {
    fn of(fields: RecordFields, key: Vec<usize>) -> Self {
        JoinSide { fields, key }
    }

    /// JoinKind many columns it has that are no key; 0 where that differs from row to row.
    fn others(&self) -> usize {
        let columns = 0..self.fields.width();
        columns.filter(|column| !self.key.contains(column)).count()
    }

    /// The names of the columns that are no key.
    fn other_names(&self) -> impl Iterator<Item = &[u8]> {
        let columns = (0..self.fields.width()).filter(|column| !self.key.contains(column));
        columns.map(|column| self.fields.name(column).unwrap_or_default())
    }

    /// A record without its end.
    fn whole<'a>(&self, record: &Records<'a>) -> &'a [u8] {
        match self.fields {
            RecordFields::Table(_) => without_end(record.bytes),
            RecordFields::Lines(_) => record.bytes.strip_suffix(b"\n").unwrap_or(record.bytes),
        }
    }
}

/// Joins rows.
#[derive(Debug)]
struct JoinOperator {
    how: JoinKind,
    left: JoinSide,
    right: JoinSide,
    /// What stands in a row for the other cells of a side that has no row.
    absent_left: Vec<u8>,
    absent_right: Vec<u8>,
    header: Vec<u8>,
    writer: RecordWriter,
}

impl Operator for JoinOperator {
    fn ordered(&self) -> bool {
        true
    }

    fn header(&self) -> &[u8] {
        &self.header
    }

    fn mapper(&self, _memory: usize) -> Result<Box<dyn Mapper + '_>> {
        Ok(Box::new(JoinMapper {
            join: self,
            key: Vec::new(),
            value: Vec::new(),
            room: Vec::new(),
        }))
    }

    fn reducer(&self, memory: usize) -> Result<Box<dyn Reducer + '_>> {
        Ok(Box::new(JoinReducer {
            join: self,
            held: HeldRows::within(memory),
            is_inside: false,
            has_left: false,
            row: Vec::new(),
            key_bytes: 0,
            rows: 0,
        }))
    }
}

struct JoinMapper<'o> {
    join: &'o JoinOperator,
    key: Vec<u8>,
    value: Vec<u8>,
    room: Vec<u8>,
}

impl Mapper for JoinMapper<'_> {
    fn records(&mut self, record: &Records<'_>, pairs: &mut Pairs<'_>) -> Result<()> {
        let (side, order) = match record.input {
            LEFT => (&self.join.left, LEFT_ORDER),
            _ => (&self.join.right, RIGHT_ORDER),
        };
        self.key.clear();
        let mut key = ValueWriter::new(&mut self.key);
        key.begin_tuple()?;
        for column in &side.key {
            key.bytes(side.fields.value(record, *column, &mut self.room));
        }
        key.end_tuple();
        self.value.clear();
        if !self.join.how.selects() {
            for column in (0..record.fields.len()).filter(|column| !side.key.contains(column)) {
                let cell = side.fields.value(record, column, &mut self.room);
                self.join.writer.behind(cell, &mut self.value);
            }
        } else if record.input == LEFT {
            self.value.extend_from_slice(side.whole(record));
        }
        pairs.give(&self.key, order, &self.value)
    }
}

/// The right rows of a key: those that fit in memory.
struct HeldRows {
    /// Their cells but for the key, and where those of each row end.
    cells: Vec<u8>,
    ends: Vec<usize>,
    /// All rows, also those that are not held, and their bytes.
    rows: u64,
    bytes: u64,
    room: usize,
}

impl HeldRows {
    fn within(memory: usize) -> Self {
        HeldRows {
            cells: Vec::new(),
            ends: Vec::new(),
            rows: 0,
            bytes: 0,
            room: memory / 2, // a vector that grows has room for twice of what is in it
        }
    }

    fn clear(&mut self) {
        self.cells.clear();
        self.ends.clear();
        (self.rows, self.bytes) = (0, 0);
    }

    /// Takes a row, and holds it if all before are held, and there is room.
    fn take(&mut self, cells: &[u8]) {
        self.rows += 1;
        self.bytes += (cells.len() + size_of::<usize>()) as u64;
        if self.are_all() {
            self.cells.extend_from_slice(cells);
            self.ends.push(self.cells.len());
        }
    }

    /// Whether all rows are held.
    fn are_all(&self) -> bool {
        self.bytes <= self.room as u64
    }

    fn check(&self, key: &[u8]) -> Result<()> {
        match self.are_all() {
            true => Ok(()),
            false => Err(self.too_many(key)),
        }
    }

    #[cold]
    fn too_many(&self, key: &[u8]) -> Error {
        let (rows, key) = (self.rows, shown(key));
        let (bytes, room) = (show_bytes(self.bytes), show_bytes(self.room as u64));
        let message = format!(
            "the right has {rows} rows of the key {key}, which are held in memory: they take {bytes}, and a worker has room for {room}"
        );
        Error::new(Kind::Memory, "join a key", message).advise_options(
            "give more {}, or fewer {}; or give the inputs in the other order, as rows of the left are not held",
            [JobOption::Memory.named(), JobOption::Workers.named()],
        )
    }

    /// The rows, in the order of their input.
    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            let row = self.cells.get(start..*end).unwrap_or_default();
            start = *end;
            row
        })
    }
}

/// The cells of a key, for people.
fn shown(key: &[u8]) -> String {
    let (mut cells, mut key) = (Vec::new(), ValueReader::new(key));
    while let Ok(Some(token)) = key.token() {
        if let Token::Bytes(cell) = token {
            let cell = String::from_utf8_lossy(&cell);
            let cell: String = cell.chars().take(SHOWN_CHARS).collect();
            cells.push(format!("{cell:?}"));
        }
    }
    cells.join(", ")
}

struct JoinReducer<'o> {
    join: &'o JoinOperator,
    held: HeldRows,
    /// Whether there may be more pairs of the present key, and whether it had a left row.
    is_inside: bool,
    has_left: bool,
    /// The row to write, which begins with so many bytes of the key.
    row: Vec<u8>,
    key_bytes: usize,
    /// Rows written.
    rows: usize,
}

impl Reducer for JoinReducer<'_> {
    fn next(&mut self, groups: &mut MergedGroups, part: &mut PartFiles) -> Result<bool> {
        if !self.is_inside {
            if !groups.next_group()? {
                return Ok(false);
            }
            self.begin(groups.key())?;
        }
        let (mut pairs, rows) = (0, self.rows);
        while pairs + (self.rows - rows) < ROWS_A_STEP {
            if !groups.next_pair()? {
                self.is_inside = false;
                self.end_key(groups.key(), part)?;
                break;
            }
            pairs += 1;
            if groups.order() == RIGHT_ORDER {
                self.take_right(groups.value());
            } else {
                self.has_left = true;
                self.take_left(groups, part)?;
            }
        }
        Ok(true)
    }
}

impl JoinReducer<'_> {
    fn begin(&mut self, key: &[u8]) -> Result<()> {
        self.held.clear();
        (self.is_inside, self.has_left) = (true, false);
        self.row.clear();
        if self.join.how.selects() {
            return Ok(());
        }
        let (mut key, mut cells) = (ValueReader::new(key), 0);
        while let Some(token) = key.token()? {
            if let Token::Bytes(cell) = token {
                match cells {
                    0 => self.join.writer.first(&cell, &mut self.row),
                    _ => self.join.writer.behind(&cell, &mut self.row),
                }
                cells += 1;
            }
        }
        self.key_bytes = self.row.len();
        Ok(())
    }

    fn take_right(&mut self, cells: &[u8]) {
        match self.join.how.selects() {
            true => self.held.rows += 1,
            false => self.held.take(cells),
        }
    }

    /// Writes what becomes of the present pair, a left row.
    fn take_left(&mut self, groups: &MergedGroups, part: &mut PartFiles) -> Result<()> {
        let how = self.join.how;
        let has_match = self.held.rows > 0;
        if how.selects() {
            return match has_match == (how == JoinKind::Semi) {
                true => self.write_as_it_is(groups.value(), part),
                false => Ok(()),
            };
        }
        if has_match {
            self.held.check(groups.key())?;
            self.write_all(groups.value(), part)
        } else if how.keeps_left() {
            self.write_alone(groups.value(), part)
        } else {
            Ok(())
        }
    }

    /// Writes right rows without a match.
    fn end_key(&mut self, key: &[u8], part: &mut PartFiles) -> Result<()> {
        if self.has_left || !self.join.how.keeps_right() {
            return Ok(());
        }
        self.held.check(key)?;
        let join = self.join;
        self.write_all(&join.absent_left, part)
    }

    /// Writes a left row, or what stands for one, with each of the right rows.
    fn write_all(&mut self, left: &[u8], part: &mut PartFiles) -> Result<()> {
        for right in self.held.iter() {
            self.row.truncate(self.key_bytes);
            self.row.extend_from_slice(left);
            self.row.extend_from_slice(right);
            self.join.writer.end_row(&mut self.row);
            part.record(&self.row)?;
        }
        self.rows += self.held.ends.len();
        Ok(())
    }

    /// Writes a left row that has no match.
    fn write_alone(&mut self, left: &[u8], part: &mut PartFiles) -> Result<()> {
        self.row.truncate(self.key_bytes);
        self.row.extend_from_slice(left);
        self.row.extend_from_slice(&self.join.absent_right);
        self.join.writer.end_row(&mut self.row);
        part.record(&self.row)
    }

    /// Writes a left row that was chosen.
    fn write_as_it_is(&mut self, left: &[u8], part: &mut PartFiles) -> Result<()> {
        self.row.clear();
        self.row.extend_from_slice(left);
        self.join.writer.end_row(&mut self.row);
        part.record(&self.row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(by: &str) -> Result<Vec<[Vec<u8>; 2]>> {
        names_by(&[by.to_owned()])
    }

    #[test]
    fn names_are_of_both_sides_or_of_each() {
        let pair = |left: &str, right: &str| [left.as_bytes().to_vec(), right.as_bytes().to_vec()];
        let found = named(r#"id,city=town,"a,=b"="c"",d",5"=6"#).unwrap();
        let wanted = [
            pair("id", "id"),
            pair("city", "town"),
            pair("a,=b", "c\",d"),
            pair("5\"", "6"),
        ];
        assert_eq!(found, wanted);
        assert!(names_by(&[]).is_err());
        for wrong in ["", "a,", "=", "a=", "=b", "a=b=c"] {
            assert!(named(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rows_are_held_as_long_as_all_fit() {
        let mut held = HeldRows::within(40);
        held.take(b"ab");
        held.take(b"");
        assert_eq!(held.iter().collect::<Vec<_>>(), [&b"ab"[..], b""]);
        assert!(held.check(b"").is_ok());
        held.take(b"c");
        held.take(b"");
        assert_eq!((held.ends.len(), held.rows), (2, 4));
        assert!(held.check(b"").unwrap_err().to_string().contains("4 rows"));
        held.clear();
        assert!(held.are_all() && held.iter().next().is_none());
    }
}

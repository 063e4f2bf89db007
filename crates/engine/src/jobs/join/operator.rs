//! What `join` does with rows: pairs of both sides, and what becomes of those of a key.

use super::join_kind::JoinKind;
use crate::jobs::tables::{RecordFields, RecordWriter};
use gristmill_base::error::{Error, JobOption, Kind, Result, show_bytes};
use gristmill_base::record::table::without_end;
use gristmill_base::value::{Token, ValueReader};
use gristmill_tasks::merge::groups::MergedGroups;
use gristmill_tasks::task::{Mapper, Operator, Pairs, PartFiles, Records, Reducer};

/// The numbers of the inputs.
pub(super) const LEFT: usize = 0;
pub(super) const RIGHT: usize = 1;

/// What orders the pairs of a key: right rows come first, as they are held.
const RIGHT_ORDER: &[u8] = &[0];
const LEFT_ORDER: &[u8] = &[1];

/// Pairs and rows between two looks at whether the task should stop.
const ROWS_A_STEP: usize = 1 << 12;

/// Characters of a cell that an error shows.
const SHOWN_CHARS: usize = 80;

/// One of the two inputs.
#[derive(Debug)]
pub(super) struct JoinSide {
    pub(super) fields: RecordFields,
    pub(super) key: Vec<usize>,
}

impl JoinSide {
    pub(super) fn of(fields: RecordFields, key: Vec<usize>) -> Self {
        JoinSide { fields, key }
    }

    /// How many columns it has that are no key; 0 where that differs from row to row.
    pub(super) fn others(&self) -> usize {
        let columns = 0..self.fields.width();
        columns.filter(|column| !self.key.contains(column)).count()
    }

    /// The names of the columns that are no key.
    pub(super) fn other_names(&self) -> impl Iterator<Item = &[u8]> {
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
pub(super) struct JoinOperator {
    pub(super) how: JoinKind,
    pub(super) left: JoinSide,
    pub(super) right: JoinSide,
    /// What stands in a row for the other cells of a side that has no row.
    pub(super) absent_left: Vec<u8>,
    pub(super) absent_right: Vec<u8>,
    pub(super) header: Vec<u8>,
    pub(super) writer: RecordWriter,
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
        side.fields
            .write_key(record, &side.key, &mut self.room, &mut self.key)?;
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

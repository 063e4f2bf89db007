//! The rows of one key that one input has: those that fit in memory.

use gristmill_base::error::{Error, JobOption, Kind, Result, show_bytes};
use gristmill_base::value::{Token, ValueReader};

/// Characters of a cell that an error shows.
const SHOWN_CHARS: usize = 80;

/// Rows, one behind another.
pub(super) struct HeldRows {
    /// Their bytes, and where those of each row end.
    cells: Vec<u8>,
    ends: Vec<usize>,
    /// All rows, also those that are not held, and their bytes.
    rows: u64,
    bytes: u64,
    room: usize,
}

impl HeldRows {
    /// None yet; it may take so many bytes of memory.
    pub(super) fn within(memory: usize) -> Self {
        HeldRows {
            cells: Vec::new(),
            ends: Vec::new(),
            rows: 0,
            bytes: 0,
            room: memory / 2, // a vector that grows has room for twice of what is in it
        }
    }

    pub(super) fn clear(&mut self) {
        self.cells.clear();
        self.ends.clear();
        (self.rows, self.bytes) = (0, 0);
    }

    /// Takes a row, and holds it if all before are held, and there is room.
    pub(super) fn take(&mut self, cells: &[u8]) {
        self.rows += 1;
        self.bytes += (cells.len() + size_of::<usize>()) as u64;
        if self.are_all() {
            self.cells.extend_from_slice(cells);
            self.ends.push(self.cells.len());
        }
    }

    /// Counts a row whose bytes nobody asks for.
    pub(super) fn count(&mut self) {
        self.rows += 1;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// How many are held.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// A row that is held, by its number in the order of the input.
    #[inline]
    pub(super) fn get(&self, number: usize) -> &[u8] {
        let end = |number: usize| self.ends.get(number).copied().unwrap_or_default();
        let start = number.checked_sub(1).map_or(0, end);
        self.cells.get(start..end(number)).unwrap_or_default()
    }

    /// Whether all rows are held.
    fn are_all(&self) -> bool {
        self.bytes <= self.room as u64
    }

    /// Fails unless all are held, which are `whose` and have this key.
    pub(super) fn check(&self, whose: &str, key: &[u8]) -> Result<()> {
        match self.are_all() {
            true => Ok(()),
            false => Err(self.too_many(whose, key)),
        }
    }

    #[cold]
    fn too_many(&self, whose: &str, key: &[u8]) -> Error {
        let (rows, key) = (self.rows, shown(key));
        let (bytes, room) = (show_bytes(self.bytes), show_bytes(self.room as u64));
        let message = format!(
            "{whose} has {rows} rows of the key {key}, which are held in memory: they take {bytes}, and a worker has room for {room}"
        );
        Error::new(Kind::Memory, "join a key", message).advise_options(
            "give more {}, or fewer {}; or give the inputs in the other order, as rows of the left are not held",
            [JobOption::Memory.named(), JobOption::Workers.named()],
        )
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_held_as_long_as_all_fit() {
        let mut held = HeldRows::within(40);
        held.take(b"ab");
        held.take(b"");
        assert_eq!((held.get(0), held.get(1)), (&b"ab"[..], &b""[..]));
        assert!(held.check("the right", b"").is_ok());
        held.take(b"c");
        held.take(b"");
        assert_eq!((held.len(), held.rows), (2, 4));
        let error = held.check("the right", b"").unwrap_err().to_string();
        assert!(error.contains("the right has 4 rows"), "{error}");
        held.clear();
        assert!(held.are_all() && held.is_empty() && held.ends.is_empty());
    }
}

//! What a row of the output is put together of: pieces of the rows of the inputs, one behind another.
//!
//! ```text
//!   tables           key │ other cells of the left │ other cells of the right
//!   -o 1.2,0,1.1,2.1 1.2 │ key │ 1.1 │ 2.1                  three pieces of rows, and the key
//! ```
//!
//! A row travels as its pieces: before each but the last stand its bytes, as four bytes. Pieces have what separates their fields
//! from those before.

/// What stands next in a row of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowPiece {
    /// The key.
    Key,
    /// What separates it from what stands before.
    Between,
    /// A piece of the row of an input.
    Of { input: usize, piece: usize },
}

/// The pieces of a row of the output.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) pieces: Vec<RowPiece>,
    /// How many pieces the rows of each input have.
    pub(super) counts: Vec<usize>,
    /// Whether the first piece of each row is the key as it stands there: equal keys may be written in several ways.
    pub(super) keeps_key: bool,
    /// What separates fields.
    pub(super) between: u8,
}

impl Layout {
    /// The key, then what else each of so many inputs has.
    pub(super) fn key_first(inputs: usize, keeps_key: bool, between: u8) -> Self {
        let first = usize::from(keeps_key);
        let of = (0..inputs).map(|input| RowPiece::Of {
            input,
            piece: first,
        });
        Layout {
            pieces: std::iter::once(RowPiece::Key).chain(of).collect(),
            counts: vec![first + 1; inputs],
            keeps_key,
            between,
        }
    }

    /// Writes a row of the output behind what `out` holds, of a row of each input. `key` is how the key is written, if rows do not
    /// keep theirs, and `source` the first input that has a row.
    #[inline]
    pub(super) fn write<'r>(
        &self,
        key: &[u8],
        source: usize,
        row_of: impl Fn(usize) -> &'r [u8],
        out: &mut Vec<u8>,
    ) {
        for piece in &self.pieces {
            let bytes = match *piece {
                RowPiece::Between => std::slice::from_ref(&self.between),
                RowPiece::Key if self.keeps_key => self.piece_of(row_of(source), source, 0),
                RowPiece::Key => key,
                RowPiece::Of { input, piece } => self.piece_of(row_of(input), input, piece),
            };
            out.extend_from_slice(bytes);
        }
    }

    /// A piece of a row of an input.
    #[inline]
    fn piece_of<'r>(&self, row: &'r [u8], input: usize, number: usize) -> &'r [u8] {
        let last = self
            .counts
            .get(input)
            .map_or(0, |count| count.saturating_sub(1));
        let mut rest = row;
        for at in 0..last {
            let Some((length, behind)) = rest.split_first_chunk() else {
                return &[];
            };
            let length = u32::from_le_bytes(*length) as usize;
            let (piece, behind) = behind.split_at_checked(length).unwrap_or_default();
            if at == number {
                return piece;
            }
            rest = behind;
        }
        rest
    }
}

/// Writes a piece of a row that has others behind it.
pub(super) fn write_piece(row: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = row.len();
    row.extend_from_slice(&[0; 4]);
    write(row);
    let length = (row.len() - start - 4) as u32; // a record is shorter
    if let Some(place) = row.get_mut(start..start + 4) {
        place.copy_from_slice(&length.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_in_their_order() {
        let of = |input, piece| RowPiece::Of { input, piece };
        let layout = Layout {
            pieces: vec![
                of(0, 1),
                RowPiece::Between,
                RowPiece::Key,
                of(1, 1),
                of(0, 2),
            ],
            counts: vec![3, 2],
            keeps_key: true,
            between: b',',
        };
        let mut left = Vec::new();
        write_piece(&mut left, |row| row.extend_from_slice(b"K"));
        write_piece(&mut left, |_| ());
        left.extend_from_slice(b"c");
        let mut right = Vec::new();
        write_piece(&mut right, |row| row.extend_from_slice(b"k"));
        right.extend_from_slice(b"xyz");
        let rows = [left.as_slice(), right.as_slice()];
        for (source, wanted) in [(0, ",Kxyzc"), (1, ",kxyzc")] {
            let mut out = Vec::new();
            layout.write(b"", source, |input| rows[input], &mut out);
            assert_eq!(out, wanted.as_bytes());
        }
        let mut out = Vec::new();
        let layout = Layout::key_first(2, false, b',');
        layout.write(b"key", 0, |input| [&b"|a"[..], b"|b"][input], &mut out);
        assert_eq!(out, b"key|a|b");
    }
}

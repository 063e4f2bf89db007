//! Lines of an output behind the codes that they were sorted by: made again, as the output does not hold them.
//!
//! ```text
//!   blocks of a range ──▶ lines, or rows ──encode──▶ lengths, code, line      as a spill made them (`spill/keyed.rs`, `spill/rows.rs`)
//! ```
//!
//! Ranges begin where lines and rows do. The header of a table has no code; it is the first row of the first file.

use std::path::PathBuf;

use gristmill_gnu_keys::Keys;

use super::checkpoint::WrittenRange;
use super::kinds::spill::parse_keys;
use crate::spill::keyed::lines_of;
use crate::spill::record_assembler::RecordAssembler;
use gristmill_base::error::Result;
use gristmill_base::record::row_ends::RowEnds;
use gristmill_base::record::shape::{EndedLineShape, Keyed, Shape};
use gristmill_base::record::table_keys::{RowCodes, TableKeys};

/// What gives the lines of an output their codes again.
#[derive(Debug, Clone)]
pub enum Codes {
    /// Lines with these keys, as GNU sort's options have them.
    Lines(Vec<String>),
    /// Rows of a table.
    Rows {
        /// How they are keyed.
        table: TableKeys,
        /// The name of the file that begins with the header.
        first_file: PathBuf,
    },
}

/// The lines of a range, one after the other.
pub(super) struct Recoded {
    shape: Keyed,
    coder: Coder,
    feed: RecordAssembler,
    record: Vec<u8>,
}

/// Tells lines from each other, and encodes them.
enum Coder {
    Lines(EndedLineShape, Keys, Vec<u8>),
    Rows(RowEnds, RowCodes, Vec<u8>, bool),
}

impl Recoded {
    /// For the lines of a range.
    ///
    /// # Errors
    /// There are no such keys.
    pub(super) fn new(shape: Keyed, codes: &Codes, range: &WrittenRange) -> Result<Self> {
        let coder = match codes {
            Codes::Lines(words) => {
                let keys = parse_keys(words)?;
                Coder::Lines(lines_of(&keys), keys, Vec::new())
            }
            Codes::Rows { table, first_file } => {
                let begins = range.offset == 0 && range.file == *first_file;
                let ends = match begins {
                    true => RowEnds::of_file(table.delimiter),
                    false => RowEnds::new(table.delimiter),
                };
                let has_header = begins && table.header.is_some();
                Coder::Rows(ends, RowCodes::new(table)?, Vec::new(), has_header)
            }
        };
        Ok(Recoded {
            shape,
            coder,
            feed: RecordAssembler::new(usize::MAX),
            record: Vec::new(),
        })
    }

    /// Hands on the lines that end in `bytes`, behind their codes; false where a row is none of its table.
    pub(super) fn block(
        &mut self,
        bytes: &[u8],
        take: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<bool> {
        let (shape, record) = (self.shape, &mut self.record);
        let mut fits = true;
        let mut emit = |code: &[u8], line: &[u8]| {
            record.clear();
            shape.write(code, line, record);
            take(record)
        };
        let ended = match &mut self.coder {
            Coder::Lines(lines, keys, code) => {
                let mut ends = |begun, more: &[u8]| lines.rest_length(begun, more);
                self.feed.block(bytes, &mut ends, &mut |line| {
                    code.clear();
                    keys.encode(lines.key(line), code);
                    emit(code, line)
                })
            }
            Coder::Rows(ends, codes, code, is_header) => {
                let mut ends = |_, more: &[u8]| ends.rest(more);
                self.feed.block(bytes, &mut ends, &mut |row| {
                    code.clear();
                    let header = std::mem::take(is_header);
                    fits &= header || codes.encode(row, code).is_ok();
                    emit(code, row)
                })
            }
        };
        Ok(ended?.is_none() && fits)
    }

    /// Whether the last line was whole.
    pub(super) fn is_whole(&mut self) -> bool {
        self.feed.rest().is_ok_and(|rest| rest.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::merge::output::MergeProof;
    use crate::task::{Checkpoint, MergeReport, Proved, TaskReport, verify};
    use gristmill_base::record::sum::line_crc;
    use gristmill_base::record::table_keys::{ColumnKey, TableSource};
    use gristmill_storage::memory::Memory;
    use gristmill_storage::{Caching, LocalDisk as _, OutputStore as _};

    const ROWS: Keyed = Keyed { whole_lines: false };
    const LINES: Keyed = Keyed { whole_lines: true };

    fn numbers() -> Codes {
        Codes::Lines(["-t", ",", "-k", "2,2n"].map(String::from).to_vec())
    }

    fn table() -> Codes {
        let key = ColumnKey {
            column: 1,
            letters: "g".to_owned(),
        };
        Codes::Rows {
            table: TableKeys {
                delimiter: b',',
                columns: 2,
                keys: vec![key],
                skip_bad: 0,
                pads: false,
                comment: None,
                ending: "\n".to_owned(),
                header: Some(TableSource::File(0)),
                no_header: false,
            },
            first_file: "part".into(),
        }
    }

    /// What is proved of `range` of a file, of which it was said that it holds `lines` with so many equal keys.
    fn prove(
        (shape, codes): (Keyed, &Codes),
        whole: &[u8],
        range: Range<usize>,
        (lines, duplicates): (&[&[u8]], u64),
    ) -> Option<MergeProof> {
        let store = Memory::with_room_for(1 << 20);
        store.create_directory("/o".as_ref()).unwrap();
        let file = store.create("/o/part".as_ref(), whole.len() as u64, Caching::Cached);
        file.unwrap().write_at(whole, 0).unwrap();
        let range = WrittenRange {
            file: "part".into(),
            file_bytes: whole.len() as u64,
            offset: range.start as u64,
            bytes: range.len() as u64,
            records: lines.len() as u64,
            duplicates,
            checksum: lines.iter().map(|line| u128::from(line_crc(line))).sum(),
        };
        let records = Proved {
            shape: shape.kind(),
            unique: false,
            codes: Some(codes),
        };
        let kept = Checkpoint::Merge(vec![range]);
        let proved = verify(&kept, records, &store, "/o".as_ref()).ok()??;
        let TaskReport::Merge(MergeReport { mut proofs, .. }) = proved else {
            return None;
        };
        proofs.pop()
    }

    /// Any byte that is not what it was is noticed, and so are lines in another order, whose sum is the same.
    #[test]
    fn lines_by_keys_are_proved_from_their_bytes_and_their_order() {
        let (whole, lines) = (b"x,2\na,9\nb,9\n", [&b"x,2\n"[..], b"a,9\n", b"b,9\n"]);
        let of = (LINES, &numbers());
        let proof = prove(of, whole, 0..12, (&lines, 0)).unwrap();
        assert_eq!((proof.records, proof.bytes, proof.duplicates), (3, 12, 0));
        let (first, last) = proof.ends.unwrap();
        assert!(first.ends_with(b"x,2") && last.ends_with(b"b,9"));
        assert!(prove(of, whole, 4..12, (&lines[1..], 0)).is_some());
        for at in 0..whole.len() {
            let mut damaged = *whole;
            damaged[at] ^= 1;
            assert_eq!(prove(of, &damaged, 0..12, (&lines, 0)), None, "byte {at}");
        }
        assert_eq!(prove(of, b"a,9\nx,2\nb,9\n", 0..12, (&lines, 0)), None);
        // In the order of the input nothing decides between equal keys, and they are counted.
        let of = (ROWS, &numbers());
        assert!(prove(of, b"x,2\nb,9\na,9\n", 0..12, (&lines, 1)).is_some());
    }

    /// The header has no number, and would be behind rows whose numbers are below 0.
    #[test]
    fn rows_are_proved_behind_the_header_of_their_table() {
        let whole = b"\xef\xbb\xbf\"na\nme\",n\n\"a\nb\",-7\nc,1e3\n";
        let rows = [&whole[..13], &whole[13..22], &whole[22..]];
        let of = (ROWS, &table());
        let proof = prove(of, whole, 0..28, (&rows, 0)).unwrap();
        assert_eq!((proof.records, proof.ends.unwrap().0), (3, Vec::new()));
        assert!(prove(of, whole, 13..28, (&rows[1..], 0)).is_some());
        // Cut where no row begins, and with a row that has too many fields.
        let cut = [&whole[14..16], &whole[16..22], rows[2]];
        assert_eq!(prove(of, whole, 14..28, (&cut, 0)), None);
        let bad = b"a,n\nb,1\nc,2,3\n";
        assert_eq!(
            prove(of, bad, 0..14, (&[&bad[..4], &bad[4..8], &bad[8..]], 0)),
            None
        );
    }

    /// Whatever the blocks are that it is read in: `verify` reads a quarter of a megabyte at once.
    #[test]
    fn lines_that_lie_in_two_blocks_are_proved() {
        let line = |number: u32| format!("{:0>100},{number:09}\n", "").into_bytes();
        let lines: Vec<Vec<u8>> = (0..6000).map(line).collect();
        let (whole, parts) = (lines.concat(), lines.iter().map(|line| &**line));
        let parts: Vec<&[u8]> = parts.collect();
        for of in [(LINES, &numbers()), (ROWS, &numbers())] {
            assert!(prove(of, &whole, 0..whole.len(), (&parts, 0)).is_some());
        }
    }
}

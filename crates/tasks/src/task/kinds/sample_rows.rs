//! Samples of the keys of rows: what seems to be a row at or behind each of some places.
//!
//! Whether a place lies in quotes nobody knows without the whole file before it. So what begins behind a newline and has the fields of
//! the header is taken for a row. Should it be none, parts of the output are less even, and nothing else.

use crate::task::{TaskAttempt, TaskContext};
use gristmill_base::error::Result;
use gristmill_base::order::borders::{Border, KEY_BYTES_MAX};
use gristmill_base::record::table_keys::{RowCodes, TableKeys};
use gristmill_storage::Caching;

/// Bytes that are looked at from each place on.
const LOOK_BYTES: usize = 16 << 10;

/// Newlines behind a place that may begin a row.
const TRIES: usize = 8;

/// The codes of rows at these places of files.
pub(super) fn sample(
    table: &TableKeys,
    places: &[(usize, u64)],
    context: &TaskContext,
    attempt: &TaskAttempt<'_>,
) -> Result<Vec<Border>> {
    let mut codes = RowCodes::new(table)?;
    let (mut borders, mut buffer) = (Vec::with_capacity(places.len()), vec![0; LOOK_BYTES]);
    for (number, offset) in places {
        attempt.progress(0)?;
        let input = &context.job.files[*number];
        let file = context.node.store.open_input(input, Caching::Cached)?;
        let read = file.read_at(&mut buffer, *offset)?;
        if let Some(mut key) = code_in(&buffer[..read], table, &mut codes) {
            key.truncate(KEY_BYTES_MAX);
            borders.push(Border { key, position: 0 });
        }
    }
    Ok(borders)
}

/// The code of the first thing behind a newline that is a row.
fn code_in(bytes: &[u8], table: &TableKeys, codes: &mut RowCodes) -> Option<Vec<u8>> {
    let begins = memchr::memchr_iter(b'\n', bytes).take(TRIES);
    begins.into_iter().find_map(|newline| {
        let rest = bytes.get(newline + 1..)?;
        let length = table.row_ends().rest(rest)?;
        let mut code = Vec::new();
        codes.encode(rest.get(..length)?, &mut code).ok()?;
        Some(code)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_base::record::table_keys::ColumnKey;

    #[test]
    fn a_row_is_what_has_the_fields_of_the_header() {
        let table = TableKeys {
            delimiter: b',',
            columns: 2,
            keys: vec![ColumnKey {
                column: 0,
                letters: String::new(),
            }],
            skip_bad: 0,
            pads: false,
            comment: None,
            ending: "\n".to_owned(),
            header: None,
            no_header: false,
        };
        let mut codes = RowCodes::new(&table).unwrap();
        let mut code = |bytes: &[u8]| code_in(bytes, &table, &mut codes);
        assert_eq!(code(b"of,a\nb\nc,1\nd,2\n").unwrap(), b"c\0");
        assert_eq!(code(b"of,a\nc,1"), None);
        assert_eq!(code(b"no row here"), None);
    }
}

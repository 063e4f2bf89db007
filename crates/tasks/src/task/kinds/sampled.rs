//! What is kept of the key of a record that is sampled.

use gristmill_gnu_keys::Keys;

use gristmill_base::order::borders::KEY_BYTES_MAX;
use gristmill_base::record::shape::{Keyed, ShapeKind};
use gristmill_base::record::table_keys::TableKeys;

/// What the records are, and what their keys.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sampled<'a> {
    pub(super) shape: ShapeKind,
    /// GNU sort's options for keys; none where lines have none.
    pub(super) keys: &'a [String],
    /// How rows are keyed, where the input is a table.
    pub(super) table: Option<&'a TableKeys>,
}

/// The beginning of a key.
pub(super) fn bytes_of_key(key: &[u8]) -> Vec<u8> {
    key[..key.len().min(KEY_BYTES_MAX)].to_vec()
}

/// What a line is compared by, or its beginning.
pub(super) fn code_of(keyed: Keyed, keys: &Keys, line: &[u8]) -> Vec<u8> {
    let mut code = Vec::new();
    keys.encode(line, &mut code);
    if keyed.whole_lines {
        code.extend_from_slice(line);
    }
    code.truncate(KEY_BYTES_MAX);
    code
}

//! Words for what a task works on, for people who read the job's history.
//!
//! ```text
//!   big.txt, bytes 0 to 4194304        part-r-00002, from byte 128000000        partition 3 of 8        20 runs
//! ```
//!
//! The words are for people alone: no program reads them back.

use std::path::Path;

use serde_json::Value;

use super::context::TaskContext;
use super::ranges::RangeSpec;
use crate::names::{self, show_path};
use crate::storage::input::InputRange;
use crate::storage::location::Location;

/// Pieces of the input.
pub(super) fn pieces(split: &[InputRange], context: &TaskContext) -> String {
    let Some(first) = split.first() else {
        return "nothing".to_owned();
    };
    let path = context
        .job
        .files
        .get(first.file)
        .map(|file| file.path.as_typed());
    let range = range(path, Some(first.offset), Some(first.bytes));
    with_more(range, split.len())
}

/// Ranges of the output.
pub(super) fn ranges(of: &[RangeSpec]) -> String {
    let Some(first) = of.first() else {
        return "nothing".to_owned();
    };
    let name = name_of(&first.file.path);
    with_more(format!("{name}, from byte {}", first.offset), of.len())
}

/// The files that a split names, as the formats of text, of Python and of scripts describe them.
pub(super) fn of_files(what: &Value) -> Option<String> {
    let listed = what.get("pieces").and_then(Value::as_array);
    let (first, all) = match listed {
        Some(pieces) => (pieces.first()?, pieces.len()),
        None => (what, 1),
    };
    let path = names::name_of(first.get("path")?.as_str()?.to_owned());
    let number = |name: &str| first.get(name).and_then(Value::as_u64);
    let range = range(Some(path.as_ref()), number("start"), number("bytes"));
    Some(with_more(range, all))
}

fn range(path: Option<&Path>, from: Option<u64>, bytes: Option<u64>) -> String {
    let path = path.map(show_path).unwrap_or_default();
    match (from, bytes) {
        (Some(from), Some(bytes)) => format!("{path}, bytes {from} to {}", from + bytes),
        _ => path,
    }
}

fn with_more(first: String, all: usize) -> String {
    match all {
        0 | 1 => first,
        _ => format!("{first}, and {} more", all - 1),
    }
}

pub(super) fn name_of(location: &Location) -> String {
    show_path(location.name().unwrap_or_default())
}

pub(super) fn count(number: usize, of: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {of}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn splits_are_named_by_their_first_file() {
        let text = json!({"pieces": [{"path": "a.txt", "start": 3, "bytes": 7}, {"path": "b"}]});
        assert_eq!(of_files(&text).unwrap(), "a.txt, bytes 3 to 10, and 1 more");
        let zipped = json!({"path": "a.kv.gz", "start": null, "bytes": 7});
        assert_eq!(of_files(&zipped).unwrap(), "a.kv.gz");
        for other in [
            json!({"first": 0, "chunks": []}),
            json!({"pieces": []}),
            json!(3),
        ] {
            assert_eq!(of_files(&other), None);
        }
    }
}

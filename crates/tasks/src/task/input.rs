//! What a task works on: words for people who read the job's history, and pieces of the input for who looks where they are.
//!
//! ```text
//!   big.txt, bytes 0 to 4194304        part-r-00002, from byte 128000000        partition 3 of 8        20 runs
//! ```
//!
//! The words are for people alone: no program reads them back.

use std::ops::Range;
use std::path::Path;

use serde_json::Value;

use super::context::{JobShared, TaskContext};
use super::ranges::RangeSpec;
use super::user::SplitData;
use gristmill_base::names::{self, show_path};
use gristmill_storage::input::InputRange;
use gristmill_storage::location::Location;

/// A range of a file of the input.
pub type InputPiece = (Location, Range<u64>);

/// The pieces of a split.
pub(super) fn input_pieces(split: &[InputRange], job: &JobShared) -> Vec<InputPiece> {
    let piece = |range: &InputRange| {
        let file = job.files.get(range.file)?;
        Some((file.path.clone(), range.range()))
    };
    split.iter().filter_map(piece).collect()
}

/// The pieces that a split of text, of Python or of scripts names; none of a split that names no far file.
pub(super) fn pieces_of_user_code(what: &SplitData) -> Vec<InputPiece> {
    if !what.text().contains("://") {
        return Vec::new();
    }
    let what = what.value();
    let listed = what.get("pieces").and_then(Value::as_array);
    let pieces = listed.map_or(std::slice::from_ref(&what), Vec::as_slice);
    let piece = |piece: &Value| {
        let path = names::name_of(piece.get("path")?.as_str()?.to_owned());
        let number = |name: &str| piece.get(name).and_then(Value::as_u64);
        let from = number("start").unwrap_or(0);
        let bytes = number("bytes").unwrap_or(u64::MAX);
        Some((
            Location::from(Path::new(&path)),
            from..from.saturating_add(bytes),
        ))
    };
    pieces.iter().filter_map(piece).collect()
}

/// Pieces of the input, in words.
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

/// All of an input file.
pub(super) fn whole(file: usize, context: &TaskContext) -> String {
    let path = context.job.files.get(file).map(|file| file.path.as_typed());
    range(path, None, None)
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
    fn splits_of_user_code_have_pieces_where_they_name_far_files() {
        let of = |what: Value| pieces_of_user_code(&SplitData::of(&what).unwrap());
        let text = json!({"pieces": [{"path": "hdfs://h/a", "start": 3, "bytes": 7}]});
        assert_eq!(of(text), [("hdfs://h/a".into(), 3..10)]);
        let zipped = json!({"path": "hdfs://h/a.kv.gz", "start": null});
        assert_eq!(of(zipped), [("hdfs://h/a.kv.gz".into(), 0..u64::MAX)]);
        assert_eq!(of(json!({"path": "a", "start": 0, "bytes": 7})), []);
    }

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

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

mod join_kind;
mod operator;

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt;
use std::slice;

use self::join_kind::JoinKind;
use self::operator::{JoinOperator, JoinSide, LEFT, RIGHT};
use super::kind::Described;
use super::mapreduce::{NativeJob, NativeOutput, one_if_sorted, wrong_option};
use super::tables::{InputTable, RecordFields, RecordWriter, RecordsAsked, record_options};
use crate::plan::table::{CommandSpec, Common, argument, option};
use gristmill_base::error::Result;
use gristmill_base::names::name_of;
use gristmill_base::record::table::{value_of, without_end};
use gristmill_storage::location::Location;
use gristmill_tasks::task::Operator;

/// What a name of the right gets behind it that is there already.
const SUFFIX: &[u8] = b"_right";

record_options! {
    keyed output,
    /// Options of `join`, as given.
    pub(in crate::jobs) struct JoinSpec {
        left: Location = argument(
            "A file, or a directory whose files are read (not those whose names begin with _ or .); compressed ones, too.",
        ),
        right: Location = argument("The file or directory whose rows are joined to those."),
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
...         f"{folder}/orders",
...         f"{folder}/cities",
...         output=f"{folder}/out",
...         csv=True,
...         by=["city=name"],
...         how="left",
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
}

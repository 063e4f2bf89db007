//! The columns that must be equal, as `--by` names them, and the names of the columns of the output.

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt;

use super::input::JoinTable;
use super::row::RowForm;
use crate::jobs::mapreduce::wrong_option;
use crate::jobs::tables::{FieldsAsked, InputTable, RecordFields, RecordWriter};
use gristmill_base::error::Result;
use gristmill_base::names::name_of;
use gristmill_base::record::table::{value_of, without_end};
use gristmill_storage::lines::LineEnd;

/// What a name of the right gets behind it that is there already, where there are two inputs.
const SUFFIX: &str = "_right";

/// The names that must be equal, one of each input: `id,city=town` are `id` of both, and `city` of the left with `town` of the right.
pub(super) fn names_by(words: &[String], inputs: usize) -> Result<Vec<Vec<Vec<u8>>>> {
    if words.is_empty() {
        return Err(wrong_option("by", "it must be given"));
    }
    let (mut found, mut room) = (Vec::new(), Vec::new());
    for given in words {
        let name = name_of(given.clone());
        let mut names = Vec::new();
        for (name, behind) in cut_names(name.as_bytes()) {
            names.push(value_of(name, &mut room).to_vec());
            if behind != b'=' {
                found.push(one_of_each(std::mem::take(&mut names), given, inputs)?);
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

/// A name of each input; one alone is that of all.
fn one_of_each(names: Vec<Vec<u8>>, given: &str, inputs: usize) -> Result<Vec<Vec<u8>>> {
    let names = match names.as_slice() {
        [one] => vec![one.clone(); inputs],
        _ => names,
    };
    if names.len() == inputs && names.iter().all(|name| !name.is_empty()) {
        return Ok(names);
    }
    let (whose, names) = match inputs {
        2 => ("each side", "LEFT=RIGHT".to_owned()),
        _ => ("each input", vec!["NAME"; inputs].join("=")),
    };
    let what = format!("{given:?} does not name a column of {whose}");
    Err(wrong_option("by", &what).advise(format!(
        "give id, or {names}; a name that has a comma or = stands in double quotes"
    )))
}

/// The number of a field of lines, from 0 on.
pub(super) fn field_number(name: &[u8]) -> Result<usize> {
    RecordFields::Lines(LineEnd::Lf, None).column(name)
}

/// The tables that are to be joined, with the columns of their keys; of none is anything known before headers were read.
pub(super) fn tables_joined(
    by: &[Vec<Vec<u8>>],
    (asked, selects): (FieldsAsked<'_>, bool),
    (tables, count): (&[InputTable], usize),
) -> Result<(Vec<JoinTable>, RecordWriter)> {
    let fields = (0..count).map(|input| asked.fields(tables.get(input)));
    let fields = fields.collect::<Result<Vec<_>>>()?;
    let known = fields.iter().find(|fields| fields.width() > 0); // others are empty files
    let writer = known.or_else(|| fields.first()).map(RecordFields::writer);
    let writer = writer.ok_or_else(|| gristmill_base::Error::bug("join", "there is no input"))?;
    let mut inputs = Vec::new();
    for (input, fields) in fields.into_iter().enumerate() {
        let names = by.iter().filter_map(|names| names.get(input));
        let key = names
            .map(|name| fields.column(name))
            .collect::<Result<_>>()?;
        let writer = writer.clone();
        // What is written of an object depends on the other rows.
        let form = match (RowForm::of(input, selects), &fields) {
            (RowForm::Pieces, RecordFields::Objects(_)) => RowForm::Whole,
            (form, _) => form,
        };
        inputs.push(JoinTable {
            fields,
            key,
            form,
            writer,
        });
    }
    Ok((inputs, writer))
}

/// What stands in a row for the cells of a table that has no row.
pub(super) fn absent(table: &JoinTable, empty: &[u8]) -> Vec<u8> {
    let mut cells = Vec::new();
    (table.others()).for_each(|_| table.writer.behind(empty, &mut cells));
    cells
}

/// What a name of an input gets behind it that is there already.
pub(super) fn suffix_of(input: usize, inputs: usize) -> String {
    match inputs {
        2 => SUFFIX.to_owned(),
        _ => format!("_{}", input + 1),
    }
}

/// All names in quotes, as paths of objects are named to their reader.
pub(super) fn quoted(by: &[Vec<Vec<u8>>]) -> Vec<String> {
    let quoted = |name: &Vec<u8>| {
        let name = String::from_utf8_lossy(name).replace('"', "\"\"");
        format!("\"{name}\"")
    };
    by.iter().flatten().map(quoted).collect()
}

/// The header of rows that are put together. A name that is there already gets `_right` behind it, as often as it takes; with more
/// inputs than two the number of its input, such as `_3`.
pub(super) fn header(tables: &[JoinTable], writer: &RecordWriter) -> Vec<u8> {
    let mut header = Vec::new();
    if !tables.iter().any(|table| table.fields.has_header()) {
        return header;
    }
    let keys = tables
        .iter()
        .map(|table| table.key.len())
        .max()
        .unwrap_or(0);
    let key_name = |number: usize| {
        let mut of_tables = tables.iter().filter_map(|table| {
            let column = table.key.get(number)?;
            table.fields.name(*column) // of an empty file there is none
        });
        of_tables.next().unwrap_or_default().to_vec()
    };
    let mut names: Vec<Vec<u8>> = (0..keys).map(key_name).collect();
    let mut known: HashSet<Vec<u8>> = names.iter().cloned().collect();
    for (input, table) in tables.iter().enumerate() {
        let suffix = suffix_of(input, tables.len());
        for column in table.others() {
            let mut name = table.fields.name(column).unwrap_or_default().to_vec();
            while !known.insert(name.clone()) && input > 0 {
                name.extend_from_slice(suffix.as_bytes());
            }
            names.push(name);
        }
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

/// The header of rows that are not changed.
pub(super) fn header_as_it_is(table: &JoinTable, writer: &RecordWriter) -> Vec<u8> {
    let RecordFields::Table(Some(known)) = &table.fields else {
        return Vec::new();
    };
    if !table.fields.has_header() {
        return Vec::new();
    }
    let mut header = without_end(&known.header).to_vec();
    writer.end_row(&mut header);
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(by: &str, inputs: usize) -> Result<Vec<Vec<Vec<u8>>>> {
        names_by(&[by.to_owned()], inputs)
    }

    #[test]
    fn names_are_of_all_inputs_or_of_each() {
        let names = |names: &[&str]| -> Vec<Vec<u8>> {
            names.iter().map(|name| name.as_bytes().to_vec()).collect()
        };
        let found = named(r#"id,city=town,"a,=b"="c"",d",5"=6"#, 2).unwrap();
        let wanted = [
            names(&["id", "id"]),
            names(&["city", "town"]),
            names(&["a,=b", "c\",d"]),
            names(&["5\"", "6"]),
        ];
        assert_eq!(found, wanted);
        let wanted = [names(&["id", "id", "id"]), names(&["a", "b", "c"])];
        assert_eq!(named("id,a=b=c", 3).unwrap(), wanted);
        assert!(names_by(&[], 2).is_err() && named("a=b", 3).is_err());
        for wrong in ["", "a,", "=", "a=", "=b", "a=b=c"] {
            assert!(named(wrong, 2).is_err(), "{wrong}");
        }
    }
}

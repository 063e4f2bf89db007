//! The columns of a table: what the options ask for, and which columns of the header they are.
//!
//! ```text
//!   --csv --key price:num:desc,name ──▶ keys as asked for ──header──▶ columns 2, 0
//! ```

use serde::{Deserialize, Serialize};

use super::RowsForm;
use super::requested_keys::{ORDERS, RequestedKey, asked_in, order_like, words_for_letters, wrong};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::record::shape::Keyed;
use gristmill_base::record::table::names_in;
use gristmill_base::record::table_keys::{ColumnKey, RowCodes, TableKeys, TableSource};
use gristmill_storage::lines::BYTE_ORDER_MARK;

/// Columns that an error names, at most.
const COLUMNS_SHOWN: usize = 50;
/// Characters of a name that an error shows, at most.
const NAME_SHOWN: usize = 100;
/// Characters of all names together, about: the name that goes beyond is the last.
const NAMES_SHOWN: usize = 200;

/// What all rows of the input have in common.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::jobs) struct InputTable {
    pub(in crate::jobs) keys: TableKeys,
    /// The names of the columns.
    pub(in crate::jobs) names: Vec<Vec<u8>>,
    /// The header as it was found first, with its end.
    pub(in crate::jobs) header: Vec<u8>,
    /// Where the header was found first.
    of: String,
    /// Whether a key is a column by its name.
    by_name: bool,
}

impl InputTable {
    /// A table of which no header is known yet.
    pub(in crate::jobs) fn new(form: RowsForm) -> Self {
        InputTable {
            keys: TableKeys {
                delimiter: form.delimiter,
                columns: 0,
                keys: Vec::new(),
                skip_bad: form.skip_bad,
                pads: form.pads,
                comment: form.comment,
                ending: "\n".to_owned(),
                header: None,
                no_header: form.no_header,
            },
            names: Vec::new(),
            header: Vec::new(),
            of: String::new(),
            by_name: false,
        }
    }

    /// Lines of which the first is known, and where it stands: they have no columns.
    pub(in crate::jobs) fn of_first_line(header: Vec<u8>, of: String) -> Self {
        let lines = InputTable::new(RowsForm {
            delimiter: b'\n',
            no_header: true,
            skip_bad: 0,
            pads: false,
            comment: None,
        });
        InputTable {
            header,
            of,
            ..lines
        }
    }

    /// Finds the columns that the options ask for, once the headers are known.
    ///
    /// # Errors
    /// There is no such column, or its order cannot be.
    pub(in crate::jobs) fn find_columns(&mut self, asked: Vec<RequestedKey>) -> Result<()> {
        let is_name =
            |key: &RequestedKey| self.names.contains(&key.name) && self.number(&key.name).is_none();
        self.by_name = asked.iter().any(is_name);
        self.keys.keys = self.columns_of(asked)?;
        RowCodes::new(&self.keys).map(drop)
    }

    /// What a row is in runs: equal keys leave rows in the order of the input.
    pub(in crate::jobs) fn shape() -> Keyed {
        Keyed { whole_lines: false }
    }

    /// Takes the header of the next source.
    ///
    /// # Errors
    /// It is another one than the first.
    pub(in crate::jobs) fn take(
        &mut self,
        header: Option<&[u8]>,
        source: TableSource,
        name: &str,
    ) -> Result<()> {
        let is_empty = |header: &&[u8]| header.is_empty() || *header == BYTE_ORDER_MARK;
        let Some(header) = header.filter(|header| !is_empty(header)) else {
            return Ok(()); // an empty file has nothing, not even a header
        };
        let names = names_in(header, self.keys.delimiter);
        if self.keys.columns == 0 {
            self.keys.columns = names.len();
            if header.ends_with(b"\r\n") {
                "\r\n".clone_into(&mut self.keys.ending);
            }
            name.clone_into(&mut self.of);
            if !self.keys.no_header {
                (self.names, self.keys.header) = (names, Some(source));
                self.header = header.to_owned();
            }
        } else if !self.keys.no_header && self.names != names {
            let message = format!("its header is not that of {}", self.of);
            return Err(Error::new(Kind::BadInput, "read the input", message)
                .with("file", name)
                .with("header", shown(&names))
                .with("the other one", shown(&self.names))
                .advise("give files with the same header, or take them one by one"));
        }
        Ok(())
    }

    /// The header as it was found first; empty where there is none. It has an end.
    pub(in crate::jobs) fn header_row(&self) -> Vec<u8> {
        let mut header = self.header.clone();
        if !header.is_empty() && !header.ends_with(b"\n") {
            header.extend_from_slice(self.keys.ending.as_bytes());
        }
        header
    }

    /// What to say where the header looks like data: a column is called by a number, and no key by the name of a column.
    pub(in crate::jobs) fn notice(&self) -> Option<String> {
        let number = self.names.iter().find(|name| is_number(name))?;
        let (file, number) = (&self.of, cut(number));
        (!self.by_name).then(|| {
            format!(
                "the first row of {file} is taken for the header, and is not sorted: it has the number {number} in it. If the table has \
                 no header, give --no-header (in Python no_header=True)"
            )
        })
    }

    /// The columns of keys; all columns in their order, where none is asked for.
    fn columns_of(&self, asked: Vec<RequestedKey>) -> Result<Vec<ColumnKey>> {
        let all = asked.len() == 1 && asked.iter().any(|key| key.name.is_empty());
        if self.keys.columns == 0 {
            return Ok(Vec::new()); // there are no rows
        }
        if all {
            let letters = asked.into_iter().map(|key| key.letters).collect::<String>();
            let key = |column| ColumnKey {
                column,
                letters: letters.clone(),
            };
            return Ok((0..self.keys.columns).map(key).collect());
        }
        let column = |key: RequestedKey| {
            Ok(ColumnKey {
                column: self.find(&key.name, || self.meant(&key.name))?,
                letters: key.letters,
            })
        };
        asked.into_iter().map(column).collect()
    }

    /// The column of this name; where there is none, that of this number, from 1 on, before which `#` may stand.
    ///
    /// # Errors
    /// There is none, or there are several.
    pub(in crate::jobs) fn column(&self, name: &[u8]) -> Result<usize> {
        self.find(name, || {
            "give one of these columns, or its number from 1 on: #1".to_owned()
        })
    }

    /// The same; the error of one that is not there has this advice.
    fn find(&self, name: &[u8], advice: impl FnOnce() -> String) -> Result<usize> {
        let mut named = (0..self.names.len()).filter(|column| self.names[*column] == name);
        let beginning = cut(name);
        match (named.next(), named.next()) {
            (Some(column), None) => return Ok(column),
            (Some(first), Some(second)) => {
                let message = format!("the header has several columns {beginning:?}");
                return Err(wrong(message).with("file", &self.of).advise(format!(
                    "give a number: #{} or #{}",
                    first + 1,
                    second + 1
                )));
            }
            _ => {}
        }
        if let Some(number) = self.number(name) {
            return Ok(number - 1);
        }
        let missing = wrong(format!("there is no column {beginning:?}")).with("file", &self.of);
        if self.keys.no_header && words_for_letters(name).is_none() {
            let most = self.keys.columns;
            let advice =
                format!("give a number from 1 to {most}: without a header columns have no names");
            return Err(missing.advise(advice));
        }
        Err(missing.with("columns", shown(&self.names)).advise(advice()))
    }

    /// The number that a name is, before which `#` may stand, where there is a column of this number.
    fn number(&self, name: &[u8]) -> Option<usize> {
        let text = String::from_utf8_lossy(name);
        let number: usize = text.strip_prefix('#').unwrap_or(&text).parse().ok()?;
        (1..=self.keys.columns).contains(&number).then_some(number)
    }

    /// What to write in place of a name that no column has.
    fn meant(&self, name: &[u8]) -> String {
        if let Some(words) = words_for_letters(name) {
            return format!(
                "write {words}: in a table words are behind a column, and a comma begins the next key"
            );
        }
        let words: Vec<_> = ORDERS.iter().map(|(word, _)| *word).collect();
        let words = words.join(", :");
        match memchr::memrchr(b':', name).map(|colon| name.split_at(colon)) {
            Some((before, word)) if self.has(before) => {
                let wrong = cut(word);
                match order_like(&word[1..]) {
                    Some(order) => format!("write :{order} in place of {wrong}"),
                    None => format!("write one of :{words} in place of {wrong}"),
                }
            }
            _ => format!(
                "give one of these columns, or its number from 1 on: #1; after it you can write :{words}"
            ),
        }
    }

    /// Whether there is such a column; words may be behind its name.
    fn has(&self, name: &[u8]) -> bool {
        asked_in(name, "").is_ok_and(|asked| self.names.contains(&asked.name))
    }
}

/// Whether it is a number and nothing else.
fn is_number(name: &[u8]) -> bool {
    let text = str::from_utf8(name).unwrap_or_default().trim();
    text.ends_with(|last: char| last.is_ascii_digit()) && text.parse::<f64>().is_ok()
}

/// The beginning of a name, for people.
fn cut(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    match text.char_indices().nth(NAME_SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.into_owned(),
    }
}

/// Names of columns, for people.
fn shown(names: &[Vec<u8>]) -> String {
    let mut all = Vec::new();
    let mut characters = 0;
    for name in names.iter().take(COLUMNS_SHOWN) {
        if characters > NAMES_SHOWN {
            break;
        }
        let name = cut(name);
        characters += name.chars().count();
        all.push(format!("\"{name}\"")); // blanks in it would not be seen
    }
    if names.len() > all.len() {
        all.push(format!("and {} more", names.len() - all.len()));
    }
    all.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(field: &str) -> (String, String) {
        let asked = asked_in(field.as_bytes(), "n").unwrap();
        (String::from_utf8(asked.name).unwrap(), asked.letters)
    }

    fn table(names: &[&str]) -> InputTable {
        let mut table = InputTable::new(RowsForm {
            delimiter: b',',
            no_header: false,
            skip_bad: 0,
            pads: false,
            comment: None,
        });
        table.names = names.iter().map(|name| name.as_bytes().to_vec()).collect();
        table
    }

    fn refused(name: &str) -> String {
        let table = table(&["url", "bytes", "bytes:x"]);
        let found = table.find(name.as_bytes(), || table.meant(name.as_bytes()));
        found.unwrap_err().to_string()
    }

    #[test]
    fn what_was_meant_is_advised() {
        for (name, meant) in [
            ("4nr", "write 4:num:desc: in a table"),
            ("4Vb", "write 4:version: in a table"),
            ("bytes:number", "write :num in place of :number."),
            ("bytes:desc:numeric", "write :num in place of :numeric."),
            ("bytes:d", "write :desc in place of :d."),
            ("bytes:up", "write one of :asc, :desc"),
            (
                "nothing:number",
                "give one of these columns, or its number from 1 on: #1",
            ),
            ("4x", "give one of these columns"),
        ] {
            let said = refused(name);
            assert!(said.contains(&format!("What to do: {meant}")), "{said}");
        }
    }

    #[test]
    fn long_names_are_cut() {
        let long = "é".repeat(1_000_000);
        assert!(
            table(&[&long, "b"])
                .column(b"c")
                .unwrap_err()
                .to_string()
                .len()
                < 500
        );
        assert!(
            table(&["b"])
                .column(long.as_bytes())
                .unwrap_err()
                .to_string()
                .len()
                < 500
        );
        let names: Vec<Vec<u8>> = (0..9).map(|_| vec![b'a'; 99]).collect();
        let name = "a".repeat(99);
        assert_eq!(
            shown(&names),
            format!("\"{name}\", \"{name}\", \"{name}\", and 6 more")
        );
        assert_eq!(shown(&names[..2]), format!("\"{name}\", \"{name}\""));
    }

    #[test]
    fn words_behind_a_column_are_its_order() {
        let pair = |name: &str, letters: &str| (name.to_owned(), letters.to_owned());
        assert_eq!(asked("price:num:desc"), pair("price", "rN"));
        assert_eq!(asked("price"), pair("price", "n"));
        assert_eq!(asked("price:asc"), pair("price", ""));
        assert_eq!(asked("at:10:desc"), pair("at:10", "r"));
        assert_eq!(asked("price:dsc"), pair("price:dsc", "n"));
        assert_eq!(asked("\"a,b:num\":nocase"), pair("a,b:num", "f"));
        assert!(asked_in(b":desc", "").is_err());
    }
}

//! The keys that the options of a table ask for, by words behind their columns or by the letters of GNU sort.
//!
//! ```text
//!   --key price:num:desc,name ──▶ price with the letters Nr, name
//! ```

use std::os::unix::ffi::OsStrExt;

use gristmill_base::error::{Error, JobOption, Kind, Result};
use gristmill_base::names;
use gristmill_base::record::table::{fields_of, value_of};

/// Words behind a column, and the letters for them (`ColumnKey::letters`).
pub(in crate::jobs) const ORDERS: [(&str, &str); 8] = [
    ("asc", ""),
    ("desc", "r"),
    ("num", "N"),
    ("text", ""),
    ("nocase", "f"),
    ("version", "V"),
    ("human", "h"),
    ("month", "M"),
];

/// A key as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::jobs) struct RequestedKey {
    pub(in crate::jobs) name: Vec<u8>,
    pub(in crate::jobs) letters: String,
}

/// The keys that some words ask for, each of which may name several, with these letters where they say nothing of themselves.
///
/// # Errors
/// A key names no column.
pub(in crate::jobs) fn asked_in_all(words: &[String], letters: &str) -> Result<Vec<RequestedKey>> {
    let mut asked = Vec::new();
    for given in words {
        let given = names::name_of(given.clone());
        let mut fields = Vec::new();
        fields_of(given.as_bytes(), b',', &mut fields);
        for field in fields {
            let field = given.as_bytes().get(field).unwrap_or_default();
            asked.push(asked_in(field, letters)?);
        }
    }
    Ok(asked)
}

/// A column with what stands behind it.
pub(in crate::jobs) fn asked_in(field: &[u8], otherwise: &str) -> Result<RequestedKey> {
    let mut words = Vec::new();
    let mut name = field;
    while let Some(colon) = memchr::memrchr(b':', name) {
        let (before, word) = name.split_at(colon);
        let order = ORDERS
            .iter()
            .find(|(known, _)| known.as_bytes() == &word[1..]);
        let Some((_, letters)) = order else { break };
        words.push(*letters);
        name = before;
    }
    let letters = match words.len() {
        0 => otherwise.to_owned(),
        _ => words.concat(),
    };
    let mut room = Vec::new();
    let name = value_of(name, &mut room).to_vec();
    if name.is_empty() {
        return Err(wrong("a key names no column")
            .advise("give columns with commas between them: price:num:desc,name"));
    }
    Ok(RequestedKey { name, letters })
}

/// The words of a table for a field with GNU sort's letters: `4:num:desc` for `4nr`.
pub(in crate::jobs) fn words_for_letters(name: &[u8]) -> Option<String> {
    let name = str::from_utf8(name).ok()?;
    let letters = name.trim_start_matches(|digit: char| digit.is_ascii_digit());
    let number = name.strip_suffix(letters)?;
    if number.is_empty() || letters.is_empty() {
        return None;
    }
    let mut words = String::new();
    for letter in letters.chars() {
        words += match letter {
            'n' | 'g' => ":num",
            'f' => ":nocase",
            'V' => ":version",
            'h' => ":human",
            'M' => ":month",
            'b' | 'd' | 'i' | 'r' => "",
            _ => return None,
        };
    }
    let desc = if letters.contains('r') { ":desc" } else { "" };
    Some(format!("{number}{words}{desc}"))
}

/// The word that was meant by one that is longer, or that is cut short: `num` by `number` and by `n`.
pub(in crate::jobs) fn order_like(word: &[u8]) -> Option<&'static str> {
    let is_like = |known: &str| {
        let known = known.as_bytes();
        !word.is_empty() && (word.starts_with(known) || known.starts_with(word))
    };
    let mut known = ORDERS.iter().map(|(known, _)| *known);
    known.find(|known| is_like(known))
}

/// Advises to say that the input is a table, where a key of lines that is wrong looks like the name of a column.
pub(in crate::jobs) fn name_tables(error: Error, keys: &[String]) -> Error {
    let is_field = |key: &String| key.starts_with(|first: char| first.is_ascii_digit());
    let has_words = |key: &String| key.contains(':');
    if keys
        .iter()
        .all(|key| key.is_empty() || is_field(key) && !has_words(key))
    {
        return error;
    }
    let table = [JobOption::Csv.named(), JobOption::Tsv.named()];
    error.advise_options("for a column of a table give {} or {}", table)
}

pub(in crate::jobs) fn wrong(message: impl Into<String>) -> Error {
    Error::new(Kind::BadOption, "read the options", message)
}

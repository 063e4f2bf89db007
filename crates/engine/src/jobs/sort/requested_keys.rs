//! The keys that the options of a table ask for, by words behind their columns or by the letters of GNU sort.
//!
//! ```text
//!   --key price:num:desc,name ──▶ price with the letters Nr, name
//! ```

use std::os::unix::ffi::OsStrExt;

use super::SortSpec;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::names;
use gristmill_base::record::table::{fields_of, value_of};

/// Words behind a column, and the letters for them (`ColumnKey::letters`).
pub(super) const ORDERS: [(&str, &str); 8] = [
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
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RequestedKey {
    pub(super) name: Vec<u8>,
    pub(super) letters: String,
}

/// The keys that the options ask for: at least one, without a name where it is for all columns.
pub(super) fn asked_of(spec: &SortSpec) -> Result<Vec<RequestedKey>> {
    let letters = letters_of(spec)?;
    if spec.key.is_empty() {
        let name = Vec::new();
        return Ok(vec![RequestedKey { name, letters }]);
    }
    let mut asked = Vec::new();
    for given in &spec.key {
        let given = names::name_of(given.clone());
        let mut fields = Vec::new();
        fields_of(given.as_bytes(), b',', &mut fields);
        for field in fields {
            let field = given.as_bytes().get(field).unwrap_or_default();
            asked.push(asked_in(field, &letters)?);
        }
    }
    Ok(asked)
}

/// A column with what stands behind it.
pub(super) fn asked_in(field: &[u8], otherwise: &str) -> Result<RequestedKey> {
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

/// What the options say of keys that say nothing of themselves.
fn letters_of(spec: &SortSpec) -> Result<String> {
    let flags = [
        (spec.numeric_sort, 'n'),
        (spec.general_numeric_sort, 'g'),
        (spec.human_numeric_sort, 'h'),
        (spec.version_sort, 'V'),
        (spec.month_sort, 'M'),
        (spec.ignore_case, 'f'),
        (spec.dictionary_order, 'd'),
        (spec.ignore_nonprinting, 'i'),
        (spec.ignore_leading_blanks, 'b'),
        (spec.reverse, 'r'),
    ];
    let given = flags.iter().filter(|(is_given, _)| *is_given);
    let mut letters: String = given.map(|(_, letter)| *letter).collect();
    if let Some(word) = &spec.sort {
        const WORDS: [(&str, char); 5] = [
            ("general-numeric", 'g'),
            ("human-numeric", 'h'),
            ("month", 'M'),
            ("numeric", 'n'),
            ("version", 'V'),
        ];
        let known = WORDS.iter().find(|(known, _)| known == word);
        let Some((_, letter)) = known else {
            let words: Vec<_> = WORDS.iter().map(|(known, _)| *known).collect();
            return Err(wrong(format!("{word:?} is not an order"))
                .advise(format!("give one of {}", words.join(", "))));
        };
        letters.push(*letter);
    }
    Ok(letters)
}

/// The words of a table for a field with GNU sort's letters: `4:num:desc` for `4nr`.
pub(super) fn words_for_letters(name: &[u8]) -> Option<String> {
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
pub(super) fn order_like(word: &[u8]) -> Option<&'static str> {
    let is_like = |known: &str| {
        let known = known.as_bytes();
        !word.is_empty() && (word.starts_with(known) || known.starts_with(word))
    };
    let mut known = ORDERS.iter().map(|(known, _)| *known);
    known.find(|known| is_like(known))
}

pub(super) fn wrong(message: impl Into<String>) -> Error {
    Error::new(Kind::BadOption, "read the options", message)
}

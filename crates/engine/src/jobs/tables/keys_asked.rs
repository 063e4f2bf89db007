//! The keys of records, as native jobs are asked for them: of rows by columns, of lines as GNU sort has them.

use super::requested_keys::{RequestedKey, asked_in_all, name_tables};
use gristmill_base::error::Result;
use gristmill_gnu_keys::Keys;
use gristmill_tasks::task::parse_keys;

/// The options of a command that say what keys are.
#[derive(Debug, Clone)]
pub(in crate::jobs) struct KeysAsked<'a> {
    pub(in crate::jobs) key: &'a [String],
    pub(in crate::jobs) separator: Option<&'a str>,
    /// What keys compare that say nothing of themselves, as GNU sort's letters.
    pub(in crate::jobs) letters: String,
}

impl<'a> KeysAsked<'a> {
    /// With the letters of the flags that are given.
    pub(in crate::jobs) fn new(
        key: &'a [String],
        separator: Option<&'a str>,
        flags: &[(bool, char)],
    ) -> Self {
        let given = flags.iter().filter(|(is_given, _)| *is_given);
        KeysAsked {
            key,
            separator,
            letters: given.map(|(_, letter)| *letter).collect(),
        }
    }

    /// The keys of rows; without any, all columns in their order.
    ///
    /// # Errors
    /// A key names no column.
    pub(in crate::jobs) fn columns(&self) -> Result<Vec<RequestedKey>> {
        if !self.key.is_empty() {
            return asked_in_all(self.key, &self.letters);
        }
        let letters = self.letters.clone();
        let name = Vec::new(); // all columns
        Ok(vec![RequestedKey { name, letters }])
    }

    /// The keys of lines; without any, the line. None compares more than the keys do.
    ///
    /// # Errors
    /// They are not GNU sort's.
    pub(in crate::jobs) fn of_lines(&self) -> Result<Keys> {
        let mut words = vec!["-s".to_owned()];
        words.extend(self.letters.chars().map(|letter| format!("-{letter}")));
        let mut valued =
            |letter: &str, value: &str| words.extend([letter.to_owned(), value.to_owned()]);
        let separator = self.separator.iter();
        separator.for_each(|value| valued("-t", value));
        self.key.iter().for_each(|value| valued("-k", value));
        if self.key.is_empty() {
            valued("-k", "1"); // to the end of the line
        }
        parse_keys(&words).map_err(|error| name_tables(error, self.key))
    }
}

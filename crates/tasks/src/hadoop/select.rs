//! Hadoop's field selection (`FieldSelectionMapReduce`): keys and values put together from numbered fields.
//!
//! ```text
//!   "6,5,1-3:0-"      key: fields 6, 5, 1, 2, 3;  value: all from 0 on
//! ```
//!
//! Fields count from 0. One that a record does not have is left empty in a list and absent from `n-`. As in
//! Hadoop: fields at the end that are empty are no fields, and without a key the value becomes the key of a map.

use gristmill_base::error::{Error, Kind, Result};

/// What to select.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldSelection {
    separator: Vec<u8>,
    key: Vec<usize>,
    value: Vec<usize>,
    /// The value takes all fields from this one on.
    value_from: Option<usize>,
}

/// A key and a value, where there is one.
pub type Selected = (Option<Vec<u8>>, Option<Vec<u8>>);

impl FieldSelection {
    /// From Hadoop's specification.
    ///
    /// ```
    /// use gristmill_tasks::hadoop::select::FieldSelection;
    /// let selection = FieldSelection::parse("2,0:1-", b"\t").unwrap();
    /// let (key, value) = selection.select(b"a\tb\tc", false);
    /// assert_eq!((key.unwrap(), value.unwrap()), (b"c\ta".to_vec(), b"b\tc".to_vec()));
    /// ```
    pub fn parse(spec: &str, separator: &[u8]) -> Result<Self> {
        let (key, value) = spec.split_once(':').unwrap_or((spec, ""));
        let value = value.split(':').next().unwrap_or("");
        let wrong = |part: &str| {
            Error::new(
                Kind::BadOption,
                "read the fields to select",
                format!("`{part}` in `{spec}` names no fields"),
            )
            .advise("write numbers and ranges, such as 6,5,1-3:0-, the key's before the colon")
        };
        // A key's "n-" is read and has no effect: so it is in Hadoop.
        let (key, _) = parse_list(key).map_err(wrong)?;
        let (value, value_from) = parse_list(value).map_err(wrong)?;
        Ok(FieldSelection {
            separator: separator.to_vec(),
            key,
            value,
            value_from,
        })
    }

    /// Selects from a record; `map` says whether a record without a key has its value as key.
    pub fn select(&self, record: &[u8], map: bool) -> Selected {
        let fields = self.fields(record);
        let key = self.join(&fields, &self.key, None);
        let value = self.join(&fields, &self.value, self.value_from);
        match key {
            None if map => (value, None),
            key => (key, value),
        }
    }

    /// Java's `String.split`: empty fields at the end do not count, an empty record has one.
    fn fields<'a>(&self, record: &'a [u8]) -> Vec<&'a [u8]> {
        let mut fields = Vec::new();
        let mut rest = record;
        while let Some(at) = memchr::memmem::find(rest, &self.separator) {
            let (field, after) = rest.split_at(at);
            fields.push(field);
            rest = after.get(self.separator.len()..).unwrap_or_default();
            if self.separator.is_empty() {
                break;
            }
        }
        fields.push(rest);
        if fields.len() > 1 {
            let last = fields.iter().rposition(|field| !field.is_empty());
            fields.truncate(last.map_or(0, |last| last + 1));
        }
        fields
    }

    fn join(&self, fields: &[&[u8]], list: &[usize], from: Option<usize>) -> Option<Vec<u8>> {
        if list.is_empty() && from.is_none() {
            return None;
        }
        let listed = list
            .iter()
            .map(|&index| fields.get(index).copied().unwrap_or_default());
        let rest = from.map(|from| fields.iter().skip(from).copied());
        let mut joined = Vec::new();
        for field in listed.chain(rest.into_iter().flatten()) {
            joined.extend_from_slice(field);
            joined.extend_from_slice(&self.separator);
        }
        // Hadoop cuts off one character, whatever the separator: all of its bytes, from behind.
        while joined.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {}
        Some(joined)
    }
}

fn parse_list(text: &str) -> Result<(Vec<usize>, Option<usize>), &str> {
    let (mut list, mut from) = (Vec::new(), None);
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let number = |text: &str| text.parse::<usize>().map_err(|_not| part);
        match part.split_once('-') {
            None => list.push(number(part)?),
            Some((start, end)) => {
                let start = if start.is_empty() { 0 } else { number(start)? };
                if end.is_empty() {
                    from = Some(start);
                } else {
                    list.extend(start..=number(end)?);
                }
            }
        }
    }
    Ok((list, from))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(spec: &str, record: &str, map: bool) -> (Option<String>, Option<String>) {
        let selection = FieldSelection::parse(spec, b"\t").unwrap();
        let (key, value) = selection.select(record.as_bytes(), map);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (key.map(text), value.map(text))
    }

    #[test]
    fn fields_are_selected_as_hadoop_does() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(selected("0:1", "a\tb\tc", true), (some("a"), some("b")));
        assert_eq!(selected("2-3,0:", "a\tb\tc", true), (some("c\t\ta"), None));
        assert_eq!(selected("0-:", "a\tb", true), (None, None)); // Hadoop's default spec: a key from "n-" counts not
        assert_eq!(selected(":0-", "a\tb", true), (some("a\tb"), None));
        assert_eq!(selected(":0-", "a\tb", false), (None, some("a\tb")));
        assert_eq!(
            selected("-1:2-", "a\tb\tc\t\t", false),
            (some("a\tb"), some("c"))
        );
        assert_eq!(selected("1", "", false), (some(""), None));
    }

    #[test]
    fn of_a_separator_behind_the_last_field_a_character_is_cut_off() {
        let selected = |separator: &str| {
            let selection = FieldSelection::parse("1,0:", separator.as_bytes()).unwrap();
            let record = format!("a{separator}b");
            String::from_utf8(selection.select(record.as_bytes(), true).0.unwrap()).unwrap()
        };
        assert_eq!(selected("é"), "béa");
        assert_eq!(selected("中文"), "b中文a中");
        assert_eq!(selected("::"), "b::a:");
    }

    #[test]
    fn what_names_no_fields_is_said() {
        for spec in ["a", "1-x", "1:b"] {
            assert!(FieldSelection::parse(spec, b"\t").is_err(), "{spec}");
        }
    }
}

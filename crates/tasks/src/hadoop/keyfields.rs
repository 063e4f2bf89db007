//! Key fields as `-k` options name them: which bytes of a key a range of fields covers.
//!
//! ```text
//!   -k2,2nr -k 1.3,1.5        field 2, numeric, reversed; then characters 3 to 5 of field 1
//! ```
//!
//! A port of Hadoop's `KeyFieldHelper`, kept to the letter, so that records fall into the same parts and the same
//! order as there. It keeps Hadoop's inconsistency with separators of several bytes: the length of a field is measured
//! as if the separator were one byte, while the offset of a field adds up separators of full length. "Characters" are
//! bytes.

use memchr::memmem;
use serde::{Deserialize, Serialize};

use gristmill_base::error::{Error, Kind, Result};

/// One `-k` option.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRange {
    /// The field it begins in, from 1.
    pub begin_field: usize,
    /// The byte of that field it begins at, from 1.
    pub begin_byte: usize,
    /// The field it ends in; 0: at the key's end.
    pub end_field: usize,
    /// The byte of that field it ends with; 0: the field's last.
    pub end_byte: usize,
    /// Compare as numbers.
    pub numeric: bool,
    /// Larger first.
    pub reverse: bool,
}

impl Default for KeyRange {
    fn default() -> Self {
        KeyRange {
            begin_field: 1,
            begin_byte: 1,
            end_field: 0,
            end_byte: 0,
            numeric: false,
            reverse: false,
        }
    }
}

/// The ranges of a key that are compared or hashed, and what separates its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFields {
    separator: Vec<u8>,
    ranges: Vec<KeyRange>,
    /// Whether keys are split into fields: if a range was given. Otherwise the whole key is one field.
    splits_keys: bool,
}

impl KeyFields {
    /// Parses the text of Hadoop's option, such as `-k2,2nr -k1`.
    ///
    /// ```
    /// use gristmill_tasks::hadoop::keyfields::KeyFields;
    /// let fields = KeyFields::parse("-k2,2", b"\t").unwrap();
    /// let key = b"a\tbc\td";
    /// assert_eq!(fields.ranges().len(), 1);
    /// assert_eq!(fields.slices(key).next().unwrap().1, Some(&b"bc"[..]));
    /// ```
    pub fn parse(option: &str, separator: &[u8]) -> Result<Self> {
        let mut ranges = Vec::new();
        let mut all = KeyRange::default();
        let mut words = option.split_whitespace();
        while let Some(word) = words.next() {
            match word {
                "-n" => all.numeric = true,
                "-r" => all.reverse = true,
                "-nr" => (all.numeric, all.reverse) = (true, true),
                _ => {}
            }
            if let Some(attached) = word.strip_prefix("-k") {
                let range = if attached.is_empty() {
                    words.next().unwrap_or("")
                } else {
                    attached
                };
                if !range.is_empty() {
                    ranges.push(parse_range(range).ok_or_else(|| wrong(option, range))?);
                }
            }
        }
        let splits_keys = !ranges.is_empty();
        for range in &mut ranges {
            if !range.reverse && !range.numeric {
                (range.reverse, range.numeric) = (all.reverse, all.numeric);
            }
        }
        if ranges.is_empty() && !option.is_empty() {
            ranges.push(all);
        }
        Ok(KeyFields {
            separator: separator.to_vec(),
            ranges,
            splits_keys,
        })
    }

    /// The first fields of a key, as Hadoop's old `num.key.fields.for.partition` counts them.
    pub fn first(count: usize, separator: &[u8]) -> Self {
        let range = KeyRange {
            end_field: count,
            ..KeyRange::default()
        };
        let ranges = if count >= 1 { vec![range] } else { Vec::new() };
        KeyFields {
            separator: separator.to_vec(),
            splits_keys: !ranges.is_empty(),
            ranges,
        }
    }

    /// The ranges, the most significant first.
    pub fn ranges(&self) -> &[KeyRange] {
        &self.ranges
    }

    /// What each range covers of `key`: `None` where the key has no such field.
    pub fn slices<'a>(
        &'a self,
        key: &'a [u8],
    ) -> impl Iterator<Item = (&'a KeyRange, Option<&'a [u8]>)> {
        let lengths = self.lengths(key);
        self.ranges.iter().map(move |range| {
            let slice = self.start(key, &lengths, range).map(|start| {
                let end = self.end(key, &lengths, range);
                key.get(start..end.max(start)).unwrap_or_default()
            });
            (range, slice)
        })
    }

    /// The length of each field, as Hadoop measures it; index 0 is the field before the first separator.
    fn lengths(&self, key: &[u8]) -> Vec<usize> {
        if !self.splits_keys {
            return vec![0]; // one field, whose length nobody asks for
        }
        let mut lengths = Vec::with_capacity(8);
        let mut start = 0;
        while let Some(at) = key
            .get(start..)
            .and_then(|rest| memmem::find(rest, &self.separator))
        {
            lengths.push(at);
            start += at + 1;
        }
        lengths.push(key.len().saturating_sub(start));
        lengths
    }

    fn offset_of(&self, lengths: &[usize], field: usize) -> usize {
        let before = lengths.iter().take(field.saturating_sub(1));
        before.map(|length| length + self.separator.len()).sum()
    }

    fn start(&self, key: &[u8], lengths: &[usize], range: &KeyRange) -> Option<usize> {
        if lengths.len() < range.begin_field {
            return None;
        }
        let position = self.offset_of(lengths, range.begin_field) + range.begin_byte;
        (position <= key.len()).then(|| position.saturating_sub(1))
    }

    /// Where a range ends, exclusive.
    fn end(&self, key: &[u8], lengths: &[usize], range: &KeyRange) -> usize {
        if range.end_field == 0 || lengths.len() < range.end_field {
            return key.len();
        }
        let mut position = self.offset_of(lengths, range.end_field) + range.end_byte;
        if range.end_byte == 0 {
            position += lengths.get(range.end_field - 1).copied().unwrap_or(0);
        }
        position.min(key.len())
    }
}

/// `1[.3][nr][,1.5][nr]`.
fn parse_range(text: &str) -> Option<KeyRange> {
    let mut range = KeyRange::default();
    let (begin, end) = match text.split_once(',') {
        Some((begin, end)) => (begin, Some(end)),
        None => (text, None),
    };
    (range.begin_field, range.begin_byte) = parse_position(begin, 1, &mut range)?;
    if let Some(end) = end {
        (range.end_field, range.end_byte) = parse_position(end, 0, &mut range)?;
    }
    Some(range)
}

fn parse_position(text: &str, byte: usize, range: &mut KeyRange) -> Option<(usize, usize)> {
    let numbers = text.trim_end_matches(['n', 'r']);
    for letter in text.get(numbers.len()..)?.chars() {
        match letter {
            'n' => range.numeric = true,
            _ => range.reverse = true,
        }
    }
    match numbers.split_once('.') {
        Some((field, byte)) => Some((field.parse().ok()?, byte.parse().ok()?)),
        None => Some((numbers.parse().ok()?, byte)),
    }
}

fn wrong(option: &str, range: &str) -> Error {
    Error::new(
        Kind::BadOption,
        "read the key fields",
        format!("`{range}` in `{option}` is not a range of fields"),
    )
    .advise("write -k pos1[,pos2], each pos a field, such as 2, or a field and a byte, such as 2.3, then n or r or both")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(option: &str, separator: &str, key: &str) -> Vec<Option<String>> {
        let fields = KeyFields::parse(option, separator.as_bytes()).unwrap();
        let text = |slice: &[u8]| String::from_utf8(slice.to_vec()).unwrap();
        let slices = fields.slices(key.as_bytes());
        slices.map(|(_, slice)| slice.map(text)).collect()
    }

    fn one(option: &str, key: &str) -> Option<String> {
        cut(option, "\t", key).remove(0)
    }

    #[test]
    fn ranges_cover_what_they_name() {
        let key = "alpha\tbeta\tgamma";
        assert_eq!(one("-k1", key).as_deref(), Some(key));
        assert_eq!(one("-k1,1", key).as_deref(), Some("alpha"));
        assert_eq!(one("-k2", key).as_deref(), Some("beta\tgamma"));
        assert_eq!(one("-k 2,2", key).as_deref(), Some("beta"));
        assert_eq!(one("-k2.2,2.3", key).as_deref(), Some("et"));
        assert_eq!(one("-k2.3,3.1", key).as_deref(), Some("ta\tg"));
        assert_eq!(one("-k3,9", key).as_deref(), Some("gamma"));
        assert_eq!(one("-k4", key), None);
        assert_eq!(one("-k2,1", key).as_deref(), Some(""));
        assert_eq!(one("-k2,2", "a\t\tb").as_deref(), Some(""));
        assert_eq!(one("-k1", ""), None);
    }

    #[test]
    fn letters_after_a_position_and_letters_for_all() {
        let ranges = |option| KeyFields::parse(option, b"\t").unwrap().ranges().to_vec();
        let flags = |option| {
            let flags = ranges(option)
                .into_iter()
                .map(|range| (range.numeric, range.reverse));
            flags.collect::<Vec<_>>()
        };
        assert_eq!(flags("-k2,2nr -k1,1"), [(true, true), (false, false)]);
        assert_eq!(flags("-nr -k1,1 -k2n"), [(true, true), (true, false)]);
        assert_eq!(flags("-k1n,2r"), [(true, true)]);
        assert_eq!(flags("-r"), [(false, true)]);
        assert!(flags("").is_empty());
    }

    #[test]
    fn separators_of_several_bytes_as_hadoop_measures_them() {
        // The second field's length includes the separator's second byte there; so it does here.
        assert_eq!(cut("-k1,1", "::", "ab::cd::e")[0].as_deref(), Some("ab"));
        assert_eq!(cut("-k2,2", "::", "ab::cd::e")[0].as_deref(), Some("cd:"));
    }

    #[test]
    fn what_is_no_range_is_named() {
        for option in ["-kx", "-k1,,2", "-k1.x", "-k", "-k1;2"] {
            let found = KeyFields::parse(option, b"\t");
            if option == "-k" {
                assert!(found.is_ok()); // Hadoop overlooks it
            } else {
                assert!(found.unwrap_err().to_string().contains(option), "{option}");
            }
        }
    }
}

//! Where a key begins and ends in a line.
//!
//! A field begins behind the separator, or, without one, with the blanks in front of it. Positions
//! beyond the line are its end; a key that ends before it begins is empty.

use memchr::memchr;

/// Blanks, to GNU sort in the locale C; a line that ends with NUL can contain a newline.
pub(crate) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n')
}

/// A key's place, counted from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeySpan {
    pub(crate) first: Start,
    /// To the end of the line where there is none.
    pub(crate) last: Option<KeyEnd>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) field: usize,
    pub(crate) char: usize,
    pub(crate) skip_blanks: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct KeyEnd {
    pub(crate) field: usize,
    /// How many bytes of the field belong to the key; 0: all of it.
    pub(crate) chars: usize,
    pub(crate) skip_blanks: bool,
}

impl KeySpan {
    /// The key's bytes in a line.
    pub(crate) fn of<'a>(&self, line: &'a [u8], separator: Option<u8>) -> &'a [u8] {
        let start = self.first.at(line, separator);
        let end = match &self.last {
            // The usual `-k2,2`: the field begins where the key does, so look no further back.
            Some(end) if separator.is_some() && self.is_one_field(end) => separator
                .and_then(|byte| memchr(byte, &line[start..]))
                .map_or(line.len(), |length| start + length),
            Some(end) => end.at(line, separator),
            None => line.len(),
        };
        &line[start..end.max(start)]
    }

    fn is_one_field(&self, end: &KeyEnd) -> bool {
        let Start {
            field,
            char,
            skip_blanks,
        } = self.first;
        char == 0 && !skip_blanks && end.chars == 0 && end.field == field
    }
}

impl Start {
    fn at(&self, line: &[u8], separator: Option<u8>) -> usize {
        let mut at = match separator {
            Some(byte) => behind_separators(line, byte, self.field),
            None => behind_fields(line, self.field),
        };
        if self.skip_blanks {
            at = behind_blanks(line, at);
        }
        at.saturating_add(self.char).min(line.len())
    }
}

impl KeyEnd {
    fn at(&self, line: &[u8], separator: Option<u8>) -> usize {
        if self.chars == 0 {
            return self.end_of_field(line, separator);
        }
        let mut at = match separator {
            Some(byte) => behind_separators(line, byte, self.field),
            None => behind_fields(line, self.field),
        };
        if self.skip_blanks {
            at = behind_blanks(line, at);
        }
        at.saturating_add(self.chars).min(line.len())
    }

    fn end_of_field(&self, line: &[u8], separator: Option<u8>) -> usize {
        let Some(byte) = separator else {
            return behind_fields(line, self.field.saturating_add(1));
        };
        let at = behind_separators(line, byte, self.field);
        memchr(byte, &line[at..]).map_or(line.len(), |length| at + length)
    }
}

fn behind_separators(line: &[u8], separator: u8, count: usize) -> usize {
    let mut at = 0;
    for _ in 0..count {
        match memchr(separator, &line[at..]) {
            Some(length) => at += length + 1,
            None => return line.len(),
        }
    }
    at
}

fn behind_fields(line: &[u8], count: usize) -> usize {
    let mut at = 0;
    for _ in 0..count {
        if at == line.len() {
            break;
        }
        at = behind_blanks(line, at);
        while at < line.len() && !is_blank(line[at]) {
            at += 1;
        }
    }
    at
}

fn behind_blanks(line: &[u8], mut at: usize) -> usize {
    while at < line.len() && is_blank(line[at]) {
        at += 1;
    }
    at
}

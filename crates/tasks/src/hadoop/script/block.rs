//! Many lines of a script's output at once: found by one search over large buffers, and not copied.
//!
//! ```text
//!   a buffer of the output   |key TAB value LF|key LF|key TAB value LF| part of a line
//!                            |<------------- a block ---------------->|
//! ```
//!
//! Decision: docs/decisions/script-blocks.md.

use memchr::{memchr, memmem};

use super::marks::{each_bare, each_mark};
use gristmill_base::error::Result;

/// Whole lines that are ended by LF alone.
#[derive(Debug, Clone, Copy)]
pub struct LineBlock<'a> {
    pub(super) lines: &'a [u8],
    /// What ends a field.
    pub(super) separator: &'a [u8],
    /// How many fields are the key; `None` where all of a line is, and there is no value.
    pub(super) key_fields: Option<usize>,
}

impl<'a> LineBlock<'a> {
    /// Whether there are no lines at hand: then they come one by one.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Calls `take` with the key and the value of each line.
    ///
    /// ```
    /// use gristmill_tasks::hadoop::script::protocol::{Protocol, ScriptReader};
    /// let mut text = Some(b"a\tb\nc\nd");
    /// let source = |buffer: &mut [u8]| Ok(text.take().map_or(0, |text| {
    ///     buffer[..text.len()].copy_from_slice(text);
    ///     text.len()
    /// }));
    /// let mut reader = ScriptReader::new(source, Protocol::Text, b"\t".to_vec(), 1);
    /// let mut found = Vec::new();
    /// reader.many()?.each(|key, value| {
    ///     found.push((key.to_vec(), value.map(<[u8]>::to_vec)));
    ///     Ok(())
    /// })?;
    /// assert_eq!(found, [(b"a".to_vec(), Some(b"b".to_vec())), (b"c".to_vec(), Some(Vec::new()))]);
    /// assert!(reader.advance()? && reader.pair() == (&b"d"[..], &b""[..]));
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    #[inline]
    pub fn each(&self, mut take: impl FnMut(&[u8], Option<&[u8]>) -> Result<()>) -> Result<()> {
        if let Some(separator) = self.one_byte() {
            return self.each_in_two(separator, take);
        }
        let mut rest = self.lines;
        while let Some(end) = memchr(b'\n', rest) {
            let (line, after) = rest.split_at(end);
            rest = after.get(1..).unwrap_or_default();
            let Some(fields) = self.key_fields else {
                take(line, None)?;
                continue;
            };
            let (key, value) = cut(line, self.separator, fields).unwrap_or((end, end));
            take(
                line.get(..key).unwrap_or(line),
                Some(line.get(value..).unwrap_or_default()),
            )?;
        }
        Ok(())
    }

    /// Lines cut at the first of one byte: what nearly all are.
    fn each_in_two(
        &self,
        separator: u8,
        mut take: impl FnMut(&[u8], Option<&[u8]>) -> Result<()>,
    ) -> Result<()> {
        let (mut start, mut cut) = (0, None);
        each_mark(self.lines, separator, b'\n', |at, is_end| {
            if !is_end {
                cut = cut.or(Some(at));
                return Ok(());
            }
            let end = cut.take().unwrap_or(at);
            let key = self.lines.get(start..end).unwrap_or_default();
            let value = self.lines.get(end + 1..at).unwrap_or_default();
            start = at + 1;
            take(key, Some(value))
        })
    }

    /// Calls `put` with the bytes that all lines are as text whose keys and values have `separator` between them, piece
    /// by piece; gives the number of lines. `None`, and no call, where that is not simply the lines themselves, with a
    /// separator at the end of those that have none.
    ///
    /// # Errors
    /// Those of `put`.
    pub fn unchanged(
        &self,
        separator: &[u8],
        mut put: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<Option<u64>> {
        if self.key_fields.is_none() {
            put(self.lines)?;
            return Ok(Some(memchr::memchr_iter(b'\n', self.lines).count() as u64));
        }
        let Some(byte) = self.one_byte().filter(|byte| separator == [*byte]) else {
            return Ok(None);
        };
        let mut from = 0;
        let count = each_bare(self.lines, byte, b'\n', |end| {
            put(self.lines.get(from..end).unwrap_or_default())?;
            from = end;
            put(separator)
        })?;
        put(self.lines.get(from..).unwrap_or_default())?;
        Ok(Some(count))
    }

    /// The byte that lines are cut at once.
    fn one_byte(&self) -> Option<u8> {
        match (self.separator, self.key_fields) {
            (&[byte], Some(1)) if byte != b'\n' => Some(byte),
            _ => None,
        }
    }
}

/// Where the key of a line ends, and its value begins.
#[inline]
pub(super) fn cut(line: &[u8], separator: &[u8], fields: usize) -> Option<(usize, usize)> {
    if let (&[byte], 1) = (separator, fields) {
        let at = memchr(byte, line)?;
        return Some((at, at + 1));
    }
    let mut start = 0;
    let mut at = None;
    for _ in 0..fields.max(1) {
        let found = memmem::find(line.get(start..)?, separator)? + start;
        at = Some((found, found + separator.len()));
        start = found + separator.len();
    }
    at
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::protocol::{Protocol, ScriptReader};
    use super::*;

    type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

    /// All pairs of a text that comes in steps; with `many`, by blocks where there are any.
    fn pairs(
        text: &[u8],
        step: usize,
        protocol: Protocol,
        separator: &str,
        fields: usize,
        many: bool,
    ) -> Pairs {
        let mut rest = text;
        let source = |buffer: &mut [u8]| {
            let (now, later) = rest.split_at(step.min(rest.len()));
            buffer[..now.len()].copy_from_slice(now);
            rest = later;
            Ok(now.len())
        };
        let mut reader = ScriptReader::new(source, protocol, separator.into(), fields);
        let mut found = Vec::new();
        loop {
            if many {
                let block = reader.many().unwrap();
                let keep = |key: &[u8], value: Option<&[u8]>| {
                    assert_eq!(value.is_none(), protocol == Protocol::KeyOnlyText);
                    found.push((key.to_vec(), value.unwrap_or_default().to_vec()));
                    Ok(())
                };
                block.each(keep).unwrap();
            }
            if !reader.advance().unwrap() {
                return found;
            }
            let (key, value) = reader.pair();
            found.push((key.to_vec(), value.to_vec()));
        }
    }

    proptest! {
        #[test]
        fn blocks_are_the_same_pairs(
            text in "[ab#\t\r\n]{0,60}",
            step in 1_usize..20,
            key_only: bool,
            separator in prop_oneof![Just("\t"), Just("#"), Just("##"), Just("")],
            fields in 1_usize..3,
        ) {
            let protocol = if key_only { Protocol::KeyOnlyText } else { Protocol::Text };
            let found = |many| pairs(text.as_bytes(), step, protocol, separator, fields, many);
            prop_assert_eq!(found(true), found(false));
        }

        #[test]
        fn unchanged_lines_are_what_their_pairs_make(text in "([ab\t]{0,6}\n){0,12}", key_fields in 0_usize..3) {
            let block = LineBlock { lines: text.as_bytes(), separator: b"\t", key_fields: key_fields.checked_sub(1) };
            let (mut out, mut want, mut lines) = (Vec::new(), Vec::new(), 0);
            block.each(|key, value| {
                want.extend_from_slice(key);
                if let Some(value) = value {
                    want.push(b'\t');
                    want.extend_from_slice(value);
                }
                want.push(b'\n');
                lines += 1;
                Ok(())
            }).unwrap();
            let put = |bytes: &[u8]| {
                out.extend_from_slice(bytes);
                Ok(())
            };
            match block.unchanged(b"\t", put).unwrap() {
                Some(count) => prop_assert_eq!((count, out), (lines, want)),
                None => prop_assert!(key_fields == 1 && out.is_empty()),
            }
        }
    }

    #[test]
    fn other_separators_are_no_business_of_unchanged_lines() {
        let block = LineBlock {
            lines: b"a\tb\n",
            separator: b"\t",
            key_fields: Some(1),
        };
        let no_call = |_: &[u8]| -> Result<()> { unreachable!() };
        assert_eq!(block.unchanged(b"=", no_call).unwrap(), None);
    }
}

//! How records stand in a script's input and output: lines of text, or bytes with lengths before them.
//!
//! ```text
//!                    to the script                              from the script
//!   text             key, separator, value, LF                  lines, cut at the n-th separator
//!   keyonlytext      key, LF                                    lines: all of it is the key
//!   rawbytes         length i32, key, length i32, value         the same
//!   typedbytes       key and value as typed bytes               the same
//! ```
//!
//! What a script writes in lines is `Text`, raw bytes are `BytesWritable`, typed ones `TypedBytesWritable`.

use serde::{Deserialize, Serialize};

use super::block::{LineBlock, cut};
use crate::hadoop::typed::{TypedValueScan, measure};
use crate::hadoop::value::WritableClass;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_storage::lines::{ByteSource, Ends, Lines};

/// One of the four.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// Lines.
    #[default]
    Text,
    /// Lines without values.
    KeyOnlyText,
    /// Bytes with lengths.
    RawBytes,
    /// Bytes with types.
    TypedBytes,
}

impl Protocol {
    /// The classes of the keys and values that come from a script.
    pub fn classes(self) -> (WritableClass, WritableClass) {
        match self {
            Protocol::Text => (WritableClass::Text, WritableClass::Text),
            Protocol::KeyOnlyText => (WritableClass::Text, WritableClass::Null),
            Protocol::RawBytes => (WritableClass::Bytes, WritableClass::Bytes),
            Protocol::TypedBytes => (WritableClass::Typed, WritableClass::Typed),
        }
    }
}

/// Puts records as a script reads them.
#[derive(Debug, Clone)]
pub struct ScriptWriter {
    /// How.
    pub protocol: Protocol,
    /// Between key and value.
    pub separator: Vec<u8>,
    /// Leave keys out (of text alone).
    pub ignore_key: bool,
}

impl ScriptWriter {
    /// Appends a record, its key and value of these classes.
    ///
    /// ```
    /// use gristmill_tasks::hadoop::value::WritableClass;
    /// use gristmill_tasks::hadoop::script::protocol::{Protocol, ScriptWriter};
    /// let writer = ScriptWriter { protocol: Protocol::Text, separator: b"\t".to_vec(), ignore_key: false };
    /// let mut out = Vec::new();
    /// writer.write((WritableClass::Long, &7_i64.to_be_bytes()), (WritableClass::Text, b"seven"), &mut out);
    /// assert_eq!(out, b"7\tseven\n");
    /// ```
    #[inline]
    pub fn write(
        &self,
        key: (WritableClass, &[u8]),
        value: (WritableClass, &[u8]),
        out: &mut Vec<u8>,
    ) {
        match self.protocol {
            Protocol::Text => {
                if !self.ignore_key {
                    key.0.to_line(key.1, out);
                    match self.separator[..] {
                        [byte] => out.push(byte), // a call for a copy costs more than a byte
                        _ => out.extend_from_slice(&self.separator),
                    }
                }
                value.0.to_line(value.1, out);
                out.push(b'\n');
            }
            Protocol::KeyOnlyText => {
                if !self.ignore_key {
                    key.0.to_line(key.1, out);
                    out.push(b'\n');
                }
            }
            Protocol::RawBytes => {
                raw(key, out);
                raw(value, out);
            }
            Protocol::TypedBytes => {
                key.0.to_typed(key.1, out);
                value.0.to_typed(value.1, out);
            }
        }
    }
}

fn raw((class, data): (WritableClass, &[u8]), out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    match class {
        WritableClass::Bytes | WritableClass::Typed => out.extend_from_slice(data),
        _ => class.serialize(data, out),
    }
    let len = u32::try_from(out.len() - start - 4).unwrap_or(u32::MAX);
    if let Some(place) = out.get_mut(start..start + 4) {
        place.copy_from_slice(&len.to_be_bytes());
    }
}

/// Takes records from what a script writes.
#[derive(Debug)]
pub struct ScriptReader<S> {
    format: ScriptFormat<S>,
    separator: Vec<u8>,
    key_fields: usize,
    /// Where the key ends and the value begins in the present line.
    cut: (usize, usize),
}

#[derive(Debug)]
enum ScriptFormat<S> {
    Lines(Lines<S>, bool),
    Raw(ByteRecords<S>),
    Typed(ByteRecords<S>),
}

impl<S: ByteSource> ScriptReader<S> {
    /// The records of `source`; a key has `key_fields` fields, each ended by `separator` (of text alone).
    ///
    /// ```
    /// use gristmill_tasks::hadoop::script::protocol::{Protocol, ScriptReader};
    /// let mut text = Some(b"a b c\nd\n");
    /// let source = |buffer: &mut [u8]| Ok(text.take().map_or(0, |text| {
    ///     buffer[..text.len()].copy_from_slice(text);
    ///     text.len()
    /// }));
    /// let mut reader = ScriptReader::new(source, Protocol::Text, b" ".to_vec(), 2);
    /// assert!(reader.advance()?);
    /// assert_eq!(reader.pair(), (&b"a b"[..], &b"c"[..]));
    /// assert!(reader.advance()?);
    /// assert_eq!(reader.pair(), (&b"d"[..], &b""[..]));
    /// assert!(!reader.advance()?);
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    pub fn new(source: S, protocol: Protocol, separator: Vec<u8>, key_fields: usize) -> Self {
        let format = match protocol {
            Protocol::Text => ScriptFormat::Lines(Lines::new(source, Ends::Hadoop), false),
            Protocol::KeyOnlyText => ScriptFormat::Lines(Lines::new(source, Ends::Hadoop), true),
            Protocol::RawBytes => ScriptFormat::Raw(ByteRecords::new(source)),
            Protocol::TypedBytes => ScriptFormat::Typed(ByteRecords::new(source)),
        };
        ScriptReader {
            format,
            separator,
            key_fields,
            cut: (0, 0),
        }
    }

    /// Goes on to the next record; false at the end.
    #[inline]
    pub fn advance(&mut self) -> Result<bool> {
        match &mut self.format {
            ScriptFormat::Lines(lines, whole) => {
                if lines.advance()?.is_none() {
                    return Ok(false);
                }
                let line = lines.line();
                let end = (line.len(), line.len());
                self.cut = if *whole {
                    end
                } else {
                    cut(line, &self.separator, self.key_fields).unwrap_or(end)
                };
                Ok(true)
            }
            ScriptFormat::Raw(bytes) => bytes.pair(raw_value),
            ScriptFormat::Typed(bytes) => bytes.pair(typed_value),
        }
    }

    /// Records that are lines, as many as are at hand. Empty where there are none, or where records are no lines; then
    /// [`ScriptReader::advance`] goes on.
    pub fn many(&mut self) -> Result<LineBlock<'_>> {
        let (lines, key_fields) = match &mut self.format {
            ScriptFormat::Lines(lines, true) => (lines.many(u64::MAX)?, None),
            ScriptFormat::Lines(lines, false) => (lines.many(u64::MAX)?, Some(self.key_fields)),
            ScriptFormat::Raw(_) | ScriptFormat::Typed(_) => (&[][..], None),
        };
        Ok(LineBlock {
            lines,
            separator: &self.separator,
            key_fields,
        })
    }

    /// The present record.
    #[inline]
    pub fn pair(&self) -> (&[u8], &[u8]) {
        match &self.format {
            ScriptFormat::Lines(lines, _) => {
                let line = lines.line();
                (
                    line.get(..self.cut.0).unwrap_or(line),
                    line.get(self.cut.1..).unwrap_or_default(),
                )
            }
            ScriptFormat::Raw(bytes) | ScriptFormat::Typed(bytes) => bytes.present(),
        }
    }
}

/// Records of bytes: a buffer that holds at least the present one.
#[derive(Debug)]
struct ByteRecords<S> {
    source: S,
    buffer: Vec<u8>,
    from: usize,
    to: usize,
    key: std::ops::Range<usize>,
    value: std::ops::Range<usize>,
    offset: u64,
}

/// Where a value's content lies in some bytes, and where it ends.
enum ValueExtent {
    Content(std::ops::Range<usize>, usize),
    Part,
    Wrong(String),
}

fn raw_value(data: &[u8]) -> ValueExtent {
    let Some((len, rest)) = data.split_first_chunk::<4>() else {
        return ValueExtent::Part;
    };
    let len = i32::from_be_bytes(*len);
    match usize::try_from(len) {
        Ok(len) if rest.len() >= len => ValueExtent::Content(4..4 + len, 4 + len),
        Ok(_) => ValueExtent::Part,
        Err(_) => ValueExtent::Wrong(format!("a length of {len}")),
    }
}

fn typed_value(data: &[u8]) -> ValueExtent {
    match measure(data) {
        TypedValueScan::Value(len) => ValueExtent::Content(0..len, len),
        TypedValueScan::Part => ValueExtent::Part,
        TypedValueScan::Wrong(what) => ValueExtent::Wrong(what),
    }
}

impl<S: ByteSource> ByteRecords<S> {
    fn new(source: S) -> Self {
        ByteRecords {
            source,
            buffer: vec![0; 256 << 10],
            from: 0,
            to: 0,
            key: 0..0,
            value: 0..0,
            offset: 0,
        }
    }

    fn present(&self) -> (&[u8], &[u8]) {
        let slice =
            |range: &std::ops::Range<usize>| self.buffer.get(range.clone()).unwrap_or_default();
        (slice(&self.key), slice(&self.value))
    }

    fn pair(&mut self, value: fn(&[u8]) -> ValueExtent) -> Result<bool> {
        loop {
            let data = self.buffer.get(self.from..self.to).unwrap_or_default();
            match measured_pair(data, value) {
                Ok(Some((key, content, end))) => {
                    self.key = key.start + self.from..key.end + self.from;
                    self.value = content.start + self.from..content.end + self.from;
                    self.from += end;
                    self.offset += end as u64;
                    return Ok(true);
                }
                Ok(None) => {}
                Err(what) => return Err(self.wrong(format!("it wrote {what}"))),
            }
            let left = data.len();
            if !self.fill()? {
                return if left == 0 {
                    Ok(false)
                } else {
                    Err(self.wrong("its output ends inside a record".to_owned()))
                };
            }
        }
    }

    fn fill(&mut self) -> Result<bool> {
        self.buffer.copy_within(self.from..self.to, 0);
        self.to -= self.from;
        self.from = 0;
        if self.buffer.len() - self.to < self.buffer.len() / 2 {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let room = self.buffer.get_mut(self.to..).unwrap_or_default();
        let count = self.source.read(room)?;
        self.to += count;
        Ok(count > 0)
    }

    fn wrong(&self, what: String) -> Error {
        Error::new(Kind::BadInput, "read what the script writes", what)
            .with("byte of its output", self.offset)
            .advise("let it write the records that -io names, and flush them before it ends")
    }
}

type PairRanges = (std::ops::Range<usize>, std::ops::Range<usize>, usize);

fn measured_pair(
    data: &[u8],
    measure: fn(&[u8]) -> ValueExtent,
) -> Result<Option<PairRanges>, String> {
    let (key, key_end) = match measure(data) {
        ValueExtent::Content(range, end) => (range, end),
        ValueExtent::Part => return Ok(None),
        ValueExtent::Wrong(what) => return Err(what),
    };
    match measure(data.get(key_end..).unwrap_or_default()) {
        ValueExtent::Content(range, end) => Ok(Some((
            key,
            range.start + key_end..range.end + key_end,
            key_end + end,
        ))),
        ValueExtent::Part => Ok(None),
        ValueExtent::Wrong(what) => Err(what),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn in_steps(mut data: &[u8], step: usize) -> impl ByteSource {
        move |buffer: &mut [u8]| {
            let count = data.len().min(step).min(buffer.len());
            buffer[..count].copy_from_slice(&data[..count]);
            data = &data[count..];
            Ok(count)
        }
    }

    fn read(
        data: &[u8],
        protocol: Protocol,
        separator: &[u8],
        fields: usize,
    ) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let mut reader = ScriptReader::new(in_steps(data, 7), protocol, separator.to_vec(), fields);
        let mut found = Vec::new();
        while reader.advance()? {
            let (key, value) = reader.pair();
            found.push((key.to_vec(), value.to_vec()));
        }
        Ok(found)
    }

    #[test]
    fn lines_are_cut_at_the_nth_separator() {
        let pairs = |text: &str, separator: &str, fields| {
            let found = read(
                text.as_bytes(),
                Protocol::Text,
                separator.as_bytes(),
                fields,
            )
            .unwrap();
            let text = |bytes| String::from_utf8(bytes).unwrap();
            found
                .into_iter()
                .map(|(key, value)| (text(key), text(value)))
                .collect::<Vec<_>>()
        };
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(
            pairs("a\tb\tc\nd\n\te", "\t", 1),
            [pair("a", "b\tc"), pair("d", ""), pair("", "e")]
        );
        assert_eq!(
            pairs("a.b.c.d\na.b\n", ".", 2),
            [pair("a.b", "c.d"), pair("a.b", "")]
        );
        assert_eq!(pairs("a::b::c", "::", 1), [pair("a", "b::c")]);
        assert_eq!(pairs("\n", "\t", 1), [pair("", "")]);
    }

    #[test]
    fn what_is_cut_off_is_said() {
        let error = read(b"\0\0\0\x01k\0\0\0\x05v", Protocol::RawBytes, b"", 1).unwrap_err();
        assert!(
            error.to_string().contains("ends inside a record"),
            "{error}"
        );
        assert!(read(b"\xff\xff\xff\xff", Protocol::RawBytes, b"", 1).is_err());
        assert!(read(b"\x0b", Protocol::TypedBytes, b"", 1).is_err());
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(pairs: Vec<(Vec<u8>, Vec<u8>)>) {
            for (protocol, class) in [(Protocol::RawBytes, WritableClass::Bytes), (Protocol::TypedBytes, WritableClass::Typed)] {
                let writer = ScriptWriter { protocol, separator: vec![], ignore_key: false };
                let mut out = Vec::new();
                let mut expected = Vec::new();
                for (key, value) in &pairs {
                    let made = |data: &[u8]| {
                        let mut out = Vec::new();
                        if class == WritableClass::Typed { WritableClass::Bytes.to_typed(data, &mut out) } else { out.extend(data) }
                        out
                    };
                    let (key, value) = (made(key), made(value));
                    writer.write((class, &key), (class, &value), &mut out);
                    expected.push((key, value));
                }
                prop_assert_eq!(read(&out, protocol, b"", 1).unwrap(), expected);
            }
        }
    }
}

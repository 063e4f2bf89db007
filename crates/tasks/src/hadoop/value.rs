//! Hadoop's values: bytes and what class they are of.
//!
//! ```text
//!   class                  here                      as text          serialized
//!   Text                   its UTF-8                 itself           length as vint, then itself
//!   BytesWritable          its bytes                 "68 65 6c"       length as i32, then itself
//!   TypedBytesWritable     its bytes                 what they say    length as i32, then itself
//!   LongWritable           8 bytes, big-endian       decimal          itself
//!   IntWritable            4 bytes, big-endian       decimal          itself
//!   NullWritable           nothing                   "(null)"         nothing
//! ```
//!
//! A script gets bytes as they are where Hadoop's text writer says so, and their hexadecimal form only in text
//! output.

use serde::{Deserialize, Serialize};

use super::{text, typed};
use gristmill_base::error::{Error, Kind, Result};

/// The class of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WritableClass {
    /// `Text`.
    Text,
    /// `BytesWritable`.
    Bytes,
    /// `TypedBytesWritable`.
    Typed,
    /// `LongWritable`.
    Long,
    /// `IntWritable`.
    Int,
    /// `NullWritable`.
    Null,
}

impl WritableClass {
    /// All of them.
    pub const ALL: [WritableClass; 6] = [
        WritableClass::Text,
        WritableClass::Bytes,
        WritableClass::Typed,
        WritableClass::Long,
        WritableClass::Int,
        WritableClass::Null,
    ];

    /// The name of the class in Java.
    pub fn java(self) -> &'static str {
        match self {
            WritableClass::Text => "org.apache.hadoop.io.Text",
            WritableClass::Bytes => "org.apache.hadoop.io.BytesWritable",
            WritableClass::Typed => "org.apache.hadoop.typedbytes.TypedBytesWritable",
            WritableClass::Long => "org.apache.hadoop.io.LongWritable",
            WritableClass::Int => "org.apache.hadoop.io.IntWritable",
            WritableClass::Null => "org.apache.hadoop.io.NullWritable",
        }
    }

    /// The class of that name.
    ///
    /// ```
    /// use gristmill_tasks::hadoop::value::WritableClass;
    /// assert_eq!(WritableClass::by_java("org.apache.hadoop.io.Text"), Some(WritableClass::Text));
    /// assert_eq!(WritableClass::by_java("org.apache.hadoop.io.MapWritable"), None);
    /// ```
    pub fn by_java(name: &str) -> Option<WritableClass> {
        WritableClass::ALL
            .into_iter()
            .find(|class| class.java() == name)
    }

    /// Appends the text that `toString` gives.
    pub fn display(self, data: &[u8], out: &mut Vec<u8>) {
        match self {
            WritableClass::Text => out.extend_from_slice(text::decoded(data).as_bytes()),
            WritableClass::Bytes => text::hexadecimal(data, b' ', out),
            WritableClass::Typed => typed::display(data, out),
            WritableClass::Long | WritableClass::Int => {
                out.extend_from_slice(number(data).to_string().as_bytes());
            }
            WritableClass::Null => out.extend_from_slice(b"(null)"),
        }
    }

    /// Appends what `TextOutputFormat` writes of it: text as it is, all else as `toString` gives it.
    pub fn to_file(self, data: &[u8], out: &mut Vec<u8>) {
        match self {
            WritableClass::Text => out.extend_from_slice(data),
            _ => self.display(data, out),
        }
    }

    /// Appends what a script gets of it in a line of text.
    pub fn to_line(self, data: &[u8], out: &mut Vec<u8>) {
        match self {
            WritableClass::Bytes | WritableClass::Text => out.extend_from_slice(data),
            // Only BytesWritable itself is taken as it is; its subclass too, in Hadoop's `instanceof`.
            WritableClass::Typed => out.extend_from_slice(data),
            _ => self.display(data, out),
        }
    }

    /// Appends its serialized form.
    pub fn serialize(self, data: &[u8], out: &mut Vec<u8>) {
        match self {
            WritableClass::Text => {
                write_vint(i64::try_from(data.len()).unwrap_or(i64::MAX), out);
                out.extend_from_slice(data);
            }
            WritableClass::Bytes | WritableClass::Typed => {
                write_length(data.len(), out);
                out.extend_from_slice(data);
            }
            WritableClass::Long | WritableClass::Int | WritableClass::Null => {
                out.extend_from_slice(data);
            }
        }
    }

    /// The value in its serialized form; an error's text says what is wrong with it.
    pub fn deserialize(self, data: &[u8]) -> Result<&[u8], &'static str> {
        let whole = |rest: &'_ [u8], len: usize| rest.len() == len;
        match self {
            WritableClass::Text => {
                let (len, rest) = read_vint(data).ok_or("its length is cut off")?;
                if !usize::try_from(len).is_ok_and(|len| whole(rest, len)) {
                    return Err("its length is not that of its text");
                }
                Ok(rest)
            }
            WritableClass::Bytes | WritableClass::Typed => {
                let (len, rest) = data
                    .split_first_chunk::<4>()
                    .ok_or("its length is cut off")?;
                if !usize::try_from(i32::from_be_bytes(*len)).is_ok_and(|len| whole(rest, len)) {
                    return Err("its length is not that of its bytes");
                }
                Ok(rest)
            }
            WritableClass::Long if whole(data, 8) => Ok(data),
            WritableClass::Int if whole(data, 4) => Ok(data),
            WritableClass::Null if whole(data, 0) => Ok(data),
            _ => Err("it has not the length of its class"),
        }
    }

    /// Appends its form in typed bytes.
    pub fn to_typed(self, data: &[u8], out: &mut Vec<u8>) {
        match self {
            WritableClass::Text => {
                let text = text::decoded(data);
                out.push(typed::STRING);
                write_length(text.len(), out);
                out.extend_from_slice(text.as_bytes());
            }
            WritableClass::Bytes => {
                out.push(typed::BYTES);
                write_length(data.len(), out);
                out.extend_from_slice(data);
            }
            WritableClass::Typed => out.extend_from_slice(data),
            WritableClass::Long => {
                out.push(typed::LONG);
                out.extend_from_slice(data);
            }
            WritableClass::Int => {
                out.push(typed::INT);
                out.extend_from_slice(data);
            }
            WritableClass::Null => {
                let name = self.java();
                out.push(typed::WRITABLE);
                write_length(4 + name.len(), out);
                write_length(name.len(), out);
                out.extend_from_slice(name.as_bytes());
            }
        }
    }

    /// Appends bytes that sort as values of the class do.
    pub fn sort_key(self, data: &[u8], out: &mut Vec<u8>) {
        match (self, data.split_first()) {
            // The sign's bit the other way round: negative numbers come first.
            (WritableClass::Long | WritableClass::Int, Some((first, rest))) => {
                out.push(first ^ 0x80);
                out.extend_from_slice(rest);
            }
            _ => out.extend_from_slice(data),
        }
    }

    /// The value whose sort key that is.
    pub fn from_sort_key(self, key: &mut [u8]) {
        if let (WritableClass::Long | WritableClass::Int, Some(first)) = (self, key.first_mut()) {
            *first ^= 0x80;
        }
    }
}

/// The number that a `LongWritable` or an `IntWritable` holds.
pub fn number(data: &[u8]) -> i64 {
    match (data.first_chunk::<8>(), data.first_chunk::<4>()) {
        (Some(long), _) => i64::from_be_bytes(*long),
        (None, Some(int)) => i64::from(i32::from_be_bytes(*int)),
        _ => 0,
    }
}

fn write_length(len: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes());
}

/// Appends a whole number in Hadoop's variable length (`WritableUtils.writeVLong`).
///
/// ```
/// use gristmill_tasks::hadoop::value::{read_vint, write_vint};
/// let mut out = Vec::new();
/// write_vint(300, &mut out);
/// assert_eq!(out, [0x8e, 0x01, 0x2c]);
/// assert_eq!(read_vint(&out), Some((300, &[][..])));
/// ```
pub fn write_vint(number: i64, out: &mut Vec<u8>) {
    if let Ok(small @ -112..=127) = i8::try_from(number) {
        out.push(small.cast_unsigned());
        return;
    }
    let (base, magnitude) = if number < 0 {
        (-120_i8, !number)
    } else {
        (-112, number)
    };
    let bytes = magnitude.to_be_bytes();
    let skipped = bytes.iter().take_while(|&&byte| byte == 0).count();
    let used = i8::try_from(8 - skipped).unwrap_or(8);
    out.push((base - used).cast_unsigned());
    out.extend_from_slice(bytes.get(skipped..).unwrap_or_default());
}

/// Reads such a number; returns it and what follows.
pub fn read_vint(data: &[u8]) -> Option<(i64, &[u8])> {
    let (&first, rest) = data.split_first()?;
    let first = first.cast_signed();
    let (count, negative) = match first {
        -112.. => return Some((i64::from(first), rest)),
        -120..=-113 => (-112 - i16::from(first), false),
        _ => (-120 - i16::from(first), true),
    };
    let (bytes, rest) = rest.split_at_checked(usize::try_from(count).ok()?)?;
    let number = bytes
        .iter()
        .fold(0_i64, |number, &byte| number << 8 | i64::from(byte));
    Some((if negative { !number } else { number }, rest))
}

/// The error of a class that is not known here.
pub fn unknown_class(operation: &'static str, name: &str) -> Error {
    let known = WritableClass::ALL.map(WritableClass::java).join(", ");
    Error::new(
        Kind::BadInput,
        operation,
        format!("its values are of the class {name}, which is not supported"),
    )
    .advise(format!("use one of {known}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn displayed(class: WritableClass, data: &[u8]) -> String {
        let mut out = Vec::new();
        class.display(data, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn text_forms() {
        assert_eq!(displayed(WritableClass::Bytes, b"hel\xff"), "68 65 6c ff");
        assert_eq!(
            displayed(WritableClass::Long, &(-5_i64).to_be_bytes()),
            "-5"
        );
        assert_eq!(displayed(WritableClass::Int, &7_i32.to_be_bytes()), "7");
        assert_eq!(displayed(WritableClass::Null, b""), "(null)");
        let mut line = Vec::new();
        WritableClass::Bytes.to_line(b"a\xff", &mut line);
        assert_eq!(line, b"a\xff");
    }

    #[test]
    fn variable_lengths_at_their_borders() {
        for (number, bytes) in [
            (0, vec![0]),
            (127, vec![127]),
            (-112, vec![0x90]),
            (128, vec![0x8f, 128]),
            (255, vec![0x8f, 255]),
            (256, vec![0x8e, 1, 0]),
            (-113, vec![0x87, 112]),
            (
                i64::MAX,
                vec![0x88, 0x7f, 255, 255, 255, 255, 255, 255, 255],
            ),
        ] {
            let mut out = Vec::new();
            write_vint(number, &mut out);
            assert_eq!(out, bytes, "{number}");
        }
    }

    proptest! {
        #[test]
        fn serialized_values_come_back(data: Vec<u8>, number: i64, after: Vec<u8>) {
            for class in [WritableClass::Text, WritableClass::Bytes, WritableClass::Typed] {
                let mut out = Vec::new();
                class.serialize(&data, &mut out);
                prop_assert_eq!(class.deserialize(&out), Ok(&data[..]));
                prop_assert!(class.deserialize(&out[..out.len() - 1]).is_err());
            }
            let mut out = Vec::new();
            write_vint(number, &mut out);
            out.extend_from_slice(&after);
            prop_assert_eq!(read_vint(&out), Some((number, &after[..])));
        }

        #[test]
        fn sort_keys_sort_as_numbers(a: i64, b: i64) {
            let key = |n: i64| { let mut out = Vec::new(); WritableClass::Long.sort_key(&n.to_be_bytes(), &mut out); out };
            prop_assert_eq!(key(a).cmp(&key(b)), a.cmp(&b));
            let mut back = key(a);
            WritableClass::Long.from_sort_key(&mut back);
            prop_assert_eq!(number(&back), a);
        }
    }
}

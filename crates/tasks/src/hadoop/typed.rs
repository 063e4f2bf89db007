//! Typed bytes: values that say what they are, one behind the other.
//!
//! ```text
//!   | code | content |        0 bytes, 7 string, 50-200 the application's:  | length, i32 BE | that many bytes |
//!                             1 byte  2 bool  3 int  4 long  5 float  6 double:  1 1 4 8 4 8 bytes, big-endian
//!                             8 vector: | count, i32 | values |      9 list: values until | 255 |
//!                             10 map:   | count, i32 | key, value, ... |
//! ```
//!
//! Format: the package documentation of `org.apache.hadoop.typedbytes`.

use super::text::hexadecimal;

/// A sequence of bytes.
pub const BYTES: u8 = 0;
const BYTE: u8 = 1;
const BOOL: u8 = 2;
/// A 32-bit number.
pub const INT: u8 = 3;
/// A 64-bit number.
pub const LONG: u8 = 4;
const FLOAT: u8 = 5;
const DOUBLE: u8 = 6;
/// UTF-8.
pub const STRING: u8 = 7;
const VECTOR: u8 = 8;
const LIST: u8 = 9;
const MAP: u8 = 10;
/// A `Writable` of another class: the name of the class, and what it writes.
pub const WRITABLE: u8 = 50;
const MARKER: u8 = 255;

/// How deep values may lie in one another.
const DEPTH: usize = 64;

/// What is at the beginning of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum TypedValueScan {
    /// A value of so many bytes.
    Value(usize),
    /// The beginning of one: more bytes are needed.
    Part,
    /// No value: what is wrong.
    Wrong(String),
}

/// The length of the value that `data` begins with.
///
/// ```
/// use gristmill_tasks::hadoop::typed::{TypedValueScan, measure};
/// assert_eq!(measure(b"\x07\x00\x00\x00\x02hi and more"), TypedValueScan::Value(7));
/// assert_eq!(measure(b"\x07\x00\x00\x00\x02h"), TypedValueScan::Part);
/// ```
pub fn measure(data: &[u8]) -> TypedValueScan {
    match skip(data, 0) {
        Ok(Some(rest)) => TypedValueScan::Value(data.len() - rest.len()),
        Ok(None) => TypedValueScan::Part,
        Err(wrong) => TypedValueScan::Wrong(wrong),
    }
}

/// What follows the first value; `None` where it is cut off.
fn skip(data: &[u8], depth: usize) -> Result<Option<&[u8]>, String> {
    if depth > DEPTH {
        return Err(format!("values are nested more than {DEPTH} deep"));
    }
    let Some((&code, rest)) = data.split_first() else {
        return Ok(None);
    };
    let fixed = |bytes: usize| Ok(rest.get(bytes..));
    match code {
        BYTE | BOOL => fixed(1),
        INT | FLOAT => fixed(4),
        LONG | DOUBLE => fixed(8),
        BYTES | STRING | WRITABLE..=200 => {
            let Some((len, rest)) = count(rest, code)? else {
                return Ok(None);
            };
            Ok(rest.get(len..))
        }
        VECTOR => {
            let Some((count, rest)) = count(rest, code)? else {
                return Ok(None);
            };
            skip_many(rest, count, depth)
        }
        MAP => {
            let Some((count, rest)) = count(rest, code)? else {
                return Ok(None);
            };
            skip_many(rest, count.saturating_mul(2), depth)
        }
        LIST => {
            let mut rest = rest;
            loop {
                match rest.split_first() {
                    None => return Ok(None),
                    Some((&MARKER, after)) => return Ok(Some(after)),
                    Some(_) => match skip(rest, depth + 1)? {
                        None => return Ok(None),
                        Some(after) => rest = after,
                    },
                }
            }
        }
        _ => Err(format!("{code} is not the code of a type")),
    }
}

fn skip_many(data: &[u8], count: usize, depth: usize) -> Result<Option<&[u8]>, String> {
    let mut rest = data;
    for _ in 0..count {
        match skip(rest, depth + 1)? {
            None => return Ok(None),
            Some(after) => rest = after,
        }
    }
    Ok(Some(rest))
}

fn count(data: &[u8], code: u8) -> Result<Option<(usize, &[u8])>, String> {
    let Some((count, rest)) = data.split_first_chunk::<4>() else {
        return Ok(None);
    };
    let count = i32::from_be_bytes(*count);
    match usize::try_from(count) {
        Ok(count) => Ok(Some((count, rest))),
        Err(_) => Err(format!(
            "a value of type {code} says that its length is {count}"
        )),
    }
}

/// Appends the text of a value as Java prints it.
pub fn display(data: &[u8], out: &mut Vec<u8>) {
    show(data, out);
}

/// Shows the first value; returns what follows.
fn show<'a>(data: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
    let Some((&code, rest)) = data.split_first() else {
        return &[];
    };
    match code {
        BYTE | BOOL => show_byte(code, rest, out),
        INT => show_chunk(rest, out, |bytes: [u8; 4]| {
            i32::from_be_bytes(bytes).to_string()
        }),
        LONG => show_chunk(rest, out, |bytes: [u8; 8]| {
            i64::from_be_bytes(bytes).to_string()
        }),
        FLOAT => show_chunk(rest, out, |bytes: [u8; 4]| {
            super::aggregate::java_float(f32::from_be_bytes(bytes))
        }),
        DOUBLE => show_chunk(rest, out, |bytes: [u8; 8]| {
            super::aggregate::java_double(f64::from_be_bytes(bytes))
        }),
        VECTOR | MAP => match count(rest, code) {
            Ok(Some((count, rest))) => show_many(rest, count, code == MAP, out),
            _ => &[],
        },
        LIST => show_list(rest, out),
        _ => match count(rest, code) {
            Ok(Some((len, rest))) => {
                let (content, after) = rest.split_at_checked(len).unwrap_or((rest, &[]));
                if code == STRING {
                    out.extend_from_slice(content);
                } else {
                    hexadecimal(content, 0, out);
                }
                after
            }
            _ => &[],
        },
    }
}

fn show_byte<'a>(code: u8, rest: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
    let Some((&byte, after)) = rest.split_first() else {
        return &[];
    };
    let text = match (code, byte) {
        (BOOL, 0) => "false".to_owned(),
        (BOOL, _) => "true".to_owned(),
        _ => byte.cast_signed().to_string(),
    };
    out.extend_from_slice(text.as_bytes());
    after
}

fn show_chunk<'a, const N: usize>(
    rest: &'a [u8],
    out: &mut Vec<u8>,
    text: impl Fn([u8; N]) -> String,
) -> &'a [u8] {
    let Some((bytes, after)) = rest.split_first_chunk::<N>() else {
        return &[];
    };
    out.extend_from_slice(text(*bytes).as_bytes());
    after
}

/// A vector as `[a, b]`, a map as `{a=b, c=d}` (in Java, a tree map: as they come is as they were sorted).
fn show_many<'a>(rest: &'a [u8], count: usize, map: bool, out: &mut Vec<u8>) -> &'a [u8] {
    let (open, close) = if map { (b'{', b'}') } else { (b'[', b']') };
    let mut rest = rest;
    out.push(open);
    for i in 0..count {
        if rest.is_empty() {
            break;
        }
        if i > 0 {
            out.extend_from_slice(b", ");
        }
        rest = show(rest, out);
        if map {
            out.push(b'=');
            rest = show(rest, out);
        }
    }
    out.push(close);
    rest
}

fn show_list<'a>(rest: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
    let mut rest = rest;
    out.push(b'[');
    let mut first = true;
    loop {
        match rest.split_first() {
            None => break,
            Some((&MARKER, after)) => {
                rest = after;
                break;
            }
            Some(_) => {
                if !first {
                    out.extend_from_slice(b", ");
                }
                first = false;
                rest = show(rest, out);
            }
        }
    }
    out.push(b']');
    rest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(data: &[u8]) -> String {
        let mut out = Vec::new();
        display(data, &mut out);
        String::from_utf8(out).unwrap()
    }

    const NESTED: &[u8] =
        b"\x08\0\0\0\x02\x07\0\0\0\x01a\x0a\0\0\0\x01\x03\0\0\0\x05\x09\x02\x01\x02\0\xff";

    #[test]
    fn values_are_measured_and_shown() {
        for (data, text) in [
            (&b"\x00\0\0\0\x02\xab\x01"[..], "ab01"),
            (b"\x01\xff", "-1"),
            (b"\x02\x01", "true"),
            (b"\x03\xff\xff\xff\xfe", "-2"),
            (b"\x04\0\0\0\0\0\0\0\x07", "7"),
            (b"\x06\x3f\xf8\0\0\0\0\0\0", "1.5"),
            (b"\x07\0\0\0\x02hi", "hi"),
            (NESTED, "[a, {5=[true, false]}]"),
        ] {
            assert_eq!(measure(data), TypedValueScan::Value(data.len()), "{text}");
            assert_eq!(shown(data), text);
            for cut in 0..data.len() {
                assert_eq!(
                    measure(&data[..cut]),
                    TypedValueScan::Part,
                    "{text}, {cut} bytes"
                );
            }
        }
    }

    #[test]
    fn what_is_no_value_is_said() {
        assert!(matches!(measure(b"\x0b"), TypedValueScan::Wrong(why) if why.contains("11")));
        assert!(matches!(
            measure(b"\x07\xff\xff\xff\xff"),
            TypedValueScan::Wrong(_)
        ));
        assert!(matches!(measure(&[9; 100]), TypedValueScan::Wrong(why) if why.contains("nested")));
    }

    proptest! {
        #[test]
        fn any_bytes_are_safe(data: Vec<u8>) {
            if let TypedValueScan::Value(len) = measure(&data) {
                prop_assert!(len <= data.len() && len > 0);
            }
            let mut out = Vec::new();
            display(&data, &mut out);
        }
    }
}

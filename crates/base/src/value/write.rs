//! Writing values: each function appends one encoding to a buffer that the caller keeps, and allocates nothing else.
//!
//! What a null is depends on where it stands: [`null`] at the top, [`null_in_tuple`] inside a tuple. [`ValueWriter`](super::ValueWriter) keeps track of
//! that, and of how deep tuples are.

use super::{MAGNITUDE_BYTES_MAX, code};
use crate::{Error, Kind, Result};

/// Appends a null that stands for itself.
///
/// ```
/// use gristmill_base::value::write;
/// let mut out = Vec::new();
/// write::null(&mut out);
/// assert_eq!(out, [0x00]);
/// ```
#[inline]
pub fn null(out: &mut Vec<u8>) {
    out.push(code::NULL);
}

/// Appends a null that is an element of a tuple.
///
/// ```
/// use gristmill_base::value::write;
/// let mut out = Vec::new();
/// write::begin_tuple(&mut out);
/// write::null_in_tuple(&mut out);
/// write::end_tuple(&mut out);
/// assert_eq!(out, [0x05, 0x00, 0xff, 0x00]);
/// ```
#[inline]
pub fn null_in_tuple(out: &mut Vec<u8>) {
    out.extend_from_slice(&[code::NULL, code::ESCAPE]);
}

/// Appends bytes.
///
/// ```
/// use gristmill_base::value::write;
/// let mut out = Vec::new();
/// write::bytes(&mut out, b"a\0b");
/// assert_eq!(out, b"\x01a\0\xffb\0");
/// ```
#[inline]
pub fn bytes(out: &mut Vec<u8>, value: &[u8]) {
    escaped(out, code::BYTES, value);
}

/// Appends text.
///
/// ```
/// use gristmill_base::value::write;
/// let mut out = Vec::new();
/// write::text(&mut out, "word");
/// assert_eq!(out, b"\x02word\0");
/// ```
#[inline]
pub fn text(out: &mut Vec<u8>, value: &str) {
    escaped(out, code::TEXT, value.as_bytes());
}

/// Appends bytes in which there is no zero.
///
/// ```
/// use gristmill_base::value::write;
/// let mut out = Vec::new();
/// write::plain_bytes(&mut out, b"ab");
/// assert_eq!(out, b"\x01ab\0");
/// ```
#[inline]
pub fn plain_bytes(out: &mut Vec<u8>, value: &[u8]) {
    plain(out, code::BYTES, value);
}

/// Appends text in which there is no zero, given as its UTF-8.
///
/// ```
/// use gristmill_base::value::write;
/// let mut out = Vec::new();
/// write::plain_text(&mut out, b"word");
/// assert_eq!(out, b"\x02word\0");
/// ```
#[inline]
pub fn plain_text(out: &mut Vec<u8>, value: &[u8]) {
    plain(out, code::TEXT, value);
}

#[inline]
pub(super) fn plain(out: &mut Vec<u8>, of_type: u8, content: &[u8]) {
    debug_assert!(!content.contains(&0));
    out.reserve(content.len() + 2);
    out.push(of_type);
    out.extend_from_slice(content);
    out.push(code::END);
}

/// Appends bytes that Python's `pickle` made.
///
/// ```
/// use gristmill_base::value::write;
/// let mut out = Vec::new();
/// write::pickled(&mut out, b"\x80\x05N.");
/// assert_eq!(out, b"\x40\x80\x05N.\0");
/// ```
#[inline]
pub fn pickled(out: &mut Vec<u8>, value: &[u8]) {
    escaped(out, code::PICKLED, value);
}

#[inline]
pub(super) fn escaped(out: &mut Vec<u8>, code: u8, content: &[u8]) {
    out.reserve(content.len() + 2);
    out.push(code);
    escape(out, content);
}

/// Appends content and its end, without a code.
#[inline]
pub(super) fn escape(out: &mut Vec<u8>, mut content: &[u8]) {
    while let Some(zero) = memchr::memchr(0, content) {
        let (before, behind) = content.split_at(zero + 1);
        out.extend_from_slice(before);
        out.push(code::ESCAPE);
        content = behind;
    }
    out.extend_from_slice(content);
    out.push(code::END);
}

/// Appends an integer of up to 64 bits.
///
/// ```
/// use gristmill_base::value::write;
/// let mut out = Vec::new();
/// write::int(&mut out, 5551212);
/// write::int(&mut out, 0);
/// write::int(&mut out, -5551212);
/// assert_eq!(out, b"\x17\x54\xb4\x6c\x14\x11\xab\x4b\x93");
/// ```
#[inline]
pub fn int(out: &mut Vec<u8>, value: i64) {
    magnitude(out, value < 0, value.unsigned_abs());
}

/// Appends an integer that has no sign, such as a count or a position.
///
/// ```
/// use gristmill_base::value::write;
/// let mut out = Vec::new();
/// write::unsigned(&mut out, u64::MAX);
/// assert_eq!(out, [0x1c, 255, 255, 255, 255, 255, 255, 255, 255]);
/// ```
#[inline]
pub fn unsigned(out: &mut Vec<u8>, value: u64) {
    magnitude(out, false, value);
}

/// Appends an integer given by its sign and its magnitude.
#[inline]
fn magnitude(out: &mut Vec<u8>, negative: bool, magnitude: u64) {
    if magnitude == 0 {
        out.push(code::ZERO);
        return;
    }
    let empty_bytes = magnitude.leading_zeros() / 8;
    let length = 8 - empty_bytes as usize;
    // All eight bytes are appended, and those that are no part of the number cut off: no loop, no call of memcpy.
    let (first, bits) = if negative {
        (code::ZERO - length as u8, !magnitude)
    } else {
        (code::ZERO + length as u8, magnitude)
    };
    let mut all = [first; 9];
    all[1..].copy_from_slice(&(bits << (8 * empty_bytes)).to_be_bytes());
    let end = out.len() + 1 + length;
    out.extend_from_slice(&all);
    out.truncate(end);
}

/// Appends an integer of any size, given by its magnitude, the most significant byte first; zeros in front do not count.
///
/// An error (`bad_input`) if it has more than 255 bytes, which is what the encoding can say.
///
/// ```
/// use gristmill_base::value::write;
/// let mut out = Vec::new();
/// write::big_int(&mut out, false, &[1, 0, 0, 0, 0, 0, 0, 0, 0])?;
/// assert_eq!(out, [0x1d, 9, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
/// assert!(write::big_int(&mut out, true, &[1; 256]).is_err());
/// # Ok::<(), gristmill_base::Error>(())
/// ```
pub fn big_int(out: &mut Vec<u8>, negative: bool, magnitude_be: &[u8]) -> Result<()> {
    let zeros = magnitude_be.iter().take_while(|byte| **byte == 0).count();
    let digits = magnitude_be.get(zeros..).unwrap_or_default();
    let length = digits.len();
    if length <= 8 {
        let number = digits
            .iter()
            .fold(0, |number, byte| number << 8 | u64::from(*byte));
        magnitude(out, negative, number);
    } else if length > MAGNITUDE_BYTES_MAX {
        let message = format!(
            "an integer of {length} bytes is longer than {MAGNITUDE_BYTES_MAX}, the most a value can hold"
        );
        return Err(Error::new(Kind::BadInput, "encode a value", message)
            .advise("turn so large an integer into text or bytes"));
    } else if negative {
        out.extend_from_slice(&[code::NEGATIVE, !(length as u8)]);
        out.extend(digits.iter().map(|byte| !byte));
    } else {
        out.extend_from_slice(&[code::POSITIVE, length as u8]);
        out.extend_from_slice(digits);
    }
    Ok(())
}

/// Appends a double, bit for bit: zeros keep their signs, NaNs their payloads.
///
/// ```
/// use gristmill_base::value::write;
/// let mut out = Vec::new();
/// write::double(&mut out, 1.0);
/// assert_eq!(out, [0x21, 0xbf, 0xf0, 0, 0, 0, 0, 0, 0]);
/// ```
#[inline]
pub fn double(out: &mut Vec<u8>, value: f64) {
    let mut all = [code::DOUBLE; 9];
    all[1..].copy_from_slice(&ordered_bits(value).to_be_bytes());
    out.extend_from_slice(&all);
}

/// A double's bits, turned so that they compare as the doubles do.
#[inline]
fn ordered_bits(value: f64) -> u64 {
    let bits = value.to_bits();
    let sign = 1 << 63;
    if bits & sign == 0 { bits ^ sign } else { !bits }
}

/// Appends a boolean.
///
/// ```
/// use gristmill_base::value::write;
/// let mut out = Vec::new();
/// write::boolean(&mut out, true);
/// assert_eq!(out, [0x27]);
/// ```
#[inline]
pub fn boolean(out: &mut Vec<u8>, value: bool) {
    out.push(if value { code::TRUE } else { code::FALSE });
}

/// Begins a tuple: what is written until [`end_tuple`] are its elements.
///
/// ```
/// use gristmill_base::value::write;
/// let mut out = Vec::new();
/// write::begin_tuple(&mut out);
/// write::int(&mut out, 1);
/// write::end_tuple(&mut out);
/// assert_eq!(out, [0x05, 0x15, 1, 0x00]);
/// ```
#[inline]
pub fn begin_tuple(out: &mut Vec<u8>) {
    out.push(code::TUPLE);
}

/// Begins a list: what is written until [`end_tuple`] are its elements.
///
/// ```
/// use gristmill_base::value::write;
/// let mut out = Vec::new();
/// write::begin_list(&mut out);
/// write::int(&mut out, 1);
/// write::end_tuple(&mut out);
/// assert_eq!(out, [0x4b, 0x15, 1, 0x00]);
/// ```
#[inline]
pub fn begin_list(out: &mut Vec<u8>) {
    out.push(code::LIST);
}

/// Begins a dict: what is written until [`end_tuple`] are its keys, each with its value behind it.
///
/// ```
/// use gristmill_base::value::write;
/// let mut out = Vec::new();
/// write::begin_dict(&mut out);
/// write::text(&mut out, "a");
/// write::null_in_tuple(&mut out);
/// write::end_tuple(&mut out);
/// assert_eq!(out, [0x4c, 0x02, b'a', 0x00, 0x00, 0xff, 0x00]);
/// ```
#[inline]
pub fn begin_dict(out: &mut Vec<u8>) {
    out.push(code::DICT);
}

/// Ends the tuple, list or dict begun last.
///
/// ```
/// use gristmill_base::value::write;
/// let mut out = Vec::new();
/// write::begin_tuple(&mut out);
/// write::end_tuple(&mut out);
/// assert_eq!(out, [0x05, 0x00]);
/// ```
#[inline]
pub fn end_tuple(out: &mut Vec<u8>) {
    out.push(code::END);
}

/// Appends a value that is encoded already, as an element of a tuple: all but a null stay as they are.
///
/// ```
/// use gristmill_base::value::write;
/// let mut out = Vec::new();
/// write::begin_tuple(&mut out);
/// write::element(&mut out, &[0x15, 7]);
/// write::element(&mut out, &[0x00]);
/// write::end_tuple(&mut out);
/// assert_eq!(out, [0x05, 0x15, 7, 0x00, 0xff, 0x00]);
/// ```
#[inline]
pub fn element(out: &mut Vec<u8>, encoded: &[u8]) {
    if encoded == [code::NULL] {
        null_in_tuple(out);
    } else {
        out.extend_from_slice(encoded);
    }
}

//! Where values end: without reading them, at the speed of `memchr`.

use super::descending::end_of_descending;
use super::escaped::end_of_escaped;
use super::{DEPTH_MAX, code, malformed};
use crate::Result;

/// Bytes of the first value in `bytes`; others may follow.
///
/// An error (`bad_input`, with the offset) where none begins or it does not end. What the value holds is not looked at: that
/// text is UTF-8, or an integer as short as it can be, only [`super::ValueReader`] says.
///
/// ```
/// use gristmill_base::value::skip;
/// let record = b"\x02word\0\x15\x07"; // a key, its value
/// assert_eq!(skip(record)?, 6);
/// assert_eq!(skip(&record[6..])?, 2);
/// assert!(skip(b"\x02word").is_err());
/// # Ok::<(), gristmill_base::Error>(())
/// ```
#[inline]
pub fn skip(bytes: &[u8]) -> Result<usize> {
    // The common keys and values need no loop.
    match bytes.split_first() {
        Some((&code::BYTES | &code::TEXT | &code::PICKLED, behind)) => match end_of_escaped(behind)
        {
            Some((length, _)) => Ok(1 + length),
            None => Err(malformed(bytes.len(), None, "the zero that ends a value")),
        },
        Some((first, _)) if (code::ZERO - 8..=code::ZERO + 8).contains(first) => {
            let length = 1 + usize::from(first.abs_diff(code::ZERO));
            whole(bytes, 0, length)
        }
        _ => skip_any::<false>(bytes, 0, 0),
    }
}

/// The first `elements` of the tuple that `encoded` begins with: from its first byte to where the last of them ends. Two such slices are
/// equal where the elements are, and compare as they do.
///
/// An error (`bad_input`) where `encoded` is no tuple, or has fewer elements.
///
/// ```
/// use gristmill_base::value::prefix;
/// let tuple = b"\x05\x02word\0\x15\x07\0"; // ("word", 7)
/// assert_eq!(prefix(tuple, 1)?, b"\x05\x02word\0");
/// assert_eq!(prefix(tuple, 2)?, b"\x05\x02word\0\x15\x07");
/// assert!(prefix(tuple, 3).is_err());
/// # Ok::<(), gristmill_base::Error>(())
/// ```
pub fn prefix(encoded: &[u8], elements: usize) -> Result<&[u8]> {
    let first = encoded.first().copied();
    if first != Some(code::TUPLE) {
        return Err(malformed(0, first, "a tuple"));
    }
    let mut end = 1;
    for element in 0..elements {
        let rest = encoded.get(end..).unwrap_or_default();
        match rest {
            [code::NULL, code::ESCAPE, ..] => end += 2,
            [code::END, ..] => {
                let expected = format!("a tuple of at least {elements} elements, not {element}");
                return Err(malformed(end, Some(code::END), &expected));
            }
            _ => end += skip_any::<false>(rest, 1, end)?,
        }
    }
    Ok(encoded.get(..end).unwrap_or(encoded))
}

/// Bytes of the first value in `bytes`, written by [`super::order::ordered`].
pub(super) fn skip_ordered(bytes: &[u8]) -> Result<usize> {
    skip_any::<true>(bytes, 0, 0)
}

/// Bytes of the first value in `bytes`, which stands inside `outer` tuples and, for errors, `offset` bytes into the encoding;
/// `ORDERED` where its numbers are in the form of `order.rs`.
fn skip_any<const ORDERED: bool>(bytes: &[u8], outer: u32, offset: usize) -> Result<usize> {
    let (mut at, mut depth) = (0, outer);
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let Some((first, behind)) = rest.split_first() else {
            return Err(malformed(offset + at, None, "a value"));
        };
        at += match *first {
            code::TUPLE | code::LIST | code::DICT if depth == DEPTH_MAX => {
                let expected = format!("no tuple deeper than {DEPTH_MAX}");
                return Err(malformed(offset + at, Some(*first), &expected));
            }
            code::TUPLE | code::LIST | code::DICT => {
                depth += 1;
                1
            }
            code::NULL if depth == 0 => 1,
            code::NULL if behind.first() == Some(&code::ESCAPE) => 2,
            code::END => {
                depth -= 1;
                1
            }
            code::BYTES | code::TEXT | code::PICKLED | code::WRITTEN => {
                match end_of_escaped(behind) {
                    Some((length, _)) => 1 + length,
                    None => {
                        let end = offset + bytes.len();
                        return Err(malformed(end, None, "the zero that ends a value"));
                    }
                }
            }
            code::DESCENDING => match end_of_descending(behind) {
                Some(length) => 1 + length,
                None => {
                    let end = offset + bytes.len();
                    return Err(malformed(end, None, "the end of a descending value"));
                }
            },
            code::BELOW | code::ABOVE | code::NAN if ORDERED => 1,
            _ => {
                let length = fixed_length(rest)
                    .map_err(|(found, expected)| malformed(offset + at, found, expected))?;
                let length = whole(rest, offset + at, length)?;
                match rest.get(length..) {
                    Some([code::FRACTION, ..]) if ORDERED => {
                        let ordered = end_of_fraction(rest, length);
                        let end = offset + bytes.len();
                        ordered.ok_or_else(|| malformed(end, None, "the end of a fraction"))?
                    }
                    _ => length,
                }
            }
        };
        // A tuple that has just begun leaves the depth above: go on until it has ended.
        if depth <= outer {
            return Ok(at);
        }
    }
}

/// `length`, if there are as many bytes.
#[inline]
fn whole(rest: &[u8], offset: usize, length: usize) -> Result<usize> {
    if rest.len() < length {
        let expected = format!("{} more byte(s) of the number", length - rest.len());
        return Err(malformed(offset + rest.len(), None, &expected));
    }
    Ok(length)
}

/// Where the number ends whose fraction begins at `at`.
fn end_of_fraction(rest: &[u8], at: usize) -> Option<usize> {
    let end = at + 9;
    match rest.get(at..)?.get(9..) {
        Some([code::FRACTION, digits @ ..]) => Some(end + 2 + memchr::memchr(code::END, digits)?),
        more => more.map(|_| end),
    }
}

/// Bytes of a value whose first ones tell its length, or what was found and what expected.
#[inline]
pub(super) fn fixed_length(rest: &[u8]) -> Result<usize, (Option<u8>, &'static str)> {
    let first = rest.first().copied();
    match first {
        Some(code::FALSE | code::TRUE) => Ok(1),
        Some(code::DOUBLE | code::NAIVE | code::AWARE) => Ok(9),
        Some(code::DATE) => Ok(5),
        Some(code::DURATION) => Ok(13),
        Some(code::UUID) => Ok(18),
        Some(code::TIME | code::ZONED) => {
            super::exact::length(rest).ok_or((None, "the end of a time zone"))
        }
        Some(code::DECIMAL) => super::decimal::length(rest).ok_or((None, "the end of a decimal")),
        Some(code @ (code::NEGATIVE | code::POSITIVE)) => {
            let Some(length) = rest.get(1) else {
                return Err((None, "the length of an integer"));
            };
            let length = if code == code::NEGATIVE {
                !length
            } else {
                *length
            };
            Ok(2 + usize::from(length))
        }
        Some(code) if (code::NEGATIVE..code::POSITIVE).contains(&code) => {
            Ok(1 + usize::from(code.abs_diff(code::ZERO)))
        }
        _ => Err((first, "the code of a type")),
    }
}

//! Values whose order is turned: the complement of an encoding, or of bytes of `order.rs`.
//!
//! ```text
//!  45 !encoding ff ff       an ff of the complement is followed by 00
//! ```
//!
//! The end is greater than whatever may stand in its place, so that of two values of which one begins with the other the longer
//! one comes first.

use super::code;

/// Appends a value whose order is turned, by its encoding (or by bytes of `order.rs`).
///
/// ```
/// use gristmill_base::value::descending;
/// let mut out = Vec::new();
/// descending::write(&mut out, b"\x02a\0");
/// assert_eq!(out, [0x45, 0xfd, 0x9e, 0xff, 0x00, 0xff, 0xff]);
/// ```
pub fn write(out: &mut Vec<u8>, encoded: &[u8]) {
    out.push(code::DESCENDING);
    for byte in encoded {
        out.push(!byte);
        if *byte == 0 {
            out.push(0);
        }
    }
    out.extend_from_slice(&[code::ESCAPE, code::ESCAPE]);
}

/// What was turned, from the bytes between the code and the end.
pub(super) fn turned_back(raw: &[u8]) -> Vec<u8> {
    let mut inner = Vec::with_capacity(raw.len());
    let mut rest = raw.iter();
    while let Some(byte) = rest.next() {
        inner.push(!byte);
        if *byte == code::ESCAPE {
            rest.next();
        }
    }
    inner
}

/// How many bytes, with the two that end it, a descending value has behind its code.
pub(super) fn end_of_descending(behind: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr::memchr(code::ESCAPE, behind.get(at..)?)? + 2;
        match behind.get(at - 1)? {
            &code::ESCAPE => return Some(at),
            0 => {}
            _ => return None,
        }
    }
}

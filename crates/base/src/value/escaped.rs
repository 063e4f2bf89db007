//! Content that ends with a zero: each zero of its own has an escape behind it.

use super::code;

/// How many bytes, with the zero that ends them, escaped content has, and how many zeros of its own.
#[inline]
pub(super) fn end_of_escaped(behind: &[u8]) -> Option<(usize, usize)> {
    let (mut at, mut zeros) = (0, 0);
    loop {
        at += memchr::memchr(code::END, behind.get(at..)?)? + 1;
        if behind.get(at) != Some(&code::ESCAPE) {
            return Some((at, zeros));
        }
        (at, zeros) = (at + 1, zeros + 1);
    }
}

/// The content, each zero without the escape behind it.
pub(super) fn unescape(raw: &[u8], zeros: usize) -> Vec<u8> {
    let mut content = Vec::with_capacity(raw.len() - zeros);
    let mut rest = raw;
    while let Some(zero) = memchr::memchr(0, rest) {
        let (before, behind) = rest.split_at(zero + 1);
        content.extend_from_slice(before);
        rest = behind.get(1..).unwrap_or_default();
    }
    content.extend_from_slice(rest);
    content
}

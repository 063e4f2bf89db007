//! `-n` and `-h`: decimal numbers of any length, compared by value.
//!
//! ```text
//! zero         80
//! 12.5         81  02           23 60           82 means more digits than a byte counts
//! -12.5        7F  ~(02         23 60)
//!                  │            └─ digits + 1, two a byte, ended by a half byte of 0
//!                  └─ how many digits stand before the point, without leading zeros
//! ```
//!
//! No number at all is zero. `-h` puts a byte of the unit (K, M, G …) in front, signed by the number.

use std::borrow::Cow;

use crate::fields::is_blank;

const ZERO: u8 = 0x80;
/// What GNU sort 9.1 takes for the separator of thousands in the locale C, which has none.
const SEPARATOR: u8 = 0x80;
/// Lengths from here on take eight bytes more.
const LONG: usize = 0xFF;

/// The decimal number at the beginning of a key.
pub(crate) struct LeadingNumber<'a> {
    negative: bool,
    /// Digits before the point, without leading zeros.
    whole: Cow<'a, [u8]>,
    /// Digits behind it, without trailing zeros.
    fraction: &'a [u8],
}

impl<'a> LeadingNumber<'a> {
    fn read(text: &'a [u8]) -> Self {
        let negative = text.first() == Some(&b'-');
        let text = &text[usize::from(negative)..];
        let (whole, rest) = separated_digits(text);
        let fraction = match rest.first() {
            Some(b'.') => digits(&rest[1..]).0,
            _ => &[],
        };
        let kept = fraction
            .iter()
            .rposition(|digit| *digit != b'0')
            .map_or(0, |last| last + 1);
        Self {
            negative,
            whole,
            fraction: &fraction[..kept],
        }
    }

    fn encode(&self, code: &mut Vec<u8>) {
        if self.whole.is_empty() && self.fraction.is_empty() {
            return code.push(ZERO);
        }
        code.push(ZERO + 1);
        let start = code.len();
        encode_length(self.whole.len(), code);
        encode_digits(self.whole.iter().chain(self.fraction), code);
        if self.negative {
            code[start - 1] = ZERO - 1;
            crate::invert(&mut code[start..]);
        }
    }
}

/// `-n`.
pub(crate) fn encode(bytes: &[u8], code: &mut Vec<u8>) {
    LeadingNumber::read(without_blanks(bytes)).encode(code);
}

/// `-h`.
pub(crate) fn encode_human(bytes: &[u8], code: &mut Vec<u8>) {
    let text = without_blanks(bytes);
    code.push(unit(text));
    LeadingNumber::read(text).encode(code);
}

/// The unit as a byte: 0x80 without one, above for positive numbers, below for negative ones. Zero has none.
fn unit(text: &[u8]) -> u8 {
    let negative = text.first() == Some(&b'-');
    let (whole, rest) = digits(&text[usize::from(negative)..]);
    let (fraction, rest) = match rest.first() {
        Some(b'.') => digits(&rest[1..]),
        _ => (&rest[..0], rest),
    };
    let power = match rest.first() {
        Some(b'k' | b'K') => 1,
        Some(letter) => b"MGTPEZY"
            .iter()
            .zip(2..)
            .find(|(unit, _)| *unit == letter)
            .map_or(0, |(_, power)| power),
        None => 0,
    };
    let is_zero = whole.iter().chain(fraction).all(|digit| *digit == b'0');
    match (is_zero, negative) {
        (true, _) => ZERO,
        (false, false) => ZERO + power,
        (false, true) => ZERO - power,
    }
}

/// Appends the length of something, so that longer sorts behind shorter.
pub(crate) fn encode_length(length: usize, code: &mut Vec<u8>) {
    if length < LONG {
        code.push(length as u8);
    } else {
        code.push(LONG as u8);
        code.extend_from_slice(&(length as u64).to_be_bytes());
    }
}

/// Appends digits, which compare one by one; none sort before some.
pub(crate) fn encode_digits<'a>(digits: impl Iterator<Item = &'a u8>, code: &mut Vec<u8>) {
    let mut high = None;
    for digit in digits {
        let half = digit - b'0' + 1;
        match high.take() {
            None => high = Some(half << 4),
            Some(high) => code.push(high | half),
        }
    }
    code.push(high.unwrap_or(0));
}

pub(crate) fn without_blanks(bytes: &[u8]) -> &[u8] {
    let blanks = bytes.iter().take_while(|byte| is_blank(**byte)).count();
    &bytes[blanks..]
}

/// The digits at the beginning, and what follows them.
pub(crate) fn digits(text: &[u8]) -> (&[u8], &[u8]) {
    text.split_at(text.iter().take_while(|byte| byte.is_ascii_digit()).count())
}

/// The digits before a point, without leading zeros and separators, and what follows them.
fn separated_digits(text: &[u8]) -> (Cow<'_, [u8]>, &[u8]) {
    let (whole, rest) = digits(text);
    if rest.first() != Some(&SEPARATOR) {
        return (Cow::Borrowed(without_zeros(whole)), rest);
    }
    let is_part = |byte: &&u8| byte.is_ascii_digit() || **byte == SEPARATOR;
    let (part, rest) = text.split_at(text.iter().take_while(is_part).count());
    let whole: Vec<u8> = part
        .iter()
        .copied()
        .filter(|byte| *byte != SEPARATOR)
        .collect();
    (Cow::Owned(without_zeros(&whole).to_vec()), rest)
}

/// Digits without the zeros that lead them.
pub(crate) fn without_zeros(digits: &[u8]) -> &[u8] {
    &digits[digits.iter().take_while(|digit| **digit == b'0').count()..]
}

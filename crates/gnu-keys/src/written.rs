//! A number as it is written at the beginning of a key, in the pieces that `strtold` tells apart.
//!
//! ```text
//!   " -12.50e3x"  ──▶  negative, Decimal { 12, 50, exponent 3 }
//! ```

use crate::numeric::digits;

const QUIET_NAN: u64 = 0xC000_0000_0000_0000;

/// A number with its sign.
pub(crate) struct SignedNumber<'a> {
    pub(crate) negative: bool,
    pub(crate) value: NumberValue<'a>,
}

/// What was read, without its sign.
pub(crate) enum NumberValue<'a> {
    /// With the bits of its significand.
    Nan(u64),
    Infinity,
    Decimal(NumberDigits<'a>),
    /// Behind `0x`; without digits it is the 0 of the `0x`.
    Hexadecimal(NumberDigits<'a>),
}

/// The digits of a number: `whole.fraction × 10^exponent`, or `× 2^exponent` behind `0x`.
pub(crate) struct NumberDigits<'a> {
    pub(crate) whole: &'a [u8],
    pub(crate) fraction: &'a [u8],
    pub(crate) exponent: Exponent<'a>,
}

/// An exponent; no digits where there is none.
pub(crate) struct Exponent<'a> {
    pub(crate) negative: bool,
    pub(crate) digits: &'a [u8],
}

impl<'a> SignedNumber<'a> {
    /// `None` where the key does not begin with a number.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Self> {
        let is_blank = |byte: &&u8| matches!(byte, b' ' | b'\t'..=b'\r');
        let text = &bytes[bytes.iter().take_while(is_blank).count()..];
        let signed = matches!(text.first(), Some(b'+' | b'-'));
        Some(SignedNumber {
            negative: text.first() == Some(&b'-'),
            value: NumberValue::read(&text[usize::from(signed)..])?,
        })
    }
}

impl<'a> NumberValue<'a> {
    fn read(text: &'a [u8]) -> Option<Self> {
        match text {
            [b'i' | b'I', ..] => begins_with(text, b"inf").then_some(Self::Infinity),
            [b'n' | b'N', ..] => begins_with(text, b"nan").then(|| Self::Nan(payload(&text[3..]))),
            [b'0', b'x' | b'X', behind @ ..] if !behind.is_empty() => Some(Self::Hexadecimal(
                NumberDigits::read(behind, u8::is_ascii_hexdigit, b'p'),
            )),
            _ => {
                let digits = NumberDigits::read(text, u8::is_ascii_digit, b'e');
                let any = !(digits.whole.is_empty() && digits.fraction.is_empty());
                any.then_some(Self::Decimal(digits))
            }
        }
    }
}

impl<'a> NumberDigits<'a> {
    fn read(text: &'a [u8], is_digit: impl Fn(&u8) -> bool, letter: u8) -> Self {
        let digits_of =
            |text: &'a [u8]| text.split_at(text.iter().take_while(|byte| is_digit(byte)).count());
        let (whole, rest) = digits_of(text);
        let (fraction, rest) = match rest.strip_prefix(b".") {
            Some(behind) => digits_of(behind),
            None => (&text[..0], rest),
        };
        NumberDigits {
            whole,
            fraction,
            exponent: Exponent::read(rest, letter),
        }
    }
}

impl<'a> Exponent<'a> {
    fn read(text: &'a [u8], letter: u8) -> Self {
        let behind = match text.split_first() {
            Some((first, behind)) if first.eq_ignore_ascii_case(&letter) => behind,
            _ => &[],
        };
        let signed = matches!(behind.first(), Some(b'+' | b'-'));
        Exponent {
            negative: behind.first() == Some(&b'-'),
            digits: digits(&behind[usize::from(signed)..]).0,
        }
    }

    /// It stops far beyond all that a number of 80 bits can reach, however many digits the number itself has.
    pub(crate) fn near(&self) -> i64 {
        const FAR: i64 = i64::MAX / 64;
        let value = self.digits.iter().fold(0_i64, |value, digit| {
            (value * 10 + i64::from(digit - b'0')).min(FAR)
        });
        if self.negative { -value } else { value }
    }
}

fn begins_with(text: &[u8], word: &[u8]) -> bool {
    text.get(..word.len())
        .is_some_and(|begin| begin.eq_ignore_ascii_case(word))
}

/// The significand of a NaN, with the number in `nan(…)`: decimal, octal or hexadecimal; 0 where there is none.
fn payload(text: &[u8]) -> u64 {
    let Some(inside) = text.strip_prefix(b"(") else {
        return QUIET_NAN;
    };
    let length = inside
        .iter()
        .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_')
        .count();
    if inside.get(length) != Some(&b')') {
        return QUIET_NAN;
    }
    let (digits, radix) = match &inside[..length] {
        [b'0', b'x' | b'X', digits @ ..] => (digits, 16),
        digits @ [b'0', ..] => (digits, 8),
        digits => (digits, 10),
    };
    let number = std::str::from_utf8(digits)
        .ok()
        .map_or(0, |digits| whole_number(digits, radix));
    number | QUIET_NAN
}

/// All of the text as a number; 0 where it is none, and the greatest one where it is too large.
fn whole_number(digits: &str, radix: u32) -> u64 {
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return 0;
    }
    u64::from_str_radix(digits, radix).unwrap_or(u64::MAX)
}

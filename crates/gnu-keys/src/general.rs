//! `-g`: what `strtold` reads at the beginning of a key, compared as numbers of 80 bits.
//!
//! ```text
//! 00                                   not a number
//! 01  significand (8, low byte first)  sign      NaN: GNU sort 9.1 compares their bytes in memory
//! 02  ~(exponent and sign 2, significand 8)      below zero
//! 03                                   zero, either sign
//! 04  exponent (2)  significand (8)              above zero; infinity has the exponent 7FFF
//! ```

use crate::decimal;
use crate::float::{Extended, from_bits};
use crate::numeric::digits;

const QUIET_NAN: u64 = 0xC000_0000_0000_0000;

/// What was read, without its sign.
enum Value {
    Nan(u64),
    Number(Extended),
}

pub(crate) fn encode(bytes: &[u8], code: &mut Vec<u8>) {
    let blanks = bytes
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t'..=b'\r'))
        .count();
    let text = &bytes[blanks..];
    let signed = matches!(text.first(), Some(b'+' | b'-'));
    let negative = text.first() == Some(&b'-');
    match read(&text[usize::from(signed)..]) {
        None => code.push(0),
        Some(Value::Nan(payload)) => {
            code.push(1);
            code.extend_from_slice(&(payload & !QUIET_NAN | QUIET_NAN).to_le_bytes());
            code.push(u8::from(negative));
        }
        Some(Value::Number(number)) if number.significand == 0 => code.push(3),
        Some(Value::Number(number)) => {
            code.push(if negative { 2 } else { 4 });
            let start = code.len();
            code.extend_from_slice(&number.exponent.to_be_bytes());
            code.extend_from_slice(&number.significand.to_be_bytes());
            if negative {
                crate::invert(&mut code[start..]);
            }
        }
    }
}

fn read(text: &[u8]) -> Option<Value> {
    match text.first()? {
        b'0'..=b'9' | b'.' => {}
        b'i' | b'I' => {
            return begins_with(text, b"inf").then_some(Value::Number(Extended::INFINITY));
        }
        b'n' | b'N' => return begins_with(text, b"nan").then(|| Value::Nan(payload(&text[3..]))),
        _ => return None,
    }
    if text.len() > 2 && text[0] == b'0' && text[1].eq_ignore_ascii_case(&b'x') {
        return Some(Value::Number(hexadecimal(&text[2..])));
    }
    let (whole, rest) = digits(text);
    let (fraction, rest) = behind_point(rest, u8::is_ascii_digit);
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    Some(Value::Number(decimal::round(
        whole,
        fraction,
        exponent(rest, b'e'),
    )))
}

fn begins_with(text: &[u8], word: &[u8]) -> bool {
    text.get(..word.len())
        .is_some_and(|begin| begin.eq_ignore_ascii_case(word))
}

/// The number in `nan(…)`: decimal, octal or hexadecimal; 0 where there is none.
fn payload(text: &[u8]) -> u64 {
    let Some(inside) = text.strip_prefix(b"(") else {
        return 0;
    };
    let length = inside
        .iter()
        .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_')
        .count();
    if inside.get(length) != Some(&b')') {
        return 0;
    }
    let (digits, radix) = match &inside[..length] {
        [b'0', b'x' | b'X', digits @ ..] => (digits, 16),
        digits @ [b'0', ..] => (digits, 8),
        digits => (digits, 10),
    };
    let number = std::str::from_utf8(digits)
        .ok()
        .map_or(0, |digits| whole_number(digits, radix));
    number & !QUIET_NAN
}

/// All of the text as a number; 0 where it is none, and the greatest one where it is too large.
fn whole_number(digits: &str, radix: u32) -> u64 {
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return 0;
    }
    u64::from_str_radix(digits, radix).unwrap_or(u64::MAX)
}

/// The digits behind a point, and what follows them; none where there is no point.
fn behind_point(text: &[u8], is_digit: impl Fn(&u8) -> bool) -> (&[u8], &[u8]) {
    match text.strip_prefix(b".") {
        Some(rest) => rest.split_at(rest.iter().take_while(|byte| is_digit(byte)).count()),
        None => (&text[..0], text),
    }
}

/// The exponent behind its letter; 0 where there is none. It stops far beyond all that a number can reach,
/// however many digits the number itself has.
fn exponent(text: &[u8], letter: u8) -> i64 {
    const FAR: i64 = i64::MAX / 64;
    let Some((first, rest)) = text.split_first() else {
        return 0;
    };
    if !first.eq_ignore_ascii_case(&letter) {
        return 0;
    }
    let signed = matches!(rest.first(), Some(b'+' | b'-'));
    let (number, _) = digits(&rest[usize::from(signed)..]);
    let value = number.iter().fold(0_i64, |value, digit| {
        (value * 10 + i64::from(digit - b'0')).min(FAR)
    });
    if rest.first() == Some(&b'-') {
        -value
    } else {
        value
    }
}

/// The number behind `0x`; without digits it is the 0 of the `0x`.
fn hexadecimal(text: &[u8]) -> Extended {
    let (whole, rest) = text.split_at(
        text.iter()
            .take_while(|byte| byte.is_ascii_hexdigit())
            .count(),
    );
    let (fraction, rest) = behind_point(rest, u8::is_ascii_hexdigit);
    if whole.is_empty() && fraction.is_empty() {
        return Extended::ZERO;
    }
    let (mut bits, mut shift, mut rest_is_zero) = (0_u128, 0_i64, true);
    for byte in whole.iter().chain(fraction) {
        let digit = char::from(*byte).to_digit(16).unwrap_or(0);
        if bits >> 120 == 0 {
            bits = bits << 4 | u128::from(digit);
        } else {
            shift += 4;
            rest_is_zero &= digit == 0;
        }
    }
    from_bits(
        bits,
        rest_is_zero,
        shift - 4 * fraction.len() as i64 + exponent(rest, b'p'),
    )
}

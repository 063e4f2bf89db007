//! Numbers as `-g` reads them, compared by their exact values: for the columns of a table, whose ids are longer than 64 bits.
//!
//! ```text
//! 00           not a number              04  zero, either sign
//! 01  …        NaN, as in `general.rs`   05  place  digits      above zero
//! 02           -infinity                 06  infinity
//! 03  ~(place  digits)   below zero
//!
//! 12.5 is 0.125 × 10^2:  05  82  23 60       place: 80 + 2; digits + 1, two a byte, ended by a half byte of 0
//! 1e400:                 05  E5  03 51 20    places beyond 100: how many digits they have, and those
//! ```
//!
//! Where `-g` says that one number is below another one, so does this; where `-g` takes them for equal, their values decide.
//! One exception: hexadecimal numbers that reach beyond [`FAR_BITS`] are rounded, as `-g` rounds them.

use crate::float::{Extended, LOWEST};
use crate::general::{encode_nan, hexadecimal};
use crate::natural::Natural;
use crate::numeric::{encode_digits, encode_length, without_zeros};
use crate::written::{Exponent, NumberDigits, NumberValue, SignedNumber};

/// Places up to here, in both directions, are one byte.
const NEAR: i64 = 100;
/// Exponents of so many digits are those that [`Exponent::near`] gives.
const SHORT_EXPONENT: usize = 17;
/// Hexadecimal digits and their exponent take at most so many bits to be exact: more than numbers of 80 bits can reach,
/// and few enough that their decimal digits are found in milliseconds.
const FAR_BITS: i64 = 20_000;

pub(crate) fn encode(bytes: &[u8], code: &mut Vec<u8>) {
    let Some(SignedNumber { negative, value }) = SignedNumber::read(bytes) else {
        return code.push(0);
    };
    match value {
        NumberValue::Nan(significand) => encode_nan(negative, significand, code),
        NumberValue::Infinity => encode_infinity(negative, code),
        NumberValue::Decimal(digits) => {
            encode_number(
                negative,
                digits.whole,
                digits.fraction,
                &digits.exponent,
                code,
            );
        }
        NumberValue::Hexadecimal(digits) => encode_hexadecimal(negative, &digits, code),
    }
}

fn encode_infinity(negative: bool, code: &mut Vec<u8>) {
    code.push(if negative { 2 } else { 6 });
}

/// `whole.fraction × 10^exponent`, all in decimal digits.
fn encode_number(
    negative: bool,
    whole: &[u8],
    fraction: &[u8],
    exponent: &Exponent<'_>,
    code: &mut Vec<u8>,
) {
    let all = whole.iter().chain(fraction);
    let zeros = all.clone().take_while(|digit| **digit == b'0').count();
    let total = whole.len() + fraction.len();
    if zeros == total {
        return code.push(4);
    }
    let behind = all
        .clone()
        .rev()
        .take_while(|digit| **digit == b'0')
        .count();
    code.push(if negative { 3 } else { 5 });
    let start = code.len();
    encode_place(whole.len() as i64 - zeros as i64, exponent, code);
    encode_digits(all.skip(zeros).take(total - zeros - behind), code);
    if negative {
        crate::invert(&mut code[start..]);
    }
}

/// Where the first digit stands: so many places before the point, moved by the exponent.
fn encode_place(place: i64, exponent: &Exponent<'_>, code: &mut Vec<u8>) {
    let digits = without_zeros(exponent.digits);
    if digits.len() > SHORT_EXPONENT {
        let place = if exponent.negative { -place } else { place };
        return encode_large_exponent(exponent.negative, &sum(digits, place), code);
    }
    let place = place + exponent.near();
    if place.abs() <= NEAR {
        code.push((0x80 + place) as u8);
    } else {
        encode_large_exponent(place < 0, place.unsigned_abs().to_string().as_bytes(), code);
    }
}

fn encode_large_exponent(negative: bool, digits: &[u8], code: &mut Vec<u8>) {
    code.push((0x80 + if negative { -NEAR - 1 } else { NEAR + 1 }) as u8);
    let start = code.len();
    encode_length(digits.len(), code);
    encode_digits(digits.iter(), code);
    if negative {
        crate::invert(&mut code[start..]);
    }
}

/// Decimal digits plus a number that is smaller than they are.
fn sum(digits: &[u8], summand: i64) -> Vec<u8> {
    let mut made = digits.to_vec();
    let mut carry = summand;
    for digit in made.iter_mut().rev() {
        carry += i64::from(*digit - b'0');
        *digit = b'0' + carry.rem_euclid(10) as u8;
        carry = carry.div_euclid(10);
    }
    if carry > 0 {
        made.splice(..0, carry.to_string().into_bytes());
    }
    without_zeros(&made).to_vec()
}

fn encode_hexadecimal(negative: bool, digits: &NumberDigits<'_>, code: &mut Vec<u8>) {
    let all = || digits.whole.iter().chain(digits.fraction);
    let exponent = digits.exponent.near();
    let bits = 4 * (digits.whole.len() + digits.fraction.len()) as i64;
    let (number, shift) = if bits + exponent.abs() <= FAR_BITS {
        let number = Natural::from_digits(16, all().copied());
        (number, exponent - 4 * digits.fraction.len() as i64)
    } else {
        match hexadecimal(digits) {
            Extended::INFINITY => return encode_infinity(negative, code),
            Extended {
                exponent,
                significand,
            } => {
                let number = Natural::from_digits(16, format!("{significand:x}").into_bytes());
                (number, i64::from(exponent.max(1)) - 1 + LOWEST)
            }
        }
    };
    let (digits, behind) = number.times_power_of_two(shift);
    let behind = behind.to_string();
    let exponent = Exponent {
        negative: true,
        digits: behind.as_bytes(),
    };
    encode_number(negative, &digits, b"", &exponent, code);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Vec<u8> {
        let mut code = Vec::new();
        encode(text.as_bytes(), &mut code);
        code
    }

    #[test]
    fn the_same_value_in_other_words() {
        let long = format!("1{}", "0".repeat(10_000));
        for same in [
            &[
                "16", "0x10", "+16.0", " 016", "1.6e1", "160e-1", "0x1p4", "0x100p-4", "16kg",
            ][..],
            &[
                "0",
                "-0",
                "0x",
                "0e99",
                "-0x0p9",
                ".0",
                "0.000e-999999999999999999999",
            ],
            &["-0.5", "-.5", "-0x0.8", "-0x1p-1", "-5e-1", "-0.50"],
            &[
                "18446744073709551617",
                "0x10000000000000001",
                "18446744073709551617e0",
                "1.8446744073709551617E19",
            ],
            &["1e10000", &long, "10e9999", ".1e10001"],
            &[
                "1e999999999999999999",
                "10e999999999999999998",
                "0.1e1000000000000000000",
            ],
            &[
                "1e-999999999999999999",
                "10e-1000000000000000000",
                "0.1e-0999999999999999998",
            ],
            &["inf", "+INFINITY", "0x1p999999"],
            &["x", "", "-", ".e1", "+-1"],
        ] {
            for text in same {
                assert_eq!(code(text), code(same[0]), "{text}");
            }
        }
    }

    #[test]
    fn each_is_below_the_next_one() {
        let thirds = format!("0.{}", "3".repeat(9_000));
        let more = format!("{thirds}3");
        let steps = [
            "x",
            "nan",
            "-inf",
            "-1e1000000000000000000000",
            "-1e999999999999999999999",
            "-1e101",
            "-1e100",
            "-1e99",
            "-18446744073709551617",
            "-18446744073709551616",
            "-2",
            "-1e-200",
            "-1e-5000",
            "0",
            "1e-1000000000000000000001",
            "1e-1000000000000000000000",
            "0x1p-16446",
            "1e-200",
            "1e-102",
            "1e-101",
            "1e-100",
            "0.1",
            "0.10000000000000000000000000000000000000001",
            "0x1.999999999999999ap-4",
            &thirds,
            &more,
            "1",
            "1.5",
            "9007199254740992",
            "9007199254740993",
            "18446744073709551616",
            "18446744073709551617",
            "0x10000000000000002",
            "1e99",
            "1e100",
            "1e101",
            "1e400",
            "1e4000",
            "0x1p16384",
            "1e5000",
            "1e99999999999999999",
            "1e999999999999999999999",
            "1e1000000000000000000000",
            "inf",
        ];
        for pair in steps.windows(2) {
            assert!(code(pair[0]) < code(pair[1]), "{pair:?}");
        }
    }
}

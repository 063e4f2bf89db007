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
use crate::written::{NumberDigits, NumberValue, SignedNumber};

pub(crate) fn encode(bytes: &[u8], code: &mut Vec<u8>) {
    let Some(SignedNumber { negative, value }) = SignedNumber::read(bytes) else {
        return code.push(0);
    };
    let number = match value {
        NumberValue::Nan(significand) => return encode_nan(negative, significand, code),
        NumberValue::Infinity => Extended::INFINITY,
        NumberValue::Hexadecimal(digits) => hexadecimal(&digits),
        NumberValue::Decimal(NumberDigits {
            whole,
            fraction,
            exponent,
        }) => decimal::round(whole, fraction, exponent.near()),
    };
    if number.significand == 0 {
        return code.push(3);
    }
    code.push(if negative { 2 } else { 4 });
    let start = code.len();
    code.extend_from_slice(&number.exponent.to_be_bytes());
    code.extend_from_slice(&number.significand.to_be_bytes());
    if negative {
        crate::invert(&mut code[start..]);
    }
}

pub(crate) fn encode_nan(negative: bool, significand: u64, code: &mut Vec<u8>) {
    code.push(1);
    code.extend_from_slice(&significand.to_le_bytes());
    code.push(u8::from(negative));
}

/// The nearest number of 80 bits.
pub(crate) fn hexadecimal(digits: &NumberDigits<'_>) -> Extended {
    let (mut bits, mut shift, mut rest_is_zero) = (0_u128, 0_i64, true);
    for byte in digits.whole.iter().chain(digits.fraction) {
        let digit = char::from(*byte).to_digit(16).unwrap_or(0);
        if bits >> 120 == 0 {
            bits = bits << 4 | u128::from(digit);
        } else {
            shift += 4;
            rest_is_zero &= digit == 0;
        }
    }
    let behind = 4 * digits.fraction.len() as i64;
    from_bits(bits, rest_is_zero, shift - behind + digits.exponent.near())
}

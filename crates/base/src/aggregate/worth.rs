//! How values compare where a result depends on it: numbers by what they are worth, all else by encoding.
//!
//! ```text
//!   null < bytes < text < tuples < numbers < pickled
//!   numbers: -inf .. 0.5 < 1 = 1.0 = True < 1.5 .. inf < NaN
//! ```
//!
//! An integer and a double compare exactly, however large they are. The two zeros are equal; NaNs compare by encoding.
//! What holds numbers (tuples, descending values), and decimals, compares by the bytes of `value/order.rs`.

use std::cmp::Ordering;

use super::exact::{Exact, UNIT_LIMB};
use crate::value::order::ordered;
use crate::value::{Token, ValueReader};

/// The order of two encoded values, in which `1`, `1.0` and `True` are equal.
pub(super) fn by_worth(a: &[u8], b: &[u8]) -> Ordering {
    match (class(a), class(b)) {
        (ValueClass::Number, ValueClass::Number) => numbers(a, b),
        (ValueClass::Other(TUPLE), ValueClass::Other(TUPLE)) => {
            tuples(a, b).unwrap_or_else(|| a.cmp(b))
        }
        (ValueClass::Other(DESCENDING), ValueClass::Other(DESCENDING)) => by_bytes(a, b),
        (ValueClass::Other(a_code), ValueClass::Other(b_code)) => {
            a_code.cmp(&b_code).then_with(|| a.cmp(b))
        }
        (ValueClass::Number, ValueClass::Other(code)) => NUMBERS.cmp(&code),
        (ValueClass::Other(code), ValueClass::Number) => code.cmp(&NUMBERS),
    }
}

/// The order of two encoded values that are worth the same: integers, doubles, booleans, as in encodings, where the type comes first.
pub(super) fn by_type(a: &[u8], b: &[u8]) -> Ordering {
    a.cmp(b)
}

/// Where numbers stand among the codes of types.
const NUMBERS: u8 = 0x0b;

/// The code of decimals.
const DECIMAL: u8 = 0x44;

const TUPLE: u8 = 0x05;
const DESCENDING: u8 = 0x45;

/// Element by element; nothing where the bytes are no tuples.
fn tuples(a: &[u8], b: &[u8]) -> Option<Ordering> {
    let (mut first, mut second) = (ValueReader::new(a), ValueReader::new(b));
    loop {
        let (from, also_from) = (first.position(), second.position());
        let tokens = (first.token().ok()??, second.token().ok()??);
        match tokens {
            (Token::End, Token::End) if first.depth() == 0 => return Some(Ordering::Equal),
            (Token::Begin, Token::Begin) | (Token::End, Token::End) => continue,
            (Token::End, _) => return Some(Ordering::Less),
            (_, Token::End) => return Some(Ordering::Greater),
            _ => {}
        }
        let one = a.get(from..first.position())?;
        let other = b.get(also_from..second.position())?;
        let order = by_worth(one, other);
        if order.is_ne() {
            return Some(order);
        }
    }
}

/// Values that were checked when they came have such bytes.
fn by_bytes(a: &[u8], b: &[u8]) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    let (mut first, mut second) = (Vec::new(), Vec::new());
    match (ordered(a, &mut first), ordered(b, &mut second)) {
        (Ok(()), Ok(())) => first.cmp(&second),
        _ => a.cmp(b),
    }
}

enum ValueClass {
    Number,
    Other(u8),
}

fn class(encoded: &[u8]) -> ValueClass {
    match encoded.first() {
        Some(&(0x0b..=0x1d | 0x21 | 0x26 | 0x27 | DECIMAL)) => ValueClass::Number,
        code => ValueClass::Other(code.copied().unwrap_or(0)),
    }
}

fn is_int(encoded: &[u8]) -> bool {
    matches!(encoded.first(), Some(0x0b..=0x1d))
}

fn numbers(a: &[u8], b: &[u8]) -> Ordering {
    if is_int(a) && is_int(b) {
        return a.cmp(b);
    }
    if a.first() == Some(&DECIMAL) || b.first() == Some(&DECIMAL) {
        return by_bytes(a, b);
    }
    match (number(a), number(b)) {
        (Token::Double(x), Token::Double(y)) => match x.partial_cmp(&y) {
            Some(order) => order,
            None if x.is_nan() && y.is_nan() => a.cmp(b),
            None => x.is_nan().cmp(&y.is_nan()),
        },
        (Token::Double(double), int) => int_and_double(&int, double).reverse(),
        (int, Token::Double(double)) => int_and_double(&int, double),
        (Token::Int(x), Token::Int(y)) => x.cmp(&y),
        // One is a boolean, the other an integer of more than 64 bits.
        (x, y) => sign(&x).cmp(&sign(&y)),
    }
}

/// A number's token, booleans as the integers that they count for.
fn number(encoded: &[u8]) -> Token<'_> {
    match ValueReader::new(encoded).token() {
        Ok(Some(Token::Boolean(boolean))) => Token::Int(boolean.into()),
        Ok(Some(token)) => token,
        _ => Token::Null,
    }
}

/// Below, at or above where 64 bits end.
fn sign(int: &Token<'_>) -> i8 {
    match int {
        Token::BigInt { negative: true, .. } => -1,
        Token::BigInt {
            negative: false, ..
        } => 1,
        _ => 0,
    }
}

fn int_and_double(int: &Token<'_>, double: f64) -> Ordering {
    if double.is_nan() || double == f64::INFINITY {
        return Ordering::Less;
    }
    if double == f64::NEG_INFINITY {
        return Ordering::Greater;
    }
    match int {
        Token::Int(int) if int.unsigned_abs() <= 1 << 53 => {
            (*int as f64).partial_cmp(&double).unwrap_or(Ordering::Less)
        }
        _ => exactly(int, double),
    }
}

/// By the sign of the exact difference: slow, and seldom needed.
fn exactly(int: &Token<'_>, double: f64) -> Ordering {
    let mut difference = Exact::default();
    difference.add_double(-double);
    match int {
        Token::Int(int) => difference.add_int(*int),
        Token::BigInt {
            negative,
            magnitude,
        } => {
            difference.add_magnitude(magnitude, UNIT_LIMB, *negative);
        }
        _ => {}
    }
    let digits = difference.digits();
    match (digits.limbs.is_empty(), digits.negative) {
        (true, _) => Ordering::Equal,
        (false, true) => Ordering::Less,
        (false, false) => Ordering::Greater,
    }
}

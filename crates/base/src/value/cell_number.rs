//! Numbers in the cells of a table, exactly: what digits, a point and an exponent say, with no double between.
//!
//! ```text
//!   " -12.50 "   short: -1250 * 10^-2            up to 18 digits, in one machine word
//!   "1e300"      long: digits around a point, and an exponent
//!   "inf" "nan"  as Python's float takes them
//! ```
//!
//! The rules that must hold: a number is written as Python's `int` and `float` take it, without underscores and in ASCII, blanks
//! around it not counted; one with more than 600 digits before its point or behind it is too long, zeros at either end not counted;
//! and order codes compare as numbers do by what they are worth.

use std::cmp::Ordering;

use super::decimal::{BIAS, DIGITS_MAX, Decimal, Finite, NEGATIVE, POSITIVE};
use super::{code, write};

/// So many digits fit in an `i64` whatever they are.
pub(crate) const SHORT_DIGITS: usize = 18;

/// Powers of ten that a short number may be scaled by.
pub(crate) const POWERS: [i64; SHORT_DIGITS + 1] = {
    let mut powers = [1; SHORT_DIGITS + 1];
    let mut power = 1;
    while power <= SHORT_DIGITS {
        powers[power] = powers[power - 1] * 10;
        power += 1;
    }
    powers
};

/// Doubles hold integers up to here exactly, and powers of ten up to 10^22.
const DOUBLE_INT_MAX: u64 = 1 << 53;

/// The number that a cell holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellNumber<'a> {
    /// `mantissa * 10^-scale`, of 18 digits at most, written without an exponent.
    Short {
        /// The digits, with the sign.
        mantissa: i64,
        /// How many of them are behind the point.
        scale: u8,
    },
    /// Any other number.
    Long(LongNumber<'a>),
    /// Infinity, or below zero minus infinity.
    Infinite {
        /// Whether it is below zero.
        negative: bool,
    },
    /// No number, as doubles have it.
    Nan,
}

/// Digits, of which those of `fraction` are behind the point, times `10^exponent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongNumber<'a> {
    /// The whole number, without its blanks.
    text: &'a [u8],
    pub(crate) negative: bool,
    /// ASCII digits, of which the first is not zero.
    pub(crate) whole: &'a [u8],
    /// ASCII digits, of which the last is not zero.
    pub(crate) fraction: &'a [u8],
    pub(crate) exponent: i64,
}

/// Why a cell holds no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoNumber {
    /// It is text.
    Text,
    /// It has more than 600 digits before the point or behind it.
    TooLong,
}

impl<'a> CellNumber<'a> {
    /// The number in a cell.
    ///
    /// ```
    /// use gristmill_base::value::cell_number::{CellNumber, NoNumber};
    /// assert_eq!(CellNumber::of(b" -12.50 "), Ok(CellNumber::Short { mantissa: -1250, scale: 2 }));
    /// assert!(matches!(CellNumber::of(b"1e300"), Ok(CellNumber::Long(_))));
    /// assert_eq!(CellNumber::of(b"1,5"), Err(NoNumber::Text));
    /// assert_eq!(CellNumber::of(b"1e600"), Err(NoNumber::TooLong));
    /// ```
    ///
    /// # Errors
    /// It holds none.
    #[inline]
    pub fn of(cell: &'a [u8]) -> Result<Self, NoNumber> {
        Self::within(cell, DIGITS_MAX)
    }

    /// The same with so many digits at most on either side of the point.
    #[inline]
    pub(crate) fn within(cell: &'a [u8], digits_max: usize) -> Result<Self, NoNumber> {
        let text = cell.trim_ascii();
        let (negative, digits) = match text.split_first() {
            Some((b'-', digits)) => (true, digits),
            Some((b'+', digits)) => (false, digits),
            _ => (false, text),
        };
        if let Some((mantissa, scale)) = short(digits) {
            let mantissa = if negative { -mantissa } else { mantissa };
            return Ok(CellNumber::Short { mantissa, scale });
        }
        long(text, negative, digits, digits_max)
    }

    /// Appends it as a value: a short integer as such, any other as a decimal as it is written.
    #[inline]
    pub fn write(&self, cell: &[u8], out: &mut Vec<u8>) {
        match self {
            CellNumber::Short { mantissa, scale: 0 } => write::int(out, *mantissa),
            _ => write::plain(out, code::WRITTEN, cell.trim_ascii()),
        }
    }

    /// The double nearest to it: a greater one's is never below.
    pub(crate) fn nearest(&self) -> f64 {
        match self {
            CellNumber::Short { mantissa, scale } if mantissa.unsigned_abs() <= DOUBLE_INT_MAX => {
                // Both are exact, so that their quotient is rounded once.
                *mantissa as f64 / POWERS[usize::from(*scale)] as f64
            }
            CellNumber::Short { mantissa, scale } => parsed(&format!("{mantissa}e-{scale}")),
            CellNumber::Long(long) => std::str::from_utf8(long.text).map_or(f64::NAN, parsed),
            CellNumber::Infinite { negative: true } => f64::NEG_INFINITY,
            CellNumber::Infinite { negative: false } => f64::INFINITY,
            CellNumber::Nan => f64::NAN,
        }
    }

    /// How it compares to another, by what they are worth: NaN is above all numbers.
    pub(crate) fn compare(&self, other: &CellNumber<'_>) -> Ordering {
        if let (
            CellNumber::Short { mantissa, scale },
            CellNumber::Short {
                mantissa: other,
                scale: other_scale,
            },
        ) = (self, other)
        {
            let wide = |mantissa: &i64, by: &u8| {
                i128::from(*mantissa) * i128::from(POWERS[usize::from(*by)])
            };
            return wide(mantissa, other_scale).cmp(&wide(other, scale));
        }
        let (mut code, mut other_code) = (Vec::new(), Vec::new());
        self.write_order(&mut code);
        other.write_order(&mut other_code);
        code.cmp(&other_code)
    }

    /// Appends bytes that compare as numbers do, and of which none begin with others: the encoding of the decimal that it is.
    ///
    /// ```
    /// use gristmill_base::value::cell_number::CellNumber;
    /// let code = |cell: &'static [u8]| {
    ///     let mut out = Vec::new();
    ///     CellNumber::of(cell).ok().map(|number| number.write_order(&mut out)).map(|()| out)
    /// };
    /// assert_eq!(code(b"1.50"), code(b"15e-1"));
    /// assert!(code(b"-inf") < code(b"-2") && code(b"-2") < code(b"0.1") && code(b"0.1") < code(b"0.11"));
    /// ```
    #[inline]
    pub fn write_order(&self, out: &mut Vec<u8>) {
        match self {
            CellNumber::Short { mantissa: 0, .. } => Self::zero().write(out),
            CellNumber::Short { mantissa, scale } => {
                short_order(*mantissa < 0, mantissa.unsigned_abs(), *scale, out);
            }
            CellNumber::Long(long) => long.decimal().write(out),
            CellNumber::Infinite { negative } => Decimal::Infinite {
                negative: *negative,
            }
            .write(out),
            CellNumber::Nan => Decimal::Nan.write(out),
        }
    }

    fn zero() -> Decimal {
        Decimal::Finite(Finite {
            negative: false,
            exponent: 0,
            pairs: Vec::new(),
        })
    }
}

impl LongNumber<'_> {
    /// Its digits, each 0 to 9, and the power of ten of the last of them.
    fn decimal(&self) -> Decimal {
        let digits = self.whole.iter().chain(self.fraction);
        let digits: Vec<u8> = digits.map(|digit| digit - b'0').collect();
        let exponent = self.exponent - self.fraction.len() as i64;
        // It was measured when it was read; of sums that are longer there are no codes.
        Finite::new(self.negative, &digits, exponent).map_or(Decimal::Nan, Decimal::Finite)
    }
}

/// The digits of a short number without a sign, and how many are behind the point.
#[inline]
fn short(digits: &[u8]) -> Option<(i64, u8)> {
    if digits.len() > SHORT_DIGITS + 1 {
        return None;
    }
    let (mut mantissa, mut point) = (0, None);
    for (at, byte) in digits.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            mantissa = 10 * mantissa + u64::from(digit);
        } else if *byte == b'.' && point.is_none() {
            point = Some(at);
        } else {
            return None;
        }
    }
    let scale = point.map_or(0, |point| digits.len() - 1 - point);
    let count = digits.len() - usize::from(point.is_some());
    (1..=SHORT_DIGITS)
        .contains(&count)
        .then_some((mantissa as i64, scale as u8))
}

/// Any other number. `digits` is what follows the sign in `text`.
fn long<'a>(
    text: &'a [u8],
    negative: bool,
    digits: &'a [u8],
    digits_max: usize,
) -> Result<CellNumber<'a>, NoNumber> {
    let (whole, rest) = digits_of(digits);
    let (fraction, rest) = match rest.split_first() {
        Some((b'.', rest)) => digits_of(rest),
        _ => (&[][..], rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return special(negative, digits);
    }
    let exponent = match rest.split_first() {
        None => 0,
        Some((b'e' | b'E', rest)) => exponent(rest).ok_or(NoNumber::Text)?,
        Some(_) => return Err(NoNumber::Text),
    };
    let zeros = whole.iter().take_while(|digit| **digit == b'0').count();
    let end = fraction.iter().rposition(|digit| *digit != b'0');
    let number = LongNumber {
        text,
        negative,
        whole: whole.get(zeros..).unwrap_or_default(),
        fraction: fraction
            .get(..end.map_or(0, |end| end + 1))
            .unwrap_or_default(),
        exponent,
    };
    match number.reach() {
        None => Ok(CellNumber::Short {
            mantissa: 0,
            scale: 0,
        }),
        Some((top, last)) if top <= digits_max as i64 && last >= -(digits_max as i64) => {
            Ok(CellNumber::Long(number))
        }
        Some(_) => Err(NoNumber::TooLong),
    }
}

impl LongNumber<'_> {
    /// The powers of ten that its digits begin below and end with; `None` of zero.
    fn reach(&self) -> Option<(i64, i64)> {
        let not_zero = |digit: &u8| *digit != b'0';
        let first = match self.whole.len() {
            0 => -(self.fraction.iter().position(not_zero)? as i64),
            digits => digits as i64,
        };
        let last = match self.fraction.len() {
            0 => (self.whole.len() - 1 - self.whole.iter().rposition(not_zero)?) as i64,
            digits => -(digits as i64),
        };
        Some((
            self.exponent.saturating_add(first),
            self.exponent.saturating_add(last),
        ))
    }
}

/// The ASCII digits that `bytes` begin with, and what follows.
fn digits_of(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|byte| !byte.is_ascii_digit());
    bytes.split_at(end.unwrap_or(bytes.len()))
}

/// An exponent, which stops where it is beyond all numbers; `None` where it is none.
fn exponent(bytes: &[u8]) -> Option<i64> {
    let (negative, digits) = match bytes.split_first()? {
        (b'-', digits) => (true, digits),
        (b'+', digits) => (false, digits),
        _ => (false, bytes),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let size = digits.iter().fold(0_i64, |size, digit| {
        (size * 10 + i64::from(digit - b'0')).min(i64::MAX / 100)
    });
    Some(if negative { -size } else { size })
}

/// Infinity or NaN, in capitals or not.
fn special<'a>(negative: bool, word: &[u8]) -> Result<CellNumber<'a>, NoNumber> {
    let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
    if is(b"inf") || is(b"infinity") {
        Ok(CellNumber::Infinite { negative })
    } else if is(b"nan") {
        Ok(CellNumber::Nan)
    } else {
        Err(NoNumber::Text)
    }
}

fn parsed(text: &str) -> f64 {
    text.parse().unwrap_or(f64::NAN)
}

/// The order code of a number that is not zero, without a step through [`Finite`]: `decimal.rs` has its form.
#[inline]
fn short_order(negative: bool, size: u64, scale: u8, out: &mut Vec<u8>) {
    // Pairs of digits begin at the point.
    let odd = scale % 2;
    let mut rest = size * [1, 10][usize::from(odd)];
    let mut behind = i64::from(scale + odd) / 2;
    while rest.is_multiple_of(100) {
        rest /= 100;
        behind -= 1;
    }
    let mut pairs = [0; SHORT_DIGITS / 2 + 2];
    let mut first = pairs.len();
    while rest > 0 {
        first -= 1;
        pairs[first] = (rest % 100) as u8 + 1;
        rest /= 100;
    }
    let pairs = &pairs[first..];
    let exponent = (pairs.len() as i64 - behind + BIAS) as u16;
    out.extend_from_slice(&[code::DECIMAL, if negative { NEGATIVE } else { POSITIVE }]);
    let start = out.len();
    out.extend_from_slice(&exponent.to_be_bytes());
    out.extend_from_slice(pairs);
    out.push(code::END);
    if negative {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

#[cfg(test)]
mod tests;

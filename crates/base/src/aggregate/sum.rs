//! Sums, of which means are made.
//!
//! ```text
//!   sum    an integer's encoding | a double's | 30, flags, lowest limb, magnitude     the first that can say it exactly
//!   mean   the count's encoding, the sum's state
//! ```
//!
//! Flags: 1 a double was among the values, 2 the sum is negative. Once there was an infinity or a NaN nothing else counts, and the
//! state is the double that the sum is; there is one NaN.

use super::exact::{Exact, ExactDigits, LIMBS_MAX, UNIT_LIMB};
use super::mean::MeanSum;
use super::{bad_state, check_whole, no_number};
use crate::value::{Token, ValueReader, one_nan, write};
use crate::{Error, Kind, Result};

/// The first byte of a sum that is no value: no type's code.
const EXACT: u8 = 0x30;
const FLOAT: u8 = 1;
const NEGATIVE: u8 = 2;
/// Integers up to here are doubles.
const DOUBLE_INT_MAX: u64 = 1 << 53;

/// An exact sum, in as little memory as it needs.
#[derive(Debug, Clone)]
pub(super) enum Sum {
    /// Of integers, so far.
    Int(i64),
    /// Of doubles, that is a double.
    Float(f64),
    Big(Box<Big>),
}

#[derive(Debug, Clone, Default)]
pub(super) struct Big {
    exact: Exact,
    /// The sum of infinities and NaNs, else zero.
    special: f64,
    float: bool,
}

impl Default for Sum {
    fn default() -> Self {
        Sum::Int(0)
    }
}

impl Sum {
    /// Adds a number, or says that it is none that a sum or its state can hold.
    fn add_token(&mut self, token: &Token<'_>) -> bool {
        match token {
            Token::Int(int) => self.add_int(*int),
            Token::BigInt {
                negative,
                magnitude,
            } => {
                self.big()
                    .exact
                    .add_magnitude(magnitude, UNIT_LIMB, *negative);
            }
            Token::Double(double) => self.add_double(*double),
            _ => return false,
        }
        true
    }

    #[inline]
    pub(super) fn add_int(&mut self, value: i64) {
        if let Sum::Int(sum) = self
            && let Some(more) = sum.checked_add(value)
        {
            *sum = more;
        } else {
            self.big().exact.add_int(value);
        }
    }

    fn add_double(&mut self, value: f64) {
        let small = match self {
            // Zero is nothing, and loses its sign.
            Sum::Int(0) => Some(value + 0.0),
            Sum::Float(sum) => exact_sum(*sum, value),
            _ => None,
        };
        match small {
            Some(sum) => *self = Sum::Float(sum),
            None => self.big().add_double(value),
        }
    }

    /// The sum as one that can hold any.
    fn big(&mut self) -> &mut Big {
        if !matches!(self, Sum::Big(_)) {
            let mut big = Box::<Big>::default();
            match self {
                Sum::Int(int) => big.exact.add_int(*int),
                Sum::Float(double) => big.add_double(*double),
                Sum::Big(_) => {}
            }
            *self = Sum::Big(big);
        }
        match self {
            Sum::Big(big) => big,
            _ => unreachable!("it has just become big"),
        }
    }

    pub(super) fn finish(&self, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Sum::Big(big) if big.special == 0.0 => {
                let digits = big.exact.digits();
                if big.float {
                    write::double(out, digits.double().0);
                    return Ok(());
                }
                write::big_int(out, digits.negative, &digits.integer()).map_err(|_too_long| {
                    let message = "the sum of these integers is longer than 255 bytes, the most a value can hold";
                    Error::new(Kind::BadInput, "finish a sum", message)
                        .advise("sum smaller integers, or doubles")
                })
            }
            _ => {
                self.write(out);
                Ok(())
            }
        }
    }

    /// The double nearest to the sum divided by `count`.
    fn mean(&self, count: u64) -> f64 {
        match self {
            Sum::Int(int) if int.unsigned_abs() <= DOUBLE_INT_MAX && count <= DOUBLE_INT_MAX => {
                *int as f64 / count as f64
            }
            Sum::Float(double) if !double.is_finite() => one_nan(*double),
            Sum::Float(double) if count <= DOUBLE_INT_MAX => double / count as f64,
            Sum::Big(big) if big.special != 0.0 => one_nan(big.special),
            _ => self.clone().big().exact.digits().double_of_quotient(count),
        }
    }
}

impl MeanSum for Sum {
    fn heap_bytes(&self) -> usize {
        match self {
            Sum::Int(_) | Sum::Float(_) => 0,
            Sum::Big(big) => size_of::<Big>() + big.exact.heap_bytes(),
        }
    }

    #[inline]
    fn add(&mut self, value: &[u8], aggregate: &str) -> Result<()> {
        if let Some(int) = small_int(value) {
            self.add_int(int);
            return Ok(());
        }
        let mut reader = ValueReader::new(value);
        let token = reader.token()?;
        if reader.position() != value.len() {
            check_whole(value)?;
        }
        match token {
            Some(Token::Int(int)) => self.add_int(int),
            Some(Token::Boolean(boolean)) => self.add_int(boolean.into()),
            Some(token) if self.add_token(&token) => {}
            _ => return Err(no_number(aggregate, value)),
        }
        Ok(())
    }

    #[inline]
    fn merge(&mut self, other: &[u8]) -> Result<()> {
        if let Some(int) = small_int(other) {
            self.add_int(int);
            return Ok(());
        }
        if let [EXACT, flags, low, magnitude @ ..] = other {
            let low = usize::from(*low);
            if *flags > (FLOAT | NEGATIVE) || low + magnitude.len().div_ceil(4) > LIMBS_MAX {
                return Err(bad_state("a sum has unknown flags or too many digits"));
            }
            let big = self.big();
            big.float |= flags & FLOAT != 0;
            if !big.float && low < UNIT_LIMB {
                return Err(bad_state("a sum of integers has digits after the point"));
            }
            big.exact
                .add_magnitude(magnitude, low, flags & NEGATIVE != 0);
            return Ok(());
        }
        let mut reader = ValueReader::new(other);
        match reader.token()? {
            Some(token) if reader.position() == other.len() && self.add_token(&token) => Ok(()),
            _ => Err(bad_state("a sum is not a number")),
        }
    }

    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Sum::Int(int) => write::int(out, *int),
            Sum::Float(double) => write::double(out, one_nan(*double)),
            Sum::Big(big) => big.write(out),
        }
    }

    fn finish_mean(&self, count: u64, out: &mut Vec<u8>) {
        write::double(out, self.mean(count));
    }
}

impl Big {
    fn add_double(&mut self, value: f64) {
        self.float = true;
        if value.is_finite() {
            self.exact.add_double(value);
        } else {
            self.special += value;
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        if self.special != 0.0 {
            return write::double(out, one_nan(self.special));
        }
        let digits = self.exact.digits();
        if self.float {
            match digits.double() {
                (double, true) => write::double(out, double),
                _ => write_exact(out, &digits, FLOAT),
            }
        } else if write::big_int(out, digits.negative, &digits.integer()).is_err() {
            write_exact(out, &digits, 0);
        }
    }
}

fn write_exact(out: &mut Vec<u8>, digits: &ExactDigits, float: u8) {
    let flags = float | if digits.negative { NEGATIVE } else { 0 };
    out.extend_from_slice(&[EXACT, flags, digits.low as u8]);
    out.extend(digits.magnitude());
}

/// What most values and sums are, without a reader: an integer from 0 on, of up to seven bytes, and nothing else.
#[inline]
pub(super) fn small_int(value: &[u8]) -> Option<i64> {
    let (code @ 0x14..=0x1b, digits) = value.split_first()? else {
        return None;
    };
    if digits.len() != usize::from(code - 0x14) || digits.first() == Some(&0) {
        return None;
    }
    let digit = |int, byte: &u8| int << 8 | i64::from(*byte);
    Some(digits.iter().fold(0, digit))
}

/// The sum of two doubles if it is one (Knuth's TwoSum: the error is a double, and here it is zero).
#[inline]
fn exact_sum(a: f64, b: f64) -> Option<f64> {
    let sum = a + b;
    let part = sum - a;
    let error = (a - (sum - part)) + (b - part);
    (sum.is_finite() && error == 0.0).then_some(sum)
}

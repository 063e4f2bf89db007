//! Decimals: encoded so that their encodings compare as they do.
//!
//! ```text
//!  44 00                       -Infinity
//!  44 01 !(exponent, pairs 00) negative: as the positive one, complemented
//!  44 02                       zero
//!  44 03 exponent pairs 00     positive: 0.p1p2... * 100^exponent; exponent of 2 bytes, above 8000; a pair of digits is a byte,
//!                              1 to 100; neither the first nor the last is of two zeros
//!  44 04                       Infinity
//!  44 05                       NaN
//! ```
//!
//! What a decimal is worth is all that is kept: `1.50` is `1.5`, and `-0` is `0`.

use super::code;
use crate::{Error, Kind, Result};

/// Digits before the point, and behind it, at most: an integer of so many has an encoding.
pub const DIGITS_MAX: usize = 600;

const PAIRS_MAX: i64 = DIGITS_MAX as i64 / 2;
const NEGATIVE_INFINITY: u8 = 0;
pub(super) const NEGATIVE: u8 = 1;
const ZERO: u8 = 2;
pub(super) const POSITIVE: u8 = 3;
const INFINITY: u8 = 4;
const NAN: u8 = 5;
/// Added to exponents, so that they compare as they are without a sign.
pub(super) const BIAS: i64 = 0x8000;

/// A decimal number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decimal {
    /// No number.
    Nan,
    /// Infinity, or below zero minus infinity.
    Infinite {
        /// Whether it is below zero.
        negative: bool,
    },
    /// A number.
    Finite(Finite),
}

/// A finite decimal: `0.p1p2... * 100^exponent`; zero has no pairs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finite {
    pub(super) negative: bool,
    pub(super) exponent: i64,
    /// Of two digits each, 0 to 99; neither the first nor the last is zero.
    pub(super) pairs: Vec<u8>,
}

impl Finite {
    /// `digits * 10^exponent`. An error (`bad_input`) where it has more than 600 digits before the point, or behind it.
    ///
    /// ```
    /// use gristmill_base::value::decimal::Finite;
    /// let price = Finite::new(false, &[1, 9, 5, 0], -2)?;
    /// assert_eq!(price.plain(), (false, vec![1, 9, 5], -1));
    /// assert!(Finite::new(false, &[1], 600).is_err());
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    pub fn new(negative: bool, digits: &[u8], exponent: i64) -> Result<Self> {
        let zeros = digits.iter().take_while(|digit| **digit == 0).count();
        let digits = digits.get(zeros..).unwrap_or_default();
        let end = digits.iter().rposition(|digit| *digit != 0);
        let Some(end) = end else {
            return Ok(Finite {
                negative: false,
                exponent: 0,
                pairs: Vec::new(),
            });
        };
        let before = exponent.saturating_add(digits.len() as i64);
        let behind = (end as i64 + 1).saturating_sub(before);
        if before > 2 * PAIRS_MAX || behind > 2 * PAIRS_MAX {
            let message =
                format!("a decimal has more than {DIGITS_MAX} digits before or after the point");
            return Err(Error::new(Kind::BadInput, "encode a value", message)
                .advise("round it, or turn it into text"));
        }
        let odd = (before & 1 != 0).then_some(0);
        let digits: Vec<u8> = odd.into_iter().chain(digits.iter().copied()).collect();
        let pair = |pair: &[u8]| pair.first().unwrap_or(&0) * 10 + pair.get(1).unwrap_or(&0);
        let mut pairs: Vec<u8> = digits.chunks(2).map(pair).collect();
        while pairs.last() == Some(&0) {
            pairs.pop();
        }
        Ok(Finite {
            negative,
            exponent: (before + 1).div_euclid(2),
            pairs,
        })
    }

    /// Whether it is below zero, its digits, and the exponent of ten that they are multiplied with.
    pub fn plain(&self) -> (bool, Vec<u8>, i64) {
        let mut digits: Vec<u8> = self
            .pairs
            .iter()
            .flat_map(|pair| [pair / 10, pair % 10])
            .collect();
        let mut exponent = 2 * (self.exponent - self.pairs.len() as i64);
        if digits.last() == Some(&0) {
            digits.pop();
            exponent += 1;
        }
        if digits.first() == Some(&0) {
            digits.remove(0);
        }
        (self.negative, digits, exponent)
    }

    /// The pairs before the point, and those behind it.
    pub(super) fn halves(&self) -> (Vec<u8>, Vec<u8>) {
        let whole = usize::try_from(self.exponent).unwrap_or(0);
        let mut before: Vec<u8> = self.pairs.iter().take(whole).copied().collect();
        before.resize(whole, 0);
        let zeros = usize::try_from(-self.exponent).unwrap_or(0);
        let mut behind = vec![0; zeros];
        behind.extend(self.pairs.iter().skip(whole));
        (before, behind)
    }
}

impl Decimal {
    /// Appends the encoding.
    ///
    /// ```
    /// use gristmill_base::value::{Decimal, decimal::Finite};
    /// let mut out = Vec::new();
    /// Decimal::Finite(Finite::new(false, &[1, 9, 5], -1)?).write(&mut out);
    /// assert_eq!(out, [0x44, 3, 0x80, 1, 20, 51, 0]);
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(code::DECIMAL);
        let finite = match self {
            Decimal::Nan => return out.push(NAN),
            Decimal::Infinite { negative: true } => return out.push(NEGATIVE_INFINITY),
            Decimal::Infinite { negative: false } => return out.push(INFINITY),
            Decimal::Finite(finite) if finite.pairs.is_empty() => return out.push(ZERO),
            Decimal::Finite(finite) => finite,
        };
        out.push(if finite.negative { NEGATIVE } else { POSITIVE });
        let start = out.len();
        out.extend_from_slice(&((finite.exponent + BIAS) as u16).to_be_bytes());
        out.extend(finite.pairs.iter().map(|pair| pair + 1));
        out.push(code::END);
        if finite.negative {
            out.iter_mut().skip(start).for_each(|byte| *byte = !*byte);
        }
    }
}

/// How many bytes the decimal has whose encoding `rest` begins with; nothing where it does not end.
pub(super) fn length(rest: &[u8]) -> Option<usize> {
    let end = match *rest.get(1)? {
        POSITIVE => code::END,
        NEGATIVE => !code::END,
        _ => return Some(2),
    };
    Some(4 + memchr::memchr(end, rest.get(4..)?)? + 1)
}

/// The decimal whose encoding this is; nothing where it is none.
pub(super) fn read(encoding: &[u8]) -> Option<Decimal> {
    let sign = *encoding.get(1)?;
    let (negative, flip) = match sign {
        NAN => return Some(Decimal::Nan),
        NEGATIVE_INFINITY => return Some(Decimal::Infinite { negative: true }),
        INFINITY => return Some(Decimal::Infinite { negative: false }),
        ZERO => return Finite::new(false, &[], 0).ok().map(Decimal::Finite),
        NEGATIVE => (true, 0xff),
        POSITIVE => (false, 0),
        _ => return None,
    };
    let [high, low] = *encoding.get(2..)?.first_chunk()?;
    let exponent = i64::from(u16::from_be_bytes([high ^ flip, low ^ flip])) - BIAS;
    let pairs: Vec<u8> = encoding
        .get(4..encoding.len().checked_sub(1)?)?
        .iter()
        .map(|byte| (byte ^ flip).wrapping_sub(1))
        .collect();
    let canonical = *pairs.first()? != 0 && *pairs.last()? != 0;
    let digits = pairs.iter().all(|pair| *pair < 100);
    let behind = pairs.len() as i64 - exponent;
    if !(canonical && digits && exponent <= PAIRS_MAX && behind <= PAIRS_MAX) {
        return None;
    }
    Some(Decimal::Finite(Finite {
        negative,
        exponent,
        pairs,
    }))
}

//! Bytes that compare as values do by what they are worth: `1 = 1.0 = True < 1.5 < 2`.
//!
//! ```text
//!   encoding ──ordered──▶ the same, but for numbers:
//!
//!   0a                           -inf
//!   integer                      a whole number, of whatever type: the encoding of the integer
//!   integer fe f8 [fe digits 00] any other: the integer below it, the first 64 bits of the rest, and what they leave of it
//!                                in digits of base 100, each 1 to 100
//!   1e                           inf
//!   1f                           NaN
//! ```
//!
//! So text, bytes, integers and tuples of them are as encoded, and numbers stand where integers do. All finite numbers have
//! a finite expansion to the base of 100, doubles too. Numbers that are worth the same have the same bytes, -0.0 and 0.0
//! among them; so have all NaNs, which come behind all numbers. No byte that may follow a value is as great as `fe`, so that a whole
//! number comes before those between it and the next.
//!
//! A *ranked key* orders keys by what they are worth, and yet tells `1` from `1.0`:
//!
//! ```text
//!   ordered bytes | 00                  where these are the key's encoding
//!   ordered bytes | 01 | encoding       where they are not
//! ```

use super::decimal::{Decimal, Finite};
use super::skip::{skip, skip_ordered};
use super::{Token, ValueReader, code, descending, malformed, write};
use crate::Result;

/// Behind ordered bytes: they are the key's encoding.
const AS_ENCODED: u8 = 0;
/// Behind ordered bytes: the key's encoding follows.
const ENCODED: u8 = 1;

/// Appends bytes that compare as the value, of which `encoded` is the encoding, does by what it is worth.
///
/// ```
/// use gristmill_base::value::{order::ordered, write};
/// let bytes = |write: &dyn Fn(&mut Vec<u8>)| {
///     let (mut encoded, mut out) = (Vec::new(), Vec::new());
///     write(&mut encoded);
///     ordered(&encoded, &mut out).map(|()| out)
/// };
/// let one = bytes(&|out| write::int(out, 1))?;
/// assert_eq!(one, bytes(&|out| write::double(out, 1.0))?);
/// assert!(one < bytes(&|out| write::double(out, 1.5))?);
/// assert!(bytes(&|out| write::double(out, 1.5))? < bytes(&|out| write::int(out, 2))?);
/// # Ok::<(), gristmill_base::Error>(())
/// ```
#[inline]
pub fn ordered(encoded: &[u8], out: &mut Vec<u8>) -> Result<()> {
    match encoded.first() {
        Some(&(code::TUPLE | code::DOUBLE..=code::TRUE | code::DECIMAL | code::DESCENDING)) => {
            ordered_tokens(encoded, out)
        }
        _ => {
            out.extend_from_slice(encoded);
            Ok(())
        }
    }
}

fn ordered_tokens(encoded: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let mut reader = ValueReader::new(encoded);
    let mut start = 0;
    while let Some(token) = reader.token()? {
        let end = reader.position();
        match token {
            Token::Double(value) => double(out, value),
            Token::Boolean(value) => write::int(out, value.into()),
            Token::Decimal(value) => decimal(out, &value)?,
            Token::Descending(inner) => {
                let mut content = Vec::with_capacity(inner.len());
                ordered(&inner, &mut content)?;
                descending::write(out, &content);
            }
            _ => out.extend_from_slice(encoded.get(start..end).unwrap_or_default()),
        }
        start = end;
    }
    Ok(())
}

/// Makes a ranked key of the encoding that `key` holds.
///
/// ```
/// use gristmill_base::value::{order, write};
/// let mut key = Vec::new();
/// write::double(&mut key, 2.0);
/// order::rank(&mut key, 0)?;
/// assert_eq!(order::key_of(&key)?, (3..12, 12)); // 15 02 | 01 | 21 ...
/// assert_eq!(key[..3], [0x15, 2, 1]);
/// # Ok::<(), gristmill_base::Error>(())
/// ```
#[inline]
pub fn rank(key: &mut Vec<u8>, start: usize) -> Result<()> {
    match key.get(start) {
        Some(&(code::TUPLE | code::DOUBLE..=code::TRUE | code::DECIMAL | code::DESCENDING)) => {
            let encoded = key.split_off(start);
            ordered(&encoded, key)?;
            if key.get(start..) == Some(&*encoded) {
                key.push(AS_ENCODED);
            } else {
                key.push(ENCODED);
                key.extend_from_slice(&encoded);
            }
        }
        _ => key.push(AS_ENCODED),
    }
    Ok(())
}

/// Where, in bytes that begin with a ranked key, its encoding is, and where the ranked key ends.
pub fn key_of(ranked: &[u8]) -> Result<(std::ops::Range<usize>, usize)> {
    let end = match ranked.first() {
        Some(&(code::BYTES | code::TEXT)) => skip(ranked)?,
        _ => skip_ordered(ranked)?,
    };
    match ranked.get(end) {
        Some(&AS_ENCODED) => Ok((0..end, end + 1)),
        Some(&ENCODED) => {
            let start = end + 1;
            let length = skip(ranked.get(start..).unwrap_or_default())?;
            Ok((start..start + length, start + length))
        }
        other => Err(malformed(end, other.copied(), "a key after its rank")),
    }
}

/// Appends a double.
fn double(out: &mut Vec<u8>, value: f64) {
    if value.is_nan() {
        return out.push(code::NAN);
    }
    if value.is_infinite() {
        return out.push(if value < 0.0 {
            code::BELOW
        } else {
            code::ABOVE
        });
    }
    let floor = value.floor();
    if floor.abs() < 9e18 {
        write::int(out, floor as i64);
    } else {
        whole_double(out, floor);
    }
    if floor < value {
        fraction_of_double(out, value);
    }
}

/// Appends a whole number of 63 bits or more.
#[cold]
fn whole_double(out: &mut Vec<u8>, value: f64) {
    let (mantissa, exponent) = parts(value.abs());
    let shift = exponent.unsigned_abs() as usize;
    let mut bytes = (u128::from(mantissa) << (shift % 8)).to_be_bytes().to_vec();
    bytes.resize(bytes.len() + shift / 8, 0);
    // A double has 128 bytes at most, and an integer's encoding may have 255.
    _ = write::big_int(out, value < 0.0, &bytes);
}

/// A positive double as `mantissa * 2^exponent`.
fn parts(value: f64) -> (u64, i32) {
    let bits = value.to_bits();
    let (exponent, fraction) = ((bits >> 52) as i32, bits & ((1 << 52) - 1));
    match exponent {
        0 => (fraction, -1074),
        _ => (fraction | 1 << 52, exponent - 1075),
    }
}

/// Appends what a double that is not whole is above the integer below it.
fn fraction_of_double(out: &mut Vec<u8>, value: f64) {
    let (mantissa, exponent) = parts(value.abs());
    let width = exponent.unsigned_abs();
    if width <= 64 {
        // The bits of the integer are shifted out.
        let bits = mantissa.checked_shl(64 - width).unwrap_or(0);
        let bits = if value < 0.0 {
            bits.wrapping_neg()
        } else {
            bits
        };
        out.push(code::FRACTION);
        out.extend_from_slice(&bits.to_be_bytes());
        return;
    }
    // Limbs of 32 bits behind the point, the highest first. The mantissa has 53 bits, and so touches three of them.
    let count = width.div_ceil(32) as usize;
    let mut limbs = vec![0_u32; count];
    let mut rest = u128::from(mantissa) << (count as u32 * 32 - width);
    for limb in limbs.iter_mut().rev().take(3) {
        *limb = rest as u32;
        rest >>= 32;
    }
    if value < 0.0 {
        let mut borrowed = false;
        for limb in limbs.iter_mut().rev() {
            *limb = if borrowed {
                !*limb
            } else {
                limb.wrapping_neg()
            };
            borrowed |= *limb != 0;
        }
    }
    out.push(code::FRACTION);
    let (first, rest) = limbs.split_at_mut(2.min(count));
    first
        .iter()
        .for_each(|limb| out.extend_from_slice(&limb.to_be_bytes()));
    remainder(out, &pairs_of(rest));
}

/// Digits of base 100 of a number below one, given by its limbs of 32 bits.
fn pairs_of(limbs: &mut [u32]) -> Vec<u8> {
    let mut pairs = Vec::new();
    while limbs.iter().any(|limb| *limb != 0) {
        let mut carry = 0;
        for limb in limbs.iter_mut().rev() {
            let product = u64::from(*limb) * 100 + carry;
            (*limb, carry) = (product as u32, product >> 32);
        }
        pairs.push(carry as u8);
    }
    pairs
}

/// Appends what the first 64 bits leave, if anything.
fn remainder(out: &mut Vec<u8>, pairs: &[u8]) {
    let Some(last) = pairs.iter().rposition(|pair| *pair != 0) else {
        return;
    };
    out.push(code::FRACTION);
    out.extend(pairs.iter().take(last + 1).map(|pair| pair + 1));
    out.push(code::END);
}

/// Appends a decimal.
fn decimal(out: &mut Vec<u8>, value: &Decimal) -> Result<()> {
    match value {
        Decimal::Nan => out.push(code::NAN),
        Decimal::Infinite { negative } => {
            out.push(if *negative { code::BELOW } else { code::ABOVE });
        }
        Decimal::Finite(finite) => finite_decimal(out, finite)?,
    }
    Ok(())
}

fn finite_decimal(out: &mut Vec<u8>, value: &Finite) -> Result<()> {
    let (before, mut behind) = value.halves();
    let mut magnitude = bytes_of(&before);
    if value.negative && !behind.is_empty() {
        // The integer below it is one further from zero; behind it is what is missing to one.
        magnitude = one_more(magnitude);
        let last = behind.len() - 1; // which is not zero
        for (at, pair) in behind.iter_mut().enumerate() {
            *pair = if at == last { 100 } else { 99 } - *pair;
        }
    }
    write::big_int(out, value.negative, &magnitude)?;
    if !behind.is_empty() {
        out.push(code::FRACTION);
        for _ in 0..2 {
            let mut carry = 0;
            for pair in behind.iter_mut().rev() {
                let product = (u64::from(*pair) << 32) + carry;
                (*pair, carry) = ((product % 100) as u8, product / 100);
            }
            out.extend_from_slice(&(carry as u32).to_be_bytes());
        }
        remainder(out, &behind);
    }
    Ok(())
}

/// The magnitude of a whole number, the most significant byte first, of its digits of base 100.
fn bytes_of(pairs: &[u8]) -> Vec<u8> {
    let mut bytes: Vec<u8> = Vec::new();
    for pair in pairs {
        let mut carry = u32::from(*pair);
        for byte in &mut bytes {
            carry += u32::from(*byte) * 100;
            (*byte, carry) = (carry as u8, carry >> 8);
        }
        if carry > 0 {
            bytes.push(carry as u8);
        }
    }
    bytes.reverse();
    bytes
}

fn one_more(mut magnitude: Vec<u8>) -> Vec<u8> {
    for byte in magnitude.iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            return magnitude;
        }
    }
    magnitude.insert(0, 1);
    magnitude
}

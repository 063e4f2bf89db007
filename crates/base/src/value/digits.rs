//! Numbers as Python writes them, and integers read back.

use std::fmt::Write;

use super::MAGNITUDE_BYTES_MAX;

/// Digits of the largest magnitude that has an encoding.
const DIGITS_MAX: usize = 615;
/// Digits that are taken at once.
const GROUP_DIGITS: usize = 9;

/// A double as `repr` shows it: the shortest digits that mean it, an exponent below 1e-4 and from 1e16 on.
pub(super) fn double(out: &mut String, value: f64) {
    if value.is_nan() {
        out.push_str("nan");
        return;
    }
    if value.is_infinite() {
        out.push_str(if value < 0.0 { "-inf" } else { "inf" });
        return;
    }
    let size = value.abs();
    if size != 0.0 && !(1e-4..1e16).contains(&size) {
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(exponent) => ('-', exponent),
            None => ('+', exponent),
        };
        // A String takes whatever is written to it.
        _ = write!(out, "{digits}e{sign}{exponent:0>2}");
    } else {
        _ = write!(out, "{value:?}");
    }
}

/// A magnitude in decimal digits.
pub(super) fn magnitude(out: &mut String, magnitude_be: &[u8]) {
    const STEP: u64 = 1_000_000_000;
    let mut limbs: Vec<u64> = magnitude_be
        .rchunks(4)
        .rev()
        .map(|chunk| {
            chunk
                .iter()
                .fold(0, |limb, byte| limb << 8 | u64::from(*byte))
        })
        .collect();
    let mut groups = Vec::new();
    while limbs.iter().any(|limb| *limb != 0) {
        let mut rest = 0;
        for limb in &mut limbs {
            let whole = rest << 32 | *limb;
            (*limb, rest) = (whole / STEP, whole % STEP);
        }
        groups.push(rest);
    }
    let mut groups = groups.iter().rev();
    _ = write!(out, "{}", groups.next().unwrap_or(&0));
    for group in groups {
        _ = write!(out, "{group:09}");
    }
}

/// The magnitude, the most significant byte first, that ASCII digits mean; nothing where they are more than any encoding can hold.
pub(super) fn parsed(digits: &[u8]) -> Option<Vec<u8>> {
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    let digits = digits.get(zeros..).unwrap_or_default();
    if digits.len() > DIGITS_MAX {
        return None;
    }
    let mut limbs: Vec<u32> = Vec::with_capacity(MAGNITUDE_BYTES_MAX / 4 + 1);
    for group in digits.chunks(GROUP_DIGITS) {
        append_group(&mut limbs, group);
    }
    Some(
        limbs
            .iter()
            .rev()
            .flat_map(|limb| limb.to_be_bytes())
            .collect(),
    )
}

/// Appends a group of decimal digits to a number, whose limbs are the lowest first.
fn append_group(limbs: &mut Vec<u32>, group: &[u8]) {
    let (mut carry, mut power) = (0, 1);
    for digit in group {
        carry = 10 * carry + u64::from(digit - b'0');
        power *= 10;
    }
    for limb in limbs.iter_mut() {
        let number = u64::from(*limb) * power + carry;
        (*limb, carry) = (number as u32, number >> 32);
    }
    if carry > 0 {
        limbs.push(carry as u32);
    }
}

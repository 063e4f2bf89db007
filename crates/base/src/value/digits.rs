//! Numbers as Python writes them.

use std::fmt::Write;

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

//! Numbers as Python writes them.

use std::fmt::Write;

/// Doubles with fewer characters than this have no two shortest spellings that are equally near.
const TIES_FROM: usize = 15;

/// The even one of two spellings that are equally near, as Python has it: Rust takes either. `again` rounds to so many places.
fn even(value: f64, text: String, again: impl Fn(usize) -> String) -> String {
    if text.len() < TIES_FROM {
        return text;
    }
    let digits = text.split('e').next().unwrap_or(&text);
    let places = digits.split_once('.').map_or(0, |(_, behind)| behind.len());
    let rounded = again(places);
    match rounded.parse() == Ok(value) {
        true => rounded,
        false => text,
    }
}

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
        let text = even(value, format!("{value:e}"), |places| {
            format!("{value:.places$e}")
        });
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(exponent) => ('-', exponent),
            None => ('+', exponent),
        };
        // A String takes whatever is written to it.
        _ = write!(out, "{digits}e{sign}{exponent:0>2}");
    } else {
        out.push_str(&even(value, format!("{value:?}"), |places| {
            format!("{value:.places$}")
        }));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_spellings_that_are_equally_near_the_even_one_is_taken() {
        for (value, wanted) in [
            (1_501_199_875_790_167.0 + 0.25, "1501199875790167.2"),
            (1_501_199_875_790_167.0 + 0.75, "1501199875790167.8"),
            (9_007_199_254_740_993.0, "9007199254740992.0"),
            (123_456_789_012_345.0, "123456789012345.0"),
            (5e-324, "5e-324"),
            (2f64.powi(60), "1.152921504606847e+18"),
            (0.1 + 0.2, "0.30000000000000004"),
        ] {
            let mut text = String::new();
            double(&mut text, value);
            assert_eq!(text, wanted);
        }
    }
}

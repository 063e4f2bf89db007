//! Decimal digits to the nearest number of 80 bits, exactly.
//!
//! Up to 19 digits and 10^27 fit into 128 bits, which is the usual case. All else is computed with
//! integers of any length: the digits times 5^n, or divided by it, bit by bit.

use crate::float::{Extended, from_bits};
use crate::natural::Natural;

/// Digits that can matter: a number half-way between two neighbours has at most 11,600 of them. What
/// follows counts only by not being zero.
const DIGITS: usize = 12_000;
/// 10 to more than this is infinite, to less is zero, for any digits that are put behind a point.
const FAR: i64 = 5_000;
/// The highest power of 5 below 2^63.
const POWER: i64 = 27;

/// Rounds `whole.fraction × 10^exponent`.
pub(crate) fn round(whole: &[u8], fraction: &[u8], exponent: i64) -> Extended {
    let digits = || whole.iter().chain(fraction).map(|digit| digit - b'0');
    let zeros = digits().take_while(|digit| *digit == 0).count();
    let total = whole.len() + fraction.len();
    if zeros == total {
        return Extended::ZERO;
    }
    // 10 to this is above the number.
    let size = whole.len() as i64 - zeros as i64 + exponent;
    if size > FAR {
        return Extended::INFINITY;
    }
    if size < -FAR {
        return Extended::ZERO;
    }
    let behind = trailing_zeros(whole, fraction);
    let count = total - zeros - behind;
    let scale = size - count as i64;
    let significant = digits().skip(zeros).take(count);
    if count <= 19 && (-POWER..=POWER).contains(&scale) {
        return short(
            significant.fold(0, |number, digit| number * 10 + u64::from(digit)),
            scale,
        );
    }
    if count <= DIGITS {
        return long(significant, scale);
    }
    long(
        significant.take(DIGITS).chain([1]),
        size - DIGITS as i64 - 1,
    )
}

fn trailing_zeros(whole: &[u8], fraction: &[u8]) -> usize {
    let zeros = |digits: &[u8]| {
        digits
            .iter()
            .rev()
            .take_while(|digit| **digit == b'0')
            .count()
    };
    match zeros(fraction) {
        all if all == fraction.len() => all + zeros(whole),
        some => some,
    }
}

fn short(number: u64, scale: i64) -> Extended {
    let power = 5_u128.pow(scale.unsigned_abs() as u32);
    if scale >= 0 {
        return from_bits(u128::from(number) * power, true, scale);
    }
    let up = u128::from(number).leading_zeros();
    let shifted = u128::from(number) << up;
    from_bits(shifted / power, shifted % power == 0, scale - i64::from(up))
}

fn long(digits: impl Iterator<Item = u8>, scale: i64) -> Extended {
    let mut number = Natural::default();
    for digit in digits {
        number.multiply_add(10, u32::from(digit));
    }
    if scale >= 0 {
        for _ in 0..scale {
            number.multiply_add(5, 0);
        }
        let (bits, exact, shift) = number.top();
        return from_bits(bits, exact, shift + scale);
    }
    let mut power = Natural::from(1);
    for _ in 0..-scale {
        power.multiply_add(5, 0);
    }
    let (bits, exact, shift) = number.divide(power);
    from_bits(bits, exact, shift + scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_agree() {
        for number in [1_u64, 7, 12_345, 9_999_999_999_999_999_999, u64::MAX / 3] {
            for scale in -POWER..=POWER {
                let digits = number.to_string();
                let digits = digits.bytes().map(|digit| digit - b'0').take(19);
                let short_one = digits
                    .clone()
                    .fold(0, |number, digit| number * 10 + u64::from(digit));
                assert_eq!(
                    short(short_one, scale),
                    long(digits, scale),
                    "{number}e{scale}"
                );
            }
        }
    }

    #[test]
    fn digits_beyond_the_limit_count() {
        let one = round(b"1", &[b'0'; 20_000], 0);
        let mut half = b"9223372036854775808".to_vec(); // 2^63: neighbours are 1 apart
        let tie = round(&half, b"5", 0);
        let mut behind = vec![b'0'; 15_000];
        behind[0] = b'5';
        behind.push(b'1');
        assert_eq!(one, round(b"1", b"", 0));
        assert!(round(&half, &behind, 0) > tie);
        half.pop();
        assert!(round(&half, &behind, 0) < tie);
    }
}

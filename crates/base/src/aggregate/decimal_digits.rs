//! The digits of an exact decimal: what a sum comes to, and what it is divided by a count.

use crate::value::cell_number::{POWERS, SHORT_DIGITS};

/// Digits of a limb.
const LIMB_DIGITS: i64 = SHORT_DIGITS as i64;
/// Digits of a mean, at the least.
const MEAN_DIGITS: usize = 17;

/// An exact decimal, one way: `digits * 10^place`; neither the first digit nor the last is zero, and zero has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct DecimalDigits {
    negative: bool,
    /// Each 0 to 9.
    digits: Vec<u8>,
    place: i64,
}

impl DecimalDigits {
    fn new(negative: bool, mut digits: Vec<u8>, place: i64) -> Self {
        let zeros = digits.iter().take_while(|digit| **digit == 0).count();
        digits.drain(..zeros);
        let end = digits.iter().rposition(|digit| *digit != 0);
        let Some(end) = end else {
            return DecimalDigits::default();
        };
        let behind = digits.len() - end - 1;
        digits.truncate(end + 1);
        DecimalDigits {
            negative,
            digits,
            place: place + behind as i64,
        }
    }

    pub(super) fn of_short(mantissa: i64, scale: u8) -> Self {
        let digits = mantissa.unsigned_abs().to_string().into_bytes();
        let digits = digits.iter().map(|digit| digit - b'0').collect();
        DecimalDigits::new(mantissa < 0, digits, -i64::from(scale))
    }

    /// The lowest limb first, and the place of its last digit.
    pub(super) fn of_limbs(negative: bool, limbs: &[i128], place: i64) -> Self {
        let mut digits = Vec::with_capacity(limbs.len() * SHORT_DIGITS);
        for limb in limbs.iter().rev() {
            let mut rest = *limb as i64;
            for power in POWERS[..SHORT_DIGITS].iter().rev() {
                digits.push((rest / power) as u8);
                rest %= power;
            }
        }
        DecimalDigits::new(negative, digits, place)
    }

    /// Its digits as a whole number, and the power of ten that this is multiplied with: `-123e-4`.
    pub(super) fn scientific(&self) -> String {
        let sign = if self.negative { "-" } else { "" };
        let digits: String = self.digits.iter().map(|digit| shown(*digit)).collect();
        format!("{sign}{digits}e{}", self.place)
    }

    /// As a mantissa and a scale, if they are short.
    pub(super) fn short(&self) -> Option<(i64, u8)> {
        let scale = (-self.place).max(0);
        let zeros = self.place.max(0);
        if scale > LIMB_DIGITS || self.digits.len() as i64 + zeros > LIMB_DIGITS + 1 {
            return None;
        }
        let zeros = std::iter::repeat_n(&0, zeros as usize);
        let digit = |size, digit: &u8| 10 * size + i128::from(*digit);
        let size = self.digits.iter().chain(zeros).fold(0_i128, digit);
        let mantissa = i64::try_from(if self.negative { -size } else { size });
        Some((mantissa.ok()?, scale as u8))
    }

    /// All digits, around a point if there are some behind it.
    pub(super) fn plain(&self) -> String {
        let sign = if self.negative { "-" } else { "" };
        let mut out = String::from(sign);
        let before = self.digits.len() as i64 + self.place;
        match (before, self.digits.is_empty()) {
            (_, true) => out.push('0'),
            (..=0, _) => {
                out.push_str("0.");
                out.extend(std::iter::repeat_n('0', -before as usize));
            }
            _ => {}
        }
        for (index, digit) in (0..).zip(&self.digits) {
            if index > 0 && index == before {
                out.push('.');
            }
            out.push(shown(*digit));
        }
        out.extend(std::iter::repeat_n('0', self.place.max(0) as usize));
        out
    }

    /// The number divided by `count`, which must not be zero: rounded, half to even, to what a mean has.
    pub(super) fn divided(&self, count: u64) -> DecimalDigits {
        let (count, mut rest) = (u128::from(count), 0);
        let (mut quotient, mut begun) = (Vec::with_capacity(40), 0);
        let mut place = self.digits.len() as i64 + self.place;
        let last = self.place.min(0);
        while place > last || (begun < MEAN_DIGITS && rest > 0) {
            place -= 1;
            let index = self.digits.len() as i64 - 1 - (place - self.place);
            let digit = usize::try_from(index)
                .ok()
                .and_then(|at| self.digits.get(at));
            let whole = rest * 10 + u128::from(*digit.unwrap_or(&0));
            quotient.push((whole / count) as u8);
            rest = whole % count;
            begun += usize::from(begun > 0 || whole >= count);
        }
        let odd = quotient.last().is_some_and(|digit| digit % 2 == 1);
        if rest * 2 > count || (rest * 2 == count && odd) {
            round_up(&mut quotient);
        }
        DecimalDigits::new(self.negative, quotient, place)
    }
}

/// Adds one to the last of some digits.
fn round_up(digits: &mut Vec<u8>) {
    for digit in digits.iter_mut().rev() {
        if *digit < 9 {
            *digit += 1;
            return;
        }
        *digit = 0;
    }
    digits.insert(0, 1);
}

fn shown(digit: u8) -> char {
    char::from(b'0' + digit)
}

//! Exact sums and means of decimals, as cells of a table have them.
//!
//! ```text
//!   short    mantissa * 10^-scale, while both fit in a machine word
//!   long     Σ total * 10^place: a total of 128 bits for each six places that the last digit of a value has stood at
//!
//!   state    an integer's encoding | 31, scale, mantissa: 8 bytes | 46, digits e exponent, 00     the first that can say it
//!   mean     the count's encoding, the sum's state
//! ```
//!
//! An addition is one of integers: nothing is carried from total to total before the sum is written, unless one would overflow.
//! Once there was an infinity or a NaN nothing else counts, and the state has a word for a number. No crate's decimals have both:
//! any number of digits, and sums without a carry.
//!
//! Sums are written with all their digits, without an exponent and without zeros that say nothing: `0.3`, `5`. Means have 17
//! digits, which is what tells doubles apart, and more where the sum has: all before the point, and as many behind it as the sum.
//!
//! Decision: docs/decisions/decimal-sums.md.

use super::decimal_digits::DecimalDigits;
use super::mean::MeanSum;
use super::sum::small_int;
use super::{bad_state, no_number};
use crate::Result;
use crate::value::cell_number::{CellNumber, LongNumber, POWERS, SHORT_DIGITS};
use crate::value::decimal::DIGITS_MAX;
use crate::value::{Token, ValueReader, code, exact, write};

/// The first byte of a short state.
const SHORT: u8 = 0x31;
/// Digits of a sum on either side of the point, at most: fewer than 2^64 values add 20 to theirs.
const SUM_DIGITS_MAX: usize = DIGITS_MAX + 20;
/// Digits of a limb, of which many make the digits of a sum.
const LIMB_DIGITS: i64 = SHORT_DIGITS as i64;
const LIMB: i128 = POWERS[SHORT_DIGITS] as i128;
/// Places that have one total: values of a column often differ by a digit or two.
const PLACES: i64 = 6;

/// An exact sum, in as little memory as it needs.
#[derive(Debug, Clone)]
pub(super) enum DecimalSum {
    Short { mantissa: i64, scale: u8 },
    Long(Box<LongTotals>),
}

#[derive(Debug, Clone, Default)]
pub(super) struct LongTotals {
    /// Places, which ascend, and are multiples of [`PLACES`]; and their totals.
    totals: Vec<(i64, i128)>,
    /// The sum of infinities and NaNs, else zero.
    special: f64,
}

impl Default for DecimalSum {
    fn default() -> Self {
        DecimalSum::Short {
            mantissa: 0,
            scale: 0,
        }
    }
}

impl DecimalSum {
    /// Adds a value, or says that it is none that a sum or its state can hold.
    #[inline]
    fn adds(&mut self, value: &[u8]) -> Result<bool> {
        if let Some(int) = small_int(value) {
            self.add_short(int, 0);
            return Ok(true);
        }
        if let [code::WRITTEN, text @ .., code::END] = value
            && let Ok(number) = CellNumber::within(text, SUM_DIGITS_MAX)
        {
            self.add_number(&number);
            return Ok(true);
        }
        let mut reader = ValueReader::new(value);
        match reader.token()? {
            Some(Token::Int(int)) if reader.position() == value.len() => self.add_short(int, 0),
            _ => return Ok(false),
        }
        Ok(true)
    }

    #[inline]
    fn add_number(&mut self, number: &CellNumber<'_>) {
        match number {
            CellNumber::Short { mantissa, scale } => self.add_short(*mantissa, *scale),
            CellNumber::Long(long) => self.long().add_digits(long),
            CellNumber::Infinite { negative: true } => self.long().special += f64::NEG_INFINITY,
            CellNumber::Infinite { negative: false } => self.long().special += f64::INFINITY,
            CellNumber::Nan => self.long().special = f64::NAN,
        }
    }

    #[inline]
    pub(super) fn add_short(&mut self, more: i64, more_scale: u8) {
        if let DecimalSum::Short { mantissa, scale } = self
            && let Some(sum) = short_sum((*mantissa, *scale), (more, more_scale))
        {
            (*mantissa, *scale) = sum;
            return;
        }
        self.long().add(-i64::from(more_scale), more.into());
    }

    /// The sum as one that can hold any.
    fn long(&mut self) -> &mut LongTotals {
        if let DecimalSum::Short { mantissa, scale } = self {
            let mut long = LongTotals::default();
            long.add(-i64::from(*scale), i128::from(*mantissa));
            *self = DecimalSum::Long(Box::new(long));
        }
        match self {
            DecimalSum::Long(long) => long,
            DecimalSum::Short { .. } => unreachable!("it has just become long"),
        }
    }

    /// Appends the sum as a decimal that is written.
    pub(super) fn finish(&self, out: &mut Vec<u8>) {
        match self {
            DecimalSum::Short { mantissa, scale: 0 } => {
                exact::write_decimal(out, &mantissa.to_string());
            }
            DecimalSum::Long(long) if let Some(word) = long.special_word() => {
                exact::write_decimal(out, word);
            }
            _ => exact::write_decimal(out, &self.digits().plain()),
        }
    }

    fn digits(&self) -> DecimalDigits {
        match self {
            DecimalSum::Short { mantissa, scale } => DecimalDigits::of_short(*mantissa, *scale),
            DecimalSum::Long(long) => long.digits(),
        }
    }
}

impl MeanSum for DecimalSum {
    fn heap_bytes(&self) -> usize {
        match self {
            DecimalSum::Short { .. } => 0,
            DecimalSum::Long(long) => {
                size_of::<LongTotals>() + long.totals.capacity() * size_of::<(i64, i128)>()
            }
        }
    }

    #[inline]
    fn add(&mut self, value: &[u8], aggregate: &str) -> Result<()> {
        if self.adds(value)? {
            Ok(())
        } else {
            Err(no_number(aggregate, value))
        }
    }

    fn merge(&mut self, other: &[u8]) -> Result<()> {
        if let [SHORT, scale, mantissa @ ..] = other
            && let Ok(mantissa) = mantissa.try_into()
            && usize::from(*scale) <= SHORT_DIGITS
        {
            self.add_short(i64::from_be_bytes(mantissa), *scale);
            return Ok(());
        }
        if self.adds(other)? {
            Ok(())
        } else {
            Err(bad_state("a sum is not a number"))
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            DecimalSum::Short { mantissa, scale } => write_short(*mantissa, *scale, out),
            DecimalSum::Long(long) => match long.special_word() {
                Some(word) => exact::write_decimal(out, word),
                None => write_digits(&long.digits(), out),
            },
        }
    }

    fn finish_mean(&self, count: u64, out: &mut Vec<u8>) {
        match self {
            DecimalSum::Long(long) if let Some(word) = long.special_word() => {
                exact::write_decimal(out, word);
            }
            _ => exact::write_decimal(out, &self.digits().divided(count).plain()),
        }
    }
}

/// The sum of two short numbers if it is one, at the scale of the one that has more digits behind the point.
#[inline]
fn short_sum((a, a_scale): (i64, u8), (b, b_scale): (i64, u8)) -> Option<(i64, u8)> {
    if a_scale == b_scale {
        return Some((a.checked_add(b)?, a_scale));
    }
    let (a, b, scale) = if a_scale < b_scale {
        let power = POWERS.get(usize::from(b_scale - a_scale))?;
        (a.checked_mul(*power)?, b, b_scale)
    } else {
        let power = POWERS.get(usize::from(a_scale - b_scale))?;
        (a, b.checked_mul(*power)?, a_scale)
    };
    Some((a.checked_add(b)?, scale))
}

/// Appends the state of a sum that may be long.
fn write_digits(digits: &DecimalDigits, out: &mut Vec<u8>) {
    match digits.short() {
        Some((mantissa, scale)) => write_short(mantissa, scale, out),
        None => exact::write_decimal(out, &digits.scientific()),
    }
}

/// Appends the state of a short sum, without zeros at its end.
#[inline]
fn write_short(mut mantissa: i64, mut scale: u8, out: &mut Vec<u8>) {
    while scale > 0 && mantissa % 10 == 0 {
        mantissa /= 10;
        scale -= 1;
    }
    if scale == 0 {
        return write::int(out, mantissa);
    }
    out.extend_from_slice(&[SHORT, scale]);
    out.extend_from_slice(&mantissa.to_be_bytes());
}

impl LongTotals {
    /// Adds an integer of up to 64 bits, or any that stands at a multiple of [`PLACES`].
    #[inline]
    fn add(&mut self, place: i64, more: i128) {
        let low = place.div_euclid(PLACES) * PLACES;
        let more = more * i128::from(POWERS[(place - low) as usize]);
        match self.totals.iter().rposition(|(at, _)| *at <= low) {
            Some(found) if self.totals[found].0 == low => self.add_to(found, more),
            found if more != 0 => {
                let next = found.map_or(0, |found| found + 1);
                if self.totals.is_empty() {
                    self.totals.reserve_exact(1);
                }
                self.totals.insert(next, (low, more));
            }
            _ => {}
        }
    }

    /// Adds to the total of this number; one that would overflow gives its upper digits away.
    #[inline]
    fn add_to(&mut self, number: usize, more: i128) {
        let (place, total) = self.totals[number];
        match total.checked_add(more) {
            Some(sum) => self.totals[number].1 = sum,
            None => {
                self.totals[number].1 = total % LIMB + more % LIMB;
                self.add(place + LIMB_DIGITS, total / LIMB + more / LIMB);
            }
        }
    }

    /// Adds digits, some of them at a time.
    fn add_digits(&mut self, number: &LongNumber<'_>) {
        let mut add = |digits: &[u8], place| {
            let digit = |size, digit: &u8| 10 * size + i128::from(digit - b'0');
            let size = digits.iter().fold(0, digit);
            self.add(place, if number.negative { -size } else { size });
        };
        for (index, digits) in (0..).zip(number.whole.rchunks(SHORT_DIGITS)) {
            add(digits, number.exponent + index * LIMB_DIGITS);
        }
        let mut place = number.exponent;
        for digits in number.fraction.chunks(SHORT_DIGITS) {
            place -= digits.len() as i64;
            add(digits, place);
        }
    }

    fn special_word(&self) -> Option<&'static str> {
        if self.special == 0.0 {
            None
        } else if self.special.is_nan() {
            Some("nan")
        } else {
            Some(if self.special > 0.0 { "inf" } else { "-inf" })
        }
    }

    /// The sum, in the one form that it has.
    fn digits(&self) -> DecimalDigits {
        let totals = || self.totals.iter().filter(|(_, total)| *total != 0);
        let (Some((low, _)), Some((high, _))) = (totals().next(), totals().next_back()) else {
            return DecimalDigits::default();
        };
        // A total has up to 39 digits, which begin in the middle of a limb.
        let mut limbs = vec![0_i128; ((high - low) / LIMB_DIGITS) as usize + 5];
        for (place, total) in totals() {
            add_total(&mut limbs, place - low, *total);
        }
        let negative = carried(&mut limbs);
        if negative {
            limbs.iter_mut().for_each(|limb| *limb = -*limb);
            carried(&mut limbs);
        }
        DecimalDigits::of_limbs(negative, &limbs, *low)
    }
}

/// Adds a total that stands so many digits above the lowest limb's end.
fn add_total(limbs: &mut [i128], above: i64, total: i128) {
    let (limb, shift) = (
        (above / LIMB_DIGITS) as usize,
        (above % LIMB_DIGITS) as usize,
    );
    let power = i128::from(POWERS[shift]);
    let cut = i128::from(POWERS[SHORT_DIGITS - shift]);
    let mut rest = total;
    for at in limb.. {
        if rest == 0 {
            return;
        }
        let piece = rest % LIMB;
        rest /= LIMB;
        limbs[at] += piece % cut * power;
        limbs[at + 1] += piece / cut;
    }
}

/// Brings all limbs into 18 digits from 0 on; says whether the number is below zero, and the limbs are of no use then.
fn carried(limbs: &mut [i128]) -> bool {
    let mut carry = 0;
    for limb in limbs {
        let whole = *limb + carry;
        (*limb, carry) = (whole.rem_euclid(LIMB), whole.div_euclid(LIMB));
    }
    carry < 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_total_that_is_full_gives_its_upper_digits_away() {
        let mut long = LongTotals::default();
        for _ in 0..7 {
            long.add(-6, i128::MAX);
            long.add(0, i128::MIN);
            long.add(-1, 5);
        }
        // 7 * (2^127 - 1) millionths, less 7 * 2^127, and 3.5
        assert_eq!(
            long.digits().plain(),
            "-1190987093235000398837189004200062728903.759911"
        );
    }
}

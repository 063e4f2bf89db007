//! Exact sums and means of decimals, as cells of a table have them.
//!
//! ```text
//!   short    mantissa * 10^-scale, while both fit in a machine word
//!   long     Σ total * 10^place: a total of 128 bits for each place that the last digit of a value has stood at
//!
//!   state    an integer's encoding | 31, scale, mantissa: 8 bytes | 46, digits e exponent, 00     the first that can say it
//!   mean     the count's encoding, the sum's state
//! ```
//!
//! An addition is one of integers: nothing is carried from place to place before the sum is written. Totals do not overflow: a
//! value adds less than 2^64 to each, and there are fewer than 2^63 values. Once there was an infinity or a NaN nothing else
//! counts, and the state has a word for a number. No crate's decimals have both: any number of digits, and sums without a carry.
//!
//! Sums are written with all their digits, without an exponent and without zeros that say nothing: `0.3`, `5`. Means have 17
//! digits, which is what tells doubles apart, and more where the sum has: all before the point, and as many behind it as the sum.
//!
//! Decision: docs/decisions/decimal-sums.md.

use super::sum::small_int;
use super::{add_counts, bad_state, no_number, split_unsigned};
use crate::Result;
use crate::value::cell_number::{CellNumber, LongNumber, POWERS, SHORT_DIGITS};
use crate::value::decimal::DIGITS_MAX;
use crate::value::{Token, ValueReader, code, exact, write};

/// The first byte of a short state.
const SHORT: u8 = 0x31;
/// Digits of a sum on either side of the point, at most: fewer than 2^64 values add 20 to theirs.
const SUM_DIGITS_MAX: usize = DIGITS_MAX + 20;
/// Digits of a limb.
const LIMB_DIGITS: i64 = SHORT_DIGITS as i64;
const LIMB: i128 = POWERS[SHORT_DIGITS] as i128;
/// Digits of a mean, at the least.
const MEAN_DIGITS: usize = 17;

/// An exact sum, in as little memory as it needs.
#[derive(Debug, Clone)]
pub(super) enum DecimalSum {
    Short { mantissa: i64, scale: u8 },
    Long(Box<LongTotals>),
}

#[derive(Debug, Clone, Default)]
pub(super) struct LongTotals {
    /// Places, which ascend, and their totals.
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
    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            DecimalSum::Short { .. } => 0,
            DecimalSum::Long(long) => {
                size_of::<LongTotals>() + long.totals.capacity() * size_of::<(i64, i128)>()
            }
        }
    }

    /// Adds an integer of 64 bits, or a decimal as it is written.
    #[inline]
    pub(super) fn add(&mut self, value: &[u8], aggregate: &str) -> Result<()> {
        if self.adds(value)? {
            Ok(())
        } else {
            Err(no_number(aggregate, value))
        }
    }

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

    pub(super) fn merge(&mut self, other: &[u8]) -> Result<()> {
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

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            DecimalSum::Short { mantissa, scale } => write_short(*mantissa, *scale, out),
            DecimalSum::Long(long) => match long.special_word() {
                Some(word) => exact::write_decimal(out, word),
                None => long.digits().write(out),
            },
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

    /// Appends the mean of so many values as a decimal that is written.
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
    #[inline]
    fn add(&mut self, place: i64, more: i128) {
        match self.totals.iter().rposition(|(at, _)| *at <= place) {
            Some(found) if self.totals[found].0 == place => self.totals[found].1 += more,
            found if more != 0 => {
                let next = found.map_or(0, |found| found + 1);
                self.totals.insert(next, (place, more));
            }
            _ => {}
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

/// An exact decimal, one way: `digits * 10^place`; neither the first digit nor the last is zero, and zero has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct DecimalDigits {
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

    fn of_short(mantissa: i64, scale: u8) -> Self {
        let digits = mantissa.unsigned_abs().to_string().into_bytes();
        let digits = digits.iter().map(|digit| digit - b'0').collect();
        DecimalDigits::new(mantissa < 0, digits, -i64::from(scale))
    }

    /// The lowest limb first, and the place of its last digit.
    fn of_limbs(negative: bool, limbs: &[i128], place: i64) -> Self {
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

    /// As a state.
    fn write(&self, out: &mut Vec<u8>) {
        match self.short() {
            Some((mantissa, scale)) => write_short(mantissa, scale, out),
            None => {
                let sign = if self.negative { "-" } else { "" };
                let digits: String = self.digits.iter().map(|digit| shown(*digit)).collect();
                exact::write_decimal(out, &format!("{sign}{digits}e{}", self.place));
            }
        }
    }

    /// As a mantissa and a scale, if they are short.
    fn short(&self) -> Option<(i64, u8)> {
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
    fn plain(&self) -> String {
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
    fn divided(&self, count: u64) -> DecimalDigits {
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

/// A sum, and of how many values.
#[derive(Debug, Clone, Default)]
pub(super) struct DecimalMean {
    count: u64,
    sum: DecimalSum,
}

impl DecimalMean {
    pub(super) fn heap_bytes(&self) -> usize {
        self.sum.heap_bytes()
    }

    #[inline]
    pub(super) fn add(&mut self, value: &[u8], aggregate: &str) -> Result<()> {
        self.sum.add(value, aggregate)?;
        add_counts(&mut self.count, 1)
    }

    pub(super) fn merge(&mut self, other: &[u8]) -> Result<()> {
        let (count, sum) = split_unsigned(other)?;
        if count == 0 {
            return Err(bad_state("a mean has no values"));
        }
        add_counts(&mut self.count, count)?;
        self.sum.merge(sum)
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        if self.count > 0 {
            write::unsigned(out, self.count);
            self.sum.write(out);
        }
    }

    pub(super) fn finish(&self, out: &mut Vec<u8>) {
        match self.count {
            0 => write::null(out),
            count => self.sum.finish_mean(count, out),
        }
    }
}

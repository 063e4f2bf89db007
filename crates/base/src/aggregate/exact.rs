//! Exact sums of integers and doubles: a number in fixed point, wide enough for all of them.
//!
//! ```text
//!   value = Σ limbs[i] · 2^(32·(low + i) - 1088)      a double touches up to three limbs, 2^0 is limb 34
//! ```
//!
//! A superaccumulator (R. Neal, "Fast exact summation using small and large superaccumulators", 2015), of which only the limbs are held that
//! were touched: sums of like doubles need four or five of the sixty-seven. A limb is 64 bits wide and takes 32 at a time, so
//! carries are due once in 2^30 additions. No crate's accumulator can be merged and written, which is why there is this one.

/// Bits behind the point: 2^-1074, the least double, and what is missing to a whole limb.
const POINT_BITS: i32 = 1088;
/// Bits that a limb takes at a time.
const LIMB_BITS: u32 = 32;
/// The limb of 2^0.
pub(super) const UNIT_LIMB: usize = 34;
/// Limbs of any sum of fewer than 2^64 values: 255 bytes of integer, 8 of count, 34 limbs below the point, and some to spare.
pub(super) const LIMBS_MAX: usize = 112;
/// Additions until a limb could overflow: each adds less than 2^32 to at most 2^62.
const ADDITIONS_MAX: u32 = 1 << 29;

/// An exact sum.
#[derive(Debug, Clone, Default)]
pub(super) struct Exact {
    limbs: Vec<i64>,
    low: usize,
    additions: u32,
}

/// An exact number, one way: its limbs, the lowest first, neither the first nor the last of them zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ExactDigits {
    pub(super) negative: bool,
    pub(super) low: usize,
    pub(super) limbs: Vec<u32>,
}

impl Exact {
    pub(super) fn heap_bytes(&self) -> usize {
        self.limbs.capacity() * size_of::<i64>()
    }

    pub(super) fn add_int(&mut self, value: i64) {
        self.add_bits(value.unsigned_abs().into(), UNIT_LIMB, value < 0);
    }

    /// Adds a double, which must be finite.
    pub(super) fn add_double(&mut self, value: f64) {
        let bits = value.to_bits();
        let fraction = bits & ((1 << 52) - 1);
        let exponent = (bits >> 52) & 0x7ff;
        let (mantissa, power) = match exponent {
            0 => (fraction, 0),
            _ => (fraction | 1 << 52, exponent - 1),
        };
        // The least double is 14 bits above the lowest limb's end.
        let offset = power + 14;
        let (limb, shift) = (offset / u64::from(LIMB_BITS), offset % u64::from(LIMB_BITS));
        self.add_bits(u128::from(mantissa) << shift, limb as usize, value < 0.0);
    }

    /// Adds an integer by its magnitude, in multiples of the limb `low`.
    pub(super) fn add_magnitude(&mut self, magnitude_be: &[u8], low: usize, negative: bool) {
        for (limb, chunk) in (low..).zip(magnitude_be.rchunks(4)) {
            let bits = chunk
                .iter()
                .fold(0, |bits, byte| bits << 8 | u128::from(*byte));
            self.add_bits(bits, limb, negative);
        }
    }

    #[inline]
    fn add_bits(&mut self, bits: u128, limb: usize, negative: bool) {
        if self.additions == ADDITIONS_MAX {
            self.carry();
        }
        self.additions += 1;
        let count = (u128::BITS - bits.leading_zeros()).div_ceil(LIMB_BITS) as usize;
        self.cover(limb, count);
        let mut rest = bits;
        for target in self.limbs.iter_mut().skip(limb - self.low).take(count) {
            let piece = i64::from(rest as u32);
            *target += if negative { -piece } else { piece };
            rest >>= LIMB_BITS;
        }
    }

    /// So many additions until carries are due.
    #[cfg(test)]
    pub(super) fn carry_after(&mut self, additions: u32) {
        self.additions = ADDITIONS_MAX - additions;
    }

    /// Makes room for `count` limbs from `limb` on.
    #[inline]
    fn cover(&mut self, limb: usize, count: usize) {
        if self.limbs.is_empty() {
            self.low = limb;
        }
        if limb < self.low {
            let more = self.low - limb;
            self.limbs.splice(0..0, std::iter::repeat_n(0, more));
            self.low = limb;
        }
        let wanted = limb - self.low + count;
        if wanted > self.limbs.len() {
            self.limbs.resize(wanted, 0);
        }
    }

    /// Brings all limbs but the highest into 32 bits.
    #[cold]
    fn carry(&mut self) {
        let mut carry = 0;
        for limb in &mut self.limbs {
            let whole = *limb + carry;
            *limb = i64::from(whole as u32);
            carry = whole >> LIMB_BITS;
        }
        if carry != 0 {
            self.limbs.push(carry);
        }
        self.additions = 0;
    }

    /// The sum, in the one form that it has.
    pub(super) fn digits(&self) -> ExactDigits {
        let mut limbs = Vec::with_capacity(self.limbs.len() + 2);
        let mut carry = 0_i64;
        for limb in &self.limbs {
            let whole = limb + carry;
            limbs.push(whole as u32);
            carry = whole >> LIMB_BITS;
        }
        while carry != 0 && carry != -1 {
            limbs.push(carry as u32);
            carry >>= LIMB_BITS;
        }
        let negative = carry == -1;
        if negative {
            let mut one = true;
            for limb in &mut limbs {
                (*limb, one) = (!*limb).overflowing_add(u32::from(one));
            }
            if one {
                limbs.push(1);
            }
        }
        while limbs.last() == Some(&0) {
            limbs.pop();
        }
        let zeros = limbs.iter().take_while(|limb| **limb == 0).count();
        limbs.drain(..zeros);
        let low = if limbs.is_empty() {
            0
        } else {
            self.low + zeros
        };
        ExactDigits {
            negative,
            low,
            limbs,
        }
    }
}

impl ExactDigits {
    /// The magnitude in multiples of the lowest limb, the most significant byte first.
    pub(super) fn magnitude(&self) -> Vec<u8> {
        let bytes = self.limbs.iter().rev().flat_map(|limb| limb.to_be_bytes());
        bytes.skip_while(|byte| *byte == 0).collect()
    }

    /// The magnitude of an integer.
    pub(super) fn integer(&self) -> Vec<u8> {
        let mut magnitude = self.magnitude();
        if !magnitude.is_empty() {
            let zeros = self.low.saturating_sub(UNIT_LIMB) * 4;
            magnitude.resize(magnitude.len() + zeros, 0);
        }
        magnitude
    }

    /// The nearest double, half to even, and whether it is the number itself.
    pub(super) fn double(&self) -> (f64, bool) {
        self.round(self.lowest_exponent(), false)
    }

    /// The double nearest to the number divided by `count`, which must not be zero.
    pub(super) fn double_of_quotient(&self, count: u64) -> f64 {
        // Four limbs more than a 64-bit divisor needs for 64 bits of quotient; what remains only breaks ties.
        const MORE: usize = 4;
        let mut limbs = vec![0; self.limbs.len() + MORE];
        let mut remainder = 0;
        let dividend = std::iter::repeat_n(&0, MORE).chain(&self.limbs);
        for (quotient, limb) in limbs
            .iter_mut()
            .rev()
            .zip(dividend.collect::<Vec<_>>().iter().rev())
        {
            let whole = remainder << LIMB_BITS | u128::from(**limb);
            *quotient = (whole / u128::from(count)) as u32;
            remainder = whole % u128::from(count);
        }
        let exponent = self.lowest_exponent() - (MORE as i32) * LIMB_BITS as i32;
        let quotient = ExactDigits {
            negative: self.negative,
            low: 0,
            limbs,
        };
        quotient.round(exponent, remainder != 0).0
    }

    fn lowest_exponent(&self) -> i32 {
        self.low as i32 * LIMB_BITS as i32 - POINT_BITS
    }

    /// The double nearest to the limbs times 2^`exponent`, and a little more where `more`.
    fn round(&self, exponent: i32, more: bool) -> (f64, bool) {
        let Some((top, limb)) = self.limbs.iter().enumerate().rfind(|(_, limb)| **limb != 0) else {
            return (0.0, !more);
        };
        let top_bit = (top as i32 + 1) * LIMB_BITS as i32 - 1 - limb.leading_zeros() as i32;
        // The exponent of the last bit that the double has room for, and which bit of ours that is.
        let last = (top_bit + exponent - 52).max(-1074);
        let cut = last - exponent;
        let mantissa = self.bits(cut, top_bit);
        let half = cut > 0 && self.bit(cut - 1);
        let below = more || self.any_below(cut - 1);
        let up = half && (below || mantissa & 1 == 1);
        // Adding the mantissa to the exponent's place lets a carry out of it raise the exponent, up to infinity.
        let biased = (last + 1074) as u64;
        let bits = if last > 971 {
            f64::INFINITY.to_bits()
        } else {
            (biased << 52) + mantissa + u64::from(up)
        };
        let size = f64::from_bits(bits.min(f64::INFINITY.to_bits()));
        let exact = !half && !below && size.is_finite();
        (if self.negative { -size } else { size }, exact)
    }

    fn bit(&self, bit: i32) -> bool {
        let limb = usize::try_from(bit / LIMB_BITS as i32)
            .ok()
            .and_then(|limb| self.limbs.get(limb));
        bit >= 0 && limb.is_some_and(|limb| limb >> (bit % LIMB_BITS as i32) & 1 == 1)
    }

    /// Bits `low` to `high`, at most 64 of them; below bit 0 there are zeros.
    fn bits(&self, low: i32, high: i32) -> u64 {
        (low..=high)
            .rev()
            .fold(0, |bits, bit| bits << 1 | u64::from(self.bit(bit)))
    }

    fn any_below(&self, bit: i32) -> bool {
        let bit = usize::try_from(bit).unwrap_or(0);
        let (limb, rest) = (bit / LIMB_BITS as usize, bit % LIMB_BITS as usize);
        let whole = self.limbs.iter().take(limb).any(|limb| *limb != 0);
        whole
            || self
                .limbs
                .get(limb)
                .is_some_and(|limb| limb & ((1 << rest) - 1) != 0)
    }
}

//! Numbers of 80 bits, as the x87 has them: 15 bits of exponent, 64 of significand, no sign here.
//!
//! A number is `significand × 2^(exponent − 1 − 16445)`. What matters is that (exponent, significand)
//! grows with the value. Numbers too small for a full significand have the exponent 0.

/// Bits of the significand.
const BITS: i64 = 64;
/// Of the lowest bit of the smallest number: 2^-16445.
pub(crate) const LOWEST: i64 = -16445;
const EXPONENT_OF_INFINITY: u16 = 0x7FFF;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Extended {
    pub(crate) exponent: u16,
    pub(crate) significand: u64,
}

impl Extended {
    pub(crate) const ZERO: Self = Self {
        exponent: 0,
        significand: 0,
    };
    pub(crate) const INFINITY: Self = Self {
        exponent: EXPONENT_OF_INFINITY,
        significand: 1 << 63,
    };
}

/// Rounds `bits × 2^shift`, plus something less than the lowest bit where `exact` is false, to the
/// nearest number, of two to the even one. Without `exact`, bits has at least 66 of them.
pub(crate) fn from_bits(bits: u128, exact: bool, shift: i64) -> Extended {
    if bits == 0 {
        return Extended::ZERO;
    }
    let length = i64::from(u128::BITS - bits.leading_zeros());
    // The place of the lowest bit that the result keeps.
    let unit = (shift + length - BITS).max(LOWEST);
    let drop = unit - shift;
    let rounded = if drop <= 0 {
        bits << -drop.min(0)
    } else {
        round(bits, exact, drop)
    };
    finish(rounded, unit)
}

fn round(bits: u128, exact: bool, drop: i64) -> u128 {
    if drop > 128 {
        return 0;
    }
    let kept = if drop == 128 { 0 } else { bits >> drop };
    let half = 1_u128 << (drop - 1);
    let rest = if drop == 128 {
        bits
    } else {
        bits & ((1 << drop) - 1)
    };
    let up = rest > half || (rest == half && (!exact || kept & 1 == 1));
    kept + u128::from(up)
}

/// A significand, which may be 2^64 after rounding, and the place of its lowest bit.
fn finish(rounded: u128, unit: i64) -> Extended {
    let (significand, unit) = match u64::try_from(rounded) {
        Ok(significand) => (significand, unit),
        Err(_) => (1 << 63, unit + 1),
    };
    if significand >> 63 == 0 {
        return Extended {
            exponent: 0,
            significand,
        };
    }
    match u16::try_from(unit - LOWEST + 1) {
        Ok(exponent) if exponent < EXPONENT_OF_INFINITY => Extended {
            exponent,
            significand,
        },
        _ => Extended::INFINITY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_go_to_the_even_one() {
        let of = |bits| from_bits(bits, true, 0);
        assert_eq!(of((1 << 64) + 1), of(1 << 64));
        assert_eq!(of((1 << 64) + 3), of((1 << 64) + 4));
        assert!(from_bits((1 << 66) + 4, false, 0) > from_bits((1 << 66) + 4, true, 0));
    }

    #[test]
    fn the_smallest_and_the_greatest() {
        assert_eq!(from_bits(1, true, LOWEST).significand, 1);
        assert_eq!(from_bits(1, true, LOWEST - 1), Extended::ZERO);
        assert_eq!(from_bits(3, true, LOWEST - 2).significand, 1);
        assert_eq!(from_bits(1, true, 16384), Extended::INFINITY);
        assert!(from_bits(1, true, 16383) < Extended::INFINITY);
        assert_eq!(
            from_bits(u128::from(u64::MAX), true, 16384 - 64).significand,
            u64::MAX
        );
    }
}

//! The 128-bit linear congruential generator behind the sort benchmark's records.
//!
//! x <- a x + c (mod 2^128), from x = 0. Record n uses the state after n + 1 steps. gensort and Hadoop's
//! TeraGen share it, so that keys are equal in all layouts. The increment spells "JimGrayRIP".

const MULTIPLIER: u128 = 0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645;
const INCREMENT: u128 = 0x4a69_6d47_7261_7952_4950_2020_2020_2001;

/// The generator, standing at one record.
///
/// ```
/// use gristmill_base::record::random::Random;
/// let mut walked = Random::at(0);
/// (0..1000).for_each(|_| { walked.step(); });
/// assert_eq!(walked.value(), Random::at(1000).value());
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Random {
    state: u128,
}

impl Random {
    /// The generator at record `n`: binary powering of the affine map, so that any worker can begin anywhere.
    pub fn at(n: u128) -> Self {
        let (mut a, mut c) = (MULTIPLIER, INCREMENT);
        let mut state = INCREMENT; // the one step that record 0 has behind it
        let mut left = n;
        while left > 0 {
            if left & 1 == 1 {
                state = state.wrapping_mul(a).wrapping_add(c);
            }
            c = a.wrapping_mul(c).wrapping_add(c);
            a = a.wrapping_mul(a);
            left >>= 1;
        }
        Random { state }
    }

    /// The 128 random bits of this record.
    pub fn value(self) -> u128 {
        self.state
    }

    /// Goes on to the next record.
    pub fn step(&mut self) {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT);
    }
}

//! Natural numbers of any length, with the few steps that reading a decimal number takes.

/// Words of 32 bits, lowest first; the highest is not zero.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Natural {
    words: Vec<u32>,
}

/// Bits of a quotient: 64, one to round by, and one for luck.
const QUOTIENT_BITS: i64 = 66;

impl From<u32> for Natural {
    fn from(word: u32) -> Self {
        Self { words: vec![word] }
    }
}

impl Natural {
    pub(crate) fn multiply_add(&mut self, factor: u32, summand: u32) {
        let mut carry = u64::from(summand);
        for word in &mut self.words {
            carry += u64::from(*word) * u64::from(factor);
            *word = carry as u32;
            carry >>= 32;
        }
        if carry > 0 {
            self.words.push(carry as u32);
        }
    }

    /// The highest bits, up to 128, whether all others are zero, and how many others there are.
    pub(crate) fn top(&self) -> (u128, bool, i64) {
        let low = self.words.len().saturating_sub(4);
        let bits = self.words[low..]
            .iter()
            .rev()
            .fold(0_u128, |bits, word| bits << 32 | u128::from(*word));
        (
            bits,
            self.words[..low].iter().all(|word| *word == 0),
            32 * low as i64,
        )
    }

    /// The highest bits of the quotient, whether nothing remains, and the place of the lowest of them.
    pub(crate) fn divide(mut self, mut by: Self) -> (u128, bool, i64) {
        // Shifted so that the first bit of the quotient is 1, or the second one.
        let shift = self.bits() - by.bits();
        if shift >= 0 {
            by.shift_left(shift as usize);
        } else {
            self.shift_left(-shift as usize);
        }
        let mut quotient = 0_u128;
        for bit in 0..=QUOTIENT_BITS {
            if bit > 0 {
                self.shift_left(1);
            }
            quotient <<= 1;
            if self.is_at_least(&by) {
                self.subtract(&by);
                quotient |= 1;
            }
        }
        (quotient, self.words.is_empty(), shift - QUOTIENT_BITS)
    }

    fn bits(&self) -> i64 {
        32 * self.words.len() as i64
            - self
                .words
                .last()
                .map_or(0, |word| i64::from(word.leading_zeros()))
    }

    fn shift_left(&mut self, bits: usize) {
        let part = bits % 32;
        if part > 0 {
            self.multiply_add(1 << part, 0);
        }
        if !self.words.is_empty() {
            self.words.splice(..0, std::iter::repeat_n(0, bits / 32));
        }
    }

    fn is_at_least(&self, other: &Self) -> bool {
        let length = self.words.len().cmp(&other.words.len());
        length
            .then_with(|| self.words.iter().rev().cmp(other.words.iter().rev()))
            .is_ge()
    }

    fn subtract(&mut self, other: &Self) {
        let mut borrow = false;
        for (place, word) in self.words.iter_mut().enumerate() {
            let (difference, first) =
                word.overflowing_sub(other.words.get(place).copied().unwrap_or(0));
            let (difference, second) = difference.overflowing_sub(u32::from(borrow));
            *word = difference;
            borrow = first || second;
        }
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
    }
}

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

    /// That of digits as they are written.
    pub(crate) fn from_digits(radix: u32, digits: impl IntoIterator<Item = u8>) -> Self {
        let mut number = Self::default();
        for digit in digits {
            number.multiply_add(radix, char::from(digit).to_digit(radix).unwrap_or(0));
        }
        number
    }

    /// The number times 2^`shift`, as decimal digits, of which so many stand behind the point.
    pub(crate) fn times_power_of_two(mut self, shift: i64) -> (Vec<u8>, usize) {
        const FIVES: usize = 13; // 5^13 is the highest power below 2^32
        let halves = usize::try_from(-shift).unwrap_or(0);
        self.shift_left(usize::try_from(shift).unwrap_or(0));
        for _ in 0..halves / FIVES {
            self.multiply_add(5_u32.pow(FIVES as u32), 0);
        }
        self.multiply_add(5_u32.pow((halves % FIVES) as u32), 0);
        (self.into_decimal(), halves)
    }

    fn into_decimal(mut self) -> Vec<u8> {
        const GROUP: u64 = 1_000_000_000;
        let mut groups = Vec::new();
        while !self.words.is_empty() {
            let mut rest = 0_u64;
            for word in self.words.iter_mut().rev() {
                rest = rest << 32 | u64::from(*word);
                *word = (rest / GROUP) as u32;
                rest %= GROUP;
            }
            groups.push(format!("{rest:09}"));
            while self.words.last() == Some(&0) {
                self.words.pop();
            }
        }
        groups.reverse();
        groups.concat().into_bytes()
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

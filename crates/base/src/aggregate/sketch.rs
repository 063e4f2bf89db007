//! `approx_distinct`: HyperLogLog with 2^14 registers (Flajolet et al., 2007) and Ertl's improved raw estimator ("New cardinality estimation
//! algorithms for HyperLogLog sketches", 2017), which needs no table of biases and no switch to linear counting.
//!
//! ```text
//!   sparse   01 | index, 14 bits; rank, 6 bits: three bytes a register that is not zero, ascending
//!   dense    02 | rank, 6 bits | ... 16,384 of them, four in three bytes
//! ```
//!
//! Sparse up to 2,048 registers, in memory and written: a function of the registers. The standard error is 1.04 / sqrt(2^14) = 0.81
//! percent, less for small numbers: below about 100 the result is mostly exact. The hash is XXH3 with a seed, so that it has nothing
//! to do with the one that assigns keys to partitions. No crate has a state that is sparse, written canonically and merged.

use twox_hash::XxHash3_64;

use super::{bad_state, check_whole};
use crate::Result;

const INDEX_BITS: u32 = 14;
const REGISTERS: usize = 1 << INDEX_BITS;
/// Bits of a hash that the rank comes from.
const RANK_BITS: usize = 64 - INDEX_BITS as usize;
/// All of them zero: one more than their number.
const RANK_MAX: u8 = RANK_BITS as u8 + 1;
/// Registers that a sparse sketch holds: 8 KiB in memory, half of a dense one.
const SPARSE_MAX: usize = 2048;
const SPARSE: u8 = 1;
const DENSE: u8 = 2;
/// Any number but zero, for ever.
const SEED: u64 = 0x6772_6973_746d_696c;

/// The registers.
#[derive(Debug, Clone)]
pub(super) enum Sketch {
    /// Those that are not zero, ascending: index, then rank in the lowest 8 bits.
    Sparse(Vec<u32>),
    Dense(Box<[u8; REGISTERS]>),
}

impl Default for Sketch {
    fn default() -> Self {
        Sketch::Sparse(Vec::new())
    }
}

impl Sketch {
    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Sketch::Sparse(entries) => entries.capacity() * size_of::<u32>(),
            Sketch::Dense(_) => REGISTERS,
        }
    }

    pub(super) fn add(&mut self, value: &[u8]) -> Result<()> {
        check_whole(value)?;
        let hash = XxHash3_64::oneshot_with_seed(SEED, value);
        let index = (hash >> RANK_BITS) as usize;
        // A bit behind the last stops the count of zeros.
        let rank = (hash << INDEX_BITS | 1 << (INDEX_BITS - 1)).leading_zeros() as u8 + 1;
        self.raise(index, rank);
        Ok(())
    }

    /// Raises a register to at least `rank`.
    fn raise(&mut self, index: usize, rank: u8) {
        match self {
            Sketch::Dense(registers) => {
                if let Some(register) = registers.get_mut(index) {
                    *register = rank.max(*register);
                }
            }
            Sketch::Sparse(entries) => {
                let entry = (index as u32) << 8 | u32::from(rank);
                let at = entries.partition_point(|entry| (entry >> 8) < index as u32);
                match entries.get_mut(at) {
                    Some(old) if *old >> 8 == index as u32 => *old = entry.max(*old),
                    _ => entries.insert(at, entry),
                }
                if entries.len() > SPARSE_MAX {
                    self.make_dense();
                }
            }
        }
    }

    #[cold]
    fn make_dense(&mut self) {
        let mut registers = Box::new([0; REGISTERS]);
        self.registers(|index, rank| registers[index] = rank);
        *self = Sketch::Dense(registers);
    }

    /// Each register that is not zero, in order.
    fn registers(&self, mut each: impl FnMut(usize, u8)) {
        match self {
            Sketch::Sparse(entries) => {
                for entry in entries {
                    each((entry >> 8) as usize, *entry as u8);
                }
            }
            Sketch::Dense(registers) => {
                for (index, rank) in registers.iter().enumerate().filter(|(_, rank)| **rank > 0) {
                    each(index, *rank);
                }
            }
        }
    }

    pub(super) fn merge(&mut self, other: &[u8]) -> Result<()> {
        match other {
            [SPARSE, entries @ ..] if entries.len() % 3 == 0 && entries.len() <= SPARSE_MAX * 3 => {
                let mut last = None;
                for entry in entries.as_chunks::<3>().0 {
                    let (index, rank) = (three(*entry) >> 6, (entry[2] & 0x3f));
                    if !(1..=RANK_MAX).contains(&rank) || index >= REGISTERS || last >= Some(index)
                    {
                        return Err(bad_state("a register of a sketch is out of range"));
                    }
                    self.raise(index, rank);
                    last = Some(index);
                }
                Ok(())
            }
            [DENSE, packed @ ..] if packed.len() == REGISTERS / 4 * 3 => {
                for (four, packed) in packed.as_chunks::<3>().0.iter().enumerate() {
                    let ranks = three(*packed);
                    for place in 0..4 {
                        let rank = (ranks >> (18 - 6 * place)) as u8 & 0x3f;
                        if rank > RANK_MAX {
                            return Err(bad_state("a register of a sketch is out of range"));
                        }
                        if rank > 0 {
                            self.raise(four * 4 + place, rank);
                        }
                    }
                }
                Ok(())
            }
            _ => Err(bad_state("a sketch has the wrong length")),
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Sketch::Sparse(entries) if entries.is_empty() => {}
            Sketch::Sparse(_) => {
                out.push(SPARSE);
                self.registers(|index, rank| {
                    let entry = (index as u32) << 6 | u32::from(rank);
                    out.extend_from_slice(&entry.to_be_bytes()[1..]);
                });
            }
            Sketch::Dense(registers) => {
                out.push(DENSE);
                for four in registers.as_chunks::<4>().0 {
                    let packed = four
                        .iter()
                        .fold(0, |packed, rank| packed << 6 | u32::from(*rank));
                    out.extend_from_slice(&packed.to_be_bytes()[1..]);
                }
            }
        }
    }

    /// About how many different values there were. Additions, multiplications and square roots only, which are the same on every machine.
    pub(super) fn estimate(&self) -> u64 {
        let mut counts = [0_u32; RANK_MAX as usize + 1];
        let mut zeros = REGISTERS as u32;
        self.registers(|_, rank| {
            counts[usize::from(rank)] += 1;
            zeros -= 1;
        });
        let all = REGISTERS as f64;
        let full = f64::from(counts[usize::from(RANK_MAX)]);
        let mut sum = all * tau(1.0 - full / all);
        for count in counts[1..usize::from(RANK_MAX)].iter().rev() {
            sum = 0.5 * (sum + f64::from(*count));
        }
        sum += all * sigma(f64::from(zeros) / all);
        (all * all / (2.0 * std::f64::consts::LN_2) / sum).round() as u64
    }
}

fn three(bytes: [u8; 3]) -> usize {
    let [a, b, c] = bytes.map(usize::from);
    a << 16 | b << 8 | c
}

/// Ertl's σ: x + Σ x^(2^k) · 2^(k-1).
fn sigma(mut x: f64) -> f64 {
    if x >= 1.0 {
        return f64::INFINITY;
    }
    let (mut power, mut sum) = (1.0, x);
    loop {
        x *= x;
        let before = sum;
        sum += x * power;
        power += power;
        if sum == before {
            return sum;
        }
    }
}

/// Ertl's τ: (1 - x - Σ (1 - x^(2^-k))² · 2^-k) / 3.
fn tau(mut x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return 0.0;
    }
    let (mut power, mut sum) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = sum;
        power *= 0.5;
        sum -= (1.0 - x) * (1.0 - x) * power;
        if sum == before {
            return sum / 3.0;
        }
    }
}

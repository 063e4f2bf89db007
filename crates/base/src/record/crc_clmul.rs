//! CRC-32 (IEEE) of many records of one length, with carry-less multiplication.
//!
//! A CRC is linear. With the record cut into 8-byte words w, each word's share of the remainder is
//! w(x) * x^e mod P, where e follows from the bits behind the word. For a fixed length all those powers are
//! constants, so that no multiplication waits for another:
//!
//! ```text
//!   record   w0      w1      w2    ...   wlast (its bytes beyond the one before)
//!            x k0    x k1    x k2        x klast      one carry-less multiplication each
//!            +-------+-------+-----------+
//!                        XOR                          96 bits
//!                  fold 96 -> 64 -> mod P             three more
//! ```
//!
//! Folding block after block (the usual way) is a chain of dependent multiplications, which only pays on
//! long buffers. Source for the reduction: Gopal et al., "Fast CRC Computation for Generic Polynomials Using
//! PCLMULQDQ", Intel 2009. All polynomials are bit-reflected: bit i of a 64-bit word stands for x^(63-i).
//!
//! Decision: docs/decisions/checksum-kernel.md.

use std::sync::LazyLock;

/// The kernel for one record length; exists only where the processor has what it needs.
#[derive(Debug, Clone)]
pub(super) struct CrcFixed {
    record_bytes: usize,
    /// Two multipliers for each 16 bytes of the record; then one for a single word behind them, and one for the
    /// word that ends the record.
    multipliers: Vec<[u64; 2]>,
    /// Which bits of the last word do not belong to the word before it.
    last_mask: u64,
    /// The CRC of a record of zeros: what initial value and final complement contribute.
    zeros_crc: u32,
    /// The way of wider registers, where there is one.
    #[cfg(target_arch = "x86_64")]
    wide: Option<wide::Wide>,
}

/// The longest record for which a multiplier per word is kept; beyond it `crc32fast` folds well.
const BYTES_MAX: usize = 1024;

impl CrcFixed {
    /// The kernel for records of `record_bytes` bytes, or `None` where the plain way is as good or the only one.
    pub(super) fn new(record_bytes: usize) -> Option<Self> {
        if !(8..=BYTES_MAX).contains(&record_bytes) || !supported() {
            return None;
        }
        let zeros_crc = crc32fast::hash(&vec![0; record_bytes]);
        let multiplier = |word: usize| power_of_x(8 * (record_bytes - 8 * word - 8) + 31);
        let pairs = record_bytes / 16;
        let mut multipliers: Vec<[u64; 2]> = (0..pairs)
            .map(|pair| [multiplier(2 * pair), multiplier(2 * pair + 1)])
            .collect();
        let odd = if record_bytes % 16 >= 8 {
            multiplier(2 * pairs)
        } else {
            0
        };
        multipliers.push([odd, power_of_x(31)]);
        let tail_bytes = record_bytes % 8;
        let last_mask = match tail_bytes {
            0 => 0,
            bytes => u64::MAX << (64 - 8 * bytes),
        };
        Some(CrcFixed {
            record_bytes,
            multipliers,
            last_mask,
            zeros_crc,
            #[cfg(target_arch = "x86_64")]
            wide: wide::Wide::new(record_bytes, zeros_crc),
        })
    }

    /// The sum of the CRCs of all records in `data`.
    pub(super) fn sum(&self, data: &[u8]) -> u128 {
        #[cfg(target_arch = "x86_64")]
        if let Some(wide) = &self.wide {
            let (most, rest) = data.split_at(data.len() / wide.step_bytes() * wide.step_bytes());
            // SAFETY: a `Wide` exists only where its features were seen, and a `CrcFixed` likewise.
            return unsafe { wide::sum(wide, most) + x86::sum(self, rest) };
        }
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a `CrcFixed` exists only where `supported()` saw both features.
        return unsafe { x86::sum(self, data) };
        #[cfg(not(target_arch = "x86_64"))]
        unreachable!("no kernel is made on this processor: {} bytes", data.len())
    }
}

/// The CRC of one record of any length.
///
/// A line has tens of bytes, where `crc32fast` goes by tables: the multipliers of all lengths up to
/// [`SHORT_BYTES_MAX`] fit in two kilobytes.
#[inline]
pub(super) fn crc_of(record: &[u8]) -> u32 {
    match &*SHORT {
        Some(kernel) if (8..=SHORT_BYTES_MAX).contains(&record.len()) => kernel.crc(record),
        _ => crc32fast::hash(record),
    }
}

/// The longest record that is taken by the words of all lengths.
const SHORT_BYTES_MAX: usize = 256;

const SHORT_WORDS: usize = SHORT_BYTES_MAX / 8;

static SHORT: LazyLock<Option<CrcShort>> = LazyLock::new(CrcShort::new);

/// The kernel for records of any length up to [`SHORT_BYTES_MAX`].
struct CrcShort {
    /// For each number of bytes behind the last whole word: the multipliers of words, those of the last ones last.
    rows: [[u64; SHORT_WORDS]; 8],
    /// The CRC of a record of zeros, by its length.
    zeros: Vec<u32>,
}

impl CrcShort {
    fn new() -> Option<Self> {
        if !supported() {
            return None;
        }
        let mut rows = [[0; SHORT_WORDS]; 8];
        for (tail, row) in rows.iter_mut().enumerate() {
            for (behind, multiplier) in row.iter_mut().rev().enumerate() {
                *multiplier = power_of_x(8 * (tail + 8 * behind) + 31);
            }
        }
        let zeros = [0; SHORT_BYTES_MAX];
        let zeros = (0..=SHORT_BYTES_MAX).map(|length| crc32fast::hash(&zeros[..length]));
        Some(CrcShort {
            rows,
            zeros: zeros.collect(),
        })
    }

    /// The CRC of a record of 8 to [`SHORT_BYTES_MAX`] bytes.
    #[inline]
    fn crc(&self, record: &[u8]) -> u32 {
        let words = record.len() / 8;
        let row = &self.rows[record.len() % 8][SHORT_WORDS - words..];
        let last = self.rows[0][SHORT_WORDS - 1];
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a `CrcShort` exists only where `supported()` saw both features.
        return unsafe { x86::short(record, row, last) } ^ self.zeros[record.len()];
        #[cfg(not(target_arch = "x86_64"))]
        unreachable!("no kernel is made on this processor: {row:?} {last}")
    }
}

/// Whether this processor can run the kernel. Elsewhere (aarch64 has CRC-32 instructions) `crc32fast` is used.
fn supported() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("pclmulqdq") && is_x86_feature_detected!("sse4.1");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// P(x) without its x^32, reflected in 32 bits.
const POLYNOMIAL: u32 = 0xEDB8_8320;

/// x^exponent mod P, reflected in the upper half of 64 bits.
fn power_of_x(exponent: usize) -> u64 {
    let mut power: u32 = 1 << 31; // x^0
    for _ in 0..exponent {
        let carry = power & 1;
        power = (power >> 1) ^ (POLYNOMIAL * carry);
    }
    u64::from(power) << 32
}

#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(target_arch = "x86_64")]
mod wide;

#[cfg(test)]
mod tests {
    use super::*;

    /// Every length, below and beyond those of the kernel too, and lines at any place in memory.
    #[test]
    fn short_records_have_the_crc_of_the_plain_way() {
        let mut state = 7_u64;
        let data: Vec<u8> = (0..SHORT_BYTES_MAX + 80)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        for length in 0..=SHORT_BYTES_MAX + 40 {
            for start in [0, 1, 7, 40] {
                let record = &data[start..start + length];
                assert_eq!(crc_of(record), crc32fast::hash(record), "{length} bytes");
            }
        }
    }
}

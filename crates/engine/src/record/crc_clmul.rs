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
mod x86 {
    use super::{CrcFixed, POLYNOMIAL};
    use std::arch::x86_64::{
        __m128i, _mm_and_si128, _mm_clmulepi64_si128, _mm_cvtsi64_si128, _mm_extract_epi32,
        _mm_loadu_si128, _mm_set_epi64x, _mm_setzero_si128, _mm_srli_si128, _mm_xor_si128,
    };

    /// x^64 mod P, reflected in 32 bits and shifted up by the one bit that a reflected product loses.
    pub(super) const FOLD_64: i64 = 0x1_63cd_6124;
    /// floor(x^64 / P), reflected: Barrett's constant.
    pub(super) const BARRETT: i64 = 0x1_f701_1641;
    /// P, reflected in 33 bits.
    pub(super) const P: i64 = ((POLYNOMIAL as i64) << 1) | 1;

    /// The sum over all records.
    #[target_feature(enable = "pclmulqdq,sse4.1")]
    pub(super) fn sum(kernel: &CrcFixed, data: &[u8]) -> u128 {
        let mut total = 0_u128;
        if let (100, Some(multipliers)) = (kernel.record_bytes, kernel.multipliers.first_chunk()) {
            // The sort benchmark's length: constant trip counts let the compiler unroll.
            let multipliers: &[[u64; 2]; 7] = multipliers;
            let (records, _) = data.as_chunks::<100>();
            for record in records {
                let product = products(record, multipliers, kernel.last_mask);
                total += u128::from(reduce(product) ^ kernel.zeros_crc);
            }
            return total;
        }
        for record in data.chunks_exact(kernel.record_bytes) {
            let product = products(record, &kernel.multipliers, kernel.last_mask);
            total += u128::from(reduce(product) ^ kernel.zeros_crc);
        }
        total
    }

    /// The CRC of one record, but for what a record of zeros has: `row` has a multiplier for each of its whole words,
    /// `last` is that of a word that ends it.
    #[inline]
    #[target_feature(enable = "pclmulqdq,sse4.1")]
    pub(super) fn short(record: &[u8], row: &[u64], last: u64) -> u32 {
        let (pairs, rest) = record.as_chunks::<16>();
        let (multipliers, odd) = row.as_chunks::<2>();
        let mut product = _mm_setzero_si128();
        for (pair, by) in pairs.iter().zip(multipliers) {
            let (two, by) = (load(pair), load_multipliers(by));
            product = _mm_xor_si128(product, _mm_clmulepi64_si128::<0x00>(two, by));
            product = _mm_xor_si128(product, _mm_clmulepi64_si128::<0x11>(two, by));
        }
        if let (Some(word), Some(by)) = (rest.first_chunk::<8>(), odd.first()) {
            product = _mm_xor_si128(product, multiply(i64::from_le_bytes(*word), *by));
        }
        let tail = record.len() % 8;
        if let (true, Some(word)) = (tail > 0, record.last_chunk::<8>()) {
            let word = i64::from_le_bytes(*word) & (-1 << (64 - 8 * tail));
            product = _mm_xor_si128(product, multiply(word, last));
        }
        reduce(product)
    }

    /// The XOR of every word times its multiplier: the record times x^32, not yet reduced.
    #[inline]
    #[target_feature(enable = "pclmulqdq,sse4.1")]
    fn products(record: &[u8], multipliers: &[[u64; 2]], last_mask: u64) -> __m128i {
        let (pairs, rest) = record.as_chunks::<16>();
        let mut product = _mm_setzero_si128();
        for (pair, by) in pairs.iter().zip(multipliers) {
            let (two, by) = (load(pair), load_multipliers(by));
            product = _mm_xor_si128(product, _mm_clmulepi64_si128::<0x00>(two, by));
            product = _mm_xor_si128(product, _mm_clmulepi64_si128::<0x11>(two, by));
        }
        let [odd, last] = multipliers[pairs.len()];
        if let Some(word) = rest.first_chunk::<8>() {
            product = _mm_xor_si128(product, multiply(i64::from_le_bytes(*word), odd));
        }
        if let (true, Some(word)) = (last_mask != 0, record.last_chunk::<8>()) {
            let word = i64::from_le_bytes(*word) & last_mask as i64;
            product = _mm_xor_si128(product, multiply(word, last));
        }
        product
    }

    #[inline]
    #[target_feature(enable = "pclmulqdq,sse4.1")]
    fn load(bytes: &[u8; 16]) -> __m128i {
        // SAFETY: sixteen bytes are there, and the load asks for no alignment. (Put together from two integers it
        // would take the one port that multiplies: 1.6 x the time.)
        unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "pclmulqdq,sse4.1")]
    fn load_multipliers(pair: &[u64; 2]) -> __m128i {
        // SAFETY: as above.
        unsafe { _mm_loadu_si128(pair.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "pclmulqdq,sse4.1")]
    fn multiply(word: i64, by: u64) -> __m128i {
        _mm_clmulepi64_si128::<0x00>(_mm_cvtsi64_si128(word), _mm_cvtsi64_si128(by as i64))
    }

    /// The remainder mod P of 96 bits that stand in bits 32 to 127.
    #[inline]
    #[target_feature(enable = "pclmulqdq,sse4.1")]
    fn reduce(product: __m128i) -> u32 {
        let low_half = _mm_set_epi64x(0, 0xFFFF_FFFF);
        // Fold the 32 highest powers (bits 32 to 63) onto the 64 lower ones.
        let high = _mm_and_si128(_mm_srli_si128::<4>(product), low_half);
        let folded = _mm_clmulepi64_si128::<0x00>(high, _mm_set_epi64x(0, FOLD_64));
        let rest = _mm_xor_si128(_mm_srli_si128::<8>(product), folded);
        // Barrett: the quotient by P, then what is left of it.
        let constants = _mm_set_epi64x(BARRETT, P);
        let quotient = _mm_clmulepi64_si128::<0x10>(_mm_and_si128(rest, low_half), constants);
        let multiple = _mm_clmulepi64_si128::<0x00>(_mm_and_si128(quotient, low_half), constants);
        _mm_extract_epi32::<1>(_mm_xor_si128(rest, multiple)) as u32
    }
}

/// 512 bits at once, for records of 64 to 128 bytes: a third of the time.
///
/// ```text
///   record   | first 64 bytes                  |
///                          | last 64 bytes, what overlaps masked out |     two loads
///   products   4 x 128 bits each, added up; four records' sums are turned so that
///              each lane holds one record, and the four are reduced at once
/// ```
///
/// (Putting one word of four records into a register costs more shuffles than the multiplications save.)
#[cfg(target_arch = "x86_64")]
mod wide {
    use super::power_of_x;
    use super::x86::{BARRETT, FOLD_64, P};
    use std::arch::x86_64::{
        __m512i, _mm512_add_epi64, _mm512_and_si512, _mm512_bsrli_epi128, _mm512_clmulepi64_epi128,
        _mm512_loadu_si512, _mm512_maskz_loadu_epi8, _mm512_set_epi64, _mm512_set1_epi64,
        _mm512_setzero_si512, _mm512_shuffle_i64x2, _mm512_srli_epi64, _mm512_storeu_si512,
        _mm512_ternarylogic_epi64, _mm512_xor_si512,
    };

    /// Records that are reduced together.
    const ABREAST: usize = 4;

    const LOAD_BYTES: usize = 64;

    /// The constants for one record length.
    #[derive(Debug, Clone)]
    pub(super) struct Wide {
        record_bytes: usize,
        /// The multipliers of the words of the first load, and of the last.
        first: [u64; 8],
        last: [u64; 8],
        /// Which bytes of the last load are not in the first.
        last_mask: u64,
        zeros_crc: u32,
    }

    impl Wide {
        /// The constants, where length and processor allow.
        pub(super) fn new(record_bytes: usize, zeros_crc: u32) -> Option<Self> {
            let supported = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("vpclmulqdq");
            if !supported || !(LOAD_BYTES..=2 * LOAD_BYTES).contains(&record_bytes) {
                return None;
            }
            let start = record_bytes - LOAD_BYTES;
            let multiplier = |at: usize| power_of_x(8 * (record_bytes - at - 8) + 31);
            Some(Wide {
                record_bytes,
                first: std::array::from_fn(|word| multiplier(8 * word)),
                last: std::array::from_fn(|word| multiplier(start + 8 * word)),
                last_mask: u64::MAX
                    .checked_shl((LOAD_BYTES - start) as u32)
                    .unwrap_or(0),
                zeros_crc,
            })
        }

        /// Data come in multiples of this.
        pub(super) fn step_bytes(&self) -> usize {
            ABREAST * self.record_bytes
        }
    }

    /// The sum of the CRCs of all records in `data`, which are a multiple of four.
    #[target_feature(enable = "avx512f,avx512bw,vpclmulqdq")]
    pub(super) fn sum(wide: &Wide, data: &[u8]) -> u128 {
        let constants = Constants::of(wide);
        let mut total = _mm512_setzero_si512();
        let mut groups = data.chunks_exact(wide.step_bytes());
        for group in &mut groups {
            let mut records = group.chunks_exact(wide.record_bytes);
            let mut next = || match records.next() {
                Some(record) => products(&constants, record),
                None => _mm512_setzero_si512(),
            };
            let (a, b, c, d) = (next(), next(), next(), next());
            let crcs = reduce(&constants, add_lanes(add_halves(a, b), add_halves(c, d)));
            total = _mm512_add_epi64(total, crcs);
        }
        let mut lanes = [0_u64; 8];
        // SAFETY: the array has the register's 64 bytes, and the store asks for no alignment.
        unsafe { _mm512_storeu_si512(lanes.as_mut_ptr().cast(), total) };
        // The sum of each lane stands in its first word; 2^32 records would be needed to carry out of it.
        lanes.iter().step_by(2).map(|sum| u128::from(*sum)).sum()
    }

    /// What stays in registers all the while.
    struct Constants {
        first: __m512i,
        last: __m512i,
        last_mask: u64,
        low_half: __m512i,
        fold: __m512i,
        barrett: __m512i,
        zeros_crc: __m512i,
    }

    impl Constants {
        #[target_feature(enable = "avx512f")]
        fn of(wide: &Wide) -> Self {
            let pair = |high, low| _mm512_set_epi64(high, low, high, low, high, low, high, low);
            Constants {
                first: load(&wide.first),
                last: load(&wide.last),
                last_mask: wide.last_mask,
                low_half: pair(0, 0xFFFF_FFFF),
                fold: pair(0, FOLD_64),
                barrett: pair(BARRETT, P),
                zeros_crc: _mm512_set1_epi64(i64::from(wide.zeros_crc)),
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load(words: &[u64; 8]) -> __m512i {
        // SAFETY: 64 bytes are there, and the load asks for no alignment.
        unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
    }

    /// Every word times its multiplier, added up in four lanes.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,vpclmulqdq")]
    fn products(constants: &Constants, record: &[u8]) -> __m512i {
        let (Some(first), Some(last)) = (
            record.first_chunk::<LOAD_BYTES>(),
            record.last_chunk::<LOAD_BYTES>(),
        ) else {
            return _mm512_setzero_si512(); // no record is that short
        };
        // SAFETY: 64 bytes each are there, and the loads ask for no alignment.
        let (first, last) = unsafe {
            (
                _mm512_loadu_si512(first.as_ptr().cast()),
                _mm512_maskz_loadu_epi8(constants.last_mask, last.as_ptr().cast()),
            )
        };
        let (a, b) = (
            _mm512_clmulepi64_epi128::<0x00>(first, constants.first),
            _mm512_clmulepi64_epi128::<0x11>(first, constants.first),
        );
        let (c, d) = (
            _mm512_clmulepi64_epi128::<0x00>(last, constants.last),
            _mm512_clmulepi64_epi128::<0x11>(last, constants.last),
        );
        // 0x96: the XOR of three.
        _mm512_xor_si512(a, _mm512_ternarylogic_epi64::<0x96>(b, c, d))
    }

    /// From lanes a0 a1 a2 a3 and b0 b1 b2 b3: a0+a2, a1+a3, b0+b2, b1+b3.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn add_halves(a: __m512i, b: __m512i) -> __m512i {
        let low = _mm512_shuffle_i64x2::<0b01_00_01_00>(a, b);
        let high = _mm512_shuffle_i64x2::<0b11_10_11_10>(a, b);
        _mm512_xor_si512(low, high)
    }

    /// From lanes a a b b and c c d d: a+a, b+b, c+c, d+d.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn add_lanes(ab: __m512i, cd: __m512i) -> __m512i {
        let even = _mm512_shuffle_i64x2::<0b10_00_10_00>(ab, cd);
        let odd = _mm512_shuffle_i64x2::<0b11_01_11_01>(ab, cd);
        _mm512_xor_si512(even, odd)
    }

    /// The CRC of each lane's record, in the lane's first word; what stands in the second means nothing.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,vpclmulqdq")]
    fn reduce(constants: &Constants, product: __m512i) -> __m512i {
        let low_half = constants.low_half;
        let high = _mm512_and_si512(_mm512_bsrli_epi128::<4>(product), low_half);
        let folded = _mm512_clmulepi64_epi128::<0x00>(high, constants.fold);
        let rest = _mm512_xor_si512(_mm512_bsrli_epi128::<8>(product), folded);
        let quotient =
            _mm512_clmulepi64_epi128::<0x10>(_mm512_and_si512(rest, low_half), constants.barrett);
        let multiple = _mm512_clmulepi64_epi128::<0x00>(
            _mm512_and_si512(quotient, low_half),
            constants.barrett,
        );
        let crcs = _mm512_srli_epi64::<32>(_mm512_xor_si512(rest, multiple));
        _mm512_xor_si512(crcs, constants.zeros_crc)
    }
}

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

//! 512 bits at once, for records of 64 to 128 bytes: a third of the time.
//!
//! ```text
//!   record   | first 64 bytes                  |
//!                          | last 64 bytes, what overlaps masked out |     two loads
//!   products   4 x 128 bits each, added up; four records' sums are turned so that
//!              each lane holds one record, and the four are reduced at once
//! ```
//!
//! (Putting one word of four records into a register costs more shuffles than the multiplications save.)

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
    let multiple =
        _mm512_clmulepi64_epi128::<0x00>(_mm512_and_si512(quotient, low_half), constants.barrett);
    let crcs = _mm512_srli_epi64::<32>(_mm512_xor_si512(rest, multiple));
    _mm512_xor_si512(crcs, constants.zeros_crc)
}

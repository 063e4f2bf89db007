//! The kernels with registers of 128 bits.

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

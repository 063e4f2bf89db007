//! Two hot loops over bytes: finding a byte, and the sum that Java's hashes are made of. On x86-64 they take sixteen bytes at
//! once with SSE2, which every such processor has. Other architectures take the bytes one by one.

/// Bytes that [`equal_bits`] compares in one call: one for each bit of its mask.
pub const BLOCK_BYTES: usize = u64::BITS as usize;

/// A mask of the bytes that equal `wanted`: the lowest bit is for the first byte.
#[inline]
pub fn equal_bits(block: &[u8; BLOCK_BYTES], wanted: u8) -> u64 {
    #[cfg(target_arch = "x86_64")]
    return x86::equal_bits(block, wanted);
    #[cfg(not(target_arch = "x86_64"))]
    plain::equal_bits(block, wanted)
}

/// What sixteen bytes add to a hash of Java (Hadoop's `WritableComparator.hashBytes`): the sum of the bytes, as signed numbers,
/// each times a power of 31, the last one times 1. The sum wraps at 32 bits.
#[inline]
pub fn sum_by_powers_of_31(bytes: &[u8; 16]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    return x86::sum_by_powers_of_31(bytes);
    #[cfg(not(target_arch = "x86_64"))]
    plain::sum_by_powers_of_31(bytes)
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m128i, _mm_add_epi32, _mm_cmpeq_epi8, _mm_cmpgt_epi8, _mm_cvtsi128_si32, _mm_loadu_si128,
        _mm_madd_epi16, _mm_movemask_epi8, _mm_mul_epu32, _mm_packs_epi32, _mm_set1_epi8,
        _mm_set1_epi32, _mm_set1_epi64x, _mm_setzero_si128, _mm_srli_epi64, _mm_unpackhi_epi8,
        _mm_unpackhi_epi64, _mm_unpacklo_epi8,
    };

    use super::BLOCK_BYTES;

    #[inline]
    fn load(bytes: &[u8; 16]) -> __m128i {
        // SAFETY: there are sixteen bytes, which may lie anywhere; every x86-64 has SSE2.
        unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
    }

    #[inline]
    pub(super) fn equal_bits(block: &[u8; BLOCK_BYTES], wanted: u8) -> u64 {
        let mut bits = 0;
        for (number, sixteen) in block.as_chunks::<16>().0.iter().enumerate() {
            let here = load(sixteen);
            // SAFETY: every x86-64 has SSE2.
            let equal = unsafe {
                _mm_movemask_epi8(_mm_cmpeq_epi8(here, _mm_set1_epi8(wanted.cast_signed())))
            };
            bits |= u64::from(equal.cast_unsigned()) << (16 * number);
        }
        bits
    }

    /// Combines neighbours: two bytes, then four, then eight; at the end both halves.
    #[inline]
    pub(super) fn sum_by_powers_of_31(bytes: &[u8; 16]) -> u32 {
        const TWO: i32 = 31 | (1 << 16);
        const FOUR: i32 = (31 * 31) | (1 << 16);
        const EIGHT: i64 = 31 * 31 * 31 * 31;
        let bytes = load(bytes);
        // SAFETY: every x86-64 has SSE2.
        let (first, last) = unsafe {
            let signs = _mm_cmpgt_epi8(_mm_setzero_si128(), bytes);
            let two = [
                _mm_unpacklo_epi8(bytes, signs),
                _mm_unpackhi_epi8(bytes, signs),
            ]
            .map(|words| _mm_madd_epi16(words, _mm_set1_epi32(TWO)));
            let [low, high] = two; // a sum of two lies within ±4096: 16 bits hold it
            let four = _mm_madd_epi16(_mm_packs_epi32(low, high), _mm_set1_epi32(FOUR));
            let ahead = _mm_mul_epu32(four, _mm_set1_epi64x(EIGHT));
            let eight = _mm_add_epi32(ahead, _mm_srli_epi64::<32>(four));
            (
                _mm_cvtsi128_si32(eight),
                _mm_cvtsi128_si32(_mm_unpackhi_epi64(eight, eight)),
            )
        };
        let (first, last) = (first.cast_unsigned(), last.cast_unsigned());
        first
            .wrapping_mul(31_u32.wrapping_pow(8))
            .wrapping_add(last)
    }
}

#[cfg(any(test, not(target_arch = "x86_64")))]
mod plain {
    use super::BLOCK_BYTES;

    #[inline]
    pub(super) fn equal_bits(block: &[u8; BLOCK_BYTES], wanted: u8) -> u64 {
        let bytes = block.iter().zip(0..);
        bytes.fold(0, |bits, (byte, at)| {
            bits | u64::from(*byte == wanted) << at
        })
    }

    #[inline]
    pub(super) fn sum_by_powers_of_31(bytes: &[u8; 16]) -> u32 {
        bytes.iter().fold(0_u32, |sum, byte| {
            sum.wrapping_mul(31)
                .wrapping_add(i32::from(byte.cast_signed()).cast_unsigned())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn registers_find_what_a_loop_finds(block: [u8; 32], wanted: u8, few: bool) {
            let byte = |at: usize| if few { block[at % 32] % 3 } else { block[at % 32] };
            let block = std::array::from_fn(byte);
            let wanted = if few { wanted % 3 } else { wanted };
            prop_assert_eq!(equal_bits(&block, wanted), plain::equal_bits(&block, wanted));
        }

        #[test]
        fn registers_add_up_what_a_loop_does(bytes: [u8; 16]) {
            prop_assert_eq!(sum_by_powers_of_31(&bytes), plain::sum_by_powers_of_31(&bytes));
        }
    }

    #[test]
    fn extreme_bytes_wrap_as_they_do_in_a_loop() {
        for bytes in [[0x80; 16], [0x7F; 16], [0xFF; 16]] {
            assert_eq!(
                sum_by_powers_of_31(&bytes),
                plain::sum_by_powers_of_31(&bytes)
            );
        }
    }
}

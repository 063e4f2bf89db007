//! Where two bytes stand in text: a bit for each of 64 bytes at once, since marks are near to each other in short lines
//! and a search for each of them costs more than what lies between.
//!
//! ```text
//!   text     w o r d . 1 ; n e x t . 1 ; ...       . the one, ; the other
//!   bits     0 0 0 0 1 0 1 0 0 0 0 1 0 1 ...       taken from the lowest on
//! ```

use crate::error::Result;

/// Bytes that are looked at at once: as many as a word has bits.
const BLOCK_BYTES: usize = u64::BITS as usize;

/// Calls `take` with the place of each `one` and each `other` of `text`, in order, and whether it is the `other`.
#[inline]
pub(super) fn each_mark(
    text: &[u8],
    one: u8,
    other: u8,
    mut take: impl FnMut(usize, bool) -> Result<()>,
) -> Result<()> {
    let (blocks, rest) = text.as_chunks::<BLOCK_BYTES>();
    let mut last = [0; BLOCK_BYTES];
    last[..rest.len()].copy_from_slice(rest);
    let there = (1 << rest.len()) - 1;
    let blocks = blocks.iter().map(|block| (block, u64::MAX));
    let mut at = 0;
    for (block, there) in blocks.chain([(&last, there)]) {
        let others = bits(block, other) & there;
        let mut marks = (bits(block, one) | others) & there;
        while marks != 0 {
            let bit = marks.trailing_zeros();
            take(at + bit as usize, others >> bit & 1 != 0)?;
            marks &= marks - 1;
        }
        at += BLOCK_BYTES;
    }
    Ok(())
}

/// A bit for each byte that is `wanted`, the first lowest.
#[inline]
fn bits(block: &[u8; BLOCK_BYTES], wanted: u8) -> u64 {
    /// Moves the lowest bits of eight bytes to the highest byte, the first byte's to its lowest bit.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let mut is = [0; BLOCK_BYTES];
    for (is, byte) in is.iter_mut().zip(block) {
        *is = u8::from(*byte == wanted);
    }
    let mut bits = 0;
    for (number, eight) in is.as_chunks::<8>().0.iter().enumerate() {
        bits |= (u64::from_le_bytes(*eight).wrapping_mul(GATHER) >> 56) << (8 * number);
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// As a look at each byte finds them; zeros, too, which stand behind the end.
        #[test]
        fn marks_are_those_of_a_plain_search(text in "[ab\t\n\0]{0,200}", one in prop_oneof![Just(b'\t'), Just(0)]) {
            let mut found = Vec::new();
            let keep = |at, is_other| {
                found.push((at, is_other));
                Ok(())
            };
            each_mark(text.as_bytes(), one, b'\n', keep).unwrap();
            let is_mark = |(_, byte): &(usize, u8)| [one, b'\n'].contains(byte);
            let want = text.bytes().enumerate().filter(is_mark);
            prop_assert_eq!(found, want.map(|(at, byte)| (at, byte == b'\n')).collect::<Vec<_>>());
        }
    }
}

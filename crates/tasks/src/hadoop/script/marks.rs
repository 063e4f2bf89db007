//! Where two bytes stand in text: a bit for each of 64 bytes at once, since marks are near to each other in short lines
//! and a search for each of them costs more than what lies between.
//!
//! ```text
//!   text     w o r d . 1 ; n e x t . 1 ; ...       . the one, ; the other
//!   bits     0 0 0 0 1 0 1 0 0 0 0 1 0 1 ...       taken from the lowest on
//! ```

use gristmill_base::error::Result;
use gristmill_base::sys::vectors::{BLOCK_BYTES, equal_bits};

/// Calls `take` with the place of each `one` and each `other` of `text`, in order, and whether it is the `other`.
#[inline]
pub(super) fn each_mark(
    text: &[u8],
    one: u8,
    other: u8,
    mut take: impl FnMut(usize, bool) -> Result<()>,
) -> Result<()> {
    let mut at = 0;
    each_block(text, |block, there| {
        let others = equal_bits(block, other) & there;
        let mut marks = (equal_bits(block, one) | others) & there;
        while marks != 0 {
            let bit = marks.trailing_zeros();
            take(at + bit as usize, others >> bit & 1 != 0)?;
            marks &= marks - 1;
        }
        at += BLOCK_BYTES;
        Ok(())
    })
}

/// Calls `take` with the place of each `end` of `text` that has no `one` between it and the `end` before it; gives the
/// number of all ends. The two are not the same byte.
///
/// ```text
///   text           a b . c ; d e ; f . . ;      . the one, ; the end
///   ones           0 0 1 0 0 0 0 0 0 1 1 0
///   no ends        1 1 1 1 0 1 1 0 1 1 1 0      added, the lowest first: what is carried from a one stops at its end
///   sum, of ends           1     0       1      the second has none
/// ```
#[inline]
pub(super) fn each_bare(
    text: &[u8],
    one: u8,
    end: u8,
    mut take: impl FnMut(usize) -> Result<()>,
) -> Result<u64> {
    let (mut at, mut count, mut carried) = (0, 0, false);
    each_block(text, |block, there| {
        let ends = equal_bits(block, end) & there;
        let (sum, first) = (equal_bits(block, one) & there).overflowing_add(!ends);
        let (sum, second) = sum.overflowing_add(u64::from(carried));
        carried = first || second;
        count += u64::from(ends.count_ones());
        let mut bare = ends & !sum;
        while bare != 0 {
            take(at + bare.trailing_zeros() as usize)?;
            bare &= bare - 1;
        }
        at += BLOCK_BYTES;
        Ok(())
    })?;
    Ok(count)
}

/// Calls `look` with each block of `text`, and a bit for each of its bytes that are there: the last may be short.
#[inline]
fn each_block(
    text: &[u8],
    mut look: impl FnMut(&[u8; BLOCK_BYTES], u64) -> Result<()>,
) -> Result<()> {
    let (blocks, rest) = text.as_chunks::<BLOCK_BYTES>();
    for block in blocks {
        look(block, u64::MAX)?;
    }
    let mut last = [0; BLOCK_BYTES];
    last[..rest.len()].copy_from_slice(rest);
    look(&last, (1 << rest.len()) - 1)
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

        /// As a look at each line finds them.
        #[test]
        fn bare_ends_are_those_of_lines_without_a_mark(
            text in "[ab\t\n\0]{0,200}|[a\t]{60,70}\n{0,3}a{60,70}\n",
            one in prop_oneof![Just(b'\t'), Just(0)],
        ) {
            let mut found = Vec::new();
            let keep = |at| {
                found.push(at);
                Ok(())
            };
            let count = each_bare(text.as_bytes(), one, b'\n', keep).unwrap();
            let (mut at, mut want, mut ends) = (0, Vec::new(), 0);
            for line in text.as_bytes().split_inclusive(|byte| *byte == b'\n') {
                at += line.len();
                if line.ends_with(b"\n") {
                    ends += 1;
                    if !line.contains(&one) {
                        want.push(at - 1);
                    }
                }
            }
            prop_assert_eq!((found, count), (want, ends));
        }
    }
}

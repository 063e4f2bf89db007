//! Finds the words of a text, 64 bytes at a time: which bytes stand between words becomes the bits of an integer.
//!
//! ```text
//!   text      t o _ b e _ _ o r
//!   between   0 0 1 0 0 1 1 0 0      a bit for each byte
//!   begins    1 0 0 1 0 0 0 1 0      a bit that is 0 behind one that is 1
//!   ends      0 0 1 0 0 1 0 0 0      a bit that is 1 behind one that is 0
//! ```
//!
//! A word costs two searches for a bit, and none of its bytes is looked at by itself. The compiler makes vector instructions
//! of the loop over bytes.
//!
//! Decision: docs/decisions/short-keys.md.

use std::ops::Range;

use gristmill_base::error::Result;

/// Bytes whose bits are one integer.
const BLOCK_BYTES: usize = 64;

/// Whether a byte stands between words: a space, a tab, LF, FF or CR, as in Java's `StringTokenizer`.
#[inline]
fn is_between(byte: u8) -> bool {
    byte == b' ' || (byte.wrapping_sub(b'\t') <= 4 && byte != 0x0b)
}

/// Hands on where each word of `text` lies, in order.
///
/// # Errors
/// That of `word`, which ends the search.
///
/// ```
/// use gristmill_storage::lines::words::each_word;
/// let (text, mut words) = (b"to be\tor\nnot", Vec::new());
/// each_word(text, |word| {
///     words.push(&text[word]);
///     Ok(())
/// })?;
/// assert_eq!(words, [&b"to"[..], b"be", b"or", b"not"]);
/// # Ok::<(), gristmill_base::Error>(())
/// ```
#[inline]
pub fn each_word(text: &[u8], mut word: impl FnMut(Range<usize>) -> Result<()>) -> Result<()> {
    let (blocks, rest) = text.as_chunks::<BLOCK_BYTES>();
    // Behind the end nothing is part of a word.
    let mut last = [b' '; BLOCK_BYTES];
    last[..rest.len()].copy_from_slice(rest);
    let (mut start, mut at, mut is_before) = (0, 0, 1);
    for block in blocks.iter().chain([&last]) {
        let between = bits(block);
        let before = between << 1 | is_before;
        let (mut begins, mut ends) = (!between & before, between & !before);
        is_before = between >> (u64::BITS - 1);
        while ends != 0 {
            let (begin, end) = (begins.trailing_zeros(), ends.trailing_zeros());
            if begin < end {
                start = at + begin as usize;
                begins &= begins - 1;
            }
            word(start..at + end as usize)?;
            ends &= ends - 1;
        }
        if begins != 0 {
            start = at + begins.trailing_zeros() as usize;
        }
        at += BLOCK_BYTES;
    }
    Ok(())
}

/// A bit for each byte, the lowest for the first: whether it stands between words.
#[inline]
fn bits(block: &[u8; BLOCK_BYTES]) -> u64 {
    let is_between = block.map(|byte| u8::from(is_between(byte)));
    let (eights, _) = is_between.as_chunks::<8>();
    let byte_of = |eight: &[u8; 8]| {
        // Eight bytes of 0 or 1: the product has the sum of each times another power of two in its highest byte.
        u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56
    };
    let places = (0..).step_by(8);
    eights
        .iter()
        .zip(places)
        .fold(0, |bits, (eight, place)| bits | byte_of(eight) << place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Against a split at each byte.
    fn check(text: &[u8]) {
        let mut found = Vec::new();
        let taken = |word: Range<usize>| {
            found.push(text[word].to_vec());
            Ok(())
        };
        each_word(text, taken).unwrap();
        let between = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0c);
        let words = text.split(between).filter(|word| !word.is_empty());
        assert!(words.eq(found.iter().map(Vec::as_slice)), "{text:?}");
    }

    proptest! {
        #[test]
        fn words_are_those_between_spaces(
            text in vec(prop_oneof![3 => Just(b'a'), 2 => Just(b' '), 1 => any::<u8>(), 1 => 8_u8..15], 0..300),
        ) {
            check(&text);
        }
    }

    #[test]
    fn words_end_and_begin_where_blocks_do() {
        for length in [1, 62, 63, 64, 65, 127, 128, 129, 300] {
            for before in [0, 1, 63, 64] {
                let word = [vec![b' '; before], vec![b'x'; length]].concat();
                check(&word);
                check(&[&word[..], b" "].concat());
                check(&[&word[..], b" y"].concat());
            }
        }
        check(b"");
        check(&[b' '; 130]);
    }

    #[test]
    fn what_fails_ends_the_search() {
        let mut seen = 0;
        let failed = each_word(b"a b c", |_| {
            seen += 1;
            Err(gristmill_base::Error::bug("count", "no"))
        });
        assert!(failed.is_err());
        assert_eq!(seen, 1);
    }
}

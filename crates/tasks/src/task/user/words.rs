//! The words of lines, and the matches of a pattern in them.

use std::ops::Range;

use gristmill_grep::Pattern;

use gristmill_base::error::Result;
use gristmill_storage::lines::lines_of;
use gristmill_storage::lines::words::each_word;

/// Which words are one.
#[derive(Debug, Clone, Copy)]
pub enum LetterCase {
    /// Those of the same bytes.
    Matters,
    /// Those that are the same but for the case of ASCII letters.
    Ascii,
    /// Those that are the same but for the case of any letter.
    Unicode,
}

impl LetterCase {
    /// Hands on a word as it is counted.
    fn counted(
        self,
        word: &[u8],
        count: &mut impl FnMut(&[u8], Range<usize>) -> Result<()>,
    ) -> Result<()> {
        match self {
            LetterCase::Matters => count(word, 0..word.len()),
            LetterCase::Unicode if !word.is_ascii() => {
                let folded = folded(word);
                count(&folded, 0..folded.len())
            }
            LetterCase::Ascii | LetterCase::Unicode => {
                count(&word.to_ascii_lowercase(), 0..word.len())
            }
        }
    }
}

/// A word with each letter in lower case; bytes that are no UTF-8 stay.
fn folded(word: &[u8]) -> Vec<u8> {
    let mut folded = Vec::with_capacity(word.len());
    for chunk in word.utf8_chunks() {
        for letter in chunk.valid().chars().flat_map(char::to_lowercase) {
            folded.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        }
        folded.extend_from_slice(chunk.invalid());
    }
    folded
}

/// Gives what stands between spaces, tabs, LF, CR and FF.
pub(super) fn each_word_of(
    lines: &[u8],
    case: LetterCase,
    count: &mut impl FnMut(&[u8], Range<usize>) -> Result<()>,
) -> Result<()> {
    match case {
        LetterCase::Matters => each_word(lines, |word| count(lines, word)),
        LetterCase::Unicode if !lines.is_ascii() => {
            each_word(lines, |word| case.counted(&lines[word], count))
        }
        LetterCase::Ascii | LetterCase::Unicode => {
            let lower = lines.to_ascii_lowercase();
            each_word(&lower, |word| count(&lower, word))
        }
    }
}

/// Gives the matches of a pattern in each line.
pub(super) fn each_token(
    lines: &[u8],
    pattern: &Pattern,
    case: LetterCase,
    count: &mut impl FnMut(&[u8], Range<usize>) -> Result<()>,
) -> Result<()> {
    lines_of(lines).try_for_each(|line| match case {
        LetterCase::Matters => pattern.try_matches(line, |word| count(line, word)),
        _ => pattern.try_matches(line, |word| case.counted(&line[word], count)),
    })
}

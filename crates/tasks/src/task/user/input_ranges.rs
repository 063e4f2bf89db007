//! Places of records in the input of a job, as one number each, and even ranges of places: the parts of an output that is in
//! the order of the input.
//!
//! ```text
//!   place    number of the file, 20 bits │ offset in it, 44 bits
//!   ranges   |   file 0   | file 1 |   file 2   |       cut at places, each after as many bytes
//! ```
//!
//! The rule that must hold: in which range a place lies depends on the files' lengths, and on nothing else: not on how the input
//! is split, nor on who reads it. Lengths are those of files as they are stored: of a compressed one, what lies behind its
//! length is all in the range of its end.

use serde::{Deserialize, Serialize};

use gristmill_base::error::{Error, Kind, Result};

/// Bits of a place for the offset in a file.
const OFFSET_BITS: u32 = 44;

/// Those for the number of the file.
const FILE_BITS: u32 = u64::BITS - OFFSET_BITS;

/// The place of what begins there in a file of this number. Places are in the order of the input.
///
/// # Errors
/// The file is longer than 16 TiB, or there are more than a million.
///
/// ```
/// use gristmill_tasks::task::place_of;
/// assert!(place_of(0, 1 << 40)? < place_of(1, 0)?);
/// assert!(place_of(0, 1 << 44).is_err());
/// # Ok::<(), gristmill_base::Error>(())
/// ```
#[inline]
pub fn place_of(file: u32, offset: u64) -> Result<u64> {
    if offset >> OFFSET_BITS != 0 || file >> FILE_BITS != 0 {
        return Err(no_place());
    }
    Ok(u64::from(file) << OFFSET_BITS | offset)
}

#[cold]
fn no_place() -> Error {
    let message = "the order of the input is that of a million files of 16 TiB, and there is more";
    Error::new(Kind::BadInput, "read the input", message)
        .advise("give fewer files, or shorter ones")
}

/// Ranges of places, one for each part.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputRanges {
    /// Where each begins but the first, which begins with the input.
    borders: Vec<u64>,
}

impl InputRanges {
    /// So many ranges, each of about as many bytes of files of these lengths.
    ///
    /// ```
    /// use gristmill_tasks::task::{InputRanges, place_of};
    /// let ranges = InputRanges::even(&[100, 0, 300], 4);
    /// assert_eq!(ranges.range_of(place_of(0, 99)?), 0);
    /// assert_eq!(ranges.range_of(place_of(2, 0)?), 1);
    /// assert_eq!(ranges.range_of(place_of(2, 299)?), 3);
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    pub fn even(lengths: &[u64], ranges: u32) -> Self {
        let all: u128 = lengths.iter().map(|length| u128::from(*length)).sum();
        let (mut files, mut before) = ((0..).zip(lengths).peekable(), 0);
        let border = |range: u32| {
            let at = all * u128::from(range) / u128::from(ranges);
            while let Some((_, length)) =
                files.next_if(|(_, length)| before + u128::from(**length) <= at)
            {
                before += u128::from(*length);
            }
            let file: u64 = files.peek().map_or(u64::MAX, |(number, _)| *number);
            file << OFFSET_BITS | ((at - before) as u64).min((1 << OFFSET_BITS) - 1)
        };
        InputRanges {
            borders: (1..ranges).map(border).collect(),
        }
    }

    /// In which range a place lies.
    #[inline]
    pub fn range_of(&self, place: u64) -> u32 {
        self.borders.partition_point(|border| *border <= place) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Every byte of the input lies in the range that counting all bytes before it says.
        #[test]
        fn ranges_are_even(lengths in proptest::collection::vec(0_u64..40, 0..6), ranges in 1_u32..7) {
            let all: u64 = lengths.iter().sum();
            let even = InputRanges::even(&lengths, ranges);
            prop_assert_eq!(even.borders.len() + 1, ranges as usize);
            let mut before = 0;
            for (file, length) in (0..).zip(&lengths) {
                for offset in 0..*length {
                    let wanted = (1..ranges).filter(|range| all * u64::from(*range) / u64::from(ranges) <= before);
                    prop_assert_eq!(even.range_of(place_of(file, offset).unwrap()), wanted.count() as u32);
                    before += 1;
                }
            }
        }
    }
}

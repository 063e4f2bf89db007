//! What comes from outside is looked at: values and written states; and the errors of what is none.

use super::Aggregate;
use crate::value::{ValueReader, display, skip};
use crate::{Error, Kind, Result};

/// An integer that is not negative, and what stands behind it.
#[inline]
pub(super) fn split_unsigned(bytes: &[u8]) -> Result<(u64, &[u8])> {
    let length = skip(bytes)?;
    let (first, rest) = bytes.split_at(length);
    // The codes 0x14 to 0x1c: as many bytes of magnitude as the code is above zero's.
    let number = match first.split_first() {
        Some((0x14..=0x1c, digits)) if digits.first() != Some(&0) => {
            let digit = |number, byte: &u8| number << 8 | u64::from(*byte);
            digits.iter().fold(0, digit)
        }
        _ => {
            return Err(bad_state(
                "a count or a position is not a whole number of 0 or more",
            ));
        }
    };
    Ok((number, rest))
}

/// An error unless `value` is one encoded value and nothing else.
#[inline]
pub(super) fn check_whole(value: &[u8]) -> Result<()> {
    if skip(value)? == value.len() {
        return Ok(());
    }
    let message = "bytes follow the encoded value";
    Err(Error::new(Kind::BadInput, "aggregate values", message))
}

/// An error unless `value` is one encoded value by every rule: for what comes from outside.
pub(super) fn check_value(value: &[u8]) -> Result<()> {
    check_whole(value)?;
    ValueReader::new(value).try_for_each(|token| token.map(|_| ()))
}

pub(super) fn bad_state(message: impl Into<String>) -> Error {
    Error::new(Kind::BadInput, "read the state of an aggregate", message)
}

pub(super) fn mismatch(aggregate: &Aggregate) -> Error {
    let message = format!(
        "the state is another aggregate's, not one of {}",
        aggregate.name()
    );
    Error::bug("aggregate values", message)
}

/// Characters of a value that an error shows.
const SHOWN_MAX: usize = 60;

#[cold]
pub(super) fn no_number(aggregate: &str, value: &[u8]) -> Error {
    let shown = display(value, SHOWN_MAX);
    let message = format!("{aggregate} takes numbers (int, float, bool), not {shown}");
    Error::new(Kind::BadInput, "aggregate values", message).advise(
        "turn the values into numbers, pass over missing ones with skip_none=True, or aggregate them by count, min, \
         max, collect or the like",
    )
}

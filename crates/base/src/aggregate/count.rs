//! Counts of values. The state is the count's encoding.

use super::{bad_state, split_unsigned};
use crate::Result;

/// Adds so many values.
pub(super) fn add_counts(count: &mut u64, more: u64) -> Result<()> {
    *count = count
        .checked_add(more)
        .ok_or_else(|| bad_state("counts add up to more than 64 bits"))?;
    Ok(())
}

/// Adds what a written state holds.
pub(super) fn merge_counts(count: &mut u64, other: &[u8]) -> Result<()> {
    let (more, rest) = split_unsigned(other)?;
    if !rest.is_empty() {
        return Err(bad_state("bytes follow the count"));
    }
    add_counts(count, more)
}

//! Numbers that another process does not draw.

use std::hash::BuildHasher;

/// A number by chance: the system's random keys, another pair for each call.
#[expect(
    clippy::disallowed_types,
    reason = "chance is what is wanted: waits, and names of files that are not output, are in no output"
)]
pub fn by_chance() -> u64 {
    std::hash::RandomState::new().hash_one(std::process::id())
}

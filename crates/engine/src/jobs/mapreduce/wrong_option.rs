//! Options of native jobs that make no sense.

use std::os::unix::ffi::OsStrExt;

use gristmill_grep::{Pattern, PatternOptions};

use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::names::name_of;

/// The error of an option that makes no sense.
pub(in crate::jobs) fn wrong_option(option: &str, what: &str) -> Error {
    let message = format!("{option}: {what}");
    Error::new(Kind::BadOption, "read the options", message).of_option(option)
}

/// A pattern that was given as this option.
///
/// # Errors
/// What is wrong with it.
pub(in crate::jobs) fn pattern_of(
    option: &str,
    given: &str,
    options: PatternOptions,
) -> Result<Pattern> {
    let text = name_of(given.to_owned());
    let pattern = Pattern::new(&[text.as_bytes()], options);
    pattern.map_err(|what| wrong_option(option, &what))
}

//! Why options are not those of GNU sort, in a sentence: which word, what is wrong with it, what to give.

use std::fmt;

/// A word of a command line that says nothing about the order, or contradicts another one.
///
/// ```
/// let error = gristmill_gnu_keys::Keys::parse(["-nM"]).unwrap_err();
/// assert_eq!(error.to_string(), "options '-Mn' are incompatible: a key has one order; give one of them");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    message: String,
}

impl Error {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

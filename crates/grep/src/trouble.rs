//! Why an input, or the rest of it, is not searched.

use std::error::Error;
use std::fmt;
use std::io;

/// Why an input cannot be searched to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputError {
    /// It cannot be read: a message for people, which names the input, and the kind for programs, if the system has said one.
    Unread(Option<io::ErrorKind>, String),
    /// It does not fit in the memory of a search.
    TooLarge(TooLarge),
}

/// What was to be held in memory, and is too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge {
    /// What it is.
    pub what: MemoryUse,
    /// Where it begins in its file: of compressed files, in the decoded bytes.
    pub offset: u64,
    /// The bytes that it may have.
    pub bytes_max: u64,
}

/// What a search holds in memory besides blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryUse {
    /// A line.
    Line,
    /// The lines before a selected one that are written with it.
    Before,
    /// The places of the matches in a line.
    Matches,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.what {
            MemoryUse::Line => "a line has",
            MemoryUse::Before => "the lines before a selected one have",
            MemoryUse::Matches => "the places of the matches in a line have",
        };
        let (most, offset) = (self.bytes_max, self.offset);
        write!(f, "{what} more than {most} bytes (offset {offset})")
    }
}

impl Error for TooLarge {}

impl From<TooLarge> for io::Error {
    fn from(large: TooLarge) -> Self {
        io::Error::other(large)
    }
}

impl From<io::Error> for InputError {
    fn from(error: io::Error) -> Self {
        match error.downcast::<TooLarge>() {
            Ok(large) => InputError::TooLarge(large),
            Err(error) => InputError::Unread(Some(error.kind()), error.to_string()),
        }
    }
}

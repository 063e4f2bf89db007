//! The words for input that all stages share: a file as the job found it, and a range of one.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Stat;

/// A file of the input, as it was when the job began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputFile {
    /// Its path in the store.
    #[serde(with = "crate::names")]
    pub path: PathBuf,
    /// What the store knew of it.
    pub stat: Stat,
}

/// A byte range of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// The file's number in the input.
    pub file: usize,
    /// Where the range begins.
    pub offset: u64,
    /// Its length: whole records.
    pub bytes: u64,
}

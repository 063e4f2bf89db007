//! What a split of a native job is.

use serde::{Deserialize, Serialize};

use crate::split::text::TextSplit;

/// What a split of a native job is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NativeSplit {
    /// The number of the input.
    #[serde(default)]
    pub input: usize,
    /// Ranges of its files.
    pub pieces: TextSplit,
    /// The number of each one's file, among all files of the job.
    pub files: Vec<u32>,
    /// All of other inputs, which are read before it; only where there are no partitions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sides: Vec<NativeSplit>,
}

//! The memory that a job needs for its longest record: what is told where a record has no room.
//!
//! ```text
//!   job     | fixed | worker | worker | ...         twice that where runs in memory have as much
//!   worker  | to hold the record, or to merge two runs of one each | a share: buffers of the writer | fixed |
//! ```
//!
//! The rule that must hold: a job with so much memory has room for the record.

use serde::{Deserialize, Serialize};

use gristmill_storage::io::overlap::{WRITER_BUFFERS, writer_bytes};
use gristmill_storage::sorted_run;

/// What memory a job needs for a record that is longer than a worker has room for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryModel {
    /// Beside the workers.
    pub fixed_bytes: u64,
    /// How many share the memory.
    pub workers: u64,
    /// Whether runs in memory have as much as the workers.
    #[serde(default)]
    pub half: bool,
    /// What each holds beside its buffers.
    pub worker_fixed_bytes: u64,
    /// Bytes of each buffer of a writer, at least.
    pub buffer_bytes: usize,
    /// The part of a worker's memory that such a buffer may grow to: one in so many.
    pub buffer_share: u64,
}

impl MemoryModel {
    /// The memory for records of at most `longest` bytes.
    pub fn bytes(&self, longest: u64) -> u64 {
        let workers = self.workers * self.worker_bytes(longest);
        match self.half {
            true => 2 * (self.fixed_bytes + workers),
            false => self.fixed_bytes + workers,
        }
    }

    /// A worker's share: to hold such a record before it is spilled, and to merge two runs that have one each.
    pub fn worker_bytes(&self, longest: u64) -> u64 {
        const SLACK_BYTES: u64 = 64 << 10; // whole blocks at both ends, an entry, the state of a source
        let merge = 2 * (longest + 2 * sorted_run::BLOCK_BYTES as u64 + SLACK_BYTES);
        let own = merge.max(longest + SLACK_BYTES);
        let buffers = WRITER_BUFFERS as u64;
        let beside = self.worker_fixed_bytes + writer_bytes(self.buffer_bytes);
        own + own * buffers / (self.buffer_share - buffers) + beside
    }
}

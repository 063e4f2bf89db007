//! How many bytes of runs a process has read, by the agent that keeps them: over HTTP, and as files.
//!
//! ```text
//!   agent      counts what its own tasks read ─┐
//!   worker     counts likewise ──▶ its report ─┴──▶ what the agent tells the driver
//! ```

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use gristmill_base::sync::lock;
use serde::{Deserialize, Serialize};

/// What was read of the runs of an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadOf {
    /// The agent that keeps them.
    pub agent: u32,
    /// Bytes that came over HTTP.
    pub far_bytes: u64,
    /// Bytes that were read as files: of this agent itself, or where its folders are seen.
    pub file_bytes: u64,
}

/// What was read so far.
#[derive(Debug, Default)]
pub struct Reads(Mutex<BTreeMap<u32, ReadOf>>);

impl Reads {
    /// Adds to it, as another process may have read that.
    ///
    /// ```
    /// use gristmill_storage::agents::{ReadOf, Reads};
    /// let reads = Reads::default();
    /// let read = ReadOf { agent: 2, far_bytes: 10, file_bytes: 0 };
    /// reads.add(&[read, read]);
    /// assert_eq!(reads.all(), [ReadOf { far_bytes: 20, ..read }]);
    /// assert_eq!((reads.take().len(), reads.all().len()), (1, 0));
    /// ```
    pub fn add(&self, more: &[ReadOf]) {
        let mut all = self.lock();
        for read in more {
            let sum = all.entry(read.agent).or_default();
            sum.agent = read.agent;
            sum.far_bytes += read.far_bytes;
            sum.file_bytes += read.file_bytes;
        }
    }

    /// All of it, by agent.
    pub fn all(&self) -> Vec<ReadOf> {
        self.lock().values().copied().collect()
    }

    /// The same, which then counts as told.
    pub fn take(&self) -> Vec<ReadOf> {
        std::mem::take(&mut *self.lock()).into_values().collect()
    }

    /// Counts bytes that came over HTTP.
    pub(super) fn add_remote(&self, agent: u32, bytes: usize) {
        let (far_bytes, file_bytes) = (bytes as u64, 0);
        self.add(&[ReadOf {
            agent,
            far_bytes,
            file_bytes,
        }]);
    }

    /// Counts bytes that were read from a file.
    pub(super) fn file(&self, agent: u32, bytes: usize) {
        let (far_bytes, file_bytes) = (0, bytes as u64);
        self.add(&[ReadOf {
            agent,
            far_bytes,
            file_bytes,
        }]);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, ReadOf>> {
        lock(&self.0)
    }
}

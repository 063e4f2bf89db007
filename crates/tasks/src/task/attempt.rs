//! An attempt at a task: who it is, how far it is, and whether it should stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use gristmill_base::error::{Error, Result};

/// One try of one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AttemptId {
    /// The task's number in its job, over all stages.
    pub task: u32,
    /// 0 for the first try.
    pub attempt: u32,
}

/// One attempt, while it runs: who it is, whether it should stop, and how far it is.
#[derive(Debug)]
pub struct TaskAttempt<'a> {
    /// Which attempt of which task.
    pub id: AttemptId,
    /// Set when the attempt should stop.
    pub stop: Arc<AtomicBool>,
    /// The job's count of bytes, to which this attempt adds.
    pub done_bytes: &'a AtomicU64,
    /// What this attempt has added: taken back if it fails.
    pub own_bytes: AtomicU64,
}

impl TaskAttempt<'_> {
    /// Notes `bytes` more done; an error if the attempt should stop.
    pub fn progress(&self, bytes: u64) -> Result<()> {
        self.done_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.own_bytes.fetch_add(bytes, Ordering::Relaxed);
        if self.stop.load(Ordering::Relaxed) {
            Err(Error::cancelled())
        } else {
            Ok(())
        }
    }

    /// Takes back what was noted, as the attempt has failed.
    pub fn take_back(&self) {
        let own = self.own_bytes.swap(0, Ordering::Relaxed);
        self.done_bytes.fetch_sub(own, Ordering::Relaxed);
    }
}

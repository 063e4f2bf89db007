//! The memory of windows: what the tasks of a process may hold of ranges that are read ahead.
//!
//! Each task that runs brings its share; a reader may use as much of the sum as one share, and gets it range by range.
//! Without tasks there is a little for whoever reads an output. The rule that must hold: ranges under way and ranges held
//! are never more than the sum.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::io::read_ahead::{RANGE_BYTES, RANGES_AT_ONCE};
use gristmill_base::sync::lock;

/// What a task's share is at most: as many ranges as are worth having.
pub const SHARE_BYTES_MAX: u64 = (RANGES_AT_ONCE * RANGE_BYTES) as u64;

/// A smaller share is of no use: two ranges of what readers read at once anyway.
pub const SHARE_BYTES_MIN: u64 = 1 << 20;

/// Where no task runs.
const IDLE_BYTES: u64 = 2 * RANGE_BYTES as u64;

/// The memory of a process.
#[derive(Debug)]
pub struct WindowMemory {
    state: Mutex<WindowMemoryState>,
    /// How many ranges the windows so far held at once, at the end.
    wanted: AtomicUsize,
}

#[derive(Debug)]
struct WindowMemoryState {
    idle_bytes: u64,
    shares: u64,
    shares_bytes: u64,
    used_bytes: u64,
}

/// What a task adds, for as long as it runs.
#[derive(Debug)]
pub struct Share {
    memory: Arc<WindowMemory>,
    bytes: u64,
}

/// Memory of a range.
#[derive(Debug)]
pub(super) struct RangeBuffer {
    memory: Arc<WindowMemory>,
    pub(super) bytes: Vec<u8>,
}

impl Default for WindowMemory {
    fn default() -> Self {
        let state = WindowMemoryState {
            idle_bytes: IDLE_BYTES,
            shares: 0,
            shares_bytes: 0,
            used_bytes: 0,
        };
        WindowMemory {
            state: Mutex::new(state),
            wanted: AtomicUsize::new(2),
        }
    }
}

impl WindowMemory {
    fn state(&self) -> MutexGuard<'_, WindowMemoryState> {
        lock(&self.state)
    }

    /// Adds what a task has.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use gristmill_storage::io::window::WindowMemory;
    /// let memory = Arc::new(WindowMemory::default());
    /// let one = memory.share(8 << 20);
    /// let other = memory.share(4 << 20);
    /// assert_eq!(memory.each_bytes(), 6 << 20);
    /// drop(one);
    /// assert_eq!(memory.each_bytes(), 4 << 20);
    /// # drop(other);
    /// ```
    #[must_use]
    pub fn share(self: &Arc<Self>, bytes: u64) -> Share {
        let mut state = self.state();
        state.shares += 1;
        state.shares_bytes += bytes;
        Share {
            memory: Arc::clone(self),
            bytes,
        }
    }

    /// Says what there is in a process whose tasks bring no shares: a worker has one at a time.
    pub fn set_bytes(&self, bytes: u64) {
        self.state().idle_bytes = bytes;
    }

    /// What one reader may have.
    pub fn each_bytes(&self) -> u64 {
        let state = self.state();
        state
            .shares_bytes
            .checked_div(state.shares)
            .unwrap_or(state.idle_bytes)
    }

    /// What is held now.
    pub fn used_bytes(&self) -> u64 {
        self.state().used_bytes
    }

    /// Memory for a range of so many bytes, where there is some.
    pub(super) fn take(self: &Arc<Self>, bytes: usize) -> Option<RangeBuffer> {
        let mut state = self.state();
        let all = match state.shares {
            0 => state.idle_bytes,
            _ => state.shares_bytes,
        };
        if state.used_bytes + bytes as u64 > all {
            return None;
        }
        state.used_bytes += bytes as u64;
        drop(state);
        Some(RangeBuffer {
            memory: Arc::clone(self),
            bytes: vec![0; bytes],
        })
    }

    /// How many ranges a new window begins with.
    pub(super) fn wanted(&self) -> usize {
        self.wanted.load(Ordering::Relaxed)
    }

    /// A window found that it wants so many.
    pub(super) fn set_wanted(&self, ranges: usize) {
        self.wanted.store(ranges, Ordering::Relaxed);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut state = self.memory.state();
        state.shares -= 1;
        state.shares_bytes -= self.bytes;
    }
}

impl Drop for RangeBuffer {
    fn drop(&mut self) {
        self.memory.state().used_bytes -= self.bytes.len() as u64;
    }
}

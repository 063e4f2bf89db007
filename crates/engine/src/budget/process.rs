//! What the process takes of a job's budget before the job takes anything: the promise is about the process.
//!
//! Decision: docs/decisions/process-budget.md.

use crate::sys::memory::{give_back, resident_bytes};

/// Whose process a job runs in, and so what of it counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Process {
    /// Nothing is measured, and nothing counts: many jobs share the process, as in tests.
    #[default]
    Shared,
    /// The job's own: all that it holds counts.
    Own,
    /// That of a program which does other things, too: what it holds beyond an interpreter is not the job's.
    Host,
}

/// What an interpreter with this package in it holds: 12 MB for a script that runs one job, with room for some modules more.
const INTERPRETER_BYTES: u64 = 24 << 20;

/// Measured memory is rounded up to multiples of this, so that the plans of two runs are mostly the same.
const GRAIN_BYTES: u64 = 256 << 10;

impl Process {
    /// What counts of what the process holds now, given what it held when the job began.
    ///
    /// ```
    /// use gristmill_engine::budget::Process;
    /// assert_eq!(Process::Shared.held_bytes(0), 0);
    /// # #[cfg(target_os = "linux")]
    /// assert!(Process::Own.held_bytes(0) > 0);
    /// ```
    pub fn held_bytes(self, began_bytes: u64) -> u64 {
        let most = match self {
            Process::Shared => return 0,
            Process::Own => u64::MAX,
            Process::Host => INTERPRETER_BYTES,
        };
        give_back();
        let now_bytes = resident_bytes().0;
        let since = now_bytes.saturating_sub(began_bytes);
        (now_bytes - since)
            .min(most)
            .saturating_add(since)
            .next_multiple_of(GRAIN_BYTES)
    }
}

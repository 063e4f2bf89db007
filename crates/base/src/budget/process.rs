//! How much memory the process itself holds, which counts against a job's budget: `--memory` is a promise about the whole
//! process, not about the job's buffers alone.
//!
//! Decision: docs/decisions/process-budget.md.

use crate::sys::memory::{give_back, resident_bytes};

/// Whose process a job runs in. That decides how much of the process's memory counts against the budget.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ProcessOwner {
    /// Many jobs share the process, as in tests: nothing is measured, and nothing counts.
    #[default]
    Shared,
    /// The process runs this job alone: all that it holds counts.
    Own,
    /// The process is a program that uses the package, such as a notebook. Of what it held before the job, only as much counts as
    /// an interpreter takes.
    Host,
}

/// The most that counts of what a host process held before the job. An interpreter that runs one job in a script holds 12 MB;
/// the rest is room for more modules.
const INTERPRETER_BYTES: u64 = 24 << 20;

/// Measured memory is rounded up to a multiple of this, so that two runs of a job mostly get the same plan.
const GRAIN_BYTES: u64 = 256 << 10;

impl ProcessOwner {
    /// How much memory counts now: what the process held when the job began, as far as it counts, and all growth since.
    /// `began_bytes` is what it held then.
    ///
    /// ```
    /// use gristmill_base::budget::ProcessOwner;
    /// assert_eq!(ProcessOwner::Shared.held_bytes(0), 0);
    /// # #[cfg(target_os = "linux")]
    /// assert!(ProcessOwner::Own.held_bytes(0) > 0);
    /// ```
    pub fn held_bytes(self, began_bytes: u64) -> u64 {
        let before_max = match self {
            ProcessOwner::Shared => return 0,
            ProcessOwner::Own => u64::MAX,
            ProcessOwner::Host => INTERPRETER_BYTES,
        };
        give_back(); // memory that was freed does not count
        let now_bytes = resident_bytes().0;
        let grown_bytes = now_bytes.saturating_sub(began_bytes);
        (now_bytes - grown_bytes)
            .min(before_max)
            .saturating_add(grown_bytes)
            .next_multiple_of(GRAIN_BYTES)
    }
}

//! Open files: how many runs a merge may read at once, and how many workers there may be, so that no task finds too many
//! files open.
//!
//! ```text
//!   limit   | the process: history, sockets | each worker: pipes of a script, output, input | runs of its merge, two each |
//! ```
//!
//! All merges of a job may be at work at the same time, in one process: what is left of its limit is shared evenly.

use gristmill_base::error::{Error, Kind, Result};

/// Runs that are merged at once at most, whatever may be open.
pub const RUNS_MAX: usize = 200;

/// What a process has open beside its workers.
const PROCESS_FILES: u64 = 24;

/// What a worker has open beside runs: both ends of a script's pipes while that begins, its output, its input.
const WORKER_FILES: u64 = 12;

/// A run is open twice: past the page cache, and through it.
const RUN_FILES: u64 = 2;

/// Runs without which there is no merge.
const RUNS_MIN: u64 = 2;

/// How many runs each of so many workers may read at once where `limit` files may be open, if there is a limit.
///
/// ```
/// use gristmill_engine::plan::files::{RUNS_MAX, runs_at_once};
/// assert_eq!([None, Some(20_000)].map(|limit| runs_at_once(limit, 16)), [RUNS_MAX; 2]);
/// assert_eq!((runs_at_once(Some(1024), 16), runs_at_once(Some(64), 2)), (25, 4));
/// ```
pub fn runs_at_once(limit: Option<u64>, workers: usize) -> usize {
    let Some(limit) = limit else {
        return RUNS_MAX;
    };
    let workers = workers.max(1) as u64;
    let left = limit.saturating_sub(PROCESS_FILES + workers * WORKER_FILES);
    (left / (workers * RUN_FILES)).clamp(RUNS_MIN, RUNS_MAX as u64) as usize
}

/// As many of the workers as may each merge two runs.
///
/// # Errors
/// Not even one may.
///
/// ```
/// use gristmill_engine::plan::files::workers_within;
/// assert_eq!((workers_within(None, 16)?, workers_within(Some(1024), 16)?), (16, 16));
/// assert_eq!(workers_within(Some(64), 16)?, 2);
/// assert!(workers_within(Some(39), 1).unwrap_err().to_string().contains("ulimit -n 40"));
/// # Ok::<(), gristmill_engine::Error>(())
/// ```
pub fn workers_within(limit: Option<u64>, workers: usize) -> Result<usize> {
    const EACH: u64 = WORKER_FILES + RUNS_MIN * RUN_FILES;
    let Some(limit) = limit else {
        return Ok(workers);
    };
    let most = limit.saturating_sub(PROCESS_FILES) / EACH;
    if most == 0 {
        let message = format!(
            "the process may have {limit} files open, and a job with one worker needs {}",
            PROCESS_FILES + EACH
        );
        let raise = format!(
            "raise the limit: `ulimit -n {}` or more",
            PROCESS_FILES + EACH
        );
        return Err(Error::new(Kind::Io, "begin the job", message).advise(raise));
    }
    Ok(workers.min(usize::try_from(most).unwrap_or(workers)))
}

/// What is said where fewer workers are at work than there could be.
pub fn fewer_workers(limit: u64, wanted: usize, workers: usize) -> String {
    format!(
        "{workers} of {wanted} workers are used: the process may have {limit} files open (`ulimit -n`)"
    )
}

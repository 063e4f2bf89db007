//! How fast the streams of a task copy: no more bytes a second, all together, than it may.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::task::TaskAttempt;
use gristmill_base::error::Result;
use gristmill_storage::net::stop::Stop;

/// How long a wait for the next bytes is at most, so that a stop is heard.
const WAIT_MAX: Duration = Duration::from_millis(100);

/// Bytes a second, at most.
#[derive(Debug)]
pub(super) struct CopyPace {
    bytes_per_s: Option<u64>,
    began: Instant,
    bytes: AtomicU64,
}

impl CopyPace {
    pub(super) fn new(bytes_per_s: Option<u64>) -> Self {
        CopyPace {
            bytes_per_s,
            began: Instant::now(),
            bytes: AtomicU64::new(0),
        }
    }

    /// Notes so many bytes, and waits until more may come.
    pub(super) fn wait(
        &self,
        bytes: usize,
        (attempt, stop): (&TaskAttempt<'_>, &Stop),
    ) -> Result<()> {
        let Some(bytes_per_s) = self.bytes_per_s else {
            return Ok(());
        };
        let bytes = bytes as u64;
        let bytes = bytes + self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let due = Duration::from_secs_f64(bytes as f64 / bytes_per_s.max(1) as f64);
        while let Some(left) = due
            .checked_sub(self.began.elapsed())
            .filter(|left| !left.is_zero())
        {
            stop.sleep(left.min(WAIT_MAX));
            attempt.progress(0)?;
        }
        Ok(())
    }
}

//! What a job uses of memory, by kind, with the peaks seen: of this process and, where user code runs in others, of those
//! below it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use gristmill_base::sync::lock;
use gristmill_base::sys::memory::{descendants_bytes, resident_bytes};

/// Between two looks at other processes. Each costs some reads of /proc for every thread and process: 50 µs of CPU with
/// 12 threads and two workers. The process itself is looked at whenever somebody asks.
const LOOK_BELOW: Duration = Duration::from_millis(100);

/// The most memory seen at any look.
#[derive(Debug, Default)]
pub struct PeakMemory {
    anonymous: AtomicU64,
    mapped: AtomicU64,
    /// What the processes below this one held when they were looked at; `None` where they do not count.
    below: Option<Mutex<(u64, Option<Instant>)>>,
}

impl PeakMemory {
    /// Of a job whose tasks run in processes below this one, if `below`.
    pub fn of_job(below: bool) -> Self {
        PeakMemory {
            below: below.then(Mutex::default),
            ..PeakMemory::default()
        }
    }

    /// Looks once.
    pub fn look(&self) {
        let (anonymous, mapped) = resident_bytes();
        let anonymous = anonymous + self.below_bytes();
        self.anonymous.fetch_max(anonymous, Ordering::Relaxed);
        self.mapped.fetch_max(mapped, Ordering::Relaxed);
    }

    fn below_bytes(&self) -> u64 {
        let Some(below) = &self.below else { return 0 };
        let mut below = lock(below);
        if below.1.is_none_or(|seen| seen.elapsed() >= LOOK_BELOW) {
            *below = (descendants_bytes(), Some(Instant::now()));
        }
        below.0
    }

    /// Peak of anonymous and shared memory, in bytes.
    pub fn anonymous_bytes(&self) -> u64 {
        self.anonymous.load(Ordering::Relaxed)
    }

    /// Peak of mapped files, in bytes: page cache that happens to be mapped.
    pub fn mapped_bytes(&self) -> u64 {
        self.mapped.load(Ordering::Relaxed)
    }
}

//! What a job uses: CPU time of this process; memory by kind, with the peaks seen, of this process and, where people's
//! code runs in others, of those below it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::worker::descendants_bytes;

/// Between two looks at other processes. Each costs some reads of /proc for every thread and process: 50 µs of CPU with
/// 12 threads and two workers. The process itself is looked at whenever somebody asks.
const LOOK_BELOW: Duration = Duration::from_millis(100);

/// CPU seconds of the process so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CpuSeconds {
    /// In user code.
    pub user_s: f64,
    /// In the kernel.
    pub sys_s: f64,
}

/// CPU seconds of this process, all threads together.
///
/// ```
/// assert!(gristmill_engine::runner::usage::cpu_seconds().user_s >= 0.0);
/// ```
pub fn cpu_seconds() -> CpuSeconds {
    // SAFETY: `usage` is written by the call, which cannot fail with these arguments.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    CpuSeconds {
        user_s: seconds(usage.ru_utime),
        sys_s: seconds(usage.ru_stime),
    }
}

/// Bytes that this process has had read from devices so far, page faults included; `None` where the system does not
/// count them.
///
/// ```
/// use gristmill_engine::runner::usage::device_bytes_read;
/// assert!(device_bytes_read() >= device_bytes_read().map(|_| 0));
/// ```
pub fn device_bytes_read() -> Option<u64> {
    let counts = std::fs::read_to_string("/proc/self/io").ok()?;
    let line = counts
        .lines()
        .find_map(|line| line.strip_prefix("read_bytes:"))?;
    line.trim().parse().ok()
}

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
        let mut below = below.lock().unwrap_or_else(PoisonError::into_inner);
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

/// Resident memory now: anonymous and shared, and mapped files.
///
/// ```
/// assert!(gristmill_engine::runner::usage::resident_bytes().0 > 0);
/// ```
#[cfg(target_os = "linux")]
pub fn resident_bytes() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
        kib.unwrap_or(0) * 1024
    };
    (field("RssAnon:") + field("RssShmem:"), field("RssFile:"))
}

/// Elsewhere the peak of all resident memory is what there is.
#[cfg(not(target_os = "linux"))]
pub fn resident_bytes() -> (u64, u64) {
    // SAFETY: as in `cpu_seconds`.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    let unit = if cfg!(target_vendor = "apple") {
        1
    } else {
        1024
    };
    (usage.ru_maxrss as u64 * unit, 0)
}

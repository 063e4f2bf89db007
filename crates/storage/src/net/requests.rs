//! How many requests were sent to stores, how many of them again, and how many a store refused as too many.
//!
//! ```text
//!   S3, HTTP, HDFS ──▶ Requests of the process ──▶ the job's counters
//!   a worker with user code ──▶ its own ── tell ──▶ the page that its driver looks at (worker/heartbeat.rs) ──▶ add
//!   a worker, or an agent, with tasks ──▶ its own ──with each task that ends──▶ add
//! ```
//!
//! Each process counts its own. Jobs that run at the same time in one process count each other's. What else they share is here, too: what ends them before they are answered
//! ([`Stop`]), and the memory for what is read ahead ([`WindowMemory`]).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use crate::io::window::WindowMemory;
use crate::net::stop::Stop;

/// The counters of a process.
#[derive(Debug, Default)]
pub struct Requests {
    sent: AtomicU64,
    retried: AtomicU64,
    throttled: AtomicU64,
    /// Who hears of each, too.
    told: OnceLock<fn(RequestCounts)>,
    /// When they are to end unanswered.
    pub stop: Stop,
    /// What readers may hold of answers that they do not want yet.
    pub memory: Arc<WindowMemory>,
}

/// What they say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestCounts {
    /// Requests that were sent.
    pub sent: u64,
    /// Those among them that were sent again.
    pub retried: u64,
    /// Those that were answered with 503 or 429, or by a busy name node: the store had too many to do.
    pub throttled: u64,
}

impl RequestCounts {
    /// Those since `before`.
    ///
    /// ```
    /// use gristmill_storage::net::requests::{RequestCounts, Requests};
    /// let requests = Requests::default();
    /// let before = requests.counts();
    /// requests.add(RequestCounts { sent: 3, retried: 1, throttled: 1 });
    /// assert_eq!(requests.counts().since(before).sent, 3);
    /// ```
    #[must_use]
    pub fn since(self, before: RequestCounts) -> Self {
        RequestCounts {
            sent: self.sent.saturating_sub(before.sent),
            retried: self.retried.saturating_sub(before.retried),
            throttled: self.throttled.saturating_sub(before.throttled),
        }
    }
}

impl Requests {
    /// What was counted so far.
    pub fn counts(&self) -> RequestCounts {
        RequestCounts {
            sent: self.sent.load(Ordering::Relaxed),
            retried: self.retried.load(Ordering::Relaxed),
            throttled: self.throttled.load(Ordering::Relaxed),
        }
    }

    /// Counts what another process sent.
    pub fn add(&self, counts: RequestCounts) {
        self.sent.fetch_add(counts.sent, Ordering::Relaxed);
        self.retried.fetch_add(counts.retried, Ordering::Relaxed);
        self.throttled
            .fetch_add(counts.throttled, Ordering::Relaxed);
        if let Some(tell) = self.told.get() {
            tell(counts);
        }
    }

    /// What was counted since it was last taken.
    ///
    /// ```
    /// use gristmill_storage::net::requests::{RequestCounts, Requests};
    /// let requests = Requests::default();
    /// requests.add(RequestCounts { sent: 3, ..RequestCounts::default() });
    /// assert_eq!((requests.take().sent, requests.take().sent), (3, 0));
    /// ```
    pub fn take(&self) -> RequestCounts {
        RequestCounts {
            sent: self.sent.swap(0, Ordering::Relaxed),
            retried: self.retried.swap(0, Ordering::Relaxed),
            throttled: self.throttled.swap(0, Ordering::Relaxed),
        }
    }

    /// Has `tell` hear of all that is counted from now on, too; the first one stays.
    pub fn tell(&self, tell: fn(RequestCounts)) {
        let _ = self.told.set(tell);
    }

    pub(crate) fn count(&self, is_again: bool) {
        self.count_all(1, is_again);
    }

    /// Counts requests that are sent together.
    pub(crate) fn count_all(&self, sent: u64, is_again: bool) {
        self.add(RequestCounts {
            sent,
            retried: if is_again { sent } else { 0 },
            throttled: 0,
        });
    }

    pub(crate) fn count_throttled(&self) {
        self.add(RequestCounts {
            throttled: 1,
            ..RequestCounts::default()
        });
    }
}

//! How many requests were sent to stores, how many of them again, and how many a store refused as too many.
//!
//! Each process counts its own; worker processes tell the job's process with each task that ends. Jobs that run at the same
//! time in one process count each other's. What else they share is here, too: what ends them before they are answered
//! ([`Stop`]), and the memory for what is read ahead ([`WindowMemory`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use super::stop::Stop;
use super::window::WindowMemory;

/// The counters of a process.
#[derive(Debug, Default)]
pub struct Requests {
    sent: AtomicU64,
    retried: AtomicU64,
    throttled: AtomicU64,
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
    /// Those that were answered with 503 or 429: the store had too many to do.
    pub throttled: u64,
}

impl RequestCounts {
    /// Those since `before`.
    ///
    /// ```
    /// use gristmill_engine::storage::requests::{RequestCounts, Requests};
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
    }

    pub(super) fn count(&self, is_again: bool) {
        self.sent.fetch_add(1, Ordering::Relaxed);
        if is_again {
            self.retried.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn count_throttled(&self) {
        self.throttled.fetch_add(1, Ordering::Relaxed);
    }
}

//! What a job waits for that may never come: a file on a mount that hangs, a node that does not answer. After ten seconds the
//! user is told, so that no job stands still without a word.
//!
//! ```text
//!   begin(NODE) ── what it is asked to do ── drop        a call on a file (sys/file_calls.rs)
//!        └──────────────────────┬──────────────────────────────────┘
//!                      Control::notices ──▶ "waiting 12 s for FILE"
//! ```
//!
//! Not for what may take its time: standard input, user code, other tasks.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use gristmill_base::names::show_path;
use gristmill_base::sync::lock;
use gristmill_base::sys::file_calls::under_way_now;

/// How long nobody is told.
const QUIET: Duration = Duration::from_secs(10);

/// Between two lines about one wait.
const AGAIN: Duration = Duration::from_secs(30);

/// Waits that are told of together: a mount that hangs may be that of many nodes.
const TOLD_AT_ONCE: usize = 3;

/// All that a job waits for now.
#[derive(Debug, Default)]
pub struct PendingWaits {
    waits: Mutex<BTreeMap<u64, PendingWait>>,
    /// The files that the user was told of, and when that is done again.
    files: Mutex<BTreeMap<PathBuf, Instant>>,
}

/// The files that this process and its workers wait for, that longest first: those of which a call is under way, which a look
/// saw so long ago.
pub fn files_awaited(at_least: Duration) -> Vec<(PathBuf, Duration)> {
    longest_first(under_way_now(Instant::now()), at_least)
}

fn longest_first(
    mut calls: Vec<(PathBuf, Duration)>,
    at_least: Duration,
) -> Vec<(PathBuf, Duration)> {
    calls.retain(|(_, waited)| *waited >= at_least);
    calls.sort_unstable_by(|(path, waited), (other, less)| less.cmp(waited).then(path.cmp(other)));
    let mut named = BTreeSet::new();
    calls.retain(|(path, _)| named.insert(path.clone()));
    calls
}

#[derive(Debug)]
struct PendingWait {
    what: String,
    began: Instant,
    /// When the user is told.
    tell_at: Instant,
}

/// A wait, which is over when this is dropped.
#[derive(Debug)]
pub struct Awaited {
    waiting: Arc<PendingWaits>,
    id: u64,
}

impl PendingWaits {
    fn waits(&self) -> MutexGuard<'_, BTreeMap<u64, PendingWait>> {
        lock(&self.waits)
    }

    /// A wait begins: for a file (`in/part-1`), or for somebody to do something (`node 10.0.0.3 to look at in/part-1`).
    pub fn begin(self: &Arc<Self>, what: impl Into<String>) -> Awaited {
        let began = Instant::now();
        let wait = PendingWait {
            what: what.into(),
            began,
            tell_at: began + QUIET,
        };
        let mut waits = self.waits();
        let id = waits.last_key_value().map_or(0, |(last, _)| last + 1);
        waits.insert(id, wait);
        Awaited {
            waiting: Arc::clone(self),
            id,
        }
    }

    /// What has been waited for so long, a few of those: for who tells the user elsewhere.
    pub fn lasting(&self, least: Duration) -> Vec<String> {
        let waits = self.waits();
        let lasting = waits.values().filter(|wait| wait.began.elapsed() >= least);
        lasting
            .take(TOLD_AT_ONCE)
            .map(|wait| wait.what.clone())
            .collect()
    }

    /// What the user is to be told at this time, and has not been told yet.
    ///
    /// ```
    /// use std::{sync::Arc, time::{Duration, Instant}};
    /// use gristmill_storage::net::waiting::PendingWaits;
    /// let waiting = Arc::<PendingWaits>::default();
    /// let wait = waiting.begin("in/part-1");
    /// let after = |s| Instant::now() + Duration::from_secs(s);
    /// assert!(waiting.notices(after(9)).is_empty());
    /// assert_eq!(waiting.notices(after(12)), ["waiting 12 s for in/part-1"]);
    /// assert!(waiting.notices(after(20)).is_empty());
    /// drop(wait);
    /// assert!(waiting.notices(after(60)).is_empty());
    /// ```
    pub fn notices(&self, now: Instant) -> Vec<String> {
        let mut waits = self.waits();
        let due = waits.values_mut().filter(|wait| wait.tell_at <= now);
        let mut lines: Vec<String> = due.map(|wait| wait.tell(now)).collect();
        drop(waits);
        lines.extend(self.of_files(under_way_now(now), now));
        let others = lines.len().saturating_sub(TOLD_AT_ONCE);
        if others > 0 {
            lines.truncate(TOLD_AT_ONCE);
            lines.push(format!("{others} more are waited for as long"));
        }
        lines
    }

    /// The same of calls on files that are under way.
    fn of_files(&self, calls: Vec<(PathBuf, Duration)>, now: Instant) -> Vec<String> {
        let calls = longest_first(calls, QUIET);
        let mut told = lock(&self.files);
        told.retain(|path, _| calls.iter().any(|(awaited, _)| awaited == path));
        let mut lines = Vec::new();
        for (path, waited) in calls {
            if told.get(&path).is_none_or(|tell_at| *tell_at <= now) {
                lines.push(line(waited, &show_path(&path)));
                told.insert(path, now + AGAIN);
            }
        }
        lines
    }
}

fn line(waited: Duration, what: &dyn std::fmt::Display) -> String {
    format!("waiting {} s for {what}", waited.as_secs())
}

impl PendingWait {
    fn tell(&mut self, now: Instant) -> String {
        self.tell_at = now + AGAIN;
        line(now.saturating_duration_since(self.began), &self.what)
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        self.waiting.waits().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_is_told_of_a_few_waits_and_again_later() {
        let waiting = Arc::<PendingWaits>::default();
        let waits: Vec<Awaited> = (0..5).map(|n| waiting.begin(format!("node {n}"))).collect();
        let after = |seconds| Instant::now() + Duration::from_secs(seconds);
        let said = waiting.notices(after(11));
        assert_eq!(said.len(), 4);
        assert_eq!(said[0], "waiting 11 s for node 0");
        assert_eq!(said[3], "2 more are waited for as long");
        let first = waits.into_iter().next();
        assert!(waiting.notices(after(30)).is_empty());
        assert_eq!(waiting.notices(after(42)), ["waiting 42 s for node 0"]);
        drop(first);
        assert!(waiting.notices(after(200)).is_empty());
    }

    #[test]
    fn a_file_is_told_of_once_however_many_wait_for_it() {
        let (waiting, start) = (PendingWaits::default(), Instant::now());
        let said = |seconds: u64, paths: &[&str]| {
            let waited = Duration::from_secs(seconds);
            let calls = paths.iter().map(|path| (PathBuf::from(path), waited));
            waiting.of_files(calls.collect(), start + waited)
        };
        assert!(said(9, &["mnt/a", "mnt/a"]).is_empty());
        assert_eq!(said(12, &["mnt/a", "mnt/a"]), ["waiting 12 s for mnt/a"]);
        assert_eq!(said(13, &["mnt/a", "mnt/b"]), ["waiting 13 s for mnt/b"]);
        assert!(said(14, &["mnt/a", "mnt/b"]).is_empty());
        assert!(said(15, &[]).is_empty());
        assert_eq!(said(16, &["mnt/a"]), ["waiting 16 s for mnt/a"]);
    }
}

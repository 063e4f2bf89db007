//! Jobs that are to end: what waits for a store stops waiting.
//!
//! ```text
//!   request begun ── job stopped ──▶ given up at once
//!                    job stopped ── request begun ──▶ what cleans up: it has 3 s, and is not sent again without an answer
//!                                                ──▶ the first that gets none is the last: the store is not there
//! ```
//!
//! The jobs of a process share its connections. So a request is given up only once all jobs that run are stopped: `Ctrl-C` stops them all.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use gristmill_base::sync::lock;
use tokio::time::{sleep, timeout};

/// How soon a wait ends after the stop: nobody sees a delay so short.
const LOOK: Duration = Duration::from_millis(30);

/// What a store has to answer a request that cleans up.
pub const LAST: Duration = Duration::from_secs(3);

/// Whether the jobs of this process are to end.
#[derive(Debug, Default)]
pub struct Stop {
    /// Of the jobs that run.
    flags: Mutex<Vec<Arc<AtomicBool>>>,
    /// A store did not answer a request that was begun after the stop.
    is_silent: AtomicBool,
}

/// A job that runs.
#[derive(Debug)]
pub struct Stopping<'s> {
    stop: &'s Stop,
    flag: Arc<AtomicBool>,
}

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        let mut flags = lock(&self.stop.flags);
        if let Some(at) = flags.iter().position(|flag| Arc::ptr_eq(flag, &self.flag)) {
            flags.swap_remove(at);
        }
        self.stop.is_silent.store(false, Ordering::Relaxed);
    }
}

/// How a wait ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Waited<T> {
    /// The work is done.
    Done(T),
    /// The limit has passed.
    Late(Duration),
    /// The jobs are to end.
    Stopped,
}

impl Stop {
    /// Has the flag count for as long as what is returned lives.
    ///
    /// ```
    /// use std::sync::{Arc, atomic::{AtomicBool, Ordering}};
    /// use gristmill_storage::net::stop::Stop;
    /// let (stop, flag) = (Stop::default(), Arc::new(AtomicBool::new(true)));
    /// assert!(!stop.is_set());
    /// let running = stop.by(flag.clone());
    /// assert!(stop.is_set());
    /// flag.store(false, Ordering::Relaxed);
    /// assert!(!stop.is_set());
    /// # drop(running);
    /// ```
    pub fn by(&self, flag: Arc<AtomicBool>) -> Stopping<'_> {
        let mut flags = lock(&self.flags);
        flags.push(Arc::clone(&flag));
        self.is_silent.store(false, Ordering::Relaxed);
        Stopping { stop: self, flag }
    }

    /// Whether all jobs that run are to end, and there is one.
    pub fn is_set(&self) -> bool {
        let flags = lock(&self.flags);
        !flags.is_empty() && flags.iter().all(|flag| flag.load(Ordering::Relaxed))
    }

    /// Sleeps, unless the stop comes; returns whether it came.
    pub fn sleep(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        while !self.is_set() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            thread::sleep(left.min(LOOK));
        }
        true
    }

    /// Waits for `work`: until `limit`, or until the stop; of work that is begun after the stop, for little time.
    pub async fn limited<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Waited<T> {
        if self.is_set() {
            if self.is_silent.load(Ordering::Relaxed) {
                return Waited::Stopped;
            }
            let last = timeout(limit.min(LAST), work).await;
            return last.map_or_else(
                |_elapsed| {
                    self.is_silent.store(true, Ordering::Relaxed);
                    Waited::Stopped
                },
                Waited::Done,
            );
        }
        let stopped = async {
            while !self.is_set() {
                sleep(LOOK).await;
            }
        };
        tokio::select! {
            done = timeout(limit, work) => done.map_or(Waited::Late(limit), Waited::Done),
            () = stopped => Waited::Stopped,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    fn wait<T>(stop: &Stop, limit_ms: u64, work: impl Future<Output = T>) -> Waited<T> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        let limit = Duration::from_millis(limit_ms);
        runtime.unwrap().block_on(stop.limited(limit, work))
    }

    #[test]
    fn a_wait_ends_by_the_stop_of_all_jobs() {
        let stop = Stop::default();
        let (one, other) = (
            Arc::new(AtomicBool::new(true)),
            Arc::new(AtomicBool::new(false)),
        );
        let _one = stop.by(one);
        let second = stop.by(Arc::clone(&other));
        assert_eq!(wait(&stop, 60_000, ready(1)), Waited::Done(1));
        let late = Waited::Late(Duration::from_millis(50));
        assert_eq!(wait(&stop, 50, pending::<()>()), late);
        assert!(!stop.sleep(Duration::from_millis(5)));
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(50));
                other.store(true, Ordering::Relaxed);
            });
            assert_eq!(wait(&stop, 60_000, pending::<()>()), Waited::Stopped);
        });
        assert!(stop.sleep(Duration::from_secs(60)));
        drop(second);
        assert!(stop.is_set());
    }

    #[test]
    fn what_cleans_up_is_answered_or_given_up() {
        let stop = Stop::default();
        let _running = stop.by(Arc::new(AtomicBool::new(true)));
        assert_eq!(wait(&stop, 60_000, ready(1)), Waited::Done(1));
        assert_eq!(wait(&stop, 20, pending::<()>()), Waited::Stopped);
        assert_eq!(wait(&stop, 60_000, ready(1)), Waited::Stopped);
    }
}

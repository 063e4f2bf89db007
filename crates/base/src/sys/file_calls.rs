//! Calls on files that are under way: noted before they are made, so that a mount that hangs has a name.
//!
//! ```text
//!   thread   row of its own: number + 1 (odd), path ── the call ──▶ number + 1 (even)
//!   watch    a row whose number is odd, and the same as a while ago ──▶ its path, and how long it has been so
//! ```
//!
//! A call costs a few relaxed stores, some nanoseconds: no lock, no clock, no memory. The watch has the clock: it counts from
//! the first look that saw the call. Rows are those of this process, or, in a worker, words of the page that its driver looks
//! at (`worker/heartbeat.rs`). A thread that finds no row free is not watched.
//!
//! The rule that must hold: what is noted is a call that a disk answers in milliseconds. A pipe, a terminal, a request to a
//! store, user code are not noted: they may take their time, or have limits of their own.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

use super::mapping::{SHARED_BYTES, SharedWords};
use crate::sync::lock;

/// Words of a row: its number, the length of the path, the path. Eight rows fill what is left of a page behind a pulse.
pub(crate) const ROW_WORDS: usize = 63;

/// Words of the page of a worker.
pub const PAGE_WORDS: usize = SHARED_BYTES / size_of::<u64>();
/// Those of them that are its pulse.
pub const PULSE_WORDS: usize = 8;

/// The end of a longer path is cut off.
const PATH_BYTES_MAX: usize = (ROW_WORDS - 2) * size_of::<u64>();

/// Threads that are watched: a task has a few, and a job some hundred.
const ROWS: usize = 256;

static WORDS: [AtomicU64; ROWS * ROW_WORDS] = [const { AtomicU64::new(0) }; ROWS * ROW_WORDS];
static TAKEN: [AtomicBool; ROWS] = [const { AtomicBool::new(false) }; ROWS];
static SHARED: OnceLock<&'static [AtomicU64]> = OnceLock::new();

/// The rows of this process.
pub(crate) fn own_rows() -> &'static [AtomicU64] {
    SHARED.get().copied().unwrap_or(&WORDS)
}

/// From now on the rows of this process are these; the first ones stay.
pub fn share_rows(words: &'static [AtomicU64]) {
    let _ = SHARED.set(words);
}

/// Makes a call on the file, or the directory, at `path`.
pub fn on<T>(path: &Path, call: impl FnOnce() -> T) -> T {
    let _noted = RunningCall::new(path);
    call()
}

/// A call that is under way.
struct RunningCall(Option<&'static AtomicU64>);

impl RunningCall {
    fn new(path: &Path) -> Self {
        let row = MINE.try_with(RowClaim::row).ok().flatten();
        RunningCall(row.and_then(|row| begin(row, path)))
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        if let Some(number) = self.0 {
            end(number);
        }
    }
}

fn end(number: &AtomicU64) {
    number.store(number.load(Ordering::Relaxed) + 1, Ordering::Release);
}

/// Notes a call; nothing where the thread has one under way already, which this one is a part of.
fn begin<'r>(row: &'r [AtomicU64], path: &Path) -> Option<&'r AtomicU64> {
    let [number, length, words @ ..] = row else {
        return None;
    };
    let before = number.load(Ordering::Relaxed);
    if !before.is_multiple_of(2) {
        return None;
    }
    let path = path.as_os_str().as_bytes();
    let path = path.get(..PATH_BYTES_MAX).unwrap_or(path);
    length.store(path.len() as u64, Ordering::Relaxed);
    for (word, bytes) in words.iter().zip(path.chunks(size_of::<u64>())) {
        let mut whole = [0; size_of::<u64>()];
        whole
            .iter_mut()
            .zip(bytes)
            .for_each(|(to, from)| *to = *from);
        word.store(u64::from_ne_bytes(whole), Ordering::Relaxed);
    }
    number.store(before + 1, Ordering::Release);
    Some(number)
}

thread_local! {
    static MINE: RowClaim = const { RowClaim(Cell::new(None)) };
}

/// The row of a thread, which others may have when it ends.
struct RowClaim(Cell<Option<usize>>);

impl RowClaim {
    fn row(&self) -> Option<&'static [AtomicU64]> {
        let rows = own_rows();
        if self.0.get().is_none() {
            let free = |taken: &AtomicBool| !taken.swap(true, Ordering::Relaxed);
            let there = TAKEN.iter().take(rows.len() / ROW_WORDS);
            self.0.set(there.into_iter().position(free));
        }
        let at = self.0.get()? * ROW_WORDS;
        rows.get(at..at + ROW_WORDS)
    }
}

impl Drop for RowClaim {
    fn drop(&mut self) {
        if let Some(taken) = self.0.get().and_then(|row| TAKEN.get(row)) {
            taken.store(false, Ordering::Relaxed);
        }
    }
}

/// The call that a row notes now: its number, and its path.
fn under_way(row: &[AtomicU64]) -> Option<(u64, PathBuf)> {
    let [number, length, words @ ..] = row else {
        return None;
    };
    let noted = number.load(Ordering::Acquire);
    if noted.is_multiple_of(2) {
        return None;
    }
    let length = length.load(Ordering::Relaxed) as usize;
    let words = words.iter().map(|word| word.load(Ordering::Relaxed));
    let mut path: Vec<u8> = words.flat_map(u64::to_ne_bytes).collect();
    path.truncate(length);
    fence(Ordering::Acquire);
    let same = number.load(Ordering::Relaxed) == noted;
    same.then(|| (noted, OsString::from_vec(path).into()))
}

/// What is looked at time and again: the rows of a process.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// By row: the number of the call, and when it was seen first.
    seen: BTreeMap<usize, (u64, Instant)>,
}

impl Watch {
    /// The calls that are under way, and how long they have been so, as far as it was seen.
    pub(crate) fn look(&mut self, rows: &[AtomicU64], now: Instant) -> Vec<(PathBuf, Duration)> {
        let mut found = Vec::new();
        for (number, row) in rows.chunks_exact(ROW_WORDS).enumerate() {
            let Some((call, path)) = under_way(row) else {
                self.seen.remove(&number);
                continue;
            };
            let seen = self.seen.entry(number).or_insert((call, now));
            if seen.0 != call {
                *seen = (call, now);
            }
            found.push((path, now.saturating_duration_since(seen.1)));
        }
        found
    }
}

/// Another process whose rows are looked at, as long as its page lives.
static OTHERS: Mutex<Vec<(Weak<Page>, Watch)>> = Mutex::new(Vec::new());
static OWN: Mutex<Watch> = Mutex::new(Watch {
    seen: BTreeMap::new(),
});

/// The page of another process.
pub type Page = SharedWords<PAGE_WORDS>;

/// Looks at the rows of a worker, too.
pub fn look_at(page: &Arc<Page>) {
    lock(&OTHERS).push((Arc::downgrade(page), Watch::default()));
}

/// The calls that are under way in this process and its workers, and how long they have been so since a look first saw them.
pub fn under_way_now(now: Instant) -> Vec<(PathBuf, Duration)> {
    let mut found = lock(&OWN).look(own_rows(), now);
    lock(&OTHERS).retain_mut(|(page, watch)| {
        let page = page.upgrade();
        if let Some(page) = &page {
            found.extend(watch.look(rows_of(page.words()), now));
        }
        page.is_some()
    });
    found
}

/// The rows in a page.
pub fn rows_of(page: &[AtomicU64; PAGE_WORDS]) -> &[AtomicU64] {
    page.get(PULSE_WORDS..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_seen_while_it_lasts_and_its_time_is_its_own() {
        let rows: Vec<AtomicU64> = (0..2 * ROW_WORDS).map(|_| AtomicU64::new(0)).collect();
        let row = &rows[ROW_WORDS..];
        let (mut watch, start) = (Watch::default(), Instant::now());
        let after = |seconds| start + Duration::from_secs(seconds);
        assert!(watch.look(&rows, start).is_empty());
        let one = begin(row, "mnt/a".as_ref()).unwrap();
        let inner = begin(row, "mnt/inner".as_ref());
        assert!(inner.is_none(), "it is a part of the other");
        let seen = |seconds| (PathBuf::from("mnt/a"), Duration::from_secs(seconds));
        assert_eq!(watch.look(&rows, after(1)), [seen(0)]);
        assert_eq!(watch.look(&rows, after(13)), [seen(12)]);
        end(one);
        end(begin(row, "mnt/a".as_ref()).unwrap());
        let _again = begin(row, "mnt/a".as_ref());
        assert_eq!(watch.look(&rows, after(14)), [seen(0)], "another call");
    }

    #[test]
    fn calls_of_threads_are_seen_and_gone_with_them() {
        let wait = std::sync::Barrier::new(2);
        let long = "x".repeat(2000);
        let name = |path: &Path| path.as_os_str().len();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                on(long.as_ref(), || {
                    wait.wait();
                    wait.wait();
                });
                wait.wait();
            });
            wait.wait();
            let seen = Watch::default().look(own_rows(), Instant::now());
            assert!(seen.iter().any(|(path, _)| name(path) == PATH_BYTES_MAX));
            wait.wait();
            wait.wait();
            let seen = Watch::default().look(own_rows(), Instant::now());
            assert!(!seen.iter().any(|(path, _)| name(path) == PATH_BYTES_MAX));
        });
    }
}

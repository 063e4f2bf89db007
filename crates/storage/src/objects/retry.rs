//! Requests that are tried again: the one place where that is done, for any store.
//!
//! ```text
//!   request ── error that a retry may mend ── wait 10, 20, 40, .. ms (at most 2 s) ── request ...   10 times
//!           ── 503, 429: too many ─────────── wait 100, 200, .. ms (at most 5 s), or as Retry-After says (at most 60 s)
//!           ── no answer, but earlier ones ── for a minute at least: the store or the network comes back
//! ```
//!
//! A job that is to end waits no more ([`Stop`](crate::net::stop::Stop)).
//!
//! Half of each wait is drawn by chance, so that requests which failed together do not come again together.
//!
//! A reply can be lost after the request was done. All requests but two may simply be repeated: an upload that nobody has
//! the name of is ended by the committer, who asks for uploads by location; and of an upload that is gone when it is to
//! be completed, the object is asked whether it is what the upload makes. A store may still be making it for somebody who
//! was killed: it is asked for half a minute.
//!
//! Decision: docs/decisions/store-retries.md.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use chrono::DateTime;
use http::HeaderMap;

use super::{KeptPart, Object, Objects, Page, Part, SourceRange, StoreCopies, Upload, UploadPart};
use crate::forward::forward;
use crate::io::window::WindowMemory;
use crate::net::http_client::header;
use crate::net::requests::Requests;
use crate::net::stop::LAST;
use crate::private::chance::by_chance;
use crate::version::ReadVersion;
use gristmill_base::error::{Error, Kind, Result};

/// How often a request is made: with one failure in three, one request in 59,000 fails.
const TRIES_MAX: u32 = 10;

/// The first wait, and the longest.
const WAITS_MS: (u64, u64) = (10, 2_000);

/// The same where the store has too many requests: ten tries take about 20 s.
const THROTTLED_WAITS_MS: (u64, u64) = (100, 5_000);

/// A store that wants us to wait longer is asked again then; so that a job does not seem to hang.
const RETRY_AFTER_MAX_S: u64 = 60;

/// How long a store that has answered before is asked again when it answers no more.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long the object of an upload that is gone is waited for, of all such uploads together; and how often it is asked for.
const COMPLETING: Duration = Duration::from_secs(30);
const COMPLETING_LOOK: Duration = Duration::from_millis(200);

/// Objects whose requests are tried again.
///
/// ```
/// use gristmill_storage::objects::{Objects, directory::DirectoryStore, faults::{Faults, Unreliable}, retry::Retried};
/// use gristmill_storage::net::requests::Requests;
/// let folder = tempfile::tempdir()?;
/// let path = format!("objects://{}/a", folder.path().display());
/// let faults = Faults { refused: 0.5, seed: 1, ..Faults::default() };
/// let requests = std::sync::Arc::new(Requests::default());
/// let objects = Retried::new(Unreliable::new(DirectoryStore, faults), requests.clone());
/// for _ in 0..20 {
///     assert!(objects.head(path.as_ref())?.is_none());
/// }
/// assert_eq!(requests.counts().sent, 20 + requests.counts().retried);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Retried<O> {
    inner: O,
    retries: Retries,
    /// When the first upload was missed that may be about to be an object.
    missed: OnceLock<Instant>,
}

impl<O: Objects> Retried<O> {
    /// `inner`, tried again; `requests` counts.
    pub fn new(inner: O, requests: Arc<Requests>) -> Self {
        let retries = Retries::counted(requests);
        Retried {
            inner,
            retries,
            missed: OnceLock::new(),
        }
    }

    fn retry<T>(&self, path: &Path, request: impl FnMut() -> Result<T>) -> Result<T> {
        self.retries.make(path, request)
    }

    fn completed(&self, upload: &Upload, request: impl FnMut() -> Result<()>) -> Result<()> {
        match self.retry(upload.path.as_typed(), request) {
            // It was completed, and the reply lost; or by a job that was killed then.
            Err(error) if error.kind() == Kind::NotFound => match self.is_made(upload)? {
                true => Ok(()),
                false => Err(error),
            },
            done => done,
        }
    }
}

/// Makes a request until it is done, fails for good, or has failed too often. The request counts itself: one to HDFS may read
/// several blocks.
pub(crate) fn retry<T>(
    requests: &Arc<Requests>,
    path: &Path,
    request: impl FnMut() -> Result<T>,
) -> Result<T> {
    let retries = Retries {
        is_counted: false,
        ..Retries::counted(Arc::clone(requests))
    };
    retries.make(path, request)
}

/// The requests of one store, which are tried again.
#[derive(Debug)]
pub(crate) struct Retries {
    requests: Arc<Requests>,
    is_counted: bool,
    has_answered: AtomicBool,
}

impl Retries {
    /// Those that `requests` counts.
    pub(crate) fn counted(requests: Arc<Requests>) -> Self {
        let has_answered = AtomicBool::new(false);
        Retries {
            requests,
            is_counted: true,
            has_answered,
        }
    }

    /// What readers may hold of answers that they do not want yet.
    pub(crate) fn memory(&self) -> &Arc<WindowMemory> {
        &self.requests.memory
    }

    /// Makes a request until it is done, fails for good, or has failed too often.
    pub(crate) fn make<T>(&self, path: &Path, mut request: impl FnMut() -> Result<T>) -> Result<T> {
        let (requests, mut tries, began) = (&self.requests, 1, Instant::now());
        let cleans_up = requests.stop.is_set();
        loop {
            if self.is_counted {
                requests.count(tries > 1);
            }
            let done = request();
            let Err(error) = done else {
                self.has_answered.store(true, Ordering::Relaxed);
                return done;
            };
            let retry_after_s = error.details.retry_after_s;
            if retry_after_s.is_some() {
                requests.count_throttled();
            }
            let is_stopped = requests.stop.is_set() && !cleans_up;
            if !error.retryable() && !is_stopped {
                return Err(error);
            }
            let is_patient = self.may_come_back(&error) && began.elapsed() < PATIENCE;
            if tries >= TRIES_MAX && !is_patient {
                let error = error.with_path(path).with("tries", tries);
                return Err(match error.advice() {
                    Some(_) => error,
                    None => error.advise("check that the store can be reached, and run again"),
                });
            }
            let waited = wait(tries, retry_after_s, by_chance());
            if cleans_up && (began.elapsed() + waited > LAST || error.details.no_answer.is_some()) {
                return Err(error);
            }
            if cleans_up {
                thread::sleep(waited);
            } else if is_stopped || requests.stop.sleep(waited) {
                return Err(Error::cancelled());
            }
            tries += 1;
        }
    }

    /// Whether a store gave no answer that has given some before.
    fn may_come_back(&self, error: &Error) -> bool {
        error.details.no_answer.is_some() && self.has_answered.load(Ordering::Relaxed)
    }
}

/// How long to wait after so many tries; `chance` is drawn from all numbers.
fn wait(tries: u32, retry_after_s: Option<u64>, chance: u64) -> Duration {
    let (first_ms, longest_ms) = match retry_after_s {
        Some(_) => THROTTLED_WAITS_MS,
        None => WAITS_MS,
    };
    let whole_ms = (first_ms << (tries - 1).min(20)).min(longest_ms);
    let half_us = whole_ms * 1000 / 2;
    let drawn = Duration::from_micros(half_us + chance % (half_us + 1));
    // What the store asks for is the least: those that it asked at once would else come back at once.
    Duration::from_secs(retry_after_s.unwrap_or(0).min(RETRY_AFTER_MAX_S)) + drawn
}

/// Spreads a number over all 64 bits (SplitMix64: Steele, Lea, Flood 2014).
pub(super) fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Says of an error that there was no answer.
pub(crate) fn unanswered(error: Error) -> Error {
    error
        .retryable_error()
        .noting(|details| details.no_answer = Some(true))
}

/// Says of an error that the store has too many requests, and what `Retry-After` says: seconds, or a time.
pub(crate) fn throttled(error: Error, headers: &HeaderMap) -> Error {
    let after = header(headers, "retry-after").unwrap_or("0");
    let until = || {
        let until = SystemTime::from(DateTime::parse_from_rfc2822(after).ok()?);
        let left = until.duration_since(SystemTime::now()).ok()?;
        Some(left.as_secs() + 1)
    };
    let seconds: u64 = after.parse().ok().or_else(until).unwrap_or(0);
    error
        .retryable_error()
        .noting(|details| details.retry_after_s = Some(seconds))
}

impl<O: Objects> Objects for Retried<O> {
    forward! { self, path => self.inner, by self.retry;
        head() -> Result<Option<Object>>;
        list(from: Option<&str>) -> Result<Page>;
        list_after(name: &str) -> Result<Option<Page>>;
        get(version: &ReadVersion, buffer: &mut [u8], offset: u64) -> Result<usize>;
        delete() -> Result<()>;
        put(object: &Part) -> Result<()>;
        copy(source: &Object, to: &Path, token: Option<&str>) -> Result<Option<String>>;
        copy_part(id: &str, number: u32, of: SourceRange<'_>) -> Result<UploadPart>;
        begin() -> Result<String>;
        put_part(id: &str, number: u32, part: &Part) -> Result<UploadPart>;
        parts(id: &str) -> Result<Option<Vec<KeptPart>>>;
        abort(id: &str) -> Result<()>;
        uploads() -> Result<Vec<(PathBuf, String)>>;
    }

    fn copies(&self, from: &Path, to: &Path) -> Option<StoreCopies> {
        self.inner.copies(from, to)
    }

    fn complete(&self, upload: &Upload) -> Result<()> {
        self.completed(upload, || self.inner.complete(upload))
    }

    fn complete_copy(&self, upload: &Upload, source: &Object) -> Result<()> {
        self.completed(upload, || self.inner.complete_copy(upload, source))
    }

    fn is_made(&self, upload: &Upload) -> Result<bool> {
        let stop = &self.retries.requests.stop;
        loop {
            if self.retry(upload.path.as_typed(), || self.inner.is_made(upload))? {
                return Ok(true);
            }
            let missed = self.missed.get_or_init(Instant::now);
            if !self.inner.completes_alone() || missed.elapsed() > COMPLETING {
                return Ok(false);
            }
            if stop.is_set() || stop.sleep(COMPLETING_LOOK) {
                return Ok(false);
            }
        }
    }

    fn completes_alone(&self) -> bool {
        self.inner.completes_alone()
    }
}

/// The error of an object that is not the version any more that was to be read.
pub(crate) fn replaced(path: &Path) -> Error {
    let message = "it was replaced while the job read it";
    Error::new(Kind::InputChanged, "read the input", message)
        .with_path(path)
        .advise("let no program write to the input, then run again")
}

/// The error of a store that failed at a request, perhaps after it was done.
pub(super) fn failed(operation: &'static str) -> Error {
    let message = "the store answered 500: it failed, or the reply was lost";
    Error::new(Kind::Io, operation, message).retryable_error()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn waits_grow_and_half_of_each_is_chance(tries in 1_u32..40, chance: u64) {
            let waited = wait(tries, None, chance);
            let whole = Duration::from_millis(10 * 2_u64.pow((tries - 1).min(10))).min(Duration::from_secs(2));
            prop_assert!(waited >= whole / 2 && waited <= whole, "{waited:?}");
            let asked = wait(tries, Some(3), chance);
            prop_assert!(asked >= Duration::from_secs(3) && asked <= Duration::from_secs(8));
            prop_assert!(wait(tries, Some(u64::MAX), chance) <= Duration::from_secs(65));
            prop_assert!(wait(tries, Some(0), chance) >= Duration::from_millis(50));
        }
    }

    /// A store that makes the object of an upload some looks after the upload is gone.
    #[derive(Debug)]
    struct Late {
        inner: super::super::directory::DirectoryStore,
        looks: std::sync::atomic::AtomicU32,
    }

    impl Objects for Late {
        fn head(&self, path: &Path) -> Result<Option<Object>> {
            let left = self.looks.load(Ordering::Relaxed);
            self.looks.store(left.saturating_sub(1), Ordering::Relaxed);
            if left > 0 {
                Ok(None)
            } else {
                self.inner.head(path)
            }
        }
        fn list(&self, directory: &Path, from: Option<&str>) -> Result<Page> {
            self.inner.list(directory, from)
        }
        fn get(&self, path: &Path, version: &ReadVersion, to: &mut [u8], at: u64) -> Result<usize> {
            self.inner.get(path, version, to, at)
        }
        fn delete(&self, path: &Path) -> Result<()> {
            self.inner.delete(path)
        }
        fn begin(&self, path: &Path) -> Result<String> {
            self.inner.begin(path)
        }
        fn put_part(&self, path: &Path, id: &str, n: u32, part: &Part) -> Result<UploadPart> {
            self.inner.put_part(path, id, n, part)
        }
        fn parts(&self, _: &Path, _: &str) -> Result<Option<Vec<KeptPart>>> {
            Ok(None)
        }
        fn complete(&self, _: &Upload) -> Result<()> {
            Err(Error::new(
                Kind::NotFound,
                "publish the output",
                "there is no such upload",
            ))
        }
        fn completes_alone(&self) -> bool {
            true
        }
        fn abort(&self, path: &Path, id: &str) -> Result<()> {
            self.inner.abort(path, id)
        }
        fn uploads(&self, path: &Path) -> Result<Vec<(PathBuf, String)>> {
            self.inner.uploads(path)
        }
    }

    #[test]
    fn an_object_that_the_store_is_still_making_for_a_dead_job_is_waited_for() {
        use super::super::{ObjectStore, directory::DirectoryStore};
        use crate::{Caching, OutputStore as _, Publisher as _};
        let folder = tempfile::tempdir().unwrap();
        let path = format!("objects://{}/a", folder.path().display());
        let writer = ObjectStore::new(Arc::new(DirectoryStore));
        let file = writer.create(path.as_ref(), 5, Caching::Direct).unwrap();
        file.write_at(b"hello", 0).unwrap();
        let upload = file.finish().unwrap().unwrap();
        writer.objects().complete(&upload).unwrap();
        let late = |looks| {
            let looks = std::sync::atomic::AtomicU32::new(looks);
            let inner = DirectoryStore;
            let late = Late { inner, looks };
            ObjectStore::new(Arc::new(Retried::new(late, Arc::default())))
        };
        assert!(late(0).has(&upload).unwrap());
        assert!(late(3).has(&upload).unwrap());
        late(3).complete(&upload).unwrap();
        // An object of other bytes is none that it made.
        let mut other = upload.clone();
        other.parts[0].crc ^= 1;
        let store = Retried::new(
            Late {
                inner: DirectoryStore,
                looks: 0.into(),
            },
            Arc::default(),
        );
        store
            .missed
            .set(Instant::now().checked_sub(COMPLETING * 2).unwrap())
            .unwrap();
        assert!(!store.is_made(&other).unwrap());
        assert_eq!(store.complete(&other).unwrap_err().kind(), Kind::NotFound);
    }

    #[test]
    fn chance_differs() {
        let drawn: std::collections::BTreeSet<u64> = (0..100).map(|_| by_chance()).collect();
        assert!(drawn.len() > 90);
    }

    #[test]
    fn stores_say_how_long_to_wait_in_seconds_or_as_a_time() {
        let soon = chrono::Utc::now() + chrono::TimeDelta::seconds(30);
        let past = chrono::Utc::now() - chrono::TimeDelta::seconds(30);
        for (text, least, most) in [
            ("7", 7, 7),
            (&*soon.to_rfc2822(), 29, 31),
            (&*past.to_rfc2822(), 0, 0),
            ("soon", 0, 0),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("retry-after", text.parse().unwrap());
            let error = throttled(failed("read"), &headers);
            let seconds = error.details.retry_after_s.unwrap();
            assert!((least..=most).contains(&seconds), "{text}: {seconds}");
        }
    }
}

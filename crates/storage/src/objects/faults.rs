//! Objects that fail as remote ones do: requests are refused or too many, replies are lost, listings come late.
//!
//! Which request fails follows from the seed and the number of the request alone.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use http::HeaderMap;

use super::retry::{failed, mixed, throttled};
use super::{KeptPart, Object, Objects, Page, Part, SourceRange, StoreCopies, Upload, UploadPart};
use crate::forward::forward;
use crate::version::ReadVersion;
use gristmill_base::error::{Error, Kind, Result};

/// The variable that has requests of object stores fail, for tests and for trying.
pub const VARIABLE: &str = "GRISTMILL_OBJECTS_FAULTS";

/// What goes wrong, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Faults {
    /// The share of requests that are answered with 500 and not done.
    pub refused: f64,
    /// The share of requests that are done, and answered with 500.
    pub lost: f64,
    /// The share of requests that are answered with 503, as the store has too many, and not done.
    pub throttled: f64,
    /// For how long an object is in no listing.
    pub late: Duration,
    /// Other seeds choose other requests.
    pub seed: u64,
}

impl Faults {
    /// Reads `refused=0.1,lost=0.05,throttled=0.1,late_ms=200,seed=3`, in any order.
    ///
    /// # Errors
    /// It is not of that form.
    ///
    /// ```
    /// use gristmill_storage::objects::faults::Faults;
    /// assert_eq!(Faults::parse("refused=0.1,seed=3")?.seed, 3);
    /// assert!(Faults::parse("refused=often").is_err());
    /// assert!(Faults::parse("refused=2").is_err());
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = |given: &str| {
            let message = format!("{given:?} is not a fault of an object store");
            Error::new(Kind::BadOption, "read the options", message)
                .advise("give for example refused=0.1,lost=0.05,throttled=0.1,late_ms=200,seed=3")
        };
        let mut faults = Faults::default();
        for given in text.split(',').filter(|given| !given.is_empty()) {
            let (name, value) = given.split_once('=').ok_or_else(|| wrong(given))?;
            let share = || match value.parse::<f64>() {
                Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
                _ => Err(wrong(given)),
            };
            let whole = || value.parse::<u64>().map_err(|_unread| wrong(given));
            match name {
                "refused" => faults.refused = share()?,
                "lost" => faults.lost = share()?,
                "throttled" => faults.throttled = share()?,
                "late_ms" => faults.late = Duration::from_millis(whole()?),
                "seed" => faults.seed = whole()?,
                _ => return Err(wrong(given)),
            }
        }
        Ok(faults)
    }
}

/// Other objects, with faults.
#[derive(Debug)]
pub struct Unreliable<O> {
    inner: O,
    faults: Faults,
    requests: AtomicU64,
}

impl<O: Objects> Unreliable<O> {
    /// `inner`, with `faults`.
    pub fn new(inner: O, faults: Faults) -> Self {
        let requests = AtomicU64::new(0);
        Unreliable {
            inner,
            faults,
            requests,
        }
    }

    /// A number from 0 to 1 for the next request.
    fn next(&self) -> f64 {
        let request = self.requests.fetch_add(1, Ordering::Relaxed);
        let mixed = mixed((self.faults.seed << 32).wrapping_add(request));
        (mixed >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn request<T>(
        &self,
        operation: &'static str,
        _path: &Path,
        request: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let Faults {
            refused,
            lost,
            throttled: many,
            ..
        } = self.faults;
        let number = self.next();
        if number < refused {
            return Err(failed(operation));
        }
        if number >= 1.0 - many {
            let message = "the store answered 503 SlowDown: it has too many requests";
            let error = Error::new(Kind::Io, operation, message);
            return Err(throttled(error, &HeaderMap::new()));
        }
        let done = request();
        if number < refused + lost {
            return Err(failed(operation));
        }
        done
    }
}

impl<O: Objects> Unreliable<O> {
    /// Takes from a listing what is too new to be in it.
    fn keep_back(&self, page: &mut Page) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now_ns = now.unwrap_or_default().as_nanos() as i128;
        let late_ns = self.faults.late.as_nanos() as i128;
        if late_ns > 0 {
            let is_new = |object: Object| object.modified_ns + late_ns > now_ns;
            let head = |path: &Path| self.inner.head(path).ok().flatten();
            page.found
                .retain(|found| !head(&found.path).is_some_and(is_new));
        }
    }
}

impl<O: Objects> Objects for Unreliable<O> {
    forward! { self, path => self.inner, by self.request;
        head() -> Result<Option<Object>>, "look at a file";
        get(version: &ReadVersion, buffer: &mut [u8], offset: u64) -> Result<usize>, "read the input";
        delete() -> Result<()>, "remove";
        put(object: &Part) -> Result<()>, "write the output";
        copy(source: &Object, to: &Path, token: Option<&str>) -> Result<Option<String>>, "copy a file";
        copy_part(id: &str, number: u32, of: SourceRange<'_>) -> Result<UploadPart>, "copy a file";
        begin() -> Result<String>, "create the output";
        put_part(id: &str, number: u32, part: &Part) -> Result<UploadPart>, "write the output";
        parts(id: &str) -> Result<Option<Vec<KeptPart>>>, "look at an upload";
        abort(id: &str) -> Result<()>, "end an upload";
        uploads() -> Result<Vec<(PathBuf, String)>>, "list uploads";
    }

    fn list(&self, directory: &Path, from: Option<&str>) -> Result<Page> {
        self.request("list a directory", directory, || {
            let mut page = self.inner.list(directory, from)?;
            self.keep_back(&mut page);
            Ok(page)
        })
    }

    fn list_after(&self, directory: &Path, name: &str) -> Result<Option<Page>> {
        self.request("list a directory", directory, || {
            let mut page = self.inner.list_after(directory, name)?;
            page.iter_mut().for_each(|page| self.keep_back(page));
            Ok(page)
        })
    }

    fn copies(&self, from: &Path, to: &Path) -> Option<StoreCopies> {
        self.inner.copies(from, to)
    }

    fn complete_copy(&self, upload: &Upload, source: &Object) -> Result<()> {
        self.request("publish the output", upload.path.as_typed(), || {
            self.inner.complete_copy(upload, source)
        })
    }

    fn complete(&self, upload: &Upload) -> Result<()> {
        self.request("publish the output", upload.path.as_typed(), || {
            self.inner.complete(upload)
        })
    }
}

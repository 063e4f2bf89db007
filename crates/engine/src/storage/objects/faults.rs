//! Objects that fail as remote ones do: requests are refused, replies are lost, listings come late.
//!
//! Which request fails follows from the seed and the number of the request alone.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use super::retry::busy;
use super::{KeptPart, Object, Objects, Part, Upload, UploadPart};
use crate::error::{Error, Kind, Result};

/// What goes wrong, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Faults {
    /// The share of requests that are answered with 503 and not done.
    pub refused: f64,
    /// The share of requests that are done, and answered with 503.
    pub lost: f64,
    /// For how long an object is in no listing.
    pub late: Duration,
    /// Other seeds choose other requests.
    pub seed: u64,
}

impl Faults {
    /// Reads `refused=0.1,lost=0.05,late_ms=200,seed=3`, in any order.
    ///
    /// # Errors
    /// It is not of that form.
    ///
    /// ```
    /// use gristmill_engine::storage::objects::faults::Faults;
    /// assert_eq!(Faults::parse("refused=0.1,seed=3")?.seed, 3);
    /// assert!(Faults::parse("refused=often").is_err());
    /// assert!(Faults::parse("refused=2").is_err());
    /// # Ok::<(), gristmill_engine::Error>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = |given: &str| {
            let message = format!("{given:?} is not a fault of an object store");
            Error::new(Kind::BadOption, "read the options", message)
                .advise("give for example refused=0.1,lost=0.05,late_ms=200,seed=3")
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
        // SplitMix64 (Steele, Lea, Flood 2014).
        let mut mixed = (self.faults.seed << 32)
            .wrapping_add(request)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn request<T>(
        &self,
        operation: &'static str,
        request: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let number = self.next();
        if number < self.faults.refused {
            return Err(busy(operation));
        }
        let done = request();
        if number < self.faults.refused + self.faults.lost {
            return Err(busy(operation));
        }
        done
    }
}

impl<O: Objects> Objects for Unreliable<O> {
    fn head(&self, path: &Path) -> Result<Option<Object>> {
        self.request("look at a file", || self.inner.head(path))
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>> {
        self.request("list a directory", || {
            let mut found = self.inner.list(directory)?;
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            let now_ns = now.unwrap_or_default().as_nanos() as i128;
            let late_ns = self.faults.late.as_nanos() as i128;
            if late_ns > 0 {
                let is_new = |object: Object| object.modified_ns + late_ns > now_ns;
                found.retain(|path| !self.inner.head(path).ok().flatten().is_some_and(is_new));
            }
            Ok(found)
        })
    }

    fn get(&self, path: &Path, version: &str, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.request("read the input", || {
            self.inner.get(path, version, buffer, offset)
        })
    }

    fn delete(&self, path: &Path) -> Result<()> {
        self.request("remove", || self.inner.delete(path))
    }

    fn begin(&self, path: &Path) -> Result<String> {
        self.request("create the output", || self.inner.begin(path))
    }

    fn put_part(&self, path: &Path, id: &str, number: u32, part: &Part) -> Result<UploadPart> {
        self.request("write the output", || {
            self.inner.put_part(path, id, number, part)
        })
    }

    fn parts(&self, path: &Path, id: &str) -> Result<Option<Vec<KeptPart>>> {
        self.request("look at an upload", || self.inner.parts(path, id))
    }

    fn complete(&self, upload: &Upload) -> Result<()> {
        self.request("publish the output", || self.inner.complete(upload))
    }

    fn abort(&self, path: &Path, id: &str) -> Result<()> {
        self.request("end an upload", || self.inner.abort(path, id))
    }

    fn uploads(&self, path: &Path) -> Result<Vec<(PathBuf, String)>> {
        self.request("list uploads", || self.inner.uploads(path))
    }
}

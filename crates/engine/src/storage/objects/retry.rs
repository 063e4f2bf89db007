//! Requests that are tried again: the one place where that is done, for any store.
//!
//! ```text
//!   request ── error that a retry may mend ── wait 10, 20, 40, .. ms (at most 2 s) ── request ...   10 times
//! ```
//!
//! A reply can be lost after the request was done. All requests but two may simply be repeated: an upload that nobody has
//! the name of is ended by the committer, who asks for uploads by location; and of an upload that is gone when it is to
//! be completed, the object is asked whether it is what the upload makes.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::{KeptPart, Object, Objects, Part, Upload, UploadPart};
use crate::error::{Error, Kind, Result};

/// How often a request is made: with one failure in three, one request in 59,000 fails.
const TRIES_MAX: u32 = 10;

const FIRST_WAIT_MS: u64 = 10;
const WAIT_MAX_MS: u64 = 2_000;

/// Objects whose requests are tried again.
///
/// ```
/// use gristmill_engine::storage::objects::{Objects, directory::Directory, faults::{Faults, Unreliable}, retry::Retried};
/// let folder = tempfile::tempdir()?;
/// let path = format!("objects://{}/a", folder.path().display());
/// let faults = Faults { refused: 0.5, seed: 1, ..Faults::default() };
/// let objects = Retried::new(Unreliable::new(Directory, faults));
/// for _ in 0..20 {
///     assert!(objects.head(path.as_ref())?.is_none());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Retried<O> {
    inner: O,
}

impl<O: Objects> Retried<O> {
    /// `inner`, tried again.
    pub fn new(inner: O) -> Self {
        Retried { inner }
    }
}

/// Makes a request until it is done, fails for good, or has failed too often.
pub(in crate::storage) fn retry<T>(
    path: &Path,
    mut request: impl FnMut() -> Result<T>,
) -> Result<T> {
    let (mut tries, mut wait_ms) = (1, FIRST_WAIT_MS);
    loop {
        match request() {
            Err(error) if error.retryable() && tries == TRIES_MAX => {
                let error = error.with_path(path).with("tries", tries);
                return Err(match error.advice() {
                    Some(_) => error,
                    None => error.advise("check that the store can be reached, and run again"),
                });
            }
            Err(error) if error.retryable() => {
                thread::sleep(Duration::from_millis(wait_ms));
                wait_ms = (2 * wait_ms).min(WAIT_MAX_MS);
                tries += 1;
            }
            done => return done,
        }
    }
}

impl<O: Objects> Objects for Retried<O> {
    fn head(&self, path: &Path) -> Result<Option<Object>> {
        retry(path, || self.inner.head(path))
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>> {
        retry(directory, || self.inner.list(directory))
    }

    fn get(&self, path: &Path, version: &str, buffer: &mut [u8], offset: u64) -> Result<usize> {
        retry(path, || self.inner.get(path, version, buffer, offset))
    }

    fn delete(&self, path: &Path) -> Result<()> {
        retry(path, || self.inner.delete(path))
    }

    fn begin(&self, path: &Path) -> Result<String> {
        retry(path, || self.inner.begin(path))
    }

    fn put_part(&self, path: &Path, id: &str, number: u32, part: &Part) -> Result<UploadPart> {
        retry(path, || self.inner.put_part(path, id, number, part))
    }

    fn parts(&self, path: &Path, id: &str) -> Result<Option<Vec<KeptPart>>> {
        retry(path, || self.inner.parts(path, id))
    }

    fn complete(&self, upload: &Upload) -> Result<()> {
        let path = upload.path.as_typed();
        let is_done = || -> Result<bool> {
            let object = self.inner.head(path)?;
            Ok(object.is_some_and(|object| upload.made(&object)))
        };
        retry(path, || match self.inner.complete(upload) {
            // It was completed, and the reply lost; or by a job that was killed then.
            Err(error) if error.kind() == Kind::NotFound => match is_done()? {
                true => Ok(()),
                false => Err(error),
            },
            done => done,
        })
    }

    fn abort(&self, path: &Path, id: &str) -> Result<()> {
        retry(path, || self.inner.abort(path, id))
    }

    fn uploads(&self, path: &Path) -> Result<Vec<(PathBuf, String)>> {
        retry(path, || self.inner.uploads(path))
    }
}

/// The error of an object that is not the version any more that was to be read.
pub(in crate::storage) fn replaced(path: &Path) -> Error {
    let message = "it was replaced while the job read it";
    Error::new(Kind::InputChanged, "read the input", message)
        .with_path(path)
        .advise("let no program write to the input, then run again")
}

/// The error of a store that cannot take a request now.
pub(super) fn busy(operation: &'static str) -> Error {
    let message = "the store answered 503: it is busy, or the reply was lost";
    Error::new(Kind::Io, operation, message).retryable_error()
}

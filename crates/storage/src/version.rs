//! Which version of a remote file is read: what its store calls it, or as long as no reply has said that, a hash of it.
//!
//! ```text
//!   listing, HEAD ── ETag ──▶ Stat (128 bits of it) ── task ──▶ ReadVersion ── first reply: is it? ──▶ its ETag is known
//!                               └─ FoundVersion, in splits that travel as JSON ──▶ Stat
//!                                                                           ── later requests: only if it still is
//! ```
//!
//! So a file that a listing found is opened without a request, in any process, and what is known of it has a fixed length.
//! The rule that must hold: bytes of two versions are never mixed.
//!
//! Decision: docs/decisions/object-versions.md.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use md5::{Digest, Md5};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{FileKind, Stat};

/// The version that is read.
#[derive(Debug)]
pub struct ReadVersion {
    identity: (u64, u64),
    text: OnceLock<String>,
}

/// What stands for a version in a [`Stat`]: another one whenever the text is.
pub fn identity_of(text: &str) -> (u64, u64) {
    let digest = u128::from_be_bytes(Md5::digest(text).into());
    ((digest >> 64) as u64, digest as u64)
}

impl ReadVersion {
    /// The version that a store calls so.
    pub fn new(text: &str) -> Self {
        ReadVersion {
            identity: identity_of(text),
            text: OnceLock::from(text.to_owned()),
        }
    }

    /// The version that was found.
    ///
    /// ```
    /// use gristmill_storage::version::{ReadVersion, identity_of};
    /// use gristmill_storage::{FileKind, Stat};
    /// let identity = identity_of("an ETag");
    /// let version = ReadVersion::found(&Stat { kind: FileKind::File, bytes: 1, modified_ns: 0, identity });
    /// assert_eq!((version.is("another"), version.text()), (false, None));
    /// assert_eq!((version.is("an ETag"), version.text()), (true, Some("an ETag")));
    /// ```
    pub fn found(stat: &Stat) -> Self {
        ReadVersion {
            identity: stat.identity,
            text: OnceLock::new(),
        }
    }

    /// What the store calls it, if that is known.
    pub fn text(&self) -> Option<&str> {
        self.text.get().map(String::as_str)
    }

    /// Whether this text is its name, which is known from then on.
    pub fn is(&self, text: &str) -> bool {
        match self.text() {
            Some(known) => known == text,
            None => {
                let is_it = identity_of(text) == self.identity;
                if is_it {
                    self.text.get_or_init(|| text.to_owned());
                }
                is_it
            }
        }
    }
}

/// What a job found of a remote file beside its length, and its tasks open it with. In JSON it is a text: time, then identity.
///
/// ```
/// use gristmill_storage::version::FoundVersion;
/// use gristmill_storage::{FileKind, Stat};
/// let found = Stat { kind: FileKind::File, bytes: 9, modified_ns: -7, identity: (0, u64::MAX) };
/// let version = FoundVersion::of(&found);
/// assert_eq!(serde_json::to_string(&version)?, r#""-7.0.18446744073709551615""#);
/// assert_eq!("-7.0.18446744073709551615".parse(), Ok(version));
/// assert_eq!(version.stat(9), found);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundVersion {
    modified_ns: i128,
    identity: (u64, u64),
}

impl FoundVersion {
    /// The version that a store spoke of.
    pub fn of(found: &Stat) -> Self {
        FoundVersion {
            modified_ns: found.modified_ns,
            identity: found.identity,
        }
    }

    /// What was found of the file, which had so many bytes.
    pub fn stat(&self, bytes: u64) -> Stat {
        Stat {
            kind: FileKind::File,
            bytes,
            modified_ns: self.modified_ns,
            identity: self.identity,
        }
    }
}

impl fmt::Display for FoundVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, second) = self.identity;
        write!(f, "{}.{first}.{second}", self.modified_ns)
    }
}

impl FromStr for FoundVersion {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.splitn(3, '.');
        let mut found = || {
            Some(FoundVersion {
                modified_ns: parts.next()?.parse().ok()?,
                identity: (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?),
            })
        };
        found().ok_or("a version is a time and two numbers, with points between them")
    }
}

impl Serialize for FoundVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FoundVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

//! Which version of a remote file is read: what its store calls it, or as long as no reply has said that, a hash of it.
//!
//! ```text
//!   listing, HEAD ── ETag ──▶ Stat (128 bits of it) ── task ──▶ Version ── first reply: is it? ──▶ its ETag is known
//!                                                                       ── later requests: only if it still is
//! ```
//!
//! So a file that a listing found is opened without a request, in any process, and what is known of it has a fixed length.
//! The rule that must hold: bytes of two versions are never mixed.

use std::sync::OnceLock;

use md5::{Digest, Md5};

use super::Stat;

/// The version that is read.
#[derive(Debug)]
pub struct Version {
    identity: (u64, u64),
    text: OnceLock<String>,
}

/// What stands for a version in a [`Stat`]: another one whenever the text is.
pub fn identity_of(text: &str) -> (u64, u64) {
    let digest = u128::from_be_bytes(Md5::digest(text).into());
    ((digest >> 64) as u64, digest as u64)
}

impl Version {
    /// The version that a store calls so.
    pub fn new(text: &str) -> Self {
        Version {
            identity: identity_of(text),
            text: OnceLock::from(text.to_owned()),
        }
    }

    /// The version that was found.
    ///
    /// ```
    /// use gristmill_engine::storage::version::{Version, identity_of};
    /// use gristmill_engine::storage::{FileKind, Stat};
    /// let identity = identity_of("an ETag");
    /// let version = Version::found(&Stat { kind: FileKind::File, bytes: 1, modified_ns: 0, identity });
    /// assert_eq!((version.is("another"), version.text()), (false, None));
    /// assert_eq!((version.is("an ETag"), version.text()), (true, Some("an ETag")));
    /// ```
    pub fn found(stat: &Stat) -> Self {
        Version {
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

//! Where something is: `scheme://authority/path` of a remote store, or a path of this machine.
//!
//! ```text
//!   s3://bucket/data/a      scheme s3, authority bucket, path /data/a
//!   objects:///tmp/o/a      scheme objects, no authority, path /tmp/o/a
//!   data/a                  a path of this machine: bytes, relative or not, as the user typed them
//! ```
//!
//! Specs and reports hold locations as paths, spelled as the user typed them: joining, and taking the name or the parent,
//! keeps the two slashes. The rule that must hold: what a path of a file system means (the directory that a job was begun
//! in, links, `..`) is asked of local paths alone.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::names::show_path;

/// What ends a scheme.
const MARK: &str = "://";

/// A location, read from how it is spelled.
///
/// ```
/// use gristmill_engine::storage::location::Location;
/// let location = Location::of("s3://bucket/data/a".as_ref());
/// assert_eq!((location.scheme(), location.authority(), location.path()), (Some("s3"), "bucket", "/data/a".as_ref()));
/// assert_eq!(location.join("b").to_string_lossy(), "s3://bucket/data/a/b");
/// assert_eq!(Location::of("data/a".as_ref()).scheme(), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location<'a>(&'a Path);

impl<'a> Location<'a> {
    /// The location that is spelled so.
    pub fn of(path: &'a Path) -> Self {
        Location(path)
    }

    /// The scheme, and what follows `://`; nothing of a path of this machine.
    fn parts(self) -> Option<(&'a str, &'a Path)> {
        let bytes = self.0.as_os_str().as_encoded_bytes();
        let end = bytes.iter().position(|byte| *byte == b':')?;
        let scheme = std::str::from_utf8(bytes.get(..end)?).ok()?;
        let follows = |byte: &u8| byte.is_ascii_alphanumeric() || b"+.-".contains(byte);
        let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic());
        if !is_scheme || !scheme.bytes().all(|byte| follows(&byte)) {
            return None;
        }
        let rest = bytes.get(end..)?.strip_prefix(MARK.as_bytes())?;
        // SAFETY of a kind: what follows ASCII characters is cut where a character begins.
        let rest = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(rest);
        Some((scheme, Path::new(rest)))
    }

    /// The scheme; none of a path of this machine.
    pub fn scheme(self) -> Option<&'a str> {
        self.parts().map(|(scheme, _)| scheme)
    }

    /// Whether it is no path of this machine.
    pub fn is_remote(self) -> bool {
        self.parts().is_some()
    }

    /// What stands between `://` and the next slash: a bucket, a host.
    pub fn authority(self) -> &'a str {
        let rest = self
            .parts()
            .map_or("", |(_, rest)| rest.to_str().unwrap_or(""));
        rest.split('/').next().unwrap_or("")
    }

    /// What follows the authority; of a local path, all of it.
    pub fn path(self) -> &'a Path {
        match self.parts() {
            None => self.0,
            Some((_, rest)) => {
                let bytes = rest.as_os_str().as_encoded_bytes();
                let path = bytes.get(self.authority().len()..).unwrap_or_default();
                Path::new(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(path))
            }
        }
    }

    /// A location below it.
    pub fn join(self, name: impl AsRef<Path>) -> PathBuf {
        self.0.join(name)
    }

    /// Its last name; none where it has only an authority.
    pub fn name(self) -> Option<&'a std::ffi::OsStr> {
        self.path().file_name()
    }

    /// The location that it lies in; none of an authority alone.
    pub fn parent(self) -> Option<Location<'a>> {
        self.name()?;
        self.0.parent().map(Location)
    }

    /// As an absolute location, where `directory` is the one that it was named in.
    ///
    /// ```
    /// use gristmill_engine::storage::location::Location;
    /// let rooted = |path: &str| Location::of(path.as_ref()).rooted("/home".as_ref());
    /// assert_eq!(rooted("s3://b/k").to_str(), Some("s3://b/k"));
    /// assert_eq!(rooted("a").to_str(), Some("/home/a"));
    /// ```
    pub fn rooted(self, directory: &Path) -> PathBuf {
        if self.is_remote() {
            self.0.to_owned()
        } else {
            directory.join(self.0)
        }
    }

    /// Whether it lies in `outer`, or is it. Links of this machine are followed where the paths exist.
    ///
    /// ```
    /// use gristmill_engine::storage::location::Location;
    /// let lies_in = |inner: &str, outer: &str| Location::of(inner.as_ref()).lies_in(Location::of(outer.as_ref()));
    /// assert!(lies_in("s3://b/k/a", "s3://b/k/") && !lies_in("s3://b/kk", "s3://b/k") && !lies_in("/b/k", "s3://b"));
    /// ```
    pub fn lies_in(self, outer: Location<'_>) -> bool {
        if self.is_remote() || outer.is_remote() {
            return self.0.starts_with(outer.0);
        }
        let real = |path: &Path| -> PathBuf {
            path.canonicalize()
                .or_else(|_| std::path::absolute(path))
                .unwrap_or_else(|_| path.to_owned())
        };
        real(self.0).starts_with(real(outer.0))
    }
}

impl fmt::Display for Location<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&show_path(self.0))
    }
}

/// The folder that holds `path` by name; `.` for a bare name.
///
/// ```
/// use gristmill_engine::storage::location::parent_of;
/// assert_eq!(parent_of("out".as_ref()), std::path::Path::new("."));
/// assert_eq!(parent_of("a/out".as_ref()), std::path::Path::new("a"));
/// ```
pub fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_taken_apart_and_keep_their_slashes() {
        for (text, scheme, authority, path, parent) in [
            ("s3://b/k/a", Some("s3"), "b", "/k/a", Some("s3://b/k")),
            ("s3://b", Some("s3"), "b", "", None),
            (
                "objects:///d/a",
                Some("objects"),
                "",
                "/d/a",
                Some("objects:///d"),
            ),
            (
                "hdfs://h:9000/a",
                Some("hdfs"),
                "h:9000",
                "/a",
                Some("hdfs://h:9000"),
            ),
            ("/a//b", None, "", "/a//b", Some("/a")),
            ("a:b/c", None, "", "a:b/c", Some("a:b")),
            ("./s3://b", None, "", "./s3://b", Some("./s3:")),
            ("1://b", None, "", "1://b", Some("1:")),
        ] {
            let location = Location::of(text.as_ref());
            let found = (location.scheme(), location.authority(), location.path());
            assert_eq!(found, (scheme, authority, Path::new(path)), "{text}");
            let parent_of = location.parent().map(|parent| parent.to_string());
            assert_eq!(parent_of.as_deref(), parent, "{text}");
            assert_eq!(location.to_string(), text);
            assert_eq!(location.join("x").to_str().unwrap(), format!("{text}/x"));
        }
    }
}

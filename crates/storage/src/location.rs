//! Where something is: `scheme://authority/path` of a remote store, or a path of this machine.
//!
//! ```text
//!   s3://bucket/data/a      scheme s3, authority bucket, path /data/a
//!   objects:///tmp/o/a      scheme objects, no authority, path /tmp/o/a
//!   data/a                  a path of this machine: bytes, relative or not, as the user typed them
//!   file:///data/a%20b      the path /data/a b; file://localhost/... likewise
//!   s3a://bucket/a          what Hadoop's programs call s3://bucket/a; s3n:// likewise
//! ```
//!
//! Specs and reports name inputs and outputs by a [`Location`], which [`Stores`](super::stores::Stores) resolves. It is
//! spelled as the user typed it, but for the last two: joining, and taking the name or the parent, keeps the two slashes. What only a disk of this
//! machine has (runs, folders of jobs) is a [`Path`]. The rule that must hold: a location becomes a path only by
//! [`Location::local`], or to be shown; and what a path of a file system means (the directory that a job was begun in,
//! links, `..`) is asked of local paths alone.
//!
//! Decision: docs/decisions/locations.md.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use percent_encoding::percent_decode;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use gristmill_base::names::{Names, name_of, show_path, spell};
use gristmill_base::sys::file_calls;

/// What ends a scheme.
const MARK: &str = "://";

/// What other programs call a scheme, and the scheme: Hadoop has had three clients of S3.
pub const OTHER_SCHEMES: [(&str, &str); 2] = [("s3a", "s3"), ("s3n", "s3")];

/// Standard input or output, as a name; `./-` is a file.
pub const DASH: &str = "-";

/// A location, as it was spelled. In JSON it is what the path of this spelling is (see [`gristmill_base::names`]).
///
/// ```
/// use gristmill_storage::location::Location;
/// let location = Location::from("s3://bucket/data/a");
/// assert_eq!((location.scheme(), location.authority()), (Some("s3"), "bucket"));
/// assert_eq!(location.path().to_str(), Some("/data/a"));
/// assert_eq!(location.join("b"), Location::from("s3://bucket/data/a/b"));
/// assert_eq!(serde_json::to_string(&location)?, r#""s3://bucket/data/a""#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Location(
    #[serde(serialize_with = "write", deserialize_with = "read")] Box<Path>, // a job may have a million
);

impl Location {
    /// As it was spelled: for messages, and for the store that has the location.
    pub fn as_typed(&self) -> &Path {
        &self.0
    }

    /// The path, if it is one of this machine.
    ///
    /// ```
    /// use gristmill_storage::location::Location;
    /// assert_eq!(Location::from("data/a").local(), Some("data/a".as_ref()));
    /// assert_eq!(Location::from("s3://data/a").local(), None);
    /// ```
    pub fn local(&self) -> Option<&Path> {
        (!self.is_remote()).then_some(&self.0)
    }

    /// The scheme, and what follows `://`; nothing of a path of this machine.
    fn parts(&self) -> Option<(&str, &Path)> {
        let bytes = self.0.as_os_str().as_bytes();
        let end = bytes.iter().position(|byte| *byte == b':')?;
        let scheme = std::str::from_utf8(bytes.get(..end)?).ok()?;
        let follows = |byte: &u8| byte.is_ascii_alphanumeric() || b"+.-".contains(byte);
        let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic());
        if !is_scheme || !scheme.bytes().all(|byte| follows(&byte)) {
            return None;
        }
        let rest = bytes.get(end..)?.strip_prefix(MARK.as_bytes())?;
        Some((scheme, Path::new(OsStr::from_bytes(rest))))
    }

    /// The scheme; none of a path of this machine.
    pub fn scheme(&self) -> Option<&str> {
        self.parts().map(|(scheme, _)| scheme)
    }

    /// Whether it is no path of this machine.
    pub fn is_remote(&self) -> bool {
        self.parts().is_some()
    }

    /// What stands between `://` and the next slash: a bucket, a host.
    pub fn authority(&self) -> &str {
        let rest = self
            .parts()
            .map_or("", |(_, rest)| rest.to_str().unwrap_or(""));
        rest.split('/').next().unwrap_or("")
    }

    /// What follows the authority; of a local path, all of it.
    pub fn path(&self) -> &Path {
        match self.parts() {
            None => &self.0,
            Some((_, rest)) => {
                let bytes = rest.as_os_str().as_bytes();
                let path = bytes.get(self.authority().len()..).unwrap_or_default();
                Path::new(OsStr::from_bytes(path))
            }
        }
    }

    /// Where all paths of its store begin: the authority alone.
    ///
    /// ```
    /// use gristmill_storage::location::Location;
    /// let root = |text: &str| Location::from(text).root();
    /// assert_eq!((root("s3://b/k/a"), root("objects:///tmp/o")), ("s3://b/".into(), "objects:///".into()));
    /// ```
    #[must_use]
    pub fn root(&self) -> Self {
        match self.scheme() {
            Some(scheme) => format!("{scheme}{MARK}{}/", self.authority())
                .as_str()
                .into(),
            None => "/".into(),
        }
    }

    /// A location below it.
    #[must_use]
    pub fn join(&self, name: impl AsRef<Path>) -> Self {
        Location(self.0.join(name).into())
    }

    /// Its last name; none where it has only an authority.
    pub fn name(&self) -> Option<&OsStr> {
        self.path().file_name()
    }

    /// The location that it lies in; none of an authority alone. `.` holds a bare name.
    ///
    /// ```
    /// use gristmill_storage::location::Location;
    /// assert_eq!(Location::from("out").parent(), Some(".".into()));
    /// assert_eq!(Location::from("s3://b/out").parent(), Some("s3://b".into()));
    /// assert_eq!(Location::from("s3://b").parent(), None);
    /// ```
    pub fn parent(&self) -> Option<Self> {
        if let Some(path) = self.local() {
            return Some(parent_of(path).into());
        }
        self.name()?;
        self.0.parent().map(Location::from)
    }

    /// As an absolute location, where `directory` is the one that it was named in.
    ///
    /// ```
    /// use gristmill_storage::location::Location;
    /// let rooted = |text: &str| Location::from(text).rooted("/home".as_ref());
    /// assert_eq!((rooted("s3://b/k"), rooted("a")), ("s3://b/k".into(), "/home/a".into()));
    /// assert_eq!((rooted("-"), rooted("./-")), ("-".into(), "/home/-".into()));
    /// ```
    #[must_use]
    pub fn rooted(&self, directory: &Path) -> Self {
        match self.local() {
            Some(path) if path != Path::new(DASH) => directory.join(path).into(),
            _ => self.clone(),
        }
    }

    /// Whether it lies in `outer`, or is it. Links of this machine are followed as far as the paths exist.
    ///
    /// ```
    /// use gristmill_storage::location::Location;
    /// let lies_in = |inner: &str, outer: &str| Location::from(inner).lies_in(&outer.into());
    /// assert!(lies_in("s3://b/k/a", "s3://b/k/") && !lies_in("s3://b/kk", "s3://b/k") && !lies_in("/b/k", "s3://b"));
    /// ```
    pub fn lies_in(&self, outer: &Location) -> bool {
        self.below(outer).is_some()
    }

    /// Its path below `outer`, empty where it is that; nothing where it lies elsewhere. Links as in [`Self::lies_in`].
    ///
    /// ```
    /// use gristmill_storage::location::Location;
    /// let below = Location::from("s3://b/k/a/c").below(&"s3://b/k/".into());
    /// assert_eq!(below.as_deref(), Some("a/c".as_ref()));
    /// ```
    pub fn below(&self, outer: &Location) -> Option<PathBuf> {
        let (Some(inner), Some(outer)) = (self.local(), outer.local()) else {
            return self.0.strip_prefix(&outer.0).ok().map(Path::to_owned);
        };
        let real = |path: &Path| -> PathBuf {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
            let there = |upper: &Path| {
                let below = path.strip_prefix(upper).ok()?;
                let upper = file_calls::on(upper, || upper.canonicalize());
                Some(upper.ok()?.join(below))
            };
            path.ancestors().find_map(there).unwrap_or(path.clone())
        };
        real(inner)
            .strip_prefix(real(outer))
            .ok()
            .map(Path::to_owned)
    }
}

/// A URI of a file of this machine as the path that it is, and another scheme as its own; all else as it is.
fn plain(spelled: PathBuf) -> PathBuf {
    let bytes = spelled.as_os_str().as_bytes();
    for (other, scheme) in OTHER_SCHEMES {
        let rest = bytes.strip_prefix(other.as_bytes());
        if let Some(rest) = rest.filter(|rest| rest.starts_with(MARK.as_bytes())) {
            return OsString::from_vec([scheme.as_bytes(), rest].concat()).into();
        }
    }
    let Some(rest) = bytes.strip_prefix(b"file://") else {
        return spelled;
    };
    let rest = rest.strip_prefix(b"localhost").unwrap_or(rest);
    if !rest.starts_with(b"/") {
        return spelled; // another machine's, which no store has
    }
    OsString::from_vec(percent_decode(rest).collect()).into()
}

fn write<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    spell(path).serialize(serializer)
}

fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<Path>, D::Error> {
    gristmill_base::names::deserialize(deserializer).map(|path| plain(path).into())
}

impl Default for Location {
    fn default() -> Self {
        PathBuf::new().into()
    }
}

impl From<PathBuf> for Location {
    fn from(spelled: PathBuf) -> Self {
        Location(plain(spelled).into())
    }
}

impl From<&Path> for Location {
    fn from(spelled: &Path) -> Self {
        spelled.to_owned().into()
    }
}

impl From<&str> for Location {
    fn from(spelled: &str) -> Self {
        PathBuf::from(spelled).into()
    }
}

impl Names for Location {
    type Spelled = String;

    fn spelled(&self) -> String {
        spell(&*self.0)
    }

    fn of(spelled: String) -> Self {
        PathBuf::from(name_of(spelled)).into()
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&show_path(&self.0))
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The folder that holds `path` by name; `.` for a bare name.
///
/// ```
/// use gristmill_storage::location::parent_of;
/// assert_eq!(parent_of("out".as_ref()), std::path::Path::new("."));
/// assert_eq!(parent_of("a/out".as_ref()), std::path::Path::new("a"));
/// ```
pub fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The nearest existing directory at or above `path`: where a new file's space would come from.
///
/// ```
/// use gristmill_storage::location::existing_parent;
/// assert_eq!(existing_parent("/no-such-folder/a/b".as_ref()), std::path::Path::new("/"));
/// ```
pub fn existing_parent(path: &Path) -> &Path {
    let here = Path::new(".");
    path.ancestors()
        .map(|above| {
            if above.as_os_str().is_empty() {
                here
            } else {
                above
            }
        })
        .find(|above| above.is_dir())
        .unwrap_or(here)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In histories and specs a location is what a path of its bytes is.
    #[test]
    fn a_location_is_a_name_in_json() {
        let path = PathBuf::from(OsStr::from_bytes(b"s3://b/caf\xe9"));
        let json = serde_json::to_string(&Location::from(path.clone())).unwrap();
        assert_eq!(json, serde_json::to_string(&spell(&path)).unwrap());
        let read: Location = serde_json::from_str(&json).unwrap();
        assert_eq!(read, Location::from(path));
    }

    #[test]
    fn uris_of_files_are_paths() {
        for (text, wanted) in [
            ("file:///a/b%20c%25?", "/a/b c%?"),
            ("file://localhost/a", "/a"),
            ("file://host/a", "file://host/a"),
            ("file:a", "file:a"),
            ("s3a://b/%20", "s3://b/%20"),
        ] {
            assert_eq!(Location::from(text).as_typed(), Path::new(wanted), "{text}");
            let read: Location = serde_json::from_value(text.into()).unwrap();
            assert_eq!(read, Location::from(text));
        }
        assert_eq!(Location::from("file:///a").local(), Some(Path::new("/a")));
    }

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
            ("a", None, "", "a", Some(".")),
            ("a:b/c", None, "", "a:b/c", Some("a:b")),
            ("./s3://b", None, "", "./s3://b", Some("./s3:")),
            ("1://b", None, "", "1://b", Some("1:")),
        ] {
            let location = Location::from(text);
            let found = (location.scheme(), location.authority(), location.path());
            assert_eq!(found, (scheme, authority, Path::new(path)), "{text}");
            let parent_of = location.parent().map(|parent| parent.to_string());
            assert_eq!(parent_of.as_deref(), parent, "{text}");
            assert_eq!(location.to_string(), text);
            assert_eq!(location.join("x").to_string(), format!("{text}/x"));
        }
    }
}

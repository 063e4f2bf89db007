//! The table of stores: a line for each kind, whose value stands in its file.
//!
//! ```text
//!   s3://bucket/a       S3, or a server that speaks as it does
//!   gs://bucket/a       Google's storage
//!   az://container/a    blobs of Azure
//!   hdfs://host/a       HDFS
//!   objects:///dir/a    an object store kept in a directory
//!   http://host/a       a file of an HTTP server, for reading
//! ```

use super::location::{Location, OTHER_SCHEMES};
use super::objects::{azure, directory, gcs, s3};
use super::store_kind::{StoreKind, StoreOption};
use super::{hdfs, http};

/// The kinds of stores, in the order in which errors name them.
pub static KINDS: [&StoreKind; 6] = [
    &s3::KIND,
    &gcs::KIND,
    &azure::KIND,
    &hdfs::KIND,
    &directory::KIND,
    &http::KIND,
];

/// The kind of store that a location is in, and its place in the table; nothing of a path of this machine.
pub fn kind_of(location: &Location) -> Option<(usize, &'static StoreKind)> {
    let scheme = location.scheme()?;
    let mut kinds = KINDS.into_iter().enumerate();
    kinds.find(|(_, kind)| kind.schemes.contains(&scheme))
}

/// Whether a location of a kind may be a pattern.
///
/// ```
/// use gristmill_storage::kinds::has_patterns;
/// assert!(has_patterns(&"s3://b/a?".into()) && !has_patterns(&"http://h/a?b".into()));
/// ```
pub fn has_patterns(location: &Location) -> bool {
    location.is_remote() && kind_of(location).is_none_or(|(_, kind)| kind.has_patterns)
}

/// The schemes of a kind, with those that other programs give it.
pub fn spellings(kind: &'static StoreKind) -> impl Iterator<Item = &'static str> {
    let others = OTHER_SCHEMES.iter();
    let others = others.filter(|(_, scheme)| kind.schemes.contains(scheme));
    let schemes = kind.schemes.iter().copied();
    schemes.chain(others.map(|(other, _)| *other))
}

/// The options of all kinds, each once.
pub fn options() -> Vec<&'static StoreOption> {
    let mut found: Vec<&StoreOption> = Vec::new();
    for option in KINDS.iter().flat_map(|kind| kind.options) {
        if found.iter().all(|other| other.key != option.key) {
            found.push(option);
        }
    }
    found
}

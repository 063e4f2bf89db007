//! The files that the `_SUCCESS` of an old output lists: they are that output's, however they are called.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::SUCCESS;
use super::within::is_file_name;
use gristmill_base::error::Result;
use gristmill_storage::location::Location;
use gristmill_storage::stores::Stores;
use gristmill_storage::{Caching, LocalDisk, ReadFile};

/// The largest `_SUCCESS` that is read for the names of an old output.
const SUCCESS_BYTES_MAX: u64 = 256 << 20;

/// The names that the `_SUCCESS` of a directory of this machine has.
pub(super) fn listed_on_disk(disk: &dyn LocalDisk, target: &Path) -> Result<BTreeSet<PathBuf>> {
    let path = target.join(SUCCESS);
    match disk.stat(&path)? {
        Some(stat) => names_in(&*disk.open(&path, Caching::Cached)?, stat.bytes),
        None => Ok(BTreeSet::new()),
    }
}

/// The same of a directory of any store, whose listing may be late.
pub(super) fn listed(stores: &Stores, target: &Location) -> Result<BTreeSet<PathBuf>> {
    let path = target.join(SUCCESS);
    match stores.stat(&path)? {
        Some(stat) => names_in(&*stores.open(&path, Caching::Cached)?, stat.bytes),
        None => Ok(BTreeSet::new()),
    }
}

/// The names in a `_SUCCESS`; none in that of another program.
fn names_in(file: &dyn ReadFile, bytes: u64) -> Result<BTreeSet<PathBuf>> {
    #[derive(Deserialize)]
    struct Old {
        parts: Vec<OldPart>,
    }
    #[derive(Deserialize)]
    struct OldPart {
        #[serde(with = "gristmill_base::names")]
        name: PathBuf,
    }
    let mut text = vec![0; bytes.min(SUCCESS_BYTES_MAX) as usize];
    let read = file.read_at(&mut text, 0)?;
    let old: Option<Old> = serde_json::from_slice(text.get(..read).unwrap_or_default()).ok();
    let names = old.into_iter().flat_map(|old| old.parts);
    let names = names.map(|part| part.name);
    Ok(names.filter(|name| is_file_name(name)).collect())
}

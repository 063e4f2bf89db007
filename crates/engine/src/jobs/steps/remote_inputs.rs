//! What `explain` says of stores of others: bytes and requests of each, and how the inputs' answer now.
//!
//! Nothing is written for it. The rule for the number of requests: one for about 8 MB, one for each file at least; a sort
//! samples besides, and an upload begins, is sent in parts, is completed and looked at.

use std::collections::BTreeMap;

use crate::plan::explain::{Explanation, PlannedStore};
use gristmill_base::error::Result;
use gristmill_storage::Caching;
use gristmill_storage::input::InputFile;
use gristmill_storage::io::probe::store_rates;
use gristmill_storage::io::read_ahead::RANGE_BYTES;
use gristmill_storage::location::Location;
use gristmill_storage::objects::part_bytes;
use gristmill_storage::stores::Stores;

/// Requests of an upload beside its parts: it begins, is completed, and its object is looked at.
const OF_UPLOAD: u64 = 3;

/// What is read from one store.
#[derive(Debug)]
pub(in crate::jobs) struct RemoteInput {
    place: String,
    /// Nothing of one store among several, whose files are not looked at.
    bytes: Option<u64>,
    files: u64,
    /// One of its longest files, to try.
    longest: InputFile,
}

fn place_of(location: &Location) -> String {
    let scheme = location.scheme().unwrap_or_default();
    format!("{scheme}://{}", location.authority())
}

/// The inputs that are not on this machine, by their stores.
pub(in crate::jobs) fn remote_inputs(files: &[InputFile]) -> Vec<RemoteInput> {
    let mut found = BTreeMap::<String, RemoteInput>::new();
    for file in files.iter().filter(|file| file.path.is_remote()) {
        let place = place_of(&file.path);
        let remote = found.entry(place.clone()).or_insert_with(|| RemoteInput {
            place,
            bytes: Some(0),
            files: 0,
            longest: file.clone(),
        });
        remote.bytes = remote.bytes.map(|bytes| bytes + file.stat.bytes);
        remote.files += 1;
        if file.stat.bytes > remote.longest.stat.bytes {
            remote.longest = file.clone();
        }
    }
    found.into_values().collect()
}

/// Requests that read so many bytes of so many files, at most.
fn requests_of(bytes: u64, files: u64) -> u64 {
    bytes / RANGE_BYTES as u64 + files
}

/// Those of which only names and the sum of their bytes are known.
pub(in crate::jobs) fn remote_input_names(
    stores: &Stores,
    names: &[Location],
    bytes: u64,
) -> Result<Vec<RemoteInput>> {
    let mut found = BTreeMap::<String, RemoteInput>::new();
    for path in names.iter().filter(|path| path.is_remote()) {
        let place = place_of(path);
        if let Some(remote) = found.get_mut(&place) {
            remote.files += 1;
        } else if let Some(stat) = stores.stat(path)? {
            let path = path.clone();
            let remote = RemoteInput {
                place: place.clone(),
                bytes: None,
                files: 1,
                longest: InputFile { path, stat },
            };
            found.insert(place, remote);
        }
    }
    let mut found: Vec<RemoteInput> = found.into_values().collect();
    if let [remote] = found.as_mut_slice()
        && names.iter().all(Location::is_remote)
    {
        remote.bytes = Some(bytes);
    }
    Ok(found)
}

/// What is read from a store, which is tried.
pub(super) fn planned_input(stores: &Stores, remote: &RemoteInput) -> Result<PlannedStore> {
    let file = stores.open_input(&remote.longest, Caching::Cached)?;
    let bytes = remote.longest.stat.bytes;
    let tried = (bytes > 0).then(|| store_rates(&*file, bytes));
    Ok(PlannedStore {
        place: remote.place.clone(),
        purpose: "input",
        bytes: remote.bytes,
        requests: remote.bytes.map(|bytes| requests_of(bytes, remote.files)),
        tried: tried.transpose()?,
        copies: None,
    })
}

/// What a job like `explained` writes to a store.
pub(super) fn planned_output(
    stores: &Stores,
    output: &Location,
    explained: &Explanation,
) -> PlannedStore {
    let bytes = explained.stages.last().and_then(|stage| stage.writes);
    let parts = explained.parts.max(1) as u64;
    let requests = |bytes: u64| {
        let part = bytes.div_ceil(parts);
        parts * (OF_UPLOAD + part.div_ceil(part_bytes(part)).max(1)) + OF_UPLOAD + 1
    };
    PlannedStore {
        place: place_of(output),
        purpose: "output",
        bytes,
        requests: bytes.filter(|_| stores.sends_parts(output)).map(requests),
        tried: None,
        copies: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_storage::{FileKind, Stat};

    #[test]
    fn requests_are_one_for_8_mb_and_one_for_each_file_at_least() {
        let file = |path: &str, bytes| InputFile {
            path: path.into(),
            stat: Stat {
                kind: FileKind::File,
                bytes,
                modified_ns: 0,
                identity: (0, 0),
            },
        };
        let found = remote_inputs(&[
            file("s3://b/a", 80_000_000),
            file("/local", 5),
            file("s3://b/c", 1),
            file("s3://d/a", 100_000_000),
        ]);
        let found: Vec<_> = found
            .iter()
            .map(|remote| {
                (
                    &*remote.place,
                    remote.bytes,
                    remote.files,
                    remote.longest.stat.bytes,
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                ("s3://b", Some(80_000_001), 2, 80_000_000),
                ("s3://d", Some(100_000_000), 1, 100_000_000)
            ]
        );
        assert_eq!((requests_of(80_000_001, 2), requests_of(0, 3)), (12, 3));
    }
}

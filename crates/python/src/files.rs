//! Single files of stores: what they are, and how they are put there and removed, for `gristmill hadoop fs`.

use std::ffi::OsString;
use std::path::PathBuf;

use gristmill_engine::commit::send_file;
use gristmill_engine::split::pattern;
use gristmill_engine::storage::location::Location;
use gristmill_engine::storage::stores::Stores;
use gristmill_engine::storage::{FileKind, Publisher};
use gristmill_engine::{Error, Kind, Result};
use pyo3::prelude::*;

use crate::error::to_python;
use crate::stores::stores;

/// A location as the engine spells it.
#[pyfunction]
pub fn as_location(path: PathBuf) -> OsString {
    Location::from(path).as_typed().into()
}

/// Whether there is a store for the scheme of a location.
#[pyfunction]
pub fn has_store(path: PathBuf) -> bool {
    stores().resolve(&path.into()).is_ok()
}

/// What a location, or a pattern in a store, leads to.
#[pyfunction]
pub fn matching(py: Python<'_>, path: PathBuf) -> PyResult<Vec<OsString>> {
    let name = Location::from(path);
    let found = py.detach(|| {
        let stores = stores();
        let mut found = pattern::matching(&stores, &name)?;
        if found == [name.clone()] && stores.stat(&name)?.is_none() {
            found.clear();
        }
        Ok(found)
    });
    spelled(found)
}

/// The locations right below one.
#[pyfunction]
pub fn children(py: Python<'_>, path: PathBuf) -> PyResult<Vec<OsString>> {
    spelled(py.detach(|| stores().list(&path.into())))
}

fn spelled(found: Result<Vec<Location>>) -> PyResult<Vec<OsString>> {
    let found = found.map_err(|error| to_python(&error))?;
    Ok(found.iter().map(|found| found.as_typed().into()).collect())
}

/// Whether a location is a directory, its bytes, and the time of its last change in seconds.
#[pyfunction]
pub fn stat(py: Python<'_>, path: PathBuf) -> PyResult<Option<(bool, u64, f64)>> {
    let found = py.detach(|| stores().stat(&path.into()));
    let found = found.map_err(|error| to_python(&error))?;
    Ok(found.map(|stat| {
        let is_directory = stat.kind == FileKind::Directory;
        (is_directory, stat.bytes, stat.modified_ns as f64 / 1e9)
    }))
}

/// Writes a file of this machine to an object store, or to HDFS.
#[pyfunction]
pub fn put_file(py: Python<'_>, source: PathBuf, target: PathBuf) -> PyResult<()> {
    let (source, target) = (Location::from(source), Location::from(target));
    let put = py.detach(|| {
        let stores = stores();
        let objects = objects_of(&stores, &target)?;
        let upload = send_file(&stores, source.as_typed(), &target, &|| Ok(()))?;
        let done = objects.complete(&upload);
        let is_made = || {
            Ok::<_, Error>(
                objects
                    .head(target.as_typed())?
                    .is_some_and(|object| upload.made(&object)),
            )
        };
        match done {
            Err(error) if !is_made()? => {
                // The first error is what counts.
                let _ = objects.abort(target.as_typed(), &upload.id);
                Err(error)
            }
            _ => objects.clear(target.as_typed()),
        }
    });
    put.map_err(|error| to_python(&error))
}

/// Removes a file there.
#[pyfunction]
pub fn remove_object(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    let path = Location::from(path);
    let removed = py.detach(|| objects_of(&stores(), &path)?.delete(path.as_typed()));
    removed.map_err(|error| to_python(&error))
}

/// Makes a directory, where the store has such.
#[pyfunction]
pub fn make_directory(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    let path = Location::from(path);
    let made = py.detach(|| objects_of(&stores(), &path)?.make_directory(path.as_typed()));
    made.map_err(|error| to_python(&error))
}

/// Removes a directory there, and all in it.
#[pyfunction]
pub fn remove_whole(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    let path = Location::from(path);
    let removed = py.detach(|| objects_of(&stores(), &path)?.remove_whole(path.as_typed()));
    removed.map_err(|error| to_python(&error))
}

fn objects_of<'s>(stores: &'s Stores, path: &Location) -> Result<&'s dyn Publisher> {
    stores.publisher(path).ok_or_else(|| {
        Error::new(
            Kind::BadOption,
            "change a file",
            "this is done in object stores and in HDFS only",
        )
        .with_path(path.as_typed())
        .advise("name s3://BUCKET/KEY or hdfs://HOST:PORT/PATH")
    })
}

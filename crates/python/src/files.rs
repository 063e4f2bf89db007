//! Single files of stores: what they are, and how they are put there and removed, for `gristmill hadoop fs`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, sync_channel};

use gristmill_engine::commit::send_file_again;
use gristmill_engine::split::pattern::{self, PatternMatch};
use gristmill_engine::storage::kinds::{self, KINDS};
use gristmill_engine::storage::location::Location;
use gristmill_engine::storage::objects::part_uploader::{PARTS_AT_ONCE, PartUploader};
use gristmill_engine::storage::store_kind::StoreKind;
use gristmill_engine::storage::stores::Stores;
use gristmill_engine::storage::version::FoundVersion;
use gristmill_engine::storage::{FileKind, Publisher, Stat};
use gristmill_engine::sys::threads::begin;
use gristmill_engine::{Error, Kind, Result};
use pyo3::prelude::*;

use crate::attended::{attended, attended_at};
use crate::error::to_python;
use crate::stores::stores;
use gristmill_engine::sync::lock;

/// A location as the engine spells it.
#[pyfunction]
pub fn as_location(path: PathBuf) -> OsString {
    Location::from(path).as_typed().into()
}

/// What Python asks of a kind of store.
#[derive(IntoPyObject)]
pub struct StoreKindRow {
    name: &'static str,
    schemes: Vec<&'static str>,
    has_authority: bool,
    advised: Option<&'static str>,
    variables: &'static [&'static str],
}

/// The table of stores.
#[pyfunction]
pub fn store_kinds() -> Vec<StoreKindRow> {
    let row = |kind: &'static StoreKind| StoreKindRow {
        name: kind.name,
        schemes: kinds::spellings(kind).collect(),
        has_authority: kind.has_authority,
        advised: kind.advised,
        variables: kind.variables,
    };
    KINDS.into_iter().map(row).collect()
}

/// Whether files of a location have blocks that a job may choose.
#[pyfunction]
pub fn has_blocks(path: PathBuf) -> bool {
    stores().has_blocks(&path.into())
}

/// Whether there is a store for the scheme of a location.
#[pyfunction]
pub fn has_store(path: PathBuf) -> bool {
    stores().resolve(&path.into()).is_ok()
}

/// What a location, or a pattern in a store, leads to.
#[pyfunction]
pub fn matching(py: Python<'_>, path: PathBuf) -> PyResult<Vec<(OsString, Option<Known>)>> {
    let name = Location::from(path);
    let found = attended_at(py, &stores(), &name, |stores| {
        let mut found = pattern::matching(stores, &name)?;
        if let [one] = found.as_mut_slice()
            && one.path == name
            && one.stat.is_none()
        {
            one.stat = stores.stat(&name)?;
            found.retain(|one| one.stat.is_some());
        }
        Ok(found)
    })?;
    let spelled = |one: PatternMatch| (one.path.as_typed().into(), one.stat.map(known));
    Ok(found.into_iter().map(spelled).collect())
}

/// Names on their way from a listing to Python.
const NAMES_AHEAD: usize = 1000;

/// Whether something is a directory, its bytes, the time of its last change in seconds, and its version.
type Known = (bool, u64, f64, String);

/// What a listing found.
type Listed = (Location, Option<Stat>);

/// What lies right below a location, as its store lists it: however much that is, little of it is in memory.
#[pyclass(frozen)]
pub struct Listing {
    found: Mutex<Receiver<Result<Listed>>>,
}

#[pymethods]
impl Listing {
    #[new]
    fn new(path: PathBuf) -> PyResult<Self> {
        let (send, found) = sync_channel(NAMES_AHEAD);
        let (stores, directory) = (stores(), Location::from(path));
        let list = move || {
            // Nobody wants more where nobody receives.
            let each = |path, stat| {
                let sent = send.send(Ok((path, stat)));
                sent.map_err(|_unwanted| Error::cancelled())
            };
            if let Err(error) = stores.list_each(&directory, each) {
                let _ = send.send(Err(error));
            }
        };
        begin("list", list).map_err(|error| to_python(&error))?;
        let found = Mutex::new(found);
        Ok(Listing { found })
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<(OsString, Option<Known>)>> {
        let next = py.detach(|| {
            let found = lock(&self.found);
            found.recv()
        });
        let Ok(next) = next else { return Ok(None) };
        let (path, stat) = next.map_err(|error| to_python(&error))?;
        Ok(Some((path.as_typed().into(), stat.map(known))))
    }
}

fn known(stat: Stat) -> Known {
    let is_directory = stat.kind == FileKind::Directory;
    let version = FoundVersion::of(&stat).to_string();
    let modified_s = stat.modified_ns as f64 / 1e9;
    (is_directory, stat.bytes, modified_s, version)
}

/// Whether a location is a directory, its bytes, the time of its last change in seconds, and its version.
#[pyfunction]
pub fn stat(py: Python<'_>, path: PathBuf) -> PyResult<Option<Known>> {
    let location = path.into();
    let found = attended_at(py, &stores(), &location, |stores| stores.stat(&location))?;
    Ok(found.map(known))
}

/// Writes a file, of this machine or of a store, to an object store or to HDFS; begun again as tasks are, where that may help.
#[pyfunction]
pub fn put_file(py: Python<'_>, source: PathBuf, target: PathBuf) -> PyResult<()> {
    let (source, target) = (Location::from(source), Location::from(target));
    attended(py, &stores(), |stores| {
        let objects = objects_of(stores, &target)?;
        let sending = || Some(PartUploader::new(PARTS_AT_ONCE as usize));
        let upload = send_file_again(stores, (&source, &target), sending)?;
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
    })
}

/// Removes a file there.
#[pyfunction]
pub fn remove_object(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    let path = Location::from(path);
    attended(py, &stores(), |stores| {
        objects_of(stores, &path)?.delete(path.as_typed())
    })
}

/// Gives something in a store another name there; false where that is done by copying only.
#[pyfunction]
pub fn rename(py: Python<'_>, source: PathBuf, target: PathBuf) -> PyResult<bool> {
    let (source, target) = (Location::from(source), Location::from(target));
    attended(py, &stores(), |stores| {
        objects_of(stores, &target)?.rename(source.as_typed(), target.as_typed())
    })
}

/// Makes a directory, where the store has such.
#[pyfunction]
pub fn make_directory(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    let path = Location::from(path);
    attended(py, &stores(), |stores| {
        objects_of(stores, &path)?.make_directory(path.as_typed())
    })
}

/// Removes a directory there, and all in it.
#[pyfunction]
pub fn remove_whole(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    let path = Location::from(path);
    attended(py, &stores(), |stores| {
        objects_of(stores, &path)?.remove_whole(path.as_typed())
    })
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

//! The stores of this process, as its environment has them; and files of them, for formats in Python.

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use gristmill_engine::commit::SUCCESS;
use gristmill_engine::split::pattern::named;
use gristmill_engine::split::{Named, files_of, not_a_file};
use gristmill_engine::storage::hdfs::{self, Hdfs};
use gristmill_engine::storage::local::{Local, not_there};
use gristmill_engine::storage::location::Location;
use gristmill_engine::storage::objects::faults::Faults;
use gristmill_engine::storage::objects::s3::Settings;
use gristmill_engine::storage::options::StoreOptions;
use gristmill_engine::storage::stores::Stores;
use gristmill_engine::storage::{Caching, ReadFile};
use gristmill_engine::{Error, Kind, Result};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::to_python;

/// What goes wrong in object stores kept in a directory, for tests and for trying: `refused=0.1,lost=0.05,late_ms=200`.
const FAULTS: &str = "GRISTMILL_OBJECTS_FAULTS";

/// Options of stores, as JSON, for a worker process: the job's own process says them to it.
const OPTIONS: &str = "GRISTMILL_STORE_OPTIONS";

/// All stores, and whether the environment said what makes no sense.
static STORES: OnceLock<(Arc<Stores>, Result<()>)> = OnceLock::new();

thread_local! {
    /// The options of the job that this thread plans, begins or reads from, and the stores with them.
    static OF_JOB: RefCell<Option<(String, Arc<Stores>)>> = const { RefCell::new(None) };
}

/// A variable of the environment.
fn variable(name: &str) -> Option<String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the edge: read once, for the whole process"
    )]
    let value = std::env::var_os(name)?;
    Some(value.to_string_lossy().into_owned())
}

/// The folder of Hadoop's configuration.
fn hadoop_folder() -> Option<PathBuf> {
    let given = variable("HADOOP_CONF_DIR").map(PathBuf::from);
    given.or_else(|| Some(PathBuf::from(variable("HADOOP_HOME")?).join("etc/hadoop")))
}

fn made() -> &'static (Arc<Stores>, Result<()>) {
    STORES.get_or_init(|| {
        let faults = Faults::parse(&variable(FAULTS).unwrap_or_default());
        let settings = Settings::from_variables(variable);
        let hdfs = Hdfs::new(hdfs::Settings::of(hadoop_folder()));
        let fail = faults.clone().unwrap_or_default();
        let stores = Stores::with(Arc::new(Local), fail, settings, hdfs);
        let is_read = faults
            .map(|_| ())
            .map_err(|error| error.with("variable", FAULTS));
        let options = variable(OPTIONS).map(|text| options_of(&text)).transpose();
        let stores = match &options {
            Ok(Some(options)) => stores.with_options(options),
            _ => stores,
        };
        let options = options.map_err(|error| error.with("variable", OPTIONS));
        (stores, is_read.and(options.map(drop)))
    })
}

fn options_of(text: &str) -> Result<StoreOptions> {
    StoreOptions::from_json(text).map_err(|what| {
        let message = format!("store_option: {what}");
        Error::new(Kind::BadOption, "read the options", message).of_option("store_option")
    })
}

/// All stores: of a thread with a job's options, with these.
pub fn stores() -> Arc<Stores> {
    let of_job = OF_JOB.with_borrow(|job| job.as_ref().map(|(_, stores)| stores.clone()));
    of_job.unwrap_or_else(|| Arc::clone(&made().0))
}

/// Has this thread use stores with these options, or with none; returns those before.
#[pyfunction]
#[pyo3(signature = (options))]
pub fn use_store_options(options: Option<String>) -> PyResult<Option<String>> {
    let made = options.map(|text| {
        let options = options_of(&text)?;
        Ok::<_, Error>((text, made().0.with_options(&options)))
    });
    let made = made.transpose().map_err(|error| to_python(&error))?;
    Ok(OF_JOB.replace(made).map(|(text, _)| text))
}

/// The options that this thread uses stores with.
#[pyfunction]
pub fn store_options() -> Option<String> {
    OF_JOB.with_borrow(|job| job.as_ref().map(|(text, _)| text.clone()))
}

/// All stores, for a job that begins.
///
/// # Errors
/// A variable of the environment makes no sense.
pub fn stores_of_job() -> Result<Arc<Stores>> {
    let (stores, is_read) = made();
    is_read.clone().map(|()| Arc::clone(stores))
}

/// Whether a location is no path of this machine.
#[pyfunction]
pub fn is_remote(path: PathBuf) -> bool {
    Location::from(path).is_remote()
}

/// The default file system of Hadoop's configuration, where it is one of HDFS.
#[pyfunction]
pub fn default_file_system() -> Option<String> {
    stores().default_file_system().map(str::to_owned)
}

/// Whether something is at a location.
#[pyfunction]
pub fn exists(py: Python<'_>, path: PathBuf) -> PyResult<bool> {
    let found = py.detach(|| stores().stat(&path.into()));
    found
        .map(|found| found.is_some())
        .map_err(|error| to_python(&error))
}

/// The files that a location stands for; of a job's output, its parts.
#[pyfunction]
pub fn find_files(py: Python<'_>, path: PathBuf) -> PyResult<Vec<OsString>> {
    let found = py.detach(|| files_below(&stores(), &path.into()));
    let found = found.map_err(|error| to_python(&error))?;
    let spelled = found.into_iter().map(|file| file.as_typed().into());
    Ok(spelled.collect())
}

fn files_below(stores: &Stores, path: &Location) -> Result<Vec<Location>> {
    let mut files = Vec::new();
    for path in &named(stores, path)? {
        files.extend(files_at(stores, path)?);
    }
    Ok(files)
}

fn files_at(stores: &Stores, path: &Location) -> Result<Vec<Location>> {
    let Named::Files(files) = files_of(stores, path)? else {
        return Err(not_a_file(path));
    };
    let mut files: Vec<Location> = files.into_iter().map(|file| file.path).collect();
    let is_part = |file: &Location| {
        let name = file.name().unwrap_or_default();
        name.as_encoded_bytes().starts_with(b"part-")
    };
    let is_file = files.as_slice() == [path.clone()];
    if !is_file && stores.stat(&path.join(SUCCESS))?.is_some() {
        files.retain(is_part);
    }
    if files.is_empty() {
        let message = "it holds no files (names that begin with _ or . do not count)";
        return Err(Error::new(Kind::NotFound, "find the input", message)
            .with_path(path.as_typed())
            .advise("name the files"));
    }
    Ok(files)
}

/// A file of any store, read in ranges.
#[pyclass(frozen)]
pub struct RangeReader {
    file: Box<dyn ReadFile>,
    bytes: u64,
}

#[pymethods]
impl RangeReader {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let opened = py.detach(|| {
            let (stores, location) = (stores(), path.into());
            let stat = stores.stat(&location)?;
            let stat = stat.ok_or_else(|| not_there("open the input", location.as_typed()))?;
            Ok((stores.open(&location, Caching::Cached)?, stat.bytes))
        });
        let (file, bytes) = opened.map_err(|error: Error| to_python(&error))?;
        Ok(RangeReader { file, bytes })
    }

    /// The file's length.
    #[getter]
    fn size(&self) -> u64 {
        self.bytes
    }

    /// The bytes from `offset` on, up to `size`.
    fn read_at<'py>(
        &self,
        py: Python<'py>,
        offset: u64,
        size: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let left = usize::try_from(self.bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut data = vec![0; size.min(left)];
        let read = py.detach(|| self.file.read_at(&mut data, offset));
        data.truncate(read.map_err(|error| to_python(&error))?);
        Ok(PyBytes::new(py, &data))
    }
}

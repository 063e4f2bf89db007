//! The stores of this process, as its environment has them; and files of them, for formats in Python.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use gristmill_engine::commit::{self, SUCCESS};
use gristmill_engine::runner::cluster::agent::AGENTS_VARIABLE;
use gristmill_engine::split::pattern::{self, PatternMatch};
use gristmill_engine::split::{ResolvedInput, files_at, not_a_file};
use gristmill_engine::storage::agents::{AgentDisk, Agents, ReadOf};
use gristmill_engine::storage::input::InputFile;
use gristmill_engine::storage::io::window::in_any_order;
use gristmill_engine::storage::local::{Local, not_there};
use gristmill_engine::storage::location::Location;
use gristmill_engine::storage::objects::faults::{self, Faults};
use gristmill_engine::storage::options::StoreOptions;
use gristmill_engine::storage::shared::SharedOutputs;
use gristmill_engine::storage::stores::Stores;
use gristmill_engine::storage::{Caching, LocalDisk, ReadFile};
use gristmill_engine::worker::Heartbeat;
use gristmill_engine::{Error, Kind, Result};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::Value;

use crate::attended::attended_at;
use crate::error::to_python;

/// Set to anything: outputs at paths are put together of whole files, as where tasks run on several machines. For tests.
const SHARED: &str = "GRISTMILL_SHARED_OUTPUTS";

/// Options of stores, as JSON, for a worker process: the job's own process says them to it.
const OPTIONS: &str = "GRISTMILL_STORE_OPTIONS";

/// A longer `_SUCCESS` is none of ours: one of 100,000 parts has 20 MB.
const SUCCESS_BYTES_MAX: u64 = 64 << 20;

/// All stores, and whether the environment said what makes no sense.
static STORES: OnceLock<(Arc<Stores>, Result<()>)> = OnceLock::new();

/// The agents whose runs this process reads, if it is below one.
static AGENTS: OnceLock<Arc<Agents>> = OnceLock::new();

thread_local! {
    /// The options of the job that this thread plans, begins or reads from, and the stores with them.
    static OF_JOB: RefCell<Option<(String, Arc<Stores>)>> = const { RefCell::new(None) };
}

/// A variable of the environment, as it was when stores were first asked for: Python may change it later, while other threads
/// read.
fn variable(name: &str) -> Option<String> {
    static ENVIRONMENT: OnceLock<HashMap<OsString, OsString>> = OnceLock::new();
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the edge: read once, for the whole process"
    )]
    let environment = ENVIRONMENT.get_or_init(|| std::env::vars_os().collect());
    let value = environment.get(OsStr::new(name))?;
    Some(value.to_string_lossy().into_owned())
}

/// Where what is temporary may go.
fn temporary() -> Vec<PathBuf> {
    let given = variable("TMPDIR").filter(|given| !given.is_empty());
    let given = given.map(PathBuf::from).filter(|path| path.is_absolute());
    given.into_iter().chain(["/tmp".into()]).collect()
}

fn made() -> &'static (Arc<Stores>, Result<()>) {
    STORES.get_or_init(|| {
        let faults = Faults::parse(&variable(faults::VARIABLE).unwrap_or_default());
        let (disk, is_told) = match variable(AGENTS_VARIABLE).map(disk_of) {
            Some(Ok(disk)) => (disk, Ok(())),
            Some(Err(error)) => (local(), Err(error.with("variable", AGENTS_VARIABLE))),
            None => (local(), Ok(())),
        };
        let stores = Stores::with_variables(disk, variable).with_temporary(temporary());
        stores.requests().tell(|counts| {
            if let Some(pulse) = Heartbeat::mine() {
                pulse.count_requests(counts); // of a worker process: its driver counts them
            }
        });
        let shared = variable(SHARED).map(|_| SharedOutputs::seen_by_all(true));
        let stores = stores.with_shared_outputs(shared);
        let is_read = faults
            .map(drop)
            .map_err(|error| error.with("variable", faults::VARIABLE));
        let options = variable(OPTIONS).map(|text| options_of(&text)).transpose();
        let stores = match &options {
            Ok(Some(options)) => stores.with_options(options),
            _ => stores,
        };
        let options = options.map_err(|error| error.with("variable", OPTIONS));
        (stores, is_told.and(is_read).and(options.map(drop)))
    })
}

fn local() -> Arc<dyn LocalDisk> {
    Arc::new(Local)
}

/// The disk of a process below an agent, which keeps what it knows of the others in `file`.
fn disk_of(file: String) -> Result<Arc<dyn LocalDisk>> {
    let agents = Arc::new(Agents::of_file(&Local, file.into())?);
    let agents = AGENTS.get_or_init(|| agents);
    Ok(Arc::new(AgentDisk::new(local(), Arc::clone(agents))))
}

/// What this process has read of the runs of agents since it last said so.
pub fn runs_read() -> Vec<ReadOf> {
    let agents = AGENTS.get();
    agents.map_or_else(Vec::new, |agents| agents.reads().take())
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

/// The directory for what a job in `directory` keeps that has no place beside its output.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "as PyO3 gives it")]
pub fn default_spill_dir(py: Python<'_>, directory: PathBuf) -> PathBuf {
    py.detach(|| commit::default_spill_dir(&stores(), &directory))
}

/// The default file system of Hadoop's configuration, where it is one of HDFS.
#[pyfunction]
pub fn default_file_system() -> Option<String> {
    stores().default_file_system().map(str::to_owned)
}

/// Which nodes hold the blocks of a file, where its store says so: of each its first byte, the byte behind its last one,
/// and the addresses and names of its data nodes.
#[pyfunction]
pub fn block_places(py: Python<'_>, path: PathBuf) -> Vec<(u64, u64, Vec<[String; 2]>)> {
    let stores = stores();
    let found = py.detach(|| stores.block_places(&[path.into()]));
    let blocks = found.into_iter().flatten();
    blocks
        .map(|block| (block.range.start, block.range.end, block.hosts))
        .collect()
}

/// Says how much memory a worker process has for what its readers ask of stores before they want it.
#[pyfunction]
pub fn set_ahead_bytes(size: u64) {
    stores().requests().memory.set_bytes(size);
}

/// Whether something is at a location.
#[pyfunction]
pub fn exists(py: Python<'_>, path: PathBuf) -> PyResult<bool> {
    let location = path.into();
    let found = attended_at(py, &stores(), &location, |stores| stores.stat(&location))?;
    Ok(found.is_some())
}

/// The files that a location stands for; of a job's output, its parts.
#[pyfunction]
pub fn find_files(py: Python<'_>, path: PathBuf) -> PyResult<Vec<OsString>> {
    let location = path.into();
    let found = attended_at(py, &stores(), &location, |stores| {
        files_below(stores, &location)
    })?;
    let spelled = found.into_iter().map(|file| file.path.as_typed().into());
    Ok(spelled.collect())
}

/// The files that a location stands for, as they were found; of a job's output, its parts.
pub fn files_below(stores: &Stores, path: &Location) -> Result<Vec<InputFile>> {
    let mut files = Vec::new();
    for found in &pattern::found(stores, path)? {
        files.extend(files_found(stores, found)?);
    }
    Ok(files)
}

fn files_found(stores: &Stores, found: &PatternMatch) -> Result<Vec<InputFile>> {
    let path = &found.path;
    let ResolvedInput::Files(mut files) = files_at(stores, found)? else {
        return Err(not_a_file(path));
    };
    let name = |file: &InputFile| file.path.name().unwrap_or_default().to_owned();
    let is_part = |file: &InputFile| name(file).as_encoded_bytes().starts_with(b"part-");
    let is_file = matches!(files.as_slice(), [file] if file.path == *path);
    if !is_file && !files.iter().all(is_part) {
        let named = named_outputs(stores, &path.join(SUCCESS))?;
        files.retain(|file| !named.contains(&name(file)));
    }
    if files.is_empty() {
        let message = "it holds no files (names that begin with _ or . do not count)";
        return Err(Error::new(Kind::NotFound, "find the input", message)
            .with_path(path.as_typed())
            .advise("name the files"));
    }
    Ok(files)
}

/// The files of a job's named outputs, which its `_SUCCESS` lists beside its parts; that of others lists none.
fn named_outputs(stores: &Stores, success: &Location) -> Result<BTreeSet<OsString>> {
    let stat = stores.stat(success)?;
    let Some(stat) = stat.filter(|stat| stat.bytes <= SUCCESS_BYTES_MAX) else {
        return Ok(BTreeSet::new());
    };
    let mut text = vec![0; stat.bytes as usize];
    let file = stores.open(success, Caching::Cached)?;
    let read = file.read_at(&mut text, 0)?;
    text.truncate(read);
    let found: Value = serde_json::from_slice(&text).unwrap_or_default();
    let parts = found.get("gristmill").and(found.get("parts"));
    let parts = parts.and_then(Value::as_array).into_iter().flatten();
    let names = parts.filter_map(|part| part.get("name")?.as_str());
    let (parts, named): (Vec<_>, Vec<_>) = names.partition(|name| name.starts_with("part-"));
    if parts.is_empty() {
        return Ok(BTreeSet::new()); // its records say how all its files are called
    }
    Ok(named.into_iter().map(OsString::from).collect())
}

/// A file of any store, read in ranges.
#[pyclass(frozen)]
pub struct RangeReader {
    file: Box<dyn ReadFile>,
    bytes: u64,
    stores: Arc<Stores>,
    location: Location,
}

#[pymethods]
impl RangeReader {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let (stores, location) = (stores(), Location::from(path));
        let (file, bytes) = attended_at(py, &stores, &location, |stores| {
            let stat = stores.stat(&location)?;
            let stat = stat.ok_or_else(|| not_there("open the input", location.as_typed()))?;
            let file = stores.open(&location, Caching::Cached)?;
            Ok((in_any_order(file), stat.bytes))
        })?;
        Ok(RangeReader {
            file,
            bytes,
            stores,
            location,
        })
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
        let read = attended_at(py, &self.stores, &self.location, |_| {
            self.file.read_at(&mut data, offset)
        })?;
        data.truncate(read);
        Ok(PyBytes::new(py, &data))
    }
}

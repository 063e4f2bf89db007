//! All stores of a job: a location's scheme says which one.
//!
//! ```text
//!   data/a, file:///a   ──▶ the disk of this machine (or what a test has in its place); or a directory that machines share
//!   scheme://...        ──▶ the store of the kind that has the scheme, by the table of `kinds.rs`
//!   other://...         ──▶ an error that says what there is
//! ```
//!
//! They take a [`Location`], and nothing else does: a [`Store`](super::Store) by itself takes the paths that it knows its
//! files by.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::hdfs::{BlockPlace, BlockSettings, HadoopFileSystem};
use super::input::InputFile;
use super::io::at_once::at_once;
use super::kinds::{KINDS, kind_of};
use super::location::Location;
use super::net::requests::Requests;
use super::objects::StoreCopies;
use super::options::StoreOptions;
use super::shared::{SharedDisk, SharedOutputs};
use super::store_kind::{ReadVariable, StoreSetup};
use super::{Caching, Caps, LocalDisk, OutputStore, Publisher, ReadFile, Stat, WriteFile};
use gristmill_base::error::{Error, Kind, Result};

/// Files whose blocks are asked for by one connection to a name node, and such connections at once.
const PLACES_ASKED: usize = 500;
const ASKED_AT_ONCE: usize = 4;

/// The stores.
#[derive(Debug, Clone)]
pub struct Stores {
    disk: Arc<dyn LocalDisk>,
    /// The same disk, where tasks on several machines write outputs at paths.
    shared: Option<SharedDisk>,
    /// One of each kind, in the order of the table.
    open: Vec<Arc<dyn OutputStore>>,
    setup: StoreSetup,
    /// Where what is temporary may go.
    temporary: Vec<PathBuf>,
}

impl Stores {
    /// All stores, with `disk` for locations without a scheme, and no variables of the environment.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use gristmill_storage::{local::Local, stores::Stores};
    /// let stores = Stores::new(Arc::new(Local));
    /// assert!(stores.stat(&"objects:///no-such-folder/a".into())?.is_none());
    /// let error = stores.stat(&"gopher://a".into()).unwrap_err().to_string();
    /// assert!(error.contains("no store for gopher://"), "{error}");
    /// assert!(error.contains("s3://BUCKET/KEY, gs://BUCKET/KEY, az://CONTAINER/KEY or hdfs://HOST:PORT/PATH"), "{error}");
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    pub fn new(disk: Arc<dyn LocalDisk>) -> Arc<Self> {
        Stores::with_variables(disk, |_| None)
    }

    /// The same, as the environment says.
    pub fn with_variables(disk: Arc<dyn LocalDisk>, variable: ReadVariable) -> Arc<Self> {
        let setup = StoreSetup::new(variable, [].into(), Arc::default());
        Arc::new(Stores {
            disk,
            shared: None,
            open: KINDS.iter().map(|kind| (kind.open)(&setup)).collect(),
            setup,
            temporary: Vec::new(),
        })
    }

    /// The same stores with the options of a job.
    #[must_use]
    pub fn with_options(&self, options: &StoreOptions) -> Arc<Self> {
        if options.is_empty() {
            return Arc::new(self.clone());
        }
        let requests = Arc::clone(&self.setup.requests);
        let setup = StoreSetup::new(self.setup.variable, options.values().clone(), requests);
        let open = KINDS.iter().zip(&self.open);
        let open = open.map(|(kind, open)| match kind.options {
            [] => Arc::clone(open),
            _ => (kind.open)(&setup),
        });
        Arc::new(Stores {
            open: open.collect(),
            ..self.clone()
        })
    }

    /// The same stores, where what is temporary may go to these directories of the local disk, the first ones first.
    #[must_use]
    pub fn with_temporary(&self, directories: Vec<PathBuf>) -> Arc<Self> {
        Arc::new(Stores {
            temporary: directories,
            ..self.clone()
        })
    }

    /// The directories of the local disk for what is temporary.
    pub fn temporary(&self) -> &[PathBuf] {
        &self.temporary
    }

    /// The requests that stores were sent by this process, and what those share.
    pub fn requests(&self) -> &Requests {
        &self.setup.requests
    }

    /// The same stores, where new files have these blocks, if they have blocks.
    #[must_use]
    pub fn with_blocks(&self, blocks: BlockSettings) -> Arc<Self> {
        let open = self.open.iter().map(|open| match open.hadoop() {
            Some(hadoop) => hadoop.with_blocks(blocks),
            None => Arc::clone(open),
        });
        Arc::new(Stores {
            open: open.collect(),
            ..self.clone()
        })
    }

    /// The same stores, where outputs at paths are written so: by tasks on several machines, if it is said how.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use gristmill_storage::{Caps, local::Local, shared::SharedOutputs, stores::Stores};
    /// let stores = Stores::new(Arc::new(Local));
    /// let shared = stores.with_shared_outputs(Some(SharedOutputs::seen_by_all(true)));
    /// assert_eq!([stores, shared].map(|stores| stores.caps(&"/data/out".into())), [Caps::Ranges, Caps::Whole]);
    /// ```
    #[must_use]
    pub fn with_shared_outputs(&self, outputs: Option<SharedOutputs>) -> Arc<Self> {
        let shared = outputs.map(|outputs| SharedDisk::new(Arc::clone(&self.disk), outputs));
        Arc::new(Stores {
            shared,
            ..self.clone()
        })
    }

    /// The same stores with another disk.
    #[must_use]
    pub fn on_disk(&self, disk: Arc<dyn LocalDisk>) -> Arc<Self> {
        let outputs = self.shared_outputs();
        let same = Stores {
            disk,
            ..self.clone()
        };
        same.with_shared_outputs(outputs)
    }

    /// How outputs at paths are written, if tasks on several machines write them.
    pub fn shared_outputs(&self) -> Option<SharedOutputs> {
        self.shared.as_ref().map(|shared| shared.outputs().clone())
    }

    /// The default file system of Hadoop's configuration, where it is one of a store.
    pub fn default_file_system(&self) -> Option<&str> {
        let mut hadoop = self.open.iter().filter_map(|open| open.hadoop());
        hadoop.find_map(HadoopFileSystem::default_file_system)
    }

    /// The disk of this machine: job folders and runs lie nowhere else.
    pub fn disk(&self) -> &Arc<dyn LocalDisk> {
        &self.disk
    }

    /// The store of a location, and the path that the store knows it by.
    ///
    /// # Errors
    /// No store has its scheme.
    pub fn resolve<'l>(&self, location: &'l Location) -> Result<(&dyn OutputStore, &'l Path)> {
        let store: &dyn OutputStore = match (kind_of(location), location.scheme(), &self.shared) {
            (Some((number, _)), ..) => &*self.open[number],
            (None, Some(other), _) => return Err(no_store(location, other)),
            (None, None, Some(shared)) => shared,
            (None, None, None) => &*self.disk,
        };
        Ok((store, location.as_typed()))
    }

    fn hadoop(&self, location: &Location) -> Option<&dyn HadoopFileSystem> {
        self.resolve(location).ok()?.0.hadoop()
    }

    /// Fails where no output can be written.
    ///
    /// # Errors
    /// No store has the location, or it is one for reading.
    pub fn check_writable(&self, location: &Location) -> Result<()> {
        let (store, path) = self.resolve(location)?;
        store.check_writable(path)
    }

    /// Whether files of a location have blocks that a job may choose.
    pub fn has_blocks(&self, location: &Location) -> bool {
        self.hadoop(location).is_some()
    }

    /// Which nodes hold the blocks of files, where a store says so: nothing is known of any other file.
    ///
    /// ```
    /// use gristmill_storage::{local::Local, location::Location, stores::Stores};
    /// let stores = Stores::new(std::sync::Arc::new(Local));
    /// assert_eq!(stores.block_places(&["/a".into(), "s3://b/a".into()]), [[], []]);
    /// ```
    pub fn block_places(&self, files: &[Location]) -> Vec<Vec<BlockPlace>> {
        let mut with_blocks: Vec<usize> = (0..files.len())
            .filter(|at| files.get(*at).is_some_and(|file| self.has_blocks(file)))
            .collect();
        let system = |at: &usize| files.get(*at).map(|file| (file.scheme(), file.authority()));
        with_blocks.sort_by(|a, b| system(a).cmp(&system(b)));
        let of_one = with_blocks.chunk_by(|a, b| system(a) == system(b));
        let asked: Vec<&[usize]> = of_one.flat_map(|all| all.chunks(PLACES_ASKED)).collect();
        let found = at_once(&asked, ASKED_AT_ONCE, |numbers| {
            let files: Vec<Location> = numbers
                .iter()
                .filter_map(|at| files.get(*at).cloned())
                .collect();
            let hadoop = files.first().and_then(|file| self.hadoop(file));
            let found = hadoop.and_then(|hadoop| hadoop.block_places(&files).ok());
            Ok(found.unwrap_or_default()) // tasks run without it, only elsewhere
        });
        let mut places = vec![Vec::new(); files.len()];
        for (numbers, found) in asked.into_iter().zip(found.unwrap_or_default()) {
            for (at, found) in numbers.iter().zip(found) {
                if let Some(place) = places.get_mut(*at) {
                    *place = found;
                }
            }
        }
        places
    }

    /// Whether a finished output is durable there, where a job waits for that or does not.
    pub fn is_durable(&self, location: &Location, sync: bool) -> bool {
        kind_of(location)
            .and_then(|(_, kind)| kind.is_durable)
            .unwrap_or(sync)
    }

    /// Whether files of a location are sent in parts.
    pub fn sends_parts(&self, location: &Location) -> bool {
        kind_of(location).is_some_and(|(_, kind)| kind.sends_parts)
    }

    /// The place of a location, if files appear there when a committer completes them.
    pub fn publisher(&self, location: &Location) -> Option<&dyn Publisher> {
        self.resolve(location).ok()?.0.publisher()
    }

    /// The same of two locations, if their store makes copies of its own files; and how.
    pub fn copier(&self, from: &Location, to: &Location) -> Option<(&dyn Publisher, StoreCopies)> {
        let (source, path) = self.resolve(from).ok()?;
        let (target, target_path) = self.resolve(to).ok()?;
        let publisher = std::ptr::addr_eq(source, target).then(|| source.publisher())??;
        Some((publisher, publisher.copies(path, target_path)?))
    }

    /// [`stat`](super::Store::stat) of a location.
    ///
    /// # Errors
    /// No store has it, or the store says why not; as those of all that follow.
    pub fn stat(&self, location: &Location) -> Result<Option<Stat>> {
        let (store, path) = self.resolve(location)?;
        store.stat(path)
    }

    /// [`list`](super::Store::list) of a location.
    ///
    /// # Errors
    /// As of [`Self::stat`].
    pub fn list(&self, directory: &Location) -> Result<Vec<Location>> {
        let (store, path) = self.resolve(directory)?;
        let found = store.list(path)?;
        Ok(found.into_iter().map(Location::from).collect())
    }

    /// [`list_each`](super::Store::list_each) of a location.
    ///
    /// # Errors
    /// As of [`Self::stat`], and those of `each`.
    pub fn list_each(
        &self,
        directory: &Location,
        mut each: impl FnMut(Location, Option<Stat>) -> Result<()>,
    ) -> Result<()> {
        let (store, path) = self.resolve(directory)?;
        store.list_each(path, &mut |found| each(found.path.into(), found.stat))
    }

    /// [`pins_versions`](super::Store::pins_versions) of a location.
    pub fn pins_versions(&self, location: &Location) -> bool {
        self.resolve(location)
            .is_ok_and(|(store, _)| store.pins_versions())
    }

    /// [`open`](super::Store::open) of a location.
    ///
    /// # Errors
    /// As of [`Self::stat`].
    pub fn open(&self, location: &Location, caching: Caching) -> Result<Box<dyn ReadFile>> {
        let (store, path) = self.resolve(location)?;
        store.open(path, caching)
    }

    /// Opens an input, as it was when the job began.
    ///
    /// # Errors
    /// As of [`Self::stat`]; and it is another one by now, where the store can tell.
    pub fn open_input(&self, input: &InputFile, caching: Caching) -> Result<Box<dyn ReadFile>> {
        let (store, path) = self.resolve(&input.path)?;
        store.open_found(path, &input.stat, caching)
    }

    /// [`check_readable`](super::Store::check_readable) of a location.
    ///
    /// # Errors
    /// As of [`Self::stat`].
    pub fn check_readable(&self, location: &Location) -> Result<()> {
        let (store, path) = self.resolve(location)?;
        store.check_readable(path)
    }

    /// [`OutputStore::caps`] of a location: of one that no store has, those of the disk.
    pub fn caps(&self, location: &Location) -> Caps {
        self.resolve(location)
            .map_or(Caps::Ranges, |(store, path)| store.caps(path))
    }

    /// [`OutputStore::create`] of a location.
    ///
    /// # Errors
    /// As of [`Self::stat`].
    pub fn create(
        &self,
        location: &Location,
        bytes: u64,
        caching: Caching,
    ) -> Result<Box<dyn WriteFile>> {
        let (store, path) = self.resolve(location)?;
        store.create(path, bytes, caching)
    }
}

fn no_store(location: &Location, scheme: &str) -> Error {
    let advised: Vec<_> = KINDS.iter().filter_map(|kind| kind.advised).collect();
    let (last, others) = advised.split_last().unwrap_or((&"", &[]));
    let message = format!("there is no store for {scheme}://");
    Error::new(Kind::BadOption, "find a file", message)
        .with("file", location)
        .advise(format!(
            "name a path, file:///PATH, {} or {last}",
            others.join(", ")
        ))
}

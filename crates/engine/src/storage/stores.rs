//! All stores of a job: a location's scheme says which one.
//!
//! ```text
//!   data/a, file:///a   ──▶ the disk of this machine (or what a test has in its place); or a directory that machines share
//!   s3://bucket/a       ──▶ S3, or a server that speaks as it does
//!   hdfs://host/a       ──▶ HDFS
//!   objects:///dir/a    ──▶ an object store kept in a directory
//!   http://host/a       ──▶ a file of an HTTP server, for reading
//!   other://...         ──▶ an error that lists the schemes
//! ```
//!
//! They take a [`Location`], and nothing else does: a [`Store`](super::Store) by itself takes the paths that it knows its
//! files by. A new kind of object store is one implementation of [`Objects`] and its scheme here.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::at_once::at_once;
use super::hdfs::{self, BlockPlace, Blocks, Hdfs};
use super::http::{self, Http};
use super::input::InputFile;
use super::location::Location;
use super::objects::directory::{self, Directory};
use super::objects::faults::{Faults, Unreliable};
use super::objects::retry::Retried;
use super::objects::s3::{self, S3, Settings};
use super::objects::{ObjectStore, Objects};
use super::options::StoreOptions;
use super::requests::Requests;
use super::shared::{SharedDisk, SharedOutputs};
use super::wire::Wire;
use super::{Caching, Caps, LocalDisk, Output, Publisher, ReadFile, Stat, WriteFile};
use crate::error::{Error, Kind, Result};

/// Files whose blocks are asked for by one connection to a name node, and such connections at once.
const PLACES_ASKED: usize = 500;
const ASKED_AT_ONCE: usize = 4;

/// The stores.
#[derive(Debug, Clone)]
pub struct Stores {
    disk: Arc<dyn LocalDisk>,
    /// The same disk, where tasks on several machines write outputs at paths.
    shared: Option<SharedDisk>,
    s3: ObjectStore,
    hdfs: Hdfs,
    directory: ObjectStore,
    http: Http,
    requests: Arc<Requests>,
    /// Where what is temporary may go.
    temporary: Vec<PathBuf>,
    /// What they were made with, beside options.
    faults: Faults,
    settings: Settings,
}

impl Stores {
    /// All stores, with `disk` for locations without a scheme.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use gristmill_engine::storage::{local::Local, stores::Stores};
    /// let stores = Stores::new(Arc::new(Local));
    /// assert!(stores.stat(&"objects:///no-such-folder/a".into())?.is_none());
    /// let error = stores.stat(&"gopher://a".into()).unwrap_err().to_string();
    /// assert!(error.contains("no store for gopher://"), "{error}");
    /// # Ok::<(), gristmill_engine::Error>(())
    /// ```
    pub fn new(disk: Arc<dyn LocalDisk>) -> Arc<Self> {
        Stores::with(
            disk,
            Faults::default(),
            Settings::default(),
            hdfs::Settings::default(),
        )
    }

    /// The same, where requests to object stores fail, and S3 and HDFS are where `settings` and `hdfs` say.
    pub fn with(
        disk: Arc<dyn LocalDisk>,
        faults: Faults,
        settings: Settings,
        hdfs: hdfs::Settings,
    ) -> Arc<Self> {
        let requests = Arc::<Requests>::default();
        let wire = Arc::new(Wire::new(&StoreOptions::default(), Arc::clone(&requests)));
        Arc::new(Stores {
            disk,
            shared: None,
            s3: store_of(S3::new(settings.clone(), wire.clone()), faults, &requests),
            hdfs: Hdfs::new(hdfs, Arc::clone(&requests)),
            directory: store_of(Directory, faults, &requests),
            http: Http::new(wire, Arc::clone(&requests)),
            requests,
            temporary: Vec::new(),
            faults,
            settings,
        })
    }

    /// The same stores with the options of a job.
    #[must_use]
    pub fn with_options(&self, options: &StoreOptions) -> Arc<Self> {
        let same = self.clone();
        if options.is_empty() {
            return Arc::new(same);
        }
        let wire = Arc::new(Wire::new(options, Arc::clone(&self.requests)));
        let s3 = S3::new(self.settings.with(options), wire.clone());
        Arc::new(Stores {
            s3: store_of(s3, self.faults, &self.requests),
            http: Http::new(wire, Arc::clone(&self.requests)),
            ..same
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

    /// The requests that object stores, HDFS and HTTP servers were sent by this process, and what those share.
    pub fn requests(&self) -> &Requests {
        &self.requests
    }

    /// The same stores, where new files in HDFS have these blocks.
    #[must_use]
    pub fn with_blocks(&self, blocks: Blocks) -> Arc<Self> {
        Arc::new(Stores {
            hdfs: self.hdfs.with_blocks(blocks),
            ..self.clone()
        })
    }

    /// The same stores, where outputs at paths are written so: by tasks on several machines, if it is said how.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use gristmill_engine::storage::{Caps, local::Local, shared::SharedOutputs, stores::Stores};
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

    /// The default file system of Hadoop's configuration, where it is one of HDFS.
    pub fn default_file_system(&self) -> Option<&str> {
        self.hdfs.settings().default_file_system()
    }

    /// The disk of this machine: job folders and runs lie nowhere else.
    pub fn disk(&self) -> &Arc<dyn LocalDisk> {
        &self.disk
    }

    /// The store of a location, and the path that the store knows it by.
    ///
    /// # Errors
    /// No store has its scheme.
    pub fn resolve<'l>(&self, location: &'l Location) -> Result<(&dyn Output, &'l Path)> {
        let store: &dyn Output = match location.scheme() {
            None => match &self.shared {
                Some(shared) => shared,
                None => &*self.disk,
            },
            Some(s3::SCHEME) => &self.s3,
            Some(hdfs::SCHEME) => &self.hdfs,
            Some(directory::SCHEME) => &self.directory,
            Some(scheme) if http::SCHEMES.contains(&scheme) => &self.http,
            Some(other) => {
                let message = format!("there is no store for {other}://");
                return Err(Error::new(Kind::BadOption, "find a file", message)
                    .with("file", location)
                    .advise(
                        "name a path, file:///PATH, s3://BUCKET/KEY or hdfs://HOST:PORT/PATH",
                    ));
            }
        };
        Ok((store, location.as_typed()))
    }

    /// Fails where no output can be written.
    ///
    /// # Errors
    /// No store has the location, or it is one for reading.
    pub fn check_writable(&self, location: &Location) -> Result<()> {
        self.resolve(location)?;
        match location.scheme() {
            Some(scheme) if http::SCHEMES.contains(&scheme) => Err(http::read_only(location)),
            _ => Ok(()),
        }
    }

    /// Whether files of a location have blocks that a job may choose.
    pub fn has_blocks(&self, location: &Location) -> bool {
        location.scheme() == Some(hdfs::SCHEME)
    }

    /// Which nodes hold the blocks of files, where a store says so: nothing is known of any other file.
    ///
    /// ```
    /// use gristmill_engine::storage::{local::Local, location::Location, stores::Stores};
    /// let stores = Stores::new(std::sync::Arc::new(Local));
    /// assert_eq!(stores.block_places(&["/a".into(), "s3://b/a".into()]), [[], []]);
    /// ```
    pub fn block_places(&self, files: &[Location]) -> Vec<Vec<BlockPlace>> {
        let mut with_blocks: Vec<usize> = (0..files.len())
            .filter(|at| files.get(*at).is_some_and(|file| self.has_blocks(file)))
            .collect();
        let authority = |at: &usize| files.get(*at).map(Location::authority);
        with_blocks.sort_by(|a, b| authority(a).cmp(&authority(b)));
        let of_one = with_blocks.chunk_by(|a, b| authority(a) == authority(b));
        let asked: Vec<&[usize]> = of_one.flat_map(|all| all.chunks(PLACES_ASKED)).collect();
        let found = at_once(&asked, ASKED_AT_ONCE, |numbers| {
            let files: Vec<Location> = numbers
                .iter()
                .filter_map(|at| files.get(*at).cloned())
                .collect();
            // Tasks run without it, only elsewhere.
            Ok(self.hdfs.block_places(&files).unwrap_or_default())
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

    /// Whether a finished output is durable there, where a job waits for that or does not: what S3 has answered is.
    pub fn is_durable(&self, location: &Location, sync: bool) -> bool {
        match location.scheme() {
            Some(s3::SCHEME) => true,
            Some(directory::SCHEME) => false,
            _ => sync,
        }
    }

    /// Whether files of a location are sent in parts.
    pub fn sends_parts(&self, location: &Location) -> bool {
        matches!(location.scheme(), Some(s3::SCHEME | directory::SCHEME))
    }

    /// The place of a location, if files appear there when a committer completes them.
    pub fn publisher(&self, location: &Location) -> Option<&dyn Publisher> {
        match location.scheme() {
            None => self.shared.as_ref().map(|shared| shared as _),
            Some(s3::SCHEME) => Some(&self.s3),
            Some(hdfs::SCHEME) => Some(&self.hdfs),
            Some(directory::SCHEME) => Some(&self.directory),
            Some(_) => None,
        }
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

    /// [`Output::caps`] of a location: of one that no store has, those of the disk.
    pub fn caps(&self, location: &Location) -> Caps {
        self.resolve(location)
            .map_or(Caps::Ranges, |(store, path)| store.caps(path))
    }

    /// [`Output::create`] of a location.
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

fn store_of(
    objects: impl Objects + 'static,
    faults: Faults,
    requests: &Arc<Requests>,
) -> ObjectStore {
    let (requests, memory) = (Arc::clone(requests), Arc::clone(&requests.memory));
    let objects: Arc<dyn Objects> = if faults == Faults::default() {
        Arc::new(Retried::new(objects, requests))
    } else {
        Arc::new(Retried::new(Unreliable::new(objects, faults), requests))
    };
    ObjectStore::new(objects).reading_into(memory)
}

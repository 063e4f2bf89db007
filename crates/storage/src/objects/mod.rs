//! Object stores: whole objects, made of the parts of an upload. No rename, no append, no directories.
//!
//! ```text
//!   create ─▶ UploadWriter ── part 1 ──▶ │ upload │            nobody sees any of it
//!                          ── part 2 ──▶ │        │            several at once (part_uploader.rs)
//!                finish ──▶ Upload (id, parts) ──report──▶ committer ── complete ──▶ object
//! ```
//!
//! [`Objects`] is what one kind of store has to do, one request a call: a new store is one implementation, with its
//! [`StoreKind`](super::store_kind::StoreKind). [`ObjectStore`] makes a [`Store`] and an [`OutputStore`] of any of them, behind
//! the one wrapper that tries again ([`retry::Retried`]). The rule that must hold: an object appears whole, when its
//! upload is completed, or not at all; only a committer completes.

pub mod azure;
mod call;
mod copies;
mod copy_within;
pub mod directory;
pub mod faults;
pub mod gcs;
mod identity;
mod listing;
pub mod part_uploader;
mod pieces;
pub mod retry;
pub mod s3;
mod upload;
mod writer;

use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::forward::forward;
use super::local::not_there;
use super::store_kind::StoreSetup;
use super::version::{ReadVersion, identity_of};
use super::{
    Caching, Caps, FileKind, ListingEntry, OutputStore, PieceStore, Publisher, ReadFile,
    RemoteFile, Stat, Store, WriteFile,
};
use crate::io::window::WindowMemory;
pub use copies::{Passed, SourceRange, StoreCopies, StoreCopy};
use faults::{Faults, Unreliable};
use gristmill_base::error::{Error, Result};
use listing::Guessing;
use part_uploader::PartUploader;
use retry::Retried;
pub use upload::{KeptPart, Part, Upload, UploadPart};
use writer::UploadWriter;

/// Stores refuse smaller parts, but for the last one (S3: 5 MiB).
pub const PART_BYTES: u64 = 8 << 20;

/// Parts that a file of a known length is cut into at most: some of 10,000 are left for what was not foreseen.
const PARTS_GOOD: u64 = 9_000;

/// Bytes of each part of a file that will have `bytes` bytes.
///
/// ```
/// use gristmill_storage::objects::part_bytes;
/// assert_eq!((part_bytes(0), part_bytes(1 << 40)), (8 << 20, 122_167_959));
/// ```
pub const fn part_bytes(bytes: u64) -> u64 {
    let bytes = bytes.div_ceil(PARTS_GOOD);
    if bytes > PART_BYTES {
        bytes
    } else {
        PART_BYTES
    }
}

/// The longest object that stores take (S3: 5 TiB).
pub const OBJECT_BYTES_MAX: u64 = 5 << 40;

/// Of more bytes than were foreseen, each part has at least this share of what is sent: where nothing was, 9,393 parts reach
/// the longest object, none of them longer than stores take (S3: 5 GiB), and short objects have short parts.
const PARTS_OF_SENT: u64 = 1_300;

/// Bytes of the next part of a file of which `sent` are sent, and that was to have `bytes` bytes (0 where nobody knows).
///
/// ```
/// use gristmill_storage::objects::next_part_bytes;
/// assert_eq!(next_part_bytes(1 << 40, 1 << 39), 122_167_959);
/// assert_eq!((next_part_bytes(0, 1 << 30), next_part_bytes(0, 1 << 40)), (8 << 20, 845_778_175));
/// ```
pub const fn next_part_bytes(bytes: u64, sent: u64) -> u64 {
    let foreseen = part_bytes(bytes);
    let grown = sent / PARTS_OF_SENT;
    if sent < bytes || grown < foreseen {
        foreseen
    } else {
        grown
    }
}

/// What a store knows of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Its length.
    pub bytes: u64,
    /// When it was written, in nanoseconds since the epoch.
    pub modified_ns: i128,
    /// Another one whenever its bytes are others: the ETag.
    pub version: String,
    /// The CRC-32 of its bytes, where the store has it. (Else the ETag of what was uploaded follows from those of its parts.)
    pub crc: Option<u32>,
    /// A sum of its bytes that the store has taken itself: all that it takes are of one kind.
    pub sum: Option<String>,
}

/// A page of a listing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// What it names.
    pub found: Vec<ListingEntry>,
    /// Where the next page begins; nothing of the last one.
    pub next: Option<String>,
}

/// What an object store does, one request a call. Paths are whole locations. Any request may fail, may be repeated, and
/// may be done although its reply is an error.
pub trait Objects: Send + Sync + std::fmt::Debug {
    /// What is known of an object; nothing where there is none.
    fn head(&self, path: &Path) -> Result<Option<Object>>;

    /// The objects and, as if they were directories, the beginnings of longer names, right below `directory`: those of a
    /// page, the first one or the one that begins at `from`. What was written a moment ago may be missing.
    fn list(&self, directory: &Path, from: Option<&str>) -> Result<Page>;

    /// The same, of what comes behind a name in the order of the keys, whether or not the name is there; a directory's key
    /// ends with a slash, and a page is in that order. Nothing where the store has no such request.
    fn list_after(&self, _directory: &Path, _name: &str) -> Result<Option<Page>> {
        Ok(None)
    }

    /// Reads a range of this version of an object; less only where it ends. Fails where the object is another one by now.
    fn get(
        &self,
        path: &Path,
        version: &ReadVersion,
        buffer: &mut [u8],
        offset: u64,
    ) -> Result<usize>;

    /// Removes an object. Nothing there is no error.
    fn delete(&self, path: &Path) -> Result<()>;

    /// Makes a short object, in the place of one that is there. What the store has was compared, or an error comes.
    fn put(&self, path: &Path, object: &Part) -> Result<()> {
        let id = self.begin(path)?;
        let parts = vec![self.put_part(path, &id, 1, object)?];
        let path = path.into();
        self.complete(&Upload { path, id, parts })
    }

    /// How the store makes one object of another, without its bytes coming here; nothing where it does not. No request.
    fn copies(&self, _from: &Path, _to: &Path) -> Option<StoreCopies> {
        None
    }

    /// Makes an object of another one, as long as that is this one, in the place of one that is there; or a step of that, and the
    /// token of the next.
    fn copy(
        &self,
        _from: &Path,
        _source: &Object,
        to: &Path,
        _token: Option<&str>,
    ) -> Result<Option<String>> {
        Err(no_copies(to))
    }

    /// Makes a range of an object a part of an upload, as long as it is this object.
    fn copy_part(&self, to: &Path, _id: &str, _n: u32, _of: SourceRange<'_>) -> Result<UploadPart> {
        Err(no_copies(to))
    }

    /// [`complete`](Self::complete) of an upload whose parts are all of an object.
    fn complete_copy(&self, upload: &Upload, _source: &Object) -> Result<()> {
        self.complete(upload)
    }

    /// Begins an upload, and gives its name.
    fn begin(&self, path: &Path) -> Result<String>;

    /// Sends a part (the first is number 1), in the place of one of this number.
    fn put_part(&self, path: &Path, id: &str, number: u32, part: &Part) -> Result<UploadPart>;

    /// The parts that an upload has, in order; nothing where there is no such upload.
    fn parts(&self, path: &Path, id: &str) -> Result<Option<Vec<KeptPart>>>;

    /// Makes the object, at once. Fails where there is no such upload.
    fn complete(&self, upload: &Upload) -> Result<()>;

    /// Whether the object is there that an upload makes which is gone.
    fn is_made(&self, upload: &Upload) -> Result<bool> {
        let object = self.head(upload.path.as_typed())?;
        Ok(object.is_some_and(|object| upload.made(&object)))
    }

    /// Whether an upload that is being completed is gone before its object is there, and is completed although who asked
    /// for that is dead.
    fn completes_alone(&self) -> bool {
        false
    }

    /// Ends an upload without an object. No such upload is no error.
    fn abort(&self, path: &Path, id: &str) -> Result<()>;

    /// The uploads to a location, or below it: where each goes, and its name.
    fn uploads(&self, path: &Path) -> Result<Vec<(PathBuf, String)>>;
}

/// An object store as a place for input and output.
#[derive(Debug, Clone)]
pub struct ObjectStore {
    objects: Arc<dyn Objects>,
    memory: Arc<WindowMemory>,
    guessing: Arc<Guessing>,
}

fn no_copies(path: &Path) -> Error {
    Error::bug("copy a file", "its store makes no copies").with_path(path)
}

impl Object {
    /// The same in the words of all stores.
    pub fn stat(&self) -> Stat {
        Stat {
            kind: FileKind::File,
            bytes: self.bytes,
            modified_ns: self.modified_ns,
            identity: identity_of(&self.version),
        }
    }
}

/// The state of what only longer names begin with.
const DIRECTORY: Stat = Stat {
    kind: FileKind::Directory,
    bytes: 0,
    modified_ns: 0,
    identity: (0, 0),
};

impl ObjectStore {
    /// A store of `objects`, which try again by themselves.
    ///
    /// ```
    /// use gristmill_storage::{Caching, OutputStore, Store, WriteFile};
    /// use gristmill_storage::objects::{ObjectStore, directory::DirectoryStore};
    /// let folder = tempfile::tempdir()?;
    /// let path = format!("objects://{}/a", folder.path().display());
    /// let store = ObjectStore::new(std::sync::Arc::new(DirectoryStore));
    /// let file = store.create(path.as_ref(), 5, Caching::Direct)?;
    /// file.write_at(b"hello", 0)?;
    /// let upload = file.finish()?.expect("an upload");
    /// assert!(store.stat(path.as_ref())?.is_none(), "it is not completed");
    /// store.objects().complete(&upload)?;
    /// assert_eq!(store.stat(path.as_ref())?.map(|stat| stat.bytes), Some(5));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(objects: Arc<dyn Objects>) -> Self {
        ObjectStore {
            objects,
            memory: Arc::default(),
            guessing: Arc::default(),
        }
    }

    /// A store of `objects` as one of the process: tried again, counted, and with the faults that are asked for.
    pub fn open(objects: impl Objects + 'static, setup: &StoreSetup) -> Arc<dyn OutputStore> {
        let requests = Arc::clone(&setup.requests);
        let faults = (setup.variable)(faults::VARIABLE).unwrap_or_default();
        let objects: Arc<dyn Objects> = match Faults::parse(&faults) {
            Ok(faults) if faults != Faults::default() => {
                Arc::new(Retried::new(Unreliable::new(objects, faults), requests))
            }
            _ => Arc::new(Retried::new(objects, requests)),
        };
        Arc::new(ObjectStore {
            memory: Arc::clone(&setup.requests.memory),
            ..ObjectStore::new(objects)
        })
    }

    /// What its readers may hold of answers that they do not want yet.
    pub fn memory(&self) -> &WindowMemory {
        &self.memory
    }

    /// Its requests.
    pub fn objects(&self) -> &dyn Objects {
        &*self.objects
    }

    fn reader(&self, path: &Path, bytes: u64, version: ReadVersion) -> Box<dyn ReadFile> {
        Box::new(ObjectReader {
            objects: self.objects.clone(),
            path: path.to_owned(),
            remote: RemoteFile {
                bytes,
                memory: Arc::clone(&self.memory),
            },
            version,
        })
    }
}

impl Store for ObjectStore {
    fn stat(&self, path: &Path) -> Result<Option<Stat>> {
        if let Some(object) = self.objects.head(path)? {
            return Ok(Some(object.stat()));
        }
        let mut from = None;
        loop {
            let page = self.objects.list(path, from.as_deref())?;
            from = page.next;
            if !page.found.is_empty() {
                return Ok(Some(DIRECTORY));
            }
            if from.is_none() {
                return Ok(None);
            }
        }
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        self.list_each(directory, &mut |found| {
            paths.push(found.path);
            Ok(())
        })?;
        paths.sort_unstable();
        paths.dedup(); // "a" and "a/b" can both be objects
        Ok(paths)
    }

    fn list_each(
        &self,
        directory: &Path,
        each: &mut dyn FnMut(ListingEntry) -> Result<()>,
    ) -> Result<()> {
        listing::list_each(&*self.objects, &self.guessing, directory, each)
    }

    fn open(&self, path: &Path, _caching: Caching) -> Result<Box<dyn ReadFile>> {
        let object = self.objects.head(path)?;
        let object = object.ok_or_else(|| not_there("open the input", path))?;
        Ok(self.reader(path, object.bytes, ReadVersion::new(&object.version)))
    }

    /// Sends no request: the first read finds out whether it is still that version.
    fn open_found(
        &self,
        path: &Path,
        found: &Stat,
        _caching: Caching,
    ) -> Result<Box<dyn ReadFile>> {
        Ok(self.reader(path, found.bytes, ReadVersion::found(found)))
    }

    fn pins_versions(&self) -> bool {
        true
    }
}

impl OutputStore for ObjectStore {
    fn caps(&self, _path: &Path) -> Caps {
        Caps::Whole
    }

    fn create(&self, path: &Path, bytes: u64, _caching: Caching) -> Result<Box<dyn WriteFile>> {
        let writer = UploadWriter::begin(self.objects.clone(), path, bytes)?;
        Ok(Box::new(writer))
    }

    fn publisher(&self) -> Option<&dyn Publisher> {
        Some(self)
    }
}

impl Publisher for ObjectStore {
    forward! { self, path => self.objects;
        head() -> Result<Option<Object>>;
        delete() -> Result<()>;
        parts(id: &str) -> Result<Option<Vec<KeptPart>>>;
        abort(id: &str) -> Result<()>;
        uploads() -> Result<Vec<(PathBuf, String)>>;
    }

    fn has(&self, upload: &Upload) -> Result<bool> {
        let kept = self.parts(upload.path.as_typed(), &upload.id)?;
        Ok(kept.is_some_and(|kept| upload.is_kept(&kept)) || self.objects.is_made(upload)?)
    }

    fn put(&self, path: &Path, data: &[u8]) -> Result<()> {
        let object = Part::new(Bytes::copy_from_slice(data));
        self.objects.put(path, &object)
    }

    fn copies(&self, from: &Path, to: &Path) -> Option<StoreCopies> {
        self.objects.copies(from, to)
    }

    fn copy(
        &self,
        files: (&Path, &Stat, &Path),
        sending: Option<&Arc<PartUploader>>,
        passed: Passed<'_>,
    ) -> Result<Option<StoreCopy>> {
        copy_within::copy(&self.objects, files, sending, passed)
    }

    fn pieces(&self) -> Option<&dyn PieceStore> {
        Some(self)
    }

    fn complete(&self, upload: &Upload) -> Result<()> {
        self.objects.complete(upload)
    }
}

/// An object open for reading.
#[derive(Debug)]
struct ObjectReader {
    objects: Arc<dyn Objects>,
    path: PathBuf,
    /// As it was found.
    remote: RemoteFile,
    version: ReadVersion,
}

impl ReadFile for ObjectReader {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let left = usize::try_from(self.remote.bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(left);
        match buffer.get_mut(..wanted) {
            Some(buffer) if wanted > 0 => {
                self.objects.get(&self.path, &self.version, buffer, offset)
            }
            _ => Ok(0),
        }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn remote(&self) -> Option<RemoteFile> {
        Some(self.remote.clone())
    }
}

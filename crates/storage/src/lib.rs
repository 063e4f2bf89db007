//! Storage: where files live.
//!
//! ```text
//!   Store       stat, list, read ranges            what every place can do
//!     └ OutputStore   create: ranges, or whole files       where a job's output may go
//!         └ LocalDisk   rename, locks, discard, ...         where runs and job folders lie
//! ```
//!
//! The local file system and memory (tests) are local disks; object stores and HDFS are outputs; [`stores::Stores`] finds the
//! store of a location. Data move in whole buffers between a file and memory that the caller owns. Errors carry the
//! operation and the file; offsets are bytes.
//!
//! Decision: docs/decisions/store-traits.md.

pub mod io;
pub mod net;
pub mod private;

pub mod codec;
pub mod lines;
pub mod sorted_run;

pub mod agents;
pub mod collected;
pub mod faulty;
mod forward;
pub mod hdfs;
pub mod http;
pub mod input;
pub mod kinds;
pub mod layered;
pub mod local;
mod local_disk;
pub mod location;
pub mod memory;
pub mod mounts;
pub mod objects;
pub mod options;
pub mod run_name;
pub mod shared;
pub mod staged;
pub mod store_kind;
pub mod stores;
pub mod version;

use std::fmt::Debug;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use self::hdfs::HadoopFileSystem;
use self::io::window::WindowMemory;
pub use self::local_disk::{LocalDisk, Lock, Locked, MissingLock};
use self::location::Location;
use self::objects::part_uploader::PartUploader;
use self::objects::{KeptPart, Object, Passed, StoreCopies, StoreCopy, Upload, UploadPart};
pub use self::private::folder::LOCK;
use gristmill_base::error::{Error, Result};
pub use gristmill_base::sys::BLOCK_BYTES;

/// What a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// Nothing: the path is a link to a name that does not exist.
    DanglingLink,
    /// Anything else: a pipe, a device, a socket.
    Other,
}

/// What a store knows of a file. Length, time and identity together are its version: a file that has another one has
/// changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stat {
    /// File, directory or other.
    pub kind: FileKind,
    /// Length in bytes.
    pub bytes: u64,
    /// Time of the last change, in nanoseconds since the epoch.
    pub modified_ns: i128,
    /// Equal for two names of the same file: device and inode. Of an object: 0, and what its ETag says.
    pub identity: (u64, u64),
}

/// What a listing names, and what it says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListingEntry {
    /// Where it is.
    pub path: PathBuf,
    /// Its state, where the listing says that: nobody need ask for it then.
    pub stat: Option<Stat>,
}

/// Whether a file's bytes are worth keeping in the operating system's cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caching {
    /// Through the page cache: the bytes are there already, or will be wanted again.
    Cached,
    /// Past the page cache where the file system allows it: bulk data, used once.
    Direct,
}

/// How the bytes of a file get to a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caps {
    /// Several tasks may write one file, each its ranges.
    Ranges,
    /// One task writes a file, from its beginning to its end.
    Whole,
}

/// A place to read files from. Paths are the store's own.
pub trait Store: Send + Sync + Debug {
    /// What `path` leads to, or `None` where nothing is.
    fn stat(&self, path: &Path) -> Result<Option<Stat>>;

    /// The paths in `directory`, in the order of their names.
    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>>;

    /// Hands on what is in `directory` as it is found: in any order, and a name perhaps twice, as a file first and then as
    /// the beginning of others.
    fn list_each(
        &self,
        directory: &Path,
        each: &mut dyn FnMut(ListingEntry) -> Result<()>,
    ) -> Result<()> {
        let found = self.list(directory)?.into_iter();
        found
            .map(|path| ListingEntry { path, stat: None })
            .try_for_each(each)
    }

    /// Opens a file for reading.
    fn open(&self, path: &Path, caching: Caching) -> Result<Box<dyn ReadFile>>;

    /// Opens a file that [`stat`](Self::stat) said this of. A store that can tell fails where it is another one by now.
    fn open_found(
        &self,
        path: &Path,
        _found: &Stat,
        caching: Caching,
    ) -> Result<Box<dyn ReadFile>> {
        self.open(path, caching)
    }

    /// Whether all that is read of a file opened by [`open_found`](Self::open_found) is of the version that was found: a
    /// read of another one fails.
    fn pins_versions(&self) -> bool {
        false
    }

    /// Whether the run at `path` is on another machine of a cluster: then what is read of it is asked for over a network.
    fn is_remote(&self, _path: &Path) -> bool {
        false
    }

    /// Fails as [`Store::open`] would; stores that know more cheaply do not open the file.
    ///
    /// ```
    /// use gristmill_storage::{Store, local::Local, memory::Memory};
    /// for store in [&Local as &dyn Store, &Memory::with_room_for(100)] {
    ///     assert!(store.check_readable("/no/such/file".as_ref()).is_err());
    /// }
    /// ```
    fn check_readable(&self, path: &Path) -> Result<()> {
        self.open(path, Caching::Cached).map(drop)
    }
}

/// A place that files can be written to.
pub trait OutputStore: Store {
    /// How the files below `path` are written.
    fn caps(&self, _path: &Path) -> Caps {
        Caps::Ranges
    }

    /// Opens a file for writing at `bytes` bytes of length (0 where nobody knows); creates it and reserves its space where
    /// needed. With [`Caps::Ranges`] what it holds already stays: several writers may fill ranges of one file. With
    /// [`Caps::Whole`] it is seen once a committer completes what [`WriteFile::finish`] gives.
    fn create(&self, path: &Path, bytes: u64, caching: Caching) -> Result<Box<dyn WriteFile>>;

    /// Fails where no output can be written.
    fn check_writable(&self, _path: &Path) -> Result<()> {
        Ok(())
    }

    /// The same place, if its files appear when a committer completes them.
    fn publisher(&self) -> Option<&dyn Publisher> {
        None
    }

    /// The same place, if it is a file system of Hadoop.
    fn hadoop(&self) -> Option<&dyn HadoopFileSystem> {
        None
    }
}

/// A place whose files appear when a committer completes them: object stores, and places with renames ([`staged`]). Paths
/// are whole locations; any of this may be repeated.
pub trait Publisher: OutputStore {
    /// Makes what uploads to a path need, before any task begins: another machine may see late what is made meanwhile.
    fn prepare(&self, _path: &Path) -> Result<()> {
        Ok(())
    }

    /// What is known of a file; nothing where there is none.
    fn head(&self, path: &Path) -> Result<Option<Object>>;

    /// Removes a file. Nothing there is no error.
    fn delete(&self, path: &Path) -> Result<()>;

    /// The parts that an upload has, in order; nothing where there is no such upload.
    fn parts(&self, path: &Path, id: &str) -> Result<Option<Vec<KeptPart>>>;

    /// Whether an upload is there as it was sent, or has made its file already.
    fn has(&self, upload: &Upload) -> Result<bool> {
        let path = upload.path.as_typed();
        match self.parts(path, &upload.id)? {
            Some(kept) => Ok(upload.is_kept(&kept)),
            None => Ok(self.head(path)?.is_some_and(|file| upload.made(&file))),
        }
    }

    /// [`has`](Self::has), and the bytes are those that were sent: read, in a place that cannot tell otherwise.
    fn verify_bytes(&self, upload: &Upload) -> Result<bool> {
        self.has(upload)
    }

    /// Makes a short file at once, in the place of one that is there, where the place [pins versions](Store::pins_versions): object
    /// stores do. What they have was compared, or an error comes.
    fn put(&self, path: &Path, _data: &[u8]) -> Result<()> {
        Err(Error::bug("write a file", "its place keeps no versions").with_path(path))
    }

    /// The same place, if it gives a directory another name at once, with all below it.
    fn renames(&self) -> Option<&dyn staged::RenameStore> {
        None
    }

    /// How the place makes one of its files of another, without the bytes coming here; nothing where it does not. Nothing is asked.
    fn copies(&self, _from: &Path, _to: &Path) -> Option<StoreCopies> {
        None
    }

    /// Makes a file of another one, which was found so, in that way; parts of it on their way are among those that are sent. Nothing
    /// where it cannot, or where it should say of both that they have the same bytes, and does not.
    fn copy(
        &self,
        _files: (&Path, &Stat, &Path),
        _sending: Option<&Arc<PartUploader>>,
        _passed: Passed<'_>,
    ) -> Result<Option<StoreCopy>> {
        Ok(None)
    }

    /// The same place, if several tasks may write one file of it, each its pieces.
    fn pieces(&self) -> Option<&dyn PieceStore> {
        None
    }

    /// Makes the file, at once. Fails where there is no such upload, and no file that it made.
    fn complete(&self, upload: &Upload) -> Result<()>;

    /// Ends an upload without a file. No such upload is no error.
    fn abort(&self, path: &Path, id: &str) -> Result<()>;

    /// The uploads to a location, or below it: where each goes, and its name.
    fn uploads(&self, path: &Path) -> Result<Vec<(PathBuf, String)>>;

    /// A new directory where an output is put together that is to take the place of `directory` by [`Self::replace`];
    /// nothing where that cannot be done.
    fn sibling_for_swap(&self, _directory: &Path) -> Result<Option<PathBuf>> {
        Ok(None)
    }

    /// Makes the file of an upload under another name, in a directory that is there.
    fn complete_as(&self, upload: &Upload, _name: &Path) -> Result<()> {
        self.complete(upload)
    }

    /// Puts the directory `beside` another one in its place, by two renames: between them there is none.
    fn replace(&self, _directory: &Path, _beside: &Path) -> Result<()> {
        Ok(())
    }

    /// Brings to its end what a job that was killed had begun to replace, and removes what is left beside a directory.
    fn finish_swap(&self, _directory: &Path) -> Result<()> {
        Ok(())
    }

    /// Gives a file or a directory another name, at once; false where the place cannot do so.
    fn rename(&self, _from: &Path, _to: &Path) -> Result<bool> {
        Ok(false)
    }

    /// Makes a directory, with those above it, in a place that has such: elsewhere it is the beginning of names.
    fn make_directory(&self, _path: &Path) -> Result<()> {
        Ok(())
    }

    /// Removes a file, or a directory and all in it. Nothing there is no error.
    fn remove_whole(&self, path: &Path) -> Result<()> {
        match self.stat(path)?.map(|stat| stat.kind) {
            Some(FileKind::Directory) => {
                let inside = self.list(path)?;
                inside.iter().try_for_each(|path| self.remove_whole(path))
            }
            Some(_) => self.delete(path),
            None => Ok(()),
        }
    }

    /// Makes the names in a directory durable, where the place does not do so by itself.
    fn sync_names(&self, _directory: &Path) -> Result<()> {
        Ok(())
    }

    /// Removes what was made for uploads to a location, or below it, where nothing needs it any more.
    fn clear(&self, _path: &Path) -> Result<()> {
        Ok(())
    }
}

/// A file that is begun, and that several tasks write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutFile {
    /// What it will be.
    pub path: Location,
    /// The name of its upload.
    pub id: String,
    /// Its length.
    pub bytes: u64,
}

/// A place where several tasks write pieces of one file, in any order. Nobody sees the file before a committer completes it. An
/// attempt that writes a piece again writes the same bytes to the same place, so that it does not matter which of them counts.
pub trait PieceStore: Send + Sync + Debug {
    /// What the beginnings of pieces are multiples of, in a file of so many bytes.
    fn unit_bytes(&self, bytes: u64) -> u64;

    /// Begins a file of so many bytes.
    fn begin(&self, path: &Path, bytes: u64) -> Result<CutFile>;

    /// Opens a piece for writing, from its beginning to its end. The upload that [`WriteFile::finish`] gives has the parts of the piece
    /// alone. The file stays as it is where a piece is given up.
    fn open_piece(
        &self,
        file: &CutFile,
        piece: Range<u64>,
        caching: Caching,
    ) -> Result<Box<dyn WriteFile>>;

    /// Whether a file that was begun is there, with these parts, which are in order.
    fn keeps(&self, file: &CutFile, parts: &[UploadPart]) -> Result<bool>;

    /// Whether a piece has bytes of this CRC-32: read, in a place whose parts do not prove them.
    fn has_bytes(&self, file: &CutFile, piece: Range<u64>, crc: u32) -> Result<bool>;

    /// What completes the file: the parts of all pieces, in order.
    fn joined(&self, file: &CutFile, parts: Vec<UploadPart>) -> Result<Upload>;
}

/// A file open for reading.
pub trait ReadFile: Send + Sync + Debug {
    /// Reads into all of `buffer` from `offset` on; less only where the file ends. Returns the bytes read.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize>;

    /// A range of the file without a copy, where the store has it in memory; less only where the file ends.
    ///
    /// ```
    /// use gristmill_storage::{Caching, OutputStore, Store, memory::Memory};
    /// let store = Memory::with_room_for(10);
    /// store.create("/a".as_ref(), 3, Caching::Cached)?.write_at(b"abc", 0)?;
    /// let held = store.open("/a".as_ref(), Caching::Cached)?.held(1..9).unwrap();
    /// store.create("/a".as_ref(), 3, Caching::Cached)?.write_at(b"xyz", 0)?;
    /// assert_eq!(held, "bc");
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    fn held(&self, _range: Range<u64>) -> Option<Bytes> {
        None
    }

    /// The descriptor to map the file by, where the store has such a thing.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;

    /// Whether a read is a request over a network: its reply comes late, however little was asked for, and many come
    /// in the time of one.
    fn is_remote(&self) -> bool {
        self.remote().is_some()
    }

    /// What is known of such a file.
    fn remote(&self) -> Option<RemoteFile> {
        None
    }
}

/// What is known of a file that is read over a network.
#[derive(Debug, Clone)]
pub struct RemoteFile {
    /// Its length.
    pub bytes: u64,
    /// What its readers may hold of it before they want it.
    pub memory: Arc<WindowMemory>,
}

/// A file open for writing.
pub trait WriteFile: Send + Sync + Debug {
    /// Writes all of `data` at `offset`.
    ///
    /// Direct where address and offset are equal modulo [`BLOCK_BYTES`]: then whole blocks go past the cache and
    /// the edges through it, so that two writers may meet inside a block.
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()>;

    /// Makes room for so many bytes, which is the file's length then; where a store knows nothing of that, nothing.
    fn reserve(&self, _bytes: u64) -> Result<()> {
        Ok(())
    }

    /// Gives back what was reserved behind so many bytes, which is the file's length then; where a store reserves nothing,
    /// nothing.
    fn cut(&self, _bytes: u64) -> Result<()> {
        Ok(())
    }

    /// Makes what was written durable.
    fn sync(&self) -> Result<()>;

    /// Hands what was written over to the server that keeps the file, where one does: only then is it known to be taken, and
    /// seen by others.
    fn hand_over(&self) -> Result<()> {
        Ok(())
    }

    /// How parts of an upload are sent, from here on: several at once, in memory that is reserved. Else one after
    /// another. Of stores without uploads, nothing.
    fn send_by(&self, _sending: &Arc<PartUploader>) {}

    /// Ends the file, after its last byte. Of one that is not seen before a committer completes it: what that takes.
    fn finish(&self) -> Result<Option<Upload>> {
        Ok(None)
    }
}

//! Directories that several machines see, as a place for outputs of jobs that run on all of them: NFS, or a FUSE mount.
//!
//! On one machine the tasks of a job write ranges of one file. Beyond it, pages would be written by two clients, and by
//! attempts that were counted as lost and still write. So each attempt writes a whole file of its own (`staged.rs`), and only
//! those that count are renamed. When a task reports, its file is with the server that keeps it, and durable if the job
//! waits for that: nobody else can see to it later. What is not an output stays with the disk.
//!
//! A file's version is its length alone: times and inodes differ from client to client. The CRC is in the report, and is
//! compared where a job is resumed, or a file seems to have been renamed already; else a commit does not read the whole output
//! once more through one machine.
//!
//! Decision: docs/decisions/shared-outputs.md.

mod pieces;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use serde::{Deserialize, Serialize};

use super::collected::{Collecting, CollectorAddress};
use super::io::crc::crc_of;
use super::location::{Location, parent_of};
use super::objects::{Object, Upload, UploadPart};
use super::staged::{self, FoundEntry, RenameStore, staged};
use super::{
    Caching, Caps, FileKind, ListingEntry, LocalDisk, Locked, MissingLock, OutputStore, PieceStore,
    Publisher, ReadFile, Stat, Store, WriteFile,
};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::sync::lock;

/// How outputs at paths are written where tasks run on several machines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedOutputs {
    /// Whether a file is durable before its task reports it.
    pub sync: bool,
    /// Whether files go to the machine of the driver, which alone sees the folder of the output (`collected.rs`).
    pub collects: bool,
    /// Who takes them there; nobody in the driver itself.
    pub collector: Option<CollectorAddress>,
}

impl SharedOutputs {
    /// In a directory that all machines see.
    pub const fn seen_by_all(sync: bool) -> Self {
        SharedOutputs {
            sync,
            collects: false,
            collector: None,
        }
    }
}

/// Directories that several machines see.
#[derive(Debug, Clone)]
pub struct SharedDisk {
    disk: Arc<dyn LocalDisk>,
    outputs: SharedOutputs,
    collecting: Option<Arc<Collecting>>,
}

impl SharedDisk {
    /// The directories of a disk.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use gristmill_storage::shared::{SharedDisk, SharedOutputs};
    /// use gristmill_storage::{Caching, LocalDisk, OutputStore, Publisher, Store, memory::Memory};
    /// let memory = Memory::with_room_for(1000);
    /// memory.create_directory("/out".as_ref())?;
    /// let place = SharedDisk::new(Arc::new(memory.clone()), SharedOutputs::seen_by_all(true));
    /// let [lost, wins] = [0; 2].map(|_| place.create("/out/a".as_ref(), 0, Caching::Cached));
    /// let (lost, wins) = (lost?, wins?);
    /// lost.write_at(b"a zombie", 0)?;
    /// wins.write_at(b"abc", 0)?;
    /// let upload = wins.finish()?.unwrap();
    /// assert!(place.stat("/out/a".as_ref())?.is_none(), "nobody sees it");
    /// place.complete(&upload)?;
    /// lost.write_at(b" writes on", 8)?;
    /// assert_eq!(memory.bytes_of("/out/a".as_ref()), Some(b"abc".to_vec()));
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    pub fn new(disk: Arc<dyn LocalDisk>, outputs: SharedOutputs) -> Self {
        let collecting = outputs.collector.clone().map(Collecting::new);
        SharedDisk {
            disk,
            outputs,
            collecting: collecting.map(Arc::new),
        }
    }

    /// How outputs are written.
    pub fn outputs(&self) -> &SharedOutputs {
        &self.outputs
    }

    /// Makes the file that is staged to a path, and gives its name.
    fn begin_staged(
        &self,
        path: &Path,
        bytes: u64,
        caching: Caching,
    ) -> Result<(String, Box<dyn WriteFile>)> {
        let id = staged::stage(self, path)?;
        let place = staged(path, &id)?;
        if self.disk.stat(path)?.is_some() {
            // It gets the permissions of the file that it replaces, and nobody else may read it before.
            self.disk.create_private(place.as_typed(), &[])?;
        }
        let file = self.disk.create(place.as_typed(), bytes, caching)?;
        Ok((id, file))
    }

    /// The file that is staged to a path; an error unless it is of this length.
    fn staged_whole(&self, path: &Path, id: &str, bytes: u64) -> Result<Object> {
        let staged = staged(path, id)?;
        let found = self.find("write the output", staged.as_typed())?;
        match found.filter(|found| found.file.bytes == bytes) {
            Some(found) => Ok(found.file),
            None => {
                let message = "the file has another length than was written";
                Err(Error::new(Kind::Io, "write the output", message)
                    .with_path(path)
                    .with("bytes", bytes)
                    .advise("check that no other program removes or writes files of the output")
                    .retryable_error())
            }
        }
    }

    /// The state of what is there; below a file there is nothing.
    fn state(&self, operation: &'static str, path: &Path) -> Result<Option<Stat>> {
        match self.disk.stat(path) {
            Err(error) if error.kind() == Kind::BadInput => Ok(None),
            done => done.map_err(|error| error.during(operation)),
        }
    }
}

impl Store for SharedDisk {
    fn stat(&self, path: &Path) -> Result<Option<Stat>> {
        match self.disk.stat(path)? {
            Some(found) => staged::unless_made(self, path, found),
            None => Ok(None),
        }
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>> {
        match staged::list(self, directory)? {
            Some(found) => Ok(found),
            None => self.disk.list(directory),
        }
    }

    fn list_each(
        &self,
        directory: &Path,
        each: &mut dyn FnMut(ListingEntry) -> Result<()>,
    ) -> Result<()> {
        self.disk.list_each(
            directory,
            &mut |found| match staged::is_listed(self, &found.path)? {
                true => each(found),
                false => Ok(()),
            },
        )
    }

    fn open(&self, path: &Path, caching: Caching) -> Result<Box<dyn ReadFile>> {
        self.disk.open(path, caching)
    }

    fn open_found(&self, path: &Path, found: &Stat, caching: Caching) -> Result<Box<dyn ReadFile>> {
        self.disk.open_found(path, found, caching)
    }

    fn pins_versions(&self) -> bool {
        self.disk.pins_versions()
    }

    fn check_readable(&self, path: &Path) -> Result<()> {
        self.disk.check_readable(path)
    }
}

impl OutputStore for SharedDisk {
    fn caps(&self, _path: &Path) -> Caps {
        Caps::Whole
    }

    fn create(&self, path: &Path, bytes: u64, caching: Caching) -> Result<Box<dyn WriteFile>> {
        if let Some(collecting) = &self.collecting {
            return collecting.create(path, bytes);
        }
        let (id, file) = self.begin_staged(path, bytes, caching)?;
        Ok(Box::new(SharedFileWriter {
            place: self.clone(),
            path: path.to_owned(),
            id,
            state: Mutex::new(SharedWriteState {
                file: Some(file),
                bytes: 0,
                crc: crc32fast::Hasher::new(),
                finished: false,
            }),
        }))
    }

    fn publisher(&self) -> Option<&dyn Publisher> {
        Some(self)
    }
}

impl RenameStore for SharedDisk {
    fn find(&self, operation: &'static str, path: &Path) -> Result<Option<FoundEntry>> {
        let state = self.state(operation, path)?;
        Ok(state.map(|state| FoundEntry {
            is_folder: state.kind == FileKind::Directory,
            file: Object {
                bytes: state.bytes,
                modified_ns: state.modified_ns,
                version: format!("{:x}", state.bytes),
                crc: None,
                sum: None,
            },
        }))
    }

    fn entries(&self, operation: &'static str, folder: &Path) -> Result<Option<Vec<OsString>>> {
        let state = self.state(operation, folder)?;
        if state.is_none_or(|state| state.kind != FileKind::Directory) {
            return Ok(None);
        }
        let found = match self.disk.list(folder) {
            Err(error) if error.kind() == Kind::NotFound => return Ok(None),
            found => found.map_err(|error| error.during(operation))?,
        };
        let names = found.iter().filter_map(|path| path.file_name());
        Ok(Some(names.map(OsString::from).collect()))
    }

    fn make_folder(&self, operation: &'static str, path: &Path) -> Result<()> {
        if self.state(operation, path)?.is_some() {
            return Ok(());
        }
        self.make_folder(operation, parent_of(path))?;
        let made = match path.file_name().is_some_and(staged::is_staging) {
            true => self.disk.create_private_directory(path),
            false => self.disk.create_directory(path),
        };
        match made {
            // By another task, on this machine or another one.
            Err(error) if error.kind() == Kind::Exists => Ok(()),
            done => done.map_err(|error| error.during(operation)),
        }
    }

    fn remove_one(&self, operation: &'static str, path: &Path) -> Result<()> {
        if self.state(operation, path)?.is_none() {
            return Ok(());
        }
        let removed = self.disk.remove_if_empty(path);
        removed.map_err(|error| error.during(operation))
    }

    fn remove_tree(&self, path: &Path) -> Result<()> {
        self.disk.remove(path)
    }

    fn move_to(
        &self,
        operation: &'static str,
        from: &Path,
        to: &Path,
        replaces: bool,
    ) -> Result<()> {
        let moved = match replaces {
            true => self.disk.replace(from, to),
            false => self.disk.rename(from, to),
        };
        moved.map_err(|error| error.during(operation))
    }

    /// Not one that is the root of a mount, and not where its name cannot be changed.
    fn can_move(&self, directory: &Path) -> Result<bool> {
        let parent = parent_of(directory);
        let device = |path| Ok::<_, Error>(self.disk.stat(path)?.map(|stat| stat.identity.0));
        Ok(self.disk.may_write(parent) && device(directory)? == device(parent)?)
    }

    fn is_ours(&self, folder: &Path) -> Result<bool> {
        let locked = self.disk.lock(folder, MissingLock::Leave)?;
        Ok(!matches!(locked, Locked::Foreign))
    }

    fn crc_of(&self, path: &Path) -> Result<Option<u32>> {
        crc_of(&*self.disk, path)
    }

    /// Not where files go to the machine of the driver, one stream each.
    fn piece_store(&self) -> Option<&dyn PieceStore> {
        (!self.outputs.collects).then_some(self)
    }

    fn make_names_durable(&self, directory: &Path) -> Result<()> {
        match self.outputs.sync {
            true => self.disk.sync_directory(directory),
            false => Ok(()),
        }
    }
}

/// A file of one attempt.
#[derive(Debug)]
struct SharedFileWriter {
    place: SharedDisk,
    /// What it will be.
    path: PathBuf,
    /// Its name, below the folder that it will be in.
    id: String,
    state: Mutex<SharedWriteState>,
}

/// How far it is.
#[derive(Debug)]
struct SharedWriteState {
    /// None once it is closed.
    file: Option<Box<dyn WriteFile>>,
    bytes: u64,
    crc: crc32fast::Hasher,
    /// It is whole, and the committer's.
    finished: bool,
}

impl SharedWriteState {
    fn file(&self) -> Result<&dyn WriteFile> {
        let closed = || Error::bug("write the output", "the file is closed");
        self.file.as_deref().ok_or_else(closed)
    }
}

impl SharedFileWriter {
    fn state(&self) -> MutexGuard<'_, SharedWriteState> {
        lock(&self.state)
    }
}

impl WriteFile for SharedFileWriter {
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        let mut written = self.state();
        if offset != written.bytes {
            let message = format!("the file stands at {}, not at {offset}", written.bytes);
            return Err(Error::bug("write the output", message));
        }
        written.file()?.write_at(data, offset)?;
        written.crc.update(data);
        written.bytes += data.len() as u64;
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.state().file()?.sync()
    }

    fn hand_over(&self) -> Result<()> {
        self.state().file()?.hand_over()
    }

    fn finish(&self) -> Result<Option<Upload>> {
        let mut written = self.state();
        let file = written.file()?;
        file.hand_over()?;
        if self.place.outputs.sync {
            file.sync()?;
        }
        written.file = None;
        let found = self
            .place
            .staged_whole(&self.path, &self.id, written.bytes)?;
        written.finished = true;
        Ok(Some(Upload {
            path: Location::from(&*self.path),
            id: self.id.clone(),
            parts: vec![UploadPart {
                bytes: written.bytes,
                crc: written.crc.clone().finalize(),
                etag: found.version,
            }],
        }))
    }
}

impl Drop for SharedFileWriter {
    fn drop(&mut self) {
        let mut written = self.state();
        let (finished, file) = (written.finished, written.file.take());
        drop(written);
        // An open file that is removed on a mount stays under another name, and keeps its folder.
        drop(file);
        if !finished {
            // The attempt's own error is what counts; the committer ends what stays.
            let _ = self.place.abort(&self.path, &self.id);
        }
    }
}

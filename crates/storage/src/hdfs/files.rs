//! Files of HDFS that are open: read in ranges of one version, written from front to back.
//!
//! A read counts as a request for each block that it touches: each is asked of a data node. Of a file that is written, the calls
//! that create, sync and close it count; the client does not show when it begins a block.

use std::mem;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use futures_util::StreamExt;
use hdfs_native::client::FileStatus;
use hdfs_native::file::{FileReader, FileWriter};
use hdfs_native::{HdfsError, WriteOptions};

use super::{Hdfs, There, version_of};
use crate::location::Location;
use crate::objects::retry::{replaced, retry};
use crate::objects::{Upload, UploadPart};
use crate::staged::staged;
use crate::{Publisher, ReadFile, RemoteFile, WriteFile};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::sync::lock;

/// A file open for reading. Where its blocks are was asked when it was opened; each read asks the data nodes.
pub struct HdfsReader {
    hdfs: Hdfs,
    path: PathBuf,
    /// That it had when it was opened.
    version: String,
    bytes: u64,
    /// Of each block; nothing where the name node does not say so.
    block_bytes: Option<u64>,
    blocks: FileReader,
}

impl HdfsReader {
    /// Opens a file that has a status.
    pub fn open(hdfs: Hdfs, path: &Path, status: &FileStatus) -> Result<Self> {
        let there = hdfs.clients.there("open the input", path)?;
        let blocks = there.ask(async |client, path| client.read(path).await)?;
        if blocks.file_length() != status.length {
            return Err(replaced(path));
        }
        Ok(HdfsReader {
            path: path.to_owned(),
            version: version_of(status),
            bytes: status.length as u64,
            block_bytes: status.blocksize.filter(|bytes| *bytes > 0),
            blocks,
            hdfs,
        })
    }

    /// How many blocks a range touches.
    fn blocks_of(&self, offset: u64, bytes: usize) -> u64 {
        let last = (offset + bytes as u64).saturating_sub(1);
        self.block_bytes
            .map_or(1, |block| last / block - offset / block + 1)
    }

    /// Whether the file is another one by now: then this is why its blocks are gone.
    fn is_replaced(&self) -> bool {
        let now = self.hdfs.status("read the input", &self.path);
        now.is_ok_and(|now| now.is_none_or(|now| version_of(&now) != self.version))
    }
}

impl std::fmt::Debug for HdfsReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.path.fmt(f)
    }
}

impl ReadFile for HdfsReader {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let left = self.bytes.saturating_sub(offset);
        let wanted = buffer
            .len()
            .min(usize::try_from(left).unwrap_or(usize::MAX));
        let buffer = buffer.get_mut(..wanted).unwrap_or_default();
        if buffer.is_empty() {
            return Ok(0);
        }
        let there = self.hdfs.clients.there("read the input", &self.path)?;
        let (blocks, mut is_again) = (self.blocks_of(offset, wanted), false);
        let read = retry(there.requests(), &self.path, || {
            let requests = there.requests();
            requests.count_all(blocks, mem::replace(&mut is_again, true));
            match there.once(wanted, fill(&self.blocks, buffer, offset as usize)) {
                Err(_) if self.is_replaced() => Err(replaced(&self.path)),
                done => done,
            }
        });
        match read {
            Ok(()) if self.is_replaced() => Err(replaced(&self.path)),
            Ok(()) => Ok(wanted),
            Err(error) => Err(error.with("offset", offset)),
        }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn remote(&self) -> Option<RemoteFile> {
        Some(RemoteFile {
            bytes: self.bytes,
            memory: Arc::clone(self.hdfs.clients.memory()),
        })
    }
}

/// Fills the buffer from `offset` on, where the file has so many bytes.
async fn fill(blocks: &FileReader, buffer: &mut [u8], offset: usize) -> Result<(), HdfsError> {
    let mut pieces = pin!(blocks.read_range_stream(offset, buffer.len()));
    let mut left = buffer;
    while let Some(piece) = pieces.next().await {
        let piece = piece?;
        let Some((now, later)) = left.split_at_mut_checked(piece.len()) else {
            return Err(HdfsError::DataTransferError("it sent too much".to_owned()));
        };
        now.copy_from_slice(&piece);
        left = later;
    }
    if left.is_empty() {
        Ok(())
    } else {
        Err(HdfsError::DataTransferError("it ended early".to_owned()))
    }
}

/// A staged file.
pub struct HdfsWriter {
    hdfs: Hdfs,
    /// What it will be.
    path: PathBuf,
    /// Its name, below the folder that it will be in.
    id: String,
    state: Mutex<HdfsWriteState>,
}

/// How far it is.
struct HdfsWriteState {
    /// None once it is closed.
    file: Option<FileWriter>,
    bytes: u64,
    crc: crc32fast::Hasher,
    /// It is whole, and the committer's.
    finished: bool,
}

impl HdfsWriter {
    /// Creates the staged file `id` of what will be `path`.
    pub fn create(hdfs: Hdfs, path: &Path, id: String) -> Result<Self> {
        let location = staged(path, &id)?;
        let there = hdfs
            .clients
            .there("create the output", location.as_typed())?;
        // Nobody else has this name: what is there is of a request whose reply was lost.
        let blocks = hdfs.clients.settings().blocks(hdfs.blocks)?;
        let options = WriteOptions {
            replication: blocks.replication,
            block_size: blocks.bytes,
            overwrite: true,
            ..WriteOptions::default()
        };
        let file = there.ask(async |client, path| client.create(path, &options).await)?;
        Ok(HdfsWriter {
            path: path.to_owned(),
            id,
            state: Mutex::new(HdfsWriteState {
                file: Some(file),
                bytes: 0,
                crc: crc32fast::Hasher::new(),
                finished: false,
            }),
            hdfs,
        })
    }

    fn state(&self) -> MutexGuard<'_, HdfsWriteState> {
        lock(&self.state)
    }

    fn there(&self) -> Result<There<'_>> {
        self.hdfs.clients.there("write the output", &self.path)
    }
}

impl std::fmt::Debug for HdfsWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.path.fmt(f)
    }
}

fn closed() -> HdfsError {
    HdfsError::OperationFailed("the file is closed".to_owned())
}

impl WriteFile for HdfsWriter {
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        let mut written = self.state();
        if offset != written.bytes {
            let message = format!("the file stands at {}, not at {offset}", written.bytes);
            return Err(Error::bug("write the output", message));
        }
        let there = self.there()?;
        there.once(data.len(), async {
            let file = written.file.as_mut().ok_or_else(closed)?;
            file.write_bytes(Bytes::copy_from_slice(data)).await
        })?;
        written.crc.update(data);
        written.bytes += data.len() as u64;
        Ok(())
    }

    /// What was written is on the disks of the data nodes then.
    fn sync(&self) -> Result<()> {
        let mut written = self.state();
        self.there()?.count_once(async {
            let file = written.file.as_mut().ok_or_else(closed)?;
            file.hsync().await
        })
    }

    fn finish(&self) -> Result<Option<Upload>> {
        let mut written = self.state();
        self.there()?.count_once(async {
            let file = written.file.as_mut().ok_or_else(closed)?;
            file.close().await
        })?;
        written.file = None;
        let location = staged(&self.path, &self.id)?;
        let status = self.hdfs.status("write the output", location.as_typed())?;
        let Some(status) = status.filter(|status| status.length as u64 == written.bytes) else {
            let message = "the file in HDFS has another length than was written";
            return Err(Error::new(Kind::Io, "write the output", message)
                .with_path(&self.path)
                .with("bytes", written.bytes)
                .retryable_error());
        };
        written.finished = true;
        Ok(Some(Upload {
            path: Location::from(&*self.path),
            id: self.id.clone(),
            parts: vec![UploadPart {
                bytes: written.bytes,
                crc: written.crc.clone().finalize(),
                etag: version_of(&status),
            }],
        }))
    }
}

impl Drop for HdfsWriter {
    fn drop(&mut self) {
        if !self.state().finished {
            // The attempt's own error is what counts; the committer ends what stays.
            let _ = self.hdfs.abort(&self.path, &self.id);
        }
    }
}

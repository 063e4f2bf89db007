//! Reading and writing local files past the page cache.
//!
//! Direct I/O moves whole blocks between the device and aligned memory; it saves the copy and the cache's page
//! faults, which cost more than the copy. Where a range begins or ends inside a block, that
//! edge goes through the cache:
//!
//! ```text
//!   file      |----block----|----block----|----block----|----block----|
//!   range             [=====|=============|=============|====]
//!   goes        buffered ^      direct         direct      ^ buffered
//! ```
//!
//! Where a file system refuses direct I/O everything is buffered, and on shared mounts too (`mounts.rs`).
//!
//! Decision: docs/decisions/parts-in-place.md.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::{BLOCK_BYTES, Caching, ReadFile, WriteFile};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::sys::{file_calls, files, mounts};

/// A local file open for reading.
#[derive(Debug)]
pub struct LocalReader {
    path: PathBuf,
    cached: File,
    direct: Option<File>,
    /// On a shared mount, what the file is: its server may forget an open file, which is opened again then.
    version: Option<FileIdentity>,
}

/// What tells a file from another one of its name, also after its server was started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileIdentity {
    bytes: u64,
    modified: (i64, i64),
}

impl FileIdentity {
    fn of(found: &Metadata) -> Self {
        FileIdentity {
            bytes: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
        }
    }
}

impl LocalReader {
    pub(crate) fn open(path: &Path, caching: Caching) -> Result<Self> {
        file_calls::on(path, || Self::open_now(path, caching))
    }

    fn open_now(path: &Path, caching: Caching) -> Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true);
        let failed = |error| Error::from_io("open the input", path, &error);
        let cached = options.open(path).map_err(failed)?;
        let version = if mounts::may_be_shared(cached.as_fd()) {
            Some(FileIdentity::of(&cached.metadata().map_err(failed)?))
        } else {
            None
        };
        let direct = match version {
            None => open_direct(&mut options, path, caching),
            Some(_) => None,
        };
        Ok(LocalReader {
            path: path.to_owned(),
            cached,
            direct,
            version,
        })
    }

    /// Reads a file whose server does not know it any more (ESTALE) by its name, if it still is the same.
    fn read_by_name(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let failed = |error: io::Error| match error.kind() {
            ErrorKind::NotFound => self.replaced(offset),
            _ => Error::from_io("read the input", &self.path, &error).with("offset", offset),
        };
        let again = File::open(&self.path).map_err(failed)?;
        let found = FileIdentity::of(&again.metadata().map_err(failed)?);
        if self.version != Some(found) {
            return Err(self.replaced(offset));
        }
        again.read_at(buffer, offset).map_err(failed)
    }

    fn replaced(&self, offset: u64) -> Error {
        let message = "another machine removed or replaced it while it was read";
        Error::new(Kind::InputChanged, "read the input", message)
            .with_path(&self.path)
            .with("offset", offset)
            .advise("let no program write to the input, then run again")
    }

    /// The file to read this piece by: direct where buffer, length and offset are of whole blocks.
    fn file_for(&self, buffer: &[u8], offset: u64) -> &File {
        let whole =
            (buffer.as_ptr() as usize | buffer.len() | offset as usize).is_multiple_of(BLOCK_BYTES);
        self.direct
            .as_ref()
            .filter(|_| whole)
            .unwrap_or(&self.cached)
    }
}

impl ReadFile for LocalReader {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            let at = offset + done as u64;
            let rest = &mut buffer[done..];
            let read = file_calls::on(&self.path, || {
                match self.file_for(rest, at).read_at(rest, at) {
                    Err(error) if refused_direct(&error) => self.cached.read_at(rest, at),
                    read => read,
                }
            });
            match read {
                Ok(0) => break,
                Ok(bytes) => done += bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::StaleNetworkFileHandle => {
                    match file_calls::on(&self.path, || self.read_by_name(rest, at))? {
                        0 => break,
                        bytes => done += bytes,
                    }
                }
                Err(error) => {
                    return Err(
                        Error::from_io("read the input", &self.path, &error).with("offset", at)
                    );
                }
            }
        }
        Ok(done)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        // Of a mapped file that is gone we would hear by a signal.
        self.version.is_none().then(|| self.cached.as_fd())
    }
}

/// A local file open for writing.
#[derive(Debug)]
pub struct LocalWriter {
    path: PathBuf,
    cached: File,
    direct: Option<File>,
    is_shared: bool,
}

impl LocalWriter {
    /// Opens a file, which gets `mode` less the umask if it is made.
    pub(crate) fn create(path: &Path, bytes: u64, caching: Caching, mode: u32) -> Result<Self> {
        file_calls::on(path, || Self::create_now(path, bytes, caching, mode))
    }

    fn create_now(path: &Path, bytes: u64, caching: Caching, mode: u32) -> Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(mode);
        let failed = |error| Error::from_io("create the output", path, &error);
        let cached = options.open(path).map_err(failed)?;
        let is_shared = mounts::may_be_shared(cached.as_fd());
        let writer = LocalWriter {
            path: path.to_owned(),
            direct: None,
            cached,
            is_shared,
        };
        writer.reserve(bytes)?;
        if is_shared {
            return Ok(writer);
        }
        Ok(LocalWriter {
            direct: open_direct(&mut options, path, caching),
            ..writer
        })
    }

    /// A file that is there, through the cache.
    pub(crate) fn of_existing(path: &Path) -> Result<Self> {
        let opened = OpenOptions::new().write(true).open(path);
        let cached = opened.map_err(|error| Error::from_io("write the output", path, &error))?;
        Ok(LocalWriter {
            path: path.to_owned(),
            is_shared: mounts::may_be_shared(cached.as_fd()),
            direct: None,
            cached,
        })
    }

    /// The error of a write. A file that its server has forgotten is not made anew: what others wrote there would be lost.
    fn failed(&self, operation: &'static str, error: &io::Error) -> Error {
        let made = Error::from_io(operation, &self.path, error);
        match error.kind() {
            ErrorKind::StaleNetworkFileHandle => made
                .final_error()
                .advise("check that no other machine removes the job's files, then run again"),
            _ => made,
        }
    }

    fn write(&self, file: &File, data: &[u8], offset: u64) -> io::Result<()> {
        file_calls::on(&self.path, || match file.write_all_at(data, offset) {
            Err(error) if refused_direct(&error) => self.cached.write_all_at(data, offset),
            done => done,
        })
    }
}

impl WriteFile for LocalWriter {
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        let failed = |error| {
            self.failed("write the output", &error)
                .with("offset", offset)
        };
        let (head, body) = edges(data, offset);
        let Some(direct) = self.direct.as_ref().filter(|_| body > 0) else {
            return self.write(&self.cached, data, offset).map_err(failed);
        };
        let (head_data, rest) = data.split_at(head);
        let (body_data, tail_data) = rest.split_at(body);
        let body_offset = offset + head as u64;
        self.write(direct, body_data, body_offset).map_err(failed)?;
        for (edge, at) in [(head_data, offset), (tail_data, body_offset + body as u64)] {
            if !edge.is_empty() {
                self.write(&self.cached, edge, at).map_err(failed)?;
            }
        }
        Ok(())
    }

    fn reserve(&self, bytes: u64) -> Result<()> {
        let reserved = file_calls::on(&self.path, || reserve_space(&self.cached, bytes));
        reserved.map_err(|error| {
            Error::from_io("reserve space for the output", &self.path, &error).with("bytes", bytes)
        })
    }

    fn cut(&self, bytes: u64) -> Result<()> {
        file_calls::on(&self.path, || self.cached.set_len(bytes))
            .map_err(|error| self.failed("cut the output", &error).with("bytes", bytes))
    }

    fn sync(&self) -> Result<()> {
        file_calls::on(&self.path, || self.cached.sync_all())
            .map_err(|error| self.failed("make the output durable", &error))
    }

    fn hand_over(&self) -> Result<()> {
        if !self.is_shared {
            return Ok(());
        }
        file_calls::on(&self.path, || files::hand_over(&self.cached))
            .map_err(|error| self.failed("hand the output over to its server", &error))
    }
}

/// Bytes before the first whole block, and bytes in whole blocks (0 where memory and file are not congruent).
fn edges(data: &[u8], offset: u64) -> (usize, usize) {
    let head = (BLOCK_BYTES - offset as usize % BLOCK_BYTES) % BLOCK_BYTES;
    let congruent = data.as_ptr() as usize % BLOCK_BYTES == offset as usize % BLOCK_BYTES;
    if !congruent || head >= data.len() {
        return (0, 0);
    }
    (head, (data.len() - head) / BLOCK_BYTES * BLOCK_BYTES)
}

fn open_direct(options: &mut OpenOptions, path: &Path, caching: Caching) -> Option<File> {
    match caching {
        Caching::Cached => None,
        Caching::Direct => files::open_direct(options.create(false), path),
    }
}

/// Whether an error says that the file system wants no direct I/O of this shape.
fn refused_direct(error: &io::Error) -> bool {
    error.kind() == ErrorKind::InvalidInput
}

/// Gives the file its length and, where the file system can, its blocks: a full disk is found here, not later.
fn reserve_space(file: &File, bytes: u64) -> io::Result<()> {
    match files::allocate(file, bytes) {
        Err(error) if files::not_supported(&error) => set_length(file, bytes),
        done => done,
    }
}

/// Lengthens only: other writers may be at work in the same file.
fn set_length(file: &File, bytes: u64) -> io::Result<()> {
    if file.metadata()?.len() < bytes {
        file.set_len(bytes)
    } else {
        Ok(())
    }
}

/// The error of a file that ended before `wanted` bytes were read.
pub fn ended_early(path: &Path, wanted: u64, found: u64) -> Error {
    Error::new(
        Kind::InputChanged,
        "read the input",
        format!("it became shorter while it was read: {found} bytes where {wanted} were"),
    )
    .with_path(path)
    .advise("let no program write to the input, then run again")
}

/// The whole blocks inside `range`, which may be none.
///
/// ```
/// use gristmill_storage::io::direct::whole_blocks;
/// assert_eq!(whole_blocks(1..12_288), 4096..12_288);
/// assert!(whole_blocks(1..8191).is_empty());
/// ```
pub fn whole_blocks(range: Range<u64>) -> Range<u64> {
    const BLOCK: u64 = BLOCK_BYTES as u64;
    let start = range.start.div_ceil(BLOCK).saturating_mul(BLOCK);
    let end = range.end / BLOCK * BLOCK;
    start..end.max(start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_base::sys::pages::Pages;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// Any cut of a range into congruent pieces gives the same file as one plain write.
        #[test]
        fn pieces_meet_inside_blocks(
            bytes in 1_usize..40_000,
            cuts in proptest::collection::vec(0.0..1.0_f64, 0..6),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("out");
            let mut data = Pages::<u8>::zeroed(bytes).unwrap();
            data.iter_mut().enumerate().for_each(|(i, byte)| *byte = (i * 31 % 251) as u8);
            let mut ends: Vec<usize> = cuts.iter().map(|cut| (cut * bytes as f64) as usize).collect();
            ends.push(bytes);
            ends.sort_unstable();
            let mut start = 0;
            for end in ends {
                let writer = LocalWriter::create(&path, bytes as u64, Caching::Direct, 0o666).unwrap();
                writer.write_at(&data[start..end], start as u64).unwrap();
                start = end;
            }
            prop_assert_eq!(std::fs::read(&path).unwrap(), &data[..]);
            let reader = LocalReader::open(&path, Caching::Direct).unwrap();
            let mut back = Pages::<u8>::zeroed(49_152).unwrap();
            prop_assert_eq!(reader.read_at(&mut back, 0).unwrap(), bytes);
            prop_assert_eq!(&back[..bytes], &data[..]);
        }
    }

    /// What a reader does when the server has forgotten its file.
    #[test]
    fn a_forgotten_file_is_read_by_its_name_if_it_is_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in");
        std::fs::write(&path, "abcdef").unwrap();
        let mut reader = LocalReader::open(&path, Caching::Direct).unwrap();
        assert!(reader.version.is_none() && reader.descriptor().is_some());
        reader.version = Some(FileIdentity::of(&reader.cached.metadata().unwrap()));
        assert!(reader.descriptor().is_none(), "it is not mapped");
        let mut buffer = [0; 4];
        assert_eq!(reader.read_by_name(&mut buffer, 3).unwrap(), 3);
        assert_eq!(&buffer[..3], b"def");
        std::fs::write(&path, "another").unwrap();
        let error = reader.read_by_name(&mut buffer, 3).unwrap_err();
        assert_eq!(error.kind(), Kind::InputChanged);
        std::fs::remove_file(&path).unwrap();
        let error = reader.read_by_name(&mut buffer, 3).unwrap_err();
        assert_eq!(error.kind(), Kind::InputChanged);
    }
}

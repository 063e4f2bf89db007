//! Opens the inputs of a search: plain files as ranges; compressed files, UTF-16 and pipes as streams.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_engine::codec::{Coding, SNIFF_BYTES, detect, open_file};
use gristmill_engine::record::arena::Arena;
use gristmill_engine::storage::io::window::in_any_order;
use gristmill_engine::storage::local::not_there;
use gristmill_engine::storage::location::Location;
use gristmill_engine::storage::stores::Stores;
use gristmill_engine::storage::{Caching, FileKind, ReadFile, Stat};
use gristmill_engine::{Error, Kind, Result};
use gristmill_grep::{Data, RangeSource, is_utf16};

/// A file of a store, mapped if possible: each of its bytes is read once.
struct StoreFile {
    path: PathBuf,
    file: Box<dyn ReadFile>,
    mapped: Option<Arena>,
    bytes: u64,
}

impl StoreFile {
    fn new(path: &Location, file: Box<dyn ReadFile>, bytes: u64) -> Result<Self> {
        let mut mapped = None;
        if let Some(descriptor) = file.descriptor() {
            let mut arena = Arena::reserve(&[bytes])?;
            if arena.map(0, descriptor) {
                mapped = Some(arena);
            }
        }
        let file = in_any_order(file);
        Ok(StoreFile {
            path: path.as_typed().to_owned(),
            file,
            mapped,
            bytes,
        })
    }
}

impl RangeSource for StoreFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset).map_err(io::Error::other)
    }

    fn mapped(&self) -> Option<&[u8]> {
        self.mapped.as_ref()?.mapped(0..self.bytes)
    }

    fn check(&self) -> io::Result<()> {
        match self.mapped.as_ref().and_then(Arena::lost_at) {
            Some(_) => Err(io::Error::other(became_shorter(&self.path))),
            None => Ok(()),
        }
    }
}

fn became_shorter(path: &Path) -> Error {
    let what = "the file became shorter while it was searched";
    Error::new(Kind::BadInput, "read the input", what).with_path(path)
}

/// A stream whose errors name it.
struct NamedStream {
    path: PathBuf,
    file: File,
}

impl Read for NamedStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => error,
            _ => io::Error::other(Error::from_io("read the input", &self.path, &error)),
        })
    }
}

fn stream(path: &Path, file: File) -> Data {
    let path = path.to_owned();
    Data::Stream(Box::new(NamedStream { path, file }))
}

/// Equal for two names of the same file: device and inode.
pub type Identity = (u64, u64);

/// The identity of an open file, if it is a regular one.
pub fn identity(file: &File) -> Option<Identity> {
    let seen = file.metadata().ok()?;
    seen.is_file().then(|| (seen.dev(), seen.ino()))
}

/// Standard input; `output` is the file that is written.
pub fn standard_input(output: Option<Identity>) -> Result<Data> {
    let path = "standard input".as_ref();
    let file = io::stdin().as_fd().try_clone_to_owned();
    let file = File::from(file.map_err(|error| Error::from_io("read the input", path, &error))?);
    if output.is_some() && identity(&file) == output {
        return Err(is_output(path));
    }
    Ok(stream(path, file))
}

/// A search that reads what it writes may never end.
fn is_output(path: &Path) -> Error {
    let what = "the input file is also the output";
    Error::new(Kind::BadInput, "search the input", what).with_path(path)
}

/// Opens what is at a location. `stat` is known already, if given; `output` is the file that is written.
pub fn at(
    stores: &Stores,
    path: &Location,
    stat: Option<Stat>,
    output: Option<Identity>,
) -> Result<Data> {
    let found = stat.map_or_else(|| stores.stat(path), |stat| Ok(Some(stat)))?;
    let stat = found.ok_or_else(|| not_there("read the input", path.as_typed()))?;
    match (stat.kind, path.local()) {
        (FileKind::File, Some(local)) if Some(stat.identity) == output => Err(is_output(local)),
        (FileKind::DanglingLink, _) => Err(not_there("read the input", path.as_typed())),
        (FileKind::Directory, _) => {
            Err(
                Error::new(Kind::BadInput, "read the input", "it is a directory")
                    .with_path(path.as_typed()),
            )
        }
        // Files in /proc say that they have no bytes.
        (FileKind::Other, Some(local)) | (FileKind::File, Some(local))
            if stat.kind == FileKind::Other || stat.bytes == 0 =>
        {
            let file = File::open(local);
            let file = file.map_err(|error| Error::from_io("read the input", local, &error))?;
            Ok(stream(local, file))
        }
        _ => {
            let file = stores.open(path, Caching::Cached)?;
            let coding = match coding_of(&*file, path)? {
                Some(coding) => coding,
                None => {
                    let plain = StoreFile::new(path, file, stat.bytes)?;
                    return Ok(Data::Ranges(Arc::new(plain), stat.bytes));
                }
            };
            let reader = open_file(file, path.as_typed(), coding)?;
            Ok(Data::Stream(Box::new(reader)))
        }
    }
}

/// Whether a file that was named is there, and may be read, as GNU grep asks before it passes the file over.
pub fn can_be_read(stores: &Stores, path: &Location) -> bool {
    match (stores.stat(path), path.local()) {
        (Ok(Some(stat)), Some(local)) if stat.kind == FileKind::File => File::open(local).is_ok(),
        (Ok(Some(stat)), _) => stat.kind != FileKind::DanglingLink,
        (Ok(None) | Err(_), _) => false,
    }
}

/// How a file is read that is decoded: it is compressed, or UTF-16. If only its name says so, it is searched as it is.
fn coding_of(file: &dyn ReadFile, path: &Location) -> Result<Option<Coding>> {
    let mut first = [0; SNIFF_BYTES];
    let count = file.read_at(&mut first, 0)?;
    let first = &first[..count];
    let codec = detect(path.as_typed(), first).unwrap_or(None);
    let plain = is_utf16(first).then_some(Coding::Plain);
    Ok(codec.map(Coding::Coded).or(plain))
}

//! The bytes of a file from some place on, decoded where it is compressed.

use std::path::Path;

use crate::codec::{Coding, Reader, open};
use crate::error::{Error, Kind, Result};
use crate::lines::Source;
use crate::storage::{Caching, ReadFile, Store};

/// Reads a file from front to back.
#[derive(Debug)]
pub struct FileSource {
    way: Way,
}

#[derive(Debug)]
enum Way {
    Plain(Box<dyn ReadFile>, u64),
    Coded(Box<Reader>),
}

impl FileSource {
    /// Opens a file: from `start` on if it is plain, else from its beginning.
    pub fn open(store: &dyn Store, path: &Path, start: u64, coded: bool) -> Result<Self> {
        let way = if coded {
            let reader = open(store, path, Caching::Cached, Coding::Detect)?;
            if reader.codec().is_none() {
                return Err(cut_short(path));
            }
            Way::Coded(Box::new(reader))
        } else {
            Way::Plain(store.open(path, Caching::Cached)?, start)
        };
        Ok(FileSource { way })
    }
}

fn cut_short(path: &Path) -> Error {
    let message =
        "it is empty, where compressed data was expected: even of nothing there are bytes";
    Error::new(Kind::BadInput, "decode the input", message)
        .with_path(path)
        .with("offset", 0)
        .advise("copy the file again from where it came from; if it is to be empty, leave it out")
}

impl Source for FileSource {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        match &mut self.way {
            Way::Plain(file, at) => {
                let count = file.read_at(buffer, *at)?;
                *at += count as u64;
                Ok(count)
            }
            Way::Coded(reader) => reader.decode(buffer),
        }
    }
}

//! The bytes of a file from some place on, decoded where it is compressed.

use std::path::Path;

use crate::codec::{Coding, Reader, open_file};
use crate::error::{Error, Kind, Result};
use crate::lines::{BLOCK_BYTES, Source};
use crate::storage::input::FileRange;
use crate::storage::window::in_order;
use crate::storage::{Caching, ReadFile, Store};

/// Reads a file from front to back.
#[derive(Debug)]
pub struct FileSource {
    way: Way,
}

#[derive(Debug)]
enum Way {
    Plain(Box<dyn ReadFile>, u64),
    Stream(Box<Reader>),
}

impl FileSource {
    /// Opens the file of a piece: from `start` on if it is plain, else from its beginning.
    pub fn open(store: &dyn Store, piece: &FileRange, start: u64) -> Result<Self> {
        let path = piece.file.path.as_typed();
        let file = piece.file.open(store, Caching::Cached)?;
        if piece.coding() == Coding::Plain {
            // Blocks are read as they come: the last one ends behind the range.
            let read = start..piece.range().end + BLOCK_BYTES as u64;
            return Ok(FileSource {
                way: Way::Plain(in_order(file, read), start),
            });
        }
        let reader = open_file(file, path, Coding::Detect)?;
        if reader.codec().is_none() && piece.file.codec.is_some() {
            return Err(cut_short(path));
        }
        Ok(FileSource {
            way: Way::Stream(Box::new(reader)),
        })
    }

    /// Whether the file is compressed: offsets are those of decoded bytes then, and it is not cut.
    pub fn is_decoded(&self) -> bool {
        matches!(&self.way, Way::Stream(reader) if reader.codec().is_some())
    }
}

fn cut_short(path: &Path) -> Error {
    let message = "it is empty, and compressed data was expected: an empty file has bytes too when it is compressed";
    Error::new(Kind::BadInput, "decode the input", message)
        .with_path(path)
        .with("offset", 0)
        .advise("copy the file again from its source; if it should be empty, leave it out")
}

impl Source for FileSource {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        match &mut self.way {
            Way::Plain(file, at) => {
                let count = file.read_at(buffer, *at)?;
                *at += count as u64;
                Ok(count)
            }
            Way::Stream(reader) => reader.decode(buffer),
        }
    }
}

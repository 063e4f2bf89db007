//! The bytes of a file from some place on, decoded where it is compressed.

use std::path::Path;

use gristmill_base::error::{Error, Kind, Result};
use gristmill_storage::codec::{Coding, FileDecoder, open_file};
use gristmill_storage::input::FileRange;
use gristmill_storage::io::window::in_order;
use gristmill_storage::lines::{BLOCK_BYTES, ByteSource};
use gristmill_storage::{Caching, ReadFile, Store};

/// Reads a file from front to back.
#[derive(Debug)]
pub struct FileSource {
    source: SplitSource,
}

#[derive(Debug)]
enum SplitSource {
    Plain(Box<dyn ReadFile>, u64),
    Stream(Box<FileDecoder>),
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
                source: SplitSource::Plain(in_order(file, read), start),
            });
        }
        let reader = open_file(file, path, Coding::Detect)?;
        if reader.codec().is_none() && piece.file.codec.is_some() {
            return Err(cut_short(path));
        }
        Ok(FileSource {
            source: SplitSource::Stream(Box::new(reader)),
        })
    }

    /// Whether the file is compressed: offsets are those of decoded bytes then, and it is not cut.
    pub fn is_decoded(&self) -> bool {
        matches!(&self.source, SplitSource::Stream(reader) if reader.codec().is_some())
    }
}

fn cut_short(path: &Path) -> Error {
    let message = "it is empty, and compressed data was expected: an empty file has bytes too when it is compressed";
    Error::new(Kind::BadInput, "decode the input", message)
        .with_path(path)
        .with("offset", 0)
        .advise("copy the file again from its source; if it should be empty, leave it out")
}

impl ByteSource for FileSource {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        match &mut self.source {
            SplitSource::Plain(file, at) => {
                let count = file.read_at(buffer, *at)?;
                *at += count as u64;
                Ok(count)
            }
            SplitSource::Stream(reader) => reader.decode(buffer),
        }
    }
}

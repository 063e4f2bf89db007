//! Files as one record each: the file's name, and all that is in it.

use std::os::unix::ffi::OsStringExt;

use super::{FileSource, Pair, RecordReader, uri};
use crate::hadoop::value::WritableClass;
use gristmill_base::error::Result;
use gristmill_storage::Store;
use gristmill_storage::input::FileRange;
use gristmill_storage::lines::ByteSource;

/// A file as one record.
#[derive(Debug)]
pub struct WholeFileReader {
    name: Vec<u8>,
    content: Vec<u8>,
    given: bool,
}

impl WholeFileReader {
    /// Reads a file.
    pub fn open(store: &dyn Store, piece: &FileRange) -> Result<Self> {
        let mut source = FileSource::open(store, piece, 0)?;
        let mut content = Vec::new();
        let mut filled = 0;
        loop {
            content.resize(filled + (256 << 10), 0);
            let count = source.read(content.get_mut(filled..).unwrap_or_default())?;
            filled += count;
            if count == 0 {
                break;
            }
        }
        content.truncate(filled);
        let name = uri(&piece.file.path).into_vec();
        Ok(WholeFileReader {
            name,
            content,
            given: false,
        })
    }
}

impl RecordReader for WholeFileReader {
    fn advance(&mut self) -> Result<bool> {
        Ok(!std::mem::replace(&mut self.given, true))
    }

    fn pair(&self) -> Pair<'_> {
        (
            (WritableClass::Text, &self.name),
            (WritableClass::Bytes, &self.content),
        )
    }

    fn offset(&self) -> u64 {
        0
    }
}

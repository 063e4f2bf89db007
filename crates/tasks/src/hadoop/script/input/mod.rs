//! The records of a split, as Hadoop's input formats see them.
//!
//! ```text
//!   format      key                value                   the split's records
//!   text        offset (Long)      the line                lines that begin behind its first byte, up to its end
//!   key-value   up to the TAB      what follows            the same
//!   xml         begin .. end mark  nothing                 those whose begin mark begins in it
//!   whole       the file's name    all of it (Bytes)       one
//!   sequence    the file's         the file's              those behind the sync marks in it
//! ```
//!
//! A split is a range of bytes of a file, cut anywhere: a record that begins exactly at a split's end belongs to it, and
//! the line a split begins in belongs to the one before (to the first split, its first line). So every record is read
//! once.

mod sequence;
mod source;
mod text;
mod whole;
mod xml;

use std::ffi::OsString;

use serde::{Deserialize, Serialize};

pub use sequence::SequenceRecords;
pub use source::FileSource;
pub use text::TextRecords;
pub use whole::WholeFileReader;
pub use xml::XmlRecords;

use crate::hadoop::value::WritableClass;
use gristmill_base::error::Result;
use gristmill_storage::input::FileRange;
use gristmill_storage::location::Location;
use gristmill_storage::{Caching, Store};

/// A file as Hadoop names it: `file:` and the path, byte for byte.
pub fn uri(file: &Location) -> OsString {
    if file.is_remote() {
        return file.as_typed().into();
    }
    let mut uri = OsString::from("file:");
    uri.push(file.as_typed());
    uri
}

/// How files are read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum InputFormat {
    /// Lines.
    Text {
        /// What ends them, if not LF, CR or CR LF.
        delimiter: Option<String>,
        /// Lines of so many bytes, their ends included, are passed over.
        #[serde(default)]
        longest: Option<u64>,
    },
    /// Lines of a key and a value.
    KeyValue {
        /// Between the two: one byte.
        separator: u8,
        /// What ends lines.
        delimiter: Option<String>,
        /// Lines of so many bytes, their ends included, are passed over.
        #[serde(default)]
        longest: Option<u64>,
    },
    /// What is between two marks.
    Xml {
        /// The first mark.
        begin: String,
        /// The last.
        end: String,
    },
    /// Files.
    Whole,
    /// Hadoop's sequence files.
    Sequence {
        /// What becomes of their values.
        view: SequenceView,
    },
    /// Sequence files and text, told apart by how they begin.
    Auto {
        /// Lines of so many bytes, their ends included, are passed over.
        #[serde(default)]
        longest: Option<u64>,
    },
}

/// How the values of a sequence file are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SequenceView {
    /// As what they are.
    Values,
    /// As text.
    Text,
    /// As the bytes that they are stored as.
    Binary,
}

impl InputFormat {
    /// The classes of its keys and values; of sequence files, those of `first`, which is one of them.
    pub fn classes(
        &self,
        store: &dyn Store,
        first: Option<&FileRange>,
    ) -> Result<(WritableClass, WritableClass)> {
        match (self, first) {
            (InputFormat::Text { .. }, _) => Ok((WritableClass::Long, WritableClass::Text)),
            (InputFormat::Whole, _) => Ok((WritableClass::Text, WritableClass::Bytes)),
            (
                InputFormat::Sequence {
                    view: SequenceView::Binary,
                },
                _,
            ) => Ok((WritableClass::Bytes, WritableClass::Bytes)),
            (
                InputFormat::Sequence {
                    view: SequenceView::Values,
                },
                Some(piece),
            ) => Ok(SequenceRecords::open(store, piece, SequenceView::Values)?.stored()),
            (InputFormat::Auto { .. }, Some(piece)) if is_sequence(store, piece)? => {
                Ok(SequenceRecords::open(store, piece, SequenceView::Values)?.stored())
            }
            (InputFormat::Auto { .. }, _) => Ok((WritableClass::Long, WritableClass::Text)),
            _ => Ok((WritableClass::Text, WritableClass::Text)),
        }
    }

    /// Whether a file can be cut.
    pub fn can_cut(&self) -> bool {
        !matches!(self, InputFormat::Whole)
    }
}

/// The records of a range of a file, which is in `store`.
pub fn open(
    store: &dyn Store,
    format: &InputFormat,
    piece: &FileRange,
) -> Result<Box<dyn RecordReader>> {
    match format {
        InputFormat::Text { delimiter, longest } => {
            text(store, piece, delimiter.as_deref(), None, *longest)
        }
        InputFormat::KeyValue {
            separator,
            delimiter,
            longest,
        } => text(
            store,
            piece,
            delimiter.as_deref(),
            Some(*separator),
            *longest,
        ),
        InputFormat::Xml { begin, end } => {
            Ok(Box::new(XmlRecords::open(store, piece, begin, end)?))
        }
        InputFormat::Whole => Ok(Box::new(WholeFileReader::open(store, piece)?)),
        InputFormat::Sequence { view } => Ok(Box::new(SequenceRecords::open(store, piece, *view)?)),
        InputFormat::Auto { .. } if is_sequence(store, piece)? => Ok(Box::new(
            SequenceRecords::open(store, piece, SequenceView::Values)?,
        )),
        InputFormat::Auto { longest } => text(store, piece, None, None, *longest),
    }
}

fn text(
    store: &dyn Store,
    piece: &FileRange,
    delimiter: Option<&str>,
    separator: Option<u8>,
    longest: Option<u64>,
) -> Result<Box<dyn RecordReader>> {
    let records = TextRecords::open(store, piece, delimiter, separator, longest)?;
    Ok(Box::new(records))
}

fn is_sequence(store: &dyn Store, piece: &FileRange) -> Result<bool> {
    let mut first = [0; 3];
    let file = piece.file.open(store, Caching::Cached)?;
    let count = file.read_at(&mut first, 0)?;
    Ok(count == 3 && &first == b"SEQ")
}

/// A record's key and value, with their classes.
pub type Pair<'a> = ((WritableClass, &'a [u8]), (WritableClass, &'a [u8]));

/// The records of a split.
pub trait RecordReader: Send {
    /// Goes on to the next record; false at the end.
    fn advance(&mut self) -> Result<bool>;

    /// The present record's key and value.
    fn pair(&self) -> Pair<'_>;

    /// Where the present record begins in its file (decoded).
    fn offset(&self) -> u64;

    /// Lines of text that are records as they stand, as many as are at hand: their number and bytes, each line
    /// ended by LF. Empty where there are none, or where records are not that; then [`RecordReader::advance`] goes on.
    fn many(&mut self) -> Result<(u64, &[u8])> {
        Ok((0, &[]))
    }
}

/// A range of the plain file `/f`.
#[cfg(test)]
fn plain(offset: u64, bytes: u64) -> FileRange {
    let file = gristmill_storage::input::SplitFile {
        path: "/f".into(),
        bytes: offset + bytes,
        codec: None,
        version: None,
    };
    FileRange {
        file,
        offset,
        bytes,
    }
}

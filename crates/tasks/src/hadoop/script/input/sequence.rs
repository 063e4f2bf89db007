//! Records of a sequence file: as values, as their text, or as the bytes that they are stored as.

use super::{Pair, RecordReader, SequenceView};
use crate::hadoop::sequence::SequenceReader;
use crate::hadoop::value::{WritableClass, unknown_class};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_storage::input::FileRange;
use gristmill_storage::{Caching, Store};

/// The records of a split.
#[derive(Debug)]
pub struct SequenceRecords {
    reader: SequenceReader,
    view: SequenceView,
    classes: (WritableClass, WritableClass),
    key: Vec<u8>,
    value: Vec<u8>,
}

impl SequenceRecords {
    /// The records of `piece`.
    pub fn open(store: &dyn Store, piece: &FileRange, view: SequenceView) -> Result<Self> {
        let path = piece.file.path.as_typed();
        let file = piece.file.open(store, Caching::Cached)?;
        let reader = SequenceReader::of_range(file, path, piece.range())?;
        let class = |name: &str| match WritableClass::by_java(name) {
            Some(class) => Ok(class),
            None if view == SequenceView::Binary => Ok(WritableClass::Bytes),
            None => Err(unknown_class("read a sequence file", name).with_path(path)),
        };
        let classes = (class(reader.classes().0)?, class(reader.classes().1)?);
        Ok(SequenceRecords {
            reader,
            view,
            classes,
            key: Vec::new(),
            value: Vec::new(),
        })
    }

    /// The classes of what the file holds.
    pub fn stored(&self) -> (WritableClass, WritableClass) {
        self.classes
    }
}

impl RecordReader for SequenceRecords {
    fn advance(&mut self) -> Result<bool> {
        if !self.reader.advance()? {
            return Ok(false);
        }
        let (key, value) = self.reader.pair();
        for (class, data, out) in [
            (self.classes.0, key, &mut self.key),
            (self.classes.1, value, &mut self.value),
        ] {
            out.clear();
            if self.view == SequenceView::Binary {
                out.extend_from_slice(data);
                continue;
            }
            let content = class.deserialize(data).map_err(|what| {
                Error::new(
                    Kind::BadInput,
                    "read a sequence file",
                    format!("a value of {} is damaged: {what}", class.java()),
                )
                .with("offset", self.reader.offset())
            })?;
            if self.view == SequenceView::Text {
                class.display(content, out);
            } else {
                out.extend_from_slice(content);
            }
        }
        Ok(true)
    }

    fn pair(&self) -> Pair<'_> {
        let (key, value) = match self.view {
            SequenceView::Values => self.classes,
            SequenceView::Text => (WritableClass::Text, WritableClass::Text),
            SequenceView::Binary => (WritableClass::Bytes, WritableClass::Bytes),
        };
        ((key, &self.key), (value, &self.value))
    }

    fn offset(&self) -> u64 {
        self.reader.offset()
    }
}

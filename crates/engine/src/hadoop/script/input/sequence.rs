//! Records of a sequence file: as values, as their text, or as the bytes that they are stored as.

use super::{Pair, Records, SequenceView};
use crate::error::{Error, Kind, Result};
use crate::hadoop::sequence::Reader;
use crate::hadoop::value::{Class, unknown_class};
use crate::storage::input::FileRange;
use crate::storage::{Caching, Store};

/// The records of a split.
#[derive(Debug)]
pub struct SequenceRecords {
    reader: Reader,
    view: SequenceView,
    classes: (Class, Class),
    key: Vec<u8>,
    value: Vec<u8>,
}

impl SequenceRecords {
    /// The records of `piece`.
    pub fn open(store: &dyn Store, piece: &FileRange, view: SequenceView) -> Result<Self> {
        let path = piece.file.path.as_typed();
        let file = piece.file.open(store, Caching::Cached)?;
        let reader = Reader::of_range(file, path, piece.range())?;
        let class = |name: &str| match Class::by_java(name) {
            Some(class) => Ok(class),
            None if view == SequenceView::Binary => Ok(Class::Bytes),
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
    pub fn stored(&self) -> (Class, Class) {
        self.classes
    }
}

impl Records for SequenceRecords {
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
            SequenceView::Text => (Class::Text, Class::Text),
            SequenceView::Binary => (Class::Bytes, Class::Bytes),
        };
        ((key, &self.key), (value, &self.value))
    }

    fn offset(&self) -> u64 {
        self.reader.offset()
    }
}

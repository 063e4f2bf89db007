//! A part file: `part-00000` and so on, as text or as a sequence file, compressed or not.
//!
//! ```text
//!   text    key, separator, value, LF;  of a pair without a value: key, LF
//! ```
//!
//! The file is made with its first record if it is to be lazy, else in any case.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::ScriptAttempt;
use super::definition::OutputFormat;
use crate::hadoop::script::block::LineBlock;
use crate::hadoop::sequence::{self, Compression};
use crate::hadoop::value::WritableClass;
use crate::task::user::spec::UserTaskFile;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_storage::Caching;
use gristmill_storage::codec::{Codec, Encoder, encoder};
use gristmill_storage::io::sequential::Sequential;
use gristmill_storage::stores::Stores;

/// Writes records to one part.
pub struct PartWriter {
    store: Arc<Stores>,
    folder: PathBuf,
    name: String,
    buffer_bytes: usize,
    format: OutputFormat,
    separator: Vec<u8>,
    codec: Option<Codec>,
    blocks: bool,
    lazy: bool,
    classes: (WritableClass, WritableClass),
    encoder: Option<PartEncoder>,
    line: Vec<u8>,
    records: u64,
}

enum PartEncoder {
    Plain(Sequential),
    Coded(Box<Encoder<Sequential>>),
    HadoopBlocks(sequence::HadoopBlockEncoder<Sequential>),
    Sequence(Box<sequence::SequenceWriter<Sequential>>),
    Nothing,
}

impl PartWriter {
    /// The part of an attempt, whose folder is there; its records' keys and values are of `classes`.
    pub fn new(attempted: &ScriptAttempt<'_>, classes: (WritableClass, WritableClass)) -> Self {
        let (spec, definition, number) = (attempted.spec, attempted.definition, attempted.number);
        let output = &definition.output;
        let mut name = format!("part-{number:05}");
        if let (OutputFormat::Text, Some(codec)) = (output.format, output.codec) {
            name.push_str(codec.suffixes().first().copied().unwrap_or(""));
        }
        PartWriter {
            store: attempted.store.clone(),
            folder: spec.output.clone(),
            name,
            buffer_bytes: spec.buffer_bytes,
            format: output.format,
            separator: output.separator.as_bytes().to_vec(),
            codec: output.codec,
            blocks: output.blocks,
            lazy: output.lazy,
            classes,
            encoder: None,
            line: Vec::new(),
            records: 0,
        }
    }

    /// A file of records that are kept aside, as Hadoop keeps them: there only if there are any.
    pub fn kept(
        attempted: &ScriptAttempt<'_>,
        folder: &Path,
        name: String,
        classes: (WritableClass, WritableClass),
    ) -> Self {
        PartWriter {
            store: attempted.store.clone(),
            folder: folder.to_owned(),
            name,
            buffer_bytes: attempted.spec.buffer_bytes,
            format: OutputFormat::Sequence,
            separator: Vec::new(),
            codec: Some(Codec::Deflate),
            blocks: true,
            lazy: true,
            classes,
            encoder: None,
            line: Vec::new(),
            records: 0,
        }
    }

    /// Writes a record; `None` is a part that is not there.
    #[inline]
    pub fn write(&mut self, key: Option<&[u8]>, value: Option<&[u8]>) -> Result<()> {
        self.records += 1;
        let (key_class, value_class) = self.classes;
        let key =
            key.filter(|_| key_class != WritableClass::Null || self.format != OutputFormat::Text);
        let value = value
            .filter(|_| value_class != WritableClass::Null || self.format != OutputFormat::Text);
        if self.format == OutputFormat::Text && key.is_none() && value.is_none() {
            return Ok(());
        }
        if self.encoder.is_none() {
            self.encoder = Some(self.open()?);
        }
        self.line.clear();
        if let Some(PartEncoder::Sequence(writer)) = &mut self.encoder {
            let (key, value) = (key.unwrap_or_default(), value.unwrap_or_default());
            let written = if self.format == OutputFormat::Binary {
                writer.append(key, value)
            } else {
                key_class.serialize(key, &mut self.line);
                let key_bytes = self.line.len();
                value_class.serialize(value, &mut self.line);
                let (key, value) = self.line.split_at(key_bytes);
                writer.append(key, value)
            };
            return written.map_err(|error| self.failed(&error));
        }
        if let Some(key) = key {
            key_class.to_file(key, &mut self.line);
        }
        if let Some(value) = value {
            if key.is_some() {
                self.line.extend_from_slice(&self.separator);
            }
            value_class.to_file(value, &mut self.line);
        }
        self.line.push(b'\n');
        let written = match &mut self.encoder {
            Some(PartEncoder::Plain(file)) => file.write_all(&self.line),
            Some(PartEncoder::Coded(encoder)) => encoder.write_all(&self.line),
            Some(PartEncoder::HadoopBlocks(encoder)) => encoder.write_all(&self.line),
            _ => Ok(()),
        };
        written.map_err(|error| self.failed(&error))
    }

    /// Writes the records of a block: as they stand, where that is what their keys and values make.
    pub fn write_block(&mut self, block: LineBlock<'_>) -> Result<()> {
        if self.format == OutputFormat::Text && self.codec.is_none() {
            if self.encoder.is_none() {
                self.encoder = Some(self.open()?);
            }
            if let Some(PartEncoder::Plain(file)) = &mut self.encoder
                && let Some(count) = block.unchanged(&self.separator, |bytes| file.append(bytes))?
            {
                self.records += count;
                return Ok(());
            }
        }
        block.each(|key, value| self.write(Some(key), value))
    }

    /// Records so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Ends the file; `None` where there is none.
    pub fn finish(mut self) -> Result<Option<UserTaskFile>> {
        if self.encoder.is_none() && !self.lazy {
            self.encoder = Some(self.open()?);
        }
        let ended = match self.encoder.take() {
            None | Some(PartEncoder::Nothing) => return Ok(None),
            Some(PartEncoder::Plain(file)) => Ok(file),
            Some(PartEncoder::Coded(encoder)) => encoder.finish(),
            Some(PartEncoder::HadoopBlocks(encoder)) => encoder.finish(),
            Some(PartEncoder::Sequence(writer)) => writer.finish(),
        };
        let file = ended.map_err(|error| self.failed(&error))?.end()?;
        Ok(Some(UserTaskFile {
            name: PathBuf::from(&self.name),
            bytes: file.bytes,
            records: self.records,
            crc: Some(file.crc),
        }))
    }

    fn open(&self) -> Result<PartEncoder> {
        if self.format == OutputFormat::Null {
            return Ok(PartEncoder::Nothing);
        }
        let path = self.folder.join(&self.name);
        let file = self.store.disk().create(&path, 0, Caching::Direct)?;
        let file = Sequential::new(file, self.buffer_bytes);
        match (self.format, self.codec) {
            (OutputFormat::Text, None) => Ok(PartEncoder::Plain(file)),
            // Hadoop's own framing of the two: its programs read no other.
            (OutputFormat::Text, Some(codec @ (Codec::Snappy | Codec::Lz4))) => Ok(
                PartEncoder::HadoopBlocks(sequence::HadoopBlockEncoder::new(codec, file)),
            ),
            (OutputFormat::Text, Some(codec)) => {
                Ok(PartEncoder::Coded(Box::new(encoder(codec, file, None)?)))
            }
            (_, codec) => {
                let compression = match (codec, self.blocks) {
                    (None, _) => Compression::None,
                    (Some(codec), false) => Compression::Records(codec),
                    (Some(codec), true) => Compression::Blocks(codec),
                };
                let classes = match self.format {
                    OutputFormat::Binary => (WritableClass::Bytes, WritableClass::Bytes),
                    _ => self.classes,
                };
                let writer = sequence::SequenceWriter::new(
                    file,
                    classes.0.java(),
                    classes.1.java(),
                    compression,
                    &self.name,
                );
                Ok(PartEncoder::Sequence(Box::new(writer)))
            }
        }
    }

    fn failed(&self, error: &io::Error) -> Error {
        if let Some(inner) = error
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<Error>())
        {
            return inner.clone();
        }
        Error::new(Kind::Io, "write the output", error.to_string())
            .with_path(&self.folder.join(&self.name))
    }
}

impl std::fmt::Debug for PartWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output")
            .field("name", &self.name)
            .field("records", &self.records)
            .finish_non_exhaustive()
    }
}

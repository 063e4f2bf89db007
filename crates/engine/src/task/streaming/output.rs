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

use super::definition::{Definition, OutputFormat};
use crate::codec::{Codec, Encoder, encoder};
use crate::error::{Error, Kind, Result};
use crate::hadoop::value::Class;
use crate::sequence::{self, Compression};
use crate::storage::{Caching, Store, WriteFile};
use crate::task::WorkFile;

/// How much is written at once.
const BLOCK_BYTES: usize = 1 << 20;

/// Writes records to one part.
pub struct Output {
    store: Arc<dyn Store>,
    folder: PathBuf,
    name: String,
    format: OutputFormat,
    separator: Vec<u8>,
    codec: Option<Codec>,
    blocks: bool,
    lazy: bool,
    classes: (Class, Class),
    way: Option<Way>,
    line: Vec<u8>,
    records: u64,
}

enum Way {
    Plain(Sequential),
    Coded(Box<Encoder<Sequential>>),
    HadoopBlocks(sequence::BlockEncoder<Sequential>),
    Sequence(Box<sequence::Writer<Sequential>>),
    Nothing,
}

impl Output {
    /// The part of that number; its records' keys and values are of `classes`. `folder` is there.
    pub fn new(
        store: Arc<dyn Store>,
        folder: &Path,
        number: u32,
        definition: &Definition,
        classes: (Class, Class),
    ) -> Self {
        let output = &definition.output;
        let mut name = format!("part-{number:05}");
        if let (OutputFormat::Text, Some(codec)) = (output.format, output.codec) {
            name.push_str(codec.suffixes().first().copied().unwrap_or(""));
        }
        Output {
            store,
            folder: folder.to_owned(),
            name,
            format: output.format,
            separator: output.separator.as_bytes().to_vec(),
            codec: output.codec,
            blocks: output.blocks,
            lazy: output.lazy,
            classes,
            way: None,
            line: Vec::new(),
            records: 0,
        }
    }

    /// A file of records that are kept aside, as Hadoop keeps them: there only if there are any.
    pub fn kept(
        store: Arc<dyn Store>,
        folder: &Path,
        name: String,
        classes: (Class, Class),
    ) -> Self {
        Output {
            store,
            folder: folder.to_owned(),
            name,
            format: OutputFormat::Sequence,
            separator: Vec::new(),
            codec: Some(Codec::Deflate),
            blocks: true,
            lazy: true,
            classes,
            way: None,
            line: Vec::new(),
            records: 0,
        }
    }

    /// Writes a record; `None` is a part that is not there.
    #[inline]
    pub fn write(&mut self, key: Option<&[u8]>, value: Option<&[u8]>) -> Result<()> {
        self.records += 1;
        let (key_class, value_class) = self.classes;
        let key = key.filter(|_| key_class != Class::Null || self.format != OutputFormat::Text);
        let value =
            value.filter(|_| value_class != Class::Null || self.format != OutputFormat::Text);
        if self.format == OutputFormat::Text && key.is_none() && value.is_none() {
            return Ok(());
        }
        if self.way.is_none() {
            self.way = Some(self.open()?);
        }
        self.line.clear();
        if let Some(Way::Sequence(writer)) = &mut self.way {
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
            key_class.display(key, &mut self.line);
        }
        if let Some(value) = value {
            if key.is_some() {
                self.line.extend_from_slice(&self.separator);
            }
            value_class.display(value, &mut self.line);
        }
        self.line.push(b'\n');
        let written = match &mut self.way {
            Some(Way::Plain(file)) => file.write_all(&self.line),
            Some(Way::Coded(encoder)) => encoder.write_all(&self.line),
            Some(Way::HadoopBlocks(encoder)) => encoder.write_all(&self.line),
            _ => Ok(()),
        };
        written.map_err(|error| self.failed(&error))
    }

    /// Records so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Ends the file; `None` where there is none.
    pub fn finish(mut self) -> Result<Option<WorkFile>> {
        if self.way.is_none() && !self.lazy {
            self.way = Some(self.open()?);
        }
        let ended = match self.way.take() {
            None | Some(Way::Nothing) => return Ok(None),
            Some(Way::Plain(file)) => Ok(file),
            Some(Way::Coded(encoder)) => encoder.finish(),
            Some(Way::HadoopBlocks(encoder)) => encoder.finish(),
            Some(Way::Sequence(writer)) => writer.finish(),
        };
        let bytes = ended
            .and_then(Sequential::end)
            .map_err(|error| self.failed(&error))?;
        Ok(Some(WorkFile {
            name: self.name.clone(),
            bytes,
            records: self.records,
            crc: None,
        }))
    }

    fn open(&self) -> Result<Way> {
        if self.format == OutputFormat::Null {
            return Ok(Way::Nothing);
        }
        let path = self.folder.join(&self.name);
        let file = Sequential::new(self.store.create(&path, 0, Caching::Cached)?);
        match (self.format, self.codec) {
            (OutputFormat::Text, None) => Ok(Way::Plain(file)),
            // Hadoop's own framing of the two: its programs read no other.
            (OutputFormat::Text, Some(codec @ (Codec::Snappy | Codec::Lz4))) => {
                Ok(Way::HadoopBlocks(sequence::BlockEncoder::new(codec, file)))
            }
            (OutputFormat::Text, Some(codec)) => {
                Ok(Way::Coded(Box::new(encoder(codec, file, None)?)))
            }
            (_, codec) => {
                let compression = match (codec, self.blocks) {
                    (None, _) => Compression::None,
                    (Some(codec), false) => Compression::Records(codec),
                    (Some(codec), true) => Compression::Blocks(codec),
                };
                let classes = match self.format {
                    OutputFormat::Binary => (Class::Bytes, Class::Bytes),
                    _ => self.classes,
                };
                let writer = sequence::Writer::new(
                    file,
                    classes.0.java(),
                    classes.1.java(),
                    compression,
                    &self.name,
                );
                Ok(Way::Sequence(Box::new(writer)))
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

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output")
            .field("name", &self.name)
            .field("records", &self.records)
            .finish_non_exhaustive()
    }
}

/// A file that is written from its beginning to its end, in large blocks.
#[derive(Debug)]
pub struct Sequential {
    file: Box<dyn WriteFile>,
    block: Vec<u8>,
    written: u64,
}

impl Sequential {
    fn new(file: Box<dyn WriteFile>) -> Self {
        Sequential {
            file,
            block: Vec::with_capacity(BLOCK_BYTES),
            written: 0,
        }
    }

    fn flush_block(&mut self) -> io::Result<()> {
        self.file
            .write_at(&self.block, self.written)
            .map_err(io::Error::other)?;
        self.written += self.block.len() as u64;
        self.block.clear();
        Ok(())
    }

    fn end(mut self) -> io::Result<u64> {
        self.flush_block()?;
        Ok(self.written)
    }
}

impl Write for Sequential {
    #[inline]
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if self.block.len() + data.len() > BLOCK_BYTES && !self.block.is_empty() {
            self.flush_block()?;
        }
        self.block.extend_from_slice(data);
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

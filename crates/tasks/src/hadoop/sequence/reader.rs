//! Reads a sequence file, or a range of one.

use std::collections::VecDeque;
use std::io::{Cursor, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::{Compression, ESCAPED_BYTES, SYNC_BYTES};
use crate::hadoop::value::read_vint;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_storage::codec::{Codec, decoder};
use gristmill_storage::io::window::in_order;
use gristmill_storage::{Caching, ReadFile, Store};

/// How much is read at once.
const STEP_BYTES: usize = 256 << 10;

/// The longest record that is believed in: what says that it is longer is damage.
const LONGEST_BYTES: usize = 1 << 31;

/// The records of a range.
#[derive(Debug)]
pub struct SequenceReader {
    file: Box<dyn ReadFile>,
    path: PathBuf,
    buffer: Vec<u8>,
    /// The bytes of `buffer` still to be read.
    rest: Range<usize>,
    /// Where in the file `rest` begins.
    position: u64,
    classes: (String, String),
    compression: Compression,
    sync: [u8; SYNC_BYTES],
    end: u64,
    key: Vec<u8>,
    value: Vec<u8>,
    /// Records of the present block.
    block: VecDeque<(Vec<u8>, Vec<u8>)>,
    here: u64,
}

impl SequenceReader {
    /// Opens a file; `range` of it is read.
    pub fn open(store: &dyn Store, path: &Path, range: Range<u64>) -> Result<Self> {
        SequenceReader::of_range(store.open(path, Caching::Cached)?, path, range)
    }

    /// The same of a file that is open; `path` is for errors.
    pub fn of_range(file: Box<dyn ReadFile>, path: &Path, range: Range<u64>) -> Result<Self> {
        let read = range.start..range.end.saturating_add(STEP_BYTES as u64);
        let mut reader = SequenceReader {
            file: in_order(file, read),
            path: path.to_owned(),
            buffer: Vec::new(),
            rest: 0..0,
            position: 0,
            classes: Default::default(),
            compression: Compression::None,
            sync: [0; SYNC_BYTES],
            end: range.end,
            key: Vec::new(),
            value: Vec::new(),
            block: VecDeque::new(),
            here: 0,
        };
        reader.read_header()?;
        if range.start > reader.position {
            reader.seek_mark(range.start)?;
        }
        Ok(reader)
    }

    /// The classes of keys and values, by their names in Java.
    pub fn classes(&self) -> (&str, &str) {
        (&self.classes.0, &self.classes.1)
    }

    /// The present record's key and value, serialized.
    pub fn pair(&self) -> (&[u8], &[u8]) {
        (&self.key, &self.value)
    }

    /// Where the present record, or its block, begins.
    pub fn offset(&self) -> u64 {
        self.here
    }

    /// Goes on to the next record; false at the end.
    pub fn advance(&mut self) -> Result<bool> {
        if let Some((key, value)) = self.block.pop_front() {
            (self.key, self.value) = (key, value);
            return Ok(true);
        }
        loop {
            self.here = self.position;
            if !self.want(4)? {
                return if self.rest.is_empty() {
                    Ok(false)
                } else {
                    Err(self.cut_off())
                };
            }
            // Whatever stands behind a mark that begins behind the end is the next split's.
            let length = self.number()?;
            if length == -1 {
                let found = self.take(SYNC_BYTES)?;
                if found != self.sync {
                    return Err(self.damaged("a sync mark is not that of the file"));
                }
                if self.here >= self.end {
                    return Ok(false);
                }
                if let Compression::Blocks(codec) = self.compression {
                    self.read_block(codec)?;
                    return self.advance();
                }
                continue;
            }
            if matches!(self.compression, Compression::Blocks(_)) {
                return Err(self.damaged("a block does not begin with a sync mark"));
            }
            self.read_record(length)?;
            return Ok(true);
        }
    }

    fn read_record(&mut self, length: i32) -> Result<()> {
        let key_bytes = self.number()?;
        let (length, key_bytes) = match (usize::try_from(length), usize::try_from(key_bytes)) {
            (Ok(length), Ok(key_bytes)) if key_bytes <= length => (length, key_bytes),
            _ => return Err(self.damaged("the lengths of a record make no sense")),
        };
        self.key = self.take(key_bytes)?;
        let value = self.take(length - key_bytes)?;
        self.value = match self.compression {
            Compression::Records(codec) => self.decoded(codec, value)?,
            _ => value,
        };
        Ok(())
    }

    fn read_block(&mut self, codec: Codec) -> Result<()> {
        let records = self.vint()?;
        let mut parts: [Vec<u8>; 4] = Default::default();
        for part in &mut parts {
            let bytes = self.vint()?;
            let bytes = usize::try_from(bytes)
                .map_err(|_not| self.damaged("a length of a block is negative"))?;
            let compressed = self.take(bytes)?;
            *part = self.decoded(codec, compressed)?;
        }
        let [key_lengths, keys, value_lengths, values] = parts;
        let (mut lengths, mut contents) = (
            [&key_lengths[..], &value_lengths[..]],
            [&keys[..], &values[..]],
        );
        let mut next = |which: usize| -> Option<Vec<u8>> {
            let (len, rest) = read_vint(lengths.get(which)?)?;
            *lengths.get_mut(which)? = rest;
            let (content, rest) = contents
                .get(which)?
                .split_at_checked(usize::try_from(len).ok()?)?;
            *contents.get_mut(which)? = rest;
            Some(content.to_vec())
        };
        let mut read = VecDeque::new();
        for _ in 0..records {
            match (next(0), next(1)) {
                (Some(key), Some(value)) => read.push_back((key, value)),
                _ => {
                    return Err(self.damaged(
                        "the lengths of a block's records are not those of its contents",
                    ));
                }
            }
        }
        self.block = read;
        Ok(())
    }

    fn decoded(&self, codec: Codec, data: Vec<u8>) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        let mut decoder = decoder(codec, Cursor::new(data)).named(&self.path);
        match decoder.read_to_end(&mut out) {
            Ok(_) => Ok(out),
            Err(error) => Err(self.damaged(&format!("compressed data cannot be read: {error}"))),
        }
    }

    fn read_header(&mut self) -> Result<()> {
        let begin = self.take(4).map_err(|_short| self.foreign())?;
        match begin.split_last() {
            Some((6, b"SEQ")) => {}
            Some((version, b"SEQ")) => {
                return Err(self.damaged(&format!(
                    "its version is {version}, and only version 6 is supported"
                )));
            }
            _ => return Err(self.foreign()),
        }
        self.classes = (self.text()?, self.text()?);
        let flags = self.take(2)?;
        let compressed = flags.first() != Some(&0);
        let blocks = flags.last() != Some(&0);
        if compressed {
            let class = self.text()?;
            let codec = Codec::by_hadoop_class(&class)
                .ok_or_else(|| self.damaged(&format!("its codec {class} is not supported")))?;
            self.compression = if blocks {
                Compression::Blocks(codec)
            } else {
                Compression::Records(codec)
            };
        }
        for _ in 0..self.number()?.max(0).saturating_mul(2) {
            self.text()?;
        }
        let sync = self.take(SYNC_BYTES)?;
        self.sync.copy_from_slice(&sync);
        Ok(())
    }

    /// Goes to the first sync mark that begins at `from` or behind it.
    fn seek_mark(&mut self, from: u64) -> Result<()> {
        self.rest = 0..0;
        self.position = from;
        loop {
            if !self.want(ESCAPED_BYTES as usize)? {
                self.position += self.rest.len() as u64; // there is none: the end
                self.rest = 0..0;
                self.end = 0;
                return Ok(());
            }
            let escaped = [&[0xff; 4][..], &self.sync].concat();
            let here = self.buffer.get(self.rest.clone()).unwrap_or_default();
            let found = memchr::memmem::find(here, &escaped);
            let skipped = found.unwrap_or(here.len() + 1 - escaped.len());
            self.rest.start += skipped;
            self.position += skipped as u64;
            if found.is_some() {
                return Ok(());
            }
        }
    }

    /// Has so many bytes at hand; false where the file ends before.
    fn want(&mut self, bytes: usize) -> Result<bool> {
        if self.rest.len() >= bytes {
            return Ok(true);
        }
        let rest = self.rest.clone();
        self.buffer.copy_within(rest.clone(), 0);
        let mut filled = rest.len();
        while filled < bytes {
            let room = (bytes - filled).clamp(STEP_BYTES, 16 * STEP_BYTES);
            if self.buffer.len() < filled + room {
                self.buffer.resize(filled + room, 0);
            }
            let at = self.position + filled as u64;
            let count = self.file.read_at(
                self.buffer
                    .get_mut(filled..filled + room)
                    .unwrap_or_default(),
                at,
            )?;
            filled += count;
            if count == 0 {
                break;
            }
        }
        self.rest = 0..filled;
        Ok(filled >= bytes)
    }

    fn take(&mut self, bytes: usize) -> Result<Vec<u8>> {
        if bytes > LONGEST_BYTES {
            return Err(self.damaged("a record is longer than 2 GiB"));
        }
        if !self.want(bytes)? {
            return Err(self.cut_off());
        }
        let start = self.rest.start;
        self.rest.start += bytes;
        self.position += bytes as u64;
        Ok(self
            .buffer
            .get(start..start + bytes)
            .unwrap_or_default()
            .to_vec())
    }

    fn number(&mut self) -> Result<i32> {
        let bytes = self.take(4)?;
        Ok(bytes
            .first_chunk()
            .map_or(0, |bytes| i32::from_be_bytes(*bytes)))
    }

    fn vint(&mut self) -> Result<i64> {
        self.want(9)?;
        let here = self.buffer.get(self.rest.clone()).unwrap_or_default();
        let (number, rest) = read_vint(here).ok_or_else(|| self.cut_off())?;
        let used = here.len() - rest.len();
        self.rest.start += used;
        self.position += used as u64;
        Ok(number)
    }

    fn text(&mut self) -> Result<String> {
        let bytes = self.vint()?;
        let bytes = usize::try_from(bytes).ok().filter(|&bytes| bytes < 1 << 20);
        let bytes =
            bytes.ok_or_else(|| self.damaged("a text of its header has no possible length"))?;
        Ok(String::from_utf8_lossy(&self.take(bytes)?).into_owned())
    }

    fn foreign(&self) -> Error {
        Error::new(
            Kind::BadInput,
            "read a sequence file",
            "it does not begin as sequence files do",
        )
        .with_path(&self.path)
        .advise("name the format that it has with -inputformat")
    }

    fn cut_off(&self) -> Error {
        self.damaged("it ends inside a record")
    }

    fn damaged(&self, what: &str) -> Error {
        Error::new(Kind::BadInput, "read a sequence file", what)
            .with_path(&self.path)
            .with("offset", self.position)
    }
}

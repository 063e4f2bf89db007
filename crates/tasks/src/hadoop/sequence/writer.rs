//! Writes a sequence file.

use std::io::{self, Write};

use super::blocks::compress;
use super::{Compression, ESCAPED_BYTES, SYNC_BYTES, codec_class};
use crate::hadoop::value::write_vint;

/// Bytes between sync marks: Hadoop's 5 kB times the mark's length.
const SYNC_INTERVAL: u64 = 5 * 1024 * ESCAPED_BYTES;

/// Bytes of keys and values that are compressed at once.
const BLOCK_BYTES: usize = 1_000_000;

/// Writes keys and values in their serialized forms.
///
/// The sync mark is a function of the file's name and first record, so that the same job gives the same bytes; a file
/// within a value of another has another mark.
#[derive(Debug)]
pub struct SequenceWriter<W> {
    writer: W,
    classes: (String, String),
    compression: Compression,
    name: String,
    sync: [u8; SYNC_BYTES],
    begun: bool,
    written: u64,
    synced: u64,
    buffer: Vec<u8>,
    block: RecordBlock,
}

/// Records that are to be compressed together.
#[derive(Debug, Default)]
struct RecordBlock {
    records: i64,
    key_lengths: Vec<u8>,
    keys: Vec<u8>,
    value_lengths: Vec<u8>,
    values: Vec<u8>,
}

impl<W: Write> SequenceWriter<W> {
    /// A file of keys and values of these classes, by their names in Java; `name` is that of the file.
    pub fn new(
        writer: W,
        key_class: &str,
        value_class: &str,
        compression: Compression,
        name: &str,
    ) -> Self {
        SequenceWriter {
            writer,
            classes: (key_class.to_owned(), value_class.to_owned()),
            compression,
            name: name.to_owned(),
            sync: [0; SYNC_BYTES],
            begun: false,
            written: 0,
            synced: 0,
            buffer: Vec::new(),
            block: RecordBlock::default(),
        }
    }

    /// Appends a record.
    pub fn append(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        if !self.begun {
            self.begin(key, value)?;
        }
        if let Compression::Blocks(_) = self.compression {
            let block = &mut self.block;
            block.records += 1;
            write_vint(length(key), &mut block.key_lengths);
            block.keys.extend_from_slice(key);
            write_vint(length(value), &mut block.value_lengths);
            block.values.extend_from_slice(value);
            if block.keys.len() + block.values.len() >= BLOCK_BYTES {
                self.write_block()?;
            }
            return Ok(());
        }
        self.buffer.clear();
        if self.written >= self.synced + SYNC_INTERVAL {
            self.mark();
        }
        let start = self.buffer.len();
        self.buffer.extend_from_slice(&[0; 4]);
        self.buffer.extend_from_slice(&number(key.len()));
        self.buffer.extend_from_slice(key);
        match self.compression.codec() {
            None => self.buffer.extend_from_slice(value),
            Some(codec) => compress(codec, value, &mut self.buffer)?,
        }
        let bytes = number(self.buffer.len() - start - 8);
        if let Some(place) = self.buffer.get_mut(start..start + 4) {
            place.copy_from_slice(&bytes);
        }
        self.write_buffer()
    }

    /// Ends the file; gives the writer back.
    pub fn finish(mut self) -> io::Result<W> {
        if !self.begun {
            self.begin(&[], &[])?;
        }
        self.write_block()?;
        Ok(self.writer)
    }

    fn begin(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.begun = true;
        for (i, part) in self.sync.chunks_mut(4).enumerate() {
            let mut hash =
                crc32fast::Hasher::new_with_initial(0x9e37_79b9_u32.wrapping_mul(i as u32 + 1));
            for piece in [self.name.as_bytes(), &number(key.len()), key, value] {
                hash.update(piece);
            }
            // Multiplied, so that the four do not follow from one another.
            part.copy_from_slice(
                &hash
                    .finalize()
                    .wrapping_mul(0x85eb_ca6b)
                    .rotate_left(13 * i as u32)
                    .to_be_bytes(),
            );
        }
        self.buffer.clear();
        self.buffer.extend_from_slice(b"SEQ\x06");
        text(&self.classes.0, &mut self.buffer);
        text(&self.classes.1, &mut self.buffer);
        let blocks = matches!(self.compression, Compression::Blocks(_));
        self.buffer
            .push(u8::from(self.compression != Compression::None));
        self.buffer.push(u8::from(blocks));
        if let Some(codec) = self.compression.codec() {
            text(codec_class(codec), &mut self.buffer);
        }
        self.buffer.extend_from_slice(&[0; 4]); // no metadata
        self.buffer.extend_from_slice(&self.sync);
        self.write_buffer()
    }

    fn mark(&mut self) {
        self.buffer.extend_from_slice(&(-1_i32).to_be_bytes());
        self.buffer.extend_from_slice(&self.sync);
        self.synced = self.written + ESCAPED_BYTES;
    }

    fn write_block(&mut self) -> io::Result<()> {
        let Compression::Blocks(codec) = self.compression else {
            return Ok(());
        };
        if self.block.records == 0 {
            return Ok(());
        }
        self.buffer.clear();
        self.mark();
        let block = std::mem::take(&mut self.block);
        write_vint(block.records, &mut self.buffer);
        let mut compressed = Vec::new();
        for part in [
            &block.key_lengths,
            &block.keys,
            &block.value_lengths,
            &block.values,
        ] {
            compressed.clear();
            compress(codec, part, &mut compressed)?;
            write_vint(length(&compressed), &mut self.buffer);
            self.buffer.extend_from_slice(&compressed);
        }
        self.write_buffer()
    }

    fn write_buffer(&mut self) -> io::Result<()> {
        self.writer.write_all(&self.buffer)?;
        self.written += self.buffer.len() as u64;
        Ok(())
    }
}

fn length(data: &[u8]) -> i64 {
    i64::try_from(data.len()).unwrap_or(i64::MAX)
}

fn number(len: usize) -> [u8; 4] {
    u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes()
}

fn text(text: &str, out: &mut Vec<u8>) {
    write_vint(length(text.as_bytes()), out);
    out.extend_from_slice(text.as_bytes());
}

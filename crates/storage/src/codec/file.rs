//! A file of a store, compressed or not, as the bytes it stands for: from its beginning to its end, in large blocks.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::decode::{Decoder, decoder, error_of, wrapped};
use super::{Codec, SNIFF_BYTES, detect};
use crate::io::window::in_order;
use crate::{Caching, ReadFile, Store};
use gristmill_base::error::Result;
use gristmill_base::sys::pages::Pages;

/// How much of the file is read at once.
pub(super) const BLOCK_BYTES: usize = 1 << 20;

/// What is known of a file's compression before it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Coding {
    /// Nothing: its name and its first bytes say ([`detect`]).
    #[default]
    Detect,
    /// It is not compressed, whatever its name says.
    Plain,
    /// It is compressed so, whatever its name says.
    Coded(Codec),
}

/// The decoded bytes of a file. Errors name the file; those of [`Read`] hold an [`gristmill_base::Error`].
#[derive(Debug)]
pub struct FileDecoder {
    path: PathBuf,
    codec: Option<Codec>,
    source: DecodedSource,
    /// Bytes of the file that were read from the store.
    fetched: Arc<AtomicU64>,
}

#[derive(Debug)]
enum DecodedSource {
    Plain(AlignedBlocks, u64),
    Coded(Box<Decoder>),
}

/// Opens a file for reading from its beginning, decoded where it is compressed.
///
/// # Errors
/// The store's, and those of [`detect`].
///
/// ```
/// use gristmill_storage::{LocalDisk as _, OutputStore as _};
/// use std::io::{Read, Write};
/// use gristmill_storage::codec::{Codec, Coding, encoder, open};
/// use gristmill_storage::{Caching, Store, memory::Memory};
/// let mut encoder = encoder(Codec::Xz, Vec::new(), None)?;
/// encoder.write_all(b"words")?;
/// let compressed = encoder.finish()?;
/// let store = Memory::with_room_for(1000);
/// let size = compressed.len() as u64;
/// store.create("/a.xz".as_ref(), size, Caching::Cached)?.write_at(&compressed, 0)?;
///
/// let mut reader = open(&store, "/a.xz".as_ref(), Caching::Cached, Coding::Detect)?;
/// let mut text = String::new();
/// reader.read_to_string(&mut text)?;
/// assert_eq!((text.as_str(), reader.codec(), reader.consumed()), ("words", Some(Codec::Xz), size));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn open(
    store: &dyn Store,
    path: &Path,
    caching: Caching,
    coding: Coding,
) -> Result<FileDecoder> {
    open_file(store.open(path, caching)?, path, coding)
}

/// [`open`] of a file that is open already.
///
/// # Errors
/// As of [`open`].
///
/// ```
/// use gristmill_storage::codec::{Coding, open_file};
/// use gristmill_storage::{Caching, OutputStore, Store, memory::Memory};
/// let (store, path) = (Memory::with_room_for(1000), "/a".as_ref());
/// store.create(path, 5, Caching::Cached)?.write_at(b"words", 0)?;
/// let mut reader = open_file(store.open(path, Caching::Cached)?, path, Coding::Detect)?;
/// let mut text = [0; 9];
/// assert_eq!((reader.fill(&mut text)?, reader.codec()), (5, None));
/// # Ok::<(), gristmill_base::Error>(())
/// ```
pub fn open_file(file: Box<dyn ReadFile>, path: &Path, coding: Coding) -> Result<FileDecoder> {
    let fetched = Arc::new(AtomicU64::new(0));
    let mut blocks = AlignedBlocks {
        file: in_order(file, 0..u64::MAX),
        block: Pages::zeroed(BLOCK_BYTES)?,
        start: 0,
        end: 0,
        fetched: fetched.clone(),
    };
    let codec = match coding {
        Coding::Plain => None,
        Coding::Coded(codec) => Some(codec),
        Coding::Detect => {
            let there = blocks.fill()?;
            detect(path, &there[..there.len().min(SNIFF_BYTES)])?
        }
    };
    let source = match codec {
        None => DecodedSource::Plain(blocks, 0),
        Some(codec) => DecodedSource::Coded(Box::new(decoder(codec, blocks).named(path))),
    };
    Ok(FileDecoder {
        path: path.to_owned(),
        codec,
        source,
        fetched,
    })
}

impl FileDecoder {
    /// The codec that was found, or named; `None` where the file is plain (or empty).
    pub fn codec(&self) -> Option<Codec> {
        self.codec
    }

    /// The file's path in its store.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the file that the bytes given so far were made of. At the end, the file's size: not one is left over.
    pub fn consumed(&self) -> u64 {
        match &self.source {
            DecodedSource::Plain(_, given) => *given,
            DecodedSource::Coded(decoder) => decoder.consumed(),
        }
    }

    /// The number that [`FileDecoder::fetched`] gives, for those who ask while another reads.
    pub fn fetched_counter(&self) -> Arc<AtomicU64> {
        self.fetched.clone()
    }

    /// Bytes of the file that were read from the store so far; ahead of [`FileDecoder::consumed`] by a block or two.
    pub fn fetched(&self) -> u64 {
        self.fetched.load(Ordering::Relaxed)
    }

    /// Decoded bytes given so far.
    pub fn produced(&self) -> u64 {
        match &self.source {
            DecodedSource::Plain(_, given) => *given,
            DecodedSource::Coded(decoder) => decoder.produced(),
        }
    }

    /// Reads into `out`; 0 at the end (or where `out` is empty). [`Read::read`] with the engine's error.
    ///
    /// # Errors
    /// The store's, and those of [`Decoder::decode`].
    pub fn decode(&mut self, out: &mut [u8]) -> Result<usize> {
        match &mut self.source {
            DecodedSource::Plain(blocks, given) => {
                let count = blocks
                    .read(out)
                    .map_err(|error| error_of(error, &self.path))?;
                *given += count as u64;
                Ok(count)
            }
            DecodedSource::Coded(decoder) => decoder.decode(out),
        }
    }

    /// Fills `out`, or as much of it as the file has left.
    ///
    /// # Errors
    /// As [`FileDecoder::decode`].
    pub fn fill(&mut self, out: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        while done < out.len() {
            match self.decode(&mut out[done..])? {
                0 => break,
                count => done += count,
            }
        }
        Ok(done)
    }
}

impl Read for FileDecoder {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.decode(out).map_err(wrapped)
    }
}

/// A file in blocks, at offsets and addresses that direct I/O can use.
#[derive(Debug)]
struct AlignedBlocks {
    file: Box<dyn ReadFile>,
    block: Pages<u8>,
    start: usize,
    end: usize,
    fetched: Arc<AtomicU64>,
}

impl AlignedBlocks {
    fn fill(&mut self) -> Result<&[u8]> {
        if self.start == self.end {
            let at = self.fetched.load(Ordering::Relaxed);
            self.start = 0;
            self.end = 0; // nothing, if reading fails
            self.end = self.file.read_at(&mut self.block, at)?;
            self.fetched.store(at + self.end as u64, Ordering::Relaxed);
        }
        Ok(&self.block[self.start..self.end])
    }
}

impl Read for AlignedBlocks {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let there = self.fill().map_err(wrapped)?;
        let count = there.len().min(out.len());
        out[..count].copy_from_slice(&there[..count]);
        self.start += count;
        Ok(count)
    }
}

//! Reads a run: its header, footer and index when it is opened, whole blocks of its data from then on.
//!
//! ```text
//!   bytes wanted           [=============================]
//!   read       | 64 KiB | 64 KiB | 64 KiB | rest  |            whole blocks, aligned, past the page cache
//!   verified       CRC      CRC      CRC     CRC               each against the index
//! ```
//!
//! Of a compressed run the stored bytes of those blocks are read into memory of their own, as many at once as it holds,
//! and verified; then each block is decompressed to its place. The rule that must hold: no byte is handed on whose block
//! does not have the CRC that the index says.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::compression::{BLOCK_BYTES, BlockDecoder, RunCompression, STAGING_BYTES};
use super::fields::damaged;
use super::format::{FOOTER_BYTES, Footer, RunIndex};
use super::header::{HEADER_BYTES, RunHeader};
use crate::io::at_once::at_once;
use crate::local::not_there;
use crate::run_name::is_in_memory;
use crate::{Caching, ReadFile, Store};
use gristmill_base::error::{Error, Result};
use gristmill_base::sys::pages::Pages;

const BLOCK: u64 = BLOCK_BYTES as u64;

/// Far runs that are opened at once: each is a few requests that wait for one another, and its index.
const OPENED_AT_ONCE: usize = 16;

/// A run file, open and verified but for its data.
#[derive(Debug)]
pub struct RunFile {
    path: PathBuf,
    file: Box<dyn ReadFile>,
    header: RunHeader,
    index: RunIndex,
}

impl RunFile {
    /// Opens a run file and reads its header, footer and index. Its data are verified as they are read.
    pub fn open(store: &dyn Store, path: &Path) -> Result<Self> {
        let stat = store
            .stat(path)?
            .ok_or_else(|| not_there("open a run file", path))?;
        let file = store.open(path, Caching::Direct)?;
        let (header, index) =
            read_index(&*file, stat.bytes).map_err(|error| error.with_path(path))?;
        Ok(RunFile {
            path: path.to_owned(),
            file,
            header,
            index,
        })
    }

    /// Opens runs, several at once where what is read of one is asked for over a network. Of several errors it is the
    /// first, in the order of the runs.
    ///
    /// ```
    /// use gristmill_storage::sorted_run::RunFile;
    /// use gristmill_storage::memory::Memory;
    /// let store = Memory::with_room_for(0);
    /// assert!(RunFile::open_all(&store, &[])?.is_empty());
    /// assert!(RunFile::open_all(&store, &["/a".as_ref()]).is_err());
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    pub fn open_all(store: &dyn Store, paths: &[&Path]) -> Result<Vec<RunFile>> {
        let is_remote = paths.iter().any(|path| store.is_remote(path));
        let most = if is_remote { OPENED_AT_ONCE } else { 1 };
        at_once(paths, most, |path| RunFile::open(store, path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is on another machine: what is read of it is asked for over a network.
    pub fn is_remote(&self) -> bool {
        self.file.is_remote()
    }

    /// What it says of itself.
    pub fn header(&self) -> &RunHeader {
        &self.header
    }

    /// What it says of its records.
    pub fn index(&self) -> &RunIndex {
        &self.index
    }

    /// How many buckets it has.
    pub fn buckets(&self) -> usize {
        self.index.ends.len()
    }

    /// The bytes of data and the number of records in a range of buckets.
    pub fn segment(&self, buckets: Range<usize>) -> Result<(Range<u64>, u64)> {
        let end_of = |bucket: usize| match bucket {
            0 => Some((0, 0)),
            _ => self.index.ends.get(bucket - 1).copied(),
        };
        let ends = end_of(buckets.start).zip(end_of(buckets.end));
        match ends.filter(|_| buckets.start <= buckets.end) {
            Some((start, end)) => Ok((start.0..end.0, end.1 - start.1)),
            None => {
                let message = format!("it has no buckets {buckets:?}, only {}", self.buckets());
                Err(Error::bug("read a run file", message).with_path(&self.path))
            }
        }
    }

    /// The memory that [`read_blocks`](Self::read_blocks) needs for a range of bytes.
    ///
    /// ```
    /// use gristmill_storage::sorted_run::{BLOCK_BYTES, RunFile};
    /// assert_eq!(RunFile::covering_bytes(&(0..1)), BLOCK_BYTES);
    /// assert_eq!(RunFile::covering_bytes(&(65_535..65_537)), 2 * BLOCK_BYTES);
    /// ```
    pub fn covering_bytes(bytes: &Range<u64>) -> usize {
        let first = bytes.start / BLOCK;
        let blocks = bytes.end.div_ceil(BLOCK).saturating_sub(first);
        blocks as usize * BLOCK_BYTES
    }

    /// The bytes of the file that nobody needs who has read a range of the data: those of the blocks inside it.
    ///
    /// They begin and end where blocks do; what a device can give back of them is for the store to say.
    pub fn blocks_inside(&self, bytes: &Range<u64>) -> Range<u64> {
        let (first, end) = (bytes.start.div_ceil(BLOCK), bytes.end / BLOCK);
        let stored = self.index.stored(first, end.saturating_sub(first));
        HEADER_BYTES as u64 + stored.start..HEADER_BYTES as u64 + stored.end
    }

    /// Bytes of the file that are stored of a range of the data; none of a run in memory. A compressed block counts where it
    /// begins, so that neighbouring ranges add up.
    pub fn disk_bytes(&self, bytes: &Range<u64>) -> u64 {
        if is_in_memory(&self.path) {
            return 0;
        }
        if self.index.stored_ends.is_none() {
            return bytes.end - bytes.start;
        }
        let stored_to = |at: u64| self.index.stored(0, at.div_ceil(BLOCK)).end;
        stored_to(bytes.end) - stored_to(bytes.start)
    }

    /// Reads the blocks that hold a range of the data into `memory`, which is aligned to a device's blocks and has
    /// [`covering_bytes`](Self::covering_bytes) bytes; verifies them, and decompresses them by `decoder` where they are
    /// compressed. Returns where in `memory` the range lies.
    pub fn read_blocks(
        &self,
        bytes: Range<u64>,
        memory: &mut [u8],
        decoder: &mut BlockDecoder,
    ) -> Result<Range<usize>> {
        let data_bytes = self.index.data_bytes;
        if bytes.is_empty() {
            return Ok(0..0);
        }
        let covering = Self::covering_bytes(&bytes);
        if bytes.end > data_bytes || covering > memory.len() {
            let message = format!("bytes {bytes:?} of {data_bytes}, into {}", memory.len());
            return Err(Error::bug("read a run file", message).with_path(&self.path));
        }
        let first = bytes.start / BLOCK;
        let start = first * BLOCK;
        let held = (data_bytes - start).min(covering as u64) as usize;
        let within = (bytes.start - start) as usize;
        let range = within..within + (bytes.end - bytes.start) as usize;
        if self.header.compression != RunCompression::None {
            return self
                .read_compressed(first, &mut memory[..held], decoder)
                .map(|()| range);
        }
        // Behind the last block lie zeros up to a whole block of the device: it is read in one piece too.
        let whole = held.next_multiple_of(crate::BLOCK_BYTES);
        let read = self
            .file
            .read_at(&mut memory[..whole], HEADER_BYTES as u64 + start)?;
        if read < held {
            return Err(self.truncated(start + held as u64, start + read as u64));
        }
        let blocks = memory[..held].chunks(BLOCK_BYTES);
        for (block, data) in (first..).zip(blocks) {
            self.verify(block, data)?;
        }
        Ok(range)
    }

    /// Fills `memory` with the blocks from `first` on.
    fn read_compressed(
        &self,
        mut first: u64,
        memory: &mut [u8],
        decoder: &mut BlockDecoder,
    ) -> Result<()> {
        let mut rest = memory;
        while !rest.is_empty() {
            let blocks = self.blocks_at_once(first, rest.len().div_ceil(BLOCK_BYTES) as u64);
            let bytes = rest.len().min(blocks as usize * BLOCK_BYTES);
            let (here, behind) = rest.split_at_mut(bytes);
            let read_from = self.read_stored(self.index.stored(first, blocks), decoder)?;
            for (block, data) in (first..).zip(here.chunks_mut(BLOCK_BYTES)) {
                let stored = self.index.stored(block, 1);
                let at = (stored.start - read_from) as usize;
                let stored = at..at + (stored.end - stored.start) as usize;
                self.verify(block, &decoder.staging()?[stored.clone()])?;
                decoder
                    .decode(self.header.compression, stored, data)
                    .map_err(|why| self.damaged_block(block).with("cause", why))?;
            }
            (first, rest) = (first + blocks, behind);
        }
        Ok(())
    }

    /// How many blocks from `first` on, of `most`, have stored bytes that are read at once: one at least.
    fn blocks_at_once(&self, first: u64, most: u64) -> u64 {
        let room = (STAGING_BYTES - 2 * crate::BLOCK_BYTES) as u64;
        let fits = |blocks: &u64| {
            let stored = self.index.stored(first, *blocks);
            stored.end - stored.start <= room
        };
        (1..=most).take_while(fits).last().unwrap_or(1)
    }

    /// Reads stored bytes, with those that share a device's block with them. Returns which byte of those that are stored is
    /// the first in the memory.
    fn read_stored(&self, stored: Range<u64>, decoder: &mut BlockDecoder) -> Result<u64> {
        const DEVICE_BLOCK: u64 = crate::BLOCK_BYTES as u64;
        let from = stored.start / DEVICE_BLOCK * DEVICE_BLOCK;
        let whole = (stored.end.next_multiple_of(DEVICE_BLOCK) - from) as usize;
        let staging = &mut decoder.staging()?[..whole];
        let read = self.file.read_at(staging, HEADER_BYTES as u64 + from)? as u64;
        if from + read < stored.end {
            return Err(self.truncated(stored.end, from + read));
        }
        Ok(from)
    }

    fn verify(&self, block: u64, stored: &[u8]) -> Result<()> {
        let expected = self.index.block_crcs.get(block as usize).copied();
        let found = crc32fast::hash(stored);
        if expected == Some(found) {
            return Ok(());
        }
        let expected = expected.unwrap_or_default();
        Err(self
            .damaged_block(block)
            .with("expected CRC", format!("{expected:08x}"))
            .with("found CRC", format!("{found:08x}")))
    }

    fn damaged_block(&self, block: u64) -> Error {
        let stored = self.index.stored(block, 1);
        damaged("a block of its data is damaged")
            .with_path(&self.path)
            .with("block", block)
            .with("offset", HEADER_BYTES as u64 + stored.start)
    }

    fn truncated(&self, wanted: u64, found: u64) -> Error {
        damaged("it became shorter since it was opened")
            .with_path(&self.path)
            .with("offset", HEADER_BYTES as u64 + found)
            .with("data bytes wanted", wanted)
    }
}

/// Reads and verifies all that is not data. Allocates no more than the file has.
pub(super) fn read_index(file: &dyn ReadFile, file_bytes: u64) -> Result<(RunHeader, RunIndex)> {
    const DEVICE_BLOCK: u64 = crate::BLOCK_BYTES as u64;
    let length_is_wrong = || damaged(format!("it has {file_bytes} bytes, which no run file has"));
    if file_bytes < HEADER_BYTES as u64 {
        return Err(length_is_wrong());
    }
    let header = read(file, 0, HEADER_BYTES)?;
    let (header, header_crc) = RunHeader::decode(first(&header)?)?; // first: it may be of another version
    if file_bytes < HEADER_BYTES as u64 + DEVICE_BLOCK || !file_bytes.is_multiple_of(DEVICE_BLOCK) {
        return Err(length_is_wrong());
    }
    let last = read(file, file_bytes - DEVICE_BLOCK, crate::BLOCK_BYTES)?;
    let footer = last
        .last_chunk::<FOOTER_BYTES>()
        .ok_or_else(|| damaged("it has no footer"))?;
    let footer = Footer::decode(footer, file_bytes, header_crc)?;
    if footer.places.packed_bytes.is_some() != (header.compression != RunCompression::None) {
        return Err(damaged("its header and its footer contradict each other"));
    }
    // The footer's places agree with the file's length: what is allocated now lies in the file.
    let tail_at = HEADER_BYTES as u64 + footer.places.stored_bytes();
    let from = tail_at / DEVICE_BLOCK * DEVICE_BLOCK;
    let blocks = read(file, from, (file_bytes - from) as usize)?;
    let tail = &blocks[(tail_at - from) as usize..blocks.len() - FOOTER_BYTES];
    let index = RunIndex::decode(header.shape, &footer, tail)?;
    Ok((header, index))
}

fn read(file: &dyn ReadFile, offset: u64, bytes: usize) -> Result<Pages<u8>> {
    let mut memory = Pages::zeroed(bytes)?;
    let read = file.read_at(&mut memory, offset)?;
    if read < bytes {
        return Err(
            damaged("it became shorter while it was read").with("offset", offset + read as u64)
        );
    }
    Ok(memory)
}

fn first<const BYTES: usize>(bytes: &[u8]) -> Result<&[u8; BYTES]> {
    bytes
        .first_chunk()
        .ok_or_else(|| damaged("it ends inside a field"))
}

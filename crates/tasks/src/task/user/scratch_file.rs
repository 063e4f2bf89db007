//! A file for what a reducer has to read several times, and cannot hold: blocks, each with its CRC.
//!
//! ```text
//!   append(a) append(b)   read(1) read(0) read(1) ...   drop: the file is gone
//! ```
//!
//! It lies where the runs of the attempt lie, and like them is nobody else's to read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::spill::create_run;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_storage::sorted_run::RunCompression;
use gristmill_storage::{Caching, LocalDisk, ReadFile, WriteFile};

/// Blocks in a file, which is removed when this is dropped.
#[derive(Debug)]
pub struct ScratchFile {
    disk: Arc<dyn LocalDisk>,
    path: PathBuf,
    file: Arc<dyn WriteFile>,
    reader: Box<dyn ReadFile>,
    blocks: Vec<ScratchBlock>,
}

/// A block of the file.
#[derive(Debug, Clone, Copy)]
struct ScratchBlock {
    offset: u64,
    bytes: usize,
    crc: u32,
}

impl ScratchFile {
    /// An empty file of this name, in the first of the places that takes one: how long it will be, nobody knows.
    ///
    /// # Errors
    /// The disk's.
    pub(super) fn create(
        disk: &Arc<dyn LocalDisk>,
        places: &[PathBuf],
        name: &str,
    ) -> Result<Self> {
        let (path, file, _) =
            create_run(disk.as_ref(), (places, name, RunCompression::None), |_| {
                Some(0)
            })?;
        Ok(ScratchFile {
            reader: disk.open(&path, Caching::Cached)?,
            disk: Arc::clone(disk),
            path,
            file,
            blocks: Vec::new(),
        })
    }

    /// Writes a block behind the others.
    ///
    /// # Errors
    /// The disk's.
    pub fn append(&mut self, block: &[u8]) -> Result<()> {
        let offset = self.blocks.last().map_or(0, ScratchBlock::end);
        self.file.write_at(block, offset)?;
        self.blocks.push(ScratchBlock {
            offset,
            bytes: block.len(),
            crc: crc32fast::hash(block),
        });
        Ok(())
    }

    /// Reads the block of a number, in the place of what `into` holds; false where there is none.
    ///
    /// # Errors
    /// The disk's; or it gives other bytes than it was given.
    pub fn read(&self, number: usize, into: &mut Vec<u8>) -> Result<bool> {
        let Some(block) = self.blocks.get(number) else {
            return Ok(false);
        };
        into.clear();
        into.resize(block.bytes, 0);
        let read = self.reader.read_at(into, block.offset)?;
        match read == block.bytes && crc32fast::hash(into) == block.crc {
            true => Ok(true),
            false => Err(changed(&self.path, block)),
        }
    }

    /// How many blocks there are.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Whether there is no block.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }
}

impl ScratchBlock {
    /// Where the next one begins.
    fn end(&self) -> u64 {
        self.offset + self.bytes as u64
    }
}

impl Drop for ScratchFile {
    fn drop(&mut self) {
        let _ = self.disk.remove(&self.path); // the end of the job removes what stays
    }
}

#[cold]
fn changed(path: &Path, block: &ScratchBlock) -> Error {
    let message = format!(
        "{} bytes are not those that were written there",
        block.bytes
    );
    Error::new(Kind::Io, "read what was spilled", message)
        .with_path(path)
        .with("offset", block.offset)
        .advise("run the job again, with its runs on another disk if this comes back")
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_storage::memory::Memory;
    use gristmill_storage::{OutputStore as _, Store as _};

    #[test]
    fn blocks_are_read_as_they_were_written_or_not_at_all() {
        let memory = Memory::with_room_for(1 << 20);
        memory.create_directory("/runs".as_ref()).unwrap();
        let disk: Arc<dyn LocalDisk> = Arc::new(memory.clone());
        let path = Path::new("/runs/held");
        let mut file = ScratchFile::create(&disk, &["/runs".into()], "held").unwrap();
        let mut block = vec![9];
        assert!(!file.read(0, &mut block).unwrap() && file.is_empty());
        for bytes in [&b"one"[..], b"", b"three"] {
            file.append(bytes).unwrap();
        }
        for (number, bytes) in [(2, &b"three"[..]), (1, b""), (0, b"one")] {
            assert!(file.read(number, &mut block).unwrap());
            assert_eq!(block, bytes);
        }
        let wrong = memory.create(path, 0, Caching::Cached).unwrap();
        wrong.write_at(b"O", 0).unwrap();
        let error = file.read(0, &mut block).unwrap_err();
        assert_eq!(error.kind(), Kind::Io);
        drop(file);
        assert_eq!(memory.stat(path).unwrap(), None);
    }
}

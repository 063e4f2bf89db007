//! Files that tasks wrote, read to be put together: each must be what its task reported.
//!
//! The rule that must hold: who takes the bytes of a part and hears of no error has taken all of them, and no others. Length
//! and CRC are compared while they are read; so of a part that was changed, some bytes may have been taken before the error.

use gristmill_base::error::{Error, Kind, Result};
use gristmill_storage::Caching;
use gristmill_storage::location::Location;
use gristmill_storage::objects::Upload;
use gristmill_storage::staged::staged;
use gristmill_storage::stores::Stores;

/// What is read at once.
const PIECE_BYTES: usize = 1 << 20;

/// A file that a task wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::jobs) struct WrittenPart {
    /// Where it is.
    pub(in crate::jobs) at: Location,
    /// Its length, as its task reported it.
    pub(in crate::jobs) bytes: u64,
    /// And its CRC, if it did.
    pub(in crate::jobs) crc: Option<u32>,
}

impl WrittenPart {
    /// A file that was sent to a place where it can be read before it has its name.
    pub(in crate::jobs) fn staged(upload: &Upload) -> Result<Self> {
        Ok(WrittenPart {
            at: staged(upload.path.as_typed(), &upload.id)?,
            bytes: upload.bytes(),
            crc: Some(upload.crc()),
        })
    }
}

/// Reads parts.
pub(in crate::jobs) struct PartReader<'a> {
    pub(in crate::jobs) stores: &'a Stores,
    /// Asked before each piece is read: its error ends the reading.
    pub(in crate::jobs) alive: &'a dyn Fn() -> Result<()>,
}

impl PartReader<'_> {
    /// Gives the bytes of a part to `take`, in order.
    ///
    /// # Errors
    /// It is not what its task reported, or cannot be read; those of `take` and of `alive`.
    pub(in crate::jobs) fn read(
        &self,
        part: &WrittenPart,
        take: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let found = self.stores.stat(&part.at)?.map(|found| found.bytes);
        if found != Some(part.bytes) {
            return Err(changed(part, found));
        }
        let file = self.stores.open(&part.at, Caching::Cached)?;
        let (mut piece, mut at, mut crc) = (vec![0; PIECE_BYTES], 0, crc32fast::Hasher::new());
        while at < part.bytes {
            (self.alive)()?;
            let left = part.bytes - at;
            let room = left.min(PIECE_BYTES as u64) as usize;
            let read = file.read_at(piece.get_mut(..room).unwrap_or_default(), at)?;
            let data = piece.get(..read).filter(|data| !data.is_empty());
            let data = data.ok_or_else(|| changed(part, Some(at)))?;
            crc.update(data);
            take(data)?;
            at += read as u64;
        }
        match part.crc {
            Some(crc_wanted) if crc_wanted != crc.finalize() => Err(changed(part, Some(at))),
            _ => Ok(()),
        }
    }
}

/// The error of a part that is not what its task wrote, and has so many bytes now.
fn changed(part: &WrittenPart, found: Option<u64>) -> Error {
    let wrote = part.bytes;
    let message = match found {
        Some(bytes) if bytes == wrote => {
            "a part has other bytes than its task wrote: its CRC is another one".to_owned()
        }
        Some(bytes) => format!("a task wrote a part of {wrote} bytes, and now it has {bytes}"),
        None => format!("a task wrote a part of {wrote} bytes, and now it is not there"),
    };
    Error::new(Kind::Proof, "put the output together", message)
        .with_path(part.at.as_typed())
        .advise("let no other program write there, and check that disk; then run the job again")
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_storage::OutputStore as _;
    use gristmill_storage::memory::Memory;
    use std::sync::Arc;

    /// What is read of a part that is reported so; `alive` for so many pieces.
    fn read(wrote: &[u8], (bytes, crc): (u64, Option<u32>), pieces: usize) -> Result<Vec<u8>> {
        let disk = Memory::with_room_for(1 << 24);
        let file = disk.create("/part".as_ref(), 0, Caching::Cached).unwrap();
        file.write_at(wrote, 0).unwrap();
        let stores = Stores::new(Arc::new(disk));
        let left = std::cell::Cell::new(pieces);
        let alive = || {
            left.set(left.get().checked_sub(1).ok_or_else(Error::cancelled)?);
            Ok(())
        };
        let at = Location::from("/part");
        let (part, mut taken) = (WrittenPart { at, bytes, crc }, Vec::new());
        let reader = PartReader {
            stores: &stores,
            alive: &alive,
        };
        reader.read(&part, &mut |data| {
            taken.extend_from_slice(data);
            Ok(())
        })?;
        Ok(taken)
    }

    #[test]
    fn a_part_is_read_whole_or_is_an_error() {
        for bytes in [0, 5, PIECE_BYTES, 2 * PIECE_BYTES + 3] {
            let wrote: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
            let (length, crc) = (bytes as u64, Some(crc32fast::hash(&wrote)));
            assert_eq!(read(&wrote, (length, crc), 9).unwrap(), wrote);
            assert_eq!(read(&wrote, (length, None), 9).unwrap(), wrote);
            for other in [(length + 1, crc), (length, crc.map(|crc| crc + 1))] {
                let error = read(&wrote, other, 9).unwrap_err();
                assert_eq!(error.kind(), Kind::Proof);
                assert!(error.to_string().contains("/part"), "{error}");
            }
        }
    }

    #[test]
    fn a_job_that_is_cancelled_reads_no_more() {
        let wrote = vec![7; 3 * PIECE_BYTES];
        let error = read(&wrote, (wrote.len() as u64, None), 2).unwrap_err();
        assert_eq!(error.kind(), Kind::Cancelled);
    }
}

//! One staged file that several tasks write, each its pieces at their places.
//!
//! ```text
//!   begin ─▶ DIR/.gristmill-staging/NAME.ID, as long as the file will be
//!   piece ─▶ its bytes at its offset ─▶ with the server, on the device ─▶ length and CRC-32, reported
//!   joined ─▶ an upload of one part, whose CRC-32 is that of all pieces
//! ```
//!
//! Pieces begin at multiples of 64 KiB, so that no two machines write to one page or block. The rules that must hold: a piece is reported once it is durable,
//! where the job waits for that; and an attempt writes no other bytes to a place than another one did.
//!
//! Decision: docs/decisions/cut-files.md.

use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use super::SharedDisk;
use crate::io::overlap::TRANSFER_BYTES;
use crate::objects::{Upload, UploadPart};
use crate::staged::{RenameStore as _, staged};
use crate::{Caching, CutFile, PieceStore, Store as _, WriteFile};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::sync::lock;

/// The largest pages and blocks that systems of today have.
const UNIT_BYTES: u64 = 64 << 10;

impl PieceStore for SharedDisk {
    fn unit_bytes(&self, _bytes: u64) -> u64 {
        UNIT_BYTES
    }

    fn begin(&self, path: &Path, bytes: u64) -> Result<CutFile> {
        let (id, _file) = self.begin_staged(path, bytes, Caching::Cached)?;
        Ok(CutFile {
            path: path.into(),
            id,
            bytes,
        })
    }

    fn open_piece(
        &self,
        file: &CutFile,
        piece: Range<u64>,
        caching: Caching,
    ) -> Result<Box<dyn WriteFile>> {
        let place = staged(file.path.as_typed(), &file.id)?;
        if !self.keeps(file, &[])? {
            // An attempt that comes late makes no file anew that was removed.
            let message = "the file that it is a piece of is gone";
            return Err(Error::new(Kind::NotFound, "write the output", message)
                .with_path(file.path.as_typed())
                .advise("check that no other program removes files of the output"));
        }
        let open = self.disk.create(place.as_typed(), file.bytes, caching)?;
        Ok(Box::new(PieceWriter {
            place: self.clone(),
            file: file.clone(),
            start: piece.start,
            state: Mutex::new(PieceState {
                open: Some(open),
                bytes: 0,
                crc: crc32fast::Hasher::new(),
            }),
        }))
    }

    /// Which of its bytes were written, it does not tell.
    fn keeps(&self, file: &CutFile, _parts: &[UploadPart]) -> Result<bool> {
        let place = staged(file.path.as_typed(), &file.id)?;
        let found = self.find("look at an upload", place.as_typed())?;
        Ok(found.is_some_and(|found| !found.is_folder && found.file.bytes == file.bytes))
    }

    fn has_bytes(&self, file: &CutFile, piece: Range<u64>, crc: u32) -> Result<bool> {
        let place = staged(file.path.as_typed(), &file.id)?;
        let open = self.open(place.as_typed(), Caching::Cached)?;
        let (mut buffer, mut found) = (vec![0; TRANSFER_BYTES], crc32fast::Hasher::new());
        let mut offset = piece.start;
        while offset < piece.end {
            let wanted = (piece.end - offset).min(TRANSFER_BYTES as u64) as usize;
            let read = open.read_at(buffer.get_mut(..wanted).unwrap_or_default(), offset)?;
            found.update(buffer.get(..read).unwrap_or_default());
            offset += read as u64;
            if read < wanted {
                return Ok(false);
            }
        }
        Ok(found.finalize() == crc)
    }

    fn joined(&self, file: &CutFile, parts: Vec<UploadPart>) -> Result<Upload> {
        let path = file.path.as_typed();
        let found = self.staged_whole(path, &file.id, file.bytes)?;
        let all = Upload {
            path: file.path.clone(),
            id: file.id.clone(),
            parts,
        };
        let whole = UploadPart {
            bytes: all.bytes(),
            crc: all.crc(),
            etag: found.version,
        };
        Ok(Upload {
            parts: vec![whole],
            ..all
        })
    }
}

/// A piece of one attempt.
#[derive(Debug)]
struct PieceWriter {
    place: SharedDisk,
    file: CutFile,
    start: u64,
    state: Mutex<PieceState>,
}

/// How far it is.
#[derive(Debug)]
struct PieceState {
    /// None once it is closed.
    open: Option<Box<dyn WriteFile>>,
    bytes: u64,
    crc: crc32fast::Hasher,
}

impl PieceState {
    fn open(&self) -> Result<&dyn WriteFile> {
        let closed = || Error::bug("write the output", "the piece is closed");
        self.open.as_deref().ok_or_else(closed)
    }
}

impl PieceWriter {
    fn state(&self) -> MutexGuard<'_, PieceState> {
        lock(&self.state)
    }
}

impl WriteFile for PieceWriter {
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        let mut written = self.state();
        let at = self.start + written.bytes;
        if offset != at {
            let message = format!("the piece stands at {at}, not at {offset}");
            return Err(Error::bug("write the output", message));
        }
        written.open()?.write_at(data, offset)?;
        written.crc.update(data);
        written.bytes += data.len() as u64;
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.state().open()?.sync()
    }

    fn hand_over(&self) -> Result<()> {
        self.state().open()?.hand_over()
    }

    fn finish(&self) -> Result<Option<Upload>> {
        let mut written = self.state();
        let open = written.open()?;
        open.hand_over()?;
        if self.place.outputs.sync {
            open.sync()?;
        }
        written.open = None;
        let path = self.file.path.as_typed();
        self.place
            .staged_whole(path, &self.file.id, self.file.bytes)?;
        Ok(Some(Upload {
            path: self.file.path.clone(),
            id: self.file.id.clone(),
            parts: vec![UploadPart {
                bytes: written.bytes,
                crc: written.crc.clone().finalize(),
                etag: String::new(),
            }],
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::memory::Memory;
    use crate::shared::SharedOutputs;
    use crate::{LocalDisk as _, Publisher as _};

    #[test]
    fn pieces_in_any_order_make_a_file_that_nobody_sees_before_it_is_whole() {
        let memory = Memory::with_room_for(1 << 20);
        memory.create_directory("/out".as_ref()).unwrap();
        let place = SharedDisk::new(Arc::new(memory.clone()), SharedOutputs::seen_by_all(true));
        let data: Vec<u8> = (0..150_000_u32).map(|n| (n % 251) as u8).collect();
        let file = place.begin("/out/a".as_ref(), 150_000).unwrap();
        let mut parts = Vec::new();
        for piece in [65_536..131_072, 131_072..150_000, 0..65_536] {
            for half in [true, false] {
                // An attempt that ends half way, and the one after it.
                let writer = place
                    .open_piece(&file, piece.clone(), Caching::Cached)
                    .unwrap();
                let bytes = &data[piece.start as usize..piece.end as usize];
                if half {
                    writer.write_at(&bytes[..99], piece.start).unwrap();
                    assert!(writer.write_at(bytes, piece.start).is_err(), "it goes on");
                    continue;
                }
                writer.write_at(bytes, piece.start).unwrap();
                let upload = writer.finish().unwrap().unwrap();
                assert!(place.has_bytes(&file, piece.clone(), upload.crc()).unwrap());
                assert!(
                    !place
                        .has_bytes(&file, piece.clone(), upload.crc() ^ 1)
                        .unwrap()
                );
                parts.push((piece.start, upload.parts[0].clone()));
            }
            assert!(place.stat("/out/a".as_ref()).unwrap().is_none());
        }
        parts.sort_by_key(|(start, _)| *start);
        let parts = parts.into_iter().map(|(_, part)| part).collect();
        let upload = place.joined(&file, parts).unwrap();
        assert_eq!(
            (upload.bytes(), upload.crc()),
            (150_000, crc32fast::hash(&data))
        );
        place.complete(&upload).unwrap();
        assert_eq!(memory.bytes_of("/out/a".as_ref()), Some(data));
        assert!(!place.keeps(&file, &[]).unwrap(), "it has its name");
        let late = place.open_piece(&file, 0..65_536, Caching::Cached);
        assert_eq!(late.unwrap_err().kind(), Kind::NotFound);
    }
}

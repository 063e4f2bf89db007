//! One upload whose parts several tasks send: each the parts of its pieces, by their numbers.
//!
//! ```text
//!   upload   | 1 | 2 | 3 | 4 | 5 | 6 | 7 |        parts, all but the last as long as each other
//!   pieces   |   0       |   1       | 2 |        what each task sends, and reports: lengths, CRCs, ETags
//! ```
//!
//! An attempt that sends a piece again puts equal parts in the place of the first ones.
//!
//! Decision: docs/decisions/cut-files.md.

use std::ops::Range;
use std::path::Path;

use super::{KeptPart, ObjectStore, Upload, UploadPart, part_bytes, writer::UploadWriter};
use crate::{Caching, CutFile, PieceStore, WriteFile};
use gristmill_base::error::Result;

impl PieceStore for ObjectStore {
    fn unit_bytes(&self, bytes: u64) -> u64 {
        part_bytes(bytes)
    }

    fn begin(&self, path: &Path, bytes: u64) -> Result<CutFile> {
        Ok(CutFile {
            path: path.into(),
            id: self.objects.begin(path)?,
            bytes,
        })
    }

    fn open_piece(
        &self,
        file: &CutFile,
        piece: Range<u64>,
        _caching: Caching,
    ) -> Result<Box<dyn WriteFile>> {
        let writer = UploadWriter::piece(self.objects.clone(), file, piece.start);
        Ok(Box::new(writer))
    }

    fn keeps(&self, file: &CutFile, parts: &[UploadPart]) -> Result<bool> {
        let kept = self.objects.parts(file.path.as_typed(), &file.id)?;
        Ok(kept.is_some_and(|kept| has_all(&kept, parts)))
    }

    /// What the store said of each part proves it.
    fn has_bytes(&self, _file: &CutFile, _piece: Range<u64>, _crc: u32) -> Result<bool> {
        Ok(true)
    }

    fn joined(&self, file: &CutFile, parts: Vec<UploadPart>) -> Result<Upload> {
        Ok(Upload {
            path: file.path.clone(),
            id: file.id.clone(),
            parts,
        })
    }
}

/// Whether a store has these parts, in this order; others may be between them.
fn has_all(kept: &[KeptPart], parts: &[UploadPart]) -> bool {
    let mut kept = kept.iter();
    parts
        .iter()
        .all(|part| kept.any(|kept| (kept.bytes, &kept.etag) == (part.bytes, &part.etag)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::part_uploader::PartUploader;
    use crate::objects::{PART_BYTES, directory::DirectoryStore};
    use crate::{Publisher as _, Store as _};

    #[test]
    fn pieces_of_one_upload_make_one_object() {
        let folder = tempfile::tempdir().unwrap();
        let path = format!("objects://{}/a", folder.path().display());
        let store = ObjectStore::new(std::sync::Arc::new(DirectoryStore));
        let bytes = 3 * PART_BYTES + 5;
        let data: Vec<u8> = (0..bytes).map(|n| (n % 253) as u8).collect();
        let file = store.begin(path.as_ref(), bytes).unwrap();
        assert_eq!(store.unit_bytes(bytes), PART_BYTES);
        let mut parts = Vec::new();
        for piece in [2 * PART_BYTES..bytes, 0..2 * PART_BYTES] {
            for is_given_up in [true, false] {
                let writer = store
                    .open_piece(&file, piece.clone(), Caching::Direct)
                    .unwrap();
                writer.send_by(&PartUploader::new(2));
                let of_piece = &data[piece.start as usize..piece.end as usize];
                writer.write_at(of_piece, piece.start).unwrap();
                if !is_given_up {
                    let sent = writer.finish().unwrap().unwrap().parts;
                    assert!(store.keeps(&file, &sent).unwrap());
                    parts.splice(0..0, sent);
                }
            }
        }
        assert!(store.stat(path.as_ref()).unwrap().is_none());
        let other = UploadPart {
            etag: "other".into(),
            ..parts[1].clone()
        };
        assert!(!store.keeps(&file, &[other]).unwrap());
        let upload = store.joined(&file, parts).unwrap();
        assert_eq!(
            (upload.bytes(), upload.crc()),
            (bytes, crc32fast::hash(&data))
        );
        store.complete(&upload).unwrap();
        let found = store.head(path.as_ref()).unwrap().unwrap();
        assert!(upload.made(&found));
        assert!(!store.keeps(&file, &upload.parts).unwrap());
    }
}

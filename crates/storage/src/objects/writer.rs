//! An upload under way: written from front to back, sent in parts.
//!
//! ```text
//!   write ─▶ part, of 8 MiB or more ── full ──▶ sent here, one after another
//!                                    or ▶ beside others, as many as PartUploader has memory for
//! ```
//!
//! Parts of a file that is longer than was foreseen grow with it, as stores take no more than 10,000; while they are longer,
//! fewer are on their way at once.
//!
//! A part is copied once, to the memory that it is sent from, and its CRC is taken once. Parts may land in any order;
//! the upload names them in theirs. The first error of a part fails whatever is written next; an upload that is given
//! up ends when none of its parts is on its way any more.
//!
//! A writer of a piece (`pieces.rs`) sends some of the parts of an upload, and leaves the upload as it is.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::{Bytes, BytesMut};

use super::part_uploader::{InFlightPart, PartUploader, put};
use super::{Objects, Part, SourceRange, Upload, UploadPart, next_part_bytes, part_bytes};
use crate::{CutFile, WriteFile};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::sync::lock;

/// Stores take no more parts.
const PARTS_MAX: u32 = 10_000;

/// An upload under way.
#[derive(Debug)]
pub(super) struct UploadWriter {
    objects: Arc<dyn Objects>,
    path: PathBuf,
    id: String,
    /// As was foreseen: 0 where nobody knows.
    bytes: u64,
    /// Of a piece, the parts before it; nothing of an upload that is written whole.
    before: Option<u32>,
    state: Mutex<UploadProgress>,
}

/// How far an upload is.
#[derive(Debug, Default)]
struct UploadProgress {
    /// What is not sent yet: less than a part.
    rest: BytesMut,
    /// Bytes of the part that is filled.
    part_bytes: usize,
    /// Those that the store has, or is being sent.
    parts: Vec<SentPart>,
    sending: Option<Arc<PartUploader>>,
    bytes: u64,
    /// It is whole, and the committer's.
    finished: bool,
}

#[derive(Debug)]
enum SentPart {
    Uploaded(UploadPart),
    InFlight(InFlightPart),
}

impl UploadWriter {
    /// Begins an upload of about `bytes` bytes.
    pub(super) fn begin(objects: Arc<dyn Objects>, path: &Path, bytes: u64) -> Result<Self> {
        Ok(UploadWriter {
            id: objects.begin(path)?,
            objects,
            path: path.to_owned(),
            bytes,
            before: None,
            state: Mutex::new(UploadProgress {
                part_bytes: part_bytes(bytes) as usize,
                ..UploadProgress::default()
            }),
        })
    }

    /// Goes on with an upload, of a length that is known, at the beginning of a part.
    pub(super) fn piece(objects: Arc<dyn Objects>, file: &CutFile, start: u64) -> Self {
        let part_bytes = part_bytes(file.bytes);
        UploadWriter {
            id: file.id.clone(),
            objects,
            path: file.path.as_typed().to_owned(),
            bytes: file.bytes,
            before: Some((start / part_bytes) as u32),
            state: Mutex::new(UploadProgress {
                part_bytes: part_bytes as usize,
                bytes: start,
                ..UploadProgress::default()
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, UploadProgress> {
        lock(&self.state)
    }

    fn send(&self, sent: &mut UploadProgress) -> Result<()> {
        let number = self.before.unwrap_or(0) + sent.parts.len() as u32 + 1;
        if number > PARTS_MAX {
            let message = format!("an object has at most {PARTS_MAX} parts, and this is longer");
            return Err(Error::new(Kind::BadOption, "write the output", message)
                .with_path(&self.path)
                .advise("cut the output into more files"));
        }
        let part = Part::new(std::mem::take(&mut sent.rest).freeze());
        sent.part_bytes = next_part_bytes(self.bytes, sent.bytes) as usize;
        let Some(sending) = &sent.sending else {
            let kept = put(&*self.objects, &self.path, &self.id, (number, &part))?;
            sent.parts.push(SentPart::Uploaded(kept));
            if let Ok(mut memory) = part.data.try_into_mut() {
                memory.clear();
                sent.rest = memory;
            }
            return Ok(());
        };
        let (objects, path, id) = (self.objects.clone(), self.path.clone(), self.id.clone());
        let put = move |part: &Part| put(&*objects, &path, &id, (number, part));
        let places = (part.data.len() as u64).div_ceil(part_bytes(self.bytes));
        let on_its_way = sending.send(part, places as usize, put)?;
        sent.rest = sending.spare().unwrap_or_default();
        sent.parts.push(SentPart::InFlight(on_its_way));
        sent.fail_early()
    }
}

impl UploadWriter {
    /// Has the store make the next part of a range of another object.
    pub(super) fn copy(&self, of: SourceRange<'_>) -> Result<()> {
        let mut sent = self.state();
        let number = sent.parts.len() as u32 + 1;
        sent.bytes += of.bytes();
        let (objects, path, id) = (self.objects.clone(), self.path.clone(), self.id.clone());
        let (from, object, range) = (of.path.to_owned(), of.object.clone(), (of.start, of.end));
        let copy = move |_: &Part| {
            let of = SourceRange {
                path: &from,
                object: &object,
                start: range.0,
                end: range.1,
            };
            objects.copy_part(&path, &id, number, of)
        };
        let nothing = Part::new(Bytes::new());
        let Some(sending) = &sent.sending else {
            sent.parts.push(SentPart::Uploaded(copy(&nothing)?));
            return Ok(());
        };
        let on_its_way = sending.send(nothing, 1, copy)?;
        sent.parts.push(SentPart::InFlight(on_its_way));
        sent.fail_early()
    }
}

impl UploadProgress {
    /// Fails where a part did that has come to its end.
    fn fail_early(&mut self) -> Result<()> {
        for part in &mut self.parts {
            if matches!(part, SentPart::InFlight(thread) if thread.is_finished()) {
                part.land()?;
            }
        }
        Ok(())
    }
}

impl SentPart {
    /// Waits until it is there.
    fn land(&mut self) -> Result<UploadPart> {
        let nothing = UploadPart {
            bytes: 0,
            crc: 0,
            etag: String::new(),
        };
        let landed = match std::mem::replace(self, SentPart::Uploaded(nothing)) {
            SentPart::Uploaded(part) => part,
            SentPart::InFlight(thread) => thread.join().map_err(|_panic| {
                Error::bug("write the output", "a thread that sends panicked")
            })??,
        };
        *self = SentPart::Uploaded(landed.clone());
        Ok(landed)
    }
}

impl WriteFile for UploadWriter {
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        let mut sent = self.state();
        if offset != sent.bytes {
            let message = format!("an upload stands at {}, not at {offset}", sent.bytes);
            return Err(Error::bug("write the output", message));
        }
        let mut left = data;
        while !left.is_empty() {
            let room = sent.part_bytes - sent.rest.len();
            let (now, later) = left.split_at(left.len().min(room));
            if sent.rest.capacity() - sent.rest.len() < now.len() {
                sent.rest.reserve(room); // of a part: what is not touched takes no memory
            }
            sent.rest.extend_from_slice(now);
            sent.bytes += now.len() as u64;
            left = later;
            if sent.rest.len() == sent.part_bytes {
                self.send(&mut sent)?;
            }
        }
        Ok(())
    }

    fn send_by(&self, sending: &Arc<PartUploader>) {
        self.state().sending = Some(Arc::clone(sending));
    }

    /// What is sent is durable; what is not is sent by [`WriteFile::finish`].
    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn finish(&self) -> Result<Option<Upload>> {
        let mut sent = self.state();
        if !sent.rest.is_empty() || sent.parts.is_empty() {
            self.send(&mut sent)?;
        }
        let parts = sent.parts.iter_mut().map(SentPart::land);
        let parts = parts.collect::<Result<_>>()?;
        sent.finished = true;
        Ok(Some(Upload {
            path: self.path.clone().into(),
            id: self.id.clone(),
            parts,
        }))
    }
}

impl Drop for UploadWriter {
    fn drop(&mut self) {
        let mut sent = self.state();
        if !sent.finished {
            // The attempt's own error is what counts; the committer ends what stays.
            for part in &mut sent.parts {
                let _ = part.land();
            }
            if self.before.is_none() {
                let _ = self.objects.abort(&self.path, &self.id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::{KeptPart, OBJECT_BYTES_MAX, Object, PART_BYTES, Page};
    use crate::version::ReadVersion;

    /// Takes parts and keeps their lengths.
    #[derive(Debug, Default)]
    struct Lengths(Mutex<Vec<u64>>);

    impl Objects for Lengths {
        fn head(&self, _: &Path) -> Result<Option<Object>> {
            Ok(None)
        }
        fn list(&self, _: &Path, _: Option<&str>) -> Result<Page> {
            Ok(Page::default())
        }
        fn get(&self, _: &Path, _: &ReadVersion, _: &mut [u8], _: u64) -> Result<usize> {
            Ok(0)
        }
        fn delete(&self, _: &Path) -> Result<()> {
            Ok(())
        }
        fn begin(&self, _: &Path) -> Result<String> {
            Ok("1".to_owned())
        }
        fn put_part(&self, _: &Path, _: &str, number: u32, part: &Part) -> Result<UploadPart> {
            let bytes = part.data.len() as u64;
            let mut lengths = self.0.lock().unwrap();
            let all = lengths.len().max(number as usize);
            lengths.resize(all, 0);
            lengths[number as usize - 1] = bytes;
            let etag = format!("{:032x}", part.crc);
            Ok(UploadPart {
                bytes,
                crc: part.crc,
                etag,
            })
        }
        fn parts(&self, _: &Path, _: &str) -> Result<Option<Vec<KeptPart>>> {
            Ok(None)
        }
        fn complete(&self, _: &Upload) -> Result<()> {
            Ok(())
        }
        fn abort(&self, _: &Path, _: &str) -> Result<()> {
            Ok(())
        }
        fn uploads(&self, _: &Path) -> Result<Vec<(PathBuf, String)>> {
            Ok(Vec::new())
        }
    }

    /// The parts of an object that has `sent` bytes in the end, as the writer cuts them: their number, and the longest.
    fn cut(foreseen: u64, all: u64) -> (u64, u64) {
        let (mut sent, mut parts, mut longest) = (0, 0, 0);
        while sent < all {
            let part = next_part_bytes(foreseen, sent);
            longest = longest.max(part);
            sent += part;
            parts += 1;
        }
        (parts, longest)
    }

    #[test]
    fn parts_reach_the_longest_object_whether_or_not_its_length_was_foreseen() {
        let limit = u64::from(PARTS_MAX);
        let more = 83_886_080_000 / 10 * 11; // somewhat more than was foreseen
        for (foreseen, all) in [
            (0, OBJECT_BYTES_MAX),
            (1 << 33, OBJECT_BYTES_MAX),
            (OBJECT_BYTES_MAX, OBJECT_BYTES_MAX),
            (83_886_080_000, more),
        ] {
            let (parts, longest) = cut(foreseen, all);
            assert!(parts <= limit, "{foreseen}: {parts} parts");
            assert!(longest <= 5 << 30, "{foreseen}: a part of {longest} bytes");
        }
        assert_eq!(cut(0, 8 << 30), (1024, PART_BYTES)); // short objects have short parts
        assert!(cut(0, 83_886_080_001).0 <= limit);
        assert_eq!(cut(1 << 40, 1 << 40).1, part_bytes(1 << 40)); // what was foreseen is what memory is set aside for
    }

    #[test]
    fn a_writer_sends_parts_that_grow_in_order_and_knows_the_crc_of_all() {
        let (store, sent) = (Arc::new(Lengths::default()), 12 << 30);
        let writer = UploadWriter::begin(store.clone(), "s3://b/a".as_ref(), 0).unwrap();
        writer.send_by(&PartUploader::new(2));
        // As if so many bytes had been sent before.
        let mut state = writer.state();
        (state.bytes, state.part_bytes) = (sent, next_part_bytes(0, sent) as usize);
        let first = state.part_bytes;
        drop(state);
        assert!(first as u64 > PART_BYTES);
        let data: Vec<u8> = (0..3 * first).map(|n| (n % 251) as u8).collect();
        for (at, piece) in data.chunks(1 << 20).enumerate() {
            writer.write_at(piece, sent + ((at as u64) << 20)).unwrap();
        }
        let upload = writer.finish().unwrap().unwrap();
        let lengths = store.0.lock().unwrap().clone();
        assert_eq!(lengths[0], first as u64);
        assert!(lengths[1] > lengths[0], "{lengths:?}");
        assert_eq!(
            upload
                .parts
                .iter()
                .map(|part| part.bytes)
                .collect::<Vec<_>>(),
            lengths
        );
        assert_eq!(upload.bytes(), data.len() as u64);
        assert_eq!(upload.crc(), crc32fast::hash(&data));
    }
}

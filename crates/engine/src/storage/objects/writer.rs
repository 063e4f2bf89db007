//! An upload under way: written from front to back, sent in parts.
//!
//! ```text
//!   write ─▶ part, up to 8 MB ── full ──▶ sent here, one after another
//!                                    or ▶ beside others, as many as Sending has memory for
//! ```
//!
//! A part is copied once, to the memory that it is sent from, and its CRC is taken once. Parts may land in any order;
//! the upload names them in theirs. The first error of a part fails whatever is written next; an upload that is given
//! up ends when none of its parts is on its way any more.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::BytesMut;

use super::sending::{OnItsWay, Sending, put};
use super::{Objects, Part, Upload, UploadPart, part_bytes};
use crate::error::{Error, Kind, Result};
use crate::storage::WriteFile;

/// Stores take no more parts.
const PARTS_MAX: u32 = 10_000;

/// An upload under way.
#[derive(Debug)]
pub(super) struct UploadWriter {
    objects: Arc<dyn Objects>,
    path: PathBuf,
    id: String,
    part_bytes: usize,
    state: Mutex<Sent>,
}

/// How far an upload is.
#[derive(Debug, Default)]
struct Sent {
    /// What is not sent yet: less than a part.
    rest: BytesMut,
    /// Those that the store has, or is being sent.
    parts: Vec<SentPart>,
    sending: Option<Arc<Sending>>,
    bytes: u64,
    /// It is whole, and the committer's.
    finished: bool,
}

#[derive(Debug)]
enum SentPart {
    There(UploadPart),
    OnItsWay(OnItsWay),
}

impl UploadWriter {
    /// Begins an upload of about `bytes` bytes.
    pub(super) fn begin(objects: Arc<dyn Objects>, path: &Path, bytes: u64) -> Result<Self> {
        Ok(UploadWriter {
            id: objects.begin(path)?,
            objects,
            path: path.to_owned(),
            part_bytes: part_bytes(bytes) as usize,
            state: Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, Sent> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, sent: &mut Sent) -> Result<()> {
        let number = sent.parts.len() as u32 + 1;
        if number > PARTS_MAX {
            let message = format!("an object has at most {PARTS_MAX} parts, and this is longer");
            return Err(Error::new(Kind::BadOption, "write the output", message)
                .with_path(&self.path)
                .advise("cut the output into more files"));
        }
        let part = Part::new(std::mem::take(&mut sent.rest).freeze());
        let Some(sending) = &sent.sending else {
            let kept = put(&*self.objects, &self.path, &self.id, (number, &part))?;
            sent.parts.push(SentPart::There(kept));
            if let Ok(mut memory) = part.data.try_into_mut() {
                memory.clear();
                sent.rest = memory;
            }
            return Ok(());
        };
        let (objects, path, id) = (self.objects.clone(), self.path.clone(), self.id.clone());
        let put = move |part: &Part| put(&*objects, &path, &id, (number, part));
        let on_its_way = sending.send(part, put)?;
        sent.rest = sending.spare().unwrap_or_default();
        sent.parts.push(SentPart::OnItsWay(on_its_way));
        sent.fail_early()
    }
}

impl Sent {
    /// Fails where a part did that has come to its end.
    fn fail_early(&mut self) -> Result<()> {
        for part in &mut self.parts {
            if matches!(part, SentPart::OnItsWay(thread) if thread.is_finished()) {
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
        let landed = match std::mem::replace(self, SentPart::There(nothing)) {
            SentPart::There(part) => part,
            SentPart::OnItsWay(thread) => thread.join().map_err(|_panic| {
                Error::bug("write the output", "a thread that sends panicked")
            })??,
        };
        *self = SentPart::There(landed.clone());
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
            let room = self.part_bytes - sent.rest.len();
            let (now, later) = left.split_at(left.len().min(room));
            if sent.rest.capacity() - sent.rest.len() < now.len() {
                sent.rest.reserve(room); // of a part: what is not touched takes no memory
            }
            sent.rest.extend_from_slice(now);
            sent.bytes += now.len() as u64;
            left = later;
            if sent.rest.len() == self.part_bytes {
                self.send(&mut sent)?;
            }
        }
        Ok(())
    }

    fn send_by(&self, sending: &Arc<Sending>) {
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
            let _ = self.objects.abort(&self.path, &self.id);
        }
    }
}

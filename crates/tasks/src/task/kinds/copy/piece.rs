//! A piece of a file that several tasks copy, and the end of such a file: all its pieces are there, and it gets its name.
//!
//! ```text
//!   piece ── the source is what it was ──▶ block read ── still ──▶ written at its place ──▶ CRC-32 read = written ──▶ reported
//!   all   ── still ──▶ completed ──▶ looked at: length, CRC-32 of all pieces
//! ```
//!
//! A local source is looked at behind each block that was read and before it is written: so whatever attempt writes to a place, and
//! however late, it writes the bytes of the version that was cut. What is left of a file that fails goes with the round.
//!
//! Decision: docs/decisions/cut-files.md.

use std::sync::Arc;

use super::blocks::{ReadRange, caching_for, write_range};
use super::errors::{OPERATION, not_proved, takes_no_files};
use super::file::{Copying, copied};
use super::item::{CopiedFile, CopiedPiece, CopyItem, CopyOutcome, CopyPiece, JoinedPieces};
use crate::commit::sent_again;
use gristmill_base::error::{Error, Result};
use gristmill_storage::input::InputFile;
use gristmill_storage::io::window::in_order;
use gristmill_storage::objects::Upload;
use gristmill_storage::{Caching, PieceStore, WriteFile};

impl Copying<'_> {
    /// Copies a piece, unless a job that was killed has.
    pub(super) fn piece(&mut self, item: &CopyItem, piece: &CopyPiece) -> Result<CopiedPiece> {
        self.again(|copying| copying.piece_once(item, piece))
    }

    /// Makes a file seen whose pieces are all there.
    pub(super) fn joined(&mut self, item: &CopyItem, joined: &JoinedPieces) -> Result<CopiedFile> {
        self.again(|copying| copying.joined_once(item, joined))
    }

    /// Where failures are ignored it is tried again here, as the task does not fail.
    fn again<T>(&mut self, mut once: impl FnMut(&mut Self) -> Result<T>) -> Result<T> {
        let stores = Arc::clone(&self.task.sources);
        match self.task.rules.ignore_failures {
            true => sent_again(&stores, || once(self)),
            false => once(self),
        }
    }

    fn piece_once(&mut self, item: &CopyItem, piece: &CopyPiece) -> Result<CopiedPiece> {
        let input = InputFile {
            path: item.from.clone(),
            stat: piece.stat,
        };
        self.check_unchanged(&input)?;
        let place = self.publisher(&item.to)?.pieces();
        let place = place.ok_or_else(|| takes_no_files(&item.to))?;
        let done = |upload, is_kept| CopiedPiece {
            from: item.from.clone(),
            stat: piece.stat,
            range: piece.range.clone(),
            upload,
            is_kept,
        };
        if let Some(known) = &piece.known
            && place.has_bytes(&piece.file, piece.range.clone(), known.crc())?
        {
            self.task.attempt.progress(known.bytes())?;
            return Ok(done(known.clone(), true));
        }
        let upload = self.write_piece(&input, piece, place)?;
        if self.task.rules.verify
            && !place.has_bytes(&piece.file, piece.range.clone(), upload.crc())?
        {
            return Err(not_proved(&item.to));
        }
        Ok(done(upload, false))
    }

    fn write_piece(
        &mut self,
        input: &InputFile,
        piece: &CopyPiece,
        place: &dyn PieceStore,
    ) -> Result<Upload> {
        let (to, range) = (&piece.file.path, piece.range.clone());
        let bytes = range.end - range.start;
        let file = self.task.sources.open_input(input, Caching::Cached)?;
        let file = in_order(file, range.clone());
        let out = place.open_piece(&piece.file, range.clone(), caching_for(to, bytes))?;
        let out: Arc<dyn WriteFile> = Arc::from(out);
        if let Some(sending) = self.task.sending(to, piece.file.bytes) {
            out.send_by(sending);
        }
        let task = self.task;
        // A far file that is open is one version: to ask for each block would cost a reply each.
        let check = || match input.path.is_remote() {
            true => task.attempt.progress(0),
            false => task.check_unchanged(input),
        };
        let from = ReadRange {
            file: &*file,
            range,
            check: &check,
        };
        let copying = (task, &mut self.buffers);
        let (written, crc) = write_range(copying, &from, (to, bytes), &out)?;
        if written != bytes {
            return Err(self.other_length(input, piece.range.start + written));
        }
        task.check_unchanged(input)?;
        let upload = out.finish()?;
        let upload = upload.ok_or_else(|| Error::bug(OPERATION, "its place takes no uploads"))?;
        match (upload.bytes(), upload.crc()) == (bytes, crc) {
            true => Ok(upload),
            false => Err(not_proved(to)),
        }
    }

    fn joined_once(&mut self, item: &CopyItem, joined: &JoinedPieces) -> Result<CopiedFile> {
        let input = InputFile {
            path: item.from.clone(),
            stat: joined.stat,
        };
        self.publish(&input, &joined.upload)?;
        self.keep_attributes(&input, &item.to)?;
        let crc = joined.upload.crc();
        if self.task.rules.verify && item.to.is_remote() {
            self.verify(&item.to, (joined.upload.bytes(), crc))?; // on a disk each piece was read
        }
        let outcome = match joined.replaces {
            true => CopyOutcome::Replaced,
            false => CopyOutcome::Copied,
        };
        Ok(copied(item, &input, outcome, Some(crc)))
    }
}

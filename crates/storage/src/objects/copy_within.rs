//! A store copies an object of its own: the bytes do not come here.
//!
//! ```text
//!   source: HEAD ── a short one ──▶ one request; or several, each with the token of the one before ──▶ target: HEAD ── compared
//!                ── a long one ───▶ an upload ── its parts are ranges of the source, several at once ──▶ completed
//! ```
//!
//! The rules that must hold: only the version that was listed is copied, and another one is an error that names the source; an upload
//! that is not completed is ended. What proves a copy stands in `copies.rs`.

use std::path::Path;
use std::sync::Arc;

use super::copies::{Passed, SourceRange, StoreCopies, StoreCopy};
use super::part_uploader::PartUploader;
use super::retry::replaced;
use super::writer::UploadWriter;
use super::{Object, Objects};
use crate::{Stat, WriteFile as _};
use gristmill_base::error::{Error, Kind, Result};

/// Makes an object of another one, which was found so. Nothing where the store does not do this, or what it made cannot be proved.
pub(super) fn copy(
    objects: &Arc<dyn Objects>,
    (from, found, to): (&Path, &Stat, &Path),
    sending: Option<&Arc<PartUploader>>,
    passed: Passed<'_>,
) -> Result<Option<StoreCopy>> {
    let Some(copies) = objects.copies(from, to) else {
        return Ok(None);
    };
    let source = objects.head(from)?;
    let source = source.filter(|source| source.stat().identity == found.identity);
    let Some((source, part)) = source.and_then(|source| {
        let part = source.copied_by(copies)?;
        Some((source, part))
    }) else {
        return Ok(None);
    };
    let pair = (from, &source, to);
    let is_long = part < source.bytes || source.bytes > copies.whole_bytes;
    let is_made = match is_long {
        true => in_parts(objects, pair, (part, copies), sending, passed),
        false => whole(&**objects, pair, passed),
    };
    let is_made = is_made.map_err(|error| match error.kind() {
        Kind::InputChanged => replaced(from),
        _ => error,
    })?;
    let made = if is_made { objects.head(to)? } else { None };
    Ok(made.and_then(|made| {
        let is_proved = made.has_bytes_of(&source) == Some(true);
        let crc = made.crc.filter(|_| is_proved);
        let is_enough = is_proved || !copies.takes_sums && made.bytes == source.bytes;
        is_enough.then_some(StoreCopy { crc, is_proved })
    }))
}

fn whole(
    objects: &dyn Objects,
    (from, source, to): (&Path, &Object, &Path),
    passed: Passed<'_>,
) -> Result<bool> {
    let mut token = None::<String>;
    loop {
        token = objects.copy(from, source, to, token.as_deref())?;
        if token.is_none() {
            return passed(source.bytes).map(|()| true);
        }
        passed(0)?;
    }
}

/// An upload that fails, or is to end, is ended: the writer sees to that.
fn in_parts(
    objects: &Arc<dyn Objects>,
    (from, source, to): (&Path, &Object, &Path),
    (part, copies): (u64, StoreCopies),
    sending: Option<&Arc<PartUploader>>,
    passed: Passed<'_>,
) -> Result<bool> {
    let writer = UploadWriter::begin(Arc::clone(objects), to, source.bytes)?;
    if let Some(sending) = sending {
        writer.send_by(sending);
    }
    let mut start = 0;
    while start < source.bytes {
        let end = source.bytes.min(start + part);
        let (path, object) = (from, source);
        writer.copy(SourceRange {
            path,
            object,
            start,
            end,
        })?;
        passed(end - start)?;
        start = end;
    }
    let upload = writer.finish()?;
    let upload = upload.ok_or_else(|| Error::bug("copy a file", "a writer has no upload"))?;
    let completed = match !copies.takes_sums || upload.made(source) {
        true => objects.complete_copy(&upload, source).map(|()| true),
        false => Ok(false),
    };
    let completed = match completed {
        // It may have been made, and the reply lost: what is sent then takes its place.
        Err(error) if error.kind() == Kind::NotFound => Ok(false),
        completed => completed,
    };
    if !matches!(completed, Ok(true)) {
        let _ = objects.abort(to, &upload.id); // what went wrong before is what counts
    }
    completed
}

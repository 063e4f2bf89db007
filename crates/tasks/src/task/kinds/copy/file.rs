//! How one file is copied: compared with what is there, read, written, proved, completed.
//!
//! Whatever fails, nothing is left that was staged for the file. Where failures are ignored, and it may help to try a file again,
//! that is done here: the task does not fail.

use std::path::Path;
use std::sync::Arc;

use super::blocks::{ReadRange, SideBuffers, caching_for, room, write_range};
use super::errors::{
    OPERATION, changed, differs, has_name, not_proved, of_unknown_length, special, takes_no_files,
    unusable,
};
use super::item::{
    CopiedFile, CopyItem, CopyOutcome, CopyWay, ExistingFile, PUT_FILE_BYTES, found_at,
};
use super::task::CopyTask;
use crate::commit::sent_again;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_storage::input::InputFile;
use gristmill_storage::io::window::in_order;
use gristmill_storage::local::attributes::{link_of, make_link, mode_of, set_mode, set_modified};
use gristmill_storage::local::not_there;
use gristmill_storage::location::Location;
use gristmill_storage::objects::Upload;
use gristmill_storage::stores::Stores;
use gristmill_storage::{Caching, FileKind, Publisher, ReadFile, Stat, WriteFile};

/// What a stream copies with: one file after another.
pub(super) struct Copying<'a> {
    pub(super) task: &'a CopyTask<'a>,
    /// One for each side; as long as the longest file so far, at most a transfer.
    pub(super) buffers: SideBuffers,
}

impl<'a> Copying<'a> {
    pub(super) fn new(task: &'a CopyTask<'a>) -> Self {
        Copying {
            task,
            buffers: [Vec::new(), Vec::new()],
        }
    }

    pub(super) fn targets(&self) -> &'a Stores {
        &self.task.context.node.store
    }

    pub(super) fn publisher(&self, to: &Location) -> Result<&'a dyn Publisher> {
        let publisher = self.targets().publisher(to);
        publisher.ok_or_else(|| takes_no_files(to))
    }

    /// Fails where the attempt should stop.
    pub(super) fn check_stop(&self) -> Result<()> {
        self.task.attempt.progress(0)
    }

    /// The same error, or the one that is behind it: a file of the target has the name of a directory on the way.
    pub(super) fn blocked(&self, item: &CopyItem, error: Error) -> Error {
        if matches!(error.kind(), Kind::Cancelled | Kind::Exists) {
            return error;
        }
        let above = item.to.as_typed().ancestors().skip(1).map(Location::from);
        for above in above.take_while(|above| above.name().is_some()) {
            match self.targets().stat(&above) {
                Ok(Some(found)) if found.kind == FileKind::Directory => break,
                Ok(Some(_)) => return has_name(&above, "a file has the name of a directory"),
                Ok(None) | Err(_) => {}
            }
        }
        error
    }

    /// Makes a directory, where the place has such.
    pub(super) fn directory(&self, item: &CopyItem) -> Result<()> {
        if self.task.rules.dry_run {
            return Ok(());
        }
        let to = item.to.as_typed();
        match self.targets().stat(&item.to)?.map(|found| found.kind) {
            None | Some(FileKind::Directory) => self.publisher(&item.to)?.make_directory(to),
            Some(_) => Err(has_name(&item.to, "a file has the name of the directory")),
        }
    }

    /// Makes a link that leads to the same as another one.
    pub(super) fn link(&self, item: &CopyItem, leads_to: &Path) -> Result<()> {
        let to = item.to.as_typed();
        if link_of(to)?.is_some_and(|there| there == leads_to) || self.task.rules.dry_run {
            return Ok(());
        }
        let there = self.targets().stat(&item.to)?;
        match there.map(|found| found.kind) {
            Some(FileKind::Directory) if link_of(to)?.is_none() => {
                return Err(has_name(&item.to, "a directory has the name of the link"));
            }
            Some(FileKind::Other) => return Err(special(&item.to)),
            Some(_) if self.task.rules.existing == ExistingFile::Refuse => {
                return Err(differs(item));
            }
            Some(_) => self.publisher(&item.to)?.delete(to)?,
            None => {
                let parent = item.to.parent();
                let parent = parent.unwrap_or_else(|| item.to.clone());
                self.publisher(&item.to)?
                    .make_directory(parent.as_typed())?;
            }
        }
        make_link(leads_to, to)
    }

    /// Copies a file, unless it is there.
    pub(super) fn file(&mut self, item: &CopyItem, listed: &Stat) -> Result<CopiedFile> {
        let stores = Arc::clone(&self.task.sources);
        let copied = match self.task.rules.ignore_failures {
            true => sent_again(&stores, || self.file_once(item, listed)),
            false => self.file_once(item, listed), // the task is tried again
        };
        copied.map_err(|error| match error.kind() {
            Kind::BadOption => unusable(item, &error),
            _ => error,
        })
    }

    fn file_once(&mut self, item: &CopyItem, listed: &Stat) -> Result<CopiedFile> {
        let input = self.as_it_is(item, listed)?;
        let there = found_at(self.targets(), &item.to)?;
        let is_there = match &there {
            None => false,
            Some(found) if found.kind == FileKind::Directory => {
                return Err(has_name(&item.to, "a directory has the name of the file"));
            }
            Some(found) if found.kind == FileKind::Other => {
                return Err(special(&item.to));
            }
            Some(found) => {
                let same = match self.task.rules.existing {
                    ExistingFile::Overwrite => None,
                    _ => self.same_bytes(&input, &item.to, found)?,
                };
                if let Some(crc) = same {
                    return Ok(copied(item, &input, CopyOutcome::Same, crc));
                }
                if self.task.rules.existing == ExistingFile::Refuse {
                    return Err(differs(item));
                }
                true
            }
        };
        let outcome = match is_there {
            true => CopyOutcome::Replaced,
            false => CopyOutcome::Copied,
        };
        if self.task.rules.dry_run {
            return Ok(copied(item, &input, outcome, None));
        }
        if let Some(made) = self.copied_within(&input, &item.to)? {
            let way = match made.is_proved {
                true => CopyWay::InStore,
                false => CopyWay::Unproved,
            };
            return Ok(CopiedFile {
                way,
                ..copied(item, &input, outcome, made.crc)
            });
        }
        let crc = match self.put(&input, &item.to)? {
            Some(crc) => crc,
            None => self.upload(&input, &item.to)?,
        };
        self.keep_attributes(&input, &item.to)?;
        if self.task.rules.verify {
            self.verify(&item.to, (input.stat.bytes, crc))?;
        }
        Ok(copied(item, &input, outcome, Some(crc)))
    }

    /// A file as it is now. Of a store the listing has said it, and no other version is read.
    fn as_it_is(&self, item: &CopyItem, listed: &Stat) -> Result<InputFile> {
        let path = item.from.clone();
        if self.task.sources.pins_versions(&path) {
            return Ok(InputFile {
                path,
                stat: *listed,
            });
        }
        let stat = self.task.sources.stat(&path)?;
        match stat {
            Some(stat) if stat.kind == FileKind::File => Ok(InputFile { path, stat }),
            Some(_) => Err(
                Error::new(Kind::InputChanged, OPERATION, "it is a file no longer")
                    .with_path(path.as_typed())
                    .advise("let no program change the source, then run again"),
            ),
            None => Err(not_there(OPERATION, path.as_typed())),
        }
    }

    /// Opens a file to be read from its beginning to its end.
    fn open(&self, stores: &Stores, input: &InputFile) -> Result<Box<dyn ReadFile>> {
        let file = stores.open_input(input, Caching::Cached)?;
        Ok(in_order(file, 0..input.stat.bytes))
    }

    /// The CRC of a file's bytes, nothing where nobody had to read them, if another one has the same; else nothing.
    fn same_bytes(
        &mut self,
        input: &InputFile,
        to: &Location,
        found: &Stat,
    ) -> Result<Option<Option<u32>>> {
        if found.kind != FileKind::File || found.bytes != input.stat.bytes {
            return Ok(None);
        }
        let is_local = !input.path.is_remote() && !to.is_remote();
        if is_local && found.identity == input.stat.identity {
            return Ok(Some(None)); // two names of one file
        }
        let known = self.publisher(to)?.head(to.as_typed())?;
        if let Some(is_same) = self.compared_within(input, to, known.as_ref())? {
            self.task
                .attempt
                .progress(if is_same { found.bytes } else { 0 })?;
            return Ok(is_same.then(|| known.and_then(|object| object.crc)));
        }
        let known = known.and_then(|object| object.crc);
        room(&mut self.buffers, input.stat.bytes);
        let file = self.open(&self.task.sources, input)?;
        let other = match known {
            Some(_) => None,
            None => {
                let path = to.clone();
                Some(self.open(self.targets(), &InputFile { path, stat: *found })?)
            }
        };
        let [ours, theirs] = &mut self.buffers;
        let (mut crc, mut offset) = (crc32fast::Hasher::new(), 0);
        loop {
            let read = file.read_at(ours, offset)?;
            let data = ours.get(..read).unwrap_or_default();
            if let Some(other) = &other {
                let read = other.read_at(theirs, offset)?;
                if theirs.get(..read) != Some(data) {
                    return Ok(None);
                }
            }
            crc.update(data);
            offset += read as u64;
            self.task.passed(read, 0)?; // the bytes count once it is known that they need not be copied
            if read < ours.len() {
                break;
            }
        }
        let crc = crc.finalize();
        let is_same = offset == found.bytes && known.is_none_or(|known| known == crc);
        if is_same {
            self.task.attempt.progress(offset)?;
        }
        Ok(is_same.then_some(Some(crc)))
    }

    /// Writes a short file by one request, if its place is a store; gives the CRC of its bytes.
    fn put(&mut self, input: &InputFile, to: &Location) -> Result<Option<u32>> {
        let bytes = input.stat.bytes;
        if bytes > PUT_FILE_BYTES || !self.targets().pins_versions(to) {
            return Ok(None);
        }
        room(&mut self.buffers, bytes);
        let file = self.open(&self.task.sources, input)?;
        let [buffer, _] = &mut self.buffers;
        let read = file.read_at(buffer, 0)?;
        if read as u64 != bytes {
            return Err(self.other_length(input, read as u64));
        }
        self.task.passed(read, bytes)?;
        self.check_unchanged(input)?;
        let [buffer, _] = &self.buffers;
        let data = buffer.get(..read).unwrap_or_default();
        self.publisher(to)?.put(to.as_typed(), data)?;
        Ok(Some(crc32fast::hash(data)))
    }

    /// Writes a file to where nobody sees it, and makes it seen; gives the CRC of its bytes.
    fn upload(&mut self, input: &InputFile, to: &Location) -> Result<u32> {
        let upload = self.write(input, to)?;
        if let Err(error) = self.publish(input, &upload) {
            // The error is what counts; the job sweeps what stays.
            let _ = self.publisher(to)?.abort(to.as_typed(), &upload.id);
            return Err(error);
        }
        Ok(upload.crc())
    }

    /// Writes the bytes of a file; nobody sees them yet.
    fn write(&mut self, input: &InputFile, to: &Location) -> Result<Upload> {
        let bytes = input.stat.bytes;
        let file = self.open(&self.task.sources, input)?;
        let out = self.targets().create(to, bytes, caching_for(to, bytes))?;
        let out: Arc<dyn WriteFile> = Arc::from(out);
        if let Some(sending) = self.task.sending(to, bytes) {
            out.send_by(sending);
        }
        let whole = ReadRange::whole(&*file);
        let copying = (self.task, &mut self.buffers);
        let (written, crc) = write_range(copying, &whole, (to, bytes), &out)?;
        if written != bytes {
            return Err(self.other_length(input, written));
        }
        let upload = out.finish()?;
        let upload = upload.ok_or_else(|| Error::bug(OPERATION, "its place takes no uploads"))?;
        if (upload.bytes(), upload.crc()) == (bytes, crc) {
            return Ok(upload);
        }
        let _ = self.publisher(to)?.abort(to.as_typed(), &upload.id); // the error is what counts
        Err(not_proved(to))
    }

    /// The error of a file that has more or fewer bytes than it says: it changed, or is one that does not know its length.
    pub(super) fn other_length(&self, input: &InputFile, read: u64) -> Error {
        match self.task.sources.stat(&input.path) {
            Ok(Some(stat)) if stat == input.stat => of_unknown_length(&input.path, read),
            _ => changed(&input.path),
        }
    }

    /// Fails where what was read is another file by now, or the attempt should stop.
    pub(super) fn check_unchanged(&self, input: &InputFile) -> Result<()> {
        self.task.check_unchanged(input)
    }

    /// Makes a file seen that is whole, if what was read is still the file that was opened.
    pub(super) fn publish(&self, input: &InputFile, upload: &Upload) -> Result<()> {
        self.check_unchanged(input)?;
        let (publisher, path) = (self.publisher(&upload.path)?, upload.path.as_typed());
        publisher.complete(upload)?;
        match publisher.head(path)? {
            Some(found) if upload.made(&found) => Ok(()),
            _ => Err(not_proved(&upload.path)),
        }
    }

    /// Gives a file what else is to be as it was: between local places.
    pub(super) fn keep_attributes(&self, input: &InputFile, to: &Location) -> Result<()> {
        let (Some(from), Some(to)) = (input.path.local(), to.local()) else {
            return Ok(());
        };
        if self.task.rules.times {
            set_modified(to, &input.stat)?;
        }
        match self.task.rules.mode {
            true => set_mode(to, mode_of(from)?),
            false => Ok(()),
        }
    }

    /// Reads what was written.
    pub(super) fn verify(&mut self, to: &Location, written: (u64, u32)) -> Result<()> {
        let stat = self.targets().stat(to)?;
        let stat = stat.ok_or_else(|| not_there(OPERATION, to.as_typed()))?;
        let path = to.clone();
        let file = self.open(self.targets(), &InputFile { path, stat })?;
        room(&mut self.buffers, written.0);
        let [buffer, _] = &mut self.buffers;
        let (mut crc, mut offset) = (crc32fast::Hasher::new(), 0);
        loop {
            let read = file.read_at(buffer, offset)?;
            crc.update(buffer.get(..read).unwrap_or_default());
            offset += read as u64;
            self.task.attempt.progress(0)?;
            if read < buffer.len() {
                break;
            }
        }
        match (offset, crc.finalize()) == written {
            true => Ok(()),
            false => Err(not_proved(to)),
        }
    }
}

pub(super) fn copied(
    item: &CopyItem,
    input: &InputFile,
    outcome: CopyOutcome,
    crc: Option<u32>,
) -> CopiedFile {
    CopiedFile {
        path: item.to.clone(),
        outcome,
        bytes: input.stat.bytes,
        crc,
        way: CopyWay::Here,
    }
}

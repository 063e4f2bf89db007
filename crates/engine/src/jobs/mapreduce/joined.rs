//! The files of tasks, put together to one file or a stream: in the order of their names, each compared with its report, and
//! without the headers of all but the first.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::outcome::MapReduceOutcome;
use super::promote::{check_folder, same_name};
use crate::jobs::steps::{PartReader, RunningJob, WrittenPart, check_length};
use crate::plan::mapreduce::{MapReduceSpec, joined_bytes};
use gristmill_base::error::{Error, Result};
use gristmill_storage::io::sequential::Sequential;
use gristmill_storage::io::stream::StreamWriter;
use gristmill_storage::location::Location;
use gristmill_storage::objects::part_uploader::{PARTS_AT_ONCE, PartUploader};
use gristmill_storage::objects::{Upload, part_bytes};
use gristmill_storage::{Caching, WriteFile};
use gristmill_tasks::commit::{Committer, check_file_name, sent_again};

/// Bytes of each buffer that a file is written from.
const BUFFER_BYTES: usize = 1 << 20;

/// Files to be put together.
pub(super) struct Joined<'a> {
    job: &'a RunningJob<'a>,
    parts: Vec<WrittenPart>,
    header_bytes: u64,
}

impl<'a> Joined<'a> {
    /// The files of the attempts that count.
    ///
    /// # Errors
    /// One of them has a name that it may not have, or lies elsewhere.
    pub(super) fn of(
        job: &'a RunningJob<'a>,
        spec: &MapReduceSpec,
        (attempts, outcome): (&Path, &MapReduceOutcome),
    ) -> Result<Self> {
        Ok(Joined {
            job,
            parts: parts_of(attempts, outcome)?,
            header_bytes: spec.header_bytes,
        })
    }

    /// Writes them to a stream.
    pub(super) fn write_to_stream(&self, stream: &StreamWriter) -> Result<()> {
        self.write_in_order(stream)
    }

    /// Writes the file that is to be published; gives what completes it, where it is an upload.
    pub(super) fn write_file(&self, committer: &dyn Committer) -> Result<Option<Upload>> {
        let (store, place) = (self.job.store(), committer.path_of("".as_ref()));
        if store.publisher(&place).is_some() {
            check_length(store, &place, ("output", self.bytes()))?;
            return sent_again(store, || self.send(&place)).map(Some);
        }
        let (disk, path) = (committer.folder().disk(), committer.folder().staged());
        if disk.stat(&path)?.is_some() {
            disk.overwrite(&path)?.cut(0)?; // what a job that was killed had put together
        }
        let file = disk.create(&path, self.bytes(), Caching::Direct)?;
        let mut file = Sequential::new(file, BUFFER_BYTES);
        self.read(&mut |data| file.append(data))?;
        file.end()?;
        Ok(None)
    }

    fn send(&self, place: &Location) -> Result<Upload> {
        let bytes = self.bytes();
        let object = self.job.store().create(place, bytes, Caching::Direct)?;
        let granted = self.job.parts_bytes(&[]) / part_bytes(bytes);
        if granted > 0 {
            object.send_by(&PartUploader::new(granted.min(PARTS_AT_ONCE) as usize));
        }
        self.write_in_order(&*object)?;
        let upload = object.finish()?;
        upload.ok_or_else(|| Error::bug("send the output", "its place takes no uploads"))
    }

    fn write_in_order(&self, file: &dyn WriteFile) -> Result<()> {
        let mut written = 0;
        self.read(&mut |data| {
            file.write_at(data, written)?;
            written += data.len() as u64;
            Ok(())
        })
    }

    /// How many bytes they are together.
    fn bytes(&self) -> u64 {
        joined_bytes(self.parts.iter().map(|part| part.bytes), self.header_bytes)
    }

    fn read(&self, take: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let reader = PartReader {
            stores: self.job.store(),
            alive: &|| self.job.check_cancelled(),
        };
        let mut header = 0; // the first part keeps it
        for part in &self.parts {
            reader.read(part, &mut without(header, take))?;
            header = self.header_bytes;
        }
        Ok(())
    }
}

/// What takes pieces in order, but for the first bytes of all.
fn without(
    mut bytes: u64,
    take: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> impl FnMut(&[u8]) -> Result<()> {
    move |data| {
        let skipped = bytes.min(data.len() as u64);
        bytes -= skipped;
        match data.get(skipped as usize..) {
            None | Some([]) => Ok(()),
            Some(rest) => take(rest),
        }
    }
}

/// The files, in the order of their names; those that tasks have sent, where they are until they have names.
fn parts_of(attempts: &Path, outcome: &MapReduceOutcome) -> Result<Vec<WrittenPart>> {
    let uploads = outcome.uploads();
    let mut sent = uploads.iter();
    let mut parts: BTreeMap<&PathBuf, WrittenPart> = BTreeMap::new();
    for (folder, file) in outcome.files() {
        check_file_name(&file.name)?;
        let part = match sent.next() {
            Some(upload) => WrittenPart::staged(upload)?,
            None => {
                check_folder(folder, attempts)?;
                WrittenPart {
                    at: folder.join(&file.name).into(),
                    bytes: file.bytes,
                    crc: file.crc,
                }
            }
        };
        if parts.insert(&file.name, part).is_some() {
            return Err(same_name(&file.name));
        }
    }
    Ok(parts.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_left_out_of_all_but_the_first() {
        for (header, wanted) in [(0, "ababcda"), (1, "abbcd"), (2, "abcd"), (9, "ab")] {
            let mut joined = Vec::new();
            let mut take = |data: &[u8]| {
                joined.extend_from_slice(data);
                Ok(())
            };
            for (number, pieces) in [&["ab"][..], &["a", "bcd"], &[], &["a"]].iter().enumerate() {
                let mut part = without(if number == 0 { 0 } else { header }, &mut take);
                pieces
                    .iter()
                    .try_for_each(|piece| part(piece.as_bytes()))
                    .unwrap();
            }
            assert_eq!(joined, wanted.as_bytes());
            let bytes = joined_bytes([2, 4, 0, 1].into_iter(), header);
            assert_eq!(bytes, wanted.len() as u64, "{header}");
        }
    }
}

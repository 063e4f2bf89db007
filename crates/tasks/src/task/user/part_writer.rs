//! The files that a reduce of a native job writes: its part, or files that it names, one after the other.
//!
//! ```text
//!   begin(a) record record │ begin(b) record │ end        a and b, each with the header, its records and its CRC
//! ```
//!
//! One file is open at a time, however many there are.

use std::path::PathBuf;
use std::sync::Arc;

use super::scratch_file::ScratchFile;
use super::spec::UserTaskFile;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_storage::io::sequential::Sequential;
use gristmill_storage::{Caching, LocalDisk};

/// Writes the records of a part, or of files that are named.
#[derive(Debug)]
pub struct PartFiles {
    place: FilePlace,
    /// The file that is written, with its name and its records so far.
    file: Option<(PathBuf, Sequential, u64)>,
    /// Those that are whole.
    whole: Vec<UserTaskFile>,
    /// Bytes of records so far, of all files.
    written: u64,
    /// Scratch files so far.
    scratch: u32,
}

/// Where files go, and what they have in common.
#[derive(Debug)]
pub(super) struct FilePlace {
    pub(super) disk: Arc<dyn LocalDisk>,
    /// The folder of the attempt's files, which is there.
    pub(super) folder: PathBuf,
    /// Bytes of each buffer of a long file.
    pub(super) buffer_bytes: usize,
    /// What each begins with.
    pub(super) header: Vec<u8>,
    /// How many there may be.
    pub(super) files_max: u64,
    /// Where scratch files may lie, in order, and what their names begin with.
    pub(super) scratch: (Vec<PathBuf>, String),
}

impl PartFiles {
    /// Writes files to this place.
    pub(super) fn new(place: FilePlace) -> Self {
        PartFiles {
            place,
            file: None,
            whole: Vec::new(),
            written: 0,
            scratch: 0,
        }
    }

    /// Bytes of records so far, of all files.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Ends the file before, and begins one of this name, which no other file of the output has.
    ///
    /// # Errors
    /// A file cannot be written, or there are too many.
    pub fn begin(&mut self, name: impl Into<PathBuf>) -> Result<()> {
        self.end_file()?;
        let place = &self.place;
        if self.whole.len() as u64 >= place.files_max {
            return Err(too_many_files(place.files_max));
        }
        let name = name.into();
        let path = place.folder.join(&name);
        let file = place.disk.create(&path, 0, Caching::Direct)?;
        let mut file = Sequential::new(file, place.buffer_bytes);
        file.append(&place.header)?;
        self.file = Some((name, file, 0));
        Ok(())
    }

    /// Writes a record, with its end.
    ///
    /// # Errors
    /// The file cannot be written.
    #[inline]
    pub fn record(&mut self, record: &[u8]) -> Result<()> {
        let Some((_, file, records)) = &mut self.file else {
            return Err(Error::bug("write the output", "no file was begun"));
        };
        *records += 1;
        self.written += record.len() as u64;
        file.append(record)
    }

    /// A file for what the task has to read several times, and cannot hold. It is no part of the output.
    ///
    /// # Errors
    /// The disk's.
    pub fn scratch_file(&mut self) -> Result<ScratchFile> {
        let (places, name) = &self.place.scratch;
        let name = format!("{name}-{}", self.scratch);
        self.scratch += 1;
        ScratchFile::create(&self.place.disk, places, &name)
    }

    fn end_file(&mut self) -> Result<()> {
        let Some((name, file, records)) = self.file.take() else {
            return Ok(());
        };
        let whole = file.end()?;
        self.whole.push(UserTaskFile {
            name,
            bytes: whole.bytes,
            records,
            crc: Some(whole.crc),
        });
        Ok(())
    }

    /// Ends the last file; gives all of them.
    pub(super) fn end(mut self) -> Result<Vec<UserTaskFile>> {
        self.end_file()?;
        Ok(self.whole)
    }
}

/// The error of an output that would have more files than it may have.
pub fn too_many_files(most: u64) -> Error {
    let message = format!("the output would have more than {most} files");
    Error::new(Kind::BadInput, "write the output", message)
        .advise("choose columns with fewer values, or longer files, or raise --max-files (in Python max_files)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_storage::memory::Memory;

    fn writer(store: &Memory, files_max: u64) -> PartFiles {
        store.create_directory("/out".as_ref()).unwrap();
        PartFiles::new(FilePlace {
            disk: Arc::new(store.clone()),
            folder: "/out".into(),
            buffer_bytes: 1 << 16,
            header: b"h\n".to_vec(),
            files_max,
            scratch: (vec!["/out".into()], "scratch".into()),
        })
    }

    #[test]
    fn files_are_written_one_after_the_other() {
        let store = Memory::with_room_for(1 << 20);
        let mut part = writer(&store, 2);
        assert!(part.record(b"nowhere").is_err());
        part.begin("a").unwrap();
        part.record(b"1\n").unwrap();
        part.record(b"2\n").unwrap();
        part.begin("b").unwrap();
        assert_eq!(part.begin("c").unwrap_err().kind(), Kind::BadInput);
        let files = part.end().unwrap();
        let told = files
            .iter()
            .map(|file| (file.bytes, file.records, file.crc));
        let crc = |bytes| Some(crc32fast::hash(bytes));
        assert!(told.eq([(6, 2, crc(b"h\n1\n2\n")), (2, 0, crc(b"h\n"))]));
        assert_eq!(
            store.bytes_of("/out/a".as_ref()),
            Some(b"h\n1\n2\n".to_vec())
        );
    }
}

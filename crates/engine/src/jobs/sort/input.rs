//! What `sort` reads: files, and streams between them; and about how long its lines are.

use std::os::fd::AsFd;
use std::path::Path;

use super::SortSpec;
use crate::jobs::tables::InputTable;
use gristmill_base::error::Result;
use gristmill_base::names::show_path;
use gristmill_base::record::shape::Shape;
use gristmill_storage::Caching;
use gristmill_storage::codec::Codec;
use gristmill_storage::input::InputFile;
use gristmill_storage::io::stream::{File, is_special, open_to_read, standard};
use gristmill_storage::location::{DASH, Location};
use gristmill_storage::stores::Stores;
use gristmill_tasks::split::text::codec_of_whole;
use gristmill_tasks::split::{ResolvedInput, files_of, not_a_file, states_another_length};

/// The input: files, and streams between them.
#[derive(Debug)]
pub(super) struct SortInput {
    pub(super) files: Vec<InputFile>,
    /// How each file is compressed.
    pub(super) codecs: Vec<Option<Codec>>,
    pub(super) streams: Vec<InputStream>,
    /// What its rows are, where it is a table.
    pub(super) table: Option<InputTable>,
}

/// A stream.
#[derive(Debug)]
pub(super) struct InputStream {
    /// How many files stand before it.
    pub(super) place: usize,
    /// What errors call it.
    pub(super) name: String,
    pub(super) file: File,
    /// What was read of it already.
    pub(super) begun: Vec<u8>,
}

impl SortInput {
    pub(super) fn find(store: &Stores, spec: &SortSpec) -> Result<Self> {
        let mut input = SortInput {
            files: Vec::new(),
            codecs: Vec::new(),
            streams: Vec::new(),
            table: None,
        };
        let dash = [Location::from(DASH)];
        let names = if spec.inputs.is_empty() {
            &dash[..]
        } else {
            &spec.inputs
        };
        for name in names {
            if *name == dash[0] {
                let file = standard(std::io::stdin().as_fd(), "standard input", false)?;
                input.add_stream("standard input".into(), file);
            } else {
                match files_of(store, name)? {
                    ResolvedInput::Files(files) => {
                        files
                            .into_iter()
                            .try_for_each(|file| input.add(store, file))?;
                    }
                    ResolvedInput::Other => match name.local().filter(|path| is_special(path)) {
                        Some(path) => input.open_stream(path)?,
                        None => return Err(not_a_file(name)),
                    },
                }
            }
        }
        Ok(input)
    }

    /// Adds a file, which can be read, or the job ends here. One that has not the bytes that it says (those of /proc and
    /// /sys) is a stream.
    fn add(&mut self, store: &Stores, file: InputFile) -> Result<()> {
        if file.path.is_remote() {
            // Its length is known; whether it can be read, its first reader finds out.
        } else if states_another_length(store, &file.path, file.stat.bytes)? {
            return self.open_stream(file.path.as_typed());
        } else {
            store.check_readable(&file.path)?;
        }
        self.codecs.push(codec_of_whole(store, &file)?);
        self.files.push(file);
        Ok(())
    }

    /// The files alone, to be read again.
    pub(super) fn files_again(&self) -> Self {
        SortInput {
            files: self.files.clone(),
            codecs: self.codecs.clone(),
            streams: Vec::new(),
            table: self.table.clone(),
        }
    }

    /// Whether nobody knows how many bytes there are: of streams, and of compressed files.
    pub(super) fn has_unknown_bytes(&self) -> bool {
        !self.streams.is_empty() || self.has_compressed()
    }

    /// Whether there are compressed files.
    pub(super) fn has_compressed(&self) -> bool {
        self.codecs.iter().any(Option::is_some)
    }

    fn open_stream(&mut self, path: &Path) -> Result<()> {
        let file = open_to_read(path)?;
        self.add_stream(show_path(path), file);
        Ok(())
    }

    fn add_stream(&mut self, name: String, file: File) {
        self.streams.push(InputStream {
            place: self.files.len(),
            name,
            file,
            begun: Vec::new(),
        });
    }

    /// The names of the streams.
    pub(super) fn stream_names(&self) -> Vec<String> {
        self.streams
            .iter()
            .map(|stream| stream.name.clone())
            .collect()
    }

    /// Bytes of the files.
    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.stat.bytes).sum()
    }

    /// The mean length of lines, as far as a few places of the files tell.
    pub(super) fn typical_line(&self, store: &Stores) -> Result<u64> {
        const PLACES: u64 = 16;
        const LOOK_BYTES: usize = 4 << 10;
        const UNKNOWN_LINE_BYTES: u64 = 32;
        let mut buffer = [0; LOOK_BYTES];
        let (mut bytes, mut lines) = (0, 0);
        for (file, offset) in self.even_places(self.bytes().div_ceil(PLACES)) {
            let opened = store.open_input(&self.files[file], Caching::Cached)?;
            let read = opened.read_at(&mut buffer, offset)?;
            bytes += read as u64;
            lines += memchr::memchr_iter(b'\n', &buffer[..read]).count() as u64;
        }
        Ok(match bytes {
            0 => UNKNOWN_LINE_BYTES,
            _ => bytes / lines.max(1),
        })
    }

    /// Some of the first lines of a few places of the files: what lines look like. The last one of each place may go on.
    pub(super) fn look<S: Shape>(&self, store: &Stores, lines: S) -> Result<Vec<Vec<u8>>> {
        const PLACES: u64 = 16;
        const LOOK_BYTES: usize = 4 << 10;
        let (mut buffer, mut found) = ([0; LOOK_BYTES], Vec::new());
        for (file, offset) in self.even_places(self.bytes().div_ceil(PLACES)) {
            let opened = store.open_input(&self.files[file], Caching::Cached)?;
            let read = opened.read_at(&mut buffer, offset)?;
            let mut rest = &buffer[..read];
            while let Some(length) = lines.length(rest) {
                let (line, after) = rest.split_at(length);
                found.push(line.to_vec());
                rest = after;
            }
            if !rest.is_empty() {
                found.push(rest.to_vec());
            }
        }
        Ok(found)
    }

    /// Places in the files, `step` bytes apart over all of them that are not compressed: the file's number and the offset in it.
    pub(super) fn even_places(&self, step: u64) -> Vec<(usize, u64)> {
        let (mut places, mut next, mut before) = (Vec::new(), 0, 0);
        for (number, file) in self.files.iter().enumerate() {
            let is_plain = self.codecs.get(number) == Some(&None);
            let end = before + if is_plain { file.stat.bytes } else { 0 };
            while next < end {
                places.push((number, next - before));
                next += step.max(1);
            }
            before = end;
        }
        places
    }
}

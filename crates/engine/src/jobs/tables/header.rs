//! The first row of a file of a table: how far it goes.

use std::ops::Range;

use super::RowsForm;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::record::comment::is_comment;
use gristmill_base::record::table::has_lone_cr;
use gristmill_storage::Caching;
use gristmill_storage::codec::{Codec, Coding, open_file};
use gristmill_storage::input::InputFile;
use gristmill_storage::lines::LineEnd;
use gristmill_storage::stores::Stores;
use gristmill_tasks::spill::rows::never_closes;

/// The longest header.
const HEADER_BYTES_MAX: usize = 8 << 20;

/// Bytes that are read at once to find the end of the header.
const LOOK_BYTES: usize = 64 << 10;

/// The beginning of a source, a file or a stream.
pub(in crate::jobs) struct Beginning {
    /// All that was read.
    pub(in crate::jobs) bytes: Vec<u8>,
    /// Where the first row lies, with its line end.
    header: Range<usize>,
}

impl Beginning {
    /// The first row.
    pub(in crate::jobs) fn header(&self) -> Option<&[u8]> {
        self.bytes.get(self.header.clone())
    }

    /// Where the second row begins.
    pub(in crate::jobs) fn behind_header(&self) -> u64 {
        self.header.end as u64
    }
}

/// Reads a file up to the end of its first row.
pub(in crate::jobs) fn beginning_of_file(
    store: &Stores,
    (file, codec): (&InputFile, Option<Codec>),
    form: RowsForm,
) -> Result<Beginning> {
    let (name, opened) = (
        file.path.to_string(),
        store.open_input(file, Caching::Cached)?,
    );
    if let Some(codec) = codec {
        let coding = Coding::Coded(codec);
        let mut reader = open_file(opened, file.path.as_typed(), coding)?;
        return beginning(|memory| reader.fill(memory), form, &name);
    }
    let mut at = 0;
    let fill = |memory: &mut [u8]| {
        let read = opened.read_at(memory, at)?;
        at += read as u64;
        Ok(read)
    };
    beginning(fill, form, &name)
}

/// The first line of a file, with its end if it has one.
///
/// # Errors
/// The file cannot be read, or the line is longer than a header may be.
pub(in crate::jobs) fn first_line(
    store: &Stores,
    file: &InputFile,
    line_end: LineEnd,
) -> Result<Vec<u8>> {
    let opened = store.open_input(file, Caching::Cached)?;
    let mut reader = open_file(opened, file.path.as_typed(), Coding::Detect)?;
    let mut bytes = Vec::new();
    loop {
        let before = bytes.len();
        bytes.resize(before + LOOK_BYTES, 0);
        let read = reader.fill(&mut bytes[before..])?;
        bytes.truncate(before + read);
        if let Some(end) = memchr::memchr(line_end.byte(), &bytes[before..]) {
            bytes.truncate(before + end + 1);
            return Ok(bytes);
        }
        if read == 0 {
            return Ok(bytes);
        }
        if bytes.len() > HEADER_BYTES_MAX {
            let message = format!("its first line does not end in {HEADER_BYTES_MAX} bytes");
            return Err(Error::new(Kind::BadInput, "read the input", message)
                .with("file", file.path.to_string())
                .advise(match line_end {
                    LineEnd::Lf => "check that it has lines, which end with LF",
                    LineEnd::Nul => "check that it has lines, which end with NUL",
                }));
        }
    }
}

/// Reads a source up to the end of its first row, and perhaps beyond.
pub(in crate::jobs) fn beginning(
    mut fill: impl FnMut(&mut [u8]) -> Result<usize>,
    form: RowsForm,
    name: &str,
) -> Result<Beginning> {
    let (delimiter, mut ends) = (form.delimiter, form.row_ends());
    // Comments may stand before the row.
    let (mut bytes, mut start, mut at) = (Vec::new(), 0, 0);
    loop {
        bytes.resize(at + LOOK_BYTES, 0);
        let read = fill(&mut bytes[at..])?;
        bytes.truncate(at + read);
        while let Some(length) = ends.rest(&bytes[at..]) {
            at += length;
            if !is_comment(&bytes[start..], form.comment, start == 0) {
                return begun(bytes, start..at, delimiter, name);
            }
            start = at;
        }
        at = bytes.len();
        let row = &bytes[start..];
        if read == 0 && ends.is_quoted() {
            let (error, before) = never_closes(row, delimiter);
            let before = start + before;
            let lines = memchr::memchr_iter(b'\n', &bytes[..before]).count();
            let error = error.with("file", name).with("line", lines + 1);
            return Err(error.with("offset", before));
        }
        let is_comment = is_comment(row, form.comment, start == 0);
        if read == 0 {
            let start = if is_comment { at } else { start };
            return begun(bytes, start..at, delimiter, name);
        }
        if start > HEADER_BYTES_MAX || is_comment && row.len() > HEADER_BYTES_MAX {
            let message = format!("comments go on for {at} bytes before its first row");
            return Err(Error::new(Kind::BadInput, "read the input", message)
                .with("file", name)
                .advise("check what comments begin with, or leave them out first, with grep -v"));
        }
        if row.len() > HEADER_BYTES_MAX {
            check_ends(row, delimiter, name)?;
            let message = format!("its first row does not end in {HEADER_BYTES_MAX} bytes");
            return Err(Error::new(Kind::BadInput, "read the input", message)
                .with("file", name)
                .advise("check that it is a table with a header, and that its quotes are closed"));
        }
    }
}

/// The beginning of a source whose first row is there, once its line ends are checked.
fn begun(bytes: Vec<u8>, header: Range<usize>, delimiter: u8, name: &str) -> Result<Beginning> {
    let row = bytes.get(header.clone()).unwrap_or_default();
    check_ends(row, delimiter, name)?;
    Ok(Beginning { bytes, header })
}

/// Refuses lines that end with CR alone: all of them would be the first row.
fn check_ends(first: &[u8], delimiter: u8, name: &str) -> Result<()> {
    if !has_lone_cr(first, delimiter) {
        return Ok(());
    }
    let message =
        "its first row has a CR that no LF follows, outside of quotes: rows end with LF or CR LF";
    Err(Error::new(Kind::BadInput, "read the input", message)
        .with("file", name)
        .advise(r"if its lines end with CR alone, convert it: tr '\r' '\n' < FILE > NEW"))
}

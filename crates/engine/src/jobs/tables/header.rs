//! The first row of a file of a table: how far it goes.

use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::record::table::{RowEnds, has_lone_cr};
use gristmill_storage::Caching;
use gristmill_storage::codec::{Codec, Coding, open_file};
use gristmill_storage::input::InputFile;
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
    /// Bytes of the first row, with its line end.
    pub(in crate::jobs) header: usize,
}

/// Reads a file up to the end of its first row.
pub(in crate::jobs) fn beginning_of_file(
    store: &Stores,
    (file, codec): (&InputFile, Option<Codec>),
    delimiter: u8,
) -> Result<Beginning> {
    let (name, opened) = (
        file.path.to_string(),
        store.open_input(file, Caching::Cached)?,
    );
    if let Some(codec) = codec {
        let coding = Coding::Coded(codec);
        let mut reader = open_file(opened, file.path.as_typed(), coding)?;
        return beginning(|memory| reader.fill(memory), delimiter, &name);
    }
    let mut at = 0;
    let fill = |memory: &mut [u8]| {
        let read = opened.read_at(memory, at)?;
        at += read as u64;
        Ok(read)
    };
    beginning(fill, delimiter, &name)
}

/// The first line of a file, with its end if it has one.
///
/// # Errors
/// The file cannot be read, or the line is longer than a header may be.
pub(in crate::jobs) fn first_line(store: &Stores, file: &InputFile) -> Result<Vec<u8>> {
    let opened = store.open_input(file, Caching::Cached)?;
    let mut reader = open_file(opened, file.path.as_typed(), Coding::Detect)?;
    let mut bytes = Vec::new();
    loop {
        let before = bytes.len();
        bytes.resize(before + LOOK_BYTES, 0);
        let read = reader.fill(&mut bytes[before..])?;
        bytes.truncate(before + read);
        if let Some(end) = memchr::memchr(b'\n', &bytes[before..]) {
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
                .advise("check that it has lines, which end with LF"));
        }
    }
}

/// Reads a source up to the end of its first row, and perhaps beyond.
pub(in crate::jobs) fn beginning(
    mut fill: impl FnMut(&mut [u8]) -> Result<usize>,
    delimiter: u8,
    name: &str,
) -> Result<Beginning> {
    let (mut bytes, mut ends) = (Vec::new(), RowEnds::of_file(delimiter));
    loop {
        let before = bytes.len();
        bytes.resize(before + LOOK_BYTES, 0);
        let read = fill(&mut bytes[before..])?;
        bytes.truncate(before + read);
        if let Some(length) = ends.rest(&bytes[before..]) {
            return begun(bytes, before + length, delimiter, name);
        }
        if read == 0 && ends.is_quoted() {
            let (error, before) = never_closes(&bytes, delimiter);
            let lines = memchr::memchr_iter(b'\n', &bytes[..before]).count();
            let error = error.with("file", name).with("line", lines + 1);
            return Err(error.with("offset", before));
        }
        if read == 0 {
            let header = bytes.len();
            return begun(bytes, header, delimiter, name);
        }
        if bytes.len() > HEADER_BYTES_MAX {
            check_ends(&bytes, delimiter, name)?;
            let message = format!("its first row does not end in {HEADER_BYTES_MAX} bytes");
            return Err(Error::new(Kind::BadInput, "read the input", message)
                .with("file", name)
                .advise("check that it is a table with a header, and that its quotes are closed"));
        }
    }
}

/// The beginning of a source whose first row has `header` bytes, once its line ends are checked.
fn begun(bytes: Vec<u8>, header: usize, delimiter: u8, name: &str) -> Result<Beginning> {
    check_ends(bytes.get(..header).unwrap_or_default(), delimiter, name)?;
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

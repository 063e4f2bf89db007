//! The headers of tables: a sort of tables reads the first row of each file and stream before anything else.
//!
//! Every file begins with the same header. The output begins with it, too, as the first file has it. With `--no-header` the
//! first row only tells how many columns there are.

use super::SortSpec;
use super::columns::InputTable;
use super::input::SortInput;
use super::keys::Growth;
use crate::jobs::steps::RunningJob;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::record::shape::EndedLineShape;
use gristmill_base::record::table::{RowEnds, has_lone_cr};
use gristmill_base::record::table_keys::{RowCodes, TableSource};
use gristmill_storage::Caching;
use gristmill_storage::codec::{Codec, Coding, open_file};
use gristmill_storage::input::InputFile;
use gristmill_storage::io::stream::{File, read_some};
use gristmill_storage::stores::Stores;
use gristmill_tasks::spill::FirstBytes;
use gristmill_tasks::spill::rows::never_closes;

/// The longest header.
const HEADER_BYTES_MAX: usize = 8 << 20;

/// Bytes that are read at once to find the end of the header.
const LOOK_BYTES: usize = 64 << 10;

/// The beginning of a source, a file or a stream.
struct Beginning {
    /// All that was read.
    bytes: Vec<u8>,
    /// Bytes of the first row, with its line end.
    header: usize,
}

/// Reads the header of each source, and returns the table that the input is, or `None` if the input is not a table. `explain`
/// must not consume streams: for it `reads_streams` is false.
///
/// # Errors
/// A header differs from the first one; a key is not a column of it; options exclude each other.
pub(super) fn find(
    job: &RunningJob<'_>,
    spec: &SortSpec,
    input: &mut SortInput,
    reads_streams: bool,
) -> Result<Option<InputTable>> {
    let Some(mut table) = InputTable::of(spec)? else {
        return Ok(None);
    };
    let delimiter = table.keys.delimiter;
    let mut streams = input.streams.iter_mut().enumerate().peekable();
    for number in 0..=input.files.len() {
        while let Some((stream, read)) = streams.next_if(|(_, stream)| stream.place == number) {
            if !reads_streams {
                continue;
            }
            let mut first = FirstBytes::default();
            let fill = |memory: &mut [u8]| {
                let bytes = wait_for(job, &mut read.file, &read.name, memory)?;
                first.look(memory.get(..bytes).unwrap_or_default(), &read.name)?;
                Ok(bytes)
            };
            let begins = beginning(fill, delimiter, &read.name)?;
            let source = TableSource::Stream(stream);
            table.take(begins.bytes.get(..begins.header), source, &read.name)?;
            read.begun = begins.bytes;
        }
        if let Some(file) = input.files.get(number) {
            let name = file.path.to_string();
            let begins = beginning_of_file(job.store(), (file, input.codecs[number]), delimiter)?;
            let header = begins.bytes.get(..begins.header);
            table.take(header, TableSource::File(number), &name)?;
        }
    }
    table.find_columns(spec)?;
    Ok(Some(table))
}

/// How much longer rows become with the codes of their keys in front: an estimate from a few lines that can be read as rows.
pub(super) fn growth(table: &InputTable, store: &Stores, input: &SortInput) -> Result<Growth> {
    let looked = input.look(store, EndedLineShape { end: b'\n' })?;
    let (mut codes, mut code) = (RowCodes::new(&table.keys)?, Vec::new());
    Ok(Growth::of(looked.iter().filter_map(|line| {
        code.clear();
        codes.encode(line, &mut code).ok()?;
        Some((line.len(), code.len(), line.ends_with(b"\n")))
    })))
}

fn beginning_of_file(
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

/// Reads a source up to the end of its first row, and perhaps beyond.
fn beginning(
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

/// Reads what a stream gives next; 0 bytes at its end.
fn wait_for(job: &RunningJob<'_>, file: &mut File, name: &str, memory: &mut [u8]) -> Result<usize> {
    loop {
        job.check_cancelled()?;
        match read_some(file, memory) {
            Ok(Some(bytes)) => return Ok(bytes),
            Ok(None) => {}
            Err(error) => return Err(Error::from_io("read the input", name.as_ref(), &error)),
        }
    }
}

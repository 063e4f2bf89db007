//! Tables: their headers, which are read before anything else.
//!
//! Every file begins with a header, the same one. The first one is kept, and is the first row of the output. Without headers,
//! the first row says how many columns there are.

use super::SortSpec;
use super::columns::Table;
use super::input::Input;
use super::keys::Growth;
use crate::codec::{Codec, Coding, open_file};
use crate::error::{Error, Kind, Result};
use crate::jobs::steps::Job;
use crate::record::shape::Ended;
use crate::record::table::{RowEnds, has_lone_cr};
use crate::record::table_keys::{RowCodes, TableSource};
use crate::spill::FirstBytes;
use crate::spill::rows::never_closes;
use crate::storage::Caching;
use crate::storage::input::InputFile;
use crate::storage::stores::Stores;
use crate::storage::stream::{File, read_some};

/// The longest header.
const HEADER_BYTES_MAX: usize = 8 << 20;

/// Bytes that are read at once to find the header.
const LOOK_BYTES: usize = 64 << 10;

/// What the beginning of a source is.
struct Beginning {
    /// All that was read.
    bytes: Vec<u8>,
    /// How much of it is the first row, with its end.
    header: usize,
}

/// The table that the input is, whose beginnings are read; `None` where it is none. What explains a job reads no stream.
///
/// # Errors
/// A header is another one than the first; a key is no column of it; options exclude each other.
pub(super) fn find(
    job: &Job<'_>,
    spec: &SortSpec,
    input: &mut Input,
    reads_streams: bool,
) -> Result<Option<Table>> {
    let Some(mut table) = Table::of(spec)? else {
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

/// How much longer rows become, as far as a few lines tell that seem to be rows.
pub(super) fn growth(table: &Table, store: &Stores, input: &Input) -> Result<Growth> {
    let looked = input.look(store, Ended { end: b'\n' })?;
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

/// Reads up to the end of the first row.
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

/// What the beginning of a source is, once the end of its first row is known.
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
fn wait_for(job: &Job<'_>, file: &mut File, name: &str, memory: &mut [u8]) -> Result<usize> {
    loop {
        job.check_cancelled()?;
        match read_some(file, memory) {
            Ok(Some(bytes)) => return Ok(bytes),
            Ok(None) => {}
            Err(error) => return Err(Error::from_io("read the input", name.as_ref(), &error)),
        }
    }
}

//! Tables: what the options say of them, which columns their keys are, and where their files are cut into tasks.
//!
//! ```text
//!   --csv --key price:num:desc,name ──▶ keys as asked for ──header──▶ columns 2, 0
//! ```
//!
//! Every file begins with a header, the same one. The first one is kept, and is the first row of the output.

use std::os::unix::ffi::OsStrExt;

use super::SortSpec;
use super::input::Input;
use super::keys::Growth;
use crate::codec::{Coding, open_file};
use crate::error::{Error, Kind, Result};
use crate::jobs::steps::Job;
use crate::names;
use crate::plan::format::Format;
use crate::record::shape::{Ended, Keyed};
use crate::record::table::{RowEnds, names_in};
use crate::record::table_keys::{ColumnKey, RowCodes, TableKeys, TableSource};
use crate::spill::rows::never_closes;
use crate::split::Split;
use crate::storage::Caching;
use crate::storage::input::{InputFile, InputRange};
use crate::storage::stores::Stores;
use crate::storage::stream::{File, read_some};
use crate::storage::window::in_order;

/// The longest header.
const HEADER_BYTES_MAX: usize = 8 << 20;

/// Bytes that are read at once to find the header.
const LOOK_BYTES: usize = 64 << 10;

/// Bytes that are read at once to find where rows begin.
const SCAN_BYTES: usize = 4 << 20;

/// Columns that an error names, at most.
const COLUMNS_SHOWN: usize = 50;

/// Words behind a column, and GNU sort's letters for them.
const ORDERS: [(&str, &str); 8] = [
    ("asc", ""),
    ("desc", "r"),
    ("num", "g"),
    ("text", ""),
    ("nocase", "f"),
    ("version", "V"),
    ("human", "h"),
    ("month", "M"),
];

/// What all rows of the input have in common.
#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) keys: TableKeys,
    /// The names of the columns.
    names: Vec<Vec<u8>>,
    /// Where the header was found first.
    of: String,
}

/// A key as it was asked for.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    name: Vec<u8>,
    letters: String,
}

/// What the beginning of a source is.
struct Beginning {
    /// All that was read.
    bytes: Vec<u8>,
    /// How much of it is the first row, with its end.
    header: usize,
}

impl Table {
    /// That of the input, whose beginnings are read; `None` where it is no table. What explains a job reads no stream.
    ///
    /// # Errors
    /// A header is another one than the first; a key is no column of it; options exclude each other.
    pub(super) fn find(
        job: &Job<'_>,
        spec: &SortSpec,
        input: &mut Input,
        reads_streams: bool,
    ) -> Result<Option<Self>> {
        let Some(delimiter) = delimiter_of(spec)? else {
            return Ok(None);
        };
        let asked = asked_of(spec)?;
        let mut table = Table {
            keys: TableKeys {
                delimiter,
                columns: 0,
                keys: Vec::new(),
                skip_bad: spec.skip_bad.unwrap_or(0) as u64,
                ending: "\n".to_owned(),
                header: None,
            },
            names: Vec::new(),
            of: String::new(),
        };
        let mut streams = input.streams.iter_mut().enumerate().peekable();
        for number in 0..=input.files.len() {
            while let Some((stream, read)) = streams.next_if(|(_, stream)| stream.place == number) {
                if !reads_streams {
                    continue;
                }
                let fill = |memory: &mut [u8]| wait_for(job, &mut read.file, &read.name, memory);
                let begins = beginning(fill, delimiter, &read.name)?;
                let source = TableSource::Stream(stream);
                table.take(begins.bytes.get(..begins.header), source, &read.name)?;
                read.begun = begins.bytes;
            }
            if let Some(file) = input.files.get(number) {
                let name = file.path.to_string();
                let coding = input.codecs[number].map_or(Coding::Plain, Coding::Coded);
                let opened = job.store().open_input(file, Caching::Cached)?;
                let mut reader = open_file(opened, file.path.as_typed(), coding)?;
                let begins = beginning(|memory| reader.fill(memory), delimiter, &name)?;
                let header = begins.bytes.get(..begins.header);
                table.take(header, TableSource::File(number), &name)?;
            }
        }
        table.keys.keys = table.columns_of(asked)?;
        RowCodes::new(&table.keys)?;
        Ok(Some(table))
    }

    /// What a row is in runs: equal keys leave rows in the order of the input.
    pub(super) fn shape() -> Keyed {
        Keyed { whole_lines: false }
    }

    /// What lines look like, for whom no quotes matter.
    pub(super) fn lines() -> Ended {
        Ended { end: b'\n' }
    }

    /// How much longer rows become, as far as a few lines tell that seem to be rows.
    pub(super) fn growth(&self, store: &Stores, input: &Input) -> Result<Growth> {
        let looked = input.look(store, Table::lines())?;
        let (mut codes, mut code) = (RowCodes::new(&self.keys)?, Vec::new());
        Ok(Growth::of(looked.iter().filter_map(|line| {
            code.clear();
            codes.encode(line, &mut code).ok()?;
            Some((line.len(), code.len(), line.ends_with(b"\n")))
        })))
    }

    /// Takes the header of the next source.
    fn take(&mut self, header: Option<&[u8]>, source: TableSource, name: &str) -> Result<()> {
        let Some(header) = header.filter(|header| !header.is_empty()) else {
            return Ok(()); // an empty file has nothing, not even a header
        };
        let names = names_in(header, self.keys.delimiter);
        if self.keys.header.is_none() {
            self.keys.header = Some(source);
            self.keys.columns = names.len();
            if header.ends_with(b"\r\n") {
                "\r\n".clone_into(&mut self.keys.ending);
            }
            (self.names, self.of) = (names, name.to_owned());
        } else if self.names != names {
            let message = format!("its header is not that of {}", self.of);
            return Err(Error::new(Kind::BadInput, "read the input", message)
                .with("file", name)
                .with("header", shown(&names))
                .with("the other one", shown(&self.names))
                .advise("give files with the same header, or sort them one by one"));
        }
        Ok(())
    }

    /// The columns of keys; all columns in their order, where none is asked for.
    fn columns_of(&self, asked: Vec<Asked>) -> Result<Vec<ColumnKey>> {
        let all = asked.len() == 1 && asked.iter().any(|key| key.name.is_empty());
        if self.keys.header.is_none() {
            return Ok(Vec::new()); // there are no rows
        }
        if all {
            let letters = asked.into_iter().map(|key| key.letters).collect::<String>();
            let key = |column| ColumnKey {
                column,
                letters: letters.clone(),
            };
            return Ok((0..self.keys.columns).map(key).collect());
        }
        let column = |key: Asked| {
            Ok(ColumnKey {
                column: self.column(&key.name)?,
                letters: key.letters,
            })
        };
        asked.into_iter().map(column).collect()
    }

    /// The column of this name, or of this number, from 1 on.
    fn column(&self, name: &[u8]) -> Result<usize> {
        let mut named = (0..self.names.len()).filter(|column| self.names[*column] == name);
        let text = String::from_utf8_lossy(name);
        match (named.next(), named.next()) {
            (Some(column), None) => return Ok(column),
            (Some(first), Some(second)) => {
                let message = format!("the header has several columns {text:?}");
                return Err(wrong(message).with("file", &self.of).advise(format!(
                    "give a number: {} or {}",
                    first + 1,
                    second + 1
                )));
            }
            _ => {}
        }
        let number: Option<usize> = text.parse().ok();
        if let Some(number) = number.filter(|number| (1..=self.names.len()).contains(number)) {
            return Ok(number - 1);
        }
        let words: Vec<_> = ORDERS.iter().map(|(word, _)| *word).collect();
        Err(wrong(format!("there is no column {text:?}"))
            .with("file", &self.of)
            .with("columns", shown(&self.names))
            .advise(format!(
                "give one of these columns, or its number from 1 on; behind it may stand :{}",
                words.join(", :")
            )))
    }

    /// Moves the borders of splits to where rows begin, which takes a look at all bytes before them.
    pub(super) fn at_rows(
        &self,
        job: &Job<'_>,
        files: &[InputFile],
        splits: Vec<Split>,
    ) -> Result<Vec<Split>> {
        let mut starts = Starts::default();
        let mut cut = Vec::with_capacity(splits.len());
        for split in splits {
            let mut moved = Split::new();
            for piece in split {
                let file = &files[piece.file];
                let start = starts.of(job, (piece.file, file), piece.offset, self)?;
                let end = starts.of(job, (piece.file, file), piece.offset + piece.bytes, self)?;
                if start < end {
                    moved.push(InputRange {
                        file: piece.file,
                        offset: start,
                        bytes: end - start,
                    });
                }
            }
            if !moved.is_empty() {
                cut.push(moved);
            }
        }
        Ok(cut)
    }
}

/// Where the first row begins at or behind offsets of files, which are asked for in their order.
#[derive(Default)]
struct Starts {
    scan: Option<(usize, Scan)>,
}

impl Starts {
    fn of(
        &mut self,
        job: &Job<'_>,
        (number, input): (usize, &InputFile),
        offset: u64,
        table: &Table,
    ) -> Result<u64> {
        if offset == 0 || offset >= input.stat.bytes {
            return Ok(offset);
        }
        let scan = match self.scan.take() {
            Some((of, scan)) if of == number => scan,
            _ => Scan::begin(job.store(), input, table.keys.delimiter)?,
        };
        let (_, scan) = self.scan.insert((number, scan));
        scan.row_start(offset, input.stat.bytes, || job.check_cancelled())
    }
}

/// How far a file was looked at.
struct Scan {
    file: Box<dyn crate::storage::ReadFile>,
    ends: RowEnds,
    block: Vec<u8>,
    /// Where in the file the block begins, and how much of it is there.
    at: u64,
    filled: usize,
    /// How much of it was looked at.
    looked: usize,
    /// Where the row began that was found last.
    found: u64,
}

impl Scan {
    fn begin(store: &Stores, input: &InputFile, delimiter: u8) -> Result<Self> {
        let opened = store.open_input(input, Caching::Cached)?;
        Ok(Scan {
            file: in_order(opened, 0..input.stat.bytes),
            ends: RowEnds::of_file(delimiter),
            block: vec![0; SCAN_BYTES],
            at: 0,
            filled: 0,
            looked: 0,
            found: 0,
        })
    }

    /// Where the first row begins at or behind `offset`, or the file's end. Offsets ascend.
    fn row_start(
        &mut self,
        offset: u64,
        file_bytes: u64,
        mut stop: impl FnMut() -> Result<()>,
    ) -> Result<u64> {
        while self.found < offset {
            let rest = self.block.get(self.looked..self.filled).unwrap_or_default();
            // Before the offset, no row's beginning is of interest.
            let wanted = offset.saturating_sub(self.at) as usize;
            let before = wanted.min(self.filled).saturating_sub(self.looked);
            let before = rest.get(..before).unwrap_or_default();
            let passed = self.ends.pass_over(before);
            if passed > 0 {
                let ended = before.get(passed - 1) == Some(&b'\n');
                self.looked += passed;
                if ended {
                    self.found = self.at + self.looked as u64;
                }
                continue;
            }
            if let Some(length) = self.ends.rest(rest) {
                self.looked += length;
                self.found = self.at + self.looked as u64;
                continue;
            }
            self.at += self.filled as u64;
            stop()?;
            self.filled = self.file.read_at(&mut self.block, self.at)?;
            self.looked = 0;
            if self.filled == 0 {
                self.found = file_bytes;
            }
        }
        Ok(self.found)
    }
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
            let header = before + length;
            return Ok(Beginning { bytes, header });
        }
        if read == 0 && ends.is_quoted() {
            let (error, before) = never_closes(&bytes, delimiter);
            let lines = memchr::memchr_iter(b'\n', &bytes[..before]).count();
            let error = error.with("file", name).with("line", lines + 1);
            return Err(error.with("offset", before));
        }
        if read == 0 {
            let header = bytes.len();
            return Ok(Beginning { bytes, header });
        }
        if bytes.len() > HEADER_BYTES_MAX {
            let message = format!("its first row does not end in {HEADER_BYTES_MAX} bytes");
            return Err(Error::new(Kind::BadInput, "read the input", message)
                .with("file", name)
                .advise("check that it is a table with a header, and that its quotes are closed"));
        }
    }
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

/// The byte between fields; `None` where the input is no table.
fn delimiter_of(spec: &SortSpec) -> Result<Option<u8>> {
    if !spec.is_table() {
        return match spec.skip_bad {
            None => Ok(None),
            Some(_) => Err(wrong("skip_bad is for tables: lines are never bad")
                .advise("leave it out, or say that the input is csv or tsv")),
        };
    }
    let excluded = [
        (spec.csv && spec.tsv, "csv and tsv exclude each other"),
        (
            spec.format != Format::Lines,
            "a table has lines, and no records of one length",
        ),
        (spec.zero_terminated, "rows of a table do not end with NUL"),
    ];
    if let Some((_, why)) = excluded.iter().find(|(is_given, _)| *is_given) {
        return Err(wrong(*why).advise("give one of them"));
    }
    let usual = if spec.tsv { b'\t' } else { b',' };
    let Some(given) = &spec.field_separator else {
        return Ok(Some(usual));
    };
    match names::name_of(given.clone()).as_bytes() {
        b"\\t" => Ok(Some(b'\t')),
        [byte] if !b"\"\r\n".contains(byte) => Ok(Some(*byte)),
        _ => Err(
            wrong(format!("{given:?} does not separate the fields of a table"))
                .advise("give one byte, which is neither a quote nor the end of a line: -t ';'"),
        ),
    }
}

/// The keys that the options ask for: at least one, without a name where it is for all columns.
fn asked_of(spec: &SortSpec) -> Result<Vec<Asked>> {
    let letters = letters_of(spec)?;
    if spec.key.is_empty() {
        let name = Vec::new();
        return Ok(vec![Asked { name, letters }]);
    }
    let mut asked = Vec::new();
    for given in &spec.key {
        let given = names::name_of(given.clone());
        let mut fields = Vec::new();
        crate::record::table::fields_of(given.as_bytes(), b',', &mut fields);
        for field in fields {
            let field = given.as_bytes().get(field).unwrap_or_default();
            asked.push(asked_in(field, &letters)?);
        }
    }
    Ok(asked)
}

/// A column with what stands behind it.
fn asked_in(field: &[u8], otherwise: &str) -> Result<Asked> {
    let mut words = Vec::new();
    let mut name = field;
    while let Some(colon) = memchr::memrchr(b':', name) {
        let (before, word) = name.split_at(colon);
        let order = ORDERS
            .iter()
            .find(|(known, _)| known.as_bytes() == &word[1..]);
        let Some((_, letters)) = order else { break };
        words.push(*letters);
        name = before;
    }
    let letters = match words.len() {
        0 => otherwise.to_owned(),
        _ => words.concat(),
    };
    let mut room = Vec::new();
    let name = crate::record::table::value_of(name, &mut room).to_vec();
    if name.is_empty() {
        return Err(wrong("a key names no column")
            .advise("give columns with commas between them: price:num:desc,name"));
    }
    Ok(Asked { name, letters })
}

/// What the options say of keys that say nothing of themselves.
fn letters_of(spec: &SortSpec) -> Result<String> {
    let flags = [
        (spec.numeric_sort, 'n'),
        (spec.general_numeric_sort, 'g'),
        (spec.human_numeric_sort, 'h'),
        (spec.version_sort, 'V'),
        (spec.month_sort, 'M'),
        (spec.ignore_case, 'f'),
        (spec.dictionary_order, 'd'),
        (spec.ignore_nonprinting, 'i'),
        (spec.ignore_leading_blanks, 'b'),
        (spec.reverse, 'r'),
    ];
    let given = flags.iter().filter(|(is_given, _)| *is_given);
    let mut letters: String = given.map(|(_, letter)| *letter).collect();
    if let Some(word) = &spec.sort {
        const WORDS: [(&str, char); 5] = [
            ("general-numeric", 'g'),
            ("human-numeric", 'h'),
            ("month", 'M'),
            ("numeric", 'n'),
            ("version", 'V'),
        ];
        let known = WORDS.iter().find(|(known, _)| known == word);
        let Some((_, letter)) = known else {
            let words: Vec<_> = WORDS.iter().map(|(known, _)| *known).collect();
            return Err(wrong(format!("{word:?} is no order"))
                .advise(format!("give one of {}", words.join(", "))));
        };
        letters.push(*letter);
    }
    Ok(letters)
}

/// Names of columns, for people.
fn shown(names: &[Vec<u8>]) -> String {
    let name = |name: &Vec<u8>| String::from_utf8_lossy(name).into_owned();
    let mut all: Vec<String> = names.iter().take(COLUMNS_SHOWN).map(name).collect();
    if names.len() > COLUMNS_SHOWN {
        all.push(format!("and {} more", names.len() - COLUMNS_SHOWN));
    }
    all.join(", ")
}

fn wrong(message: impl Into<String>) -> Error {
    Error::new(Kind::BadOption, "read the options", message)
}

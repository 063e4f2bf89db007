//! `split`: a file for each value of some columns, with the rows that have it, as they stood and in their order.
//!
//! ```text
//!   row ──▶ key: the name of its file │ value: the row ── sorted, merged ──▶ begin(name) row row ...
//! ```
//!
//! Two values never have the same name: [`file_name`] writes each in a way of its own. So the name is the key, and a reducer has
//! one file open at a time, however many there are. Files of so many records or bytes have numbers (`numbered.rs`).

mod numbered;

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use self::numbered::{FileSize, NumberedOperator};
use super::kind::Described;
use super::mapreduce::{NativeJob, NativeOutput, wrong_option};
use super::tables::{
    FieldsAsked, InputTable, RecordFields, RecordsAsked, json_lines, record_options,
};
use crate::plan::amount::{ByteAmount, check_count};
use crate::plan::table::{CommandSpec, Common, argument, option};
use gristmill_base::error::Result;
use gristmill_storage::location::Location;
use gristmill_tasks::merge::groups::MergedGroups;
use gristmill_tasks::task::{Mapper, Operator, Pairs, PartFiles, Records, Reducer};

/// Files that an output has at most, unless somebody says otherwise.
const FILES_MAX: u64 = 100_000;

/// The most that somebody may say: each is named in `_SUCCESS`, which is read as a whole.
const FILES_MAX_MAX: usize = 1_000_000;

/// Bytes of the longest suffix.
const SUFFIX_BYTES_MAX: usize = 32;

/// Bytes of the longest name without its suffix that is not cut, and of what is left of one that is.
const NAME_BYTES_MAX: usize = 200;
const CUT_BYTES: usize = 150;

/// Pairs that are written in one step.
const PAIRS_A_STEP: usize = 1 << 12;

record_options! {
    /// Options of `split`, as given.
    pub(in crate::jobs) struct SplitSpec {
        inputs: Vec<Location> = argument(
            "Files, or directories whose files are read (not those whose names begin with _ or .); compressed ones, too, and tables of Parquet, if their names end in .parquet; - is standard input.",
        ),
        output: Location = argument("The directory to make."),
        by: Vec<String> = option(
            "either this, lines or bytes must be given",
            "The columns whose values get files, with commas between them: by name, or by number from 1 on. Repeatable.",
        ).short("b"),
        lines: Option<usize> = option(
            "either this, by or bytes must be given",
            "Write files of so many lines, or rows of a table, in the order of the input: part-00000 and so on. The last one may have \
             fewer.",
        ).short("l"),
        bytes: Option<ByteAmount> = option(
            "either this, by or lines must be given",
            "Write files of at most so many bytes, such as 64M, of whole lines or rows, with the header: as split -C does it, but a \
             longer record is not cut, and has a file of its own.",
        ).short("C"),
        jsonl: bool = json_lines(),
        suffix: Option<String> = option(
            ".csv, .tsv, .jsonl or .txt, as the records are",
            "What the name of each file ends with.",
        ),
        max_files: Option<usize> = option(
            "100000",
            "Fail if there would be more files, and make none.",
        ),
        parts: Option<usize> = option(
            "one for each 256 MB of input",
            "How many tasks write the files of values. The output does not depend on it.",
        ),
    }
}

impl Described for SplitSpec {
    const COMMAND: CommandSpec = CommandSpec {
        name: "split",
        function: Some("split_by"),
        help: "Split tables, or lines, into files: one for each value of a column, named after it, or of so many lines or bytes.",
        details: "Each file has the header, and its rows in the order of the input.",
        example: "gristmill split --csv --by country orders.csv by-country/",
        python: r#"
>>> import tempfile, gristmill
>>> from pathlib import Path
>>> with tempfile.TemporaryDirectory() as folder:
...     _ = Path(folder, "table").write_text("city,price\nRome,2\nBern,0.5\nRome,3\n")
...     report = gristmill.split_by(f"{folder}/table", f"{folder}/out", csv=True, by=["city"])
...     print(Path(folder, "out/Rome.csv").read_text(), end="")
city,price
Rome,2
Rome,3
"#,
        explained: true,
        own: Self::OPTIONS,
        common: Common::NAMES,
    };
}

impl SplitSpec {
    fn most_files(&self) -> u64 {
        self.max_files.map_or(FILES_MAX, |most| most as u64)
    }

    fn fields_asked(&self) -> FieldsAsked<'_> {
        self.asked().of_objects(self.jsonl, &self.by)
    }

    /// What names end with.
    fn ending(&self) -> Result<String> {
        let Some(given) = &self.suffix else {
            let usual = match (self.csv, self.tsv, self.jsonl) {
                (true, ..) => ".csv",
                (_, true, _) => ".tsv",
                (_, _, true) => ".jsonl",
                _ => ".txt",
            };
            return Ok(usual.to_owned());
        };
        let is_plain = |char: char| !char.is_control() && char != '/';
        if given.len() > SUFFIX_BYTES_MAX || !given.chars().all(is_plain) {
            let message = format!("{given:?} is not a suffix of a file name");
            return Err(wrong_option("suffix", &message).advise(format!(
                "give at most {SUFFIX_BYTES_MAX} bytes without / and control characters, such as .txt"
            )));
        }
        Ok(given.clone())
    }
}

impl NativeJob for SplitSpec {
    fn inputs(&self) -> Vec<&[Location]> {
        vec![&self.inputs]
    }

    fn output(&self) -> NativeOutput<'_> {
        NativeOutput::NamedFiles(&self.output, self.most_files())
    }

    fn parts(&self) -> Result<Option<usize>> {
        Ok(FileSize::of(self)?.map_or(self.parts, |_| Some(1)))
    }

    fn records(&self) -> Result<RecordsAsked> {
        match FileSize::of(self)? {
            Some(_) => self.fields_asked().whole_records(1),
            None => self.fields_asked().records(1, Vec::new()),
        }
    }

    fn operator(&self, tables: &[InputTable]) -> Result<Box<dyn Operator>> {
        check_count("max_files", self.max_files, FILES_MAX_MAX)?;
        let fields = self.fields_asked().fields(tables.first())?;
        if let Some(size) = FileSize::of(self)? {
            let many = match self.records()? {
                RecordsAsked::Lines(end) => Some(end),
                _ => None,
            };
            let files = NumberedOperator::new(self, size, (&fields, many))?;
            return Ok(Box::new(files));
        }
        let by = fields.columns(&self.by)?;
        if by.is_empty() {
            return Err(wrong_option("by", "nothing says how to split").advise(
                "give --by city, --by 1 for the first column, --lines 1000 or --bytes 64M",
            ));
        }
        let end = match fields {
            RecordFields::Lines(end, _) => end.text().as_bytes(),
            RecordFields::Table(_) | RecordFields::Objects(_) => b"",
        };
        Ok(Box::new(SplitOperator {
            by,
            suffix: self.ending()?,
            header: fields.header(),
            fields,
            end,
            files_max: self.most_files(),
        }))
    }
}

/// Writes the name of the file of some values, without its suffix.
///
/// Letters and digits of ASCII, `.`, `-`, `_` and blanks between others stand for themselves, all other bytes as `%` and two
/// digits: so no value looks like two with a comma between them, or like the words that begin with `%` here. `%empty` is an empty
/// value. A name of its own has each that would be hidden, an option of a command, or a part. One that is too long is cut, and
/// its SHA-256 stands for the rest.
fn file_name<'v>(values: impl Iterator<Item = &'v [u8]>, name: &mut Vec<u8>) {
    name.clear();
    for (number, value) in values.enumerate() {
        if number > 0 {
            name.push(b',');
        }
        escape(value, name);
    }
    if name.starts_with(b"part-") {
        name.splice(..1, *b"%70");
    }
    if name.len() > NAME_BYTES_MAX {
        cut(name);
    }
}

/// Writes a value in bytes that any file system takes.
fn escape(value: &[u8], name: &mut Vec<u8>) {
    if value.is_empty() {
        name.extend_from_slice(b"%empty");
    }
    let last = value.len().saturating_sub(1);
    for (at, byte) in value.iter().enumerate() {
        let stands = match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => true,
            b'-' | b'_' => at > 0,
            b'.' | b' ' => at > 0 && at < last,
            _ => false,
        };
        match stands {
            true => name.push(*byte),
            false => name.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]),
        }
    }
}

/// A hexadecimal digit.
fn digit(nibble: u8) -> u8 {
    match nibble {
        0..=9 => b'0' + nibble,
        _ => b'A' - 10 + nibble,
    }
}

/// Cuts a name, and has its SHA-256 stand for the rest.
fn cut(name: &mut Vec<u8>) {
    let hash = Sha256::digest(&*name);
    name.truncate(CUT_BYTES);
    name.extend_from_slice(b"%cut-");
    let mut digits = String::new();
    for byte in hash.iter().take(20) {
        let _ = write!(digits, "{byte:02x}"); // to a string, which takes all
    }
    name.extend_from_slice(digits.as_bytes());
}

/// Splits rows.
#[derive(Debug)]
struct SplitOperator {
    by: Vec<usize>,
    fields: RecordFields,
    suffix: String,
    header: Vec<u8>,
    /// The end of a record, where it comes without it.
    end: &'static [u8],
    files_max: u64,
}

impl Operator for SplitOperator {
    fn header(&self) -> &[u8] {
        &self.header
    }

    fn files_max(&self) -> Option<u64> {
        Some(self.files_max)
    }

    fn mapper(&self, _memory: usize) -> Result<Box<dyn Mapper + '_>> {
        Ok(Box::new(SplitMapper {
            split: self,
            name: Vec::new(),
            rooms: vec![Vec::new(); self.by.len()],
            record: Vec::new(),
        }))
    }

    fn reducer(&self, _memory: usize) -> Result<Box<dyn Reducer + '_>> {
        Ok(Box::new(SplitReducer {
            split: self,
            inside: false,
        }))
    }
}

struct SplitMapper<'o> {
    split: &'o SplitOperator,
    name: Vec<u8>,
    /// For values that do not lie in one piece.
    rooms: Vec<Vec<u8>>,
    record: Vec<u8>,
}

impl Mapper for SplitMapper<'_> {
    fn records(&mut self, record: &Records<'_>, pairs: &mut Pairs<'_>) -> Result<()> {
        let SplitOperator {
            by, fields, end, ..
        } = self.split;
        let columns = by.iter().zip(&mut self.rooms);
        let values = columns.map(|(column, room)| fields.value(record, *column, room));
        file_name(values, &mut self.name);
        if end.is_empty() {
            return pairs.give(&self.name, b"", record.bytes);
        }
        self.record.clear();
        self.record.extend_from_slice(record.bytes);
        self.record.extend_from_slice(end);
        pairs.give(&self.name, b"", &self.record)
    }
}

struct SplitReducer<'o> {
    split: &'o SplitOperator,
    /// Whether there may be more records of the file that was begun.
    inside: bool,
}

impl Reducer for SplitReducer<'_> {
    fn next(&mut self, groups: &mut MergedGroups, part: &mut PartFiles) -> Result<bool> {
        if !self.inside {
            if !groups.next_group()? {
                return Ok(false);
            }
            let name = String::from_utf8_lossy(groups.key());
            part.begin([&*name, &self.split.suffix].concat())?;
            self.inside = true;
        }
        for _ in 0..PAIRS_A_STEP {
            if !groups.next_pair()? {
                self.inside = false;
                break;
            }
            part.record(groups.value())?;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn name(values: &[&[u8]]) -> String {
        let mut name = Vec::new();
        file_name(values.iter().copied(), &mut name);
        String::from_utf8(name).unwrap()
    }

    #[test]
    fn names_are_readable_and_safe() {
        for (value, wanted) in [
            (&b"Rome"[..], "Rome"),
            (b"New York", "New York"),
            (b"2026-03-01", "2026-03-01"),
            (b"1.5", "1.5"),
            (b"", "%empty"),
            (b".", "%2E"),
            (b"..", "%2E%2E"),
            (b"a.", "a%2E"),
            (b" a ", "%20a%20"),
            (b"_SUCCESS", "%5FSUCCESS"),
            (b"-rf", "%2Drf"),
            (b"part-r-00000", "%70art-r-00000"),
            (b"a/b", "a%2Fb"),
            (b"a,b", "a%2Cb"),
            (b"100%", "100%25"),
            (b"%empty", "%25empty"),
            (b"\0\n\xff", "%00%0A%FF"),
            ("Zürich".as_bytes(), "Z%C3%BCrich"),
        ] {
            assert_eq!(name(&[value]), wanted);
        }
        assert_eq!(name(&[b"a", b"", b"b"]), "a,%empty,b");
    }

    #[test]
    fn two_values_have_two_names() {
        let long = |last: u8| [&[b'a'; 400][..], &[last]].concat();
        let values = [long(0), long(1), vec![b'a'; 400], vec![b'a'; 200]];
        let names: BTreeSet<String> = values.iter().map(|value| name(&[value])).collect();
        assert_eq!(names.len(), values.len());
        assert!(names.iter().all(|name| name.len() <= NAME_BYTES_MAX));
        // A value that is the cut name of another.
        let cut = name(&[&long(0)]);
        assert_ne!(name(&[cut.as_bytes()]), cut);
        let bytes: BTreeSet<String> = (0..=255).map(|byte| name(&[&[byte]])).collect();
        assert_eq!(bytes.len(), 256);
        assert_ne!(name(&[b"a,b"]), name(&[b"a", b"b"]));
    }
}

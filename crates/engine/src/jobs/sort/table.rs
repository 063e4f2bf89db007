//! The headers of tables: a sort of tables reads the first row of each file and stream before anything else.
//!
//! Every file begins with the same header. The output begins with it, too, as the first file has it. With `--no-header` the
//! first row only tells how many columns there are.

use super::SortSpec;
use super::input::SortInput;
use super::keys::Growth;
use crate::jobs::steps::RunningJob;
use crate::jobs::tables::{
    InputTable, RequestedKey, RowsForm, asked_in_all, beginning, beginning_of_file, rows_of, wrong,
};
use crate::plan::format::RecordFormat;
use gristmill_base::error::{Error, Result};
use gristmill_base::record::shape::EndedLineShape;
use gristmill_base::record::table_keys::{RowCodes, TableSource};
use gristmill_storage::io::stream::{File, read_some};
use gristmill_storage::stores::Stores;
use gristmill_tasks::spill::FirstBytes;

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
    let Some(form) = form_of(spec)? else {
        return Ok(None);
    };
    let mut table = InputTable::new(form);
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
            let begins = beginning(fill, form, &read.name)?;
            let source = TableSource::Stream(stream);
            table.take(begins.header(), source, &read.name)?;
            read.begun = begins.bytes;
        }
        if let Some(file) = input.files.get(number) {
            let name = file.path.to_string();
            let begins = beginning_of_file(job.store(), (file, input.codecs[number]), form)?;
            table.take(begins.header(), TableSource::File(number), &name)?;
        }
    }
    table.find_columns(asked_of(spec)?)?;
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

/// How the rows are read; `None` where the input is no table.
fn form_of(spec: &SortSpec) -> Result<Option<RowsForm>> {
    let Some(form) = rows_of!(spec).form()? else {
        return Ok(None);
    };
    if spec.format != RecordFormat::Lines {
        let why = "a table has lines, and no records of one length";
        return Err(wrong(why).advise("give one of them"));
    }
    Ok(Some(form))
}

/// The keys that the options ask for: at least one, without a name where it is for all columns.
pub(super) fn asked_of(spec: &SortSpec) -> Result<Vec<RequestedKey>> {
    let letters = letters_of(spec)?;
    if spec.key.is_empty() {
        let name = Vec::new();
        return Ok(vec![RequestedKey { name, letters }]);
    }
    asked_in_all(&spec.key, &letters)
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
            return Err(wrong(format!("{word:?} is not an order"))
                .advise(format!("give one of {}", words.join(", "))));
        };
        letters.push(*letter);
    }
    Ok(letters)
}

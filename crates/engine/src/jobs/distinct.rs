//! `distinct`: one of each line, or one record of each key; how often each occurs, those that occur again, those that do not.
//!
//! ```text
//!   record ──▶ code of its keys │ place, record, how many ── brought together ──▶ place │ record ── sorted ──▶ record
//!                                                                 └── --sorted ─────────────────────────────▶ record
//! ```
//!
//! Of whole lines the code is the line, which is not kept twice; with `--sorted` they are only counted ([`CountedKeys`]).
//! The output is in the order of the input: the place of the record that is kept counts. Parts are ranges of the input.
//! Keys are compared as `sort` compares them: records are the same that it would call equal. A line is its bytes without the LF
//! (or NUL) behind it: a CR is a part of it, and the last line needs no LF.

use super::kind::Described;
use super::mapreduce::{NativeJob, NativeOutput, one_if_sorted, wrong_option};
use super::random::EachRecord;
use super::tables::{
    FieldsAsked, InputTable, KeysAsked, RecordsAsked, json_lines, record_inputs, record_options,
};
use crate::plan::table::{CommandSpec, Common, option};
use gristmill_base::aggregate::Aggregate;
use gristmill_base::error::{Error, Result};
use gristmill_base::record::table::without_end;
use gristmill_base::value::{Token, ValueReader, write};
use gristmill_gnu_keys::Keys;
use gristmill_storage::lines::LineEnd;
use gristmill_storage::location::Location;
use gristmill_tasks::merge::groups::MergedGroups;
use gristmill_tasks::task::{
    Combined, CombinedStates, CountedKeys, KeySelection, LineKeys, Mapper, Operator, OutputLine,
    Pairs, PartFiles, Records, Reducer, Regrouper,
};

/// The value of a line that is its own key: a null; and one beside it for its count.
const NOTHING: &[u8] = &[0];
const NOTHING_COUNTED: &[u8] = &[0, 0];

/// The column that has how often a row occurs.
const COUNT: &[u8] = b"count";

record_options! {
    output,
    /// Options of `distinct`, as given.
    pub(in crate::jobs) struct DistinctSpec {
        inputs: Vec<Location> = record_inputs(),
        key: Vec<String> = option(
            "the whole line; of a table, all columns",
            "Keep one record of each key. With --csv or --tsv, columns with commas between them, by name or number: id,city; add \
             :nocase or :num to compare letters of both cases, or numbers, as equal. For lines F[.C][OPTS][,F[.C][OPTS]], as GNU sort has \
             it. Repeatable.",
        ).short("k"),
        jsonl: bool = json_lines(),
        keep: Option<String> = option("first", "Which record of a key: the first, or the last in the order of the input."),
        count: bool = option(
            "off",
            "Write how often each occurs: in front of a line, as uniq -c does; of a table, in a last column, count.",
        ),
        repeated: bool = option("off", "Only what occurs more than once."),
        once: bool = option("off", "Only what occurs once."),
        numeric_sort: bool = option("off", "Keys are equal if they are equal numbers: 1, 1.0, 01.").short("n"),
        general_numeric_sort: bool = option("off", "The same for numbers as C reads them: 1e3, 0x10, inf.").short("g"),
        ignore_case: bool = option("off", "Take a to z as A to Z.").short("f"),
        ignore_leading_blanks: bool = option("off", "Skip blanks at the beginning of keys.").short("b"),
        sorted: bool = option(
            "off",
            "Put the output in the order of the keys; one task writes it. Without it, it is in the order of the input, for which all that is \
             kept is written to disk and read once more.",
        ),
        parts: Option<usize> = option(
            "one file",
            "Write the output as N files, part-r-00000 and so on, in a directory, each of about as many bytes of the input. One behind the \
             other they are the same, however many they are.",
        ),
    }
}

impl Described for DistinctSpec {
    const COMMAND: CommandSpec = CommandSpec {
        name: "distinct",
        function: Some("unique"), // gm.distinct is a reduction
        help: "Keep one of each line, or one record of each key; count them, or keep those that occur once or again.",
        details: "As `awk '!seen[$0]++'` does, or `sort | uniq`, with all cores and data bigger than memory. What is kept is in the order of the input; with sorted, in the order of the keys.",
        example: "gristmill distinct --csv --key email users.csv -o unique.csv",
        python: r#"
>>> import tempfile, gristmill
>>> from pathlib import Path
>>> with tempfile.TemporaryDirectory() as folder:
...     _ = Path(folder, "text").write_text("b\na\nb\n")
...     report = gristmill.unique(f"{folder}/text", output=f"{folder}/lines")
...     print(Path(folder, "lines").read_text(), end="")
b
a
"#,
        explained: true,
        own: Self::OPTIONS,
        common: Common::NAMES,
    };
}

impl DistinctSpec {
    fn keys(&self) -> KeysAsked<'_> {
        let flags = [
            (self.numeric_sort, 'n'),
            (self.general_numeric_sort, 'g'),
            (self.ignore_case, 'f'),
            (self.ignore_leading_blanks, 'b'),
        ];
        KeysAsked::new(&self.key, self.field_separator.as_deref(), &flags)
    }

    /// Whether records come with codes of their keys.
    fn has_columns(&self) -> bool {
        self.csv || self.tsv || self.jsonl
    }

    fn fields_asked(&self) -> FieldsAsked<'_> {
        self.asked().of_objects(self.jsonl, &[])
    }

    /// Whether lines are compared as they are.
    fn is_plain(&self) -> bool {
        !self.has_columns() && self.key.is_empty() && self.keys().letters.is_empty()
    }

    fn selection(&self) -> Result<KeySelection> {
        if self.repeated && self.once {
            let why = "nothing occurs once and more than once";
            return Err(wrong_option("once", why).advise("give one of repeated and once"));
        }
        Ok(KeySelection {
            least: self.repeated.then_some(2),
            greatest: self.once.then_some(1),
            ..KeySelection::default()
        })
    }

    /// Which record of a key is kept.
    fn kept(&self) -> Result<Aggregate> {
        match self.keep.as_deref() {
            None | Some("first") => Ok(Aggregate::First),
            Some("last") => Ok(Aggregate::Last),
            Some(other) => {
                let wrong = wrong_option("keep", &format!("{other:?} is neither first nor last"));
                Err(wrong.advise("give first or last"))
            }
        }
    }
}

impl NativeJob for DistinctSpec {
    fn inputs(&self) -> Vec<&[Location]> {
        vec![&self.inputs]
    }

    fn output(&self) -> NativeOutput<'_> {
        NativeOutput::of_options(self.output.as_ref(), self.parts)
    }

    fn parts(&self) -> Result<Option<usize>> {
        one_if_sorted(self.sorted, self.parts)
    }

    fn records(&self) -> Result<RecordsAsked> {
        if !self.has_columns() {
            self.fields_asked().fields(None)?; // whether the options go together
            return Ok(RecordsAsked::Lines(self.asked().line_end()));
        }
        self.fields_asked().records(1, self.keys().columns()?)
    }

    fn operator(&self, tables: &[InputTable]) -> Result<Box<dyn Operator>> {
        let (selection, kept) = (self.selection()?, self.kept()?);
        if self.is_plain() && self.sorted {
            return Ok(Box::new(CountedKeys {
                keys: LineKeys::Lines,
                selection,
                line: match self.count {
                    true => OutputLine::PaddedCountKey,
                    false => OutputLine::Key,
                },
                end: self.asked().line_end(),
            }));
        }
        let by = match (self.has_columns(), self.is_plain()) {
            (true, _) => ComparedBy::RowCode,
            (false, true) => ComparedBy::WholeLine,
            (false, false) => ComparedBy::Keys(self.keys().of_lines()?),
        };
        let table = tables.first();
        let mut header = table.map_or_else(Vec::new, InputTable::header_row);
        if self.count && !header.is_empty() {
            header = counted(&header, table, COUNT);
        }
        let counts = self.count || selection != KeySelection::default();
        Ok(Box::new(DistinctOperator {
            by,
            selection,
            count: self.count,
            sorted: self.sorted,
            table: table.cloned(),
            header,
            end: self.asked().line_end(),
            aggregate: match counts {
                true => Aggregate::Several(vec![kept, Aggregate::Count]),
                false => kept,
            },
            counts,
        }))
    }
}

/// A row of a table, or a line where there is none, with its count.
fn counted(row: &[u8], table: Option<&InputTable>, count: &[u8]) -> Vec<u8> {
    match table {
        None => [count, b" ", row].concat(),
        Some(table) => {
            let (without, delimiter) = (without_end(row), [table.keys.delimiter]);
            let end = row.get(without.len()..).unwrap_or_default();
            [without, &delimiter, count, end].concat()
        }
    }
}

/// What records are compared by.
#[derive(Debug)]
enum ComparedBy {
    /// Lines by all of them.
    WholeLine,
    /// Lines by keys.
    Keys(Keys),
    /// Rows, which come with codes.
    RowCode,
}

/// Keeps a record of each key.
#[derive(Debug)]
struct DistinctOperator {
    by: ComparedBy,
    selection: KeySelection,
    /// Whether the count is written.
    count: bool,
    sorted: bool,
    table: Option<InputTable>,
    header: Vec<u8>,
    /// What ends lines.
    end: LineEnd,
    /// A record, at its place, and where they are counted how many there are.
    aggregate: Aggregate,
    counts: bool,
}

impl DistinctOperator {
    /// What is to be written of a record, with its end.
    fn write(&self, record: &[u8], number: i64, written: &mut Vec<u8>) {
        written.clear();
        match self.count {
            true => {
                let number = match self.table {
                    Some(_) => number.to_string(),
                    None => format!("{number:7}"),
                };
                written.extend(counted(record, self.table.as_ref(), number.as_bytes()));
            }
            false => written.extend_from_slice(record),
        }
        if !matches!(self.by, ComparedBy::RowCode) {
            written.push(self.end.byte());
        }
    }
}

impl Operator for DistinctOperator {
    fn combines(&self) -> bool {
        true
    }

    fn regroups(&self) -> bool {
        !self.sorted
    }

    fn header(&self) -> &[u8] {
        &self.header
    }

    fn mapper(&self, memory: usize) -> Result<Box<dyn Mapper + '_>> {
        Ok(Box::new(DistinctMapper {
            distinct: self,
            states: CombinedStates::new(self.aggregate.clone(), memory),
            code: Vec::new(),
            value: Vec::new(),
        }))
    }

    fn regrouper(&self, memory: usize) -> Result<Box<dyn Regrouper + '_>> {
        Ok(Box::new(KeptRecords::new(self, memory)))
    }

    fn reducer(&self, memory: usize) -> Result<Box<dyn Reducer + '_>> {
        Ok(match self.sorted {
            true => Box::new(KeptRecords::new(self, memory)),
            false => Box::new(EachRecord::ended_by(self.end)),
        })
    }
}

struct DistinctMapper<'o> {
    distinct: &'o DistinctOperator,
    states: CombinedStates,
    code: Vec<u8>,
    value: Vec<u8>,
}

impl DistinctMapper<'_> {
    /// Adds a record to the key whose code is there.
    #[inline]
    fn add(&mut self, record: &[u8], place: u64, pairs: &mut Pairs<'_>) -> Result<()> {
        self.value.clear();
        write::bytes(&mut self.value, record);
        if self.distinct.counts {
            write::null(&mut self.value); // counts take any value
        }
        self.states.add((&self.code, &self.value), place, pairs)
    }
}

impl Mapper for DistinctMapper<'_> {
    fn records(&mut self, records: &Records<'_>, pairs: &mut Pairs<'_>) -> Result<()> {
        match &self.distinct.by {
            ComparedBy::RowCode => {
                self.code.clear();
                self.code.extend_from_slice(records.code);
                self.add(records.bytes, records.place_of(records.offset)?, pairs)
            }
            ComparedBy::Keys(keys) => records.lines().try_for_each(|(offset, line)| {
                self.code.clear();
                keys.encode(line, &mut self.code);
                self.add(line, records.place_of(offset)?, pairs)
            }),
            ComparedBy::WholeLine => records.lines().try_for_each(|(offset, line)| {
                let nothing = match self.distinct.counts {
                    true => NOTHING_COUNTED,
                    false => NOTHING,
                };
                let place = records.place_of(offset)?;
                self.states.add((line, nothing), place, pairs)
            }),
        }
    }

    fn end(&mut self, pairs: &mut Pairs<'_>) -> Result<Option<Combined>> {
        self.states.end(pairs).map(Some)
    }
}

/// The records that are kept, by their keys.
struct KeptRecords<'o> {
    distinct: &'o DistinctOperator,
    memory: usize,
    results: Vec<u8>,
    written: Vec<u8>,
}

impl<'o> KeptRecords<'o> {
    fn new(distinct: &'o DistinctOperator, memory: usize) -> Self {
        KeptRecords {
            distinct,
            memory,
            results: Vec::new(),
            written: Vec::new(),
        }
    }

    /// Hands on what is to be written of the next key, if anything is, with its place; false where there is no more.
    fn take_next(
        &mut self,
        groups: &mut MergedGroups,
        take: impl FnOnce(u64, &[u8]) -> Result<()>,
    ) -> Result<bool> {
        let distinct = self.distinct;
        let aggregate = &distinct.aggregate;
        let Some(state) = groups.next_state(aggregate, self.memory)? else {
            return Ok(false);
        };
        self.results.clear();
        aggregate.finish(&state, &mut self.results)?;
        let mut results = ValueReader::new(&self.results);
        let (kept, number) = (results.token()?, results.token()?);
        let number = match number {
            Some(Token::Int(number)) => number,
            _ => 1, // they are not counted
        };
        if !distinct.selection.takes(number) {
            return Ok(true);
        }
        match (kept, aggregate.position(&state)) {
            (Some(Token::Bytes(record)), Some(place)) => {
                distinct.write(&record, number, &mut self.written);
                take(place, &self.written)?;
            }
            (Some(Token::Null), Some(place)) => {
                distinct.write(groups.key(), number, &mut self.written);
                take(place, &self.written)?;
            }
            _ => return Err(Error::bug("reduce a key", "it has no record")),
        }
        Ok(true)
    }
}

impl Regrouper for KeptRecords<'_> {
    fn next(&mut self, groups: &mut MergedGroups, pairs: &mut Pairs<'_>) -> Result<bool> {
        let end = self.distinct.end;
        self.take_next(groups, |place, record| {
            pairs.give_at(place, end.strip(record))
        })
    }
}

impl Reducer for KeptRecords<'_> {
    fn next(&mut self, groups: &mut MergedGroups, part: &mut PartFiles) -> Result<bool> {
        self.take_next(groups, |_, record| part.record(record))
    }
}

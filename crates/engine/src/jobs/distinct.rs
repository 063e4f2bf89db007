//! `distinct`: one of each line, or one record of each key; how often each occurs, those that occur again, those that do not.
//!
//! ```text
//!   whole lines   counted (`CountedKeys`)
//!   keys          record ──▶ code of its keys │ the first record, how many ── brought together ──▶ a record of each code
//! ```
//!
//! Keys are compared as `sort` compares them: records are the same that it would call equal. A line is its bytes without the LF
//! behind it: a CR is a part of it, and the last line needs no LF.

use super::kind::Described;
use super::mapreduce::{NativeJob, NativeOutput, one_if_sorted, wrong_option};
use super::tables::{InputTable, KeysAsked, RecordsAsked, record_options};
use crate::plan::table::{CommandSpec, Common, argument, option};
use gristmill_base::aggregate::Aggregate;
use gristmill_base::error::{Error, Result};
use gristmill_base::record::table::without_end;
use gristmill_base::value::{Token, ValueReader, write};
use gristmill_gnu_keys::Keys;
use gristmill_storage::lines::lines_of;
use gristmill_storage::location::Location;
use gristmill_tasks::merge::groups::MergedGroups;
use gristmill_tasks::task::{
    Combined, CombinedStates, CountedKeys, KeySelection, LineKeys, Mapper, Operator, OutputLine,
    Pairs, PartFiles, Records, Reducer,
};

/// The column that has how often a row occurs.
const COUNT: &[u8] = b"count";

record_options! {
    keyed output,
    /// Options of `distinct`, as given.
    pub(in crate::jobs) struct DistinctSpec {
        inputs: Vec<Location> = argument(
            "Files, or directories whose files are read (not those whose names begin with _ or .); compressed ones, too.",
        ),
        key: Vec<String> = option(
            "the whole line; of a table, all columns",
            "Keep one record of each key. With --csv or --tsv, columns with commas between them, by name or number: id,city; add \
             :nocase or :num to compare letters of both cases, or numbers, as equal. For lines F[.C][OPTS][,F[.C][OPTS]], as GNU sort has \
             it. Repeatable.",
        ).short("k"),
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
    }
}

impl Described for DistinctSpec {
    const COMMAND: CommandSpec = CommandSpec {
        name: "distinct",
        function: Some("unique"), // gm.distinct is a reduction
        help: "Keep one of each line, or one record of each key; count them, or keep those that occur once or again.",
        details: "As `sort | uniq` or `sort -u -k` does, with all cores and data bigger than memory. Records are in the order of their keys in each part; one file, and standard output, are a part for each 256 MB of input, one after another.",
        example: "gristmill distinct --csv --key email users.csv -o unique.csv",
        python: r#"
>>> import tempfile, gristmill
>>> from pathlib import Path
>>> with tempfile.TemporaryDirectory() as folder:
...     _ = Path(folder, "text").write_text("b\na\nb\n")
...     report = gristmill.unique(f"{folder}/text", output=f"{folder}/lines")
...     print(Path(folder, "lines").read_text(), end="")
a
b
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

    fn is_table(&self) -> bool {
        self.csv || self.tsv
    }

    /// Whether lines are compared as they are.
    fn is_plain(&self) -> bool {
        !self.is_table() && self.key.is_empty() && self.keys().letters.is_empty()
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
        if !self.is_table() {
            self.asked().fields(None)?; // whether the options go together
            return Ok(RecordsAsked::Lines);
        }
        self.asked().records(1, self.keys().columns()?)
    }

    fn operator(&self, tables: &[InputTable]) -> Result<Box<dyn Operator>> {
        let (selection, kept) = (self.selection()?, self.kept()?);
        if self.is_plain() {
            return Ok(Box::new(CountedKeys {
                keys: LineKeys::Lines,
                selection,
                line: match self.count {
                    true => OutputLine::PaddedCountKey,
                    false => OutputLine::Key,
                },
            }));
        }
        let keys = match self.is_table() {
            true => None,
            false => Some(self.keys().of_lines()?),
        };
        let table = tables.first();
        let mut header = table.map_or_else(Vec::new, InputTable::header_row);
        if self.count && !header.is_empty() {
            header = counted(&header, table, COUNT);
        }
        Ok(Box::new(DistinctOperator {
            keys,
            selection,
            count: self.count,
            table: table.cloned(),
            header,
            aggregate: Aggregate::Several(vec![kept, Aggregate::Count]),
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

/// Keeps a record of each key.
#[derive(Debug)]
struct DistinctOperator {
    /// Those of lines; rows come with their codes.
    keys: Option<Keys>,
    selection: KeySelection,
    count: bool,
    table: Option<InputTable>,
    header: Vec<u8>,
    /// A record, and how many there are.
    aggregate: Aggregate,
}

impl Operator for DistinctOperator {
    fn combines(&self) -> bool {
        true
    }

    fn header(&self) -> &[u8] {
        &self.header
    }

    fn mapper(&self, memory: usize) -> Result<Box<dyn Mapper + '_>> {
        Ok(Box::new(DistinctMapper {
            keys: self.keys.as_ref(),
            states: CombinedStates::new(self.aggregate.clone(), memory),
            code: Vec::new(),
            value: Vec::new(),
        }))
    }

    fn reducer(&self, memory: usize) -> Result<Box<dyn Reducer + '_>> {
        Ok(Box::new(DistinctReducer {
            distinct: self,
            memory,
            results: Vec::new(),
        }))
    }
}

struct DistinctMapper<'o> {
    keys: Option<&'o Keys>,
    states: CombinedStates,
    code: Vec<u8>,
    value: Vec<u8>,
}

impl DistinctMapper<'_> {
    fn take(&mut self, record: &[u8], position: u64, pairs: &mut Pairs<'_>) -> Result<()> {
        self.value.clear();
        write::bytes(&mut self.value, record);
        write::null(&mut self.value); // counts take any value
        self.states.add((&self.code, &self.value), position, pairs)
    }
}

impl Mapper for DistinctMapper<'_> {
    fn records(&mut self, records: &Records<'_>, pairs: &mut Pairs<'_>) -> Result<()> {
        let Some(keys) = self.keys else {
            self.code.clear();
            self.code.extend_from_slice(records.code);
            return self.take(records.bytes, records.position, pairs);
        };
        for (line, position) in lines_of(records.bytes).zip(records.position..) {
            self.code.clear();
            keys.encode(line, &mut self.code);
            self.take(line, position, pairs)?;
        }
        Ok(())
    }

    fn end(&mut self, pairs: &mut Pairs<'_>) -> Result<Option<Combined>> {
        self.states.end(pairs).map(Some)
    }
}

struct DistinctReducer<'o> {
    distinct: &'o DistinctOperator,
    memory: usize,
    results: Vec<u8>,
}

impl Reducer for DistinctReducer<'_> {
    fn next(&mut self, groups: &mut MergedGroups, part: &mut PartFiles) -> Result<bool> {
        let DistinctOperator {
            selection,
            count,
            table,
            aggregate,
            ..
        } = self.distinct;
        if !groups.next_aggregate(aggregate, self.memory, &mut self.results)? {
            return Ok(false);
        }
        let mut results = ValueReader::new(&self.results);
        let (Some(Token::Bytes(record)), Some(Token::Int(number))) =
            (results.token()?, results.token()?)
        else {
            return Err(Error::bug("reduce a key", "it has no record with a count"));
        };
        if !selection.takes(number) {
            return Ok(true);
        }
        let mut written = record.into_owned();
        if *count {
            let number = match table {
                Some(_) => number.to_string(),
                None => format!("{number:7}"),
            };
            written = counted(&written, table.as_ref(), number.as_bytes());
        }
        if table.is_none() {
            written.push(b'\n');
        }
        part.record(&written)?;
        Ok(true)
    }
}

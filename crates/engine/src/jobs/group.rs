//! `group`: sums, counts and other figures of the rows of each group, which is those with equal values in some columns.
//!
//! ```text
//!   row ──▶ key: the columns of --by │ a number of each column that is asked for ── brought together ──▶ a row of each group
//! ```
//!
//! Keys are the text of the cells: `1` and `1.0` are two groups, and so are an empty cell and one that has a blank. Cells that
//! are empty are no values. Sums are exact until they are written.

use std::borrow::Cow;

use super::kind::Described;
use super::mapreduce::{NativeJob, NativeOutput, one_if_sorted, wrong_option};
use super::tables::{InputTable, RecordFields, RecordWriter, RecordsAsked, record_options};
use crate::plan::table::{CommandSpec, Common, argument, option};
use gristmill_base::aggregate::Aggregate;
use gristmill_base::error::{Error, JobOption, Kind, Result, show_bytes};
use gristmill_base::value::{Token, ValueReader, display, number_of_cell, skip, write, write_cell};
use gristmill_storage::location::Location;
use gristmill_tasks::merge::groups::MergedGroups;
use gristmill_tasks::task::{
    Combined, CombinedStates, Mapper, Operator, Pairs, PartFiles, Records, Reducer,
};

/// Characters of a cell that an error shows.
const SHOWN_CHARS: usize = 60;

record_options! {
    keyed output,
    /// Options of `group`, as given.
    pub(in crate::jobs) struct GroupSpec {
        inputs: Vec<Location> = argument(
            "Files, or directories whose files are read (not those whose names begin with _ or .); compressed ones, too.",
        ),
        by: Vec<String> = option(
            "all rows are one group",
            "The columns whose values make a group, with commas between them: by name, or by number from 1 on. Repeatable.",
        ).short("b"),
        count: bool = option("on, if nothing else is asked for", "How many rows a group has."),
        sum: Vec<String> = option("none", "Columns to add up: whole numbers exactly, others as doubles, whose sum is rounded once."),
        mean: Vec<String> = option("none", "Columns to take the mean of."),
        min: Vec<String> = option("none", "Columns to take the least value of, written as a number. Text compares by its bytes, and is below all numbers."),
        max: Vec<String> = option("none", "Columns to take the greatest value of, compared in the same way."),
        median: Vec<String> = option("none", "Columns to take the median of, the lower one of two; its values must fit in memory, for each group."),
        percentile: Vec<String> = option("none", "P:COLUMN, such as 95:latency: the least value that P percent of the values do not exceed. Repeatable."),
        distinct: Vec<String> = option("none", "Columns whose different values are counted."),
        first: Vec<String> = option("none", "Columns to take the first value of, in the order of the input."),
        last: Vec<String> = option("none", "Columns to take the last value of."),
    }
}

impl Described for GroupSpec {
    const COMMAND: CommandSpec = CommandSpec {
        name: "group",
        function: Some("group"),
        help: "Group rows of tables, or lines with fields, by columns: counts, sums, means, percentiles and other figures.",
        details: "A row of each group: its key, then the figures, in the order of this help.",
        example: "gristmill group --csv --by city --sum price --mean price orders.csv -o by-city.csv",
        python: r#"
>>> import tempfile, gristmill
>>> from pathlib import Path
>>> with tempfile.TemporaryDirectory() as folder:
...     _ = Path(folder, "table").write_text("city,price\nRome,2\nBern,0.5\nRome,3\n")
...     report = gristmill.group(
...         f"{folder}/table", output=f"{folder}/out", csv=True, by=["city"], sum=["price"]
...     )
...     print(Path(folder, "out").read_text(), end="")
city,price_sum
Bern,0.5
Rome,5
"#,
        explained: true,
        own: Self::OPTIONS,
        common: Common::NAMES,
    };
}

impl GroupSpec {
    /// The figures that are asked for, in the order of the columns of the output.
    fn figures(&self, fields: &RecordFields) -> Result<Vec<Figure>> {
        let mut figures = Vec::new();
        let asked = [
            ("sum", &self.sum, Aggregate::Sum, CellKind::Number),
            ("mean", &self.mean, Aggregate::Mean, CellKind::Number),
            ("min", &self.min, Aggregate::Min, CellKind::NumberOrText),
            ("max", &self.max, Aggregate::Max, CellKind::NumberOrText),
            (
                "median",
                &self.median,
                Aggregate::Quantiles(vec![0.5]),
                CellKind::Number,
            ),
        ];
        let counted = [
            (
                "distinct",
                &self.distinct,
                Aggregate::CountDistinct,
                CellKind::Text,
            ),
            ("first", &self.first, Aggregate::First, CellKind::Text),
            ("last", &self.last, Aggregate::Last, CellKind::Text),
        ];
        let given = asked
            .iter()
            .chain(&counted)
            .any(|(_, columns, ..)| !columns.is_empty());
        if self.count || !given && self.percentile.is_empty() {
            figures.push(Figure {
                name: b"count".to_vec(),
                column: None,
                reads: CellKind::Number,
                aggregate: Aggregate::Count,
            });
        }
        let mut take =
            |(name, words, aggregate, reads): (&str, &Vec<String>, Aggregate, CellKind)| {
                for column in fields.columns(words)? {
                    figures.push(Figure::of(fields, (name, column), aggregate.clone(), reads));
                }
                Ok(())
            };
        asked.into_iter().try_for_each(&mut take)?;
        for given in &self.percentile {
            let (percent, column) = percentile(given)?;
            let name = format!("p{}", given.split(':').next().unwrap_or_default());
            take((
                &name,
                &vec![column],
                Aggregate::Quantiles(vec![percent / 100.0]),
                CellKind::Number,
            ))?;
        }
        counted.into_iter().try_for_each(take)?;
        Ok(figures)
    }
}

/// The percentage and the column of `95:latency`.
fn percentile(given: &str) -> Result<(f64, String)> {
    let parts = given.split_once(':').and_then(|(percent, column)| {
        let percent = percent.parse::<f64>().ok()?;
        let is_there = (0.0..=100.0).contains(&percent) && !column.is_empty();
        is_there.then(|| (percent, column.to_owned()))
    });
    parts.ok_or_else(|| {
        wrong_option(
            "percentile",
            &format!("{given:?} is not a number from 0 to 100, a colon and a column"),
        )
        .advise("give the 95th of a column as 95:latency")
    })
}

impl NativeJob for GroupSpec {
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
        self.asked().records(1, Vec::new())
    }

    fn operator(&self, tables: &[InputTable]) -> Result<Box<dyn Operator>> {
        let fields = self.asked().fields(tables.first())?;
        let by = fields.columns(&self.by)?;
        let figures = self.figures(&fields)?;
        let mut header = Vec::new();
        if fields.has_header() {
            let mut writer = fields.writer();
            let names = by
                .iter()
                .map(|column| fields.name(*column).unwrap_or_default());
            let names = names.chain(figures.iter().map(|figure| figure.name.as_slice()));
            names.for_each(|name| writer.field(name, &mut header));
            writer.end(&mut header);
        }
        let aggregates = figures.iter().map(Figure::aggregate).collect();
        Ok(Box::new(GroupOperator {
            by,
            figures,
            fields,
            header,
            aggregate: Aggregate::Several(aggregates),
        }))
    }
}

/// As what a cell is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CellKind {
    Number,
    NumberOrText,
    Text,
}

/// A column of the output that is no key.
#[derive(Debug)]
struct Figure {
    /// What it is called.
    name: Vec<u8>,
    /// The column that it is of; of rows, it is of none.
    column: Option<usize>,
    reads: CellKind,
    aggregate: Aggregate,
}

impl Figure {
    fn of(
        fields: &RecordFields,
        (name, column): (&str, usize),
        aggregate: Aggregate,
        reads: CellKind,
    ) -> Self {
        let of = fields.name(column).unwrap_or_default();
        Figure {
            name: [of, b"_", name.as_bytes()].concat(),
            column: Some(column),
            reads,
            aggregate,
        }
    }

    /// Its aggregate: cells that are empty are no values.
    fn aggregate(&self) -> Aggregate {
        match self.column {
            None => self.aggregate.clone(),
            Some(_) => Aggregate::SkipNone(Box::new(self.aggregate.clone())),
        }
    }

    /// Encodes a cell.
    #[inline]
    fn encode(&self, cell: &[u8], out: &mut Vec<u8>) -> Result<()> {
        if cell.is_empty() {
            write::null(out);
        } else if self.reads == CellKind::Text {
            write::bytes(out, cell);
        } else if !number_of_cell(cell, out) {
            if self.reads == CellKind::Number {
                return Err(self.no_number(cell));
            }
            write::bytes(out, cell);
        }
        Ok(())
    }

    #[cold]
    fn no_number(&self, cell: &[u8]) -> Error {
        let cell: String = String::from_utf8_lossy(cell)
            .chars()
            .take(SHOWN_CHARS)
            .collect();
        let message = format!("{} takes numbers, not {cell:?}", self.shown());
        let column = self.column.unwrap_or_default() + 1;
        Error::new(Kind::BadInput, "group the rows", message)
            .with("column", format!("#{column}"))
            .advise("correct the cell; one that is empty is left out")
    }

    /// What it is called in errors.
    fn shown(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.name.strip_prefix(b"_").unwrap_or(&self.name))
    }

    /// Writes its result, which `results` begins with, as a cell; gives how many bytes that was.
    fn write(&self, results: &[u8], cell: &mut Vec<u8>) -> Result<usize> {
        let Aggregate::Quantiles(_) = self.aggregate else {
            return write_cell(results, cell);
        };
        // A tuple of one value.
        let length = skip(results)?;
        let mut tuple = ValueReader::new(results);
        tuple.token()?;
        if tuple.token()? != Some(Token::Null) {
            write_cell(results.get(1..length).unwrap_or_default(), cell)?;
        }
        Ok(length)
    }
}

/// Groups rows.
#[derive(Debug)]
struct GroupOperator {
    by: Vec<usize>,
    figures: Vec<Figure>,
    fields: RecordFields,
    header: Vec<u8>,
    aggregate: Aggregate,
}

impl Operator for GroupOperator {
    fn combines(&self) -> bool {
        true
    }

    fn header(&self) -> &[u8] {
        &self.header
    }

    fn mapper(&self, memory: usize) -> Result<Box<dyn Mapper + '_>> {
        Ok(Box::new(GroupMapper {
            group: self,
            states: CombinedStates::new(self.aggregate.clone(), memory),
            key: Vec::new(),
            value: Vec::new(),
            room: Vec::new(),
        }))
    }

    fn reducer(&self, memory: usize) -> Result<Box<dyn Reducer + '_>> {
        Ok(Box::new(GroupReducer {
            group: self,
            memory,
            writer: self.fields.writer(),
            results: Vec::new(),
            row: Vec::new(),
            cell: Vec::new(),
        }))
    }
}

struct GroupMapper<'o> {
    group: &'o GroupOperator,
    states: CombinedStates,
    key: Vec<u8>,
    value: Vec<u8>,
    room: Vec<u8>,
}

impl Mapper for GroupMapper<'_> {
    fn records(&mut self, record: &Records<'_>, pairs: &mut Pairs<'_>) -> Result<()> {
        let GroupOperator {
            by,
            figures,
            fields,
            ..
        } = self.group;
        fields.write_key(record, by, &mut self.room, &mut self.key)?;
        self.value.clear();
        for figure in figures {
            match figure.column {
                None => write::null(&mut self.value),
                Some(column) => {
                    let cell = fields.value(record, column, &mut self.room);
                    figure.encode(cell, &mut self.value)?;
                }
            }
        }
        self.states
            .add((&self.key, &self.value), record.position, pairs)
    }

    fn end(&mut self, pairs: &mut Pairs<'_>) -> Result<Option<Combined>> {
        self.states.end(pairs).map(Some)
    }
}

struct GroupReducer<'o> {
    group: &'o GroupOperator,
    memory: usize,
    writer: RecordWriter,
    results: Vec<u8>,
    row: Vec<u8>,
    cell: Vec<u8>,
}

impl GroupReducer<'_> {
    /// What to say of a group whose values do not fit in memory.
    #[cold]
    fn too_large(&self, error: Error, key: &[u8]) -> Error {
        if error.kind() != Kind::Memory {
            return error;
        }
        let (key, room) = (display(key, SHOWN_CHARS), show_bytes(self.memory as u64));
        let message = format!(
            "median, percentile and distinct hold all values of a group in memory, and those of {key} need more than {room}, \
             the memory of a worker"
        );
        Error::new(Kind::Memory, "group the rows", message).advise_options(
            "give more {}, or fewer {}",
            [JobOption::Memory.named(), JobOption::Workers.named()],
        )
    }
}

impl Reducer for GroupReducer<'_> {
    fn next(&mut self, groups: &mut MergedGroups, part: &mut PartFiles) -> Result<bool> {
        let next = groups.next_aggregate(&self.group.aggregate, self.memory, &mut self.results);
        if !next.map_err(|error| self.too_large(error, groups.key()))? {
            return Ok(false);
        }
        self.row.clear();
        let mut key = ValueReader::new(groups.key());
        while let Some(token) = key.token()? {
            if let Token::Bytes(cell) = token {
                self.writer.field(&cell, &mut self.row);
            }
        }
        let mut rest = self.results.as_slice();
        for figure in &self.group.figures {
            self.cell.clear();
            let length = figure.write(rest, &mut self.cell)?;
            rest = rest.get(length..).unwrap_or_default();
            self.writer.field(&self.cell, &mut self.row);
        }
        self.writer.end(&mut self.row);
        part.record(&self.row)?;
        Ok(true)
    }
}

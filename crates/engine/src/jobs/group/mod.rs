//! `group`: sums, counts and other figures of the rows of each group, which is those with equal values in some columns.
//!
//! ```text
//!   row ──▶ key: the columns of --by │ a value for each column that is asked for ── brought together ──▶ a row of each group
//!       └─▶ key, column, number or cell ── counted, in the order of the numbers ──▶ medians, percentiles, different cells
//! ```
//!
//! Keys are the text of the cells: `1` and `1.0` are two groups, and so are an empty cell and one that has a blank. Cells that
//! are empty are no values. Sums are exact, and no group has to fit in memory.

mod figures;
mod operator;

use super::kind::Described;
use super::mapreduce::{NativeJob, NativeOutput, one_if_sorted};
use super::tables::{
    FieldsAsked, InputTable, ObjectWriter, RecordFields, RecordsAsked, record_inputs,
    record_options,
};
use crate::plan::table::{CommandSpec, Common, option};
use figures::{CellKind, GroupFigures, Percent};
use gristmill_base::aggregate::Aggregate;
use gristmill_base::error::Result;
use gristmill_storage::location::Location;
use gristmill_tasks::task::Operator;
use operator::GroupOperator;

record_options! {
    keyed output,
    /// Options of `group`, as given.
    pub(in crate::jobs) struct GroupSpec {
        inputs: Vec<Location> = record_inputs(),
        by: Vec<String> = option(
            "all rows are one group",
            "The columns whose values make a group, with commas between them: by name, or by number from 1 on. Repeatable.",
        ).short("b"),
        count: bool = option("on, if nothing else is asked for", "How many rows a group has."),
        sum: Vec<String> = option("none", "Columns to add up, exactly, decimals too."),
        mean: Vec<String> = option("none", "Columns to take the mean of: their exact sum by how many there are, to 17 digits or as many as the sum has."),
        min: Vec<String> = option("none", "Columns to take the least value of, as it is written. Text compares by its bytes, and is below all numbers."),
        max: Vec<String> = option("none", "Columns to take the greatest value of, compared in the same way."),
        median: Vec<String> = option("none", "Columns to take the median of, the lower one of two."),
        percentile: Vec<String> = option("none", "P:COLUMN, such as 95:latency: the least value that P percent of the values do not exceed. Repeatable."),
        distinct: Vec<String> = option("none", "Columns whose different values are counted."),
        first: Vec<String> = option("none", "Columns to take the first value of, in the order of the input."),
        last: Vec<String> = option("none", "Columns to take the last value of."),
        jsonl: bool = option(
            "off",
            "Each line is a JSON object, and columns are paths into it: user.id. A value that is null or not there is empty. Rows of the output are objects, too.",
        ),
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

/// Figures of one name: their columns, what makes them, and as what it reads cells.
type StatesAsked<'a> = (&'static str, &'a [String], Aggregate, CellKind);

impl GroupSpec {
    /// The columns that anything is asked of, where these are paths into objects.
    fn columns(&self) -> Result<Vec<String>> {
        let figures = [&self.sum, &self.mean, &self.min, &self.max, &self.median];
        let others = [&self.distinct, &self.first, &self.last];
        let words = figures.into_iter().chain(others).flatten();
        let mut columns: Vec<_> = self.by.iter().chain(words).cloned().collect();
        for given in &self.percentile {
            columns.push(Percent::of_option(given)?.2);
        }
        Ok(columns)
    }

    /// What a record is; these are its columns where it is an object.
    fn fields_asked<'a>(&'a self, columns: &'a [String]) -> FieldsAsked<'a> {
        self.asked().of_objects(self.jsonl, columns)
    }

    /// The figures that are asked for, in the order of the columns of the output.
    fn figures(&self, fields: &RecordFields) -> Result<GroupFigures> {
        let middle = [
            ("sum", &*self.sum, Aggregate::DecimalSum, CellKind::Number),
            ("mean", &self.mean, Aggregate::DecimalMean, CellKind::Number),
            ("min", &self.min, Aggregate::CellMin, CellKind::NumberOrText),
            ("max", &self.max, Aggregate::CellMax, CellKind::NumberOrText),
        ];
        let ends_read = if self.jsonl {
            CellKind::AsWritten
        } else {
            CellKind::Text
        };
        let ends = [
            ("first", &*self.first, Aggregate::First, ends_read),
            ("last", &self.last, Aggregate::Last, ends_read),
        ];
        let asked = middle.iter().chain(&ends).map(|(_, columns, ..)| *columns);
        let asked = asked.chain([&*self.median, &self.percentile, &self.distinct]);
        let mut figures = GroupFigures::default();
        if self.count || asked.flatten().next().is_none() {
            figures.count();
        }
        add_states(fields, middle, &mut figures)?;
        for column in fields.columns(&self.median)? {
            figures.rank((fields, "median", column), Percent::MEDIAN);
        }
        for given in &self.percentile {
            let (percent, name, column) = Percent::of_option(given)?;
            for column in fields.columns(&[column])? {
                figures.rank((fields, &name, column), percent);
            }
        }
        for column in fields.columns(&self.distinct)? {
            figures.different((fields, "distinct", column));
        }
        add_states(fields, ends, &mut figures)?;
        figures.check()?;
        Ok(figures)
    }
}

/// What the columns of the output are called.
fn names<'f>(
    fields: &'f RecordFields,
    by: &'f [usize],
    figures: &'f GroupFigures,
) -> impl Iterator<Item = &'f [u8]> {
    let keys = by
        .iter()
        .map(|column| fields.name(*column).unwrap_or_default());
    keys.chain(figures.names())
}

/// Adds the figures of some columns that states make.
fn add_states<const N: usize>(
    fields: &RecordFields,
    asked: [StatesAsked<'_>; N],
    figures: &mut GroupFigures,
) -> Result<()> {
    for (name, words, aggregate, reads) in asked {
        for column in fields.columns(words)? {
            figures.state((fields, name, column), aggregate.clone(), reads);
        }
    }
    Ok(())
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
        self.fields_asked(&self.columns()?).records(1, Vec::new())
    }

    fn operator(&self, tables: &[InputTable]) -> Result<Box<dyn Operator>> {
        let fields = self.fields_asked(&self.columns()?).fields(tables.first())?;
        let by = fields.columns(&self.by)?;
        let mut figures = self.figures(&fields)?;
        let (mut header, mut objects) = (Vec::new(), None);
        if self.jsonl {
            let writer = ObjectWriter::new(names(&fields, &by, &figures));
            objects = Some((writer, figures.keys_as_written(&by)));
        } else if fields.has_header() {
            let mut writer = fields.writer();
            names(&fields, &by, &figures).for_each(|name| writer.field(name, &mut header));
            writer.end(&mut header);
        }
        Ok(Box::new(GroupOperator {
            by,
            aggregate: figures.aggregate(),
            figures,
            fields,
            header,
            objects,
        }))
    }
}

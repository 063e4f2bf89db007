//! `join`: the rows of inputs that have equal keys, side by side.
//!
//! ```text
//!   right row ──▶ key, 1    │ its other cells ─┐ sorted,    the right rows of a key are held;
//!   left row  ──▶ key, LAST │ its other cells ─┘ merged ──▶ each left row is written with all of them
//! ```
//!
//! Keys are the text of the cells: `1` and `1.0` are two keys, and an empty cell equals an empty cell. A part is in the order of
//! its keys; within a key left rows are in the order of their input, and with each the right rows in that of theirs. Lines are those
//! that GNU join writes.
//!
//! Where all inputs but the left are small, map tasks hold them, and the output is in the order of the left (small_sides.rs).
//!
//! The rule that must hold: memory has no left row but the present one; the others of its key that do not fit are on disk.

mod held_rows;
mod input;
mod join_kind;
mod joined_rows;
mod layout;
mod line_options;
mod lines;
mod names;
mod objects;
mod operator;
mod reducer;
mod row;
mod small_sides;

use std::os::unix::ffi::OsStrExt;
use std::slice;

use self::input::JoinInput;
use self::join_kind::{JoinKind, RowsWanted};
use self::joined_rows::{JoinRows, JoinedForm};
use self::layout::Layout;
use self::line_options::{BETWEEN_BLANKS, lines_joined, unpaired};
use self::names::{absent, header, header_as_it_is, names_by, quoted, tables_joined};
use self::objects::JoinObjects;
use self::operator::JoinOperator;
use super::kind::Described;
use super::mapreduce::{NativeJob, NativeOutput, one_if_sorted, wrong_option};
use super::tables::{FieldsAsked, InputTable, RecordFields, RecordsAsked, record_options};
use crate::plan::table::{CommandSpec, Common, argument, option};
use gristmill_base::error::Result;
use gristmill_base::names::name_of;
use gristmill_storage::location::Location;
use gristmill_tasks::task::Operator;

/// How many inputs there may be: their numbers order the rows of a key.
const INPUTS_MAX: usize = 200;

record_options! {
    keyed output,
    /// Options of `join`, as given.
    pub(in crate::jobs) struct JoinSpec {
        left: Location = argument(
            "A file, or a directory whose files are read (not those whose names begin with _ or .); compressed ones, too, and Parquet, if its name ends in .parquet; - is standard input.",
        ),
        right: Location = argument("The file or directory whose rows are joined to those; - if LEFT is not."),
        others: Vec<Location> = argument("More of them: their rows are joined to what is joined so far.").or("none"),
        by: Vec<String> = option(
            "of lines the first field; of tables it must be given",
            "The columns that must be equal, with commas between them: id, or LEFT=RIGHT where their names differ; by name, or by number from 1 on. Repeatable.",
        ).short("b"),
        how: JoinKind = option(
            "inner",
            "Which rows are written. inner: pairs of rows with equal keys; left, right, full: also the rows of that side, or of both, that \
             have no match; semi: rows of the left that have a match; anti: those that have none.",
        ),
        empty: Option<String> = option(
            "nothing",
            "What is written in the cells of a side that has no row; of lines in all fields that are empty or missing.",
        ).short("e"),
        unpaired: Vec<String> = option(
            "none",
            "Also write the rows without a match of the left (1) or the right (2). Repeatable.",
        ).short("a"),
        only_unpaired: Vec<String> = option(
            "none",
            "Write the rows without a match of the left (1) or the right (2), and no others. Repeatable.",
        ).short("v"),
        field: Option<usize> = option("1", "The field of lines that must be equal, by its number.").short("j"),
        left_field: Option<usize> = option("as --field says", "The same, of the left alone.").short("1"),
        right_field: Option<usize> = option("as --field says", "The same, of the right alone.").short("2"),
        fields: Option<String> = option(
            "the key, the others of the left, the others of the right",
            "The fields of the lines that are written, as GNU join's -o: 0 is the key, 1.2 the second field of the left. auto: as many of each \
             input as its first line has.",
        ),
        ignore_case: bool = option("off", "Small letters in keys of lines equal large ones, among those of ASCII.").short("i"),
        jsonl: bool = option(
            "off",
            "Each line is a JSON object, and columns are paths into it: user.id. A value that is null or not there is empty. The members of the rows stand in one object.",
        ),
        header: bool = option("off", "The first line of each file of lines is a header. They are joined, and stand first."),
    }
}

impl Described for JoinSpec {
    const COMMAND: CommandSpec = CommandSpec {
        name: "join",
        function: None,
        help: "Join tables, or lines with fields, by columns; none need be sorted.",
        details: "The columns of the output: those of the key, the others of the left, the others of the right. A name of the right \
                  that is there already gets `_right` behind it. Keys are text: `1` and `1.0` differ, and an empty cell equals an empty \
                  cell. The output is in the order of the keys; where all inputs but the left are small, and `--how` is neither right nor \
                  full, in the order of the left, without a sort. Lines are joined as GNU join does it, with its letters; -o names the output, and --fields what its -o does.",
        example: "gristmill join --csv --by city=name orders.csv cities.csv -o joined.csv",
        python: r#"
>>> import tempfile, gristmill
>>> from pathlib import Path
>>> with tempfile.TemporaryDirectory() as folder:
...     _ = Path(folder, "orders").write_text("city,price\nRome,2\nBern,0.5\nRome,3\n")
...     _ = Path(folder, "cities").write_text("name,country\nRome,IT\nOslo,NO\n")
...     report = gristmill.join(
...         f"{folder}/orders",
...         f"{folder}/cities",
...         output=f"{folder}/out",
...         csv=True,
...         by=["city=name"],
...         how="left",
...     )
...     print(Path(folder, "out").read_text(), end="")
city,price,country
Rome,2,IT
Bern,0.5,
Rome,3,IT
"#,
        explained: true,
        own: Self::OPTIONS,
        common: Common::NAMES,
    };
}

impl NativeJob for JoinSpec {
    fn inputs(&self) -> Vec<&[Location]> {
        let first = [&self.left, &self.right].into_iter();
        first.chain(&self.others).map(slice::from_ref).collect()
    }

    fn output(&self) -> NativeOutput<'_> {
        NativeOutput::of_options(self.output.as_ref(), self.parts)
    }

    fn parts(&self) -> Result<Option<usize>> {
        one_if_sorted(self.sorted, self.parts)
    }

    fn records(&self) -> Result<RecordsAsked> {
        let paths = self.paths()?;
        let asked = self.asked_of_fields().of_objects(self.jsonl, &paths);
        Ok(match asked.records(self.count(), Vec::new())? {
            RecordsAsked::Fields(end, _) => RecordsAsked::Lines(end),
            asked => asked,
        })
    }

    fn reads_first_lines(&self) -> bool {
        self.header || self.fields.is_some()
    }

    fn shuffles(&self) -> Option<&'static str> {
        let keeps_right = unpaired(self).is_ok_and(|wanted| {
            let wanted: RowsWanted = wanted.unwrap_or_else(|| self.how.into());
            wanted.right
        });
        match (self.sorted, self.parts, keeps_right) {
            (true, _, _) => Some("; the output is to be in the order of the keys"),
            (_, Some(_), _) => Some("; the hash of a key decides its part"),
            (_, _, true) => Some("; rows of the right that have no match are written, too"),
            _ => None,
        }
    }

    fn operator(&self, tables: &[InputTable]) -> Result<Box<dyn Operator>> {
        self.check()?;
        let wanted = unpaired(self)?.unwrap_or_else(|| self.how.into());
        let empty = name_of(self.empty.clone().unwrap_or_default());
        let joined = match self.is_table() || self.jsonl {
            true => self.of_tables(tables, wanted, empty.as_bytes()),
            false => self.of_lines(tables, wanted, empty.as_bytes()),
        };
        Ok(Box::new(JoinOperator(joined?)))
    }
}

impl JoinSpec {
    /// How many inputs there are.
    fn count(&self) -> usize {
        2 + self.others.len()
    }

    fn is_table(&self) -> bool {
        self.csv || self.tsv
    }

    /// The paths of objects that must be equal, of all inputs.
    fn paths(&self) -> Result<Vec<String>> {
        match self.jsonl {
            true => Ok(quoted(&names_by(&self.by, self.count())?)),
            false => Ok(Vec::new()),
        }
    }

    /// Whether the separator is one of GNU join's words for whole lines.
    fn has_whole_lines(&self) -> bool {
        !self.is_table() && matches!(self.field_separator.as_deref(), Some("" | "\n"))
    }

    /// What a record is.
    fn asked_of_fields(&self) -> FieldsAsked<'_> {
        let mut asked = self.asked();
        if self.has_whole_lines() {
            asked.rows.separator = None;
        }
        asked
    }

    /// What separates the fields of lines; `None`: blanks. No line has in it what ends it.
    fn separator(&self) -> Result<Option<u8>> {
        if self.has_whole_lines() {
            return Ok(Some(self.asked().line_end().byte()));
        }
        Ok(match self.asked_of_fields().fields(None)? {
            RecordFields::Lines(_, separator) => separator,
            RecordFields::Table(_) | RecordFields::Objects(_) => None,
        })
    }

    /// Refuses options that do not go together.
    fn check(&self) -> Result<()> {
        if self.count() > INPUTS_MAX {
            let what = format!("there may be {INPUTS_MAX} inputs");
            return Err(wrong_option("others", &what).advise("join some of them first"));
        }
        let of_lines = [
            ("field", self.field.is_some()),
            ("left_field", self.left_field.is_some()),
            ("right_field", self.right_field.is_some()),
            ("fields", self.fields.is_some()),
            ("ignore_case", self.ignore_case),
            ("header", self.header),
        ];
        let given = of_lines.iter().find(|(_, is_given)| *is_given);
        match given {
            _ if self.jsonl && self.empty.is_some() => Err(wrong_option(
                "empty",
                "an object has no cells that could be empty",
            )
            .advise("leave it out: what a side without a row would have is not there")),
            Some((name, _)) if self.is_table() || self.jsonl => {
                Err(wrong_option(name, "it is for lines, and these are tables")
                    .advise("leave it out; give by for the columns that must be equal"))
            }
            _ => self.check_output(),
        }
    }

    /// Refuses an output that was meant to be GNU join's list of fields.
    fn check_output(&self) -> Result<()> {
        let output = self.output.as_ref().map(|output| output.as_typed());
        let name = output.and_then(|output| output.file_name()?.to_str());
        let is_item = |item: &str| match item.split_once('.') {
            Some((input, field)) => matches!(input, "1" | "2") && field.parse::<usize>().is_ok(),
            None => item == "0",
        };
        match name {
            Some(name) if !self.is_table() && name.split(',').all(is_item) => {
                let what =
                    format!("{name} looks like a list of fields, and names the file to write");
                let advice = format!(
                    "for the list give --fields {name} (in Python fields), for a file another name"
                );
                Err(wrong_option("output", &what).advise(advice))
            }
            _ => Ok(()),
        }
    }

    fn of_tables(
        &self,
        tables: &[InputTable],
        wanted: RowsWanted,
        empty: &[u8],
    ) -> Result<JoinRows> {
        let by = names_by(&self.by, self.count())?;
        let selects = self.how.selects();
        let paths = self.paths()?;
        let asked = self.asked().of_objects(self.jsonl, &paths);
        let (inputs, writer) = tables_joined(&by, (asked, selects), (tables, self.count()))?;
        let header = match (selects, inputs.first()) {
            (true, Some(left)) => header_as_it_is(left, &writer),
            _ => header(&inputs, &writer),
        };
        Ok(JoinRows {
            wanted,
            selects,
            form: match self.jsonl {
                true => JoinedForm::Objects(JoinObjects::new(&by, inputs.len())),
                false => {
                    let between = writer.delimiter();
                    JoinedForm::Pieces(Layout::key_first(inputs.len(), false, between))
                }
            },
            absent: inputs.iter().map(|table| absent(table, empty)).collect(),
            empty_key: Vec::new(),
            inputs: inputs.into_iter().map(JoinInput::Rows).collect(),
            header,
            writer,
        })
    }

    /// Of lines `tables` have the first line of each input, where it is asked for.
    fn of_lines(
        &self,
        tables: &[InputTable],
        wanted: RowsWanted,
        empty: &[u8],
    ) -> Result<JoinRows> {
        let (separator, end) = (self.separator()?, self.asked().line_end());
        let line_of = |table: &InputTable| {
            let line = end.strip(&table.header);
            (!table.header.is_empty()).then(|| line.to_vec())
        };
        let first: Vec<_> = tables.iter().map(line_of).collect();
        let first: Vec<_> = first.iter().map(Option::as_deref).collect();
        let between = match separator {
            None => BETWEEN_BLANKS,
            Some(_) if self.has_whole_lines() => b'\n',
            Some(byte) => byte,
        };
        let lines = lines_joined(self, (separator, between, empty), &first)?;
        let mut joined = JoinRows {
            wanted,
            selects: self.how.selects(),
            inputs: lines.inputs.into_iter().map(JoinInput::Lines).collect(),
            form: JoinedForm::Pieces(lines.layout),
            absent: lines.absent,
            empty_key: empty.to_vec(),
            header: Vec::new(),
            writer: RecordFields::Lines(end, Some(between)).writer(),
        };
        if self.header {
            joined.header = joined.header_of_lines(&first)?;
        }
        Ok(joined)
    }
}

//! `top`: the records that a sort would put first, of all or of each group, without sorting the others.
//!
//! ```text
//!   record ──▶ group: the columns of --by │ order: the code of its keys ── the first N of each are held back ──▶ N of each group
//! ```
//!
//! Records are written as they stood. Those whose keys are equal are in the order of the input, as by `sort -s`. A mapper gives
//! away what it has no room for, and the reducer writes the first of what comes, in order: so N is not bounded by memory.

use super::kind::Described;
use super::mapreduce::{NativeJob, NativeOutput, wrong_option};
use super::tables::{
    FieldsAsked, InputTable, KeysAsked, RecordFields, RecordsAsked, json_lines, record_inputs,
    record_options,
};
use crate::plan::table::{CommandSpec, Common, argument, option};
use gristmill_base::error::Result;
use gristmill_gnu_keys::Keys;
use gristmill_storage::lines::LineEnd;
use gristmill_storage::location::Location;
use gristmill_tasks::merge::groups::MergedGroups;
use gristmill_tasks::task::{
    Combined, FirstRecords, FirstWanted, Mapper, NextRecord, Operator, Pairs, PartFiles, Records,
    Reducer,
};

/// Pairs of a group that are reduced at once.
const PAIRS_AT_ONCE: usize = 1 << 12;

record_options! {
    output,
    /// Options of `top`, as given.
    pub(in crate::jobs) struct TopSpec {
        number: Option<usize> = argument("How many records, of all or of each group."),
        inputs: Vec<Location> = record_inputs(),
        key: Vec<String> = option(
            "the whole line; of a table, all columns in their order",
            "A key, as of `gristmill sort`. With --csv or --tsv, columns with commas between them, by name or number: \
             price:num:desc,name; for the largest first, :desc; also :nocase, :version, :human, :month, :asc and :text. For lines F[.C][OPTS][,F[.C][OPTS]], as GNU sort has it. Repeatable: \
             a later key decides if the earlier ones are equal.",
        ).short("k"),
        by: Vec<String> = option(
            "all records are one group",
            "The columns whose values make a group, with commas between them: by name, or by number from 1 on. The first N records of \
             each group are written. Repeatable.",
        ),
        ties: Option<String> = option(
            "first",
            "Of records whose keys are equal to those of the N-th: first takes no more than N, as they come in the input; all takes \
             all of them.",
        ),
        numeric_sort: bool = option("off", "Compare numbers: -1.5, 2, 10.").short("n"),
        general_numeric_sort: bool = option("off", "Compare numbers as C reads them: 1e3, 0x10, inf.").short("g"),
        human_numeric_sort: bool = option("off", "Compare numbers with units: 2K, 1G.").short("h"),
        version_sort: bool = option("off", "Compare names with versions in them: a-1.9, a-1.10.").short("V"),
        month_sort: bool = option("off", "Compare names of months: JAN, Feb, dec.").short("M"),
        ignore_case: bool = option("off", "Take a to z as A to Z.").short("f"),
        ignore_leading_blanks: bool = option("off", "Skip blanks at the beginning of keys.").short("b"),
        jsonl: bool = json_lines(),
        reverse: bool = option("off", "Larger keys first.").short("r"),
        parts: Option<usize> = option(
            "one file",
            "With --by: write the output as N files, part-r-00000 and so on, in a directory. The hash of a group's key decides its part.",
        ),
    }
}

impl Described for TopSpec {
    const COMMAND: CommandSpec = CommandSpec {
        name: "top",
        function: Some("top_records"), // gm.top is a reduction
        help: "Keep the N records that a sort would put first, of all or of each group, without sorting the others.",
        details: "As `sort -s | head -n N` does. For those with the largest price: --csv --key price:num:desc.",
        example: "gristmill top 10 --csv --key price:num:desc --by city orders.csv",
        python: r#"
>>> import tempfile, gristmill
>>> from pathlib import Path
>>> with tempfile.TemporaryDirectory() as folder:
...     _ = Path(folder, "table").write_text("city,price\nRome,2\nBern,0.5\nRome,30\n")
...     report = gristmill.top_records(
...         2, f"{folder}/table", output=f"{folder}/out", csv=True, key="price:num:desc"
...     )
...     print(Path(folder, "out").read_text(), end="")
city,price
Rome,30
Rome,2
"#,
        explained: true,
        own: Self::OPTIONS,
        common: Common::NAMES,
    };
}

impl TopSpec {
    /// Whether records come with codes of their keys.
    fn has_columns(&self) -> bool {
        self.csv || self.tsv || self.jsonl
    }

    fn fields_asked(&self) -> FieldsAsked<'_> {
        self.asked().of_objects(self.jsonl, &self.by)
    }

    /// How many records are wanted.
    fn wanted(&self) -> Result<FirstWanted> {
        let most = self
            .number
            .ok_or_else(|| wrong_option("number", "it must be given"))?;
        let ties = match self.ties.as_deref() {
            None | Some("first") => false,
            Some("all") => true,
            Some(other) => {
                let wrong = wrong_option("ties", &format!("{other:?} is neither first nor all"));
                return Err(wrong.advise("give first or all"));
            }
        };
        Ok(FirstWanted { most, ties })
    }

    fn keys(&self) -> KeysAsked<'_> {
        let flags = [
            (self.numeric_sort, 'n'),
            (self.general_numeric_sort, 'g'),
            (self.human_numeric_sort, 'h'),
            (self.version_sort, 'V'),
            (self.month_sort, 'M'),
            (self.ignore_case, 'f'),
            (self.ignore_leading_blanks, 'b'),
            (self.reverse, 'r'),
        ];
        KeysAsked::new(&self.key, self.field_separator.as_deref(), &flags)
    }
}

impl NativeJob for TopSpec {
    fn inputs(&self) -> Vec<&[Location]> {
        vec![&self.inputs]
    }

    fn output(&self) -> NativeOutput<'_> {
        NativeOutput::of_options(self.output.as_ref(), self.parts)
    }

    fn parts(&self) -> Result<Option<usize>> {
        match (self.by.is_empty(), self.parts) {
            (false, parts) => Ok(parts),
            (true, None | Some(1)) => Ok(Some(1)),
            (true, Some(_)) => Err(wrong_option("parts", "all records are one group")
                .advise("give it with by, or leave it out")),
        }
    }

    fn records(&self) -> Result<RecordsAsked> {
        self.wanted()?;
        let keys = match self.has_columns() {
            true => self.keys().columns()?,
            false => Vec::new(),
        };
        match self.fields_asked().records(1, keys)? {
            RecordsAsked::Fields(end, _) if self.by.is_empty() => Ok(RecordsAsked::Lines(end)),
            records => Ok(records),
        }
    }

    fn operator(&self, tables: &[InputTable]) -> Result<Box<dyn Operator>> {
        let fields = self.fields_asked().fields(tables.first())?;
        let by = fields.columns(&self.by)?;
        let keys = match self.has_columns() {
            true => None,
            false => Some(self.keys().of_lines()?),
        };
        let header = fields.header();
        Ok(Box::new(TopOperator {
            wanted: self.wanted()?,
            keys,
            by,
            fields,
            header,
            end: self.asked().line_end(),
        }))
    }
}

/// Takes the first records.
#[derive(Debug)]
struct TopOperator {
    wanted: FirstWanted,
    /// Those of lines; rows come with their codes.
    keys: Option<Keys>,
    by: Vec<usize>,
    fields: RecordFields,
    header: Vec<u8>,
    end: LineEnd,
}

impl Operator for TopOperator {
    fn combines(&self) -> bool {
        true
    }

    fn ordered(&self) -> bool {
        true
    }

    fn header(&self) -> &[u8] {
        &self.header
    }

    fn mapper(&self, memory: usize) -> Result<Box<dyn Mapper + '_>> {
        Ok(Box::new(TopMapper {
            top: self,
            first: FirstRecords::new(self.wanted, memory),
            group: Vec::new(),
            code: Vec::new(),
            room: Vec::new(),
        }))
    }

    fn reducer(&self, _memory: usize) -> Result<Box<dyn Reducer + '_>> {
        Ok(Box::new(TopReducer {
            wanted: self.wanted,
            is_inside: false,
            left: 0,
            last: Vec::new(),
        }))
    }
}

struct TopMapper<'o> {
    top: &'o TopOperator,
    first: FirstRecords,
    group: Vec<u8>,
    code: Vec<u8>,
    room: Vec<u8>,
}

impl TopMapper<'_> {
    /// Takes a line.
    #[inline]
    fn line(
        &mut self,
        keys: &Keys,
        (line, position): (&[u8], u64),
        pairs: &mut Pairs<'_>,
    ) -> Result<()> {
        self.code.clear();
        keys.encode(line, &mut self.code);
        let record = NextRecord {
            group: &self.group,
            code: &self.code,
            position,
            record: [line, self.top.end.text().as_bytes()],
        };
        self.first.add(record, pairs)
    }
}

impl Mapper for TopMapper<'_> {
    fn records(&mut self, records: &Records<'_>, pairs: &mut Pairs<'_>) -> Result<()> {
        let TopOperator {
            keys, by, fields, ..
        } = self.top;
        fields.write_key(records, by, &mut self.room, &mut self.group)?;
        match keys {
            None => {
                let record = NextRecord {
                    group: &self.group,
                    code: records.code,
                    position: records.position,
                    record: [records.bytes, b""],
                };
                self.first.add(record, pairs)
            }
            Some(keys) if !by.is_empty() => {
                self.line(keys, (records.bytes, records.position), pairs)
            }
            Some(keys) => {
                let lines = self.top.end.lines_of(records.bytes);
                let mut lines = lines.zip(records.position..);
                lines.try_for_each(|line| self.line(keys, line, pairs))
            }
        }
    }

    fn end(&mut self, pairs: &mut Pairs<'_>) -> Result<Option<Combined>> {
        self.first.end(pairs).map(Some)
    }
}

struct TopReducer {
    wanted: FirstWanted,
    /// Whether there may be more pairs of the group.
    is_inside: bool,
    /// Records of the group that are still wanted.
    left: usize,
    /// What the last one that was wanted is ordered by.
    last: Vec<u8>,
}

impl Reducer for TopReducer {
    fn next(&mut self, groups: &mut MergedGroups, part: &mut PartFiles) -> Result<bool> {
        if !self.is_inside {
            if !groups.next_group()? {
                return Ok(false);
            }
            (self.is_inside, self.left) = (true, self.wanted.most);
        }
        for _ in 0..PAIRS_AT_ONCE {
            if !groups.next_pair()? {
                self.is_inside = false;
                break;
            }
            if self.left > 0 {
                part.record(groups.value())?;
                self.left -= 1;
                if self.left == 0 {
                    self.last.clear();
                    self.last.extend_from_slice(groups.order());
                }
            } else if self.wanted.ties && groups.order() == self.last {
                part.record(groups.value())?;
            }
        }
        Ok(true)
    }
}

//! `sample`: some of the records, by chance: so many, so many of each group, or each with a probability.
//!
//! ```text
//!   -n N     record ──▶ group, random key │ position, record ── the N smallest keys of a task ── the N smallest of all
//!   --rate   record, if its random key is small enough ──▶ position │ record
//! ```
//!
//! What is drawn is written in the order of the input; with groups, one group after the other, in the order of their bytes.

use super::kind::Described;
use super::mapreduce::{NativeJob, NativeOutput, wrong_option};
use super::random::{EachRecord, POSITION_BYTES, RandomRecords};
use super::tables::{
    FieldsAsked, InputTable, RecordFields, RecordsAsked, json_lines, record_inputs, record_options,
};
use crate::plan::table::{CommandSpec, Common, option};
use gristmill_base::error::{Error, JobOption, Kind, Result, show_bytes};
use gristmill_storage::lines::LineEnd;
use gristmill_storage::location::Location;
use gristmill_tasks::merge::groups::MergedGroups;
use gristmill_tasks::task::{
    Combined, FirstRecords, FirstWanted, Mapper, NextRecord, Operator, Pairs, PartFiles, Records,
    Reducer,
};

/// What a record that is kept takes beside its bytes: its entry, and what an allocation costs.
const ENTRY_BYTES: usize = 64;

/// A probability of 1, in 2^-64.
const ALWAYS: f64 = (1_u128 << 64) as f64;

record_options! {
    output,
    /// Options of `sample`, as given.
    pub(in crate::jobs) struct RecordSampleSpec {
        inputs: Vec<Location> = record_inputs(),
        number: Option<usize> = option(
            "either this or rate must be given",
            "How many records to draw; all, if there are fewer. They must fit in the memory of a worker.",
        ).short("n"),
        rate: Option<f64> = option(
            "either this or number must be given",
            "Draw each record with this probability, more than 0 and at most 1, such as 0.01.",
        ),
        by: Vec<String> = option(
            "of all records together",
            "Draw so many of each group: of the records with equal values in these columns, with commas between them, by name, or by \
             number from 1 on. Repeatable. With a rate it changes nothing.",
        ).short("b"),
        jsonl: bool = json_lines(),
        seed: Option<String> = option("0", "Any text: another one draws other records, the same one the same."),
    }
}

impl Described for RecordSampleSpec {
    const COMMAND: CommandSpec = CommandSpec {
        name: "sample",
        function: None,
        help: "Draw lines, or rows of tables, by chance: so many, so many of each group, or each with a probability.",
        details: "Every record is as likely to be drawn as any other, and none is drawn twice. The output is in the order of the input; \
                  with by, one group after the other, in the order of their bytes.",
        example: "gristmill sample -n 1000 --csv orders.csv",
        python: r#"
>>> import tempfile, gristmill
>>> from pathlib import Path
>>> with tempfile.TemporaryDirectory() as folder:
...     _ = Path(folder, "text").write_text("".join(f"{number}\n" for number in range(1000)))
...     report = gristmill.sample(f"{folder}/text", output=f"{folder}/out", number=3)
...     len(Path(folder, "out").read_text().split())
3
"#,
        explained: true,
        own: Self::OPTIONS,
        common: Common::NAMES,
    };
}

/// How much is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DrawAmount {
    /// So many records.
    Number(usize),
    /// Records whose random key's high half is less.
    Below(u128),
}

impl RecordSampleSpec {
    fn fields_asked(&self) -> FieldsAsked<'_> {
        self.asked().of_objects(self.jsonl, &self.by)
    }

    fn amount(&self) -> Result<DrawAmount> {
        match (self.number, self.rate) {
            (Some(number), None) => Ok(DrawAmount::Number(number)),
            (None, Some(rate)) if rate > 0.0 && rate <= 1.0 => {
                Ok(DrawAmount::Below((rate * ALWAYS) as u128))
            }
            (None, Some(rate)) => {
                let what = format!("{rate} is not a probability of more than 0 and at most 1");
                Err(wrong_option("rate", &what).advise("give 0.01 for one record in a hundred"))
            }
            (Some(_), Some(_)) => Err(wrong_option("rate", "number and rate exclude each other")
                .advise("give one of them")),
            (None, None) => Err(wrong_option("number", "neither number nor rate is given")
                .advise("say how much to draw: -n 1000, or --rate 0.01")),
        }
    }
}

impl NativeJob for RecordSampleSpec {
    fn inputs(&self) -> Vec<&[Location]> {
        vec![&self.inputs]
    }

    fn output(&self) -> NativeOutput<'_> {
        NativeOutput::of_options(self.output.as_ref(), None)
    }

    fn parts(&self) -> Result<Option<usize>> {
        Ok(Some(1))
    }

    fn records(&self) -> Result<RecordsAsked> {
        self.amount()?;
        match self.by.is_empty() {
            true => self.fields_asked().whole_records(1),
            false => self.fields_asked().records(1, Vec::new()),
        }
    }

    fn operator(&self, tables: &[InputTable]) -> Result<Box<dyn Operator>> {
        let many = matches!(self.records()?, RecordsAsked::Lines(_));
        let fields = self.fields_asked().fields(tables.first())?;
        Ok(Box::new(SampleOperator {
            amount: self.amount()?,
            records: RandomRecords::new(self.seed.as_deref(), many),
            by: fields.columns(&self.by)?,
            header: fields.header(),
            end: self.asked().line_end(),
            fields,
        }))
    }
}

/// Draws records.
#[derive(Debug)]
struct SampleOperator {
    amount: DrawAmount,
    records: RandomRecords,
    by: Vec<usize>,
    fields: RecordFields,
    header: Vec<u8>,
    end: LineEnd,
}

impl Operator for SampleOperator {
    fn combines(&self) -> bool {
        self.ordered()
    }

    fn ordered(&self) -> bool {
        matches!(self.amount, DrawAmount::Number(_))
    }

    fn header(&self) -> &[u8] {
        &self.header
    }

    fn mapper(&self, memory: usize) -> Result<Box<dyn Mapper + '_>> {
        Ok(match self.amount {
            DrawAmount::Number(number) => Box::new(NumberMapper {
                sample: self,
                first: FirstRecords::new(
                    FirstWanted {
                        most: number,
                        ties: false,
                    },
                    memory,
                ),
                group: Vec::new(),
                room: Vec::new(),
            }),
            DrawAmount::Below(border) => Box::new(RateMapper {
                sample: self,
                border,
            }),
        })
    }

    fn reducer(&self, memory: usize) -> Result<Box<dyn Reducer + '_>> {
        Ok(match self.amount {
            DrawAmount::Number(number) => Box::new(NumberReducer {
                number,
                memory,
                drawn: Vec::new(),
                records: EachRecord::ended_by(self.end),
            }),
            DrawAmount::Below(_) => Box::new(EachRecord::ended_by(self.end)),
        })
    }
}

struct RateMapper<'o> {
    sample: &'o SampleOperator,
    border: u128,
}

impl Mapper for RateMapper<'_> {
    fn records(&mut self, records: &Records<'_>, pairs: &mut Pairs<'_>) -> Result<()> {
        let border = self.border;
        self.sample.records.each(records, |record| {
            if record.key >> 64 >= border {
                return Ok(());
            }
            pairs.give_to(0, &record.position(), &[], record.bytes)
        })
    }
}

struct NumberMapper<'o> {
    sample: &'o SampleOperator,
    first: FirstRecords,
    group: Vec<u8>,
    room: Vec<u8>,
}

impl Mapper for NumberMapper<'_> {
    fn records(&mut self, records: &Records<'_>, pairs: &mut Pairs<'_>) -> Result<()> {
        let SampleOperator { by, fields, .. } = self.sample;
        fields.write_key(records, by, &mut self.room, &mut self.group)?;
        let (first, group) = (&mut self.first, &self.group);
        self.sample.records.each(records, |record| {
            let next = NextRecord {
                group,
                code: &record.key.to_be_bytes(),
                position: record.offset,
                record: [&record.position(), record.bytes],
            };
            first.add(next, pairs)
        })
    }

    fn end(&mut self, pairs: &mut Pairs<'_>) -> Result<Option<Combined>> {
        self.first.end(pairs).map(Some)
    }
}

struct NumberReducer {
    number: usize,
    memory: usize,
    /// Positions with records.
    drawn: Vec<Box<[u8]>>,
    records: EachRecord,
}

impl NumberReducer {
    #[cold]
    fn too_many(&self) -> Error {
        let (count, room) = (self.drawn.len(), show_bytes(self.memory as u64));
        let message = format!(
            "{count} records of a sample, to be put in the order of the input, need more than {room}, the memory of a worker"
        );
        Error::new(Kind::Memory, "draw the sample", message).advise_options(
            "give more {}, or fewer {}; or ask for fewer records, or for a rate, which needs no memory",
            [JobOption::Memory.named(), JobOption::Workers.named()],
        )
    }
}

impl Reducer for NumberReducer {
    fn next(&mut self, groups: &mut MergedGroups, part: &mut PartFiles) -> Result<bool> {
        if !groups.next_group()? {
            return Ok(false);
        }
        let mut held = 0;
        while self.drawn.len() < self.number && groups.next_pair()? {
            held += groups.value().len() + ENTRY_BYTES;
            self.drawn.push(groups.value().into());
            if held > self.memory {
                return Err(self.too_many());
            }
        }
        self.drawn.sort_unstable();
        for value in self.drawn.drain(..) {
            let record = value.get(POSITION_BYTES..);
            self.records.write(record.unwrap_or_default(), part)?;
        }
        Ok(true)
    }
}

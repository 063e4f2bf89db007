//! `shuf`: all records in a random order: lines, or rows of a table, whose header stays first.
//!
//! ```text
//!   record ──▶ random key │ record ── parts by the high bits of the key, sorted by all of it ──▶ record
//! ```
//!
//! The parts, one behind the other, are a random permutation of the input, and the same one however many they are.

use super::kind::Described;
use super::mapreduce::{NativeJob, NativeOutput};
use super::random::{EachRecord, RandomRecords};
use super::tables::{InputTable, RecordsAsked, record_inputs, record_options};
use crate::plan::table::{CommandSpec, Common, option};
use gristmill_base::error::Result;
use gristmill_base::value::partition;
use gristmill_storage::lines::LineEnd;
use gristmill_storage::location::Location;
use gristmill_tasks::task::{Mapper, Operator, Pairs, Records, Reducer};

record_options! {
    output,
    /// Options of `shuf`, as given.
    pub(in crate::jobs) struct ShufSpec {
        inputs: Vec<Location> = record_inputs(),
        seed: Option<String> = option("0", "Any text: another one gives another order, the same one the same."),
        parts: Option<usize> = option(
            "one file",
            "Write the output as N files, part-r-00000 and so on, in a directory. One behind the other they are the same, however many they are.",
        ),
    }
}

impl Described for ShufSpec {
    const COMMAND: CommandSpec = CommandSpec {
        name: "shuf",
        function: None,
        help: "Put lines, or rows of tables, in a random order.",
        details: "As GNU shuf does, with all cores and data bigger than memory. Every order is as likely as any other.",
        example: "gristmill shuf --csv train.csv -o shuffled.csv --seed today",
        python: r#"
>>> import tempfile, gristmill
>>> from pathlib import Path
>>> with tempfile.TemporaryDirectory() as folder:
...     _ = Path(folder, "text").write_text("a\nb\nc\n")
...     report = gristmill.shuf(f"{folder}/text", output=f"{folder}/out", seed="4")
...     lines = Path(folder, "out").read_text().split()
>>> sorted(lines)
['a', 'b', 'c']
"#,
        explained: true,
        own: Self::OPTIONS,
        common: Common::NAMES,
    };
}

impl NativeJob for ShufSpec {
    fn inputs(&self) -> Vec<&[Location]> {
        vec![&self.inputs]
    }

    fn output(&self) -> NativeOutput<'_> {
        NativeOutput::of_options(self.output.as_ref(), self.parts)
    }

    fn parts(&self) -> Result<Option<usize>> {
        Ok(self.parts)
    }

    fn records(&self) -> Result<RecordsAsked> {
        self.asked().whole_records(1)
    }

    fn operator(&self, tables: &[InputTable]) -> Result<Box<dyn Operator>> {
        let many = matches!(self.records()?, RecordsAsked::Lines(_));
        Ok(Box::new(ShuffleOperator {
            records: RandomRecords::new(self.seed.as_deref(), many),
            header: self.asked().fields(tables.first())?.header(),
            end: self.asked().line_end(),
        }))
    }
}

/// Puts records in the order of their random keys.
#[derive(Debug)]
struct ShuffleOperator {
    records: RandomRecords,
    header: Vec<u8>,
    end: LineEnd,
}

impl Operator for ShuffleOperator {
    fn header(&self) -> &[u8] {
        &self.header
    }

    fn mapper(&self, _memory: usize) -> Result<Box<dyn Mapper + '_>> {
        Ok(Box::new(ShuffleMapper(self)))
    }

    fn reducer(&self, _memory: usize) -> Result<Box<dyn Reducer + '_>> {
        Ok(Box::new(EachRecord::ended_by(self.end)))
    }
}

struct ShuffleMapper<'o>(&'o ShuffleOperator);

impl Mapper for ShuffleMapper<'_> {
    fn records(&mut self, records: &Records<'_>, pairs: &mut Pairs<'_>) -> Result<()> {
        let parts = pairs.partitions() as usize;
        self.0.records.each(records, |record| {
            let part = partition((record.key >> 64) as u64, parts) as u32;
            pairs.give_to(part, &record.key.to_be_bytes(), &[], record.bytes)
        })
    }
}

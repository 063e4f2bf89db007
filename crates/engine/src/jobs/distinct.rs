//! `distinct`: one of each line, in the order of bytes; how often each occurs, those that occur again, those that do not.
//!
//! A line is its bytes without the LF behind it: a CR is a part of it, and the last line needs no LF.

use super::kind::Described;
use super::mapreduce::{NativeJob, NativeOutput, wrong_option};
use super::tables::InputTable;
use crate::plan::table::{CommandSpec, Common, argument, option, options};
use gristmill_base::error::Result;
use gristmill_storage::location::Location;
use gristmill_tasks::task::{CountedKeys, KeySelection, LineKeys, Operator, OutputLine};

options! {
    /// Options of `distinct`, as given.
    pub(in crate::jobs) struct DistinctSpec {
        inputs: Vec<Location> = argument(
            "Files, or directories whose files are read (not those whose names begin with _ or .); compressed ones, too.",
        ),
        output: Option<Location> = option(
            "standard output",
            "The file to write. If it exists, the finished output replaces it in one step, also if it is an input. With --parts: \
             a new directory.",
        ).short("o"),
        parts: Option<usize> = option(
            "one file",
            "Write the output as N files, part-r-00000 and so on, in a directory. The hash of a line decides its part.",
        ),
        count: bool = option("off", "Write in front of each line how often it occurs, as uniq -c does."),
        repeated: bool = option("off", "Only lines that occur more than once."),
        once: bool = option("off", "Only lines that occur once."),
    }
}

impl Described for DistinctSpec {
    const COMMAND: CommandSpec = CommandSpec {
        name: "distinct",
        function: Some("unique"), // gm.distinct is a reduction
        help: "Keep one of each line; count them, or keep those that occur once or again.",
        details: "As `sort | uniq` does, with all cores and data bigger than memory. Lines are in byte order in each part; one file, and standard output, are a part for each 256 MB of input, one after another.",
        example: "gristmill distinct logs/ -o lines.txt --count",
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

impl NativeJob for DistinctSpec {
    fn inputs(&self) -> Vec<&[Location]> {
        vec![&self.inputs]
    }

    fn output(&self) -> NativeOutput<'_> {
        NativeOutput::of_options(self.output.as_ref(), self.parts)
    }

    fn parts(&self) -> Result<Option<usize>> {
        Ok(self.parts)
    }

    fn operator(&self, _tables: &[InputTable]) -> Result<Box<dyn Operator>> {
        if self.repeated && self.once {
            return Err(wrong_option(
                "once",
                "no line occurs once and more than once",
            ));
        }
        Ok(Box::new(CountedKeys {
            keys: LineKeys::Lines,
            selection: KeySelection {
                least: self.repeated.then_some(2),
                greatest: self.once.then_some(1),
                ..KeySelection::default()
            },
            line: match self.count {
                true => OutputLine::PaddedCountKey,
                false => OutputLine::Key,
            },
        }))
    }
}

//! `matchcount`, which is `grep --counts`: how often each match of a pattern occurs, as Hadoop's example `grep` counts:
//! lines of count, tab, match, the largest count first; of equal counts in the order of bytes.
//!
//! Hadoop needs two jobs for that, one that counts and one that sorts. Here the one reduce puts the counts in order.

use gristmill_grep::PatternOptions;

use super::kind::Described;
use super::mapreduce::{NativeJob, NativeOutput, pattern_of};
use super::tables::InputTable;
use crate::plan::table::{CommandSpec, Common, argument, option, options};
use gristmill_base::error::Result;
use gristmill_storage::lines::LineEnd;
use gristmill_storage::location::Location;
use gristmill_tasks::task::{
    CountedKeys, KeySelection, LetterCase, LineKeys, Operator, OutputLine,
};

options! {
    /// Options of `matchcount`, as given.
    pub(in crate::jobs) struct MatchcountSpec {
        pattern: String = argument("A regular expression, as of `gristmill grep`."),
        inputs: Vec<Location> = argument(
            "Files, or directories whose files are read (not those whose names begin with _ or .); compressed ones, too; - is standard input.",
        ),
        output: Location = argument("The directory to make."),
        fixed_strings: bool = option("off", "The pattern is text, not a regular expression.").short("F"),
        ignore_case: bool = option("off", "Upper and lower case are the same; each match is counted as it stands.").short("i"),
        word_regexp: bool = option("off", "A match must be a whole word.").short("w"),
        line_regexp: bool = option("off", "A match must be a whole line.").short("x"),
        top: Option<usize> = option("all of them", "Only the N matches that occur most often."),
        min: Option<usize> = option("1", "Leave out matches that occur fewer than N times."),
    }
}

impl Described for MatchcountSpec {
    const COMMAND: CommandSpec = CommandSpec {
        name: "matchcount",
        function: None,
        help: "Count how often each match of a pattern occurs: lines of count, tab, match, largest first.",
        details: "The same as `grep --counts PATTERN IN... -o OUT`. One part, as by Hadoop's example grep.",
        example: "gristmill matchcount 'ERROR [A-Z]+' logs/ counts/",
        python: r#"
>>> import tempfile, gristmill
>>> from pathlib import Path
>>> with tempfile.TemporaryDirectory() as folder:
...     _ = Path(folder, "text").write_text("to be or\nnot to be")
...     report = gristmill.matchcount("[a-z]o", f"{folder}/text", f"{folder}/counts")
...     print(Path(folder, "counts/part-r-00000").read_text().replace("\t", " "), end="")
2 to
1 no
"#,
        explained: true,
        own: Self::OPTIONS,
        common: Common::NAMES,
    };
}

impl NativeJob for MatchcountSpec {
    fn inputs(&self) -> Vec<&[Location]> {
        vec![&self.inputs]
    }

    fn output(&self) -> NativeOutput<'_> {
        NativeOutput::Directory(&self.output)
    }

    fn parts(&self) -> Result<Option<usize>> {
        Ok(Some(1))
    }

    fn operator(&self, _tables: &[InputTable]) -> Result<Box<dyn Operator>> {
        let options = PatternOptions {
            fixed: self.fixed_strings,
            ignore_case: self.ignore_case,
            word: self.word_regexp,
            whole_line: self.line_regexp,
            ..PatternOptions::default()
        };
        let pattern = pattern_of("pattern", &self.pattern, options)?;
        Ok(Box::new(CountedKeys {
            keys: LineKeys::Matches(pattern, LetterCase::Matters),
            selection: KeySelection {
                least: self.min,
                largest_first: true,
                most: self.top,
                ..KeySelection::default()
            },
            line: OutputLine::CountKey,
            end: LineEnd::Lf,
        }))
    }
}

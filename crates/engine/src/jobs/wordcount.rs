//! `wordcount`: how often each word occurs, as Hadoop's example counts: the same words, the same parts, the same bytes.
//!
//! Words stand between spaces, tabs, LF, CR and FF, and are bytes: their encoding does not matter.

use gristmill_grep::PatternOptions;

use super::kind::Described;
use super::mapreduce::{NativeJob, NativeOutput, pattern_of, wrong_option};
use super::tables::InputTable;
use crate::plan::table::{CommandSpec, Common, argument, option, options};
use gristmill_base::error::Result;
use gristmill_storage::lines::LineEnd;
use gristmill_storage::location::Location;
use gristmill_tasks::task::{
    CountedKeys, KeySelection, LetterCase, LineKeys, Operator, OutputLine,
};

options! {
    /// Options of `wordcount`, as given.
    pub(in crate::jobs) struct WordcountSpec {
        inputs: Vec<Location> = argument(
            "Files, or directories whose files are read (not those whose names begin with _ or .); compressed ones, too; - is standard input.",
        ),
        output: Location = argument("The directory to make."),
        parts: Option<usize> = option(
            "one for each 256 MB of input",
            "How many part files. The hash of a word decides its part, as in Hadoop.",
        ),
        ignore_case: bool = option("off", "Count The and the as one word, the. Only ASCII letters have a case here."),
        fold_case: bool = option("off", "The same for all letters that have a lower case in Unicode: ÉTÉ and été are one word."),
        tokens: String = option(
            "what stands between spaces, tabs, LF, CR and FF",
            "A regular expression: its matches in a line are the words, such as [a-z]+.",
        ),
        top: Option<usize> = option(
            "all of them, in byte order",
            "Only the N words that occur most often, the most frequent first, in one part.",
        ),
        min: Option<usize> = option("1", "Leave out words that occur fewer than N times."),
    }
}

impl Described for WordcountSpec {
    const COMMAND: CommandSpec = CommandSpec {
        name: "wordcount",
        function: None,
        help: "Count how often each word occurs: lines of word, tab, count, in byte order in each part.",
        details: "Words stand between spaces, tabs, LF, CR and FF, as in Hadoop's example.",
        example: "gristmill wordcount books/ counts/",
        python: r#"
>>> import tempfile, gristmill
>>> from pathlib import Path
>>> with tempfile.TemporaryDirectory() as folder:
...     _ = Path(folder, "text").write_text("to be or\nnot to be")
...     report = gristmill.wordcount(f"{folder}/text", f"{folder}/counts")
...     print(Path(folder, "counts/part-r-00000").read_text().replace("\t", " "), end="")
be 2
not 1
or 1
to 2
"#,
        explained: true,
        own: Self::OPTIONS,
        common: Common::NAMES,
    };
}

impl NativeJob for WordcountSpec {
    fn inputs(&self) -> Vec<&[Location]> {
        vec![&self.inputs]
    }

    fn output(&self) -> NativeOutput<'_> {
        NativeOutput::Directory(&self.output)
    }

    fn parts(&self) -> Result<Option<usize>> {
        match (self.top, self.parts) {
            (Some(_), None | Some(1)) => Ok(Some(1)),
            (Some(_), Some(_)) => Err(wrong_option("parts", "with --top the output has one part")),
            (None, parts) => Ok(parts),
        }
    }

    fn operator(&self, _tables: &[InputTable]) -> Result<Box<dyn Operator>> {
        let case = match (self.fold_case, self.ignore_case) {
            (true, _) => LetterCase::Unicode,
            (_, true) => LetterCase::Ascii,
            _ => LetterCase::Matters,
        };
        let keys = match &*self.tokens {
            "" => LineKeys::Words(case),
            tokens => LineKeys::Matches(
                pattern_of("tokens", tokens, PatternOptions::default())?,
                case,
            ),
        };
        Ok(Box::new(CountedKeys {
            keys,
            selection: KeySelection {
                least: self.min,
                largest_first: self.top.is_some(),
                most: self.top,
                ..KeySelection::default()
            },
            line: OutputLine::KeyCount,
            end: LineEnd::Lf,
        }))
    }
}

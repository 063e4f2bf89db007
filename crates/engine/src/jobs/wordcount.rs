//! `wordcount`: how often each word occurs, as Hadoop's example counts: the same words, the same parts, the same bytes.
//!
//! Words stand between spaces, tabs, LF, CR and FF, and are bytes: their encoding does not matter.

use std::io::Write;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use gristmill_grep::{Pattern, PatternOptions};

use super::kind::{Described, JobKind};
use super::mapreduce::{self, text_job};
use super::steps::{Job, Output};
use crate::error::{Error, Kind, Result};
use crate::hadoop::partition::Partitioner;
use crate::lines::lines_of;
use crate::lines::words::each_word;
use crate::names::name_of;
use crate::plan::explain::Explanation;
use crate::plan::mapreduce::MapReduceSpec;
use crate::plan::table::{CommandSpec, Common, argument, option, options};
use crate::storage::location::Location;
use crate::storage::stores::Stores;
use crate::task::{Mapper, NativeExecutor, Selection, UserTaskExecutor};

options! {
    /// Options of `wordcount`, as given.
    pub(in crate::jobs) struct WordcountSpec {
        inputs: Vec<Location> = argument(
            "Files, or directories whose files are read (not those whose names begin with _ or .); compressed ones, too.",
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

impl JobKind for WordcountSpec {
    fn output(&self) -> Option<Output<'_>> {
        Some(Output::Directory(&self.output))
    }

    fn work(&self, store: Arc<Stores>) -> Option<Arc<dyn UserTaskExecutor>> {
        Some(Arc::new(NativeExecutor::new(store, self.mapper().ok()?)))
    }

    fn explain(&self, job: &Job<'_>) -> Result<Explanation> {
        mapreduce::explain(job, &self.plan(job)?)
    }

    fn run(&self, job: &mut Job<'_>) -> Result<()> {
        let store = job.environment.store.clone();
        let work = NativeExecutor::new(store, self.mapper()?).of_job(job.asked.options);
        mapreduce::run_native(job, self.plan(job)?, Arc::new(work))
    }
}

impl WordcountSpec {
    fn mapper(&self) -> Result<Words> {
        let tokens = (!self.tokens.is_empty()).then(|| {
            let text = name_of(self.tokens.clone());
            let pattern = Pattern::new(&[text.as_bytes()], PatternOptions::default());
            pattern.map_err(|what| wrong("tokens", &what))
        });
        Ok(Words {
            tokens: tokens.transpose()?,
            case: match (self.fold_case, self.ignore_case) {
                (true, _) => Case::Unicode,
                (_, true) => Case::Ascii,
                _ => Case::Matters,
            },
            selection: Selection {
                least: self
                    .min
                    .map(|least| i64::try_from(least).unwrap_or(i64::MAX)),
                largest_first: self.top.is_some(),
                most: self.top,
            },
        })
    }

    fn plan(&self, job: &Job<'_>) -> Result<MapReduceSpec> {
        self.mapper()?;
        let parts = match (self.top, self.parts) {
            (Some(_), None | Some(1)) => Some(1),
            (Some(_), Some(_)) => {
                return Err(wrong("parts", "with --top the output has one part"));
            }
            (None, parts) => parts,
        };
        text_job(job, &self.inputs, parts, &self.output)
    }
}

/// The error of an option.
fn wrong(option: &str, what: &str) -> Error {
    Error::new(
        Kind::BadOption,
        "read the options",
        format!("{option}: {what}"),
    )
    .of_option(option)
}

/// Hadoop's WordCount, and what else may be a word.
#[derive(Debug)]
struct Words {
    /// What is a word, if not what stands between spaces.
    tokens: Option<Pattern>,
    case: Case,
    selection: Selection,
}

/// Which words are one.
#[derive(Debug, Clone, Copy)]
enum Case {
    Matters,
    Ascii,
    Unicode,
}

impl Case {
    /// Hands on a word as it is counted.
    fn counted(
        self,
        word: &[u8],
        count: &mut impl FnMut(&[u8], Range<usize>) -> Result<()>,
    ) -> Result<()> {
        match self {
            Case::Matters => count(word, 0..word.len()),
            Case::Unicode if !word.is_ascii() => {
                let folded = folded(word);
                count(&folded, 0..folded.len())
            }
            Case::Ascii | Case::Unicode => count(&word.to_ascii_lowercase(), 0..word.len()),
        }
    }
}

/// A word with each letter in lower case; bytes that are no UTF-8 stay.
fn folded(word: &[u8]) -> Vec<u8> {
    let mut folded = Vec::with_capacity(word.len());
    for chunk in word.utf8_chunks() {
        for letter in chunk.valid().chars().flat_map(char::to_lowercase) {
            folded.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        }
        folded.extend_from_slice(chunk.invalid());
    }
    folded
}

impl Mapper for Words {
    fn map(
        &self,
        lines: &[u8],
        count: &mut impl FnMut(&[u8], Range<usize>) -> Result<()>,
    ) -> Result<()> {
        if let Some(tokens) = &self.tokens {
            return lines_of(lines).try_for_each(|line| {
                tokens.try_matches(line, |word| self.case.counted(&line[word], count))
            });
        }
        match self.case {
            Case::Matters => each_word(lines, |word| count(lines, word)),
            Case::Unicode if !lines.is_ascii() => {
                each_word(lines, |word| self.case.counted(&lines[word], count))
            }
            Case::Ascii | Case::Unicode => {
                let lower = lines.to_ascii_lowercase();
                each_word(&lower, |word| count(&lower, word))
            }
        }
    }

    fn partition(&self, key: &[u8], partitions: u32) -> u32 {
        Partitioner::Hash.part(key, partitions)
    }

    fn write(&self, key: &[u8], number: i64, out: &mut Vec<u8>) {
        out.extend_from_slice(key);
        let written = writeln!(out, "\t{number}");
        debug_assert!(written.is_ok(), "memory takes all");
    }

    fn selection(&self) -> Selection {
        self.selection
    }
}

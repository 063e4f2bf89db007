//! `matchcount`, which is `grep --counts`: how often each match of a pattern occurs, as Hadoop's example `grep` counts:
//! lines of count, tab, match, the largest count first; of equal counts in the order of bytes.
//!
//! Hadoop needs two jobs for that, one that counts and one that sorts. Here the one reduce puts the counts in order.

use std::io::Write;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use gristmill_grep::{Pattern, PatternOptions};

use super::kind::{Described, JobKind};
use super::mapreduce::{self, text_job};
use super::steps::{Job, Output};
use crate::error::{Error, Kind, Result};
use crate::lines::lines_of;
use crate::names::name_of;
use crate::plan::explain::Explanation;
use crate::plan::mapreduce::MapReduceSpec;
use crate::plan::table::{CommandSpec, Common, argument, option, options};
use crate::storage::location::Location;
use crate::storage::stores::Stores;
use crate::task::{Mapper, NativeExecutor, Selection, UserTaskExecutor};

options! {
    /// Options of `matchcount`, as given.
    pub(in crate::jobs) struct MatchcountSpec {
        pattern: String = argument("A regular expression, as of `gristmill grep`."),
        inputs: Vec<Location> = argument(
            "Files, or directories whose files are read (not those whose names begin with _ or .); compressed ones, too.",
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

impl JobKind for MatchcountSpec {
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

impl MatchcountSpec {
    fn mapper(&self) -> Result<Matches> {
        let options = PatternOptions {
            fixed: self.fixed_strings,
            ignore_case: self.ignore_case,
            word: self.word_regexp,
            whole_line: self.line_regexp,
            ..PatternOptions::default()
        };
        let text = name_of(self.pattern.clone());
        let pattern = Pattern::new(&[text.as_bytes()], options).map_err(|what| {
            let message = format!("pattern: {what}");
            Error::new(Kind::BadOption, "read the options", message).of_option("pattern")
        })?;
        let selection = Selection {
            least: self
                .min
                .map(|least| i64::try_from(least).unwrap_or(i64::MAX)),
            largest_first: true,
            most: self.top,
        };
        Ok(Matches { pattern, selection })
    }

    fn plan(&self, job: &Job<'_>) -> Result<MapReduceSpec> {
        self.mapper()?;
        text_job(job, &self.inputs, Some(1), &self.output)
    }
}

/// The matches of a pattern, counted.
#[derive(Debug)]
struct Matches {
    pattern: Pattern,
    selection: Selection,
}

impl Mapper for Matches {
    fn map(
        &self,
        lines: &[u8],
        count: &mut impl FnMut(&[u8], Range<usize>) -> Result<()>,
    ) -> Result<()> {
        lines_of(lines)
            .try_for_each(|line| self.pattern.try_matches(line, |range| count(line, range)))
    }

    fn partition(&self, _key: &[u8], _partitions: u32) -> u32 {
        0
    }

    fn write(&self, key: &[u8], number: i64, out: &mut Vec<u8>) {
        let written = write!(out, "{number}\t");
        debug_assert!(written.is_ok(), "memory takes all");
        out.extend_from_slice(key);
        out.push(b'\n');
    }

    fn selection(&self) -> Selection {
        self.selection
    }
}

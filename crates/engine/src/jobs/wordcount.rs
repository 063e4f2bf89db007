//! `wordcount`: how often each word occurs, as Hadoop's example counts: the same words, the same parts, the same bytes.
//!
//! Words stand between spaces, tabs, LF, CR and FF, and are bytes: their encoding does not matter.

use std::io::Write;
use std::sync::Arc;

use super::kind::{Described, JobKind};
use super::mapreduce::{self, text_job};
use super::steps::{Job, Output};
use crate::aggregate::Aggregate;
use crate::error::Result;
use crate::hadoop::partition::Partitioner;
use crate::plan::explain::Explanation;
use crate::plan::mapreduce::MapReduceSpec;
use crate::plan::table::{CommandSpec, Common, argument, option, options};
use crate::storage::location::Location;
use crate::storage::stores::Stores;
use crate::task::{Mapper, NativeExecutor, UserTaskExecutor};

options! {
    /// Options of `wordcount`, as given.
    pub(in crate::jobs) struct WordcountSpec {
        inputs: Vec<Location> = argument(
            "Files, or directories whose files are read (not those whose names begin with _ or .); compressed ones, too.",
        ),
        output: Location = argument("The directory to make."),
        parts: Option<usize> = option(
            "one for each 256 MB of input",
            "How many part files. The hash of a word says which one it is in, as in Hadoop.",
        ),
        ignore_case: bool = option("off", "Count The and the as one word, the. Only ASCII letters have a case here."),
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
        Some(Arc::new(NativeExecutor::new(store, self.mapper())))
    }

    fn explain(&self, job: &Job<'_>) -> Result<Explanation> {
        mapreduce::explain(job, &self.plan(job)?)
    }

    fn run(&self, job: &mut Job<'_>) -> Result<()> {
        let store = job.environment.store.clone();
        let work = NativeExecutor::new(store, self.mapper()).of_job(job.asked.options);
        mapreduce::run_native(job, self.plan(job)?, Arc::new(work))
    }
}

impl WordcountSpec {
    fn mapper(&self) -> Words {
        Words {
            ignore_case: self.ignore_case,
        }
    }

    fn plan(&self, job: &Job<'_>) -> Result<MapReduceSpec> {
        text_job(job, &self.inputs, self.parts, &self.output)
    }
}

/// Hadoop's WordCount.
#[derive(Debug)]
struct Words {
    ignore_case: bool,
}

impl Mapper for Words {
    fn aggregate(&self) -> Aggregate {
        Aggregate::Sum
    }

    fn map(&self, line: &[u8], emit: &mut impl FnMut(&[u8], i64) -> Result<()>) -> Result<()> {
        let between = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0c);
        let words = line.split(between).filter(|word| !word.is_empty());
        if self.ignore_case {
            return words
                .into_iter()
                .try_for_each(|word| emit(&word.to_ascii_lowercase(), 1));
        }
        words.into_iter().try_for_each(|word| emit(word, 1))
    }

    fn partition(&self, key: &[u8], partitions: u32) -> u32 {
        Partitioner::Hash.part(key, partitions)
    }

    fn write(&self, key: &[u8], number: i64, out: &mut Vec<u8>) {
        out.extend_from_slice(key);
        let written = writeln!(out, "\t{number}");
        debug_assert!(written.is_ok(), "memory takes all");
    }
}

//! What was given to a command, as values: a [`JobSpec`] for each line of the table ([`super::table`]).

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::amount::{Bytes, Rows};
use super::format::Format;
use super::mapreduce::MapReduceSpec;
use crate::error::{Error, Kind, Result};
use crate::record::layout::Layout;

/// The options of `sort`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own"
)]
pub struct SortSpec {
    /// Files and directories to read; standard input where empty.
    #[serde(default)]
    pub inputs: Vec<PathBuf>,
    /// The file to write; standard output where none.
    #[serde(default)]
    pub output: Option<PathBuf>,
    /// What a record is.
    #[serde(default)]
    pub format: Format,
    /// Larger keys first.
    #[serde(default)]
    pub reverse: bool,
    /// Of equal keys only the first.
    #[serde(default)]
    pub unique: bool,
    /// Equal keys in input order.
    #[serde(default)]
    pub stable: bool,
    /// Only look whether it is sorted.
    #[serde(default)]
    pub check: bool,
    /// Most memory.
    #[serde(default)]
    pub memory: Option<Bytes>,
    /// Tasks at once.
    #[serde(default)]
    pub workers: Option<usize>,
    /// Where runs go.
    #[serde(default)]
    pub spill_dir: Vec<PathBuf>,
    /// Do not make it durable.
    #[serde(default)]
    pub no_sync: bool,
}

/// Options of `teragen`, as given.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TeragenSpec {
    /// How many records.
    pub rows: Rows,
    /// The directory to make.
    pub output: PathBuf,
    /// How records are filled.
    #[serde(default = "default_layout")]
    pub layout: Layout,
    /// Whether keys share prefixes.
    #[serde(default)]
    pub skew: bool,
    /// The number of the first record.
    #[serde(default = "no_rows")]
    pub start: Rows,
    /// How many part files.
    #[serde(default)]
    pub files: Option<usize>,
    /// Most memory.
    #[serde(default)]
    pub memory: Option<Bytes>,
    /// Tasks at once.
    #[serde(default)]
    pub workers: Option<usize>,
    /// Replace the output.
    #[serde(default)]
    pub overwrite: bool,
    /// Do not make it durable.
    #[serde(default)]
    pub no_sync: bool,
}

fn default_layout() -> Layout {
    Layout::Hadoop
}

fn no_rows() -> Rows {
    Rows(0)
}

/// Options of `terasort`, as given.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TerasortSpec {
    /// Files and directories to read.
    pub inputs: Vec<PathBuf>,
    /// The directory to make.
    pub output: PathBuf,
    /// How many part files.
    #[serde(default)]
    pub partitions: Option<usize>,
    /// Where runs go; beside the output where empty.
    #[serde(default)]
    pub spill_dir: Vec<PathBuf>,
    /// Most memory.
    #[serde(default)]
    pub memory: Option<Bytes>,
    /// Tasks at once.
    #[serde(default)]
    pub workers: Option<usize>,
    /// Replace the output.
    #[serde(default)]
    pub overwrite: bool,
    /// Do not make it durable.
    #[serde(default)]
    pub no_sync: bool,
}

/// Options of `teravalidate`, as given.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TeravalidateSpec {
    /// The directory to check.
    pub input: PathBuf,
    /// What it must be a permutation of.
    #[serde(default)]
    pub against: Option<String>,
    /// Most memory.
    #[serde(default)]
    pub memory: Option<Bytes>,
    /// Tasks at once.
    #[serde(default)]
    pub workers: Option<usize>,
}

/// What `resume` is given.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResumeSpec {
    /// The job's name, a part of it, or `last`.
    pub job_id: String,
}

/// A job, as asked for.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobSpec {
    /// `sort`.
    Sort(SortSpec),
    /// Make records.
    Teragen(TeragenSpec),
    /// Sort them.
    Terasort(TerasortSpec),
    /// Check them.
    Teravalidate(TeravalidateSpec),
    /// Run people's own code.
    Mapreduce(MapReduceSpec),
    /// Go on with a job.
    Resume(ResumeSpec),
}

impl JobSpec {
    /// Reads a job from JSON: an object with the command's name as its one key.
    ///
    /// ```
    /// use gristmill_engine::plan::JobSpec;
    /// assert!(JobSpec::from_json(r#"{"terasort": {"inputs": ["a"], "output": "b", "memory": "8G"}}"#).is_ok());
    /// let error = JobSpec::from_json(r#"{"terasort": {"inputs": ["a"], "output": "b", "wings": 2}}"#).unwrap_err();
    /// assert!(error.to_string().contains("wings"));
    /// ```
    pub fn from_json(text: &str) -> Result<Self> {
        let json = &mut serde_json::Deserializer::from_str(text);
        serde_path_to_error::deserialize(json).map_err(|error| {
            let path = error.path().to_string();
            let option = path.rsplit('.').next().unwrap_or_default().to_owned();
            let text = error.into_inner().to_string();
            let words = text.split(" at line ").next().unwrap_or_default();
            // An amount's own error has said already what it cannot do.
            let words = words
                .trim_start_matches("cannot read the options: ")
                .trim_end_matches('.');
            Error::new(
                Kind::BadOption,
                "read the options",
                format!("{option}: {words}"),
            )
        })
    }

    /// The job's command.
    pub fn command(&self) -> &'static str {
        match self {
            JobSpec::Sort(_) => "sort",
            JobSpec::Teragen(_) => "teragen",
            JobSpec::Terasort(_) => "terasort",
            JobSpec::Teravalidate(_) => "teravalidate",
            JobSpec::Mapreduce(spec) => spec.command(),
            JobSpec::Resume(_) => "resume",
        }
    }

    /// The job's workers and memory, as given.
    pub fn resources(&self) -> (Option<usize>, Option<Bytes>) {
        match self {
            JobSpec::Sort(spec) => (spec.workers, spec.memory),
            JobSpec::Teragen(spec) => (spec.workers, spec.memory),
            JobSpec::Terasort(spec) => (spec.workers, spec.memory),
            JobSpec::Teravalidate(spec) => (spec.workers, spec.memory),
            JobSpec::Mapreduce(spec) => (spec.workers, spec.memory),
            JobSpec::Resume(_) => (None, None),
        }
    }

    /// The same job, its paths given from the root on; they were given from `directory`.
    #[must_use]
    pub fn rooted(mut self, directory: &Path) -> Self {
        let all: Vec<&mut PathBuf> = match &mut self {
            JobSpec::Sort(spec) => {
                let paths = spec.inputs.iter_mut().chain(&mut spec.output);
                paths.chain(&mut spec.spill_dir).collect()
            }
            JobSpec::Teragen(spec) => vec![&mut spec.output],
            JobSpec::Terasort(spec) => {
                let paths = spec.inputs.iter_mut().chain([&mut spec.output]);
                paths.chain(&mut spec.spill_dir).collect()
            }
            JobSpec::Teravalidate(spec) => vec![&mut spec.input],
            JobSpec::Mapreduce(spec) => {
                let output = std::iter::once(&mut spec.output);
                output.chain(&mut spec.spill_dir).collect()
            }
            JobSpec::Resume(_) => Vec::new(),
        };
        for path in all {
            *path = directory.join(&*path);
        }
        self
    }
}

/// A count within its limits.
pub fn check_count(name: &str, given: Option<usize>, most: usize) -> Result<()> {
    match given {
        Some(count) if count == 0 || count > most => Err(Error::new(
            Kind::BadOption,
            "read the options",
            format!("{name} must be from 1 to {most}, and {count} was given"),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::table::{COMMANDS, ValueKind};

    /// Every option of the table is taken by its command's spec, and no other.
    #[test]
    fn table_and_specs_agree() {
        for command in COMMANDS {
            let mut given = serde_json::Map::new();
            for option in command.options {
                let value = match option.kind {
                    ValueKind::Flag => serde_json::json!(true),
                    ValueKind::Count => serde_json::json!(3),
                    ValueKind::Bytes => serde_json::json!("1G"),
                    ValueKind::Rows => serde_json::json!("5k"),
                    ValueKind::Choice(words) => serde_json::json!(words[0]),
                    ValueKind::Text if option.name == "format" => serde_json::json!("lines"),
                    ValueKind::Path | ValueKind::Text => serde_json::json!("x"),
                    ValueKind::Paths | ValueKind::PathList => serde_json::json!(["x", "y"]),
                };
                given.insert(option.name.to_owned(), value);
            }
            let parse = |given: &serde_json::Map<String, serde_json::Value>| {
                JobSpec::from_json(&serde_json::json!({ command.name: given }).to_string())
            };
            let spec = parse(&given).unwrap();
            assert_eq!(spec.command(), command.name);
            let shown = format!("{spec:?}");
            for option in command.options {
                assert!(
                    shown.contains(&format!("{}: ", option.name)),
                    "{}",
                    option.name
                );
                let mut without = given.clone();
                without.remove(option.name);
                assert_eq!(
                    parse(&without).is_err(),
                    option.default.is_empty(),
                    "{}",
                    option.name
                );
            }
            let fields = shown.matches(": ").count();
            assert_eq!(
                fields,
                command.options.len(),
                "a field without an option: {shown}"
            );
        }
    }
}

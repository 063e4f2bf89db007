//! The options of every command, each defined once: the command line, its help, the Python functions and the
//! names in the environment follow from [`COMMANDS`]; what was given comes back as a [`JobSpec`].

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::amount::{Bytes, Rows};
use super::format::Format;
use crate::error::{Error, Kind, Result};
use crate::record::layout::Layout;

/// What an option's value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueKind {
    /// Given or not.
    Flag,
    /// A whole number from 1 on.
    Count,
    /// A size, such as 8G.
    Bytes,
    /// A number of rows, such as 10m.
    Rows,
    /// One of some words.
    Choice(&'static [&'static str]),
    /// A path.
    Path,
    /// One or more paths.
    Paths,
    /// A path, as often as wanted.
    PathList,
    /// Any text.
    Text,
}

/// An argument or option of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct OptionSpec {
    /// Its name, as in [`JobSpec`]; on the command line with dashes.
    pub name: &'static str,
    /// What it takes.
    pub kind: ValueKind,
    /// Whether it stands by its place, without a name.
    pub positional: bool,
    /// A letter that stands for the name on the command line; empty where none does.
    pub short: &'static str,
    /// What holds when it is not given, in words; empty where it must be given.
    pub default: &'static str,
    /// The variable that gives it where the command line does not; empty where none does. Only what belongs to a
    /// machine rather than to a job has one.
    pub environment: &'static str,
    /// What it does.
    pub help: &'static str,
}

/// A command: its name, what it does, and its options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CommandSpec {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub help: &'static str,
    /// A command line that works.
    pub example: &'static str,
    /// Its options, in the order of the help.
    pub options: &'static [OptionSpec],
}

const fn argument(name: &'static str, kind: ValueKind, help: &'static str) -> OptionSpec {
    OptionSpec {
        name,
        kind,
        positional: true,
        short: "",
        default: "",
        environment: "",
        help,
    }
}

const fn option(
    name: &'static str,
    kind: ValueKind,
    default: &'static str,
    help: &'static str,
) -> OptionSpec {
    OptionSpec {
        name,
        kind,
        positional: false,
        short: "",
        default,
        environment: "",
        help,
    }
}

/// The option, with a letter of its own.
const fn short(letter: &'static str, option: OptionSpec) -> OptionSpec {
    OptionSpec {
        short: letter,
        ..option
    }
}

const MEMORY: OptionSpec = OptionSpec {
    environment: "GRISTMILL_MEMORY",
    ..option(
        "memory",
        ValueKind::Bytes,
        "60 % of what is available",
        "Most memory that the job may use, such as 512M, 8G or 1GiB.",
    )
};
const WORKERS: OptionSpec = OptionSpec {
    environment: "GRISTMILL_WORKERS",
    ..option(
        "workers",
        ValueKind::Count,
        "one for each core",
        "How many tasks run at once. The output does not depend on it.",
    )
};
const SPILL_DIR: OptionSpec = option(
    "spill_dir",
    ValueKind::PathList,
    "beside the output",
    "Where sorted runs go when the input is larger than memory; may be given again, the first with room is used.",
);
const OVERWRITE: OptionSpec = option(
    "overwrite",
    ValueKind::Flag,
    "off",
    "Replace OUTPUT if it exists, in one exchange of names.",
);
const NO_SYNC: OptionSpec = option(
    "no_sync",
    ValueKind::Flag,
    "off",
    "Do not wait until the output is durable. Faster; a power failure can lose it.",
);

/// All commands that run jobs.
pub const COMMANDS: &[CommandSpec] = &[
    CommandSpec {
        name: "sort",
        help: "Sort lines, or records of one length, as LC_ALL=C sort does; files of any size.",
        example: "gristmill sort big.txt -o sorted.txt --memory 4G",
        options: &[
            OptionSpec {
                default: "standard input",
                ..argument(
                    "inputs",
                    ValueKind::Paths,
                    "Files, or directories whose files are read; - is standard input.",
                )
            },
            short(
                "o",
                option(
                    "output",
                    ValueKind::Path,
                    "standard output",
                    "The file to write; replaced at once if it exists, also if it is an input.",
                ),
            ),
            option(
                "format",
                ValueKind::Text,
                "lines",
                "What a record is: lines, fixed:LEN or fixed:LEN:KEYLEN (bytes).",
            ),
            short(
                "r",
                option("reverse", ValueKind::Flag, "off", "Larger keys first."),
            ),
            short(
                "u",
                option(
                    "unique",
                    ValueKind::Flag,
                    "off",
                    "Of records with equal keys, only the first.",
                ),
            ),
            short(
                "s",
                option(
                    "stable",
                    ValueKind::Flag,
                    "off",
                    "Leave records with equal keys in input order; else all their bytes decide.",
                ),
            ),
            short(
                "c",
                option(
                    "check",
                    ValueKind::Flag,
                    "off",
                    "Sort nothing: say whether the input is in order, by the exit code.",
                ),
            ),
            MEMORY,
            WORKERS,
            SPILL_DIR,
            NO_SYNC,
        ],
    },
    CommandSpec {
        name: "teragen",
        help: "Make records of the sort benchmark: 100 bytes each, the first ten the key.",
        example: "gristmill teragen 10m data/",
        options: &[
            argument(
                "rows",
                ValueKind::Rows,
                "How many records; k, m, b, t stand for 10^3, 10^6, 10^9, 10^12.",
            ),
            argument("output", ValueKind::Path, "The directory to make."),
            option(
                "layout",
                ValueKind::Choice(&["hadoop", "gensort", "ascii"]),
                "hadoop",
                "Bytes after the key: as Hadoop's TeraGen, as gensort 1.5 (incompressible), or as gensort -a (text).",
            ),
            option(
                "skew",
                ValueKind::Flag,
                "off",
                "Let keys share prefixes, as gensort -s does.",
            ),
            option(
                "start",
                ValueKind::Rows,
                "0",
                "The number of the first record.",
            ),
            option(
                "files",
                ValueKind::Count,
                "one for each 256 MB",
                "How many part files.",
            ),
            MEMORY,
            WORKERS,
            OVERWRITE,
            NO_SYNC,
        ],
    },
    CommandSpec {
        name: "terasort",
        help: "Sort 100-byte records by their first ten bytes, and prove the result.",
        example: "gristmill terasort data/ sorted/ --memory 8G",
        options: &[
            argument(
                "inputs",
                ValueKind::Paths,
                "Files, or directories whose files are read (not those whose names begin with _ or .).",
            ),
            argument("output", ValueKind::Path, "The directory to make."),
            option(
                "partitions",
                ValueKind::Count,
                "one for each 256 MB",
                "How many part files the output is cut into.",
            ),
            MEMORY,
            WORKERS,
            SPILL_DIR,
            OVERWRITE,
            NO_SYNC,
        ],
    },
    CommandSpec {
        name: "teravalidate",
        help: "Check that the files of a directory are in order, and sum the checksums of their records.",
        example: "gristmill teravalidate sorted/ --against data/",
        options: &[
            argument("input", ValueKind::Path, "The directory to check."),
            option(
                "against",
                ValueKind::Text,
                "nothing",
                "What it must be a permutation of: a file, a directory, or a checksum in hexadecimal.",
            ),
            MEMORY,
            WORKERS,
        ],
    },
    CommandSpec {
        name: "resume",
        help: "Go on with a job whose process was killed, from what it had done; the output is the same.",
        example: "gristmill resume last",
        options: &[argument(
            "job_id",
            ValueKind::Text,
            "The job's name, a part of it that no other job has, or last; `gristmill jobs` lists them.",
        )],
    },
];

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

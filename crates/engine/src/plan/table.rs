//! What an option is, and how a command gets its own: each is one line, from which everything else follows.
//!
//! ```text
//!   options! { struct TerasortSpec { partitions: Option<usize> = option("one for each 256 MB", "How many ..."), } }
//!        ├──▶ the field that the job reads      (its type says which values there are, and which paths are in them)
//!        └──▶ the row of the command's table ──▶ command line, help, environment, Python functions
//! ```
//!
//! Options that several kinds of jobs have are those of [`Common`]: a command names the ones that it takes.

use std::path::{Path, PathBuf};

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, SerializeStruct, Serializer};

use super::amount::{ByteAmount, Rows};
use super::compression::OutputCompression;
use super::format::RecordFormat;
use super::shuffle::{FanOuts, ShuffleKind, ShuffleOptions};
use crate::runner::{On, RunnerKind};
use gristmill_base::names;
use gristmill_base::record::layout::RecordLayout;
use gristmill_storage::hdfs::BlockSettings;
use gristmill_storage::location::Location;
use gristmill_storage::options::StoreOptions;
use gristmill_storage::sorted_run::RunCompression;

/// What an option's value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
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
    /// A number, such as 0.01.
    Number,
    /// One of some words.
    Choice(&'static [&'static str]),
    /// A path.
    Path,
    /// One or more paths.
    Paths,
    /// A path, as often as wanted.
    PathList,
    /// `KEY=VALUE`, as often as wanted.
    Pairs,
    /// Any text.
    Text,
    /// Any text, as often as wanted.
    TextList,
}

/// An argument or option of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct OptionSpec {
    /// Its name, the field of the job; on the command line with dashes.
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

/// A type that an option's value may have.
pub trait OptionValue: Sized {
    /// What a person gives.
    const KIND: ValueKind;

    /// Reads a value that was given.
    ///
    /// # Errors
    /// It is no such value.
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error>;

    /// Makes what it names absolute, where `directory` is the one that it was named in.
    fn root(&mut self, _directory: &Path) {}
}

/// The options of a command, as given.
pub trait CommandOptions {
    /// Makes what they name absolute, where `directory` is the one that it was named in.
    fn root(&mut self, directory: &Path);
}

/// A path, or a location, or several: an option may name it.
trait PathOption {
    fn root(&mut self, directory: &Path);
}

impl PathOption for PathBuf {
    fn root(&mut self, directory: &Path) {
        *self = directory.join(&self);
    }
}

impl PathOption for Location {
    fn root(&mut self, directory: &Path) {
        *self = self.rooted(directory);
    }
}

impl<N: PathOption> PathOption for Option<N> {
    fn root(&mut self, directory: &Path) {
        self.iter_mut().for_each(|named| named.root(directory));
    }
}

impl<N: PathOption> PathOption for Vec<N> {
    fn root(&mut self, directory: &Path) {
        self.iter_mut().for_each(|named| named.root(directory));
    }
}

/// Gives types their kinds, says what reads their values, and what makes absolute what they name.
macro_rules! values {
    ($read:path: $($type:ty: $kind:expr $(, $root:path)?;)*) => {
        $(impl OptionValue for $type {
            const KIND: ValueKind = $kind;

            fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $read(deserializer)
            }

            $(fn root(&mut self, directory: &Path) {
                $root(self, directory);
            })?
        })*
    };
}

values! { Deserialize::deserialize:
    bool: ValueKind::Flag;
    Option<ByteAmount>: ValueKind::Bytes;
    Rows: ValueKind::Rows;
    RecordLayout: ValueKind::Choice(&["hadoop", "gensort", "ascii"]);
    RunnerKind: ValueKind::Choice(RunnerKind::NAMES);
    On: ValueKind::Choice(On::NAMES);
    RunCompression: ValueKind::Choice(RunCompression::NAMES);
    OutputCompression: ValueKind::Choice(OutputCompression::NAMES);
    ShuffleKind: ValueKind::Choice(ShuffleKind::NAMES);
    FanOuts: ValueKind::Text;
    RecordFormat: ValueKind::Text;
    StoreOptions: ValueKind::Pairs;
    String: ValueKind::Text;
    Option<String>: ValueKind::Text;
    Vec<String>: ValueKind::TextList;
}

values! { read_count:
    Option<usize>: ValueKind::Count;
}

values! { read_number:
    Option<f64>: ValueKind::Number;
}

values! { names::deserialize:
    Location: ValueKind::Path, PathOption::root;
    Option<Location>: ValueKind::Path, PathOption::root;
    Vec<Location>: ValueKind::PathList, PathOption::root;
    Vec<PathBuf>: ValueKind::PathList, PathOption::root;
}

/// A count, if one is given.
fn read_count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    let Some(given) = Option::<serde_json::Value>::deserialize(deserializer)? else {
        return Ok(None);
    };
    let count = given.as_u64().and_then(|count| usize::try_from(count).ok());
    let wrong = || match given.as_str() {
        // One that no u64 holds comes as text.
        Some(text) if text.parse::<u128>().is_ok() && text.parse::<u64>().is_err() => {
            D::Error::custom(format!(
                "{text} is not a whole number from 1 to {}",
                usize::MAX
            ))
        }
        _ => D::Error::custom(format!("{given} is not a whole number from 1 on")),
    };
    count.filter(|count| *count > 0).map(Some).ok_or_else(wrong)
}

/// A number, if one is given, as a number or as text.
fn read_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let Some(given) = Option::<serde_json::Value>::deserialize(deserializer)? else {
        return Ok(None);
    };
    let number = match &given {
        serde_json::Value::String(text) => text.trim().parse().ok(),
        given => given.as_f64(),
    };
    let wrong = || D::Error::custom(format!("{given} is not a number"));
    number.map(Some).ok_or_else(wrong)
}

/// A command: its name, what it does, and its options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandSpec {
    /// Its name.
    pub name: &'static str,
    /// The name of its function in Python, where that is another one.
    pub function: Option<&'static str>,
    /// What it does.
    pub help: &'static str,
    /// What a reader of the reference should know besides; may be empty.
    pub details: &'static str,
    /// A command line that works; empty for a command that is not listed, as Python code begins its jobs.
    pub example: &'static str,
    /// An example in Python, as a doctest.
    pub python: &'static str,
    /// Whether `explain` says what a job of its would do.
    pub explained: bool,
    /// The options that it alone has, in the order of the help.
    pub own: &'static [OptionSpec],
    /// The names of those that it has in common with others.
    pub common: &'static [&'static str],
}

impl CommandSpec {
    /// The name of its function in Python.
    pub fn function(&self) -> &'static str {
        self.function.unwrap_or(self.name)
    }

    /// All its options, in the order of the help.
    pub fn options(&self) -> impl Iterator<Item = &'static OptionSpec> {
        let named = |name: &&str| Common::OPTIONS.iter().find(|option| option.name == *name);
        self.own.iter().chain(self.common.iter().filter_map(named))
    }
}

impl Serialize for CommandSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut command = serializer.serialize_struct("CommandSpec", 8)?;
        command.serialize_field("name", self.name)?;
        command.serialize_field("function", self.function())?;
        command.serialize_field("help", self.help)?;
        command.serialize_field("details", self.details)?;
        command.serialize_field("example", self.example)?;
        command.serialize_field("python", self.python)?;
        command.serialize_field("explained", &self.explained)?;
        command.serialize_field("options", &self.options().collect::<Vec<_>>())?;
        command.end()
    }
}

/// An argument: it stands by its place, and must be given.
pub(crate) const fn argument(help: &'static str) -> OptionSpec {
    OptionSpec {
        name: "",
        kind: ValueKind::Text,
        positional: true,
        short: "",
        default: "",
        environment: "",
        help,
    }
}

/// An option: it has a name, and need not be given.
pub(crate) const fn option(default: &'static str, help: &'static str) -> OptionSpec {
    OptionSpec {
        positional: false,
        default,
        ..argument(help)
    }
}

impl OptionSpec {
    /// With a letter of its own.
    pub(crate) const fn short(self, letter: &'static str) -> Self {
        OptionSpec {
            short: letter,
            ..self
        }
    }

    /// An argument that may be left out: then this holds.
    pub(crate) const fn or(self, default: &'static str) -> Self {
        OptionSpec { default, ..self }
    }

    /// With a variable of the environment that gives it.
    pub(crate) const fn environment(self, environment: &'static str) -> Self {
        OptionSpec {
            environment,
            ..self
        }
    }

    /// The option of a field.
    pub(crate) const fn of_field(self, name: &'static str, kind: ValueKind) -> Self {
        let kind = match kind {
            ValueKind::PathList if self.positional => ValueKind::Paths,
            kind => kind,
        };
        OptionSpec { name, kind, ..self }
    }
}

/// A struct whose fields are options: `field: Type = option("default", "help")`. What has no default must be given,
/// which [`JobSpec::from_json`](crate::jobs::JobSpec::from_json) checks.
macro_rules! options {
    ($(#[$meta:meta])* $visible:vis struct $spec:ident { $($field:ident: $type:ty = $option:expr,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
        #[serde(deny_unknown_fields, default)]
        $visible struct $spec {
            $(
                #[doc = concat!("The option `", stringify!($field), "`.")]
                #[serde(deserialize_with = "crate::plan::table::OptionValue::read")]
                $visible $field: $type,
            )*
        }

        impl $spec {
            /// The fields as options.
            pub(crate) const OPTIONS: &'static [$crate::plan::table::OptionSpec] = &[$(
                $option.of_field(stringify!($field), <$type as $crate::plan::table::OptionValue>::KIND),
            )*];
        }

        impl $crate::plan::table::CommandOptions for $spec {
            fn root(&mut self, directory: &std::path::Path) {
                $($crate::plan::table::OptionValue::root(&mut self.$field, directory);)*
            }
        }
    };
}
pub(crate) use options;

options! {
    /// Options that several kinds of jobs have: what belongs to the machine, and how the output appears.
    pub struct Common {
        memory: Option<ByteAmount> = option(
            "60 % of what is available",
            "Most memory that the job may use, such as 512M, 8G or 1GiB.",
        ).environment("GRISTMILL_MEMORY"),
        workers: Option<usize> = option(
            "one for each core",
            "How many tasks run at once. The output does not depend on it.",
        ).environment("GRISTMILL_WORKERS"),
        runner: RunnerKind = option(
            "threads",
            "Where tasks run: in threads of this process, or in worker processes. The output does not depend on it.",
        ),
        on: On = option(
            "local",
            "Where the job runs: on this machine, or on a Ray cluster (the one of RAY_ADDRESS, or of this machine). On \
             the command line also http://HOST:8265, the address of a Ray dashboard: Gristmill submits the command to that \
             cluster. The output does not depend on it.",
        ),
        nodes: Option<usize> = option(
            "all of them",
            "On how many nodes of a cluster the job may run. The output does not depend on it.",
        ),
        collect: bool = option(
            "off",
            "Write the output of a job on a cluster on the machine where it was started. Then the nodes need not see the output \
             directory.",
        ),
        spill_dir: Vec<PathBuf> = option(
            "beside the output; the current directory if that is not on a disk of this machine, or TMPDIR if nothing can be made \
             there; on a cluster, the temporary directory of each node",
            "A directory for sorted runs, which are written when the input is larger than memory. Repeatable: Gristmill \
             uses the first with enough room.",
        ),
        compress_runs: RunCompression = option(
            "none",
            "How sorted runs on disk are compressed: lz4 takes little CPU time, zstd makes them smaller. Spares space \
             for runs, and time where their disk is slow. The output does not depend on it.",
        ),
        shuffle: ShuffleKind = option(
            "auto, the one that costs least",
            "How sorted runs come to the last merge: immediate (all partitions at once), two-level (first a slice for each \
             node) or iterative (few slices, again and again). The output does not depend on it.",
        ),
        rounds: FanOuts = option(
            "three even ones, where the shuffle is iterative",
            "Into how many slices each round of an iterative shuffle cuts, such as 4,5,4; the last number stands for the last \
             merge, which makes the parts. To study shuffles: see the page of shuffles.",
        ),
        split_size: Option<ByteAmount> = option(
            "chosen from the size of the input",
            "How many bytes one task handles, such as 64M. Try several sizes to find the fastest for a store. The output does \
             not depend on it.",
        ),
        store_option: StoreOptions = option(
            "as the environment and ~/.aws say",
            "How S3 is reached; repeatable: endpoint, region, profile, addressing_style (path or virtual), \
             connect_timeout and request_timeout (seconds), max_concurrent_requests.",
        ),
        overwrite: bool = option(
            "off",
            "Replace the output directory if it exists. On a local disk this is one step; elsewhere readers may see no output, or \
             a part of it, for a moment. An output that is one file is always replaced.",
        ),
        no_sync: bool = option(
            "off",
            "Do not wait until the output is durable. Faster; a power failure can lose it.",
        ),
        replication: Option<usize> = option(
            "as Hadoop is configured",
            "How many copies HDFS keeps of each block of the output.",
        ),
        block_size: Option<ByteAmount> = option(
            "as Hadoop is configured",
            "How long the output's blocks are in HDFS, such as 128MiB: a multiple of 512 bytes.",
        ),
    }
}

impl Common {
    /// How the output is to be cut and kept in HDFS.
    pub(crate) fn blocks(&self) -> BlockSettings {
        let copies = self.replication.map(u32::try_from);
        BlockSettings {
            replication: copies.map(|copies| copies.unwrap_or(u32::MAX)),
            bytes: self.block_size.map(|size| size.0),
        }
    }

    /// What is said of the shuffle.
    pub(crate) fn shuffle_options(&self) -> ShuffleOptions {
        ShuffleOptions {
            kind: self.shuffle,
            rounds: self.rounds.clone(),
        }
    }

    /// The names of those that commands take which read and write, by runs if need be.
    pub(crate) const NAMES: &'static [&'static str] = &[
        "memory",
        "workers",
        "runner",
        "on",
        "nodes",
        "collect",
        "spill_dir",
        "compress_runs",
        "shuffle",
        "rounds",
        "store_option",
        "overwrite",
        "no_sync",
        "replication",
        "block_size",
    ];
}

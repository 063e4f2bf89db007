//! What a job with scripts is: all that its tasks need to know beside their split or partition. It travels as JSON.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::Deserialize;

use crate::hadoop::script::input::InputFormat;
use crate::hadoop::script::protocol::Protocol;
use crate::hadoop::value::WritableClass;
use gristmill_storage::codec::Codec;
use gristmill_storage::location::Location;

/// What is done to records.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamingStep {
    /// Nothing.
    Identity,
    /// A program: its words.
    Script(#[serde(with = "gristmill_base::names")] Vec<OsString>),
    /// Key and value change places.
    Inverse,
    /// Fields are put together.
    Select(SelectStep),
    /// The aggregates that the keys name.
    Aggregate,
}

/// A field selection.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SelectStep {
    /// Which fields.
    pub spec: String,
    /// What separates them.
    pub separator: String,
    /// Whether the map's input key is no part of the record.
    #[serde(default)]
    pub ignore_key: bool,
}

/// How a step is fed, and how what it writes is read.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Streams {
    /// The protocol of its input.
    pub input: Protocol,
    /// Between the key and the value of its input.
    pub input_separator: String,
    /// Its input has values alone.
    #[serde(default)]
    pub ignore_key: bool,
    /// The protocol of its output.
    pub output: Protocol,
    /// Between the fields of its output.
    pub output_separator: String,
    /// How many of them are the key.
    pub key_fields: usize,
}

/// How keys are partitioned.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartitionStep {
    /// By a hash of the key.
    Hash,
    /// By a hash of fields, given as options.
    Fields(String),
    /// By a hash of so many first fields.
    FirstFields(usize),
    /// By a hash of bytes from and to.
    Binary(i64, i64),
    /// By the keys in a sequence file.
    Total(Location),
}

/// How output is written.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputStep {
    /// The format.
    pub format: OutputFormat,
    /// Between key and value, in text.
    pub separator: String,
    /// How it is compressed.
    pub codec: Option<Codec>,
    /// In sequence files: what is compressed at once.
    #[serde(default)]
    pub blocks: bool,
    /// Files only where there are records.
    #[serde(default)]
    pub lazy: bool,
}

/// A file format of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputFormat {
    /// Lines of text.
    Text,
    /// Hadoop's sequence files.
    Sequence,
    /// The same, whose keys and values are the bytes to store.
    Binary,
    /// None at all.
    Null,
}

/// When records at which a script fails are left out, and how many.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Skipping {
    /// After so many attempts.
    pub after: u32,
    /// Most records of a map that are left out around a bad one; 0: none are.
    pub most_records: u64,
    /// Most groups of a reduce.
    pub most_groups: u64,
    /// How often a script may fail in an attempt's search.
    pub runs: u32,
    /// Where they are kept, if they are: in the output, unless the path begins with `/`.
    #[serde(default, with = "gristmill_base::names")]
    pub folder: Option<PathBuf>,
}

/// Programs that look at attempts that failed.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Debugging {
    /// The words of the one for maps.
    #[serde(with = "gristmill_base::names")]
    pub map: Option<Vec<OsString>>,
    /// Those of the one for reduces.
    #[serde(with = "gristmill_base::names")]
    pub reduce: Option<Vec<OsString>>,
    /// The job's properties, which they are given in a file.
    #[serde(with = "gristmill_base::names")]
    pub properties: Vec<(OsString, OsString)>,
}

/// A job with scripts.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamingDefinition {
    /// How the input is read.
    pub format: InputFormat,
    /// The classes of its keys and values.
    pub input_classes: (WritableClass, WritableClass),
    /// The map.
    pub map: StreamingStep,
    /// How it is fed and read.
    pub map_streams: Streams,
    /// What combines a spill's pairs.
    pub combine: Option<StreamingStep>,
    /// The reduce.
    pub reduce: StreamingStep,
    /// How it is fed and read.
    pub reduce_streams: Streams,
    /// Options of the comparator by fields, where that is the order.
    pub comparator: Option<String>,
    /// Between the fields of a key, to comparator and partitioner.
    pub key_separator: String,
    /// The partitioner.
    pub partitioner: PartitionStep,
    /// The output.
    pub output: OutputStep,
    /// The job's properties, as variables for scripts.
    #[serde(with = "gristmill_base::names")]
    pub environment: Vec<(OsString, OsString)>,
    /// Variables of the user's own, which win.
    #[serde(with = "gristmill_base::names")]
    pub variables: Vec<(OsString, OsString)>,
    /// Files in a task's working directory: the name there, and the file.
    #[serde(with = "gristmill_base::names")]
    pub links: Vec<(PathBuf, PathBuf)>,
    /// Archives that are unpacked there.
    #[serde(with = "gristmill_base::names")]
    pub archives: Vec<(PathBuf, PathBuf)>,
    /// Where programs are looked for.
    #[serde(with = "gristmill_base::names")]
    pub search: OsString,
    /// How long nothing may move, in milliseconds; 0: for ever.
    pub timeout_ms: u64,
    /// An exit code other than 0 is a failure.
    pub exit_matters: bool,
    /// The beginning of lines on standard error that report something.
    pub reporter_prefix: String,
    /// Most different values of a UniqValueCount.
    pub most_unique: u64,
    /// Most characters of a variable's value, if there is a limit.
    pub truncate: Option<usize>,
    /// The command that does one split again; its number follows.
    #[serde(rename = "again")]
    pub rerun_command: String,
    /// Whether records at which a script fails are left out.
    #[serde(default)]
    pub skipping: Option<Skipping>,
    /// What looks at attempts that failed.
    #[serde(default)]
    pub debug: Debugging,
}

impl StreamingStep {
    /// The classes of what the step puts out, given those of what comes in.
    pub fn classes(
        &self,
        input: (WritableClass, WritableClass),
        streams: &Streams,
    ) -> (WritableClass, WritableClass) {
        match self {
            StreamingStep::Identity => input,
            StreamingStep::Inverse => (input.1, input.0),
            StreamingStep::Script(_) => streams.output.classes(),
            StreamingStep::Select(_) | StreamingStep::Aggregate => {
                (WritableClass::Text, WritableClass::Text)
            }
        }
    }
}

impl StreamingDefinition {
    /// The classes of the map's output.
    pub fn map_classes(&self) -> (WritableClass, WritableClass) {
        self.map.classes(self.input_classes, &self.map_streams)
    }

    /// The classes of the reduce's output.
    pub fn reduce_classes(&self) -> (WritableClass, WritableClass) {
        self.reduce
            .classes(self.map_classes(), &self.reduce_streams)
    }
}

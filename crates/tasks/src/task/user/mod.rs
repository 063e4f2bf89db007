//! User code: what runs it, what that is told of a task, and how another process makes it again.
//!
//! ```text
//!   from_spec                        makes an executor of any kind
//!   processes  native  streaming     the executors
//!   operator  record_reader  ...     what a native one does with records, and what reads them for it
//!   executor                         what each of them implements
//!   spec  executor_spec  failed      what it is told and says, what it is made from, where it failed
//!   failed_on_agent                  the same of a node of a cluster
//!   node_environment                 what a node of a cluster has in the place of the driver's machine
//! ```
//!
//! Each uses only what stands below it. Nothing here knows the other kinds of tasks, or what a task runs with.

mod combined_states;
mod counted_keys;
pub(super) mod executor;
mod executor_spec;
pub(super) mod failed;
pub(super) mod failed_on_agent;
mod first_records;
mod from_spec;
mod input_ranges;
pub mod key_types;
mod largest;
mod map_part;
mod native;
mod native_split;
mod node_environment;
mod operator;
mod part_writer;
mod processes;
mod record_reader;
mod scratch_file;
pub(super) mod spec;
mod split;
pub mod streaming;
mod words;

pub use combined_states::CombinedStates;
pub use counted_keys::{CountedKeys, KeySelection, LineKeys, OutputLine};
pub use executor::UserTaskExecutor;
pub use executor_spec::{ExecutorKind, ExecutorSpec};
pub use failed::{FailedAt, FailureFolder, group_mark};
pub use first_records::{FirstRecords, FirstWanted, NextRecord};
pub use input_ranges::{InputRanges, place_of};
pub use map_part::read_records;
pub use native::NativeExecutor;
pub use native_split::NativeSplit;
pub use node_environment::NodeEnvironment;
pub use operator::{
    Combined, Mapper, Operator, Pairs, PartMapper, RecordForm, Records, Reducer, Regrouper,
    SIDE_BYTES,
};
pub use part_writer::{PartFiles, too_many_files};
pub use processes::ProcessPoolExecutor;
pub use record_reader::{LEFT_OUT, NOT_DECODED};
pub use scratch_file::ScratchFile;
pub use spec::{
    LargestGroup, UserAttemptSpec, UserTaskFile, UserTaskKind, UserTaskReport, feed_of,
};
pub use split::{SplitData, UserTaskSplit};
pub use words::LetterCase;

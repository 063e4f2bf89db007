//! The steps that all kinds of jobs share: what a kind does stands between them.
//!
//! ```text
//!   take inputs ─▶ stage the output, make folders for runs ─▶ │ the kind │ ─▶ run its tasks ─▶ │ the kind │ ─▶ publish
//!     tasks.rs          output.rs, directory.rs               │  plans   │      tasks.rs       │  proves  │   output.rs
//!                                                                               │
//!                        of a resumed job: replayed.rs, what its history says ──┤
//!                                          proof.rs, what of that is still there┘
//! ```
//!
//! The rule that must hold: nothing here knows a kind of job.

mod directory;
pub(super) mod explain;
mod job;
mod job_request;
mod kept_tasks;
pub(super) mod map_inputs;
mod output;
mod output_locations;
mod proof;
pub(super) mod refusal;
pub(super) mod remote_inputs;
mod replayed;
mod stream;
mod tasks;
mod written_part;

pub(super) use self::directory::{OutputDirectory, Proven, check_apart};
pub(super) use self::job::RunningJob;
pub(super) use self::job_request::{JobOutput, JobRequest};
pub(super) use self::output::check_length;
pub(super) use self::output_locations::OutputLocations;
pub(super) use self::refusal::{OPERATION, refusal};
pub(super) use self::replayed::ReplayedHistory;
pub(super) use self::stream::{no_parts_in_stream, open_stream, stream_writer};
pub(super) use self::tasks::unless_changed;
pub(super) use self::written_part::{PartReader, WrittenPart};

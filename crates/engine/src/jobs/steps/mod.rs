//! The steps that all kinds of jobs share: what a kind does stands between them.
//!
//! ```text
//!   take inputs ─▶ stage the output, make folders for runs ─▶ │ the kind │ ─▶ run its tasks ─▶ │ the kind │ ─▶ publish
//!     tasks.rs          output.rs, directory.rs               │  plans   │      tasks.rs       │  proves  │   output.rs
//!                                                                               │
//!                        of a resumed job: story.rs, what its history says ─────┤
//!                                          proof.rs, what of that is still there┘
//! ```
//!
//! The rule that must hold: nothing here knows a kind of job.

mod asked;
mod directory;
pub(super) mod explain;
pub(super) mod far;
mod job;
pub(super) mod lay_out;
mod output;
mod places;
mod plans;
mod proof;
pub(super) mod refusal;
mod replayed;
mod tasks;

pub(super) use self::asked::{Asked, Output};
pub(super) use self::directory::{Directory, Proven, check_apart};
pub(super) use self::job::Job;
pub(super) use self::places::OutputLocations;
pub(super) use self::plans::{lock, wrong_report};
pub(super) use self::refusal::{OPERATION, refusal};
pub(super) use self::replayed::ReplayedHistory;
pub(super) use self::tasks::unless_changed;

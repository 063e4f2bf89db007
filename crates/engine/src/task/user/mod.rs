//! User code: what runs it, what that is told of a task, and how another process makes it again.
//!
//! ```text
//!   again                            makes an executor of any kind
//!   processes  native  streaming     the executors
//!   executor                         what each of them implements
//!   spec  how  failed                what it is told and says, what makes it, where it failed
//! ```
//!
//! Each uses only what stands below it. Nothing here knows the other kinds of tasks, or what a task runs with.

mod again;
pub(super) mod executor;
pub(super) mod failed;
mod how;
pub mod kinds;
mod native;
mod processes;
pub(super) mod spec;
mod split;
pub mod streaming;

pub use executor::Work;
pub use failed::{FailedAt, Failures, group_mark};
pub use how::{How, WorkAgain};
pub use native::{Mapper, NativeWork};
pub use processes::ProcessWork;
pub use spec::{WorkFile, WorkKind, WorkReport, WorkSpec, feed_of};
pub use split::{SplitData, WorkSplit};

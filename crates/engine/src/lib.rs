//! The Gristmill engine: runs jobs.
//!
//! It is four crates. Each uses those above it in this list. This one, the last, re-exports the others.
//!
//! ```text
//!  gristmill-base      names  error  sync  sys  budget  record  order  value  aggregate
//!  gristmill-storage   where files live; codecs, lines, sorted runs
//!  gristmill-tasks     split  map  spill  merge  reduce  commit  worker  hadoop; task
//!  gristmill-engine    history  driver  runner  plan  jobs
//! ```
//!
//! Nothing here knows Python, Ray or a command line. Nothing here reads the environment.

pub use gristmill_base::{aggregate, budget, error, names, order, record, sync, sys, value};
pub use gristmill_storage as storage;
pub use gristmill_storage::{codec, lines, sorted_run};
pub use gristmill_tasks::{commit, hadoop, map, merge, reduce, spill, split, task, worker};

pub mod driver;
pub mod history;
pub mod jobs;
pub mod plan;
pub mod runner;

pub use gristmill_base::{Error, Kind, Result};

/// The version of the engine, which is that of the Python package.
///
/// ```
/// assert_eq!(gristmill_engine::VERSION.split('.').count(), 3);
/// ```
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

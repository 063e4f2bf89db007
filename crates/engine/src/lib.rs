//! The Gristmill engine: the record path and the driver.
//!
//! The modules stand in the order in which data and control go through them, in three layers with no
//! arrow back (`tests/test_layers.py` reads the `use crate::` lines):
//!
//! ```text
//!  base    error  sys  record  order  value  sorted_run  aggregate  budget  storage
//!          codec  names  lines                                        know no stage
//!  stages  split  map  spill  merge  reduce  commit  worker  hadoop       know the base, and no other stage
//!  above   task  plan  driver  runner  history  jobs                      put stages together
//! ```
//!
//! Nothing here knows Python, Ray or a command line. Nothing here reads the environment.

#[cfg(not(target_pointer_width = "64"))]
compile_error!(
    "Gristmill needs a target whose pointers have 64 bits: lengths and offsets of files are `usize` in memory"
);

pub mod error;

pub mod aggregate;
pub mod budget;
pub mod codec;
pub mod lines;
pub mod names;
pub mod order;
pub mod record;
pub mod sorted_run;
pub mod storage;
pub mod sys;
pub mod value;

pub mod commit;
pub mod hadoop;
pub mod map;
pub mod merge;
pub mod reduce;
pub mod spill;
pub mod split;
pub mod worker;

pub mod driver;
pub mod history;
pub mod jobs;
pub mod plan;
pub mod runner;
pub mod task;

pub use error::{Error, Kind, Result};

/// The version of the engine, which is that of the Python package.
///
/// ```
/// assert_eq!(gristmill_engine::VERSION.split('.').count(), 3);
/// ```
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

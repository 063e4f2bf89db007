//! Stages and tasks: what is done with records between an input and an output.
//!
//! ```text
//!  stages  split  map  spill  merge  reduce  commit  worker  hadoop     know no other stage
//!  above   task                                                          puts stages together: a task is a value
//! ```
//!
//! Nothing here knows a driver, a plan or a job. Nothing here reads the environment.

pub mod commit;
pub mod hadoop;
pub mod map;
pub mod merge;
pub mod reduce;
pub mod spill;
pub mod split;
pub mod worker;

pub mod task;

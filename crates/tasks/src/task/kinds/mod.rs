//! A kind of task each: what it is told, what it reports, how it runs.

pub mod copy;
pub mod entries;
pub mod gather;
pub mod generate;
pub mod lines;
pub mod merge;
pub mod merge_runs;
pub mod merge_target;
pub mod sample;
pub mod sample_keys;
pub mod scatter;
pub mod spill;
pub mod user_task;
pub mod validate;

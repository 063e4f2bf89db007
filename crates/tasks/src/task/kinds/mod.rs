//! A kind of task each: what it is told, what it reports, how it runs.

pub mod copy;
pub mod gather_lines;
pub mod generate;
pub mod map;
pub mod merge;
pub mod merge_runs;
pub mod merge_target;
pub mod reduce;
pub mod sample;
pub mod sample_keys;
pub mod scatter_lines;
pub mod spill;
pub mod user_task;
pub mod validate;

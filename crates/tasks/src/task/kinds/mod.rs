//! A kind of task each: what it is told, what it reports, how it runs.

mod copied;
mod copied_within;
mod copy_errors;
pub mod copy_files;
pub mod copy_item;
mod copy_pace;
pub mod copy_streams;
mod copy_task;
pub mod gather_lines;
pub mod generate;
pub mod map;
pub mod merge;
pub mod merge_runs;
pub mod merge_target;
pub mod reduce;
pub mod sample;
mod sample_decoded;
pub mod sample_keys;
mod sample_rows;
mod sampled;
pub mod scatter_lines;
pub mod spill;
mod stream_count;
pub mod user_task;
pub mod validate;

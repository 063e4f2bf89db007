//! What Hadoop does: to bytes (its key fields and comparators, its hashes, its values, its built-in mappers and reducers),
//! to files (`sequence`), and to scripts (`script`). What a task of a streaming job does is `task/user/streaming`; where
//! Hadoop would cut the input, `plan/streaming.rs`.
//!
//! Where Hadoop's own words and its programs disagree, the programs were followed (version 3.4.2), since jobs are to
//! give the same records in the same parts.

pub mod aggregate;
pub mod comparator;
pub mod keyfields;
pub mod partition;
pub mod script;
pub mod select;
pub mod sequence;
pub mod text;
pub mod typed;
pub mod value;

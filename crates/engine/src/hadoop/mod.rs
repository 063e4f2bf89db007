//! What Hadoop does to bytes: its key fields and comparators, its hashes, its values, its built-in mappers
//! and reducers. Nothing here reads or writes a file.
//!
//! Where Hadoop's own words and its programs disagree, the programs were followed (version 3.4.2), since jobs are to
//! give the same records in the same parts.

pub mod aggregate;
pub mod comparator;
pub mod keyfields;
pub mod partition;
pub mod select;
pub mod text;
pub mod typed;
pub mod value;

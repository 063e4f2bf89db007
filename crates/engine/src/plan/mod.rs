//! Plan: from what a user asked for to the numbers of a job: splits, partitions, buckets, memory.
//!
//! What decides the output's bytes and names (partitions, splits, sample positions) is a function of input sizes and
//! options alone. Memory and workers decide only whether and how fast.

pub mod amount;
pub mod compression;
pub mod disk;
pub mod explain;
pub mod files;
pub mod format;
pub mod mapreduce;
pub mod node_runs;
pub mod shuffle;
pub mod sort;
pub mod spill;
pub mod streaming;
pub mod table;

//! Runs: sorted records in one file, with what is needed to read any range of them and to prove it whole.
//!
//! ```text
//!   RunWriter ──OverlappedWriter──▶ | header | data in blocks, a CRC each | index | footer |
//!                                                   │                        │
//!   RunFile::open ◀──────── header, index, footer, verified ─────────────────┘
//!   RunFile::read_blocks ◀── whole blocks, verified ┘
//! ```
//!
//! One file for each spill, never one for each partition: the index says where each bucket (a sub-range of the
//! keys) ends. docs/internals/run-file.md describes every byte. The rule that must hold: a byte of the file that
//! is not what was written is found by whoever reads that part.

pub mod format;
mod reader;
mod writer;

pub use format::{BLOCK_BYTES, RunHeader, RunIndex, file_bytes};
pub use reader::RunFile;
pub use writer::RunWriter;

#[cfg(test)]
mod tests;

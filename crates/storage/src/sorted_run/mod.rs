//! Runs: sorted records in one file, with what is needed to read any range of them and to prove it whole.
//!
//! ```text
//!   RunWriter ──OverlappedWriter──▶ | header | data in blocks, a CRC each | index | footer |
//!                                                   │                        │
//!   RunFile::open ◀──────── header, index, footer, verified ─────────────────┘
//!   RunFile::read_blocks ◀── whole blocks, verified ┘
//! ```
//!
//! Blocks may be compressed, each on its own ([`RunCompression`]): the index then says how long each is in the file.
//!
//! One file for each spill, never one for each partition: the index says where each bucket (a sub-range of the
//! keys) ends. docs/internals/run-file.md describes every byte. The rule that must hold: a byte of the file that
//! is not what was written is found by whoever reads that part.

mod compression;
mod fields;
mod format;
mod header;
mod reader;
mod writer;

pub use compression::{BLOCK_BYTES, BlockDecoder, DECODER_BYTES, RunCompression};
pub use format::{RunIndex, file_bytes, file_bytes_max};
pub use header::RunHeader;
pub use reader::RunFile;
pub use writer::RunWriter;

#[cfg(test)]
mod tests;

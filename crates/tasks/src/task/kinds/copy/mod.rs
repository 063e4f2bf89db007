//! The task that copies files: how each is copied and proved, and how many go at once.
//!
//! ```text
//!   files.rs    the task ─▶ file.rs    one file, read and written      within.rs    one that its store copies
//!                        ─▶ piece.rs   a piece of one that is cut      blocks.rs    how bytes are read and written
//!   item.rs     what is told, and what is reported                    streams.rs, stream_count.rs    how many at once
//! ```

mod blocks;
mod errors;
mod file;
pub mod files;
pub mod item;
mod pace;
mod piece;
mod stream_count;
pub mod streams;
mod task;
mod within;

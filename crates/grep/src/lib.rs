//! Search: the lines of files that match patterns, on all cores, written in the order of the files.
//!
//! ```text
//!   files ──▶ blocks of lines ──▶ workers, each with a buffer ──▶ in turn ──▶ what is written
//!             blocks.rs           lines.rs, by pattern.rs         run.rs      print.rs
//! ```
//!
//! A worker takes the next block, searches it, and waits for its turn to write: memory is one block a worker and one
//! long line, whatever the files. The output is a function of the files and the options alone. Patterns are those of ripgrep (`grep-regex`).

mod blocks;
mod context;
mod find;
mod head;
mod lines;
mod options;
mod out;
mod pattern;
mod print;
mod run;
mod trouble;
mod utf16;

pub use blocks::{Data, RangeSource, SearchInput};
pub use options::{Condition, Options, Show, Style};
pub use pattern::{Pattern, PatternOptions};
pub use print::{Note, Summary};
pub use run::{SearchSettings, search};
pub use trouble::{InputError, MemoryUse, TooLarge};
pub use utf16::{encoding_of, is_utf16};

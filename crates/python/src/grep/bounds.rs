//! How much of a line a search holds in memory, and what is said of a line that is longer.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use gristmill_engine::budget::available_bytes;
use gristmill_engine::error::show_bytes;
use gristmill_engine::{Error, Kind};
use gristmill_grep::{InputError, MemoryUse, TooLarge};

/// The longest line where there is enough memory, ...
const LINE_BYTES_MAX: u64 = 1 << 30;

/// ... and where there is little.
const LINE_BYTES_LEAST: u64 = 64 << 20;

/// A line has this part of the memory that is available: other processes need some.
const PART_OF_MEMORY: u64 = 4;

/// A line for a program is there so often on its way: in the block, in its frame, in a piece, as Python's object.
const COPIES: u64 = 4;

/// The longest line that is read to memory; `framed` for a program.
pub fn line_bytes_max(framed: bool) -> usize {
    let part = available_bytes().unwrap_or(u64::MAX) / PART_OF_MEMORY;
    let bytes = part.clamp(LINE_BYTES_LEAST, LINE_BYTES_MAX);
    (if framed { bytes / COPIES } else { bytes }) as usize
}

/// What is wrong with an input, for people.
pub fn told(name: &[u8], trouble: &InputError) -> String {
    match trouble {
        InputError::Unread(_, message) => message.clone(),
        InputError::TooLarge(large) => {
            let path = Path::new(OsStr::from_bytes(name));
            let error = too_large(large).with_path(path);
            error.with("offset", large.offset).to_string()
        }
    }
}

fn too_large(large: &TooLarge) -> Error {
    let most = show_bytes(large.bytes_max);
    let (what, advice) = match large.what {
        MemoryUse::Line => (
            format!("a line has more than {most}"),
            "check that it is text; search a copy on a local disk that is not compressed, where a line may have any length",
        ),
        MemoryUse::Before => (
            format!("the lines before a selected one have more than {most}"),
            "give a smaller number of lines before",
        ),
        MemoryUse::Matches => (
            format!("the places of the matches in a line take more than {most}"),
            "count the lines, or cut them",
        ),
    };
    Error::new(Kind::BadInput, "search the input", what).advise(advice)
}

//! Lines that are sorted where they lie: what stands for one, the bucket that it belongs to, the lines of each bucket.
//!
//! ```text
//!   lines ──eight bytes each──▶ bucket of each ──counted──▶ ScatteredLines | block 0: bucket 0 | 1 | ... | block 1: ...
//!            `Buckets`                                      eight bytes a line: where it lies, and how long it is
//! ```
//!
//! Nothing of a key is kept: a line is fetched once, when its bucket is put together, and sorted there, in cache.
//!
//! Decision: docs/decisions/lines-in-memory.md.

mod bucket;
mod scatter;
pub mod sort;

pub use bucket::ASCENDING;
pub use bucket::{Buckets, TOGETHER, shortened};
pub use scatter::{LineStaging, ScatteredLines};

/// Bits of a line's length; the largest stands for all lengths from there on.
const LENGTH_BITS: u32 = 24;

/// Lines lie below this.
pub const POSITIONS: u64 = 1 << (u64::BITS - LENGTH_BITS);

/// A length from which on an entry does not say how long its line is.
pub const LONG_BYTES: usize = (1 << LENGTH_BITS) - 1;

/// Where a line lies and how long it is, its newline included.
///
/// ```
/// use gristmill_base::order::lines::{LONG_BYTES, LineEntry};
/// let entry = LineEntry::new(1 << 39, 7);
/// assert_eq!((entry.position(), entry.length()), (1 << 39, 7));
/// assert_eq!(LineEntry::new(0, 1 << 30).length(), LONG_BYTES);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineEntry(u64);

impl LineEntry {
    /// The entry of a line at `position`, which is below [`POSITIONS`].
    #[inline]
    pub fn new(position: u64, length: usize) -> Self {
        debug_assert!(position < POSITIONS);
        LineEntry(position << LENGTH_BITS | length.min(LONG_BYTES) as u64)
    }

    /// The entry that a scatter keeps as this word.
    #[inline]
    pub fn of_word(word: u64) -> Self {
        LineEntry(word)
    }

    /// Where the line begins.
    #[inline]
    pub fn position(self) -> u64 {
        self.0 >> LENGTH_BITS
    }

    /// Its bytes, or [`LONG_BYTES`] where there are at least so many.
    #[inline]
    pub fn length(self) -> usize {
        self.0 as usize & LONG_BYTES
    }
}

/// The first sixteen bytes of the key of `key_bytes` bytes at the beginning of `data`, the first one highest, zeros behind a
/// shorter key. What follows in `data` is not looked at, but makes this fast.
///
/// ```
/// use gristmill_base::order::lines::leading;
/// assert_eq!(leading(b"abc", 3).to_be_bytes(), *b"abc\0\0\0\0\0\0\0\0\0\0\0\0\0");
/// assert_eq!(leading(b"abc\nand what follows", 3), leading(b"abc", 3));
/// ```
#[inline]
pub fn leading(data: &[u8], key_bytes: usize) -> u128 {
    let kept = 8 * key_bytes.min(size_of::<u128>()) as u32;
    let behind = u128::MAX.checked_shr(kept).unwrap_or(0);
    let bytes = match data.first_chunk() {
        Some(bytes) => u128::from_be_bytes(*bytes),
        None => few(data),
    };
    bytes & !behind
}

/// Fewer bytes than sixteen.
#[cold]
fn few(data: &[u8]) -> u128 {
    let mut bytes = [0; size_of::<u128>()];
    bytes[..data.len()].copy_from_slice(data);
    u128::from_be_bytes(bytes)
}

//! Keys and values of user code, as bytes whose order is the order of the values.
//!
//! The encoding is that of the FoundationDB tuple layer (`design/tuple.md` of that project), byte for byte, with
//! codes from the range it leaves to users:
//!
//! ```text
//!  00            null; inside a tuple 00 FF
//!  01 ... 00     bytes        a zero inside them is 00 FF
//!  02 ... 00     text         the same, in UTF-8
//!  05 ... 00     tuple        its elements one after another
//!  0b            integer      below -(2^64 - 1): length complemented, magnitude complemented
//!  0c .. 13      integer      negative, of 8 .. 1 bytes: the magnitude's complement
//!  14            integer 0
//!  15 .. 1c      integer      positive, of 1 .. 8 bytes, big-endian
//!  1d            integer      above 2^64 - 1: length (9 to 255), magnitude
//!  21            double       IEEE 754, big-endian; sign bit flipped, negative ones complemented
//!  26, 27        false, true
//!  40 ... 00     pickled      bytes that only Python understands, escaped like bytes
//!  41            date         days, big-endian, of 4 bytes; 1 is the first of January of the year 1
//!  42, 43        datetime     without a time zone; in UTC: microseconds since the year 1, 8 bytes, the sign bit flipped
//!  44 ...        decimal      sign, exponent, digits (`decimal.rs`)
//!  45 ... ff ff  descending   the complement of another value's encoding; ff inside it is ff 00
//!  46 ... 00     decimal      as it is written, in ASCII (`exact.rs`, also of what follows)
//!  47            duration     days, 4 bytes; microseconds of a day, 8 bytes; the sign bits flipped
//!  48, 49        time, datetime  with the zone, and which of two equal times it is
//!  4a            UUID         how safe it is, 1 byte; 16 bytes
//!  4b ... 00     list         its elements one after another
//!  4c ... 00     dict         its keys and values, one after another
//! ```
//!
//! Those from 46 on are of values alone: they keep all there is of a value, and nobody compares them but for being equal.
//!
//! The rules that must hold: comparing two encodings of keys as bytes compares the keys, types first (so `1`, `1.0` and `True` are three
//! keys, in this order; `order.rs` has bytes that compare numbers by what they are worth); a value has one encoding; no encoding begins with another, nor with FF, so that values stand
//! one behind another without lengths between them.
//!
//! Doubles are written as they are, as the tuple layer does: `-0.0` and `0.0` are two keys, side by side. NaNs have many forms,
//! those with a sign below `-inf`, the others above `inf`. Keys have one of them: [`one_nan`] makes it before they are written.
//!
//! Decision: docs/decisions/tuple-keys.md.

pub mod block;
pub mod cell;
pub mod cell_number;
pub mod columns;
pub mod decimal;
pub mod descending;
mod digits;
pub mod display;
mod escaped;
pub mod exact;
pub mod fields;
pub mod hash;
pub mod moment;
pub mod order;
pub mod read;
pub mod skip;
#[cfg(test)]
mod tests;
mod value_writer;
pub mod write;

pub use cell::write_cell;
pub use cell_number::CellNumber;
pub use decimal::Decimal;
pub use display::display;
pub use hash::{hash, partition};
pub use read::{Token, ValueReader};
pub use skip::{prefix, skip};
pub use value_writer::ValueWriter;

use crate::{Error, Kind};

/// Tuples within tuples, at most: what reads a value may then recurse.
pub const DEPTH_MAX: u32 = 100;

/// As how many tuples a descending value counts: each one's encoding may be longer than what it holds by two thirds.
pub const DESCENDING_DEPTH: u32 = 10;

/// Bytes of an integer's magnitude, at most: the length has one byte.
pub const MAGNITUDE_BYTES_MAX: usize = 255;

/// The first bytes of encodings.
pub(crate) mod code {
    pub(crate) const NULL: u8 = 0x00;
    pub(crate) const BYTES: u8 = 0x01;
    pub(crate) const TEXT: u8 = 0x02;
    pub(crate) const TUPLE: u8 = 0x05;
    pub(crate) const NEGATIVE: u8 = 0x0b;
    pub(crate) const ZERO: u8 = 0x14;
    pub(crate) const POSITIVE: u8 = 0x1d;
    pub(crate) const DOUBLE: u8 = 0x21;
    pub(crate) const FALSE: u8 = 0x26;
    pub(crate) const TRUE: u8 = 0x27;
    pub(crate) const PICKLED: u8 = 0x40;
    pub(crate) const DATE: u8 = 0x41;
    pub(crate) const NAIVE: u8 = 0x42;
    pub(crate) const AWARE: u8 = 0x43;
    pub(crate) const DECIMAL: u8 = 0x44;
    pub(crate) const DESCENDING: u8 = 0x45;
    pub(crate) const WRITTEN: u8 = 0x46;
    pub(crate) const DURATION: u8 = 0x47;
    pub(crate) const TIME: u8 = 0x48;
    pub(crate) const ZONED: u8 = 0x49;
    pub(crate) const UUID: u8 = 0x4a;
    pub(crate) const LIST: u8 = 0x4b;
    pub(crate) const DICT: u8 = 0x4c;
    /// Of `order.rs` alone: below and above all finite numbers, no number, and more of a number.
    pub(crate) const BELOW: u8 = 0x0a;
    pub(crate) const ABOVE: u8 = 0x1e;
    pub(crate) const NAN: u8 = 0x1f;
    pub(crate) const FRACTION: u8 = 0xfe;
    /// Ends what has no length.
    pub(crate) const END: u8 = 0x00;
    /// Behind a zero: the zero is one of the content's.
    pub(crate) const ESCAPE: u8 = 0xff;
}

/// The double; NaNs have one form, which is above `inf`. So keys are written, and what is told apart as keys are.
///
/// ```
/// use gristmill_base::value::one_nan;
/// assert_eq!(one_nan(-f64::NAN).to_bits(), 0x7ff8 << 48);
/// assert_eq!(one_nan(-0.0).to_bits(), 1 << 63);
/// ```
#[inline]
pub fn one_nan(value: f64) -> f64 {
    if value.is_nan() {
        f64::from_bits(0x7ff8 << 48)
    } else {
        value
    }
}

/// What is wrong with an encoding: `at` bytes in, something else was expected.
fn malformed(at: usize, found: Option<u8>, expected: &str) -> Error {
    let found = match found {
        Some(byte) => format!("byte 0x{byte:02x}"),
        None => "the end".to_owned(),
    };
    let message = format!("expected {expected}, found {found}");
    Error::new(Kind::BadInput, "decode a value", message).with("offset", at)
}

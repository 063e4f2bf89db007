//! Cells of a table that is text: results are written into them.
//!
//! ```text
//!   cell ──CellNumber──▶ encoded number ── aggregates ──▶ encoded result ──write_cell──▶ cell
//! ```
//!
//! The rule that must hold: a number reads back from its cell as the same. Quotes and separators are not known here.

use std::io::Write;

use super::read::{Token, ValueReader};
use super::{digits, display};
use crate::{Error, Kind, Result};

/// Characters of a value that an error shows.
const SHOWN_MAX: usize = 60;

/// Appends the first value of `encoded` as the text of a cell, and says how many bytes of `encoded` it took.
///
/// Integers are decimal; doubles have the fewest digits that read back as the same double, as Python's `repr` shows them; booleans are
/// `true` and `false`; text, bytes and decimals that are written stay as they are; a null is nothing.
///
/// An error (`bad_input`) where the value is of another type, or there is none.
///
/// ```
/// use gristmill_base::value::write_cell;
/// let results = b"\x15\x2a\x02a word\0"; // 42, "a word"
/// let mut line = Vec::new();
/// let taken = write_cell(results, &mut line)?;
/// line.push(b',');
/// write_cell(&results[taken..], &mut line)?;
/// assert_eq!(line, b"42,a word");
/// # Ok::<(), gristmill_base::Error>(())
/// ```
pub fn write_cell(encoded: &[u8], out: &mut Vec<u8>) -> Result<usize> {
    let mut reader = ValueReader::new(encoded);
    match reader.token()? {
        Some(Token::Null) => {}
        Some(Token::Boolean(true)) => out.extend_from_slice(b"true"),
        Some(Token::Boolean(false)) => out.extend_from_slice(b"false"),
        // A Vec takes whatever is written to it.
        Some(Token::Int(int)) => _ = write!(out, "{int}"),
        Some(Token::BigInt {
            negative,
            magnitude,
        }) => {
            out.extend_from_slice(if negative { b"-" } else { b"" });
            shown(out, |text| digits::magnitude(text, &magnitude));
        }
        Some(Token::Double(double)) => shown(out, |text| digits::double(text, double)),
        Some(Token::Text(text) | Token::Written(text)) => out.extend_from_slice(text.as_bytes()),
        Some(Token::Bytes(bytes)) => out.extend_from_slice(&bytes),
        _ => return Err(no_cell(encoded)),
    }
    Ok(reader.position())
}

/// Appends what `show` shows.
fn shown(out: &mut Vec<u8>, show: impl FnOnce(&mut String)) {
    let mut text = String::new();
    show(&mut text);
    out.extend_from_slice(text.as_bytes());
}

#[cold]
fn no_cell(encoded: &[u8]) -> Error {
    let message = match encoded {
        [] => "there is no value".to_owned(),
        _ => format!(
            "{} is not a number, text, bytes, a boolean or null",
            display(encoded, SHOWN_MAX)
        ),
    };
    Error::new(Kind::BadInput, "write a cell", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{one_nan, write};
    use num_bigint::{BigInt, Sign};
    use proptest::prelude::*;

    fn int(value: &BigInt) -> Option<Vec<u8>> {
        let (mut out, (sign, magnitude)) = (Vec::new(), value.to_bytes_be());
        write::big_int(&mut out, sign == Sign::Minus, &magnitude).ok()?;
        Some(out)
    }

    fn double(value: f64) -> Vec<u8> {
        let mut out = Vec::new();
        write::double(&mut out, one_nan(value));
        out
    }

    fn cell(encoded: &[u8]) -> String {
        let mut out = b"before".to_vec();
        assert_eq!(write_cell(encoded, &mut out).unwrap(), encoded.len());
        String::from_utf8(out.split_off(6)).unwrap()
    }

    #[test]
    fn cells_are_text() {
        for (value, text) in [
            (0.1, "0.1"),
            (1e16, "1e+16"),
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (1e-5, "1e-05"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
        ] {
            assert_eq!(cell(&double(value)), text);
        }
        for (encoded, text) in [
            (b"\x00".as_slice(), ""),
            (b"\x26", "false"),
            (b"\x27", "true"),
            (b"\x02a, \"b\"\n\0", "a, \"b\"\n"),
            (b"\x02a\0\xffb\0", "a\0b"),
            (b"\x01bytes\0", "bytes"),
            (b"\x461.50\0", "1.50"),
            (b"\x14", "0"),
            (b"\x13\xfe", "-1"),
        ] {
            assert_eq!(cell(encoded), text);
        }
    }

    #[test]
    fn what_has_no_cell_is_an_error() {
        for (encoded, said) in [
            (b"".as_slice(), "cannot write a cell: there is no value"),
            (
                b"\x05\x15\x01\0",
                "cannot write a cell: (1,) is not a number",
            ),
            (b"\x03", "cannot decode a value: "),
            (b"\x02cut", "cannot decode a value: "),
        ] {
            let mut out = Vec::new();
            let error = write_cell(encoded, &mut out).unwrap_err();
            assert_eq!((error.kind(), out), (Kind::BadInput, Vec::new()));
            assert!(error.to_string().starts_with(said), "{error}");
        }
    }

    proptest! {
        #[test]
        fn a_double_reads_back_as_it_was(bits in any::<u64>()) {
            let encoded = double(f64::from_bits(bits));
            prop_assert_eq!(double(cell(&encoded).parse().unwrap()), encoded);
        }

        #[test]
        fn an_integer_reads_back_as_it_was(
            negative: bool, bytes in proptest::collection::vec(any::<u8>(), 0..=255),
        ) {
            let sign = if negative { Sign::Minus } else { Sign::Plus };
            let value = BigInt::from_bytes_be(sign, &bytes);
            let encoded = int(&value).unwrap();
            prop_assert_eq!(cell(&encoded), value.to_string());
        }
    }
}

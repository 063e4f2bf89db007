//! Cells of a table that is text: numbers are read out of them, and results written into them.
//!
//! ```text
//!   cell ──number_of_cell──▶ encoded number ── aggregates ──▶ encoded result ──write_cell──▶ cell
//! ```
//!
//! The rules that must hold: a number is written as Python's `int` and `float` take it, without underscores and in ASCII; where a
//! cell holds none, nothing is written; and a number reads back from its cell as the same. Quotes and separators are not known here.

use std::io::Write;

use super::read::{Token, ValueReader};
use super::{digits, display, one_nan, write};
use crate::{Error, Kind, Result};

/// So many digits are less than 2^64 whatever they are.
const SHORT_DIGITS: usize = 19;

/// Characters of a value that an error shows.
const SHOWN_MAX: usize = 60;

/// Appends the number that a cell holds, encoded, and says whether it holds one. Blanks around it do not count.
///
/// Digits alone, with or without a sign, are an integer; with a point or an exponent they are the nearest double, which may be
/// infinite. `inf`, `infinity` and `nan` are doubles, in capitals too. An integer of more than 255 bytes has no encoding: it is none.
///
/// ```
/// use gristmill_base::value::{display, number_of_cell};
/// let mut out = Vec::new();
/// assert!(number_of_cell(b" 42 ", &mut out));
/// assert_eq!(out, [0x15, 42]);
/// out.clear();
/// assert!(number_of_cell(b"1e3", &mut out));
/// assert_eq!(display(&out, 20), "1000.0");
/// assert!(!number_of_cell(b"1,5", &mut out));
/// ```
#[inline]
pub fn number_of_cell(cell: &[u8], out: &mut Vec<u8>) -> bool {
    let number = cell.trim_ascii();
    let (negative, digits) = match number.split_first() {
        Some((b'-', digits)) => (true, digits),
        Some((b'+', digits)) => (false, digits),
        _ => (false, number),
    };
    if digits.is_empty() || digits.len() > SHORT_DIGITS {
        return long_number(number, negative, digits, out);
    }
    let mut magnitude = 0;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return long_number(number, negative, digits, out);
        }
        magnitude = 10 * magnitude + u64::from(digit);
    }
    write::magnitude(out, negative, magnitude);
    true
}

/// The same for a number that is no short integer; `digits` is what follows its sign.
fn long_number(number: &[u8], negative: bool, digits: &[u8], out: &mut Vec<u8>) -> bool {
    if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) {
        return digits::parsed(digits)
            .is_some_and(|magnitude| write::big_int(out, negative, &magnitude).is_ok());
    }
    let double = std::str::from_utf8(number).ok();
    match double.and_then(|text| text.parse().ok()) {
        Some(double) => write::double(out, one_nan(double)),
        None => return false,
    }
    true
}

/// Appends the first value of `encoded` as the text of a cell, and says how many bytes of `encoded` it took.
///
/// Integers are decimal; doubles have the fewest digits that read back as the same double, as Python's `repr` shows them; booleans are
/// `true` and `false`; text and bytes stay as they are; a null is nothing.
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
        Some(Token::Text(text)) => out.extend_from_slice(text.as_bytes()),
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
    use num_bigint::{BigInt, Sign};
    use proptest::prelude::*;

    fn number(cell: &[u8]) -> Option<Vec<u8>> {
        let mut out = b"before".to_vec();
        let is_number = number_of_cell(cell, &mut out);
        let encoded = out.strip_prefix(b"before").unwrap().to_vec();
        assert_eq!(is_number, !encoded.is_empty());
        is_number.then_some(encoded)
    }

    fn int(value: &BigInt) -> Option<Vec<u8>> {
        let (mut out, (sign, magnitude)) = (Vec::new(), value.to_bytes_be());
        write::big_int(&mut out, sign == Sign::Minus, &magnitude).ok()?;
        Some(out)
    }

    fn double(value: f64) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        write::double(&mut out, one_nan(value));
        Some(out)
    }

    /// What the standard library and `num_bigint` say.
    fn naive(cell: &str) -> Option<Vec<u8>> {
        let text = cell.trim_matches([' ', '\t', '\n', '\r', '\x0c']);
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        if !digits.is_empty() && digits.chars().all(|digit| digit.is_ascii_digit()) {
            return int(&text.parse().unwrap());
        }
        double(text.parse().ok()?)
    }

    fn cell(encoded: &[u8]) -> String {
        let mut out = b"before".to_vec();
        assert_eq!(write_cell(encoded, &mut out).unwrap(), encoded.len());
        String::from_utf8(out.split_off(6)).unwrap()
    }

    #[test]
    fn integers_are_of_any_length() {
        for text in [
            "0",
            "-0",
            "+7",
            "007",
            "-128",
            "999999999999999999",
            "9223372036854775807",
            "-9223372036854775808",
            "9999999999999999999",
            "18446744073709551615",
            "18446744073709551616",
            "-18446744073709551616",
            "00000000000000000000000000000000000000012",
            "00000000000000000000000",
        ] {
            let expected = int(&text.parse().unwrap());
            assert_eq!(number(text.as_bytes()), expected, "{text}");
            if let Ok(small) = text.parse::<i64>() {
                let mut encoded = Vec::new();
                write::int(&mut encoded, small);
                assert_eq!(number(text.as_bytes()), Some(encoded), "{text}");
            }
        }
    }

    #[test]
    fn the_longest_integer_has_255_bytes() {
        let longest: BigInt = (BigInt::from(1) << (255 * 8)) - 1;
        let zeros = format!("-{}{longest}", "0".repeat(10_000));
        assert_eq!(number(zeros.as_bytes()), int(&-&longest));
        assert!(number(longest.to_string().as_bytes()).is_some());
        assert_eq!(number((longest + 1_u8).to_string().as_bytes()), None);
        assert_eq!(number("9".repeat(100_000).as_bytes()), None);
    }

    #[test]
    fn doubles_are_what_python_takes_for_them() {
        for (text, value) in [
            ("1.5", 1.5),
            ("-.5", -0.5),
            ("5.", 5.0),
            ("1e3", 1000.0),
            ("1.E-2", 0.01),
            ("+2.5", 2.5),
            ("-0.0", -0.0),
            ("0.1", 0.1),
            ("1e400", f64::INFINITY),
            ("inf", f64::INFINITY),
            ("-INF", f64::NEG_INFINITY),
            ("Infinity", f64::INFINITY),
            ("+iNfInItY", f64::INFINITY),
            ("nan", f64::NAN),
            ("-NaN", f64::NAN),
            ("9007199254740993.0", 9_007_199_254_740_992.0),
        ] {
            assert_eq!(number(text.as_bytes()), double(value), "{text}");
        }
    }

    #[test]
    fn anything_else_is_no_number() {
        for text in [
            "",
            "  ",
            "+",
            "-",
            ".",
            "-.",
            "e5",
            "1e",
            "1e+",
            "0x10",
            "1_000",
            "1,5",
            "1 000",
            "+-1",
            "--1",
            "- 1",
            "1.2.3",
            "in",
            "infin",
            "nano",
            "true",
            "NULL",
            "\u{661}",
            "1\u{a0}",
            "1.5f",
            "1\0",
            "12345678901234567890x",
        ] {
            assert_eq!(number(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(number(b"1.5\xff"), None);
    }

    #[test]
    fn blanks_around_do_not_count() {
        assert_eq!(number(b" \t12\r\n"), number(b"12"));
        assert_eq!(number(b" -1.5 "), number(b"-1.5"));
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
            assert_eq!(cell(&double(value).unwrap()), text);
        }
        for (encoded, text) in [
            (b"\x00".as_slice(), ""),
            (b"\x26", "false"),
            (b"\x27", "true"),
            (b"\x02a, \"b\"\n\0", "a, \"b\"\n"),
            (b"\x02a\0\xffb\0", "a\0b"),
            (b"\x01bytes\0", "bytes"),
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
        fn cells_are_read_as_the_standard_library_reads_them(
            cell in prop_oneof![
                "[ \t]{0,2}[-+]?[0-9]{0,45}[ \n]{0,2}",
                "[-+]?[0-9]{0,4}[.]?[0-9]{0,20}([eE][-+]?[0-9]{0,3})?",
                "[-+.0-9eEinfatyNINF_x, ]{0,8}",
                any::<f64>().prop_map(|double| double.to_string()),
                any::<String>(),
            ],
        ) {
            prop_assert_eq!(number(cell.as_bytes()), naive(&cell));
        }

        #[test]
        fn a_double_reads_back_as_it_was(bits in any::<u64>()) {
            let encoded = double(f64::from_bits(bits)).unwrap();
            prop_assert_eq!(number(cell(&encoded).as_bytes()), Some(encoded));
        }

        #[test]
        fn an_integer_reads_back_as_it_was(
            negative: bool, bytes in proptest::collection::vec(any::<u8>(), 0..=255),
        ) {
            let sign = if negative { Sign::Minus } else { Sign::Plus };
            let value = BigInt::from_bytes_be(sign, &bytes);
            let encoded = int(&value).unwrap();
            prop_assert_eq!(cell(&encoded), value.to_string());
            prop_assert_eq!(number(value.to_string().as_bytes()), Some(encoded));
        }
    }
}

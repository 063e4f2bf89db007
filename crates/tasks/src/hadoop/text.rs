//! Bytes as Java reads them as a string: what is no UTF-8 becomes U+FFFD, and as many of them as there.

use std::borrow::Cow;

/// The string that `Text.toString` gives.
///
/// Java and Rust replace alike, but for the halves of a surrogate pair: one character in Java, three in Rust.
///
/// ```
/// use gristmill_tasks::hadoop::text::decoded;
/// assert_eq!(decoded("é".as_bytes()), "é");
/// assert_eq!(decoded(b"a\xff\xc3b"), "a\u{fffd}\u{fffd}b");
/// assert_eq!(decoded(b"\xed\xa0\x80b"), "\u{fffd}b");
/// ```
pub fn decoded(data: &[u8]) -> Cow<'_, str> {
    let (mut made, mut rest) = (String::new(), data);
    loop {
        let error = match str::from_utf8(rest) {
            Ok(text) if rest.len() == data.len() => return Cow::Borrowed(text),
            Ok(text) => return Cow::Owned(made + text),
            Err(error) => error,
        };
        let (valid, behind) = rest.split_at(error.valid_up_to());
        made.push_str(&String::from_utf8_lossy(valid));
        made.push(char::REPLACEMENT_CHARACTER);
        let length = match behind {
            [0xed, 0xa0..=0xbf, 0x80..=0xbf, ..] => 3,
            [0xed, 0xa0..=0xbf, ..] => 2,
            _ => error.error_len().unwrap_or(behind.len()),
        };
        rest = behind.get(length..).unwrap_or_default();
    }
}

/// Appends pairs of hexadecimal digits.
pub fn hexadecimal(data: &[u8], separator: u8, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (i, &byte) in data.iter().enumerate() {
        if i > 0 && separator != 0 {
            out.push(separator);
        }
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Java 17 prints of these, each with `x` behind it and at the end.
    #[test]
    fn as_many_replacements_as_in_java() {
        let cases: [(&[u8], usize); 12] = [
            (b"\xff", 1),
            (b"\xc3", 1),
            (b"\xc0\x80", 2),
            (b"\xe2\x82", 1),
            (b"\xe0\x80\x80", 3),
            (b"\xed\xa0\x80", 1),
            (b"\xed\xbf\xbf", 1),
            (b"\xed\xa0", 1),
            (b"\xed", 1),
            (b"\xf0\x9f\x98", 1),
            (b"\xf0\x80\x80\x80", 4),
            (b"\xf5\x80", 2),
        ];
        for (bytes, count) in cases {
            let replaced = "\u{fffd}".repeat(count);
            assert_eq!(decoded(bytes), replaced, "{bytes:x?}");
            assert_eq!(
                decoded(&[bytes, b"x"].concat()),
                format!("{replaced}x"),
                "{bytes:x?}"
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn text_stays_as_it_is(text in ".*") {
            proptest::prop_assert!(matches!(decoded(text.as_bytes()), Cow::Borrowed(same) if same == text));
        }
    }
}

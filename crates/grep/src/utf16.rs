//! UTF-16: a stream that begins with its byte order mark is read as UTF-8, as ripgrep does.
//!
//! ```text
//!   FF FE  6E 00 65 00 0A 00   ──▶  n e LF       low byte first
//!   FE FF  00 6E 00 65 00 0A   ──▶  n e LF       high byte first
//! ```
//!
//! The mark is left out. What is no UTF-16, such as half of a pair, becomes U+FFFD. Numbers of bytes and offsets are those
//! of the decoded text, as of compressed files. Text without a mark is not decoded: [`suspected`] says that it looks like UTF-16.

use std::io::{self, Read};

use encoding_rs::{Encoding, UTF_16BE, UTF_16LE};
use memchr::memchr;

/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;

/// Bytes that tell what a text is. UTF-32 begins with a mark of UTF-16, and two zeros.
const MARK_BYTES: usize = 4;

/// Bytes that are looked at to see whether a text looks like UTF-16.
const LOOK_BYTES: usize = 4 << 10;

/// Whether a text begins with the mark of UTF-16.
///
/// ```
/// use gristmill_grep::is_utf16;
/// assert!(is_utf16(b"\xff\xfen\0") && is_utf16(b"\xfe\xff"));
/// assert!(!is_utf16(b"\xff\xfe\0\0") && !is_utf16(b"\xef\xbb\xbf"));
/// ```
#[must_use]
pub fn is_utf16(first: &[u8]) -> bool {
    marked(first).is_some()
}

fn marked(first: &[u8]) -> Option<&'static Encoding> {
    match first {
        [0xFF, 0xFE, 0, 0, ..] => None, // UTF-32
        [0xFF, 0xFE, ..] => Some(UTF_16LE),
        [0xFE, 0xFF, ..] => Some(UTF_16BE),
        _ => None,
    }
}

/// What the beginning of a text is by its mark, or looks like, where it is not UTF-8: its name as `iconv` has it.
///
/// ```
/// use gristmill_grep::encoding_of;
/// assert_eq!(encoding_of(b"\xff\xfen\0"), Some("UTF-16LE"));
/// assert_eq!(encoding_of(b"plain text"), None);
/// ```
#[must_use]
pub fn encoding_of(first: &[u8]) -> Option<&'static str> {
    let of_mark = marked(first).map(Encoding::name);
    of_mark.or_else(|| suspected(first))
}

/// What the beginning of a text, which is not decoded, looks like: its name as `iconv` has it.
pub fn suspected(first: &[u8]) -> Option<&'static str> {
    if first.starts_with(&[0xFF, 0xFE, 0, 0]) || first.starts_with(&[0, 0, 0xFE, 0xFF]) {
        return Some("UTF-32");
    }
    let first = &first[..first.len().min(LOOK_BYTES)];
    memchr(0, first)?;
    let found = [UTF_16LE, UTF_16BE].into_iter();
    let mut found = found.filter(|encoding| is_text(encoding, first));
    found.next().map(Encoding::name)
}

/// Whether all of it is text in UTF-16, some of it ASCII: then its NULs stand at even places, or at odd ones.
fn is_text(encoding: &'static Encoding, first: &[u8]) -> bool {
    const LEAST: usize = 4;
    const ONE_OF: usize = 8;
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let mut text = String::with_capacity(3 * LOOK_BYTES);
    // The other half of the last letter may be behind what is looked at.
    let (_, _, is_broken) = decoder.decode_to_string(first, &mut text, false);
    let is_odd = |letter: char| letter.is_control() && !letter.is_ascii_whitespace();
    let ascii = text.bytes().filter(u8::is_ascii).count();
    !is_broken && !text.contains(is_odd) && ascii >= LEAST && ascii * ONE_OF >= text.chars().count()
}

/// A stream, decoded where it begins with a mark.
pub struct Utf16Decoder {
    stream: Box<dyn Read + Send>,
    /// What decodes it, once the beginning was read and is UTF-16.
    decoder: Option<encoding_rs::Decoder>,
    begun: bool,
    ended: bool,
    raw: Vec<u8>,
    /// What was decoded, and how much of it was handed on.
    made: String,
    at: usize,
}

impl Utf16Decoder {
    pub fn new(stream: Box<dyn Read + Send>) -> Self {
        Utf16Decoder {
            stream,
            decoder: None,
            begun: false,
            ended: false,
            raw: Vec::new(),
            made: String::new(),
            at: 0,
        }
    }

    /// Reads the beginning; a text that has no mark is in `buffer` then, so many bytes.
    fn begin(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut count = self.stream.read(buffer)?;
        while may_be_mark(&buffer[..count]) && count < buffer.len() {
            match self.stream.read(&mut buffer[count..]) {
                Ok(0) => break,
                Ok(more) => count += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.begun = true;
        if let Some(encoding) = marked(&buffer[..count]) {
            let decoder = self
                .decoder
                .insert(encoding.new_decoder_without_bom_handling());
            decode(decoder, &buffer[2..count], &mut self.made, false);
            self.raw.resize(READ_BYTES, 0);
        }
        Ok(count)
    }
}

/// Decodes some bytes; what is no whole letter yet is kept by the decoder.
fn decode(decoder: &mut encoding_rs::Decoder, bytes: &[u8], made: &mut String, last: bool) {
    made.clear();
    // Two bytes become three at most.
    made.reserve(3 * (bytes.len() / 2 + 2));
    let _ = decoder.decode_to_string(bytes, made, last);
}

/// Whether more bytes must tell.
fn may_be_mark(first: &[u8]) -> bool {
    let begins = |mark: &[u8]| mark.starts_with(first) || first.starts_with(mark);
    let is_open = !first.is_empty() && first.len() < MARK_BYTES;
    is_open && (begins(&[0xFF, 0xFE]) || begins(&[0xFE, 0xFF]))
}

impl Read for Utf16Decoder {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.begun {
            let count = self.begin(buffer)?;
            if self.decoder.is_none() {
                return Ok(count);
            }
        }
        let Some(decoder) = &mut self.decoder else {
            return self.stream.read(buffer);
        };
        while self.at == self.made.len() {
            if self.ended {
                return Ok(0);
            }
            let read = self.stream.read(&mut self.raw)?;
            self.ended = read == 0;
            self.at = 0;
            decode(decoder, &self.raw[..read], &mut self.made, self.ended);
        }
        let left = &self.made.as_bytes()[self.at..];
        let count = left.len().min(buffer.len());
        buffer[..count].copy_from_slice(&left[..count]);
        self.at += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives so many bytes at a time, from a place on.
    struct Slow(Vec<u8>, usize, usize);

    impl Read for Slow {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let left = &self.0[self.2..];
            let count = self.1.min(left.len()).min(buffer.len());
            buffer[..count].copy_from_slice(&left[..count]);
            self.2 += count;
            Ok(count)
        }
    }

    fn bytes_of(text: &str, encoding: &'static Encoding) -> Vec<u8> {
        let bytes = |unit: u16| match encoding.name() {
            "UTF-16LE" => unit.to_le_bytes(),
            _ => unit.to_be_bytes(),
        };
        text.encode_utf16().flat_map(bytes).collect()
    }

    fn decoded(bytes: &[u8], step: usize) -> Vec<u8> {
        let mut read = Vec::new();
        let slow = Slow(bytes.to_vec(), step, 0);
        Utf16Decoder::new(Box::new(slow))
            .read_to_end(&mut read)
            .unwrap();
        read
    }

    const ORDERS: [&Encoding; 2] = [UTF_16LE, UTF_16BE];

    #[test]
    fn a_mark_says_that_it_is_utf16_however_it_is_read() {
        let long = "grüße 𝄞 \u{FEFF}\n".repeat(6_000);
        for (text, order) in ["", "n", "one\r\nlíne 𝄞𝄞\n", &*long]
            .into_iter()
            .flat_map(|text| ORDERS.map(|order| (text, order)))
        {
            let bytes = bytes_of(&format!("\u{FEFF}{text}"), order);
            for step in [1, 2, 3, 5, 100_000] {
                assert!(decoded(&bytes, step) == text.as_bytes(), "{order:?} {step}");
            }
        }
    }

    #[test]
    fn what_is_no_utf16_becomes_a_sign_of_its_own() {
        for step in 1..5 {
            assert_eq!(decoded(b"\xff\xfea\0b", step), "a\u{FFFD}".as_bytes());
            assert_eq!(
                decoded(b"\xfe\xff\xd8\x34\0a", step),
                "\u{FFFD}a".as_bytes()
            );
            assert_eq!(
                decoded(b"\xfe\xff\0a\xd8\x34", step),
                "a\u{FFFD}".as_bytes()
            );
        }
    }

    #[test]
    fn all_else_is_handed_on_as_it_is() {
        let texts: [&[u8]; 8] = [
            b"",
            b"a",
            b"\xff",
            b"\xfe",
            b"\xff\xfe\0\0a\0\0\0",
            b"\xef\xbb\xbfrow\n",
            b"\xffabc\n",
            b"a\0\n\0",
        ];
        for (text, step) in texts.into_iter().flat_map(|text| [(text, 1), (text, 9)]) {
            assert_eq!(decoded(text, step), text);
        }
    }

    #[test]
    fn text_without_a_mark_is_suspected_and_nothing_else() {
        for order in ORDERS {
            let name = order.name();
            for text in [
                "needle\n",
                "Привет, мир, привет\r\n",
                "x,y\r\n1,2\r\n",
                &"é𝄞 a".repeat(3_000),
            ] {
                let bytes = bytes_of(text, order);
                assert_eq!(suspected(&bytes), Some(name), "{text:.20}");
                assert_eq!(
                    suspected(&bytes[..bytes.len() - 1]),
                    Some(name),
                    "{text:.20}"
                );
            }
        }
        assert_eq!(suspected(b"\xff\xfe\0\0n\0\0\0"), Some("UTF-32"));
        let numbers: Vec<u8> = (0..2_000_u16).flat_map(u16::to_le_bytes).collect();
        let binaries: [&[u8]; 6] = [
            b"",
            b"text\n",
            b"text\0text\n",
            b"a\0b\0\0",
            &numbers,
            b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0",
        ];
        for binary in binaries {
            assert_eq!(suspected(binary), None, "{binary:.20?}");
        }
    }
}

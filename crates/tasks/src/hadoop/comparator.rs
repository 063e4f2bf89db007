//! Hadoop's `KeyFieldBasedComparator` as bytes: keys encoded so that comparing the encodings compares the fields.
//!
//! ```text
//!   each range:   | 0: the key has no such field | 1 |  content, ended so that none is another's beginning |
//!   text:         | bytes, 00 as 00 ff | 00 00 |
//!   number:       | sign | digits before the point, u32 | these | those behind it | 00 | what follows |
//!   reversed:     | all of these bytes inverted |
//! ```
//!
//! The engine compares bytes and nothing else, so that order is total and every merge agrees with every sort.
//! Hadoop's own comparison is none in corners: it says "smaller" both ways of two keys that lack the field, takes `05`
//! for unequal to `5` but equal to `5.0`, and what is no number at all sorts by one of its characters. There, what
//! stands below is one total order that agrees with Hadoop wherever it is consistent with itself.

use super::keyfields::{KeyFields, KeyRange};

/// Encodes keys for an order by fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparator {
    fields: KeyFields,
}

impl Comparator {
    /// The order by these fields.
    pub fn new(fields: KeyFields) -> Self {
        Comparator { fields }
    }

    /// Appends the encoding of `key`.
    ///
    /// ```
    /// use gristmill_tasks::hadoop::{comparator::Comparator, keyfields::KeyFields};
    /// let order = Comparator::new(KeyFields::parse("-k2,2nr", b"\t").unwrap());
    /// let encoded = |key: &[u8]| { let mut out = Vec::new(); order.encode(key, &mut out); out };
    /// assert!(encoded(b"a\t10") < encoded(b"b\t9"));
    /// assert_eq!(encoded(b"a\t10"), encoded(b"b\t10"));
    /// ```
    pub fn encode(&self, key: &[u8], out: &mut Vec<u8>) {
        if self.fields.ranges().is_empty() {
            out.extend_from_slice(key);
            return;
        }
        for (range, slice) in self.fields.slices(key) {
            let start = out.len();
            encode_field(range, slice, out);
            if range.reverse {
                for byte in out.iter_mut().skip(start) {
                    *byte = !*byte;
                }
            }
        }
    }
}

fn encode_field(range: &KeyRange, slice: Option<&[u8]>, out: &mut Vec<u8>) {
    match slice {
        None => out.push(0),
        Some(text) => {
            out.push(1);
            if range.numeric {
                encode_number(text, out);
            } else {
                encode_text(text, out);
            }
        }
    }
}

fn encode_text(text: &[u8], out: &mut Vec<u8>) {
    for piece in text.split_inclusive(|&byte| byte == 0) {
        out.extend_from_slice(piece);
        if piece.last() == Some(&0) {
            out.push(0xff);
        }
    }
    out.extend_from_slice(&[0, 0]);
}

/// A number as Hadoop reads it: a sign, digits, a point, digits, and whatever follows.
struct HadoopNumber<'a> {
    negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
    /// Decides between numbers that are equal so far: the first byte after the digits, or the field's first where
    /// it ends there.
    rest: u8,
}

impl<'a> HadoopNumber<'a> {
    fn read(text: &'a [u8]) -> Self {
        let first = text.first().copied().unwrap_or(0);
        let minus = first == b'-';
        let unsigned = if minus {
            text.get(1..).unwrap_or_default()
        } else {
            text
        };
        let digits = digits(unsigned);
        let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
        let whole = digits.get(zeros..).unwrap_or_default();
        let after = unsigned.get(digits.len()..).unwrap_or_default();
        let fraction = match after.split_first() {
            Some((b'.', behind)) => trim_zeros(self::digits(behind)),
            _ => &[],
        };
        let is_zero = whole.is_empty() && fraction.is_empty();
        let rest = match after.first() {
            Some(b'.') => whole.first().copied().unwrap_or(b'0'),
            Some(&byte) if !(minus && is_zero) => byte,
            None if !minus => first,
            _ => b'0',
        };
        HadoopNumber {
            negative: minus && !is_zero,
            whole,
            fraction,
            rest,
        }
    }
}

fn digits(text: &[u8]) -> &[u8] {
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    text.get(..count).unwrap_or_default()
}

fn trim_zeros(digits: &[u8]) -> &[u8] {
    let end = digits
        .iter()
        .rposition(|&digit| digit != b'0')
        .map_or(0, |last| last + 1);
    digits.get(..end).unwrap_or_default()
}

fn encode_number(text: &[u8], out: &mut Vec<u8>) {
    let number = HadoopNumber::read(text);
    out.push(if number.negative { 0 } else { 1 });
    let start = out.len();
    out.extend_from_slice(
        &u32::try_from(number.whole.len())
            .unwrap_or(u32::MAX)
            .to_be_bytes(),
    );
    out.extend_from_slice(number.whole);
    out.extend_from_slice(number.fraction);
    out.push(0);
    out.push(number.rest ^ 0x80); // Java's bytes have a sign
    if number.negative {
        for byte in out.iter_mut().skip(start) {
            *byte = !*byte;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use proptest::prelude::*;

    use super::*;

    fn compare(option: &str, a: &str, b: &str) -> Ordering {
        let order = Comparator::new(KeyFields::parse(option, b"\t").unwrap());
        let encoded = |key: &str| {
            let mut out = Vec::new();
            order.encode(key.as_bytes(), &mut out);
            out
        };
        encoded(a).cmp(&encoded(b))
    }

    #[test]
    fn numbers_as_numbers() {
        let ascending = [
            "-100",
            "-99.5",
            "-99",
            "-2",
            "-1.25",
            "-1.2",
            "-0.001",
            "0",
            "0.001",
            "0.1",
            "1",
            "1.05",
            "1.5",
            "2",
            "9",
            "10",
            "10.5",
            "99999999999999999999",
            "100000000000000000000",
        ];
        for (i, a) in ascending.iter().enumerate() {
            for (j, b) in ascending.iter().enumerate() {
                assert_eq!(compare("-n", a, b), i.cmp(&j), "{a} {b}");
                assert_eq!(compare("-nr", a, b), j.cmp(&i), "{a} {b} reversed");
            }
        }
        for (a, b) in [
            ("5", "5.0"),
            ("-0", "0"),
            ("1.50", "1.5"),
            ("-0.0", "0"),
            ("00.5", ".5"),
        ] {
            assert_eq!(compare("-n", a, b), Ordering::Equal, "{a} {b}");
        }
        assert_eq!(compare("-n", "abc", "5"), Ordering::Less); // no number counts as no digits
        assert_eq!(compare("-n", "05", "5"), Ordering::Less); // Hadoop's own oddity
    }

    #[test]
    fn the_next_range_decides_where_one_ties() {
        assert_eq!(compare("-k2,2n -k1,1", "b\t2", "a\t10"), Ordering::Less);
        assert_eq!(compare("-k2,2n -k1,1", "b\t2", "a\t2"), Ordering::Greater);
        assert_eq!(compare("-k2,2n -k1,1r", "b\t2", "a\t2"), Ordering::Less);
        assert_eq!(compare("-k1,1 -k2,2nr", "a\t1", "ab\t1"), Ordering::Less);
    }

    #[test]
    fn a_key_without_the_field_is_smallest() {
        assert_eq!(compare("-k2,2", "a", "a\t"), Ordering::Equal); // a last field that is empty is none
        assert_eq!(compare("-k2,2", "a", "a\tb"), Ordering::Less);
        assert_eq!(compare("-k2,2r", "a", "a\tb"), Ordering::Greater);
    }

    proptest! {
        #[test]
        fn text_is_compared_as_its_bytes(a: Vec<u8>, b: Vec<u8>, tail_a: u8, tail_b: u8) {
            let (mut x, mut y) = (Vec::new(), Vec::new());
            encode_text(&a, &mut x);
            encode_text(&b, &mut y);
            // Whatever follows decides only where the texts are equal.
            x.push(tail_a);
            y.push(tail_b);
            prop_assert_eq!(x.cmp(&y), a.cmp(&b).then(tail_a.cmp(&tail_b)));
        }

        #[test]
        fn numbers_are_compared_as_their_values(
            a in -1_000_000_i64..1_000_000, b in -1_000_000_i64..1_000_000, scale in 0_u32..6,
        ) {
            let shown = |n: i64| {
                let sign = if n < 0 { "-" } else { "" };
                let (n, unit) = (n.unsigned_abs(), 10_u64.pow(scale));
                format!("{sign}{}.{:0width$}", n / unit, n % unit, width = scale as usize)
            };
            prop_assert_eq!(compare("-k1,1n", &shown(a), &shown(b)), a.cmp(&b));
        }
    }
}

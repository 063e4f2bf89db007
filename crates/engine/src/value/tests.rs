//! The encoding against `foundationdb-tuple`, the order of encodings against the order of values, and bytes that are anything.

use std::cmp::Ordering;

use foundationdb_tuple::Element;
use num_bigint::{BigInt, Sign};
use proptest::collection::vec;
use proptest::prelude::*;

use super::{DEPTH_MAX, Reader, Token, Writer, display, hash, partition, prefix, skip};
use crate::Result;

/// A value, the naive way.
#[derive(Debug, Clone)]
enum Value {
    Null,
    Bytes(Vec<u8>),
    Text(String),
    Tuple(Vec<Value>),
    Int(BigInt),
    Double(f64),
    Boolean(bool),
    Pickled(Vec<u8>),
}

impl Value {
    fn write(&self, writer: &mut Writer<'_>) -> Result<()> {
        match self {
            Value::Null => writer.null(),
            Value::Bytes(bytes) => writer.bytes(bytes),
            Value::Text(text) => writer.text(text),
            Value::Tuple(elements) => {
                writer.begin_tuple()?;
                elements
                    .iter()
                    .try_for_each(|element| element.write(writer))?;
                writer.end_tuple();
            }
            Value::Int(int) => match i64::try_from(int) {
                Ok(int) => writer.int(int),
                Err(_) => writer.big_int(int.sign() == Sign::Minus, &int.to_bytes_be().1)?,
            },
            Value::Double(double) => writer.double(*double),
            Value::Boolean(boolean) => writer.boolean(*boolean),
            Value::Pickled(pickle) => writer.pickled(pickle),
        }
        Ok(())
    }

    fn encoded(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut Writer::new(&mut out)).unwrap();
        out
    }

    fn rank(&self) -> u8 {
        match self {
            Value::Null => 0,
            Value::Bytes(_) => 1,
            Value::Text(_) => 2,
            Value::Tuple(_) => 3,
            Value::Int(_) => 4,
            Value::Double(_) => 5,
            Value::Boolean(_) => 6,
            Value::Pickled(_) => 7,
        }
    }

    fn compare(&self, other: &Value) -> Ordering {
        match (self, other) {
            (Value::Bytes(a), Value::Bytes(b)) | (Value::Pickled(a), Value::Pickled(b)) => a.cmp(b),
            (Value::Text(a), Value::Text(b)) => a.cmp(b),
            (Value::Tuple(a), Value::Tuple(b)) => {
                let pairs = a.iter().zip(b);
                let orders = pairs.map(|(a, b)| a.compare(b));
                let first = orders.into_iter().find(|order| order.is_ne());
                first.unwrap_or(a.len().cmp(&b.len()))
            }
            (Value::Int(a), Value::Int(b)) => a.cmp(b),
            (Value::Double(a), Value::Double(b)) => a.total_cmp(b),
            (Value::Boolean(a), Value::Boolean(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }

    /// The oracle's element, which knows no pickles.
    fn element(&self) -> Option<Element<'_>> {
        Some(match self {
            Value::Null => Element::Nil,
            Value::Bytes(bytes) => Element::Bytes(bytes.as_slice().into()),
            Value::Text(text) => Element::String(text.as_str().into()),
            Value::Tuple(elements) => {
                Element::Tuple(elements.iter().map(Value::element).collect::<Option<_>>()?)
            }
            Value::Int(int) => {
                i64::try_from(int).map_or_else(|_| Element::BigInt(int.clone()), Element::Int)
            }
            Value::Double(double) => Element::Double(*double),
            Value::Boolean(boolean) => Element::Bool(*boolean),
            Value::Pickled(_) => return None,
        })
    }
}

/// Reads one value; `first` is its first token.
fn read(first: Token<'_>, reader: &mut Reader<'_>) -> Result<Value> {
    Ok(match first {
        Token::Null => Value::Null,
        Token::Bytes(bytes) => Value::Bytes(bytes.into_owned()),
        Token::Text(text) => Value::Text(text.into_owned()),
        Token::Int(int) => Value::Int(int.into()),
        Token::BigInt {
            negative,
            magnitude,
        } => {
            let sign = if negative { Sign::Minus } else { Sign::Plus };
            Value::Int(BigInt::from_bytes_be(sign, &magnitude))
        }
        Token::Double(double) => Value::Double(double),
        Token::Boolean(boolean) => Value::Boolean(boolean),
        Token::Pickled(pickle) => Value::Pickled(pickle.into_owned()),
        Token::Begin => {
            let mut elements = Vec::new();
            loop {
                match reader.token()?.unwrap() {
                    Token::End => break Value::Tuple(elements),
                    token => elements.push(read(token, reader)?),
                }
            }
        }
        Token::End => unreachable!("an end that ends nothing"),
    })
}

fn values(encoded: &[u8]) -> Result<Vec<Value>> {
    let mut reader = Reader::new(encoded);
    let mut values = Vec::new();
    while let Some(token) = reader.token()? {
        values.push(read(token, &mut reader)?);
    }
    Ok(values)
}

/// Few bytes, so that zeros, escapes and common beginnings turn up.
fn content() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0), Just(0xff), Just(1), any::<u8>()];
    vec(byte, 0..12)
}

fn int() -> impl Strategy<Value = BigInt> {
    let edge = (0_u32..72, -1_i8..=1, any::<bool>()).prop_map(|(bits, off, negative)| {
        let size = (BigInt::from(1) << bits) + off;
        if negative { -size } else { size }
    });
    let big = (any::<bool>(), vec(any::<u8>(), 0..=255)).prop_map(|(negative, bytes)| {
        BigInt::from_bytes_be(if negative { Sign::Minus } else { Sign::Plus }, &bytes)
    });
    prop_oneof![edge, big, any::<i64>().prop_map(BigInt::from)]
}

fn value() -> impl Strategy<Value = Value> {
    let text = vec(prop_oneof![Just('\0'), Just('a'), any::<char>()], 0..8);
    let double = prop_oneof![
        any::<u64>().prop_map(f64::from_bits),
        any::<f64>(),
        Just(0.0),
        Just(-0.0),
        Just(f64::INFINITY),
        (-3_i8..3).prop_map(f64::from),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        content().prop_map(Value::Bytes),
        text.prop_map(|text| Value::Text(text.into_iter().collect())),
        int().prop_map(Value::Int),
        double.prop_map(Value::Double),
        any::<bool>().prop_map(Value::Boolean),
        content().prop_map(Value::Pickled),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| vec(inner, 0..4).prop_map(Value::Tuple))
}

proptest! {
    #[test]
    fn what_is_written_is_read(written in vec(value(), 0..5)) {
        let encoded: Vec<u8> = written.iter().flat_map(Value::encoded).collect();
        let got = values(&encoded).unwrap();
        prop_assert_eq!(got.len(), written.len());
        for (got, written) in got.iter().zip(&written) {
            prop_assert!(got.compare(written).is_eq(), "{:?} {:?}", got, written);
        }
        let mut at = 0;
        for value in &written {
            let length = skip(&encoded[at..]).unwrap();
            prop_assert_eq!(&encoded[at..at + length], value.encoded());
            at += length;
        }
        prop_assert_eq!(at, encoded.len());
    }

    #[test]
    fn encodings_are_ordered_as_the_values(a in value(), b in value()) {
        prop_assert_eq!(a.encoded().cmp(&b.encoded()), a.compare(&b));
    }

    #[test]
    fn near_values_too(a in int(), off in -300_i64..300, d in any::<f64>()) {
        let b = &a + off;
        prop_assume!(b.bits() <= 2040);
        let (x, y) = (Value::Int(a.clone()), Value::Int(b.clone()));
        prop_assert_eq!(x.encoded().cmp(&y.encoded()), a.cmp(&b));
        let next = f64::from_bits(d.to_bits() ^ 1);
        let (x, y) = (Value::Double(d), Value::Double(next));
        prop_assert_eq!(x.encoded().cmp(&y.encoded()), d.total_cmp(&next));
    }

    #[test]
    fn the_encoding_is_the_tuple_layers(value in value()) {
        if let Some(element) = value.element() {
            prop_assert_eq!(value.encoded(), foundationdb_tuple::pack(&vec![element]));
        }
    }

    #[test]
    fn a_prefix_is_the_first_elements(elements in vec(value(), 0..5), more in vec(any::<u8>(), 0..3)) {
        let mut encoded = Value::Tuple(elements.clone()).encoded();
        encoded.extend(more.iter().map(|byte| byte & 0x7f));
        for n in 0..=elements.len() {
            let mut naive = Value::Tuple(elements[..n].to_vec()).encoded();
            naive.pop();
            prop_assert_eq!(prefix(&encoded, n).unwrap(), naive);
        }
        prop_assert!(prefix(&encoded, elements.len() + 1).is_err());
    }

    #[test]
    fn hostile_bytes_are_an_error(bytes in hostile()) {
        let read = values(&bytes);
        if let Ok(values) = &read {
            let again: Vec<u8> = values.iter().flat_map(Value::encoded).collect();
            prop_assert_eq!(&again, &bytes); // one value, one encoding
        }
        if let Err(error) = &read {
            prop_assert_eq!(&error.context()[0].0, "offset");
            prop_assert!(error.context()[0].1.parse::<usize>().unwrap() <= bytes.len());
        }
        if let Ok(length) = skip(&bytes) {
            prop_assert!((1..=bytes.len()).contains(&length));
        } else {
            prop_assert!(read.is_err() || bytes.is_empty());
        }
        for n in 0..4 {
            _ = prefix(&bytes, n);
        }
        prop_assert!(display(&bytes, 20).chars().count() <= 20);
        prop_assert!(Reader::new(&bytes).count() <= bytes.len() + 1);
    }

    #[test]
    fn partitions_are_in_range_and_ascend(a in any::<u64>(), b in any::<u64>(), parts in 1..100_000_usize) {
        let (low, high) = (partition(a.min(b), parts), partition(a.max(b), parts));
        prop_assert!(low <= high && high < parts);
    }
}

/// Bytes that begin like values: codes, lengths, escapes.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let codes = vec![
        0_u8, 1, 2, 5, 0x0b, 0x0c, 0x13, 0x14, 0x15, 0x1c, 0x1d, 0x21, 0x26, 0x27, 0x40, 0xff,
    ];
    let byte = prop_oneof![3 => proptest::sample::select(codes), 1 => any::<u8>()];
    let broken = (
        vec(value(), 1..3),
        any::<prop::sample::Index>(),
        any::<u8>(),
    )
        .prop_map(|(values, at, byte)| {
            let mut bytes: Vec<u8> = values.iter().flat_map(Value::encoded).collect();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            bytes
        });
    prop_oneof![vec(byte, 0..40), broken]
}

#[test]
fn one_one_and_true_are_three_keys() {
    let keys = [
        Value::Int(1.into()),
        Value::Double(1.0),
        Value::Boolean(true),
    ];
    let encoded = keys.map(|key| key.encoded());
    assert!(encoded.is_sorted());
    assert!(encoded[0] != encoded[1] && encoded[1] != encoded[2]);
}

#[test]
fn tuples_end_at_a_hundred() {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out);
    for _ in 0..DEPTH_MAX {
        writer.begin_tuple().unwrap();
    }
    assert!(writer.begin_tuple().is_err());
    for _ in 0..DEPTH_MAX {
        writer.end_tuple();
    }
    assert_eq!(skip(&out).unwrap(), 200);
    assert_eq!(Reader::new(&out).filter(Result::is_ok).count(), 200);
    let deep = [vec![5; 101], vec![0; 101]].concat();
    assert!(skip(&deep).is_err() && Reader::new(&deep).any(|token| token.is_err()));
    assert!(prefix(&deep, 1).is_err());
}

#[test]
fn errors_name_offset_and_expectation() {
    for (bytes, text) in [
        (
            b"\x05\x15".as_slice(),
            "1 more bytes of the number was expected, found the end (offset 2).",
        ),
        (
            b"\x02ab\xff\0",
            "UTF-8 was expected, found byte 0xff (offset 3).",
        ),
        (
            b"\x02\0\xff\xfe\0",
            "UTF-8 was expected, found byte 0xfe (offset 3).",
        ),
        (
            b"\x15\0",
            "an integer in as few bytes as it needs was expected, found byte 0x15 (offset 0).",
        ),
        (
            b"\x05\x14",
            "an element or the end of a tuple was expected, found the end (offset 2).",
        ),
    ] {
        let error = Reader::new(bytes).find_map(Result::err).unwrap();
        assert_eq!(error.to_string(), format!("cannot decode a value: {text}"));
    }
}

#[test]
fn values_are_shown_as_python_shows_them() {
    let shown = |value: Value| display(&value.encoded(), 60);
    for (double, text) in [
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (1e16, "1e+16"),
        (1.5e-7, "1.5e-07"),
        (1e300, "1e+300"),
        (123_456_789.25, "123456789.25"),
        (0.0001, "0.0001"),
        (f64::NEG_INFINITY, "-inf"),
        (f64::NAN, "nan"),
    ] {
        assert_eq!(shown(Value::Double(double)), text);
    }
    assert_eq!(
        shown(Value::Bytes(b"a\0'\xff".to_vec())),
        r#"b"a\x00'\xff""#
    );
    assert_eq!(
        shown(Value::Text("a\n'\"\u{7f}ü".to_owned())),
        r#"'a\n\'"\x7fü'"#
    );
    assert_eq!(shown(Value::Pickled(vec![1, 2])), "<pickled, 2 bytes>");
    let nested = Value::Tuple(vec![Value::Tuple(vec![]), Value::Null]);
    assert_eq!(shown(Value::Tuple(vec![nested])), "(((), None),)");
    let many = Value::Tuple(vec![Value::Int(12345.into()); 1_000]);
    assert_eq!(display(&many.encoded(), 20), "(12345, 12345, 12...");
}

proptest! {
    #[test]
    fn large_integers_are_shown_in_decimal(int in int()) {
        prop_assert_eq!(display(&Value::Int(int.clone()).encoded(), 1_000), int.to_string());
    }
}

/// Values from the reference implementation, through its Python binding.
#[test]
fn the_hash_stays_what_it_is() {
    assert_eq!(hash(b""), 0x2d06_8005_38d3_94c2);
    assert_eq!(hash(b"\x02word\0"), 0x1475_5419_342a_0fbf);
    assert_eq!(hash(&[0x15, 7]), 0xbccf_2761_4c61_c97a);
    let long: Vec<u8> = std::iter::once(5).chain(1..200).collect();
    assert_eq!(hash(&long), 0x6311_bf53_8e7f_77ac);
}

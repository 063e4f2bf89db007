//! The encoding against `foundationdb-tuple`, the order of encodings against the order of values, and bytes that are anything.

mod naive;

use num_bigint::{BigInt, Sign};
use proptest::collection::vec;
use proptest::prelude::*;

use super::exact::{Moment, Zone};
use super::moment::MICROS_A_DAY;
use super::{
    DEPTH_MAX, Decimal, Token, ValueReader, ValueWriter, display, hash, moment, order, partition,
    prefix, skip,
};
use crate::Result;
use naive::Value;

/// Reads one value; `first` is its first token.
fn read(first: Token<'_>, reader: &mut ValueReader<'_>) -> Result<Value> {
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
        Token::Date(day) => Value::Date(day),
        Token::Datetime { micros, utc } => Value::Datetime(micros, utc),
        Token::Decimal(Decimal::Finite(finite)) => {
            let (negative, digits, exponent) = finite.plain();
            Value::Decimal(negative, digits, exponent)
        }
        Token::Decimal(decimal) => Value::SpecialDecimal(decimal),
        Token::Descending(inner) => {
            let mut inner = values(&inner)?;
            assert_eq!(inner.len(), 1);
            Value::Descending(Box::new(inner.remove(0)))
        }
        Token::Begin => Value::Tuple(elements(reader)?),
        Token::List => Value::List(elements(reader)?),
        Token::Dict => Value::Dict(elements(reader)?),
        Token::Written(written) => Value::Written(written.into_owned()),
        Token::Duration { days, micros } => Value::Duration(days, micros),
        Token::Moment(moment) => Value::Moment(owned(moment)),
        Token::Uuid { safety, bytes } => Value::Uuid(safety, bytes),
        Token::End => unreachable!("an end that ends nothing"),
    })
}

fn elements(reader: &mut ValueReader<'_>) -> Result<Vec<Value>> {
    let mut elements = Vec::new();
    loop {
        match reader.token()?.unwrap() {
            Token::End => return Ok(elements),
            token => elements.push(read(token, reader)?),
        }
    }
}

fn owned(moment: Moment<'_>) -> Moment<'static> {
    let zone = match moment.zone {
        Zone::Nowhere => Zone::Nowhere,
        Zone::Offset(offset) => Zone::Offset(offset),
        Zone::Named(offset, name) => Zone::Named(offset, name.into_owned().into()),
        Zone::Region(region) => Zone::Region(region.into_owned().into()),
    };
    Moment { zone, ..moment }
}

fn values(encoded: &[u8]) -> Result<Vec<Value>> {
    let mut reader = ValueReader::new(encoded);
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

/// Numbers of all types, often worth the same, or nearly.
fn number() -> impl Strategy<Value = Value> {
    let double = prop_oneof![
        (-9_i16..9, 0..70_i32).prop_map(|(m, e)| f64::from(m) / 2_f64.powi(e)),
        (-9_i16..9, 0..1000_i32).prop_map(|(m, e)| f64::from(m) * 2_f64.powi(e)),
        any::<f64>(),
        any::<u64>().prop_map(f64::from_bits),
        Just(-0.0),
        Just(5e-324),
        Just(-5e-324),
    ];
    prop_oneof![
        double.prop_map(Value::Double),
        int().prop_map(Value::Int),
        (-3..4).prop_map(|int: i32| Value::Int(int.into())),
        any::<bool>().prop_map(Value::Boolean),
        decimal(),
    ]
}

/// Decimals near each other, near doubles and integers, and anywhere.
fn decimal() -> impl Strategy<Value = Value> {
    let any_digits = (any::<bool>(), vec(0..10_u8, 0..40), -60..60_i64);
    let long = (any::<bool>(), vec(0..10_u8, 200..300), -590..-200_i64);
    let near = (any::<bool>(), vec(0..2_u8, 0..4), -3..3_i64);
    let special = proptest::sample::select(vec![
        Decimal::Nan,
        Decimal::Infinite { negative: true },
        Decimal::Infinite { negative: false },
    ]);
    let finite = |(negative, digits, exponent): (bool, Vec<u8>, i64)| {
        Value::Decimal(negative, digits, exponent)
    };
    prop_oneof![
        4 => any_digits.prop_map(finite),
        1 => long.prop_map(finite),
        4 => near.prop_map(finite),
        2 => any::<f32>().prop_map(of_double),
        1 => special.prop_map(Value::SpecialDecimal),
    ]
}

/// The decimal that a double of few bits is, exactly.
fn of_double(double: f32) -> Value {
    let text = format!(
        "{:.149}",
        f64::from(if double.is_finite() { double } else { 0.5 })
    );
    let digits: Vec<u8> = text
        .bytes()
        .filter(u8::is_ascii_digit)
        .map(|digit| digit - b'0')
        .collect();
    Value::Decimal(text.starts_with('-'), digits, -149)
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
        any::<u32>().prop_map(Value::Date),
        (any::<i64>(), any::<bool>()).prop_map(|(micros, utc)| Value::Datetime(micros, utc)),
        decimal(),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            3 => vec(inner.clone(), 0..4).prop_map(Value::Tuple),
            1 => inner.prop_map(|value| Value::Descending(Box::new(value))),
        ]
    })
}

/// What values may be and keys may not.
fn held() -> impl Strategy<Value = Value> {
    let zone = prop_oneof![
        Just(Zone::Nowhere),
        prop_oneof![Just(0), any::<i64>()].prop_map(Zone::Offset),
        (any::<i64>(), "[\0aü]{0,4}").prop_map(|(offset, name)| Zone::Named(offset, name.into())),
        "[a/\0]{0,4}".prop_map(|region| Zone::Region(region.into())),
    ];
    let moment = (any::<bool>(), any::<i64>(), any::<bool>(), zone).prop_map(
        |(dated, micros, fold, zone)| {
            let micros = if dated {
                micros
            } else {
                micros.rem_euclid(MICROS_A_DAY)
            };
            Value::Moment(Moment {
                dated,
                micros,
                fold,
                zone,
            })
        },
    );
    let leaf = prop_oneof![
        value(),
        "-?[0-9.E+]{0,9}".prop_map(Value::Written),
        (any::<i32>(), 0..MICROS_A_DAY).prop_map(|(days, micros)| Value::Duration(days, micros)),
        moment,
        any::<(u8, [u8; 16])>().prop_map(|(safety, bytes)| Value::Uuid(safety, bytes)),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::Tuple),
            vec(inner.clone(), 0..4).prop_map(Value::List),
            vec(inner, 0..4).prop_map(Value::Dict),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_held_is_read(written in vec(held(), 0..5)) {
        let encoded: Vec<u8> = written.iter().flat_map(Value::encoded).collect();
        let again: Vec<u8> = values(&encoded).unwrap().iter().flat_map(Value::encoded).collect();
        prop_assert_eq!(&again, &encoded);
        let mut at = 0;
        for value in &written {
            let length = skip(&encoded[at..]).unwrap();
            prop_assert_eq!(&encoded[at..at + length], value.encoded());
            prop_assert!(!display(&encoded[at..], 80).contains("no value"));
            at += length;
        }
        prop_assert_eq!(at, encoded.len());
    }

    #[test]
    fn a_day_has_one_date(ordinal in 1..3_652_060_i64) {
        let (year, month, day) = moment::civil(ordinal);
        prop_assert!((1..=12).contains(&month) && (1..=31).contains(&day));
        prop_assert_eq!(moment::ordinal(year, month, day), ordinal);
    }

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
    fn ordered_bytes_are_ordered_as_what_values_are_worth(a in value(), b in value()) {
        prop_assert_eq!(a.ordered().cmp(&b.ordered()), a.worth(&b), "{:?} {:?}", a, b);
    }

    #[test]
    fn numbers_of_all_types_are_ordered_by_what_they_are_worth(
        mut numbers in vec(number(), 2..20),
        around in any::<bool>(),
    ) {
        if around {
            numbers = numbers.into_iter().map(|number| Value::Tuple(vec![number, Value::Null])).collect();
        }
        for (a, b) in numbers.iter().zip(numbers.iter().skip(1)) {
            prop_assert_eq!(a.ordered().cmp(&b.ordered()), a.worth(b), "{:?} {:?}", a, b);
            let turned = [a, b].map(|value: &Value| Value::Descending(Box::new(value.clone())).ordered());
            prop_assert_eq!(turned[0].cmp(&turned[1]), b.worth(a), "{:?} {:?}", a, b);
        }
    }

    #[test]
    fn whatever_follows_ordered_bytes(a in value(), b in value(), x in value(), y in value()) {
        let bytes = |first: &Value, second: &Value| [first.ordered(), second.encoded()].concat();
        let both = a.worth(&b).then(x.compare(&y));
        // What follows decides between values that are worth the same, and only between them.
        prop_assert_eq!(bytes(&a, &x).cmp(&bytes(&b, &y)), both, "{:?} {:?}", a, b);
    }

    #[test]
    fn ranked_keys_are_ordered_by_worth_and_told_apart(a in value(), b in value(), more in value()) {
        let ranked = |value: &Value| {
            let mut key = value.encoded();
            order::rank(&mut key, 0).unwrap();
            key
        };
        let order = ranked(&a).cmp(&ranked(&b));
        prop_assert_eq!(order.is_eq(), a.encoded() == b.encoded());
        prop_assert!(a.worth(&b).is_eq() || order == a.worth(&b));
        let key = [ranked(&a), more.ordered()].concat();
        let (encoding, end) = order::key_of(&key).unwrap();
        prop_assert_eq!(&key[encoding], a.encoded());
        prop_assert_eq!(end, ranked(&a).len());
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
        prop_assert!(ValueReader::new(&bytes).count() <= bytes.len() + 1);
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
        0x41, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4a, 0x4b, 0x4c, 3, 0x80, 0xfe,
    ];
    let byte = prop_oneof![3 => proptest::sample::select(codes), 1 => any::<u8>()];
    let broken = (vec(held(), 1..3), any::<prop::sample::Index>(), any::<u8>()).prop_map(
        |(values, at, byte)| {
            let mut bytes: Vec<u8> = values.iter().flat_map(Value::encoded).collect();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            bytes
        },
    );
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
    let mut writer = ValueWriter::new(&mut out);
    for _ in 0..DEPTH_MAX {
        writer.begin_tuple().unwrap();
    }
    assert!(writer.begin_tuple().is_err());
    for _ in 0..DEPTH_MAX {
        writer.end_tuple();
    }
    assert_eq!(skip(&out).unwrap(), 200);
    assert_eq!(ValueReader::new(&out).filter(Result::is_ok).count(), 200);
    let deep = [vec![5; 101], vec![0; 101]].concat();
    assert!(skip(&deep).is_err() && ValueReader::new(&deep).any(|token| token.is_err()));
    assert!(prefix(&deep, 1).is_err());
}

#[test]
fn errors_name_offset_and_expectation() {
    for (bytes, text) in [
        (
            b"\x05\x15".as_slice(),
            "expected 1 more byte(s) of the number, found the end (offset 2).",
        ),
        (
            b"\x02ab\xff\0",
            "expected UTF-8, found byte 0xff (offset 3).",
        ),
        (
            b"\x02\0\xff\xfe\0",
            "expected UTF-8, found byte 0xfe (offset 3).",
        ),
        (
            b"\x15\0",
            "expected an integer in as few bytes as it needs, found byte 0x15 (offset 0).",
        ),
        (
            b"\x05\x14",
            "expected an element or the end of a tuple, found the end (offset 2).",
        ),
    ] {
        let error = ValueReader::new(bytes).find_map(Result::err).unwrap();
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
    let price = Value::Decimal(true, vec![1, 0, 5, 0], -3);
    assert_eq!(shown(price.clone()), "Decimal('-1.05')");
    assert_eq!(
        shown(Value::Decimal(false, vec![1, 2], 3)),
        "Decimal('12000')"
    );
    assert_eq!(
        shown(Value::Descending(price.into())),
        "gm.desc(Decimal('-1.05'))"
    );
    assert_eq!(shown(Value::Date(738_886)), "2024-01-01");
    let at = |dated, zone| {
        Value::Moment(Moment {
            dated,
            micros: 3_600_000_000,
            fold: true,
            zone,
        })
    };
    assert_eq!(shown(at(true, Zone::Nowhere)), "0001-01-01T01:00:00");
    assert_eq!(
        shown(at(false, Zone::Offset(-5_400_000_000))),
        "01:00:00-01:30"
    );
    let berlin = Zone::Region("Europe/Berlin".into());
    assert_eq!(
        shown(at(true, berlin)),
        "0001-01-01T01:00:00[Europe/Berlin]"
    );
    assert_eq!(shown(Value::Written("1.50".to_owned())), "Decimal('1.50')");
    assert_eq!(shown(Value::Duration(-1, 1)), "-1 day, 00:00:00.000001");
    let uuid = "10000000-0000-0000-0000-000000000002";
    let mut bytes = [0; 16];
    (bytes[0], bytes[15]) = (16, 2);
    assert_eq!(shown(Value::Uuid(0, bytes)), uuid);
    let pairs = vec![
        Value::Int(1.into()),
        Value::List(vec![Value::Null]),
        Value::Null,
        Value::List(vec![]),
    ];
    assert_eq!(shown(Value::Dict(pairs)), "{1: [None], None: []}");
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

//! Sums, means and extremes of cells, as rationals and sorted vectors have them.

use std::cmp::Ordering;

use num_bigint::BigInt;
use num_rational::BigRational;
use proptest::collection::vec;
use proptest::prelude::*;

use super::super::Aggregate;
use super::naive::Value;
use super::{check_law, on_a_way, outcome, with_way};
use crate::value::{exact, write, write_cell};

/// The number of a cell: digits, or what a double says of it.
fn number(cell: &str) -> Option<Result<BigRational, f64>> {
    let text = cell.trim_matches([' ', '\t', '\n', '\r', '\x0c']);
    let double: f64 = text.parse().ok()?;
    let lower = text.to_ascii_lowercase();
    if lower.contains('n') {
        return Some(Err(double));
    }
    let (digits, exponent) = lower.split_once('e').unwrap_or((&lower, "0"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mantissa: BigInt = format!("{whole}{fraction}").parse().unwrap();
    let exponent = exponent.parse::<i32>().unwrap() - fraction.len() as i32;
    Some(Ok(BigRational::from(mantissa) * ten(exponent)))
}

fn ten(power: i32) -> BigRational {
    BigRational::from(BigInt::from(10)).pow(power)
}

fn text(value: &Value) -> &str {
    match value {
        Value::Number(cell) | Value::Cell(cell) => cell,
        _ => panic!("it is no cell"),
    }
}

/// All digits of a number that has an end.
fn plain(number: &BigRational) -> String {
    let zero = BigRational::from(BigInt::from(0));
    let sign = if *number < zero { "-" } else { "" };
    let behind = decimals(number) as usize;
    let size = number * ten(behind as i32);
    let size = if size < zero { -size } else { size };
    let digits = format!("{:0>width$}", size.to_string(), width = behind + 1);
    let (whole, fraction) = digits.split_at(digits.len() - behind);
    let point = if behind == 0 { "" } else { "." };
    format!("{sign}{whole}{point}{fraction}")
}

/// How many decimals it has: as many as its denominator has twos, or fives.
fn decimals(number: &BigRational) -> i32 {
    let count = |factor: u8| {
        let (mut rest, mut count) = (number.denom().clone(), 0);
        while &rest % factor == BigInt::from(0) {
            rest /= factor;
            count += 1;
        }
        count
    };
    count(2).max(count(5))
}

fn mean(sum: &BigRational, count: usize) -> BigRational {
    let exact = sum / BigInt::from(count);
    let zero = BigRational::from(BigInt::from(0));
    if exact == zero {
        return exact;
    }
    let size = if exact < zero { -&exact } else { exact.clone() };
    // The power of ten that is just above it.
    let digits = |number: &BigInt| number.to_string().len() as i32;
    let mut top = digits(size.numer()) - digits(size.denom()) - 1;
    while ten(top) <= size {
        top += 1;
    }
    let behind = (17 - top).max(decimals(sum));
    let scaled = &exact * ten(behind);
    let (floor, half) = (scaled.floor(), BigRational::new(1.into(), 2.into()));
    let up = match (&scaled - &floor).cmp(&half) {
        Ordering::Greater => true,
        Ordering::Less => false,
        Ordering::Equal => floor.to_integer() % BigInt::from(2) != BigInt::from(0),
    };
    (floor + BigInt::from(u8::from(up))) / ten(behind)
}

pub(super) fn naive_sum(aggregate: &Aggregate, values: &[Value]) -> Vec<u8> {
    let numbers = || values.iter().map(|value| number(text(value)).unwrap());
    let special: Vec<f64> = numbers().filter_map(Result::err).collect();
    let sum: BigRational = numbers().filter_map(Result::ok).sum();
    let mut out = Vec::new();
    match aggregate {
        Aggregate::DecimalMean if values.is_empty() => write::null(&mut out),
        _ if !special.is_empty() => {
            let special: f64 = special.iter().sum();
            exact::write_decimal(&mut out, &special.to_string().to_ascii_lowercase());
        }
        Aggregate::DecimalMean => {
            exact::write_decimal(&mut out, &plain(&mean(&sum, values.len())));
        }
        _ => exact::write_decimal(&mut out, &plain(&sum)),
    }
    out
}

fn worth(a: &str, b: &str) -> Ordering {
    let class = |number: &Option<Result<BigRational, f64>>| match number {
        None => (0, 0),
        Some(Err(double)) if double.is_nan() => (1, 2),
        Some(Err(double)) => (1, double.signum() as i8),
        Some(Ok(_)) => (1, 0),
    };
    let (x, y) = (number(a), number(b));
    let order = class(&x).cmp(&class(&y));
    order.then_with(|| match (x, y) {
        (None, None) => a.cmp(b),
        (Some(Ok(x)), Some(Ok(y))) => x.cmp(&y),
        _ => Ordering::Equal,
    })
}

pub(super) fn naive_extreme(aggregate: &Aggregate, values: &[Value]) -> Vec<u8> {
    let best = values.iter().reduce(|best, value| {
        let order = worth(text(value), text(best));
        let better = match aggregate {
            Aggregate::CellMin => order.is_lt(),
            _ => order.is_gt(),
        };
        if better { value } else { best }
    });
    best.map_or(Value::Null, Clone::clone).encoded()
}

fn cell_with_a_number() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[-+]?[0-9]{1,3}",
        3 => "[-+]?[0-9]{1,4}[.][0-9]{0,4}",
        2 => "[ ]?-?[0-9]{1,40}([.][0-9]{1,40})?",
        2 => "-?[0-9]{1,20}([.][0-9]{1,20})?e[-+]?[0-9]{1,2}",
        1 => any::<f64>().prop_filter("it is a number", |double| double.is_finite()).prop_map(|double| format!("{double:?}")),
        1 => Just("-9223372036854775808".into()),
        1 => Just("999999999999999999".into()),
        1 => "-?1e[-+]?5[0-9]{2}",
    ]
}

fn with_special() -> impl Strategy<Value = String> {
    let special = proptest::sample::select(vec!["inf", "-Infinity", "nan"]);
    prop_oneof![8 => cell_with_a_number(), 1 => special.prop_map(String::from)]
}

fn any_cell() -> impl Strategy<Value = String> {
    prop_oneof![4 => with_special(), 1 => "[a\0 1.-]{0,3}"]
}

/// What is said of a group, as text.
fn said(aggregate: &Aggregate, cells: &[&str]) -> String {
    let mut state = aggregate.empty();
    for cell in cells {
        let value = Value::Number((*cell).into()).encoded();
        aggregate.add(&mut state, &value, 0).unwrap();
    }
    let mut out = Vec::new();
    write_cell(&outcome(aggregate, &state).1, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn sums_and_means_are_written_shortly() {
    for (cells, sum, mean) in [
        (&["0.1", "0.2"][..], "0.3", "0.15"),
        (&["1e16", "1", "-1e16"], "1", "0.33333333333333333"),
        (&["1.50", "1.5"], "3", "1.5"),
        (&["-0.0"], "0", "0"),
        (&["1e3"], "1000", "1000"),
        (&["2", "3", "3"], "8", "2.6666666666666667"),
        (
            &["12345678901234567890123"],
            "12345678901234567890123",
            "12345678901234567890123",
        ),
        (
            &["1e22", "1"],
            "10000000000000000000001",
            "5000000000000000000000",
        ),
        (&["1e-7"], "0.0000001", "0.0000001"),
        (&["inf", "1"], "inf", "inf"),
        (&["inf", "-inf"], "nan", "nan"),
        (&["NaN", "1"], "nan", "nan"),
    ] {
        assert_eq!(said(&Aggregate::DecimalSum, cells), sum, "{cells:?}");
        assert_eq!(said(&Aggregate::DecimalMean, cells), mean, "{cells:?}");
    }
}

#[test]
fn a_sum_of_many_is_exact() {
    let mut state = Aggregate::DecimalSum.empty();
    for _ in 0..1000 {
        for cell in [
            "0.1",
            "0.0001234567890123456789",
            "-0.1",
            "123456789012345678901234567890",
        ] {
            let value = Value::Number(cell.into()).encoded();
            Aggregate::DecimalSum.add(&mut state, &value, 0).unwrap();
        }
    }
    let mut out = Vec::new();
    write_cell(&outcome(&Aggregate::DecimalSum, &state).1, &mut out).unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "123456789012345678901234567890000.1234567890123456789"
    );
}

proptest! {
    #[test]
    fn sums_of_decimals_keep_the_law((cells, way) in with_way(vec(with_special().prop_map(Value::Number), 0..12))) {
        check_law(&Aggregate::DecimalMean, &cells, &way)?;
        check_law(&Aggregate::DecimalSum, &cells, &way)?;
    }

    #[test]
    fn extremes_of_cells_keep_the_law((cells, way) in with_way(vec(any_cell().prop_map(Value::Cell), 0..12))) {
        check_law(&Aggregate::CellMin, &cells, &way)?;
        check_law(&Aggregate::CellMax, &cells, &way)?;
    }

    #[test]
    fn hostile_states_of_cells_are_an_error(bytes in vec(any::<u8>(), 0..20), cell in cell_with_a_number(), at in any::<prop::sample::Index>()) {
        for aggregate in [Aggregate::DecimalSum, Aggregate::DecimalMean, Aggregate::CellMin] {
            let value = match aggregate {
                Aggregate::CellMin => Value::Cell(cell.clone()),
                _ => Value::Number(cell.clone()),
            };
            let mut damaged = on_a_way(&aggregate, &[value], &super::Way { order: vec![0], groups: vec![0], merges: vec![] }).0;
            if let Some(byte) = bytes.first() {
                let at = at.index(damaged.len());
                damaged[at] = *byte;
            }
            for hostile in [&bytes, &damaged] {
                if let Ok(state) = aggregate.read(hostile) {
                    let written = outcome(&aggregate, &state).0;
                    let again = aggregate.read(&written).unwrap();
                    prop_assert_eq!(outcome(&aggregate, &again).0, written);
                }
            }
        }
    }
}

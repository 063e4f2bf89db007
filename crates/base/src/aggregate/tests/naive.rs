//! Aggregates as anyone would compute them: rationals, sorted vectors, and the nearest double found by halving.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use num_bigint::{BigInt, Sign};
use num_rational::BigRational;

use super::super::Aggregate;
use super::cells;
use crate::value::CellNumber;
use crate::value::decimal::{Decimal, Finite};
use crate::value::write;

/// A value, the naive way.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Null,
    Text(String),
    /// `(None, number)`.
    Tuple(Box<Value>),
    Int(BigInt),
    Double(f64),
    Boolean(bool),
    /// In hundredths.
    Decimal(i64),
    /// A cell, as the mapper of `group` gives it to sums of decimals and to others.
    Number(String),
    Cell(String),
    /// For `Several`.
    Row(Vec<Value>),
}

impl Value {
    pub(super) fn encoded(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Value::Null => write::null(&mut out),
            Value::Text(text) => write::text(&mut out, text),
            Value::Tuple(number) => {
                write::begin_tuple(&mut out);
                write::null_in_tuple(&mut out);
                write::element(&mut out, &number.encoded());
                write::end_tuple(&mut out);
            }
            Value::Decimal(cents) => {
                let digits: Vec<u8> = cents
                    .unsigned_abs()
                    .to_string()
                    .bytes()
                    .map(|digit| digit - b'0')
                    .collect();
                Decimal::Finite(Finite::new(*cents < 0, &digits, -2).unwrap()).write(&mut out);
            }
            Value::Int(int) => {
                let (sign, magnitude) = int.to_bytes_be();
                write::big_int(&mut out, sign == Sign::Minus, &magnitude).unwrap();
            }
            Value::Number(cell) => {
                let number = CellNumber::of(cell.as_bytes()).unwrap();
                number.write(cell.as_bytes(), &mut out);
            }
            Value::Cell(cell) => write::bytes(&mut out, cell.as_bytes()),
            Value::Row(row) => row.iter().for_each(|value| out.extend(value.encoded())),
            Value::Double(double) => write::double(&mut out, *double),
            Value::Boolean(boolean) => write::boolean(&mut out, *boolean),
        }
        out
    }

    fn rational(&self) -> Option<BigRational> {
        match self {
            Value::Int(int) => Some(int.clone().into()),
            Value::Double(double) => BigRational::from_float(*double),
            Value::Boolean(boolean) => Some(BigInt::from(*boolean).into()),
            Value::Decimal(cents) => Some(BigRational::new((*cents).into(), 100.into())),
            _ => None,
        }
    }

    /// Where it stands: type, then infinities and NaNs around the finite.
    fn class(&self) -> (u8, i8) {
        match self {
            Value::Null => (0, 0),
            Value::Text(_) => (1, 0),
            Value::Tuple(_) => (2, 0),
            Value::Double(double) if double.is_nan() => (3, 2),
            Value::Double(double) if double.is_infinite() => (3, double.signum() as i8),
            _ => (3, 0),
        }
    }

    fn worth(&self, other: &Value) -> Ordering {
        if let (Value::Tuple(a), Value::Tuple(b)) = (self, other) {
            return a.worth(b);
        }
        let classes = self.class().cmp(&other.class());
        classes.then_with(|| match (self.rational(), other.rational()) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => self.encoded().cmp(&other.encoded()),
        })
    }

    fn total(&self, other: &Value) -> Ordering {
        self.worth(other)
            .then_with(|| self.encoded().cmp(&other.encoded()))
    }
}

/// The double nearest to a rational: between the two that enclose it, found by halving.
fn nearest(exact: &BigRational) -> f64 {
    let zero = BigRational::from(BigInt::from(0));
    let size = if *exact < zero { -exact } else { exact.clone() };
    let (mut low, mut high) = (0_u64, f64::INFINITY.to_bits());
    while high - low > 1 {
        let middle = low.midpoint(high);
        let below = BigRational::from_float(f64::from_bits(middle)).unwrap() <= size;
        *(if below { &mut low } else { &mut high }) = middle;
    }
    let worth = |bits: u64| {
        let infinite = BigRational::from(BigInt::from(1) << 1024);
        BigRational::from_float(f64::from_bits(bits)).unwrap_or(infinite)
    };
    let order = (&size - worth(low)).cmp(&(worth(high) - &size));
    let up = order.then((low % 2).cmp(&0)).is_gt();
    let double = f64::from_bits(if up { high } else { low });
    if *exact < zero { -double } else { double }
}

fn naive_sum(values: &[Value]) -> Value {
    let float = values.iter().any(|value| matches!(value, Value::Double(_)));
    let special: f64 = values.iter().filter_map(not_finite).sum();
    let exact: BigRational = values.iter().filter_map(Value::rational).sum();
    match float {
        _ if special.is_nan() => Value::Double(f64::NAN),
        _ if special.is_infinite() => Value::Double(special),
        true => Value::Double(nearest(&exact)),
        false => Value::Int(exact.to_integer()),
    }
}

fn not_finite(value: &Value) -> Option<f64> {
    match value {
        Value::Double(double) if !double.is_finite() => Some(*double),
        _ => None,
    }
}

fn naive_mean(values: &[Value]) -> Value {
    let exact: BigRational = values.iter().filter_map(Value::rational).sum();
    match naive_sum(values) {
        _ if values.is_empty() => Value::Null,
        Value::Double(double) if values.iter().any(|value| not_finite(value).is_some()) => {
            Value::Double(double)
        }
        _ => Value::Double(nearest(&(exact / BigInt::from(values.len())))),
    }
}

fn tuple(values: &[Value]) -> Vec<u8> {
    let mut out = Vec::new();
    write::begin_tuple(&mut out);
    values
        .iter()
        .for_each(|value| write::element(&mut out, &value.encoded()));
    write::end_tuple(&mut out);
    out
}

/// The result as anyone would compute it; positions are indices.
pub(super) fn naive(aggregate: &Aggregate, values: &[Value]) -> Option<Vec<u8>> {
    let mut sorted = values.to_vec();
    sorted.sort_by(Value::total);
    let or_null = |value: Option<&Value>| value.unwrap_or(&Value::Null).encoded();
    Some(match aggregate {
        Aggregate::Sum => naive_sum(values).encoded(),
        Aggregate::Count => Value::Int(values.len().into()).encoded(),
        Aggregate::Mean => naive_mean(values).encoded(),
        Aggregate::Min => or_null(sorted.first()),
        Aggregate::Max => {
            let greatest = sorted.last();
            or_null(
                sorted
                    .iter()
                    .find(|value| value.worth(greatest.unwrap()).is_eq()),
            )
        }
        Aggregate::First => or_null(values.first()),
        Aggregate::Last => or_null(values.last()),
        Aggregate::Top(count) => {
            let mut stable = values.to_vec();
            stable.sort_by(|a, b| b.worth(a));
            stable.truncate(*count);
            tuple(&stable)
        }
        Aggregate::Distinct => {
            let mut out = vec![0x05];
            let encodings: BTreeSet<_> = values.iter().map(Value::encoded).collect();
            encodings
                .iter()
                .for_each(|encoded| write::element(&mut out, encoded));
            out.push(0);
            out
        }
        Aggregate::CountDistinct => {
            let encodings: BTreeSet<_> = values.iter().map(Value::encoded).collect();
            let mut out = Vec::new();
            write::unsigned(&mut out, encodings.len() as u64);
            out
        }
        Aggregate::Collect => tuple(values),
        Aggregate::Quantiles(quantiles) => {
            // The least value of which at least a share of q is not above: by trying.
            let at_least = |q: f64, rank: usize| (rank + 1) as f64 >= q * values.len() as f64;
            let find = |q: &f64| (0..values.len()).find(|rank| at_least(*q, *rank));
            let pick = |q: &f64| find(q).map_or(Value::Null, |rank| sorted[rank].clone());
            tuple(&quantiles.iter().map(pick).collect::<Vec<_>>())
        }
        Aggregate::DecimalSum | Aggregate::DecimalMean => cells::naive_sum(aggregate, values),
        Aggregate::CellMin | Aggregate::CellMax => cells::naive_extreme(aggregate, values),
        Aggregate::ApproxDistinct | Aggregate::Several(_) => return None,
        Aggregate::SkipNone(inner) => {
            let there = values.iter().filter(|value| !matches!(value, Value::Null));
            return naive(inner, &there.cloned().collect::<Vec<_>>());
        }
    })
}

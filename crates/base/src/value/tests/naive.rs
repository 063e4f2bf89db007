//! Values, their encodings and their orders, as anyone would write them.

use std::cmp::Ordering;

use foundationdb_tuple::Element;
use num_bigint::{BigInt, Sign};
use num_rational::BigRational;

use super::super::decimal::Finite;
use super::super::exact::{self, Moment};
use super::super::{Decimal, ValueWriter, descending, moment, order, write};
use crate::Result;

/// A value, the naive way.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Null,
    Bytes(Vec<u8>),
    Text(String),
    Tuple(Vec<Value>),
    Int(BigInt),
    Double(f64),
    Boolean(bool),
    Pickled(Vec<u8>),
    Date(u32),
    Datetime(i64, bool),
    Decimal(bool, Vec<u8>, i64),
    SpecialDecimal(Decimal),
    Descending(Box<Value>),
    List(Vec<Value>),
    /// Keys and values, alternately.
    Dict(Vec<Value>),
    Written(String),
    Duration(i32, i64),
    Moment(Moment<'static>),
    Uuid(u8, [u8; 16]),
}

/// The elements of a list or dict, and its end.
fn write_all(elements: &[Value], writer: &mut ValueWriter<'_>) {
    for element in elements {
        write::element(writer.out(), &element.encoded());
    }
    write::end_tuple(writer.out());
}

impl Value {
    pub(super) fn write(&self, writer: &mut ValueWriter<'_>) -> Result<()> {
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
            Value::Date(day) => moment::write_date(writer.out(), *day),
            Value::Datetime(micros, utc) => moment::write_datetime(writer.out(), *micros, *utc),
            Value::Decimal(negative, digits, exponent) => {
                let finite = Finite::new(*negative, digits, *exponent)?;
                Decimal::Finite(finite).write(writer.out());
            }
            Value::SpecialDecimal(decimal) => decimal.write(writer.out()),
            Value::Descending(value) => descending::write(writer.out(), &value.encoded()),
            Value::List(elements) => {
                write::begin_list(writer.out());
                write_all(elements, writer);
            }
            Value::Dict(elements) => {
                write::begin_dict(writer.out());
                write_all(elements, writer);
            }
            Value::Written(written) => exact::write_decimal(writer.out(), written),
            Value::Duration(days, micros) => exact::write_duration(writer.out(), *days, *micros),
            Value::Moment(moment) => moment.write(writer.out()),
            Value::Uuid(safety, bytes) => exact::write_uuid(writer.out(), *safety, *bytes),
        }
        Ok(())
    }

    pub(super) fn encoded(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut ValueWriter::new(&mut out)).unwrap();
        out
    }

    pub(super) fn rank(&self) -> u8 {
        match self {
            Value::Null => 0,
            Value::Bytes(_) => 1,
            Value::Text(_) => 2,
            Value::Tuple(_) => 3,
            Value::Int(_) => 4,
            Value::Double(_) => 5,
            Value::Boolean(_) => 6,
            Value::Pickled(_) => 7,
            Value::Date(_) => 8,
            Value::Datetime(_, utc) => 9 + u8::from(*utc),
            Value::Decimal(..) | Value::SpecialDecimal(_) => 11,
            Value::Descending(_) => 12,
            Value::Written(_) => 13,
            Value::Duration(..) => 14,
            Value::Moment(moment) => 15 + u8::from(moment.dated),
            Value::Uuid(..) => 17,
            Value::List(_) => 18,
            Value::Dict(_) => 19,
        }
    }

    /// What a finite number is worth.
    pub(super) fn rational(&self) -> Option<BigRational> {
        match self {
            Value::Int(int) => Some(int.clone().into()),
            Value::Double(double) => BigRational::from_float(*double),
            Value::Boolean(boolean) => Some(BigInt::from(*boolean).into()),
            Value::Decimal(negative, digits, exponent) => {
                let digit = |number: BigInt, digit: &u8| number * 10 + digit;
                let digits = digits.iter().fold(BigInt::from(0), digit);
                let ten = BigRational::from(BigInt::from(10));
                let size = BigRational::from(digits) * ten.pow(*exponent as i32);
                Some(if *negative { -size } else { size })
            }
            _ => None,
        }
    }

    /// Where numbers that are not finite stand around those that are.
    pub(super) fn beyond(&self) -> Option<i8> {
        let double = match self {
            Value::Double(double) => *double,
            Value::SpecialDecimal(Decimal::Nan) => f64::NAN,
            Value::SpecialDecimal(Decimal::Infinite { negative: true }) => f64::NEG_INFINITY,
            Value::SpecialDecimal(_) => f64::INFINITY,
            Value::Int(_) | Value::Boolean(_) | Value::Decimal(..) => 0.0,
            _ => return None,
        };
        Some(if double.is_nan() {
            2
        } else if double.is_infinite() {
            double.signum() as i8
        } else {
            0
        })
    }

    /// By what values are worth.
    pub(super) fn worth(&self, other: &Value) -> Ordering {
        match (self, other) {
            (Value::Tuple(a), Value::Tuple(b)) => {
                let mut orders = a.iter().zip(b).map(|(a, b)| a.worth(b));
                let first = orders.find(|order| order.is_ne());
                first.unwrap_or(a.len().cmp(&b.len()))
            }
            (Value::Descending(a), Value::Descending(b)) => b.worth(a),
            _ => match (self.beyond(), other.beyond()) {
                (Some(a), Some(b)) => a
                    .cmp(&b)
                    .then_with(|| self.rational().cmp(&other.rational())),
                (None, None) => self.compare(other),
                (a, b) => {
                    let rank = |value: &Value, number: Option<i8>| match number {
                        Some(_) => 4,
                        None => value.rank(),
                    };
                    rank(self, a).cmp(&rank(other, b))
                }
            },
        }
    }

    pub(super) fn ordered(&self) -> Vec<u8> {
        let mut out = Vec::new();
        order::ordered(&self.encoded(), &mut out).unwrap();
        out
    }

    pub(super) fn compare(&self, other: &Value) -> Ordering {
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
            (Value::Date(a), Value::Date(b)) => a.cmp(b),
            (Value::Datetime(a, true), Value::Datetime(b, true))
            | (Value::Datetime(a, false), Value::Datetime(b, false)) => a.cmp(b),
            (Value::Decimal(..) | Value::SpecialDecimal(_), _) if self.rank() == other.rank() => {
                self.worth(other)
            }
            (Value::Descending(a), Value::Descending(b)) => b.compare(a),
            _ => self.rank().cmp(&other.rank()),
        }
    }

    /// The oracle's element, which knows nothing of the codes left to users.
    pub(super) fn element(&self) -> Option<Element<'_>> {
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
            _ => return None,
        })
    }
}

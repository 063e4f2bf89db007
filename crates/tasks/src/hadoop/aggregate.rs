//! Hadoop's `aggregate` package: reducers that a key asks for by name.
//!
//! ```text
//!   key "LongValueSum:apples"   values "2" "3"   ──reduce──▶   "apples", "5"
//!                                                ──combine─▶   the key again, "5"
//! ```
//!
//! Numbers are Java's: sums of whole numbers wrap, decimal ones are printed as `Double.toString` does, text is
//! compared by UTF-16 units. Text that is no number fails the task there and here.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::text;

/// A value that is not of the aggregate's type, and what that is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidValue(pub String);

/// One group's aggregate.
#[derive(Debug, Clone, PartialEq)]
pub enum GroupAggregate {
    /// The sum of whole numbers.
    LongSum(i64),
    /// The largest whole number.
    LongMax(i64),
    /// The smallest whole number.
    LongMin(i64),
    /// The sum of numbers.
    DoubleSum(f64),
    /// The last text in Java's order.
    StringMax(Option<String>),
    /// The first.
    StringMin(Option<String>),
    /// How many different values: the limit, and the values.
    UniqueCount(u64, BTreeMap<Vec<u16>, String>),
    /// Statistics of how often each value occurs.
    Histogram(BTreeMap<Vec<u16>, (String, i64)>),
}

/// Splits a key into the aggregate's name and what it is of.
///
/// ```
/// use gristmill_tasks::hadoop::aggregate::split;
/// assert_eq!(split(b"LongValueSum:a:b"), Some(("LongValueSum", &b"a:b"[..])));
/// assert_eq!(split(b"no colon"), None);
/// ```
pub fn split(key: &[u8]) -> Option<(&str, &[u8])> {
    let colon = memchr::memchr(b':', key)?;
    let (name, rest) = key.split_at_checked(colon)?;
    Some((std::str::from_utf8(name).ok()?, rest.get(1..)?))
}

impl GroupAggregate {
    /// The aggregate of that name, in whatever case; `most_unique` is how many values one counts,
    /// and one more as in Hadoop; 0 sets no limit.
    ///
    /// ```
    /// use gristmill_tasks::hadoop::aggregate::GroupAggregate;
    /// let mut sum = GroupAggregate::by_name("longvaluesum", u64::MAX).unwrap();
    /// sum.add(b"2")?;
    /// sum.add(b"-5")?;
    /// assert_eq!(sum.report(), "-3");
    /// # Ok::<(), gristmill_tasks::hadoop::aggregate::InvalidValue>(())
    /// ```
    pub fn by_name(name: &str, most_unique: u64) -> Option<GroupAggregate> {
        let found = match name.to_ascii_lowercase().as_str() {
            "longvaluesum" => GroupAggregate::LongSum(0),
            "longvaluemax" => GroupAggregate::LongMax(i64::MIN),
            "longvaluemin" => GroupAggregate::LongMin(i64::MAX),
            "doublevaluesum" => GroupAggregate::DoubleSum(0.0),
            "stringvaluemax" => GroupAggregate::StringMax(None),
            "stringvaluemin" => GroupAggregate::StringMin(None),
            "uniqvaluecount" => GroupAggregate::UniqueCount(
                if most_unique > 0 {
                    most_unique
                } else {
                    u64::MAX
                },
                BTreeMap::new(),
            ),
            "valuehistogram" => GroupAggregate::Histogram(BTreeMap::new()),
            _ => return None,
        };
        Some(found)
    }

    /// Adds a value.
    pub fn add(&mut self, value: &[u8]) -> Result<(), InvalidValue> {
        let text = text::decoded(value);
        match self {
            GroupAggregate::LongSum(sum) => *sum = sum.wrapping_add(long(&text)?),
            GroupAggregate::LongMax(most) => *most = (*most).max(long(&text)?),
            GroupAggregate::LongMin(least) => *least = (*least).min(long(&text)?),
            GroupAggregate::DoubleSum(sum) => *sum += double(&text)?,
            GroupAggregate::StringMax(most) => {
                if most
                    .as_deref()
                    .is_none_or(|most| utf16_order(most, &text) == Ordering::Less)
                {
                    *most = Some(text.into_owned());
                }
            }
            GroupAggregate::StringMin(least) => {
                if least
                    .as_deref()
                    .is_none_or(|least| utf16_order(least, &text) == Ordering::Greater)
                {
                    *least = Some(text.into_owned());
                }
            }
            GroupAggregate::UniqueCount(most, values) => {
                if values.len() as u64 <= *most {
                    values.insert(text.encode_utf16().collect(), text.into_owned());
                }
            }
            GroupAggregate::Histogram(counts) => {
                let (value, count) = match text.rsplit_once('\t') {
                    Some((value, count)) => (value, long(count)?),
                    None => (&*text, 1),
                };
                let entry = counts.entry(value.encode_utf16().collect());
                let (_, sum) = entry.or_insert_with(|| (value.to_owned(), 0));
                *sum = sum.wrapping_add(count);
            }
        }
        Ok(())
    }

    /// The result, as a reducer writes it.
    pub fn report(&self) -> String {
        match self {
            GroupAggregate::LongSum(n)
            | GroupAggregate::LongMax(n)
            | GroupAggregate::LongMin(n) => n.to_string(),
            GroupAggregate::DoubleSum(sum) => java_double(*sum),
            GroupAggregate::StringMax(text) | GroupAggregate::StringMin(text) => {
                text.clone().unwrap_or_default()
            }
            GroupAggregate::UniqueCount(_, values) => values.len().to_string(),
            GroupAggregate::Histogram(counts) => {
                histogram(counts.values().map(|(_, count)| *count).collect())
            }
        }
    }

    /// What a combiner hands on, value after value.
    pub fn combined(&self) -> Vec<String> {
        match self {
            GroupAggregate::UniqueCount(_, values) => values.values().cloned().collect(),
            GroupAggregate::Histogram(counts) => counts
                .values()
                .map(|(value, count)| format!("{value}\t{count}"))
                .collect(),
            _ => vec![self.report()],
        }
    }
}

/// How many values, and of how often each occurs: least, median, most, mean, standard deviation.
fn histogram(mut counts: Vec<i64>) -> String {
    counts.sort_unstable();
    let (Some(least), Some(most)) = (counts.first(), counts.last()) else {
        return "0".to_owned();
    };
    let median = counts.get(counts.len() / 2).unwrap_or(most);
    #[expect(clippy::cast_precision_loss, reason = "as Java does")]
    let (sum, len) = (
        counts.iter().fold(0_i64, |sum, n| sum.wrapping_add(*n)) as f64,
        counts.len() as f64,
    );
    let mean = sum / len;
    #[expect(clippy::cast_precision_loss, reason = "as Java does")]
    let squares = counts
        .iter()
        .fold(0.0, |sum, &n| sum + (n as f64 - mean) * (n as f64 - mean));
    let deviation = (squares / len).sqrt();
    let (mean, deviation) = (java_double(mean), java_double(deviation));
    format!(
        "{}\t{least}\t{median}\t{most}\t{mean}\t{deviation}",
        counts.len()
    )
}

/// `Long.parseLong`: no blanks, a sign or none.
fn long(text: &str) -> Result<i64, InvalidValue> {
    text.parse()
        .map_err(|_not| InvalidValue(format!("{text:?} is not a whole number of 64 bits")))
}

/// `Double.parseDouble`: blanks around it, and a type's letter behind it, are allowed.
fn double(text: &str) -> Result<f64, InvalidValue> {
    let wrong = || InvalidValue(format!("{text:?} is not a number"));
    let trimmed = text.trim_matches(|letter: char| letter <= ' ');
    let digits = trimmed
        .strip_suffix(['d', 'D', 'f', 'F'])
        .unwrap_or(trimmed);
    match digits.trim_start_matches(['+', '-']) {
        "NaN" | "Infinity" => {}
        plain if plain.starts_with(|letter: char| letter.is_ascii_digit() || letter == '.') => {}
        _ => return Err(wrong()),
    }
    digits.parse().map_err(|_not| wrong())
}

fn utf16_order(a: &str, b: &str) -> Ordering {
    a.encode_utf16().cmp(b.encode_utf16())
}

/// A number as `Double.toString` writes it (with the shortest digits, as Java does from version 19 on).
///
/// ```
/// use gristmill_tasks::hadoop::aggregate::java_double;
/// assert_eq!([1.0, 0.001, 1e7, 1.5e-4].map(java_double), ["1.0", "0.001", "1.0E7", "1.5E-4"]);
/// ```
pub fn java_double(number: f64) -> String {
    java_decimal(number.is_nan(), number, &format!("{number:e}"))
}

/// The same of a float.
pub fn java_float(number: f32) -> String {
    java_decimal(number.is_nan(), f64::from(number), &format!("{number:e}"))
}

fn java_decimal(nan: bool, number: f64, scientific: &str) -> String {
    if nan {
        return "NaN".to_owned();
    }
    let sign = if number.is_sign_negative() { "-" } else { "" };
    if number.is_infinite() {
        return format!("{sign}Infinity");
    }
    if number == 0.0 {
        return format!("{sign}0.0");
    }
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let (whole, fraction, suffix) = match exponent {
        0..=6 => {
            let point = exponent.unsigned_abs() as usize + 1;
            let padded = format!("{digits:0<point$}");
            let (whole, fraction) = padded.split_at(point);
            (whole.to_owned(), fraction.to_owned(), String::new())
        }
        -3..=-1 => {
            let zeros = "0".repeat(exponent.unsigned_abs() as usize - 1);
            ("0".to_owned(), format!("{zeros}{digits}"), String::new())
        }
        _ => {
            let (whole, fraction) = digits.split_at(1);
            (
                whole.to_owned(),
                fraction.to_owned(),
                format!("E{exponent}"),
            )
        }
    };
    let fraction = if fraction.is_empty() { "0" } else { &fraction };
    format!("{sign}{whole}.{fraction}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(name: &str, values: &[&str]) -> String {
        let mut aggregate = GroupAggregate::by_name(name, u64::MAX).unwrap();
        for value in values {
            aggregate.add(value.as_bytes()).unwrap();
        }
        aggregate.report()
    }

    #[test]
    fn each_reports_as_hadoop_does() {
        assert_eq!(
            reported("LongValueSum", &["9223372036854775807", "1"]),
            "-9223372036854775808"
        );
        assert_eq!(reported("LongValueMax", &["-7", "-3"]), "-3");
        assert_eq!(reported("LongValueMin", &["-7", "-3"]), "-7");
        assert_eq!(
            reported("DoubleValueSum", &["1.5", " 2e3 ", "0.25d"]),
            "2001.75"
        );
        assert_eq!(reported("StringValueMax", &["b", "c", "a"]), "c");
        assert_eq!(
            reported("StringValueMin", &["\u{1f600}", "\u{ffee}"]),
            "\u{1f600}"
        ); // surrogates come first
        assert_eq!(reported("UniqValueCount", &["a", "b", "a"]), "2");
        assert_eq!(
            reported("ValueHistogram", &["a", "b\t3", "a", "c"]),
            "3\t1\t2\t3\t2.0\t0.816496580927726"
        );
        assert_eq!(GroupAggregate::by_name("LongValueMean", 1), None);
    }

    #[test]
    fn combining_first_changes_nothing() {
        for (name, values) in [
            ("LongValueSum", ["1", "2", "3"]),
            ("UniqValueCount", ["a", "b", "a"]),
            ("ValueHistogram", ["a", "b\t4", "a"]),
        ] {
            let mut first = GroupAggregate::by_name(name, u64::MAX).unwrap();
            let mut second = first.clone();
            for value in values {
                first.add(value.as_bytes()).unwrap();
            }
            for value in first.combined() {
                second.add(value.as_bytes()).unwrap();
            }
            assert_eq!(first.report(), second.report(), "{name}");
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in ["", " 1", "1.0", "x", "9223372036854775808"] {
            assert!(
                GroupAggregate::LongSum(0).add(text.as_bytes()).is_err(),
                "{text:?}"
            );
        }
        for text in ["", "x", "1,5", "inf", "nan"] {
            assert!(
                GroupAggregate::DoubleSum(0.0).add(text.as_bytes()).is_err(),
                "{text:?}"
            );
        }
    }

    #[test]
    fn numbers_are_printed_as_java_prints_them() {
        for (number, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (100.0, "100.0"),
            (1_234_567.5, "1234567.5"),
            (12_345_678.0, "1.2345678E7"),
            (0.000_999, "9.99E-4"),
            (0.012, "0.012"),
            (-1e-300, "-1.0E-300"),
            (f64::INFINITY, "Infinity"),
        ] {
            assert_eq!(java_double(number), text);
        }
    }
}

//! Amounts as people write them: bytes with a unit (`512M`, `8G`, `1GiB`), rows with Hadoop's suffix (`10m`).

use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error as _};

pub use gristmill_base::error::show_bytes;
use gristmill_base::error::{Error, Kind, Result};

/// The first number of bytes that is too large for a file, and for memory: 2^63.
const BYTES_END: f64 = (1_u64 << 63) as f64;

/// Bytes. `K`, `M`, `G`, `T` are powers of 1000, `KiB`, `MiB`, `GiB`, `TiB` of 1024; a `B` may follow.
///
/// ```
/// use gristmill_engine::plan::amount::ByteAmount;
/// assert_eq!("512M".parse(), Ok(ByteAmount(512_000_000)));
/// assert_eq!("1.5GiB".parse(), Ok(ByteAmount(1_610_612_736)));
/// assert!("12 parsecs".parse::<ByteAmount>().is_err());
/// assert!("10000000T".parse::<ByteAmount>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteAmount(pub u64);

impl FromStr for ByteAmount {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let lower = text.trim().to_ascii_lowercase();
        let digits = lower.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = lower[digits.len()..].trim_end_matches('b');
        let factor = match unit {
            "" => Some(1.0),
            "k" => Some(1e3),
            "m" => Some(1e6),
            "g" => Some(1e9),
            "t" => Some(1e12),
            "ki" => Some(f64::from(1 << 10)),
            "mi" => Some(f64::from(1 << 20)),
            "gi" => Some(f64::from(1 << 30)),
            "ti" => Some(f64::from(1 << 20) * f64::from(1 << 20)),
            _ => None,
        };
        let number = digits
            .trim_end()
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite());
        match (number, factor) {
            (Some(number), Some(factor)) if number * factor >= BYTES_END => {
                Err(wrong("a size of less than 8 EiB", text, "512M, 8G or 1GiB"))
            }
            (Some(number), Some(factor)) if number >= 0.0 => {
                Ok(ByteAmount((number * factor) as u64))
            }
            _ => Err(wrong("a size", text, "512M, 8G or 1GiB")),
        }
    }
}

/// Rows, with TeraGen's suffixes: k, m, b, t for 10^3, 10^6, 10^9, 10^12.
///
/// ```
/// use gristmill_engine::plan::amount::Rows;
/// assert_eq!(("10m".parse(), "1t".parse()), (Ok(Rows(10_000_000)), Ok(Rows(1_000_000_000_000))));
/// assert!("1.5k".parse::<Rows>().is_err() && "-1".parse::<Rows>().is_err());
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rows(pub u128);

impl FromStr for Rows {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let lower = text.trim().to_ascii_lowercase();
        let factor = match lower.chars().last() {
            Some('k') => 1_000,
            Some('m') => 1_000_000,
            Some('b') => 1_000_000_000,
            Some('t') => 1_000_000_000_000,
            _ => 1,
        };
        let digits = if factor == 1 {
            &lower[..]
        } else {
            &lower[..lower.len() - 1]
        };
        let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let rows = digits.parse::<u128>().ok().filter(|_| plain);
        let rows = rows.and_then(|rows| rows.checked_mul(factor));
        rows.map(Rows)
            .ok_or_else(|| wrong("a number of rows", text, "10000, 10m or 1b"))
    }
}

fn wrong(what: &str, text: &str, examples: &str) -> Error {
    Error::new(
        Kind::BadOption,
        "read the options",
        format!("{text:?} is not {what}"),
    )
    .advise(format!("write it like {examples}"))
}

/// A count within its limits.
pub fn check_count(name: &str, given: Option<usize>, most: usize) -> Result<()> {
    match given {
        Some(count) if count == 0 || count > most => Err(Error::new(
            Kind::BadOption,
            "read the options",
            format!("{name} must be from 1 to {most}, and {count} was given"),
        )
        .of_option(name)),
        _ => Ok(()),
    }
}

/// Least bytes of a task's work: records of 100 bytes and blocks of a device meet there.
const SPLIT_BYTES_MIN: u64 = 102_400;

/// Bytes of a task's work, if the user says how many.
pub fn check_split_size(given: Option<ByteAmount>) -> Result<Option<u64>> {
    match given {
        Some(ByteAmount(bytes)) if bytes < SPLIT_BYTES_MIN => Err(Error::new(
            Kind::BadOption,
            "read the options",
            format!("split_size must be {SPLIT_BYTES_MIN} bytes or more, and {bytes} were given"),
        )
        .of_option("split_size")),
        given => Ok(given.map(|given| given.0)),
    }
}

/// Takes a number or text.
fn from_json<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: FromStr<Err = Error>,
    D: Deserializer<'de>,
{
    #[derive(serde::Deserialize)]
    #[serde(untagged)]
    enum Amount {
        Number(u64),
        Text(String),
    }
    let text = match Amount::deserialize(deserializer)? {
        Amount::Number(number) => number.to_string(),
        Amount::Text(text) => text,
    };
    text.parse()
        .map_err(|error: Error| D::Error::custom(error.says()))
}

impl<'de> Deserialize<'de> for ByteAmount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_json(deserializer)
    }
}

impl<'de> Deserialize<'de> for Rows {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_json(deserializer)
    }
}

//! Record formats as a user writes them: `lines`, `fixed:100`, `fixed:100:10`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer};

use gristmill_base::error::{Error, Kind};

/// What the records of an input are.
///
/// ```
/// use gristmill_engine::plan::format::RecordFormat;
/// assert_eq!("fixed:100:10".parse(), Ok(RecordFormat::Fixed { record_bytes: 100, key_bytes: 10 }));
/// assert_eq!("fixed:8".parse(), Ok(RecordFormat::Fixed { record_bytes: 8, key_bytes: 8 }));
/// assert!("fixed:10:11".parse::<RecordFormat>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RecordFormat {
    /// Lines.
    #[default]
    Lines,
    /// Records of one length, which begin with their key.
    Fixed {
        /// Bytes of a record.
        record_bytes: usize,
        /// Bytes of its key.
        key_bytes: usize,
    },
}

/// Longest record of a fixed length.
const RECORD_BYTES_MAX: usize = 1 << 20;

impl FromStr for RecordFormat {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if text == "lines" {
            return Ok(RecordFormat::Lines);
        }
        let lengths = text.strip_prefix("fixed:").and_then(|rest| {
            let (record, key) = rest.split_once(':').unwrap_or((rest, rest));
            Some((number(record)?, number(key)?))
        });
        match lengths {
            Some((record_bytes, key_bytes))
                if (1..=record_bytes).contains(&key_bytes) && record_bytes <= RECORD_BYTES_MAX =>
            {
                Ok(RecordFormat::Fixed {
                    record_bytes,
                    key_bytes,
                })
            }
            _ => {
                let message = format!(
                    "a format is \"lines\", \"fixed:LEN\" or \"fixed:LEN:KEYLEN\" with 1 <= KEYLEN <= LEN <= \
                     {RECORD_BYTES_MAX}, and {text:?} is not one"
                );
                Err(Error::new(Kind::BadOption, "read the options", message))
            }
        }
    }
}

/// A number in plain digits.
fn number(text: &str) -> Option<usize> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

impl fmt::Display for RecordFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordFormat::Lines => f.write_str("lines"),
            RecordFormat::Fixed {
                record_bytes,
                key_bytes,
            } => write!(f, "fixed:{record_bytes}:{key_bytes}"),
        }
    }
}

impl<'de> Deserialize<'de> for RecordFormat {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse()
            .map_err(|error: Error| serde::de::Error::custom(error.says()))
    }
}

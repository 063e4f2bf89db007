//! The sort benchmark's checksum: the sum of the CRC-32s (IEEE) of all records, as a 128-bit integer.
//!
//! A sum does not see order, so the sum over a sort's output equals that over its input: half of the proof
//! (the other half is the order check). It is computed twice for each byte, hence the kernel: at 100 bytes
//! `crc32fast` cannot use its folding path (it begins at 128 bytes) and takes three times as long as
//! `crc_clmul` (`cargo bench --bench kernels`).

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Kind, Result};

use super::crc_clmul::CrcFixed;

/// A running sum of record CRCs.
///
/// ```
/// use gristmill_base::record::checksum::Checksum;
/// let mut sum = Checksum::new(4);
/// sum.update(b"abcdefgh"); // two records
/// let want = u128::from(crc32fast::hash(b"abcd")) + u128::from(crc32fast::hash(b"efgh"));
/// assert_eq!((sum.value(), sum.to_string()), (want, format!("{want:x}")));
/// ```
#[derive(Debug, Clone)]
pub struct Checksum {
    record_bytes: usize,
    sum: u128,
    kernel: Option<CrcFixed>,
}

impl Checksum {
    /// An empty sum over records of `record_bytes` bytes.
    pub fn new(record_bytes: usize) -> Self {
        Checksum {
            record_bytes,
            sum: 0,
            kernel: CrcFixed::new(record_bytes),
        }
    }

    /// Adds every record of `data`, whose length is a multiple of the record's.
    pub fn update(&mut self, data: &[u8]) {
        debug_assert_eq!(data.len() % self.record_bytes, 0);
        self.sum += match &self.kernel {
            Some(kernel) => kernel.sum(data),
            None => sum_plain(data, self.record_bytes),
        };
    }

    /// The sum so far.
    pub fn value(&self) -> u128 {
        self.sum
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.sum)
    }
}

/// The plain way, which every processor can take and which the kernel is tested against.
fn sum_plain(data: &[u8], record_bytes: usize) -> u128 {
    data.chunks_exact(record_bytes)
        .map(|record| u128::from(crc32fast::hash(record)))
        .sum()
}

/// A checksum as text: lower-case hexadecimal without leading zeros, as gensort, valsort and Hadoop print it.
///
/// ```
/// use gristmill_base::record::checksum::Hex;
/// assert_eq!("5b2d1434d".parse::<Hex>().map(|hex| hex.0), Ok(0x5b2d1434d));
/// assert!("part-r-00000".parse::<Hex>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hex(pub u128);

impl FromStr for Hex {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        u128::from_str_radix(digits, 16).map(Hex).map_err(|error| {
            Error::new(
                Kind::BadOption,
                "read a checksum",
                format!("{text:?} is not a hexadecimal number: {error}"),
            )
        })
    }
}

impl fmt::Display for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

/// A checksum in specs, reports and histories: in JSON the text of [`Hex`], elsewhere a number.
pub mod hex {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Hex;

    /// What `#[serde(with = "crate::record::checksum::hex")]` writes.
    pub fn serialize<S: Serializer>(sum: &u128, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(&Hex(*sum))
        } else {
            sum.serialize(serializer)
        }
    }

    /// What `#[serde(with = "crate::record::checksum::hex")]` reads.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u128, D::Error> {
        if deserializer.is_human_readable() {
            let text = String::deserialize(deserializer)?;
            text.parse::<Hex>()
                .map(|hex| hex.0)
                .map_err(D::Error::custom)
        } else {
            u128::deserialize(deserializer)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn kernel_equals_plain(record_bytes in 1_usize..300, records in 0_usize..14, seed in any::<u64>()) {
            let mut state = seed | 1;
            let data: Vec<u8> = (0..record_bytes * records)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (state >> 56) as u8
                })
                .collect();
            let want = sum_plain(&data, record_bytes);
            let mut sum = Checksum::new(record_bytes);
            sum.update(&data);
            prop_assert_eq!(sum.value(), want);
        }
    }
}

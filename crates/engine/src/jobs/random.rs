//! Random keys of records: the order of `shuf`, and what `sample` draws by.
//!
//! ```text
//!   seed ──SHA-256, 8 bytes──▶ seed of XXH3
//!   number of the file, offset in it ──XXH3──▶ 128 bits
//! ```
//!
//! The rule that must hold: a record's key depends on the seed, on which file of the input it is in and on where it begins
//! there, and on nothing else: not on how the input is cut, nor on who reads it. The offset is one of decoded bytes.

use sha2::{Digest, Sha256};
use twox_hash::XxHash3_128;

use gristmill_base::error::Result;
use gristmill_storage::lines::LineEnd;
use gristmill_tasks::merge::groups::MergedGroups;
use gristmill_tasks::task::{PartFiles, Records, Reducer};

/// The seed where none is given.
const SEED: &str = "0";

/// Bytes of a position.
pub(super) const POSITION_BYTES: usize = 12;

/// Whole records, one by one, with random keys.
#[derive(Debug)]
pub(super) struct RandomRecords {
    seed: u64,
    /// Whether they are lines that come many at once.
    many: bool,
}

/// A record with its random key.
#[derive(Debug, Clone, Copy)]
pub(super) struct RandomRecord<'a> {
    /// Its random key.
    pub(super) key: u128,
    /// The number of its file.
    pub(super) file: u32,
    /// Where in it the record begins.
    pub(super) offset: u64,
    /// Its bytes, without their end.
    pub(super) bytes: &'a [u8],
}

impl RandomRecord<'_> {
    /// What puts records into the order of the input.
    pub(super) fn position(&self) -> [u8; POSITION_BYTES] {
        let mut position = [0; POSITION_BYTES];
        let (file, offset) = position.split_at_mut(4);
        file.copy_from_slice(&self.file.to_be_bytes());
        offset.copy_from_slice(&self.offset.to_be_bytes());
        position
    }
}

impl RandomRecords {
    /// Random keys of this seed, or of the usual one.
    pub(super) fn new(seed: Option<&str>, many: bool) -> Self {
        let digest = Sha256::digest(seed.unwrap_or(SEED).as_bytes());
        let seed = digest.iter().take(8);
        RandomRecords {
            seed: seed.fold(0, |seed, byte| seed << 8 | u64::from(*byte)),
            many,
        }
    }

    /// Hands on each of some records.
    #[inline]
    pub(super) fn each(
        &self,
        records: &Records<'_>,
        mut take: impl FnMut(RandomRecord<'_>) -> Result<()>,
    ) -> Result<()> {
        let file = records.file;
        let mut one = |offset, bytes| {
            take(RandomRecord {
                key: random_key(self.seed, file, offset),
                file,
                offset,
                bytes,
            })
        };
        if self.many {
            return records
                .lines()
                .try_for_each(|(offset, line)| one(offset, line));
        }
        one(records.offset, records.end.strip(records.bytes))
    }
}

/// The random key of a place.
#[inline]
fn random_key(seed: u64, file: u32, offset: u64) -> u128 {
    let place = u128::from(file) << 64 | u128::from(offset);
    XxHash3_128::oneshot_with_seed(seed, &place.to_be_bytes())
}

/// Writes the record of each pair as a line, in the order of the pairs.
#[derive(Debug)]
pub(super) struct EachRecord {
    end: LineEnd,
    line: Vec<u8>,
}

impl EachRecord {
    /// Lines end so.
    pub(super) fn ended_by(end: LineEnd) -> Self {
        EachRecord {
            end,
            line: Vec::new(),
        }
    }

    /// Writes a record, which has no end yet.
    #[inline]
    pub(super) fn write(&mut self, record: &[u8], part: &mut PartFiles) -> Result<()> {
        self.line.clear();
        self.line.extend_from_slice(record);
        self.line.push(self.end.byte());
        part.record(&self.line)
    }
}

impl Reducer for EachRecord {
    fn next(&mut self, groups: &mut MergedGroups, part: &mut PartFiles) -> Result<bool> {
        if !groups.next_group()? {
            return Ok(false);
        }
        while groups.next_pair()? {
            self.write(groups.value(), part)?;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_come_together_have_the_keys_that_each_has_alone() {
        let records = Records {
            input: 0,
            bytes: b"a\n\nbc",
            end: LineEnd::Lf,
            fields: &[],
            code: &[],
            position: 0,
            file: 3,
            offset: 7,
        };
        let found = |many, records: &Records<'_>| {
            let mut found = Vec::new();
            let take = |record: RandomRecord<'_>| {
                found.push((record.key, record.position(), record.bytes.to_vec()));
                Ok(())
            };
            RandomRecords::new(None, many).each(records, take).unwrap();
            found
        };
        let alone: Vec<_> = [("a\n", 7), ("\n", 9), ("bc", 10)]
            .into_iter()
            .flat_map(|(bytes, offset)| {
                let bytes = bytes.as_bytes();
                let record = Records {
                    bytes,
                    offset,
                    ..records
                };
                found(false, &record)
            })
            .collect();
        assert_eq!(found(true, &records), alone);
        assert_eq!(alone[2].1, [0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 10]);
    }

    /// The high bits decide the part, and a rate: each of 64 shares of them has about as many records.
    #[test]
    fn keys_are_uniform() {
        for (seed, lengths) in [("0", 1), ("1", 7), ("", 101)] {
            let keys = RandomRecords::new(Some(seed), false);
            let mut shares = [[0_f64; 64]; 2];
            for number in 0..64_000 {
                let key = random_key(keys.seed, 0, number * lengths);
                shares[0][(key >> 122) as usize] += 1.0;
                shares[1][(key as usize) % 64] += 1.0;
            }
            for share in shares {
                let chi: f64 = share.iter().map(|n| (n - 1000.0).powi(2) / 1000.0).sum();
                assert!((28.0..=114.0).contains(&chi), "{seed}: {chi}"); // of 63 degrees: one in 20,000 on each side
            }
        }
    }
}

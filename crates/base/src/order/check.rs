//! The order check: half of the proof of a sort (the other half is the checksum), and all of a validator.
//!
//! Records go by in the order of the output; every key is compared with the one before it. Checks over pieces
//! that follow each other join into the check of the whole, so that pieces can be checked anywhere.

use serde::{Deserialize, Serialize};

use crate::record::KEY_BYTES;

/// A key.
pub type Key = [u8; KEY_BYTES];

/// A record whose key is smaller than that of the record before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misorder {
    /// The number of the record, from 0, in what was checked.
    pub record: u64,
    /// The key before.
    pub before: Key,
    /// The smaller key behind it.
    pub after: Key,
}

/// Misorders that are kept word for word; beyond them only their number.
pub const KEPT_MISORDERS: usize = 1000;

/// What a run of records showed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderCheck {
    /// Records seen.
    pub records: u64,
    /// Records whose key equals that of the record before.
    pub duplicates: u64,
    /// Records whose key is smaller than that of the record before.
    pub misorders: u64,
    /// The first of those.
    pub first_misorders: Vec<Misorder>,
    /// The key of the first record and that of the last one.
    pub ends: Option<(Key, Key)>,
}

impl OrderCheck {
    /// Checks the records of `data`, which follow those seen before.
    ///
    /// ```
    /// use gristmill_base::order::check::OrderCheck;
    /// let mut check = OrderCheck::default();
    /// check.update(b"aaaaaaaaaa-bbbbbbbbbb-bbbbbbbbbb-aaaaaaaaaz-", 11);
    /// assert_eq!((check.records, check.duplicates, check.misorders), (4, 1, 1));
    /// assert_eq!(check.first_misorders[0].record, 3);
    /// ```
    pub fn update(&mut self, data: &[u8], record_bytes: usize) {
        let mut records = data
            .chunks_exact(record_bytes)
            .filter_map(|record| record.first_chunk());
        let (first, mut previous) = match self.ends {
            Some(ends) => ends,
            None => match records.next() {
                Some(first) => {
                    self.records += 1;
                    (*first, *first)
                }
                None => return,
            },
        };
        let mut previous_number = number(&previous);
        for key in records {
            let key_number = number(key);
            if key_number <= previous_number {
                self.note(key_number == previous_number, self.records, previous, *key);
            }
            previous = *key;
            previous_number = key_number;
            self.records += 1;
        }
        self.ends = Some((first, previous));
    }

    /// Appends the check of the records that follow.
    pub fn join(&mut self, next: &OrderCheck) {
        let Some((next_first, next_last)) = next.ends else {
            return;
        };
        let first = match self.ends {
            Some((first, last)) => {
                if next_first <= last {
                    self.note(next_first == last, self.records, last, next_first);
                }
                first
            }
            None => next_first,
        };
        for misorder in &next.first_misorders {
            self.keep(Misorder {
                record: misorder.record + self.records,
                ..*misorder
            });
        }
        self.misorders += next.misorders;
        self.duplicates += next.duplicates;
        self.records += next.records;
        self.ends = Some((first, next_last));
    }

    #[cold]
    fn note(&mut self, equal: bool, record: u64, before: Key, after: Key) {
        if equal {
            self.duplicates += 1;
        } else {
            self.misorders += 1;
            self.keep(Misorder {
                record,
                before,
                after,
            });
        }
    }

    fn keep(&mut self, misorder: Misorder) {
        if self.first_misorders.len() < KEPT_MISORDERS {
            self.first_misorders.push(misorder);
        }
    }
}

/// A key as an integer of the same order.
fn number(key: &Key) -> u128 {
    let mut bytes = [0; 16];
    bytes[..KEY_BYTES].copy_from_slice(key);
    u128::from_be_bytes(bytes)
}

/// A key as Hadoop prints it: lower-case hexadecimal bytes between spaces.
///
/// ```
/// assert_eq!(gristmill_base::order::check::key_text(b"JimGrayRIP"), "4a 69 6d 47 72 61 79 52 49 50");
/// ```
pub fn key_text(key: &Key) -> String {
    key.map(|byte| format!("{byte:02x}")).join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Joined checks of any cut equal the check of the whole, and that equals the obvious loop.
        #[test]
        fn joins_anywhere(
            keys in proptest::collection::vec(0..4_u8, 0..40),
            cut in 0_usize..40,
        ) {
            let data: Vec<u8> = keys.iter().flat_map(|key| [[*key; 10].as_slice(), b"--"].concat()).collect();
            let mut whole = OrderCheck::default();
            whole.update(&data, 12);
            let (head, tail) = data.split_at(cut.min(keys.len()) * 12);
            let (mut joined, mut rest) = (OrderCheck::default(), OrderCheck::default());
            joined.update(head, 12);
            rest.update(tail, 12);
            joined.join(&rest);
            prop_assert_eq!(&joined, &whole);
            let pairs = || keys.windows(2);
            prop_assert_eq!(whole.records, keys.len() as u64);
            prop_assert_eq!(whole.duplicates, pairs().filter(|p| p[0] == p[1]).count() as u64);
            prop_assert_eq!(whole.misorders, pairs().filter(|p| p[0] > p[1]).count() as u64);
            let places: Vec<u64> = whole.first_misorders.iter().map(|m| m.record).collect();
            let want: Vec<u64> =
                (1..keys.len()).filter(|i| keys[i - 1] > keys[*i]).map(|i| i as u64).collect();
            prop_assert_eq!(places, want);
        }
    }
}

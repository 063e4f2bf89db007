//! The keys with the largest numbers, the largest first; those that are equal, in the order of bytes.
//!
//! What is kept is in memory: the keys that are wanted, or all of them where no number of them is given. Without enough
//! memory that is an error, which says so.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use gristmill_base::error::{Error, Kind, Result};

/// What a key takes beside its bytes: its entry, and what an allocation costs.
const ENTRY_BYTES: usize = 48;

/// Keys with numbers, of which the smallest goes first where there are too many.
#[derive(Debug)]
pub struct Largest {
    most: usize,
    room_bytes: usize,
    held_bytes: usize,
    /// The greatest is the one that is worth least.
    kept: BinaryHeap<(Reverse<i64>, Box<[u8]>)>,
}

impl Largest {
    /// Room for `most` keys, or for all, in so much memory.
    pub fn new(most: Option<usize>, room_bytes: usize) -> Self {
        Largest {
            most: most.unwrap_or(usize::MAX),
            room_bytes,
            held_bytes: 0,
            kept: BinaryHeap::new(),
        }
    }

    /// Takes a key.
    ///
    /// # Errors
    /// Those that are kept do not fit memory.
    pub fn push(&mut self, key: &[u8], number: i64) -> Result<()> {
        if self.kept.len() >= self.most
            && let Some((least, last)) = self.kept.peek()
            && (Reverse(number), key) > (*least, &**last)
        {
            return Ok(());
        }
        self.kept.push((Reverse(number), key.into()));
        self.held_bytes += key.len() + ENTRY_BYTES;
        if self.kept.len() > self.most
            && let Some((_, gone)) = self.kept.pop()
        {
            self.held_bytes -= gone.len() + ENTRY_BYTES;
        }
        if self.held_bytes > self.room_bytes {
            let (count, room) = (self.kept.len(), self.room_bytes);
            let message = format!(
                "{count} keys, to be put in the order of their counts, take more than {room} bytes"
            );
            return Err(Error::new(Kind::Memory, "order the counts", message)
                .advise("give the job more memory, or ask for fewer keys"));
        }
        Ok(())
    }

    /// The keys, the largest number first.
    pub fn sorted(self) -> impl Iterator<Item = (Box<[u8]>, i64)> {
        let sorted = self.kept.into_sorted_vec().into_iter();
        sorted.map(|(Reverse(number), key)| (key, number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_what_a_sort_of_all_would_begin_with() {
        let mut state = 7u64;
        let keys: Vec<(String, i64)> = (0..500)
            .map(|key| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (format!("k{key:03}"), (state >> 60) as i64)
            })
            .collect();
        let mut all = keys.clone();
        all.sort_by_key(|(key, number)| (Reverse(*number), key.clone()));
        for most in [None, Some(1), Some(7), Some(499), Some(500), Some(501)] {
            let mut largest = Largest::new(most, 1 << 20);
            for (key, number) in &keys {
                largest.push(key.as_bytes(), *number).unwrap();
            }
            let found: Vec<_> = largest
                .sorted()
                .map(|(key, number)| (String::from_utf8(key.into()).unwrap(), number))
                .collect();
            assert_eq!(found, all[..most.unwrap_or(500).min(500)]);
        }
    }

    #[test]
    fn too_little_memory_is_an_error() {
        let mut largest = Largest::new(None, 100);
        largest.push(b"a", 1).unwrap();
        let error = [b"b", b"c"]
            .map(|key| largest.push(key, 1))
            .into_iter()
            .find_map(Result::err);
        assert_eq!(error.unwrap().kind(), Kind::Memory);
        let mut few = Largest::new(Some(1), 100);
        for number in 0..9 {
            few.push(b"key", number).unwrap();
        }
    }
}

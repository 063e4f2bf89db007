//! The numbers of a sort that does not fit in memory: runs, passes, buffers.
//!
//! ```text
//!   memory ──shares──▶ one for each worker
//!     to spill    | records ............... | entries | 3 buffers of the writer |
//!     to merge    | 2 buffers for each run  | 3 buffers of the writer | left for long records |
//! ```
//!
//! A pass merges so many neighbouring runs into one that the last merge, which writes the output, has buffers for
//! all that are left. One spill and one merge is the aim; more only where memory or open files force it.

use crate::error::{Error, Kind, Result};
use crate::order::Entry;
use crate::plan::amount::show_bytes;
use crate::run;
use crate::storage::BLOCK_BYTES;
use crate::storage::overlap::writer_bytes;

/// What a job holds beside its workers' memory.
const FIXED_BYTES: u64 = 8 << 20;

/// Records that a worker must be able to hold: less makes runs too many and too short.
const LEAST_ARENA_BYTES: u64 = 2 << 20;

/// A writer's buffers: a share of the worker's memory, within what a device needs and can use.
const BUFFER_SHARE: u64 = 32;
const LEAST_BUFFER_BYTES: u64 = 256 << 10;
const MOST_BUFFER_BYTES: u64 = 4 << 20;

/// Buffers of a run that is merged: below the first devices become slow, beyond the second they gain nothing.
const GOOD_SOURCE_BYTES: u64 = 256 << 10;
const MOST_SOURCE_BYTES: u64 = 8 << 20;

/// Memory of a merge of runs that are in memory.
const MEMORY_MERGE_BYTES: u64 = 48 << 20;

/// Runs that are merged at once at most: each is two open files for each worker.
const MOST_FAN_IN: usize = 200;

/// Part of a worker's memory that a merge leaves alone: records that lie in two buffers are put together there.
const LONG_RECORD_SHARE: u64 = 8;

/// The numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpillNumbers {
    /// Bytes of records that a worker sorts at once.
    pub arena_bytes: usize,
    /// Records that a worker sorts at once.
    pub entries: usize,
    /// Bytes of each buffer of a writer.
    pub buffer_bytes: usize,
    /// Runs that are merged at once at most.
    pub fan_in: usize,
    /// Memory of a merge for the buffers of its runs.
    merge_bytes: u64,
}

impl SpillNumbers {
    /// The numbers for so much memory, shared by `workers`, and records of about `record_bytes` bytes.
    ///
    /// ```
    /// use gristmill_engine::plan::spill::SpillNumbers;
    /// let numbers = SpillNumbers::new(2_000_000_000, 2, 100)?;
    /// assert!(numbers.arena_bytes > 800_000_000 && numbers.passes(13) == 0);
    /// let small = SpillNumbers::new(64_000_000, 2, 100)?;
    /// assert!(small.arena_bytes > 20_000_000 && small.passes(500) == 1);
    /// # Ok::<(), gristmill_engine::Error>(())
    /// ```
    pub fn new(memory_bytes: u64, workers: usize, record_bytes: u64) -> Result<Self> {
        let share = memory_bytes.saturating_sub(FIXED_BYTES) / workers as u64;
        let Sizes {
            arena,
            entries,
            buffer,
        } = Sizes::of(share, record_bytes.max(1));
        if arena < LEAST_ARENA_BYTES {
            let least = Sizes::least_share(record_bytes.max(1));
            let needed = FIXED_BYTES + workers as u64 * least;
            let alone = FIXED_BYTES + least <= memory_bytes;
            return Err(too_small(memory_bytes, needed, workers, alone));
        }
        let writer = writer_bytes(buffer as usize);
        let merge_bytes = (share - share / LONG_RECORD_SHARE).saturating_sub(writer);
        let fan_in = (merge_bytes / (2 * GOOD_SOURCE_BYTES)) as usize;
        Ok(SpillNumbers {
            arena_bytes: arena as usize,
            entries: entries as usize,
            buffer_bytes: buffer as usize,
            fan_in: fan_in.clamp(2, MOST_FAN_IN),
            merge_bytes,
        })
    }

    /// The same for runs that are in memory: copies need no large buffers.
    #[must_use]
    pub fn in_memory(self) -> Self {
        SpillNumbers {
            merge_bytes: self.merge_bytes.min(MEMORY_MERGE_BYTES),
            ..self
        }
    }

    /// Bytes of each of the two buffers of a run, where so many are merged at once.
    pub fn source_bytes(&self, runs: usize) -> usize {
        let block = run::BLOCK_BYTES as u64;
        let each = self.merge_bytes / (2 * runs.max(1) as u64);
        (each / block * block).clamp(block, MOST_SOURCE_BYTES) as usize
    }

    /// Runs that so many bytes make, at least.
    pub fn runs(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.arena_bytes as u64)
    }

    /// The passes before the last merge.
    pub fn passes(&self, runs: usize) -> usize {
        let (mut runs, mut passes) = (runs, 0);
        while runs > self.fan_in {
            runs = runs.div_ceil(self.fan_in);
            passes += 1;
        }
        passes
    }

    /// How the next pass puts `runs` neighbouring runs together: how many to each new run. Empty where the last
    /// merge can take them all.
    ///
    /// ```
    /// use gristmill_engine::plan::spill::SpillNumbers;
    /// let mut numbers = SpillNumbers::new(64_000_000, 2, 100)?;
    /// numbers.fan_in = 10;
    /// assert_eq!(numbers.groups(25), [9, 8, 8]);
    /// assert!(numbers.groups(10).is_empty());
    /// # Ok::<(), gristmill_engine::Error>(())
    /// ```
    pub fn groups(&self, runs: usize) -> Vec<usize> {
        if runs <= self.fan_in {
            return Vec::new();
        }
        let groups = runs.div_ceil(self.fan_in);
        let longer = runs % groups;
        (0..groups)
            .map(|group| runs / groups + usize::from(group < longer))
            .collect()
    }
}

/// How a worker's share is divided to spill records.
struct Sizes {
    arena: u64,
    entries: u64,
    buffer: u64,
}

impl Sizes {
    fn of(share: u64, record_bytes: u64) -> Self {
        let entry_bytes = size_of::<Entry>() as u64;
        let buffer = (share / BUFFER_SHARE).clamp(LEAST_BUFFER_BYTES, MOST_BUFFER_BYTES);
        let records = share.saturating_sub(writer_bytes(buffer as usize));
        // Records and their entries, a tenth of those to spare, as some records are shorter than others.
        let each = u128::from(record_bytes * 10 + entry_bytes * 11);
        let arena = (u128::from(records) * u128::from(record_bytes * 10) / each) as u64;
        let arena = arena / BLOCK_BYTES as u64 * BLOCK_BYTES as u64;
        Sizes {
            arena,
            entries: records.saturating_sub(arena) / entry_bytes,
            buffer,
        }
    }

    /// The smallest share that holds enough records: by halving, as it grows with them.
    fn least_share(record_bytes: u64) -> u64 {
        let (mut low, mut high) = (0, 1 << 40);
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            if Sizes::of(middle, record_bytes).arena < LEAST_ARENA_BYTES {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }
}

/// `alone`: whether one worker would do.
fn too_small(memory_bytes: u64, needed: u64, workers: usize, alone: bool) -> Error {
    let message = format!(
        "a memory budget of {} is too small to sort with {workers} workers: it needs {}",
        show_bytes(memory_bytes),
        show_bytes(needed)
    );
    let fewer = if alone { " or --workers 1" } else { "" };
    Error::new(Kind::Memory, "sort the input", message)
        .with("budget", format!("{memory_bytes} bytes"))
        .with("needed", format!("{needed} bytes"))
        .advise(format!(
            "give --memory {}M or more{fewer}",
            needed.div_ceil(1_000_000)
        ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::merge_bytes;
    use crate::spill::spill_bytes;
    use proptest::prelude::*;

    proptest! {
        /// What is planned fits the budget, and every pass makes progress.
        #[test]
        fn the_numbers_fit(
            memory in 16_u64 << 20..16 << 30,
            workers in 1_usize..9,
            record_bytes in 1_u64..5_000,
            runs in 1_usize..5_000,
        ) {
            let Ok(numbers) = SpillNumbers::new(memory, workers, record_bytes) else {
                return Ok(());
            };
            let spill = spill_bytes(numbers.arena_bytes, numbers.entries, numbers.buffer_bytes);
            prop_assert!(workers as u64 * spill + FIXED_BYTES <= memory);
            let merged = runs.min(numbers.fan_in);
            let merge = merge_bytes(merged, numbers.source_bytes(merged)) + writer_bytes(numbers.buffer_bytes);
            prop_assert!(workers as u64 * merge + FIXED_BYTES <= memory, "{numbers:?}");
            let groups = numbers.groups(runs);
            prop_assert_eq!(groups.is_empty(), runs <= numbers.fan_in);
            prop_assert!(groups.iter().all(|group| (2..=numbers.fan_in).contains(group)));
            prop_assert!(groups.is_empty() || groups.iter().sum::<usize>() == runs);
        }

        /// The smallest memory that a refusal names is enough, and not much less is.
        #[test]
        fn the_memory_that_is_named_works(workers in 1_usize..9, record_bytes in 1_u64..5_000) {
            let error = SpillNumbers::new(1, workers, record_bytes).unwrap_err();
            let needed = error.context().iter().find(|(name, _)| *name == "needed").unwrap();
            let needed: u64 = needed.1.split(' ').next().unwrap().parse().unwrap();
            prop_assert!(SpillNumbers::new(needed, workers, record_bytes).is_ok());
            prop_assert!(SpillNumbers::new(needed - workers as u64, workers, record_bytes).is_err());
        }
    }
}

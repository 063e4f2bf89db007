//! The disk that runs need at the same time: what they take when all are there, and what a pass adds.
//!
//! ```text
//!   pass    | a b c d | e f g h | i j k l |      runs, which go when the one that they became is safe
//!           | abcd....| efgh....|                new ones, each reserved as a whole: one for each worker
//! ```
//!
//! A worker gives back the runs of a merge before it begins another one. Of several that end together, one may begin its next
//! merge while another still gives back: for them a new run more is counted.

use super::spill::MemoryLayout;
use gristmill_storage::sorted_run::{RunCompression, file_bytes_max};

/// Files that are no runs: a lock, and folders.
const BESIDE_BYTES: u64 = 16 << 10;

/// Bytes of disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunDisk {
    /// What the runs take.
    pub runs_bytes: u64,
    /// What merge passes take beside, at the most.
    pub passes_bytes: u64,
}

impl RunDisk {
    /// Of runs that hold so many bytes each, in `buckets` buckets, and are merged by so many workers. They are taken not to be
    /// compressed, and their records to be short.
    ///
    /// ```
    /// use gristmill_engine::plan::disk::RunDisk;
    /// use gristmill_engine::plan::spill::MemoryLayout;
    /// let memory_layout = MemoryLayout::new(2_000_000_000, 2, 100, 100)?.opening(10);
    /// let disk = |runs| RunDisk::of(&memory_layout, vec![10 << 20; runs], 1, 2);
    /// assert_eq!(disk(10).passes_bytes, 0);
    /// assert_eq!(disk(20).passes_bytes >> 20, 200); // two workers double all runs at once
    /// assert_eq!(disk(100).passes_bytes >> 20, 300); // three of ten
    /// # Ok::<(), gristmill_engine::Error>(())
    /// ```
    pub fn of(memory_layout: &MemoryLayout, runs: Vec<u64>, buckets: u64, workers: usize) -> Self {
        let file = |bytes| file_bytes_max(RunCompression::None, bytes, buckets).unwrap_or(bytes);
        RunDisk {
            runs_bytes: runs.iter().copied().map(file).sum::<u64>() + BESIDE_BYTES,
            passes_bytes: added_by_passes(memory_layout, runs, file, workers),
        }
    }

    /// The same where so many rounds of a shuffle cut the runs: each writes all of them once more, and where a file system takes
    /// no holes the old ones stay as long.
    #[must_use]
    pub fn in_rounds(self, rounds: usize) -> Self {
        let each = if rounds > 0 { self.runs_bytes } else { 0 };
        RunDisk {
            passes_bytes: self.passes_bytes.max(each),
            ..self
        }
    }

    /// All of it.
    pub fn bytes(self) -> u64 {
        self.runs_bytes.saturating_add(self.passes_bytes)
    }
}

/// What passes add to runs of these sizes: new runs that are there at once, of one pass, or the last of one and the first of
/// the next.
fn added_by_passes(
    memory_layout: &MemoryLayout,
    mut runs: Vec<u64>,
    file: impl Fn(u64) -> u64,
    workers: usize,
) -> u64 {
    let (mut most, mut last) = (0, None);
    while let Ok(groups) = memory_layout.groups(&vec![0; runs.len()])
        && !groups.is_empty()
    {
        let mut rest = runs.as_slice();
        let mut merged = Vec::with_capacity(groups.len());
        let mut made: Vec<u64> = Vec::from_iter(last);
        for len in groups {
            let (group, after) = rest.split_at(len);
            let bytes = group.iter().sum();
            merged.push(bytes);
            made.extend((len > 1).then(|| file(bytes)));
            rest = after;
        }
        let at_once = if workers > 1 { workers + 1 } else { 1 };
        let window = |from: usize| made.iter().skip(from).take(at_once).sum();
        most = (0..made.len()).map(window).fold(most, u64::max);
        last = made.last().copied();
        runs = merged;
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Merges step by step: workers take the groups in order and end in order; what one used up goes when it is done, or,
    /// where there are others and it is late, after the next merge began. Gives the most that was there at once.
    fn peak_of_merges(
        memory_layout: &MemoryLayout,
        mut sizes: Vec<u64>,
        workers: usize,
        is_late: bool,
    ) -> u64 {
        let all: u64 = sizes.iter().sum();
        let (mut peak, mut late) = (all, None);
        loop {
            let groups = memory_layout.groups(&vec![0; sizes.len()]).unwrap();
            if groups.is_empty() {
                return peak;
            }
            let mut rest = sizes.into_iter();
            let sum = |len: usize| rest.by_ref().take(len).sum::<u64>();
            let merged: Vec<u64> = groups.iter().copied().map(sum).collect();
            let waiting = groups.iter().zip(&merged).filter(|(len, _)| **len > 1);
            let mut waiting = waiting.map(|(_, bytes)| *bytes);
            let mut running: Vec<u64> = waiting.by_ref().take(workers).collect();
            while !running.is_empty() {
                let there = all + running.iter().sum::<u64>() + late.take().unwrap_or(0);
                peak = peak.max(there);
                let ended = running.remove(0);
                late = (workers > 1 && is_late).then_some(ended);
                running.extend(waiting.next());
            }
            sizes = merged;
        }
    }

    proptest! {
        /// What is said is what merges take at the most that end in their order, and not much more than they take at the
        /// least.
        #[test]
        fn what_is_said_is_what_merges_take(
            runs in proptest::collection::vec(1_u64 << 20..2 << 20, 1..400),
            fan_in in 2_usize..40,
            workers in 1_usize..9,
            late in any::<bool>(),
        ) {
            let memory_layout = MemoryLayout::new(4 << 30, workers, 100, 100).unwrap().opening(fan_in);
            let beside = BESIDE_BYTES + 2 * runs.len() as u64 * (16 << 10);
            let said = RunDisk::of(&memory_layout, runs.clone(), 1, workers);
            let peak = peak_of_merges(&memory_layout, runs, workers, late);
            prop_assert!(said.bytes() >= peak, "{said:?} {peak}");
            let too_much = if late { 100 } else { 150 };
            prop_assert!(said.bytes() <= peak / 100 * too_much + beside, "{said:?} {peak}");
        }
    }

    #[test]
    fn nothing_takes_nearly_nothing() {
        let memory_layout = MemoryLayout::new(1 << 30, 2, 100, 100).unwrap();
        let disk = RunDisk::of(&memory_layout, Vec::new(), 1, 2);
        assert_eq!((disk.passes_bytes, disk.bytes()), (0, BESIDE_BYTES));
    }
}

//! The numbers of a sort that does not fit in memory: runs, passes, buffers.
//!
//! ```text
//!   memory ──shares──▶ one for each worker
//!     to spill    | records .........▶    ◀.... entries | 3 buffers of the writer |
//!     to merge    | 2 buffers for each run, and room for its longest record | 3 buffers of the writer |
//! ```
//!
//! A pass merges so many neighbouring runs into one that the last merge, which writes the output, has room for
//! all that are left. One spill and one merge is the aim; more only where memory or open files force it.
//!
//! Decision: docs/decisions/merge-buffers.md.

use crate::plan::amount::show_bytes;
use crate::plan::files::RUNS_MAX;
use gristmill_base::budget::JobMemory;
use gristmill_base::error::{Error, JobOption, Kind, Result};
use gristmill_base::order::Entry;
use gristmill_storage::io::overlap::writer_bytes;
use gristmill_storage::sorted_run;
use gristmill_tasks::merge::carry_bytes;
use gristmill_tasks::spill::MemoryModel;

/// What a job holds beside its workers' memory, once it is planned: tasks, reports, history, the line of progress.
const FIXED_BYTES: u64 = 1 << 20;

/// What a worker holds beside its buffers: stacks and allocations of its threads.
const WORKER_BYTES: u64 = 192 << 10;

/// Records and entries that a worker must be able to hold: less makes runs too many and too short. With it two workers sort
/// with 15 MB.
const CHUNK_BYTES_MIN: u64 = 896 << 10;

/// Longer runs than this are worth nothing but that there are fewer of them.
const RUN_BYTES_WORTH: u64 = 256 << 20;

/// A writer's buffers: a share of the worker's memory, within what a device needs and can use.
const BUFFER_SHARE: u64 = 32;
const BUFFER_BYTES_MIN: u64 = 128 << 10;
const BUFFER_BYTES_MAX: u64 = 4 << 20;

/// Buffers of a run that is merged: below the first devices become slow, beyond the second they gain nothing. Where
/// memory is little, half of the first has to do: a pass more costs more than slow reads.
const SOURCE_MAX_BYTES: u64 = 256 << 10;
const SOURCE_BYTES_MAX: u64 = 8 << 20;

/// The part of a worker's memory that one good buffer may be.
const SOURCE_SHARE: u64 = 8;

/// What a merge holds for a run beside its buffers.
const SOURCE_STATE_BYTES: u64 = 8 << 10;

/// Memory for the buffers of a merge of runs that are in memory.
const MEMORY_MERGE_BYTES: u64 = 48 << 20;

/// The same of runs in the memory of nodes, whose segments come in small pieces; and what a task sorts at once there. A worker
/// touches little memory, and the same again: to touch some for the first time may take longer than to sort what lies in it.
const NODE_MERGE_BYTES: u64 = 32 << 20;
const NODE_BUFFER_BYTES: u64 = 1 << 20;
const NODE_TASK_BYTES: u64 = 32 << 20;
const NODE_TASKS: u64 = 64;

/// The numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryLayout {
    /// Bytes of records and entries that a worker sorts at once.
    pub chunk_bytes: usize,
    /// The length of a record to reckon with.
    pub typical_bytes: u64,
    /// Bytes of each buffer of a writer.
    pub buffer_bytes: usize,
    /// What memory longer records would need.
    pub needed: MemoryModel,
    /// Memory of a merge for its runs.
    merge_bytes: u64,
    /// How much of it is worth having for buffers.
    most_merge_bytes: u64,
    /// Runs that a merge may have open.
    most_runs: usize,
    /// Memory beside that of the workers, on all nodes of a cluster, where runs stay; none where they go to disks.
    pub node_runs_bytes: u64,
}

impl MemoryLayout {
    /// The numbers for so much memory, shared by `workers`. `typical_bytes` is the expected length of a record; none
    /// is known to be longer than `longest`, which is 0 where nothing is known.
    ///
    /// ```
    /// use gristmill_engine::plan::spill::MemoryLayout;
    /// let memory_layout = MemoryLayout::new(2_000_000_000, 2, 100, 100)?;
    /// assert!(memory_layout.record_room() > 800_000_000 && memory_layout.groups(&[100; 13])?.is_empty());
    /// let small = MemoryLayout::new(64_000_000, 2, 100, 100)?;
    /// assert!(small.record_room() > 20_000_000 && small.passes(500) == 1);
    /// # Ok::<(), gristmill_engine::Error>(())
    /// ```
    pub fn new(
        room: impl Into<JobMemory>,
        workers: usize,
        typical_bytes: u64,
        longest: u64,
    ) -> Result<Self> {
        MemoryLayout::with(
            room.into(),
            workers,
            typical_bytes,
            longest,
            CHUNK_BYTES_MIN,
        )
    }

    /// The numbers of passes over runs that other processes made: this one sorts nothing.
    ///
    /// # Errors
    /// Memory does not hold two runs.
    ///
    /// ```
    /// use gristmill_engine::plan::spill::MemoryLayout;
    /// assert!(MemoryLayout::new(3_200_000, 2, 100, 0).is_err());
    /// assert!(MemoryLayout::to_merge(3_200_000, 2)?.groups(&[100; 9]).is_ok());
    /// # Ok::<(), gristmill_engine::Error>(())
    /// ```
    pub fn to_merge(room: impl Into<JobMemory>, workers: usize) -> Result<Self> {
        MemoryLayout::with(room.into(), workers, 1, 0, 0)
    }

    /// `chunk_bytes` at least are for records and entries.
    fn with(
        room: JobMemory,
        workers: usize,
        typical_bytes: u64,
        longest: u64,
        chunk_bytes: u64,
    ) -> Result<Self> {
        let fixed_bytes = room.held_bytes + FIXED_BYTES;
        let needed = MemoryModel {
            fixed_bytes,
            workers: workers as u64,
            half: false,
            worker_fixed_bytes: WORKER_BYTES,
            buffer_bytes: BUFFER_BYTES_MIN as usize,
            buffer_share: BUFFER_SHARE,
        };
        let least = (WORKER_BYTES + chunk_bytes + writer_bytes(BUFFER_BYTES_MIN as usize))
            .max(needed.worker_bytes(longest));
        let share = room.budget_bytes.saturating_sub(fixed_bytes) / workers as u64;
        if share < least {
            return Err(too_small(room, fixed_bytes, least, workers));
        }
        let share = share - WORKER_BYTES;
        let buffer = (share / BUFFER_SHARE).clamp(BUFFER_BYTES_MIN, BUFFER_BYTES_MAX);
        let own_bytes = (share - writer_bytes(buffer as usize)) / ENTRY_BYTES * ENTRY_BYTES;
        Ok(MemoryLayout {
            chunk_bytes: own_bytes as usize,
            typical_bytes: typical_bytes.max(1),
            buffer_bytes: buffer as usize,
            needed,
            merge_bytes: own_bytes,
            most_merge_bytes: u64::MAX,
            most_runs: RUNS_MAX,
            node_runs_bytes: 0,
        })
    }

    /// The same where a merge may have so many runs open: two at least.
    ///
    /// ```
    /// use gristmill_engine::plan::spill::MemoryLayout;
    /// let memory_layout = MemoryLayout::new(2_000_000_000, 2, 100, 100)?.opening(4);
    /// assert_eq!((memory_layout.fan_in(), memory_layout.passes(400)), (4, 4));
    /// assert_eq!(memory_layout.groups(&[100; 10])?, [4, 3, 3]);
    /// # Ok::<(), gristmill_engine::Error>(())
    /// ```
    #[must_use]
    pub fn opening(self, runs: usize) -> Self {
        MemoryLayout {
            most_runs: runs.clamp(2, RUNS_MAX),
            ..self
        }
    }

    /// The same for an input of so many bytes, all of which one worker has room for however short its records are: no
    /// more than that is mapped.
    #[must_use]
    pub fn for_input(mut self, bytes: u64) -> Self {
        let most = bytes
            .saturating_mul(2 * (1 + ENTRY_BYTES))
            .saturating_add(CHUNK_BYTES_MIN);
        let most = usize::try_from(most / ENTRY_BYTES * ENTRY_BYTES).unwrap_or(usize::MAX);
        self.chunk_bytes = self.chunk_bytes.min(most);
        self
    }

    /// The same where a merge leaves half of its memory to what is made of its records.
    #[must_use]
    pub fn merging_by_half(self) -> Self {
        MemoryLayout {
            merge_bytes: self.merge_bytes / 2,
            ..self
        }
    }

    /// The same where runs in memory may have as much as is planned here.
    #[must_use]
    pub fn beside_runs(mut self) -> Self {
        self.needed.half = true;
        self
    }

    /// The same for runs that are in memory: copies need no large buffers.
    #[must_use]
    pub fn in_memory(self) -> Self {
        MemoryLayout {
            most_merge_bytes: MEMORY_MERGE_BYTES,
            ..self
        }
    }

    /// The same for runs that stay in the memory of nodes, which have so much for them beside the workers.
    #[must_use]
    pub fn with_runs_on_nodes(self, bytes: u64) -> Self {
        MemoryLayout {
            node_runs_bytes: bytes,
            most_merge_bytes: NODE_MERGE_BYTES,
            buffer_bytes: self.buffer_bytes.min(NODE_BUFFER_BYTES as usize),
            ..self
        }
    }

    /// Bytes of typical records that a worker sorts at once.
    pub fn record_room(&self) -> u64 {
        let each = u128::from(self.typical_bytes + ENTRY_BYTES);
        (self.chunk_bytes as u128 * u128::from(self.typical_bytes) / each) as u64
    }

    /// What a task is given to spill, at most, so that it makes one run: pieces begin at whole blocks, and
    /// splits have slop.
    pub fn task_bytes(&self) -> u64 {
        self.record_room() / 12 * 10
    }

    /// The same for an input of so many bytes: less than a worker has room for, where that makes no more than half the runs that one
    /// merge may read. Memory costs time when it is used for the first time.
    ///
    /// ```
    /// use gristmill_engine::plan::spill::MemoryLayout;
    /// let tasks = |memory: u64, bytes: u64| {
    ///     let memory_layout = MemoryLayout::new(memory, 2, 100, 100)?;
    ///     Ok::<_, gristmill_engine::Error>(bytes.div_ceil(memory_layout.task_bytes_of(bytes)))
    /// };
    /// assert_eq!((tasks(256 << 20, 5 << 30)?, tasks(8 << 30, 5 << 30)?), (62, 20));
    /// assert_eq!(tasks(8 << 30, 200 << 30)?, 100);
    /// # Ok::<(), gristmill_engine::Error>(())
    /// ```
    pub fn task_bytes_of(&self, input_bytes: u64) -> u64 {
        if self.node_runs_bytes > 0 {
            return self
                .task_bytes()
                .min(NODE_TASK_BYTES.max(input_bytes / NODE_TASKS));
        }
        let few_runs = input_bytes / (self.fan_in() as u64 / 2).max(1);
        self.task_bytes().min(few_runs.max(RUN_BYTES_WORTH))
    }

    /// Bytes of each of the two buffers of a run, where runs with such longest records are merged at once.
    pub fn source_bytes(&self, longest: &[u64]) -> usize {
        let long: u64 = longest.iter().map(|bytes| carry_bytes(*bytes)).sum();
        self.buffer_of(longest.len(), long)
    }

    fn buffer_of(&self, runs: usize, long: u64) -> usize {
        let block = sorted_run::BLOCK_BYTES as u64;
        let runs = runs.max(1) as u64;
        let buffers = self
            .merge_bytes
            .saturating_sub(long + runs * SOURCE_STATE_BYTES);
        let each = buffers.min(self.most_merge_bytes) / (2 * runs);
        (each / block * block).clamp(block, SOURCE_BYTES_MAX) as usize
    }

    /// Memory of a worker that merges at most so many runs of short records, whatever their number.
    ///
    /// ```
    /// use gristmill_engine::plan::spill::MemoryLayout;
    /// let memory_layout = MemoryLayout::new(22_000_000, 2, 100, 100)?;
    /// assert!(memory_layout.merge_memory(2) <= memory_layout.merge_memory(17));
    /// assert_eq!(memory_layout.merge_memory(17), memory_layout.merge_memory(1000));
    /// # Ok::<(), gristmill_engine::Error>(())
    /// ```
    pub fn merge_memory(&self, runs_max: usize) -> u64 {
        let runs = 1..=runs_max.clamp(1, self.fan_in());
        let buffers =
            runs.map(|runs| gristmill_tasks::merge::merge_bytes(runs, self.buffer_of(runs, 0)));
        buffers.max().unwrap_or(0) + gristmill_storage::io::overlap::writer_bytes(self.buffer_bytes)
    }

    /// Runs that so many bytes make, at least.
    pub fn runs(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.record_room().max(1))
    }

    /// Runs of short records that are merged at once at most.
    pub fn fan_in(&self) -> usize {
        let fan_in = (self.merge_bytes / self.source_cost(0)) as usize;
        fan_in.clamp(2, self.most_runs)
    }

    /// The passes before the last merge, where records are short.
    pub fn passes(&self, runs: usize) -> usize {
        let (mut runs, mut passes) = (runs, 0);
        while runs > self.fan_in() {
            runs = runs.div_ceil(self.fan_in());
            passes += 1;
        }
        passes
    }

    /// How the next pass puts neighbouring runs with such longest records together: how many to each new run. Empty
    /// where the last merge can take them all.
    ///
    /// ```
    /// use gristmill_engine::plan::spill::MemoryLayout;
    /// let memory_layout = MemoryLayout::new(22_000_000, 2, 100, 100)?;
    /// assert_eq!(memory_layout.fan_in(), 17);
    /// assert_eq!(memory_layout.groups(&[100; 40])?, [14, 13, 13]);
    /// assert!(memory_layout.groups(&[100; 10])?.is_empty());
    /// assert_eq!(memory_layout.groups(&[100, 4_000_000, 4_000_000, 100])?, [2, 2]);
    /// # Ok::<(), gristmill_engine::Error>(())
    /// ```
    pub fn groups(&self, longest: &[u64]) -> Result<Vec<usize>> {
        let runs = longest.len();
        if self.fit(longest) && runs <= self.most_runs {
            return Ok(Vec::new());
        }
        let cost: u64 = longest.iter().map(|bytes| self.source_cost(*bytes)).sum();
        let least = (cost.div_ceil(self.merge_bytes) as usize)
            .max(runs.div_ceil(self.fan_in()))
            .max(1);
        let (mut groups, mut first) = (Vec::new(), 0);
        while first < runs {
            // As even as they can be; fewer where records are long.
            let even = (runs - first).div_ceil(least.saturating_sub(groups.len()).max(1));
            let most = even.min(self.fan_in()).max(2).min(runs - first);
            let fits = |len: &usize| self.fit(&longest[first..first + len]);
            let len = (1..=most).rev().find(fits).unwrap_or(1);
            groups.push(len);
            first += len;
        }
        if groups.len() < runs {
            return Ok(groups);
        }
        let needed = self
            .needed
            .bytes(longest.iter().copied().max().unwrap_or(0));
        let message = "two runs with long records have no room to be merged";
        Err(
            Error::new(Kind::Memory, "sort the input", message).advise_options(
                "give {} or more, or fewer {}",
                [
                    JobOption::Memory.at_least(needed),
                    JobOption::Workers.named(),
                ],
            ),
        )
    }

    /// Whether runs with such longest records can be merged at once: with good buffers, or if they are two, at all.
    fn fit(&self, longest: &[u64]) -> bool {
        let cost = |bytes: &u64| match longest.len() {
            ..=2 => carry_bytes(*bytes) + 2 * sorted_run::BLOCK_BYTES as u64 + SOURCE_STATE_BYTES,
            _ => self.source_cost(*bytes),
        };
        longest.iter().map(cost).sum::<u64>() <= self.merge_bytes
    }

    /// What it takes to merge a run with such a longest record, beside others.
    fn source_cost(&self, longest: u64) -> u64 {
        let block = sorted_run::BLOCK_BYTES as u64;
        let share = self.merge_bytes / SOURCE_SHARE / block * block;
        let buffer = share.clamp(SOURCE_MAX_BYTES / 2, SOURCE_MAX_BYTES);
        2 * buffer + SOURCE_STATE_BYTES + carry_bytes(longest)
    }
}

const ENTRY_BYTES: u64 = size_of::<Entry>() as u64;

/// `fixed_bytes` beside the workers, each of which needs `worker_bytes`.
fn too_small(room: JobMemory, fixed_bytes: u64, worker_bytes: u64, workers: usize) -> Error {
    let memory_bytes = room.budget_bytes;
    let alone = fixed_bytes + worker_bytes <= memory_bytes;
    let needed = fixed_bytes + workers as u64 * worker_bytes;
    let held = match room.held_bytes {
        0 => String::new(),
        bytes => format!(", of which the process itself holds {}", show_bytes(bytes)),
    };
    let message = format!(
        "a memory budget of {} is too small for {}: {} needed{held}",
        show_bytes(memory_bytes),
        if workers == 1 {
            "1 worker".to_owned()
        } else {
            format!("{workers} workers")
        },
        show_bytes(needed)
    );
    let memory = JobOption::Memory.at_least(needed);
    let error = Error::new(Kind::Memory, "sort the input", message)
        .noting(|details| details.needed_bytes = Some(needed));
    if alone {
        error.advise_options(
            "give {} or more, or only {}",
            [memory, JobOption::Workers.count(1)],
        )
    } else {
        error.advise_options("give {} or more", [memory])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_tasks::merge::merge_bytes;
    use gristmill_tasks::spill::spill_bytes;
    use proptest::prelude::*;

    proptest! {
        /// What is planned fits the budget, and every pass makes progress.
        #[test]
        fn the_numbers_fit(
            memory in 16_u64 << 20..4 << 30,
            workers in 1_usize..9,
            typical in 1_u64..5_000,
            mut longest in proptest::collection::vec(prop_oneof![1_u64..6_000, 1_u64..20_000_000], 1..600),
        ) {
            let Ok(memory_layout) = MemoryLayout::new(memory, workers, typical, 0) else {
                return Ok(());
            };
            let spill = spill_bytes(memory_layout.chunk_bytes, memory_layout.buffer_bytes);
            prop_assert!(workers as u64 * spill + FIXED_BYTES <= memory);
            let fits = |merged: &[u64]| {
                let carries: u64 = merged.iter().map(|bytes| carry_bytes(*bytes)).sum();
                let merge = merge_bytes(merged.len(), memory_layout.source_bytes(merged)) + carries;
                workers as u64 * (merge + writer_bytes(memory_layout.buffer_bytes)) + FIXED_BYTES <= memory
            };
            let mut planned = memory_layout.groups(&longest);
            while let Ok(groups) = &planned && !groups.is_empty() {
                prop_assert!(groups.len() < longest.len());
                prop_assert_eq!(groups.iter().sum::<usize>(), longest.len());
                let (mut rest, mut next) = (&longest[..], Vec::new());
                for len in groups {
                    let (group, after) = rest.split_at(*len);
                    prop_assert!(*len == 1 || fits(group));
                    next.extend(group.iter().max());
                    rest = after;
                }
                longest = next;
                planned = memory_layout.groups(&longest);
            }
            let most = longest.iter().copied().max().unwrap_or(0);
            match planned {
                Ok(_) => prop_assert!(fits(&longest)),
                Err(_) => prop_assert!(memory < memory_layout.needed.bytes(most)),
            }
        }

        /// Short records take as few passes as there can be.
        #[test]
        fn passes_are_as_said(memory in 16_u64 << 20..1 << 30, runs in 1_usize..5_000) {
            let Ok(memory_layout) = MemoryLayout::new(memory, 2, 100, 100) else {
                return Ok(());
            };
            let (mut left, mut passes) = (runs, 0);
            loop {
                let groups = memory_layout.groups(&vec![100; left]).unwrap();
                if groups.is_empty() {
                    break;
                }
                let (most, least) = (groups.iter().max().unwrap(), groups.iter().min().unwrap());
                prop_assert!(*most <= memory_layout.fan_in() && most - least <= 1);
                (left, passes) = (groups.len(), passes + 1);
            }
            prop_assert_eq!(passes, memory_layout.passes(runs));
        }

        /// The smallest memory that a refusal names is enough, and not much less is.
        #[test]
        fn the_memory_that_is_named_works(workers in 1_usize..9, longest in 0_u64..50_000_000) {
            let error = MemoryLayout::new(1, workers, 100, longest).unwrap_err();
            let needed = error.details.needed_bytes.unwrap();
            let memory_layout = MemoryLayout::new(needed, workers, 100, longest).unwrap();
            prop_assert!(memory_layout.chunk_bytes as u64 > longest + 2 * ENTRY_BYTES);
            prop_assert!(memory_layout.groups(&[longest; 5]).is_ok());
            prop_assert!(MemoryLayout::new(needed - workers as u64, workers, 100, longest).is_err());
        }
    }
}

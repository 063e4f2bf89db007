//! Runs of records that come one by one: each is appended to the chunk, which is spilled when it is full.

use super::record_assembler::too_long;
use super::{AttemptRuns, SpillPlan, SpillScratch, SpilledRun};
use crate::spill::Progress;
use gristmill_base::error::{Error, JobOption, Kind, Result};
use gristmill_base::record::shape::Shape;
use gristmill_storage::LocalDisk;

/// The part of a worker's memory that holds what was read: one in so many. The rest is for the chunk.
pub(super) const RAW_SHARE: usize = 4;

/// Bad rows that are named, at most: the report says where they are, and has no more lines than a person reads.
pub(super) const NAMED_MAX: usize = 20;

/// Input that is in no run as it is not to be written: headers but the first, and rows that cannot be read.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LeftOut {
    /// Rows that cannot be read.
    pub bad_rows: u64,
    /// Bytes of them and of headers.
    pub bytes: u64,
    /// Bytes of cells that short rows got: these are in runs, and in no input.
    #[serde(default)]
    pub added: u64,
    /// The first of these rows: what is wrong with each, and where it is. Histories written before have none.
    #[serde(default)]
    pub first: Vec<String>,
}

impl std::ops::AddAssign for LeftOut {
    fn add_assign(&mut self, other: Self) {
        self.bad_rows += other.bad_rows;
        self.bytes += other.bytes;
        self.added += other.added;
        self.first.extend(other.first);
        self.first.truncate(NAMED_MAX);
    }
}

/// The runs of an attempt, and the memory that becomes the next one.
pub(super) struct AppendedRuns<'a, S> {
    plan: &'a SpillPlan<'a, S>,
    written: AttemptRuns<'a>,
    pub(super) scratch: &'a mut SpillScratch,
    /// Bytes of input in the chunk: fewer than lie there, where codes were put in front.
    bytes_read: u64,
    pub(super) left_out: LeftOut,
    /// Of the next run.
    pub(super) number: u64,
}

impl<'a, S: Shape> AppendedRuns<'a, S> {
    pub(super) fn new(
        plan: &'a SpillPlan<'a, S>,
        store: &'a dyn LocalDisk,
        name: &'a str,
        scratch: &'a mut SpillScratch,
    ) -> Result<Self> {
        let mut runs = AppendedRuns {
            plan,
            written: AttemptRuns::new(store, name),
            scratch,
            bytes_read: 0,
            left_out: LeftOut::default(),
            number: 0,
        };
        runs.reserve()?;
        Ok(runs)
    }

    fn reserve(&mut self) -> Result<()> {
        let SpillPlan {
            shape,
            chunk_bytes,
            typical_bytes,
            ..
        } = *self.plan;
        let bytes = chunk_bytes - chunk_bytes / RAW_SHARE;
        self.scratch.chunk.reserve(shape, bytes, typical_bytes)
    }

    /// Takes a record that is made of `parts`, of which `bytes_read` bytes were read.
    pub(super) fn take(
        &mut self,
        parts: &[&[u8]],
        bytes_read: usize,
        progress: Progress<'_>,
    ) -> Result<()> {
        let shape = self.plan.shape;
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        if parts.iter().any(|part| part.len() > u32::MAX as usize) {
            return Err(self.too_long(bytes));
        }
        if !self.scratch.chunk.append(shape, parts) {
            self.spill(progress)?;
            if !self.scratch.chunk.append(shape, parts) {
                return Err(self.too_long(bytes));
            }
        }
        self.bytes_read += bytes_read as u64;
        Ok(())
    }

    /// Writes the chunk as a run, if there is anything to tell of it.
    pub(super) fn spill(&mut self, progress: Progress<'_>) -> Result<()> {
        if self.scratch.chunk.is_empty() && self.left_out == LeftOut::default() {
            return Ok(());
        }
        self.written
            .write(self.plan, self.scratch, self.number, progress)?;
        if let Some(run) = self.written.runs.last_mut() {
            run.bytes_read = std::mem::take(&mut self.bytes_read);
            run.left_out = std::mem::take(&mut self.left_out);
        }
        self.number += 1;
        self.reserve()
    }

    pub(super) fn finish(mut self, progress: Progress<'_>) -> Result<Vec<SpilledRun>> {
        self.spill(progress)?;
        Ok(self.written.keep())
    }

    /// Bytes of a worker's memory for records and their entries, and for what was read.
    pub(super) fn chunk_bytes(&self) -> usize {
        self.plan.chunk_bytes
    }

    /// Bytes that a record may have while it is read.
    pub(super) fn longest(&self) -> usize {
        self.plan.chunk_bytes / RAW_SHARE
    }

    /// The error of a line, row or record that is longer than [`Self::longest`].
    pub(super) fn too_long_to_read(&self, what: &str, bytes: u64) -> Error {
        // Merging two needs twice as much as was asked for: so this leaves one in `RAW_SHARE` for what is read.
        let needed = self.plan.needed.bytes(bytes * RAW_SHARE as u64 / 2);
        too_long(what, bytes, self.longest(), (needed, true))
    }

    /// The error of a record that the chunk has no room for.
    fn too_long(&self, bytes: usize) -> Error {
        let what = if self.plan.shape.is_stripped() {
            "a line with its keys"
        } else {
            "a record"
        };
        let message = format!(
            "{what} has {bytes} bytes, and a worker has room for {}",
            self.scratch.chunk.memory_bytes()
        );
        // Beside what was read the chunk has this part of the memory; the model has room for two of them, to be merged.
        let longest = bytes as u64 * RAW_SHARE as u64 / (RAW_SHARE as u64 - 1);
        let needed = self.plan.needed.bytes(longest);
        Error::new(Kind::Memory, "read the input", message).advise_options(
            "give {} or more, or fewer {}",
            [
                JobOption::Memory.at_least(needed),
                JobOption::Workers.named(),
            ],
        )
    }
}
